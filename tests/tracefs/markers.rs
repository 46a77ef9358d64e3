//! The marker library, from Rust and from C: what it writes is read back from the kernel's trace.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tracebridge::markers::{Marker, Tracer};

use crate::c_programs::{CTarget, c_library, root, run};
use crate::marker_table::{Call, table};
use crate::support::{has_program, skip};
use crate::tracefs_fixture::{Machine, machine};

/// A trace buffer of the test's own, removed on drop.
struct Instance(PathBuf);

impl Instance {
    fn new(machine: &Machine, name: &str) -> Instance {
        let instance = Instance(machine.root.join("instances").join(name));
        let _ = fs::remove_dir(&instance.0);
        fs::create_dir(&instance.0).unwrap();
        instance
    }

    /// The bytes of all markers, oldest first. No marker of the library has a line feed.
    fn markers(&self) -> Vec<Vec<u8>> {
        const LABEL: &[u8] = b": tracing_mark_write: ";
        let text = fs::read(self.0.join("trace")).unwrap();
        let lines = text.split(|byte| *byte == b'\n');
        let marker = |line: &[u8]| {
            let at = line.windows(LABEL.len()).position(|part| part == LABEL)?;
            Some(line[at + LABEL.len()..].to_vec())
        };
        lines.filter_map(marker).collect()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Compares the markers in the trace with the table.
fn check(instance: &Instance, pid: u32) {
    let rows = table(pid);
    assert!(rows.len() >= 60, "{} rows", rows.len());
    let found = instance.markers();
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
    output: BufReader<std::process::ChildStdout>,
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
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let pid = number(&mut output);
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
        number(&mut self.output)
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

fn number(output: &mut impl BufRead) -> u32 {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line.trim().parse().unwrap()
}

fn instant(name: &str) -> Call {
    Call::Instant(name.into())
}

#[test]
fn every_call_from_rust_writes_what_libcutils_writes() {
    let Some(machine) = machine() else { return };
    let instance = Instance::new(&machine, "tb-markers-rust");
    let tracer = Tracer::open_at(&instance.0.join("trace_marker")).unwrap();
    let pid = std::process::id();
    for row in table(pid) {
        assert!(row.call.make(&tracer), "{:?}", row.call);
    }
    check(&instance, pid);
    fs::write(instance.0.join("tracing_on"), "0").unwrap();
    assert!(!tracer.instant("while tracing is off"));
    drop(tracer);
}

#[test]
fn every_call_from_c_writes_what_libcutils_writes() {
    let Some(program) = c_program() else { return };
    let Some(machine) = machine() else { return };
    let instance = Instance::new(&machine, "tb-markers-c");
    let mut caller = Caller::start(&program, &instance.0, "view");
    let pid = caller.pid;
    caller.make(&table(pid).into_iter().map(|row| row.call).collect::<Vec<_>>());
    caller.end();
    check(&instance, pid);
}

#[test]
fn every_call_from_c_writes_the_same_on_each_abi() {
    let targets = CTarget::android();
    let Some(machine) = machine() else { return };
    for target in targets {
        let program = target.compile(&marker_calls());
        let instance = Instance::new(&machine, "tb-markers-abi");
        let mut caller = Caller::start_as(target.command(&program), &instance.0, "view");
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
    let Some(machine) = machine() else { return };
    let instance = Instance::new(&machine, "tb-markers-tags");
    for (tags, written) in [("gfx", 0), ("", 0), ("gfx,view", 1), ("all", 1), ("0x8", 1)] {
        let before = instance.markers().len();
        let mut caller = Caller::start(&program, &instance.0, tags);
        caller.make(&[instant("now")]);
        caller.end();
        assert_eq!(instance.markers().len() - before, written, "TRACEBRIDGE_TAGS={tags:?}");
    }
}

#[test]
fn the_child_of_a_fork_writes_under_its_own_process_id() {
    let Some(program) = c_program() else { return };
    let Some(machine) = machine() else { return };
    let instance = Instance::new(&machine, "tb-markers-fork");
    let mut caller = Caller::start(&program, &instance.0, "view");
    let parent = caller.pid;
    caller.make(&[instant("before")]);
    let child = caller.fork("in the child");
    caller.make(&[instant("after")]);
    caller.end();
    let found: Vec<String> =
        instance.markers().into_iter().map(|bytes| String::from_utf8(bytes).unwrap()).collect();
    let expected =
        [format!("I|{parent}|before"), format!("I|{child}|in the child"), format!("I|{parent}|after")];
    assert_eq!(found, expected);
}

#[test]
fn a_program_that_runs_before_tracefs_is_there_is_heard_later() {
    let Some(program) = c_program() else { return };
    let Some(machine) = machine() else { return };
    let place = machine.root.join("instances/tb-markers-late");
    let _ = fs::remove_dir(&place);
    let mut caller = Caller::start(&program, &place, "view");
    caller.make(&[instant("too early")]);
    // The child's answer says that the call before it was made.
    caller.fork("too early as well");
    let instance = Instance::new(&machine, "tb-markers-late");
    // The library tries again a second after it failed.
    std::thread::sleep(Duration::from_millis(1100));
    caller.make(&[instant("heard")]);
    let pid = caller.pid;
    caller.end();
    assert_eq!(instance.markers(), [format!("I|{pid}|heard").into_bytes()]);
}

/// Runs the two examples in `dir`, and checks what they wrote.
fn check_examples(machine: &Machine, dir: &Path) {
    let expected = [
        (
            "example-c",
            "B|frames B|draw C|frame|0 E B|draw C|frame|1 E B|draw C|frame|2 E E \
                       G|network|GET /|7 N|network|retry H|network|7",
        ),
        ("example-cc", "B|load B|parse E E I|caught S|download|1 F|download|1"),
    ];
    for (program, expected) in expected {
        let instance = Instance::new(machine, "tb-markers-example");
        let mut command = Command::new(dir.join(program));
        run(command.env("TRACEBRIDGE_TRACEFS", &instance.0).env("TRACEBRIDGE_TAGS", "app,gfx,view"));
        let found = instance.markers().into_iter().map(|bytes| {
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
    let Some(machine) = machine() else { return };
    if !has_program("make") || !has_program("c++") {
        return skip("make", "no make or no compiler of C++");
    }
    let dir = tempfile::tempdir().unwrap();
    let mut make = Command::new("make");
    make.arg("-C").arg(root().join("examples/c")).arg(format!("OUT={}", dir.path().display()));
    run(make
        .arg(format!("MARKERS={}", library.display()))
        .env("CXXFLAGS", "-std=c++11 -Wall -Wextra -Werror"));
    check_examples(&machine, dir.path());
}

#[test]
fn the_examples_build_with_cmake_and_write_their_markers() {
    let Some(library) = c_library() else { return };
    let Some(machine) = machine() else { return };
    if !has_program("cmake") || !has_program("c++") {
        return skip("cmake", "no cmake or no compiler of C++");
    }
    let dir = tempfile::tempdir().unwrap();
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(root().join("examples/c")).arg("-B").arg(dir.path());
    run(configure.arg(format!("-DMARKERS={}", library.display())));
    run(Command::new("cmake").arg("--build").arg(dir.path()));
    check_examples(&machine, dir.path());
}
