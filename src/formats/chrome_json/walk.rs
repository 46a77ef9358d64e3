//! Walks over a file's events in the order of the file, also behind damaged ones.
//!
//! The file is an array of events, or an object with that array as its member `traceEvents`. Chrome leaves
//! out the end of the array where it was ended itself, and puts a comma behind the last event. Node.js writes
//! several such documents into one file.

use super::event::JsonEvent;
use crate::formats::Damage;
use crate::formats::json::{Fault, JsonText, Scanner, Value};

/// So many damaged places are told one by one; the others are counted.
const MAX_REPORTED_PLACES: u64 = 16;
/// Behind damage, an event is looked for in so many bytes of the file, beside as many as the file has.
const SEARCHED_BYTES: usize = 64 << 20;
/// An event that is looked for behind damage has at most so many bytes.
const MAX_EVENT_BYTES: usize = 1 << 20;

/// Where the walk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WalkPosition {
    /// Between the members of the file's object.
    Members,
    /// In the array of events; whether the array is a member of an object.
    Events { in_object: bool },
    /// At the end.
    End,
}

/// A walk over the events of a file.
pub(super) struct EventWalk<'a> {
    scanner: Scanner<'a>,
    place: WalkPosition,
    /// Bytes that may still be searched for events behind damage.
    search_left: usize,
    /// The members of the file's object beside the events.
    pub(super) members: Vec<(JsonText<'a>, Value<'a>)>,
    damage: Vec<Damage>,
    unreported_places: u64,
    /// Elements of the array that are no objects.
    pub(super) no_events: u64,
}

/// An event, and where its text begins.
pub(super) struct WalkedEvent<'a> {
    pub(super) at: usize,
    /// Whether its list is a member of an object; `false` of an event that is read alone.
    pub(super) in_object: bool,
    pub(super) event: JsonEvent<'a>,
}

impl<'a> EventWalk<'a> {
    /// A walk over all events of `data`.
    pub(super) fn new(data: &'a [u8]) -> EventWalk<'a> {
        let start = if data.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let mut scanner = Scanner::new(data, start);
        let place = begin_document(&mut scanner).unwrap_or(WalkPosition::End);
        EventWalk::from(scanner, place)
    }

    /// A walk over the events of `data` from that one on which begins at `at`, in a list that is a member of
    /// an object or not.
    pub(super) fn at(data: &'a [u8], at: usize, in_object: bool) -> EventWalk<'a> {
        EventWalk::from(Scanner::new(data, at), WalkPosition::Events { in_object })
    }

    fn from(scanner: Scanner<'a>, place: WalkPosition) -> EventWalk<'a> {
        let search_left = SEARCHED_BYTES.saturating_add(scanner.data.len());
        EventWalk {
            scanner,
            place,
            search_left,
            members: Vec::new(),
            damage: Vec::new(),
            unreported_places: 0,
            no_events: 0,
        }
    }

    /// Goes on behind the end of a document.
    #[cold]
    fn end_document(&mut self) {
        self.place = WalkPosition::End;
        if self.scanner.peek().is_some() {
            let at = self.scanner.at;
            match begin_document(&mut self.scanner) {
                Some(place) => self.place = place,
                None => self.tell(
                    at,
                    &format!(
                        "{} bytes behind the end of the JSON are not read",
                        self.scanner.data.len() - at
                    ),
                ),
            }
        }
    }

    /// The damage that has been met.
    pub(super) fn damage(&mut self) -> Vec<Damage> {
        let mut damage = std::mem::take(&mut self.damage);
        if self.unreported_places > 0 {
            let what = format!("{} more events cannot be read", self.unreported_places);
            damage.push(Damage { offset: 0, what });
        }
        damage
    }

    fn tell(&mut self, offset: usize, what: &str) {
        if (self.damage.len() as u64) < MAX_REPORTED_PLACES {
            self.damage.push(Damage { offset: offset as u64, what: what.to_owned() });
        } else {
            self.unreported_places += 1;
        }
    }

    /// The next event; `None` at the end.
    #[inline]
    pub(super) fn next_event(&mut self) -> Option<WalkedEvent<'a>> {
        loop {
            match self.place {
                WalkPosition::Events { in_object } => {
                    self.scanner.skip(b',');
                    match self.scanner.peek() {
                        Some(b'{') => {}
                        _ => {
                            self.other_element(in_object);
                            continue;
                        }
                    }
                    let at = self.scanner.at;
                    match JsonEvent::read(&mut self.scanner) {
                        Ok(event) => return Some(WalkedEvent { at, in_object, event }),
                        Err(fault) => self.damaged_event(at, fault),
                    }
                }
                WalkPosition::Members => self.next_member(),
                WalkPosition::End => return None,
            }
        }
    }

    /// Reads what is no event between events: the array's end, or another value.
    fn other_element(&mut self, in_object: bool) {
        let at = self.scanner.at;
        match self.scanner.peek() {
            None => {
                self.tell(at, "the file ends inside of the list of events: what followed is missing");
                self.place = WalkPosition::End;
            }
            Some(b']') => {
                self.scanner.at += 1;
                if in_object {
                    self.place = WalkPosition::Members;
                } else {
                    self.end_document();
                }
            }
            Some(_) => match self.scanner.value() {
                Ok(_) => self.no_events += 1,
                Err(fault) => self.damaged_event(at, fault),
            },
        }
    }

    fn next_member(&mut self) {
        let name = match self.scanner.member_name() {
            Ok(Some(name)) => name,
            Ok(None) => return self.end_document(),
            Err(fault) => return self.damaged_member(fault),
        };
        if name.raw() == b"traceEvents" && self.scanner.skip(b'[') {
            self.place = WalkPosition::Events { in_object: true };
            return;
        }
        match self.scanner.value() {
            Ok(value) => self.members.push((name, value)),
            Err(fault) => self.damaged_member(fault),
        }
    }

    #[cold]
    fn damaged_member(&mut self, fault: Fault) {
        let what = match fault {
            Fault::Cut => "the file is cut",
            Fault::Syntax => "this is no JSON: the rest of the file is not read",
        };
        self.tell(self.scanner.at.min(self.scanner.data.len()), what);
        self.place = WalkPosition::End;
    }

    /// Goes on behind an event that cannot be read, which begins at `at`.
    #[cold]
    fn damaged_event(&mut self, at: usize, fault: Fault) {
        let next = self.find_event(at + 1);
        match (next, fault) {
            (Some(next), _) => {
                self.tell(at, &format!("{} bytes are no event, and are left out", next - at));
                self.scanner.at = next;
            }
            (None, Fault::Cut) => {
                self.tell(at, "the file is cut inside of an event");
                self.place = WalkPosition::End;
            }
            (None, Fault::Syntax) => {
                self.tell(at, "this is no event, and no event behind it can be found");
                self.place = WalkPosition::End;
            }
        }
    }

    /// Where the next event begins, at `from` or later: an object with a phase that stands alone between
    /// commas or at the start of a line.
    fn find_event(&mut self, from: usize) -> Option<usize> {
        let data = self.scanner.data;
        let mut at = from;
        while let Some(found) = memchr::memchr(b'{', data.get(at..)?) {
            let before = data[..at + found].iter().rev().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
            let candidate = at + found;
            at = candidate + 1;
            if !matches!(before, Some(b',' | b'\n')) {
                continue;
            }
            let window = &data[..data.len().min(candidate + MAX_EVENT_BYTES)];
            let mut scanner = Scanner::new(window, candidate);
            let is_event = JsonEvent::read(&mut scanner).is_ok_and(|event| event.phase != 0);
            if is_event {
                return Some(candidate);
            }
            let searched = scanner.at.min(data.len()) - candidate;
            self.search_left = self.search_left.checked_sub(searched)?;
        }
        None
    }
}

/// Moves into the document that begins here; `None` where none does.
fn begin_document(scanner: &mut Scanner<'_>) -> Option<WalkPosition> {
    if scanner.skip(b'[') {
        Some(WalkPosition::Events { in_object: false })
    } else {
        scanner.skip(b'{').then_some(WalkPosition::Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(data: &str) -> (Vec<String>, Vec<Damage>) {
        let mut walk = EventWalk::new(data.as_bytes());
        let mut names = Vec::new();
        while let Some(WalkedEvent { event, .. }) = walk.next_event() {
            names.push(String::from_utf8_lossy(event.name.unwrap_or_default().raw()).into_owned());
        }
        let damage = walk.damage();
        (names, damage)
    }

    #[test]
    fn both_forms_are_walked_with_commas_at_their_ends() {
        let a = r#"{"ph":"X","name":"a"}"#;
        for (text, damaged) in [
            (format!("[{a},{a}]"), false),
            (format!("\n   [{a},\n{a},\n]\n"), false),
            (format!("\u{feff}{{\"x\":{{}},\"traceEvents\":[{a},{a},],\"y\":1}}"), false),
            (format!("[{a},{a},"), true),
            (format!("[{a},{a}"), true),
            (format!("{{\"traceEvents\":[{a},{a}]"), true),
            (format!("{{\"traceEvents\":[{a},null,{a}],\"y\":"), true),
        ] {
            let (names, damage) = names(&text);
            assert_eq!((names, damage.len()), (vec!["a".to_owned(); 2], usize::from(damaged)), "{text}");
        }
    }

    #[test]
    fn further_documents_and_lists_are_read_and_other_bytes_are_told() {
        let a = r#"{"ph":"X","name":"a"}"#;
        for (text, damaged) in [
            (format!("[{a}]\n[{a}]\n"), false),
            (format!("{{\"traceEvents\":[{a}]}}\n{{\"x\":1,\"traceEvents\":[{a}]}}"), false),
            (format!("{{\"traceEvents\":[{a}]}}[{a}]"), false),
            (format!("{{\"traceEvents\":[{a}],\"traceEvents\":[{a}]}}"), false),
            (format!("[{a},{a}] trailing"), true),
            (format!("{{\"traceEvents\":[{a},{a}]}}\0\0"), true),
            (format!("{{\"traceEvents\":[{a}]}}{{\"traceEvents\":[{a}"), true),
        ] {
            let (names, damage) = names(&text);
            assert_eq!((names, damage.len()), (vec!["a".to_owned(); 2], usize::from(damaged)), "{text}");
        }
    }

    #[test]
    fn an_event_behind_a_damaged_one_is_found() {
        let text = "[{\"ph\":\"X\",\"name\":\"a\"},\n{\"ph\":\"X\",\"na\u{1}e:3,{\"ph\":}},\n{\"ph\":\"X\",\"name\":\"c\"}]";
        let (names, damage) = names(text);
        assert_eq!(names, ["a", "c"]);
        assert_eq!(damage[0].offset, 24);
    }

    #[test]
    fn a_cut_anywhere_is_told() {
        let text = r#"{"traceEvents":[{"ph":"X","name":"a","ts":1.5,"args":{"x":[1,"y"]}},{"ph":"i","name":"b"}],"z":1}"#;
        for cut in 1..text.len() {
            let (_, damage) = names(&text[..cut]);
            assert_eq!(damage.len(), 1, "cut at {cut}");
        }
    }

    #[test]
    fn quotes_without_end_do_not_make_the_search_quadratic() {
        let text = format!("[{}", ",{\"".repeat(1 << 20));
        let (names, damage) = names(&text);
        assert!(names.is_empty() && !damage.is_empty());
    }
}
