//! The form of names, statements and documentation that CONTRIBUTING.md asks for, as far as a machine finds
//! it. `match` on a `bool` is found by clippy: see the lints in Cargo.toml.

use std::collections::BTreeMap;
use std::path::Path;

use super::CRATES;
use super::code::{
    closing_angle, closing_bracket, code_of, for_each_rust_file, for_each_source, line_number, list_items,
    without_unit_tests, words,
};

/// Files of whose types a build has no second one: another file takes their place on other systems, or with
/// another feature.
const ALTERNATIVES: [&str; 3] = ["file_access/windows.rs", "output_file/windows.rs", "src/ring_off.rs"];

/// The width of a comment, in characters.
const COMMENT_COLUMNS: usize = 110;

/// Asserts that no Rust file has a place that `find` names.
#[track_caller]
fn assert_none(rule: &str, is_checked: fn(&Path) -> bool, find: fn(&str) -> Vec<usize>) {
    let mut found = Vec::new();
    for_each_rust_file(&mut |path, text| {
        if is_checked(path) {
            let lines = find(text).into_iter().map(|at| line_number(text, at));
            found.extend(lines.map(|line| format!("{}:{line}", path.display())));
        }
    });
    assert!(found.is_empty(), "{rule}: {found:#?}");
}

fn everywhere(_: &Path) -> bool {
    true
}

/// Whether a file is part of the library: commands print errors, and have no callers that look into them.
fn is_library(path: &Path) -> bool {
    let is_product = path.starts_with("src") || path.starts_with("crates");
    let is_command = path.components().any(|part| part.as_os_str() == "cli");
    is_product && !is_command && !is_test_file(path)
}

fn is_test_file(path: &Path) -> bool {
    path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| stem.ends_with("tests"))
}

#[test]
fn no_documentation_begins_with_what() {
    assert_none("a noun phrase or a sentence says it", everywhere, what_docs);
}

/// The places of documentation whose first word is "What".
fn what_docs(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut is_inside = false;
    for line in text.split_inclusive('\n') {
        let comment = line.trim_start();
        let is_doc = comment.starts_with("///") || comment.starts_with("//!");
        if is_doc && !is_inside && comment[3..].trim_start().starts_with("What ") {
            found.push(at);
        }
        is_inside = is_doc;
        at += line.len();
    }
    found
}

#[test]
fn comments_fit_a_screen() {
    assert_none("a comment of more columns than CONTRIBUTING.md allows", everywhere, wide_comments);
}

/// The places of lines of comments that are too wide. An address cannot be divided.
fn wide_comments(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let is_comment = line.trim_start().starts_with("//");
        if is_comment && line.trim_end().chars().count() > COMMENT_COLUMNS && !line.contains("://") {
            found.push(at);
        }
        at += line.len();
    }
    found
}

#[test]
fn each_statement_names_one_value() {
    assert_none("a `let` for each value", everywhere, tuple_lets);
    assert_none("an assignment for each value", everywhere, tuple_assignments);
}

/// The places of `let (a, b) = (x, y);`. A `let` with `else` matches a pattern.
fn tuple_lets(text: &str) -> Vec<usize> {
    let code = code_of(text);
    let is_tuple_let = |at: &usize| {
        let before = code[..*at].trim_end();
        if before.ends_with("if") || before.ends_with("while") || before.ends_with("&&") {
            return false;
        }
        let pattern = skip_blanks(&code, at + 3);
        let Some(open) = pattern.filter(|open| code[*open..].starts_with('(')) else { return false };
        let behind = &code[closing_bracket(&code, open) + 1..];
        let Some((between, value)) = behind.split_once('=') else { return false };
        let has_type = between.trim_start().starts_with(':');
        (between.trim().is_empty() || has_type) && is_tuple_statement(value)
    };
    words(&code, "let").filter(is_tuple_let).collect()
}

/// The places of `(a, b) = (x, y);`.
fn tuple_assignments(text: &str) -> Vec<usize> {
    let code = code_of(text);
    let is_assignment = |open: &usize| {
        let is_at_the_start = code[..*open].trim_end().ends_with([';', '{', '}']);
        let close = closing_bracket(&code, *open);
        let value = code[close + 1..].trim_start().strip_prefix('=');
        is_at_the_start && value.is_some_and(is_tuple_statement)
    };
    code.match_indices('(').map(|(open, _)| open).filter(is_assignment).collect()
}

/// Whether a text begins with `(x, y);`.
fn is_tuple_statement(text: &str) -> bool {
    let text = text.trim_start();
    if !text.starts_with('(') {
        return false;
    }
    let close = closing_bracket(text, 0);
    text[close + 1..].trim_start().starts_with(';') && list_items(&text[1..close]).len() > 1
}

fn skip_blanks(code: &str, from: usize) -> Option<usize> {
    code[from..].find(|c: char| !c.is_whitespace()).map(|blanks| from + blanks)
}

#[test]
fn no_parameter_is_a_tuple() {
    assert_none("a parameter for each value, or a type with names", everywhere, tuple_parameters);
}

/// The places of functions with a parameter whose type is a tuple.
fn tuple_parameters(text: &str) -> Vec<usize> {
    let code = code_of(text);
    let is_tuple = |parameter: &&str| {
        let name = if parameter.starts_with('(') { closing_bracket(parameter, 0) } else { 0 };
        let Some((_, mut type_name)) = parameter[name..].split_once(':') else { return false };
        type_name = type_name.trim_start();
        while let Some(referred) = type_name.strip_prefix('&') {
            type_name = referred.trim_start();
            if type_name.starts_with('\'') {
                type_name = type_name.split_once(' ').map_or(type_name, |(_, rest)| rest);
            }
            type_name = type_name.strip_prefix("mut ").unwrap_or(type_name);
        }
        type_name.starts_with('(') && list_items(&type_name[1..closing_bracket(type_name, 0)]).len() > 1
    };
    let has_tuple = |at: &usize| {
        let behind = &code[*at..];
        let Some(mut open) = behind.find(['(', '<', ';', '{']) else { return false };
        if behind[open..].starts_with('<') {
            open = closing_angle(behind, open) + 1;
        }
        if !behind[open..].starts_with('(') {
            return false;
        }
        list_items(&behind[open + 1..closing_bracket(behind, open)]).iter().any(is_tuple)
    };
    words(&code, "fn").filter(has_tuple).collect()
}

/// The names under which a declaration of the library is a point in time, and so are those that end in `_ts`.
const POINTS: [&str; 2] = ["ts", "deadline"];

/// The names under which it is one in the rooms of [`TIMELINE_ROOMS`]. Elsewhere such a name may be an offset
/// or an address.
const POINTS_OF_TIMELINE: [&str; 9] =
    ["since", "until", "begun", "begin", "start", "end", "from", "to", "now"];

/// The rooms of the host that work on a timeline.
const TIMELINE_ROOMS: [&str; 9] =
    ["timeline", "tracks", "measure", "why", "export", "live", "desk", "inspect", "tables"];

#[test]
fn points_in_time_have_their_type() {
    let rule = "a point in time is a Timestamp, and a length of time says its unit in its name";
    assert_none(rule, is_library, bare_points);
    assert_none(rule, is_of_timeline, bare_points_of_timeline);
}

fn is_of_timeline(path: &Path) -> bool {
    is_library(path) && TIMELINE_ROOMS.iter().any(|room| path.starts_with(Path::new("src").join(room)))
}

/// The places of declarations with a name of [`POINTS`] whose type is a number.
fn bare_points(text: &str) -> Vec<usize> {
    numbers_named(text, |name| POINTS.contains(&name) || name.ends_with("_ts"))
}

/// The places of declarations with a name of [`POINTS_OF_TIMELINE`] whose type is a number.
fn bare_points_of_timeline(text: &str) -> Vec<usize> {
    numbers_named(text, |name| POINTS_OF_TIMELINE.contains(&name))
}

/// The places of fields, parameters and values that are declared as `u64`, or as something of which that is
/// the first part, under a name that `is_meant`.
fn numbers_named(text: &str, is_meant: impl Fn(&str) -> bool) -> Vec<usize> {
    let code = code_of(text);
    let code = without_unit_tests(&code);
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let is_declared = |at: &usize| {
        // Types of which it is a part stand before it: `Option<`, `&[(`.
        let outer = |letter: char| is_part(letter) || "<([& ".contains(letter);
        let Some(before) = code[..*at].trim_end_matches(outer).strip_suffix(':') else { return false };
        let name = &before[before.trim_end_matches(is_part).len()..];
        !code[*at..].starts_with("u64::") && is_meant(name)
    };
    words(code, "u64").filter(is_declared).collect()
}

#[test]
fn errors_of_the_library_are_types() {
    assert_none("an enum says which error it is", is_library, text_errors);
}

/// The places where an error is a text.
fn text_errors(text: &str) -> Vec<usize> {
    let code = code_of(text);
    let code = without_unit_tests(&code);
    let is_text = |at: &usize| {
        let open = at + "Result".len();
        let arguments = code[open..].starts_with('<').then(|| &code[open + 1..closing_angle(code, open)]);
        arguments.is_some_and(|arguments| list_items(arguments).get(1) == Some(&"String"))
    };
    let is_formatted = |at: &usize| {
        code[*at..].split_once('(').is_some_and(|(_, argument)| argument.trim_start().starts_with("format!"))
    };
    let results = words(code, "Result").filter(is_text);
    let others = code.match_indices("io::Error::other(").map(|(at, _)| at).filter(is_formatted);
    results.chain(others).collect()
}

#[test]
fn no_thread_is_started_by_what_panics_where_the_system_gives_none() {
    assert_none("thread::Builder tells it", is_product, panicking_spawns);
}

/// Whether a file is part of what users run.
fn is_product(path: &Path) -> bool {
    let is_example = path.components().any(|part| part.as_os_str() == "examples");
    (path.starts_with("src") || path.starts_with("crates")) && !is_example && !is_test_file(path)
}

/// The places where a thread is started without a `Builder`. What starts a program has no argument.
fn panicking_spawns(text: &str) -> Vec<usize> {
    let code = code_of(text);
    let code = without_unit_tests(&code);
    let is_free = |at: &usize| {
        let behind = code[at + "spawn".len()..].trim_start();
        let before = &code[..*at];
        let statement = &before[before.rfind([';', '{', '}']).map_or(0, |end| end + 1)..];
        behind.starts_with('(')
            && !behind[1..].trim_start().starts_with(')')
            && !statement.trim_end().ends_with("fn")
            && (statement.ends_with('.') || statement.ends_with("::"))
            && !statement.contains("Builder")
    };
    words(code, "spawn").filter(is_free).collect()
}

#[test]
fn each_type_of_a_crate_has_a_name_of_its_own() {
    let mut found = Vec::new();
    for one in CRATES {
        let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for_each_source(&one.src(), &mut |path, text| {
            if is_test_file(path) || ALTERNATIVES.iter().any(|file| path.ends_with(file)) {
                return;
            }
            for name in type_names(text) {
                files.entry(name).or_default().push(path.display().to_string());
            }
        });
        found.extend(files.into_iter().filter(|(_, files)| files.len() > 1));
    }
    assert!(found.is_empty(), "types of one name: {found:#?}");
}

/// The names of the types that a file declares for others, or for itself. Each module may call its own
/// `Result` so.
fn type_names(text: &str) -> Vec<String> {
    let code = code_of(text);
    let declared = |line: &str| {
        let line = line.strip_prefix("pub").map_or(line, |rest| {
            let rest = if rest.starts_with('(') { &rest[closing_bracket(rest, 0) + 1..] } else { rest };
            rest.trim_start()
        });
        let line = line.strip_prefix("unsafe ").unwrap_or(line);
        let kinds = ["struct ", "enum ", "trait ", "union ", "type "];
        let name = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
        Some(name[..end].to_owned())
    };
    without_unit_tests(&code).lines().filter_map(declared).filter(|name| name != "Result").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines that a rule finds.
    fn lines(find: fn(&str) -> Vec<usize>, text: &str) -> Vec<usize> {
        find(text).into_iter().map(|at| line_number(text, at)).collect()
    }

    #[test]
    fn documentation_that_begins_with_what_is_found_at_its_first_line() {
        let text = "//! What a file holds.\n\n/// Says\n/// What it holds.\nfn f() {}\n    /// What is it.\n// What?\n";
        assert_eq!(lines(what_docs, text), [1, 6]);
    }

    #[test]
    fn comments_are_measured_in_characters_and_addresses_are_left_out() {
        let comment = |width: usize, start: &str| format!("{start}{}\n", "é".repeat(width - start.len()));
        let text = [
            comment(COMMENT_COLUMNS, "// "),
            comment(COMMENT_COLUMNS + 1, "// "),
            comment(COMMENT_COLUMNS + 1, "    /// "),
            comment(COMMENT_COLUMNS + 1, "// https://"),
            comment(COMMENT_COLUMNS + 1, "let a = b; //"),
        ];
        assert_eq!(lines(wide_comments, &text.concat()), [2, 3]);
    }

    #[test]
    fn tuples_of_values_are_found_and_patterns_are_not() {
        let text = "fn f() {
    let (a, b) = (1, g(2));
    let (mut a, b): (u8, Vec<u8>) =
        (1, Vec::new());
    let (a, b) = pair();
    let (Some(a), Some(b)) = (x, y) else { return };
    if let (1, 2) = (a, b) {}
    let (a, b) = (x.get(1, 2)).pair();
    let text = \"let (a, b) = (1, 2);\";
}";
        assert_eq!(lines(tuple_lets, text), [2, 3]);
    }

    #[test]
    fn tuples_of_assignments_are_found_and_calls_are_not() {
        let text = "fn f() {
    (a.x, a.y) = (1, 2);
    (a, b) = pair();
    (f)(1, 2);
    if x {
        (a, self.b[1]) = (b, a);
    }
    let c = (1, 2);
}";
        assert_eq!(lines(tuple_assignments, text), [2, 6]);
    }

    #[test]
    fn parameters_of_tuples_are_found_also_behind_references() {
        let text = "fn f(a: (u8, u8)) {}
fn g<T: Fn(u8) -> Vec<u8>>(a: u8, b: &'a mut (T, u8)) {}
fn h(list: &[(u8, u8)], unit: (), f: fn(u8, u8)) -> (u8, u8) {}
fn i((a, b): (u8, u8)) {}
fn j() { |(a, b): (u8, u8)| a }";
        assert_eq!(lines(tuple_parameters, text), [1, 2, 4]);
    }

    #[test]
    fn points_that_are_numbers_are_found_and_lengths_are_not() {
        let text = "struct A { pub ts: u64, last_ts: Option<u64>, until: u64 }
fn f(ts: &[(u64, Tid)], ts_ns: u64, counts: u64) {}
fn g(ts: Timestamp, ns: u64) -> u64 { A { ts: u64::MAX, ..a } }
// ts: u64
#[cfg(test)]
mod tests { fn h(ts: u64) {} }";
        assert_eq!(lines(bare_points, text), [1, 1, 2]);
        assert_eq!(lines(bare_points_of_timeline, text), [1]);
    }

    #[test]
    fn errors_of_text_are_found() {
        let text = "fn f() -> Result<Vec<(u8, u8)>, String> {}
fn g() -> io::Result<String> {}
fn h() -> Result<String, Error> { io::Error::other(
    format!(\"x\")) }
#[cfg(test)]
mod tests { fn i() -> Result<(), String> {} }";
        assert_eq!(lines(text_errors, text), [1, 3]);
    }

    #[test]
    fn threads_without_a_builder_are_found_and_programs_are_not() {
        let text = "fn f() { std::thread::spawn(run);
thread::scope(|scope| { scope.spawn(|| 1); });
let done = Builder::new()
    .spawn(run)?;
let child = command.spawn()?; let spawn = |run| 1; spawn(run); }
#[cfg(test)]
mod tests { fn i() { thread::spawn(run); } }";
        assert_eq!(lines(panicking_spawns, text), [1, 2]);
    }

    #[test]
    fn types_are_found_by_their_declarations() {
        let text = "pub(crate) struct A<T>(T);\nenum B {}\nimpl C for A { type D = u8; }\n    struct E;\npub trait F {}\n\
                    type Result<T> = u8;\npub type G = A<u8>;\n// struct H;\n#[cfg(test)]\nmod tests {}\nstruct I;\n";
        assert_eq!(type_names(text), ["A", "B", "F", "G"]);
    }
}
