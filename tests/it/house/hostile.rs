//! Holds readers to the types that bound them: nothing is unpacked without a budget, and no reader calls
//! itself without a depth.

use std::collections::{BTreeMap, BTreeSet};

use super::code::{closing_bracket, code_of, for_each_source, without_unit_tests, words};
use super::root;

/// Names of decoders of compressed data.
const DECODERS: [&str; 18] = [
    "ZlibDecoder",
    "GzDecoder",
    "MultiGzDecoder",
    "DeflateDecoder",
    "Decompress",
    "Decompressor",
    "decode_all",
    "FrameDecoder",
    "StreamingDecoder",
    "lzma_rs",
    "xz2",
    "liblzma",
    "lz4",
    "lz4_flex",
    "brotli",
    "bzip2",
    "snap",
    "ZipArchive",
];

/// The file in which all decoders take a budget.
const UNPACKER: &str = "src/formats/unpack.rs";

/// Other files that name a decoder, each with what bounds it.
const OTHER_UNPACKERS: [(&str, &str); 3] = [
    ("src/desk/device/binary.rs", "unpacks the programs that this program carries"),
    ("src/formats/archive/members.rs", "its readers of members are read through a budget"),
    ("src/formats/trace_dat/cpu_data.rs", "a chunk is as long as a checked number says, in a reused buffer"),
];

/// Directories and files of readers and of what they share.
const READERS: [&str; 9] = [
    "crates/tracebridge-core/src/ftrace",
    "crates/tracebridge-core/src/trace_dat",
    "src/adb",
    "src/art",
    "src/export/perfetto",
    "src/formats",
    "src/live",
    "src/mcp",
    "src/tables",
];

/// Functions that call themselves without a depth, each with what bounds it. The search goes by names, so
/// that a function which calls another one of its name is here too.
const BOUNDED: [(&str, &[&str], &str); 9] = [
    (
        "crates/tracebridge-core/src/ftrace/print_fmt/eval.rs",
        &["binary", "branch", "bytes", "cast", "int", "text"],
        "follows the tree that the parser has counted",
    ),
    (
        "src/export/perfetto/pass_through.rs",
        &["packets"],
        "compressed packets are not unpacked inside of others",
    ),
    (
        "src/export/perfetto/pass_through.rs",
        &["rename_at", "write"],
        "follows a path of fields that is a constant",
    ),
    ("src/formats/perf_data/file.rs", &["unpack"], "calls functions of its name"),
    ("src/formats/perfetto/read.rs", &["samples"], "calls a closure of its name"),
    ("src/formats/perfetto/scan.rs", &["compressed", "packet"], "leaves out what is compressed twice"),
    ("src/formats/perfetto/trace_streams.rs", &["packets"], "calls a function of its name"),
    ("src/formats/text_lines.rs", &["lines"], "calls a function of its name"),
    (
        "src/mcp/answer.rs",
        &["find_lists", "for_each_text"],
        "follows JSON that serde_json has read, 128 levels",
    ),
];

/// The name of each function of a file, and the names that its bodies call.
fn calls(code: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name_at = |at: usize| code[at..].split(|c| !is_name(c)).next().unwrap_or_default();
    let mut bodies: Vec<(&str, &str)> = Vec::new();
    for at in words(code, "fn") {
        let start = at + "fn ".len();
        let name = code.get(start..).map_or("", |_| name_at(start));
        let Some(open) = code[at..].find(['{', ';']).map(|open| at + open) else { continue };
        if !name.is_empty() && code.as_bytes()[open] == b'{' {
            bodies.push((name, &code[open..closing_bracket(code, open)]));
        }
    }
    let names: BTreeSet<&str> = bodies.iter().map(|(name, _)| *name).collect();
    let mut calls: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, body) in &bodies {
        let called = calls.entry(name).or_default();
        for callee in &names {
            let is_call = |at: &usize| {
                let before = body[..*at].trim_end();
                let is_own = before.ends_with("self.") || before.ends_with("Self::");
                let is_other = before.ends_with(['.', ':']) || before.ends_with("fn");
                body[at + callee.len()..].starts_with('(') && (is_own || !is_other)
            };
            if words(body, callee).any(|at| is_call(&at)) {
                called.insert(callee);
            }
        }
    }
    calls
}

/// The functions of a file that call themselves, also through others.
fn recursive(code: &str) -> Vec<&str> {
    let calls = calls(code);
    let reaches_itself = |start: &&str| {
        let mut reached = BTreeSet::new();
        let mut next: Vec<&str> = calls[*start].iter().copied().collect();
        while let Some(name) = next.pop() {
            if reached.insert(name) {
                next.extend(&calls[name]);
            }
        }
        reached.contains(*start)
    };
    calls.keys().copied().filter(|name| reaches_itself(name)).collect()
}

#[test]
fn decoders_are_named_where_they_take_a_budget() {
    let mut found = BTreeSet::new();
    for dir in ["src", "crates"] {
        for_each_source(&root().join(dir), &mut |path, text| {
            let code = code_of(text);
            let code = without_unit_tests(&code);
            let file = path.strip_prefix(root()).unwrap().display().to_string();
            let is_test = file.ends_with("tests.rs");
            if !is_test && DECODERS.iter().any(|name| words(code, name).next().is_some()) {
                found.insert(file);
            }
        });
    }
    assert!(found.remove(UNPACKER), "{UNPACKER}: no decoder is found");
    let known: BTreeSet<String> = OTHER_UNPACKERS.iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(found, known, "unpack with `UnpackBudget`, in {UNPACKER}");
}

#[test]
fn readers_that_call_themselves_take_a_depth() {
    let mut found = BTreeSet::new();
    for dir in READERS {
        for_each_source(&root().join(dir), &mut |path, text| {
            let code = code_of(text);
            let code = without_unit_tests(&code);
            if words(code, "Depth").next().is_none() {
                let file = path.strip_prefix(root()).unwrap().display().to_string();
                found.extend(recursive(code).into_iter().map(|name| format!("{file}: {name}")));
            }
        });
    }
    let of_file = |(file, names, _): &(&str, &[&str], &str)| {
        names.iter().map(|name| format!("{file}: {name}")).collect::<Vec<_>>()
    };
    let known: BTreeSet<String> = BOUNDED.iter().flat_map(of_file).collect();
    assert_eq!(found, known, "count the levels with `Depth`");
}

#[test]
fn functions_that_call_themselves_are_found() {
    let code =
        "fn a() { b(); } impl X { fn b(&self) { Self::c(1) } fn c(n: u8) { a() } fn d() { x.d(); y::d(); } }";
    assert_eq!(recursive(code), ["a", "b", "c"]);
    assert_eq!(recursive("fn e(&self) -> u8 { self.e() } fn f();"), ["e"]);
}
