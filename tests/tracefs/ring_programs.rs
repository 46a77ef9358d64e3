//! Programs with a ring: one in C, two at once, of other users, with more threads than a ring has blocks, and
//! that become another program; and the reference app, whose method trace shows how good the times are.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Duration;
use support::{Command, until, write_program};

use nix::time::{ClockId, clock_gettime};

use crate::c_programs::CTarget;
use crate::ring::{
    Load, check_program, markers, open_rings, ring_load, start_recorder, stop, wait_until_no_ring_is_read,
};
use crate::tracefs_fixture::{Lines, machine};
use support::tracebridge;

const PROGRAM_IN_C: &str = r#"
#define ATRACE_TAG ATRACE_TAG_ALWAYS
#include <tracebridge.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
    if (!tracebridge_use_ring(false)) return 2;
    while (!tracebridge_instant(ATRACE_TAG_ALWAYS, "ready")) usleep(1000);
    ATRACE_BEGIN("draw|it");
    ATRACE_INT64("bytes", -5);
    ATRACE_ASYNC_BEGIN("load", 7);
    ATRACE_ASYNC_FOR_TRACK_BEGIN("net", "GET /", 3);
    ATRACE_ASYNC_FOR_TRACK_END("net", 3);
    ATRACE_INSTANT_FOR_TRACK("net", "retry");
    ATRACE_ASYNC_END("load", 7);
    ATRACE_END();
    printf("%d\n", (int)getpid());
    return 0;
}
"#;

/// Records the program, and compares its markers: their texts, and that their times lie within its life.
fn check_program_in_c(target: &CTarget) {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let source = dir.path().join("ring.c");
    fs::write(&source, PROGRAM_IN_C).unwrap();
    let program = target.compile(&source);
    let recorder = start_recorder(&machine, dir.path(), &[]);
    let now_ns = || Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap()).as_nanos() as u64;
    let start = now_ns();
    let mut child = target.command(&program).stdout(Stdio::piped()).spawn().unwrap();
    let line = Lines::new(&mut child).next();
    assert!(child.wait().unwrap().success());
    let end = now_ns();
    stop(recorder);
    let pid: i32 = line.trim().parse().unwrap();
    let found = markers(&dir.path().join("x.dat"));
    let found: Vec<_> = found.iter().filter(|(_, tid, _)| *tid == pid).collect();
    let texts: Vec<&str> = found.iter().map(|(.., text)| text.as_str()).collect();
    let expected = "I|P|ready B|P|draw it C|P|bytes|-5 S|P|load|7 G|P|net|GET /|3 H|P|net|3 N|P|net|retry F|P|load|7 E|P";
    assert_eq!(texts.join(" "), expected.replace("|P", &format!("|{pid}")), "{}", target.abi);
    for (ns, ..) in found {
        assert!((start..=end).contains(ns), "{}: {ns} is not in {start}..{end}", target.abi);
    }
}

#[test]
fn ring_of_a_program_in_c_has_every_kind_of_marker() {
    let Some(target) = CTarget::host() else { return };
    check_program_in_c(&target);
}

/// 32-bit Arm cannot read the CPU's counter: its markers have another clock. The counter of emulated 64-bit
/// Arm is not this machine's.
#[test]
fn ring_of_a_program_in_c_is_read_on_each_abi() {
    let is_real = |target: &CTarget| target.abi != "arm64-v8a" || cfg!(target_arch = "aarch64");
    CTarget::android().iter().filter(|target| is_real(target)).for_each(check_program_in_c);
}

#[test]
fn ring_markers_prove_where_a_method_trace_lies() {
    let program = support::example("reference_app");
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let recorder = start_recorder(&machine, dir.path(), &[]);
    let trace = dir.path().join("app.trace");
    let mut app = Command::new(program);
    app.args(["--ring", "--threads", "4", "--calls", "600", "--pause", "2000", "-o"]).arg(&trace);
    app.run().exited(0);
    stop(recorder);
    let mut merge = tracebridge();
    merge.args(["merge", "--json"]).arg(dir.path().join("x.dat")).arg(&trace);
    let out = merge.arg("-o").arg(dir.path().join("x.json")).run();
    let summary = out.json();
    let trace = &summary["outcome"]["inputs"][1];
    assert_eq!(trace["verdict"], "proven", "{trace}");
    // On an idle machine it is 1 µs: the method trace has times in whole µs. A busy machine interrupts the
    // app between a marker and its call, but a call of another thread or another round would be farther away
    // than this: one hundredth of the pause between two calls.
    let median = trace["residual_median_ns"].as_u64().unwrap();
    assert!(median <= 20_000, "median {median} ns");
}

#[test]
fn ring_markers_of_two_programs_at_once_are_those_of_each() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let args = ["--threads", "3", "--markers", "5000", "--burst", "100"];
    let children = [Load::start(&args), Load::start(&args)];
    let recorder = start_recorder(&machine, dir.path(), &[]);
    let loads = children.map(Load::heard).map(|load| (load.pid, load.counts()));
    let summary = stop(recorder).json();
    let programs = summary["rings"]["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 2, "{summary}");
    let markers = markers(&dir.path().join("x.dat"));
    for (pid, counts) in loads {
        let program = programs.iter().find(|program| program["pid"] == pid).unwrap();
        check_program(program, &counts, &markers, pid);
    }
}

#[test]
fn ring_markers_of_more_threads_than_there_are_blocks_are_dropped_and_counted() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let child = Load::start(&["--threads", "300", "--markers", "10", "--together"]);
    let recorder = start_recorder(&machine, dir.path(), &[]);
    let load = Load::heard(child);
    let pid = load.pid;
    let counts = load.counts();
    let out = stop(recorder);
    let summary = out.json();
    // The main thread has one of the 256 blocks.
    let heard = counts.iter().filter(|count| count.written == 10 && count.dropped == 0).count();
    assert_eq!((heard, counts.iter().filter(|count| count.written == 0).count()), (255, 45));
    let program = &summary["rings"]["programs"][0];
    assert_eq!((&program["without_block"], &program["dropped"]), (&450.into(), &450.into()), "{program}");
    assert_eq!(out.code(), Some(3), "{summary}");
    check_program(program, &counts, &markers(&dir.path().join("x.dat")), pid);
}

#[test]
fn ring_is_gone_after_exec_and_the_next_program_of_the_process_has_its_own() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let next = ring_load();
    let next = format!("read line; exec '{}' --threads 2 --markers 200", next.get_program().display());
    let mut first = ring_load();
    first.args(["--threads", "2", "--markers", "300", "--", "sh", "-c", &next]);
    let first = first.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let recorder = start_recorder(&machine, dir.path(), &[]);
    let mut load = Load::heard(first);
    let pid = load.pid;
    let first_counts = load.written();
    let comm = format!("/proc/{pid}/comm");
    until("the program to become the shell", || fs::read_to_string(&comm).unwrap().trim() == "sh");
    assert_eq!(open_rings(pid as u32), 0, "the shell has inherited the ring");
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    assert!(!maps.contains("tracebridge-ring"), "{maps}");
    wait_until_no_ring_is_read(&recorder);
    load.child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert_eq!(load.ready(), pid);
    let second_counts = load.counts();
    let summary = stop(recorder).json();
    let programs = summary["rings"]["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 2, "{summary}");
    let markers = markers(&dir.path().join("x.dat"));
    for (program, counts) in programs.iter().zip([first_counts, second_counts]) {
        assert_eq!(program["pid"], pid);
        check_program(program, &counts, &markers, pid);
    }
}

/// User ids that own nothing on this machine.
const PROGRAM_USER: u32 = 10_201;
const OTHER_USER: u32 = 10_202;

#[test]
fn ring_of_another_user_is_refused_and_one_of_the_programs_own_user_is_read() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    // A program of one user with the ring of another one: by a descriptor that it was handed, say.
    let python = "
import fcntl, os, sys
user, other, size = map(int, sys.argv[1:])
os.seteuid(other)
fd = os.memfd_create('tracebridge-ring', os.MFD_ALLOW_SEALING)
os.ftruncate(fd, size)
fcntl.fcntl(fd, 1033, 7)
os.seteuid(0)
os.setresuid(user, user, user)
print('ready', flush=True)
sys.stdin.read()
";
    let mut foreign = Command::new("python3");
    foreign.args(["-c", python]).args([PROGRAM_USER, OTHER_USER].map(|user| user.to_string()));
    let mut foreign = foreign.arg("33591296").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(Lines::new(&mut foreign).next(), "ready");
    // Where any user may run it.
    let place = support::tempdir();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = place.path().join("ring_load");
    write_program(&program, fs::read(ring_load().get_program()).unwrap());
    let mut own = Command::new(&program);
    own.args(["--threads", "1", "--markers", "100"]).uid(PROGRAM_USER).gid(PROGRAM_USER);
    let own = own.stdout(Stdio::piped()).spawn().unwrap();
    let recorder = start_recorder(&machine, dir.path(), &[]);
    let load = Load::heard(own);
    let pid = load.pid;
    let counts = load.counts();
    let out = stop(recorder);
    drop(foreign.stdin.take());
    let refused_pid = foreign.id();
    foreign.wait().unwrap();
    let summary = out.json();
    let refused: Vec<&str> = summary["rings"]["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(|reason| reason.as_str().unwrap())
        .collect();
    let start = format!(
        "process {refused_pid}: it belongs to user {OTHER_USER}, and the program runs as user {PROGRAM_USER}"
    );
    assert!(refused.len() == 1 && refused[0].starts_with(&start), "{refused:?}");
    check_program(&summary["rings"]["programs"][0], &counts, &markers(&dir.path().join("x.dat")), pid);
    assert_eq!(summary["rings"]["programs"].as_array().unwrap().len(), 1);
}
