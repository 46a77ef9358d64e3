//! The method traces of the corpus as `profile` and `dmtracedump` print and draw them: beside the original
//! dmtracedump on every file that it reads, at every width of a terminal, and as a picture of the call graph.

use std::path::Path;

use support::Command;
use tracebridge::formats::art_method::MethodTrace;
use tracebridge::profile::{
    self, PrintForm, ProfileOutput, ProfileRequest, RowRequest, TextStyle, TreeDirection,
};

use crate::method_trace::bytes;

/// Runs a program and returns its standard output; `None` where it failed. Exit status 3 is success on a
/// damaged file.
fn output(command: &mut Command) -> Option<String> {
    let out = command.run();
    matches!(out.code(), Some(0 | 3)).then(|| out.stdout.clone())
}

fn numbers(text: &str) -> usize {
    text.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty()).count()
}

/// Compares both outputs for one file byte for byte, and returns how many values were compared. `None` where
/// the original program does not read the file.
fn compare(path: &Path, options: &[&str]) -> Option<usize> {
    let theirs = output(Command::new("dmtracedump").args(options).arg(path))?;
    if theirs.is_empty() {
        return None;
    }
    let ours = output(support::tracebridge().arg("dmtracedump").args(options).arg(path));
    let ours = ours.unwrap_or_else(|| panic!("{} {options:?}: failed", path.display()));
    for (n, (a, b)) in theirs.lines().zip(ours.lines()).enumerate() {
        assert_eq!(a, b, "{} {options:?} line {}", path.display(), n + 1);
    }
    assert_eq!(theirs.len(), ours.len(), "{} {options:?}", path.display());
    Some(numbers(&theirs))
}

#[test]
fn dmtracedump_prints_what_the_old_one_prints() {
    let Some(corpus) = support::corpus() else { return };
    if !support::has_program("dmtracedump") {
        return support::skip("dmtracedump", "no dmtracedump on PATH (Debian package dmtracedump)");
    }
    let mut files = 0;
    let mut values = 0;
    for entry in std::fs::read_dir(corpus.join("method-trace")).unwrap() {
        let path = entry.unwrap().path();
        // Its records are no records: the old tool prints empty tables for it, we say what is wrong and exit
        // with 3.
        if path.ends_with("tadfisher__platform_tools_base__header.trace") {
            continue;
        }
        let Some(profile) = compare(&path, &[]) else { continue };
        files += 1;
        values += profile + compare(&path, &["-o"]).unwrap_or(0);
    }
    println!("{files} files: {values} values equal");
    assert!(files >= 8 && values > 100_000, "{files} files, {values} values");
}

#[test]
fn a_streaming_file_and_its_gzip_twin_print_the_same() {
    let Some(corpus) = support::corpus() else { return };
    for name in [
        "firefox-devtools__profiler__art-trace-streaming.trace",
        "firefox-devtools__profiler__art-trace-regular.trace",
    ] {
        let path = corpus.join("method-trace").join(name);
        let plain = output(support::tracebridge().arg("dmtracedump").arg(&path)).unwrap();
        let gzip =
            output(support::tracebridge().arg("dmtracedump").arg(path.with_extension("trace.gz"))).unwrap();
        assert!(plain.len() > 100_000 && plain == gzip, "{name}");
    }
}

fn printed(trace: &Path, form: PrintForm, width: Option<usize>, tree: Option<TreeDirection>) -> String {
    let request = ProfileRequest {
        traces: vec![trace.to_owned()],
        rows: RowRequest { limit: tree.is_none().then_some(0), ..RowRequest::default() },
        style: TextStyle { width, colour: false },
        form,
        tree,
        ..ProfileRequest::default()
    };
    let mut results = Vec::new();
    let mut output = ProfileOutput { results: &mut results, message: &mut |_, _| {} };
    profile::run(&request, &mut output).unwrap();
    String::from_utf8(results).unwrap()
}

/// The own name of the method that JSON calls `name`: `wait` of `java.lang.Object.wait (JI)V`. A name that is
/// itself wider than the terminal is cut.
fn own_name(name: &str, width: Option<usize>) -> String {
    let own = if name.starts_with('(') {
        name
    } else {
        name.split(' ').next().unwrap().rsplit('.').next().unwrap()
    };
    let cut = width.filter(|width| own.chars().count() > *width).map_or(usize::MAX, |width| width - 1);
    own.chars().take(cut).collect()
}

#[test]
fn each_row_of_each_trace_has_the_own_name_of_its_method_at_each_width() {
    let Some(corpus) = support::corpus() else { return };
    let mut traces = 0;
    let mut rows_seen = 0;
    for entry in std::fs::read_dir(corpus.join("method-trace")).unwrap() {
        let path = entry.unwrap().path();
        assert!(MethodTrace::parse(&bytes(&path)).is_ok(), "{}", path.display());
        let json: serde_json::Value =
            serde_json::from_str(&printed(&path, PrintForm::Json, None, None)).unwrap();
        let rows = json["rows"].as_array().unwrap();
        for width in [Some(40), Some(80), Some(100), Some(120), Some(200), None] {
            let text = printed(&path, PrintForm::Text, width, None);
            let mut lines = text.lines().skip_while(|line| !line.ends_with("  method")).skip(1);
            for row in rows {
                let name = row["name"].as_str().unwrap();
                let own = own_name(name, width);
                let line =
                    lines.next().unwrap_or_else(|| panic!("{} {width:?}: no row {name}", path.display()));
                // A name that does not fit beside the figures has the next line for itself.
                let is_here = line.contains(&own)
                    || width.is_some() && lines.next().is_some_and(|line| line.contains(&own));
                assert!(is_here, "{} {width:?}: {name} is not in {line}", path.display());
                rows_seen += 1;
            }
            assert_eq!(lines.next(), None, "{} {width:?}", path.display());
            for direction in [TreeDirection::TopDown, TreeDirection::BottomUp] {
                let tree = printed(&path, PrintForm::Text, width, Some(direction));
                for line in text.lines().chain(tree.lines()) {
                    assert!(
                        line.chars().count() <= width.unwrap_or(usize::MAX),
                        "{} {width:?}: {line}",
                        path.display()
                    );
                }
            }
        }
        traces += 1;
    }
    println!("{traces} traces, {rows_seen} rows");
    assert!(traces >= 12 && rows_seen > 50_000, "{traces} traces, {rows_seen} rows");
}

/// The most pixels that a picture is wide without an option: more cannot be read on a screen.
const MAX_WIDTH: u32 = 4_000;

#[test]
fn the_call_graph_of_every_trace_fits_a_screen() {
    let Some(corpus) = support::corpus() else { return };
    if !support::has_program("dot") {
        return support::skip("dot", "no dot on PATH (package graphviz)");
    }
    let mut widths = Vec::new();
    for entry in std::fs::read_dir(corpus.join("method-trace")).unwrap() {
        let path = entry.unwrap().path();
        for options in [&[][..], &["--clock", "wall"], &["--threshold", "0.5"]] {
            let mut draw = support::tracebridge();
            draw.arg("profile").arg(&path).args(["--png", "-"]).args(options);
            let out = draw.output().unwrap();
            let said = String::from_utf8_lossy(&out.stderr);
            let is_empty = said.trim_end().ends_with(": the trace has no records");
            if out.status.code() == Some(1) && (said.contains("has no such clock") || is_empty) {
                assert!(out.stdout.is_empty(), "{}", path.display());
                continue;
            }
            assert!(matches!(out.status.code(), Some(0 | 3)), "{}: {said}", path.display());
            // A PNG file has its width behind its signature and the start of its first part.
            let width = u32::from_be_bytes(out.stdout[16..20].try_into().unwrap());
            assert!((100..=MAX_WIDTH).contains(&width), "{} {options:?}: {width}", path.display());
            widths.push(width);
        }
    }
    println!("{} pictures, widths {widths:?}", widths.len());
    assert!(widths.len() > 20);
}
