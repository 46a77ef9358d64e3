//! Cuts the JSON of an answer to a size that an assistant reads at once, and says what was left out.

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};

/// The most bytes of an answer, where the client asks for no other number.
pub(super) const USUAL_BYTES: usize = 4_000;
/// The most bytes that a client may ask for.
pub(super) const MOST_BYTES: usize = 64_000;
/// The least: room for an answer's head.
pub(super) const LEAST_BYTES: usize = 1_000;
/// The room for what tells of the rest.
const REST_BYTES: usize = 500;
/// A text of a trace has so many characters at most.
const TEXT_CHARS: usize = 160;
/// A text is cut to so many characters where an answer has no list that could be shorter.
const SHORT_TEXT_CHARS: usize = 40;
/// So many places are named at which something was left out.
const NAMED_PLACES: usize = 6;
/// The values of these members are texts of the trace.
pub(super) const TRACE_TEXTS: [&str; 13] = [
    "app", "label", "messages", "method", "missing", "name", "package", "path", "process", "subject",
    "thread", "value", "what",
];

/// An answer of at most `limit` bytes as JSON. Lists keep their first elements, which are the most important
/// ones; `left_out` says how many of each are missing, and `again` is the call that gives more.
pub(super) fn fitted(answer: Value, limit: usize, again: &Value) -> Value {
    let mut answer = answer;
    clean(&mut answer);
    let room = limit.saturating_sub(REST_BYTES);
    let mut left_out: Vec<(String, usize)> = Vec::new();
    let mut text_chars = TEXT_CHARS;
    while size(&answer) > room {
        let over = size(&answer) - room;
        if let Some((path, count)) = shorten_largest_list(&mut answer, over) {
            match left_out.iter_mut().find(|(known, _)| *known == path) {
                Some((_, sum)) => *sum += count,
                None => left_out.push((path, count)),
            }
        } else if text_chars > SHORT_TEXT_CHARS {
            text_chars = SHORT_TEXT_CHARS;
            for_each_text(&mut answer, &mut |text| *text = bounded(text, SHORT_TEXT_CHARS));
        } else {
            answer = json!({});
            left_out = vec![("/".to_owned(), 1)];
        }
    }
    // A list that went with the element around it is told with that.
    left_out.retain(|(path, _)| path == "/" || answer.pointer(path).is_some());
    if let Value::Object(members) = &mut answer
        && !left_out.is_empty()
    {
        let named: Map<String, Value> =
            left_out.iter().take(NAMED_PLACES).map(|(path, count)| (path.clone(), json!(count))).collect();
        members.insert("left_out".to_owned(), Value::Object(named));
        members.insert("more".to_owned(), again.clone());
    }
    answer
}

fn size(value: &Value) -> usize {
    // A value without maps of other keys than texts is always JSON.
    serde_json::to_vec(value).map_or(0, |bytes| bytes.len())
}

/// Makes the list or table shorter that takes most bytes, by about `over` bytes. Returns where it stands and
/// how many elements went; `None` where no list has more than one element. Of lists of times that stand
/// within another one, none is needed.
fn shorten_largest_list(answer: &mut Value, over: usize) -> Option<(String, usize)> {
    let mut found: Option<(String, (bool, usize))> = None;
    find_lists(answer, &mut String::new(), &mut |path, bytes, is_expendable| {
        // Lists of times go before anything else.
        let weight = (is_expendable, bytes);
        if found.as_ref().is_none_or(|(_, most)| weight > *most) {
            found = Some((path.to_owned(), weight));
        }
    });
    let (path, _) = found?;
    let list = answer.pointer_mut(&path)?;
    let removed = match list {
        Value::Array(items) => {
            let most = items.len() - usize::from(!is_of_times(items));
            let mut bytes = 0;
            let mut removed = std::collections::BTreeSet::new();
            for at in least_important_first(items).into_iter().take(most) {
                if bytes >= over {
                    break;
                }
                bytes += size(&items[at]) + 1;
                removed.insert(at);
            }
            let mut at = 0..;
            items.retain(|_| at.next().is_none_or(|at| !removed.contains(&at)));
            removed.len()
        }
        Value::Object(members) => {
            let keys: Vec<String> = members.keys().skip(1).cloned().collect();
            let mut bytes = 0;
            let mut removed = 0;
            for key in keys.iter().rev() {
                if bytes >= over {
                    break;
                }
                bytes += members.remove(key).map_or(0, |item| size(&item) + key.len() + 4);
                removed += 1;
            }
            removed
        }
        _ => 0,
    };
    (removed > 0).then_some((path, removed))
}

/// The indexes of a list's elements. A list in the order of time keeps its longest elements, any other
/// its first ones.
fn least_important_first(items: &[Value]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..items.len()).rev().collect();
    if items.iter().all(|item| item.get("duration_ns").is_some()) {
        order.sort_by_key(|at| items[*at]["duration_ns"].as_u64());
    }
    order
}

/// Two numbers belong together: an interval. Such a list is whole, or it goes with what it is in.
fn is_pair(items: &[Value]) -> bool {
    items.len() == 2 && items.iter().all(Value::is_number)
}

/// A list of numbers or of pairs of numbers: when something happened.
fn is_of_times(items: &[Value]) -> bool {
    items.first().is_some_and(|first| match first {
        Value::Number(_) => true,
        Value::Array(pair) => pair.first().is_some_and(Value::is_number),
        _ => false,
    })
}

/// Members that are tables: their own members are names of the trace, and not the fields of an object.
const TABLES: [&str; 5] = ["kinds", "unread", "states_ns", "dropped", "reduced"];

/// Calls `with` for each list that can be shorter: its place, its bytes, and whether it is one of times.
fn find_lists(value: &Value, path: &mut String, with: &mut dyn FnMut(&str, usize, bool)) {
    let len = path.len();
    match value {
        Value::Array(items) if is_pair(items) => {}
        Value::Array(items) => {
            let is_expendable = is_of_times(items);
            if items.len() > usize::from(!is_expendable) {
                with(path, size(value), is_expendable);
            }
            for (at, item) in items.iter().enumerate() {
                path.push('/');
                path.push_str(&at.to_string());
                find_lists(item, path, with);
                path.truncate(len);
            }
        }
        Value::Object(members) => {
            let is_table = TABLES.iter().any(|table| path.rsplit('/').next() == Some(table));
            if is_table && members.len() > 1 {
                with(path, size(value), false);
            }
            for (name, item) in members {
                path.push('/');
                path.push_str(&name.replace('~', "~0").replace('/', "~1"));
                find_lists(item, path, with);
                path.truncate(len);
            }
        }
        _ => {}
    }
}

/// Bounds every text and every key, and writes characters that nobody sees as escapes.
fn clean(value: &mut Value) {
    for_each_text(value, &mut |text| *text = bounded(&visible(text), TEXT_CHARS));
}

fn for_each_text(value: &mut Value, with: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) => with(text),
        Value::Array(items) => items.iter_mut().for_each(|item| for_each_text(item, with)),
        Value::Object(members) => {
            let mut texts = Map::new();
            for (mut name, mut item) in std::mem::take(members) {
                for_each_text(&mut item, with);
                with(&mut name);
                while texts.contains_key(&name) {
                    name.push('\'');
                }
                texts.insert(name, item);
            }
            *members = texts;
        }
        _ => {}
    }
}

/// Characters that nobody sees, or that turn the direction of others: those with one of the properties
/// Default_Ignorable_Code_Point (among them variation selectors, fillers and tags) and Bidi_Control, of the
/// categories Cf (format), Zl and Zp, as of Unicode 16, and the blank pattern of Braille.
const HIDDEN: [RangeInclusive<char>; 26] = [
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    '\u{600}'..='\u{605}',
    '\u{61c}'..='\u{61c}',
    '\u{6dd}'..='\u{6dd}',
    '\u{70f}'..='\u{70f}',
    '\u{890}'..='\u{891}',
    '\u{8e2}'..='\u{8e2}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{2800}'..='\u{2800}',
    '\u{3164}'..='\u{3164}',
    '\u{fe00}'..='\u{fe0f}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fffb}',
    '\u{110bd}'..='\u{110bd}',
    '\u{110cd}'..='\u{110cd}',
    '\u{13430}'..='\u{1343f}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
];

/// The text with control characters, and those that hide or turn others, as `\u{..}`. Every text that leaves
/// the server passes it.
pub(super) fn visible(text: &str) -> String {
    let is_hidden = |char: char| char.is_control() || HIDDEN.iter().any(|range| range.contains(&char));
    if !text.contains(is_hidden) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if is_hidden(char) { out.extend(char.escape_default()) } else { out.push(char) }
    }
    out
}

/// The text, or its begin and how many characters follow.
pub(super) fn bounded(text: &str, chars: usize) -> String {
    let count = text.chars().count();
    if count <= chars {
        return text.to_owned();
    }
    let head: String = text.chars().take(chars.saturating_sub(16)).collect();
    format!("{head}… (+{})", count - head.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_important_stays_and_the_rest_is_counted() {
        let causes: Vec<Value> =
            (0..500).map(|at| json!({"name": format!("cause {at}"), "ns": at})).collect();
        let answer = json!({"spans": [{"causes": causes, "intervals": [[1, 2], [3, 4]]}], "lossy": false});
        let cut = fitted(answer, 2_000, &json!({"tool": "why"}));
        assert!(size(&cut) <= 2_000, "{}", size(&cut));
        let kept = cut["spans"][0]["causes"].as_array().unwrap();
        assert_eq!(kept[0]["name"], "cause 0");
        assert_eq!(cut["left_out"]["/spans/0/causes"], json!(500 - kept.len()));
        assert_eq!(cut["left_out"]["/spans/0/intervals"], json!(2));
        assert_eq!((&cut["lossy"], &cut["more"]["tool"]), (&json!(false), &json!("why")));
    }

    #[test]
    fn an_interval_is_whole_and_the_longest_span_stays() {
        let span = |at: u64| json!({"begin_ns": at, "duration_ns": if at == 150 { 500 } else { 20 }, "name": "doFrame"});
        let spans: Vec<Value> = (0..200).map(span).collect();
        let counts: Map<String, Value> = (0..20).map(|at| (format!("field {at}"), json!(at))).collect();
        let measures: Vec<Value> = (0..50)
            .map(|at| json!({"measure": format!("m{at}"), "interval_ns": [1.5, 2.5], "counts": counts}))
            .collect();
        let cut = fitted(json!({"spans": spans, "measures": measures}), 4_000, &json!({}));
        let spans = cut["spans"].as_array().unwrap();
        assert!(spans.iter().any(|span| span["duration_ns"] == 500), "{cut}");
        assert!(spans.is_sorted_by_key(|span| span["begin_ns"].as_u64()));
        for measure in cut["measures"].as_array().unwrap() {
            assert_eq!(
                (&measure["interval_ns"], measure["counts"].as_object().unwrap().len()),
                (&json!([1.5, 2.5]), 20)
            );
        }
    }

    #[test]
    fn an_answer_that_fits_is_whole() {
        let answer = json!({"a": [1, 2, 3], "b": "c"});
        assert_eq!(fitted(answer.clone(), 4_000, &json!({})), answer);
    }

    #[test]
    fn texts_are_bounded_and_visible() {
        let answer = json!({"name": format!("x\u{202e}\n{}", "y".repeat(10_000))});
        let cut = fitted(answer, 4_000, &json!({}));
        let name = cut["name"].as_str().unwrap();
        assert!(name.starts_with("x\\u{202e}\\nyyy") && name.chars().count() <= TEXT_CHARS, "{name}");
    }

    #[test]
    fn no_hidden_character_leaves_in_a_text_or_a_key() {
        let hidden = "\u{202e}\u{2066}\u{fe0f}\u{e0100}\u{3164}\u{ffa0}\u{115f}\u{34f}\u{17b4}\u{180b}\u{2800}\u{e0041}\u{feff}\u{b}";
        for char in hidden.chars() {
            let text = format!("a{char}b");
            let name = text.clone();
            let answer = json!({ name: { "name": [text, 1] }, "ab": 2 });
            let cut = fitted(answer, 4_000, &json!({})).to_string();
            assert!(!cut.contains(char), "{:x}: {cut}", char as u32);
        }
        let twins = json!({ "a\u{200b}": 1, "a\\u{200b}": 2 });
        assert_eq!(fitted(twins, 4_000, &json!({})).as_object().unwrap().len(), 2, "no key replaces another");
        assert_eq!(visible("Grüße, 日本語 👍🏽 é"), "Grüße, 日本語 👍🏽 é");
    }

    #[test]
    fn whatever_comes_the_limit_holds() {
        let deep =
            (0..60).fold(json!("z".repeat(500)), |inner, _| json!({ "name": inner, "x": "y".repeat(200) }));
        let wide: Map<String, Value> = (0..5_000).map(|at| (format!("key {at}"), json!(at))).collect();
        for answer in [deep, json!({"table": wide}), json!({ "a": vec!["x".repeat(200); 300] })] {
            for limit in [LEAST_BYTES, USUAL_BYTES, MOST_BYTES] {
                assert!(size(&fitted(answer.clone(), limit, &json!({"tool": "info"}))) <= limit);
            }
        }
    }
}
