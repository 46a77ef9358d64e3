//! The marker library, from Rust, from C and through `tracing-subscriber`: what it writes is read back from
//! the kernel's trace.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use support::{Child, Command, has_program, skip, tracebridge, until};
use tracebridge::markers::{Marker, Tracer};

use crate::c_programs::{CTarget, c_library, root, run};
use crate::marker_table::{Call, table};
use crate::tracefs_fixture::{Instance, Lines, machine};
use crate::wrap::command;

/// The bytes of all markers in an instance, oldest first. No marker of the library has a line feed.
fn markers(instance: &Instance) -> Vec<Vec<u8>> {
    const LABEL: &[u8] = b": tracing_mark_write: ";
    let text = fs::read(instance.dir().join("trace")).unwrap();
    let lines = text.split(|byte| *byte == b'\n');
    let marker = |line: &[u8]| {
        let at = line.windows(LABEL.len()).position(|part| part == LABEL)?;
        Some(line[at + LABEL.len()..].to_vec())
    };
    lines.filter_map(marker).collect()
}

/// Compares the markers in the trace with the table.
fn check(instance: &Instance, pid: u32) {
    let rows = table(pid);
    assert!(rows.len() >= 60, "{} rows", rows.len());
    let found = markers(instance);
    assert_eq!(found.len(), rows.len());
    for (row, found) in rows.iter().zip(&found) {
        let shown = |bytes: &[u8]| bytes.escape_ascii().to_string();
        assert_eq!(shown(found), shown(&row.expected), "{:?}", row.call);
        if row.is_whole {
            assert_eq!(Marker::parse(found), Some(row.call.marker(pid as i32)), "{:?}", row.call);
        }
    }
}

/// A running `marker_calls`, which makes the calls that it is told.
struct Caller {
    child: Child,
    pid: u32,
    output: Lines,
}

/// Compiles `marker_calls.c` for this machine. `None` without a compiler of C.
fn c_program() -> Option<tempfile::TempPath> {
    Some(CTarget::host()?.compile(&marker_calls()))
}

fn marker_calls() -> PathBuf {
    root().join("tests/support/marker_calls.c")
}

impl Caller {
    fn start(program: &Path, tracefs: &Path, tags: &str) -> Caller {
        Caller::start_as(Command::new(program), tracefs, tags)
    }

    fn start_as(mut command: Command, tracefs: &Path, tags: &str) -> Caller {
        command.env("TRACEBRIDGE_TRACEFS", tracefs).env("TRACEBRIDGE_TAGS", tags);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = Lines::new(&mut child);
        let pid = number(&output);
        Caller { child, pid, output }
    }

    fn make(&mut self, calls: &[Call]) {
        let lines: String = calls.iter().map(|call| call.line() + "\n").collect();
        self.child.stdin.as_mut().unwrap().write_all(lines.as_bytes()).unwrap();
    }

    /// Tells the program to fork. The child makes this call, and ends. Returns the child's process id.
    fn fork(&mut self, name: &str) -> u32 {
        let digits: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
        writeln!(self.child.stdin.as_mut().unwrap(), "fork {digits}").unwrap();
        number(&self.output)
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

fn number(output: &Lines) -> u32 {
    output.next().trim().parse().unwrap()
}

fn instant(name: &str) -> Call {
    Call::Instant(name.into())
}

#[test]
fn every_call_from_rust_writes_what_libcutils_writes() {
    let Some(instance) = Instance::new("markers-rust") else { return };
    let tracer = Tracer::open_at(&instance.dir().join("trace_marker")).unwrap();
    let pid = std::process::id();
    for row in table(pid) {
        assert!(row.call.make(&tracer), "{:?}", row.call);
    }
    check(&instance, pid);
    fs::write(instance.dir().join("tracing_on"), "0").unwrap();
    assert!(!tracer.instant("while tracing is off"));
    drop(tracer);
}

#[test]
fn every_call_from_c_writes_what_libcutils_writes() {
    let Some(program) = c_program() else { return };
    let Some(instance) = Instance::new("markers-c") else { return };
    let mut caller = Caller::start(&program, instance.dir(), "view");
    let pid = caller.pid;
    caller.make(&table(pid).into_iter().map(|row| row.call).collect::<Vec<_>>());
    caller.end();
    check(&instance, pid);
}

#[test]
fn every_call_from_c_writes_the_same_on_each_abi() {
    for target in CTarget::android() {
        let program = target.compile(&marker_calls());
        let Some(instance) = Instance::new(&format!("markers-{}", target.abi)) else { return };
        let mut caller = Caller::start_as(target.command(&program), instance.dir(), "view");
        let pid = caller.pid;
        caller.make(&table(pid).into_iter().map(|row| row.call).collect::<Vec<_>>());
        caller.end();
        check(&instance, pid);
        eprintln!("{}: {} calls", target.abi, table(pid).len());
    }
}

#[test]
fn markers_need_their_tag() {
    let Some(program) = c_program() else { return };
    let Some(instance) = Instance::new("markers-tags") else { return };
    for (tags, written) in [("gfx", 0), ("", 0), ("gfx,view", 1), ("all", 1), ("0x8", 1)] {
        let before = markers(&instance).len();
        let mut caller = Caller::start(&program, instance.dir(), tags);
        caller.make(&[instant("now")]);
        caller.end();
        assert_eq!(markers(&instance).len() - before, written, "TRACEBRIDGE_TAGS={tags:?}");
    }
}

#[test]
fn the_child_of_a_fork_writes_under_its_own_process_id() {
    let Some(program) = c_program() else { return };
    let Some(instance) = Instance::new("markers-fork") else { return };
    let mut caller = Caller::start(&program, instance.dir(), "view");
    let parent = caller.pid;
    caller.make(&[instant("before")]);
    let child = caller.fork("in the child");
    caller.make(&[instant("after")]);
    caller.end();
    let found: Vec<String> =
        markers(&instance).into_iter().map(|bytes| String::from_utf8(bytes).unwrap()).collect();
    let expected =
        [format!("I|{parent}|before"), format!("I|{child}|in the child"), format!("I|{parent}|after")];
    assert_eq!(found, expected);
}

#[test]
fn a_program_that_runs_before_tracefs_is_there_is_heard_later() {
    let Some(program) = c_program() else { return };
    let Some(instance) = Instance::planned("markers-late") else { return };
    let mut caller = Caller::start(&program, instance.dir(), "view");
    caller.make(&[instant("too early")]);
    // The child's answer says that the call before it was made.
    caller.fork("too early as well");
    instance.make();
    // The library tries again a second after it failed.
    until("a marker", || {
        caller.make(&[instant("heard")]);
        !markers(&instance).is_empty()
    });
    let heard = format!("I|{}|heard", caller.pid).into_bytes();
    caller.end();
    assert!(markers(&instance).iter().all(|marker| *marker == heard), "{:?}", markers(&instance));
}

/// Runs the two examples in `dir`, and checks what they wrote.
fn check_examples(dir: &Path) {
    let expected = [
        (
            "example-c",
            "B|frames B|draw C|frame|0 E B|draw C|frame|1 E B|draw C|frame|2 E E \
                       G|network|GET /|7 N|network|retry H|network|7",
        ),
        ("example-cc", "B|load B|parse E E I|caught S|download|1 F|download|1"),
    ];
    for (program, expected) in expected {
        let Some(instance) = Instance::new(program) else { return };
        let mut command = Command::new(dir.join(program));
        run(command.env("TRACEBRIDGE_TRACEFS", instance.dir()).env("TRACEBRIDGE_TAGS", "app,gfx,view"));
        let found = markers(&instance).into_iter().map(|bytes| {
            let text = String::from_utf8(bytes).unwrap();
            let mut fields: Vec<&str> = text.split('|').collect();
            fields.remove(1);
            fields.join("|")
        });
        assert_eq!(found.collect::<Vec<_>>().join(" "), expected, "{program}");
    }
}

#[test]
fn the_examples_build_with_make_and_write_their_markers() {
    let Some(library) = c_library() else { return };
    if !has_program("make") || !has_program("c++") {
        return skip("make", "no make or no compiler of C++");
    }
    let dir = support::tempdir();
    let mut make = Command::new("make");
    make.arg("-C").arg(root().join("examples/c")).arg(format!("OUT={}", dir.path().display()));
    run(make
        .arg(format!("MARKERS={}", library.display()))
        .env("CXXFLAGS", "-std=c++11 -Wall -Wextra -Werror"));
    check_examples(dir.path());
}

#[test]
fn the_examples_build_with_cmake_and_write_their_markers() {
    let Some(library) = c_library() else { return };
    if !has_program("cmake") || !has_program("c++") {
        return skip("cmake", "no cmake or no compiler of C++");
    }
    let dir = support::tempdir();
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(root().join("examples/c")).arg("-B").arg(dir.path());
    run(configure.arg(format!("-DMARKERS={}", library.display())));
    run(Command::new("cmake").arg("--build").arg(dir.path()));
    check_examples(dir.path());
}

/// Thread id and text of each marker of a trace, in order of time.
fn threads_and_markers(trace: &Path) -> Vec<(u32, String)> {
    let out = tracebridge().args(["convert", "--format", "systrace", "-o", "-"]).arg(trace).run().exited(0);
    let text = &out.stdout;
    let marker = |line: &str| {
        let (head, marker) = line.split_once(": tracing_mark_write: ")?;
        let tid = head.split_once(" (")?.0.rsplit_once('-')?.1.trim().parse().ok()?;
        Some((tid, marker.trim().to_owned()))
    };
    text.lines().filter_map(marker).collect()
}

#[test]
fn spans_come_out_balanced_in_the_merged_trace() {
    let program = support::example("tracing_spans");
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let capture = dir.path().join("x.dat");
    let trace = dir.path().join("x.pftrace");
    let mut wrap = command(&machine, dir.path(), "wrap");
    wrap.env("TRACEBRIDGE_TRACEFS", &machine.root).env("TRACEBRIDGE_TAGS", "app");
    wrap.arg("-o").arg(&capture).args(["sched", "--"]).arg(program).run().exited(0);
    tracebridge().arg("merge").arg(&capture).arg("-o").arg(&trace).run().exited(0);

    let all = threads_and_markers(&trace);
    // `wrap` writes markers of its own, around the program.
    let pid =
        all.iter().find_map(|(_, text)| Some(text.strip_suffix("|done")?.strip_prefix("I|")?.to_owned()));
    let pid = pid.unwrap_or_else(|| panic!("no end in {all:?}"));
    let own: Vec<(u32, Vec<&str>)> = all
        .iter()
        .map(|(tid, text)| (*tid, text.split('|').collect::<Vec<_>>()))
        .filter(|(_, f)| f[1] == pid)
        .collect();
    let mut stacks = BTreeMap::<u32, Vec<&str>>::new();
    let mut asyncs = BTreeMap::<(&str, &str), i32>::new();
    let mut slices = BTreeMap::<&str, u32>::new();
    let mut counters = Vec::new();
    for (tid, fields) in &own {
        match fields[..] {
            ["B", _, name] => {
                stacks.entry(*tid).or_default().push(name);
                *slices.entry(name).or_default() += 1;
            }
            ["E", _] => assert!(stacks.entry(*tid).or_default().pop().is_some(), "{own:?}"),
            ["S", _, name, cookie] => *asyncs.entry((name, cookie)).or_default() += 1,
            ["F", _, name, cookie] => {
                let open = asyncs.entry((name, cookie)).or_default();
                *open -= 1;
                assert_eq!(*open, 0, "{name} ends without a begin: {own:?}");
            }
            ["C", _, name, value] => counters.push((name, value)),
            ["I", _, _] => {}
            _ => panic!("{fields:?}"),
        }
    }
    assert!(stacks.values().all(Vec::is_empty), "open slices: {stacks:?}");
    assert!(asyncs.values().all(|open| *open == 0), "open async slices: {asyncs:?}");
    for (name, count) in [("nested(depth=3)", 1), ("nested(depth=0)", 1), ("panics", 1)] {
        assert_eq!(slices.get(name), Some(&count), "{slices:?}");
    }
    // Polls, and the drop of the future inside of its span.
    for name in ["fetch(id=0)", "fetch(id=1)", "fetch(id=9)", "connect"] {
        assert!(slices.get(name).is_some_and(|count| *count >= 3), "{name}: {slices:?}");
    }
    for name in ["fetch(id=0)", "fetch(id=1)", "fetch(id=9)"] {
        assert!(asyncs.keys().any(|(async_name, _)| *async_name == name), "{name}: {asyncs:?}");
    }
    assert_eq!(counters, [("bytes", "0"), ("bytes", "100")]);
}
