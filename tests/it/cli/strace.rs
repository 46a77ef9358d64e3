//! The output of strace as an input: calls are slices on their threads, signals and exits are instants, and
//! what the text does not tell is said.

use std::fs;
use std::path::Path;

use support::python::{PERFETTO, python_with};
use support::{Command, Ran, run_in};

/// A shell and its child, as `strace -f -ttt -T` prints them on a terminal.
pub(super) const BRACKETS: &str = r#"[pid    90] 1787000451.075961 execve("/bin/sh", ["sh", "-c", "nap"], 0xffc6 /* 4 vars */) = 0 <0.001261>
strace: Process 91 attached
[pid    91] 1787000451.084425 execve("/usr/bin/nap", ["nap", "a) = b"], 0xaaaa /* 4 vars */ <unfinished ...>
[pid    90] 1787000451.084774 wait4(-1,  <unfinished ...>
[pid    91] 1787000451.084796 <... execve resumed>) = 0 <0.000328>
[pid    91] 1787000451.088553 clock_nanosleep(CLOCK_REALTIME, 0, {tv_sec=0, tv_nsec=300000001}, 0xd40e) = 0 <0.305284>
[pid    91] 1787000451.395296 +++ exited with 0 +++
[pid    90] 1787000451.395359 <... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 91 <0.310566>
[pid    90] 1787000451.395906 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=91} ---
[pid    90] 1787000451.396054 wait4(-1, 0xffc2, WNOHANG, NULL) = -1 ECHILD (No child processes) <0.000027>
"#;

fn with(text: &[u8], args: &[&str]) -> (tempfile::TempDir, Ran) {
    let dir = support::tempdir();
    fs::write(dir.path().join("calls.strace"), text).unwrap();
    let ran = run_in(dir.path(), args);
    (dir, ran)
}

/// The rows of the CSV of a text: kind, time, length, process, thread, name and details.
fn rows(text: &[u8]) -> Vec<String> {
    let (dir, ran) = with(text, &["convert", "calls.strace", "-o", "calls.csv"]);
    ran.exited(0);
    let csv = fs::read_to_string(dir.path().join("calls.csv")).unwrap();
    let of_interest =
        |line: &&str| ["slice,", "instant,", "thread,"].iter().any(|kind| line.starts_with(kind));
    csv.lines().filter(of_interest).map(|line| line.trim_end_matches(',').to_owned()).collect()
}

/// The run of `info` on a text.
fn said(text: &[u8]) -> Ran {
    with(text, &["info", "calls.strace"]).1
}

#[test]
fn calls_are_slices_of_their_threads_and_signals_and_exits_are_instants_of_the_process() {
    let want = [
        r#"slice,1787000451075961000,1261000,,90,90,0,execve,,,,,,"args: ""/bin/sh"", [""sh"", ""-c"", ""nap""], 0xffc6 /* 4 vars */; ret: 0""#,
        r#"slice,1787000451084425000,371000,,91,91,0,execve,,,,,,"args: ""/usr/bin/nap"", [""nap"", ""a) = b""], 0xaaaa /* 4 vars */; ret: 0""#,
        r#"slice,1787000451088553000,305284000,,91,91,0,clock_nanosleep,,,,,,"args: CLOCK_REALTIME, 0, {tv_sec=0, tv_nsec=300000001}, 0xd40e; ret: 0""#,
        "instant,1787000451395296000,,,91,,,exited with 0,,signals and exits,,,,tid: 91",
        r#"slice,1787000451084774000,310585000,,90,90,0,wait4,,,,,,"args: -1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL; ret: 91""#,
        r#"instant,1787000451395906000,,,90,,,SIGCHLD,,signals and exits,,,,"info: {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=91}; tid: 90""#,
        r#"slice,1787000451396054000,27000,,90,90,0,wait4,,,,,,"args: -1, 0xffc2, WNOHANG, NULL; ret: -1 ECHILD (No child processes)""#,
        "thread,0,,,90,90,,sh",
        "thread,0,,,91,91,,nap",
    ];
    assert_eq!(rows(BRACKETS.as_bytes()), want);
}

#[test]
fn a_perfetto_trace_has_the_slices_and_the_argument_names_of_perfettos_own_importer() {
    let Some(python) = python_with(PERFETTO) else { return };
    let (dir, ran) = with(BRACKETS.as_bytes(), &["convert", "calls.strace", "-o", "calls.pftrace"]);
    ran.exited(0);
    let script = format!(
        r#"
import sys
from {PERFETTO} import Trace
trace = Trace()
trace.ParseFromString(open(sys.argv[1], 'rb').read())
tracks, open_slices = {{}}, {{}}
for packet in trace.packet:
    d, e = packet.track_descriptor, packet.track_event
    if packet.HasField('track_descriptor'):
        tracks[d.uuid] = 'thread %d' % d.thread.tid if d.HasField('thread') else d.name
    elif packet.HasField('track_event'):
        args = ['%s=%s' % (a.name, a.string_value) for a in e.debug_annotations if a.name != 'args']
        names = [a.name for a in e.debug_annotations]
        if e.type == 1:
            open_slices[e.track_uuid] = (packet.timestamp, e.name, args, names)
        elif e.type == 2:
            ts, name, begun, had = open_slices.pop(e.track_uuid)
            print(ts, packet.timestamp - ts, name, tracks[e.track_uuid], *sorted(begun + args), *sorted(set(had + names)))
        else:
            print(packet.timestamp, 'instant', e.name, tracks[e.track_uuid])
"#
    );
    let out =
        Command::new(&python).args(["-c", &script]).arg(dir.path().join("calls.pftrace")).run().exited(0);
    let want = "1787000451075961000 1261000 execve thread 90 ret=0 args ret
1787000451084425000 371000 execve thread 91 ret=0 args ret
1787000451088553000 305284000 clock_nanosleep thread 91 ret=0 args ret
1787000451395296000 instant exited with 0 signals and exits
1787000451084774000 310585000 wait4 thread 90 ret=91 args ret
1787000451395906000 instant SIGCHLD signals and exits
1787000451396054000 27000 wait4 thread 90 ret=-1 ECHILD (No child processes) args ret
";
    assert_eq!(out.stdout, want);
}

#[test]
fn without_a_length_a_call_is_an_instant_and_that_is_said() {
    let text = b"7 1700000052.3 read(3, \"\", 1) = 0\n7 1700000052.5 close(3)                = 0\n";
    let rows = rows(text);
    assert!(rows[0].starts_with("instant,1700000052300000000,,,,7,,read"), "{rows:?}");
    let ran = said(text).exited(0);
    assert!(ran.said().contains("2 calls are instants at their begin: only `strace -T`"), "{ran}");
}

#[test]
fn times_of_day_go_on_behind_midnight_on_a_clock_of_their_own() {
    let text =
        b"7 23:59:59.900000 read(3, \"\", 1) = 0 <0.000001>\n7 00:00:00.100000 close(3) = 0 <0.000001>\n";
    let rows = rows(text);
    assert!(rows[0].starts_with("slice,86399900000000,1000,"), "{rows:?}");
    assert!(rows[1].starts_with("slice,86400100000000,1000,"), "{rows:?}");
    let ran = said(text).exited(0);
    assert!(ran.said().contains("times of day without a date"), "{ran}");
}

#[test]
fn a_call_that_goes_on_twice_is_two_slices_and_one_that_strace_left_is_told() {
    let text = b"7 1700000052.1 epoll_wait(4, <unfinished ...>\n8 1700000052.2 getpid() = 8 <0.000001>\n\
        7 1700000052.5 <... epoll_wait resumed> [], 8, 9 <unfinished ...>\n7 1700000052.9 <... epoll_wait resumed>) = 1\n\
        8 1700000053.0 futex(0x7, FUTEX_WAIT, 2, NULL <detached ...>\n";
    let rows = rows(text);
    let of_seven: Vec<&String> = rows.iter().filter(|row| row.contains(",epoll_wait,")).collect();
    assert!(of_seven[0].starts_with("slice,1700000052100000000,400000000,,,7,"), "{rows:?}");
    assert!(of_seven[1].starts_with("slice,1700000052500000000,400000000,,,7,"), "{rows:?}");
    let ran = said(text).exited(0);
    assert!(ran.said().contains("strace left 1 threads while they were in a call"), "{ran}");
}

#[test]
fn threads_are_of_the_process_that_made_them_and_have_its_name_until_they_have_their_own() {
    let text = b"7 1700000052.1 execve(\"/opt/worker\", [\"worker\"], 0x0) = 0 <0.1>\n\
        7 1700000052.3 clone3({flags=CLONE_VM|CLONE_THREAD, stack=0x7} <unfinished ...>\n\
        8 1700000052.4 prctl(PR_SET_NAME, \"pool-1\") = 0 <0.000002>\n\
        7 1700000052.5 <... clone3 resumed> => {parent_tid=[8]}, 88) = 8 <0.2>\n\
        7 1700000052.6 clone(child_stack=NULL, flags=SIGCHLD) = 9 <0.000005>\n9 1700000052.7 getppid() = 7 <0.000001>\n";
    let rows = rows(text);
    let threads: Vec<&String> = rows.iter().filter(|row| row.starts_with("thread,")).collect();
    assert_eq!(threads, ["thread,0,,,7,7,,worker", "thread,0,,,7,8,,pool-1", "thread,0,,,9,9,,worker"]);
}

#[test]
fn lines_of_other_programs_are_counted_and_a_broken_call_is_put_together() {
    let text = b"starting\n1700000052.1 set_tid_address(0x7f0) = 77 <0.000001>\n\
        1700000052.2 write(1, \"hi\\n\", 3hi\n)                  = 3 <0.000009>\n\
        1700000052.3 clone(flags=CLONE_VM|SIGCHLDstrace: Process 78 attached\n <unfinished ...>\n\
        [pid    78] 1700000052.4 getpid() = 78 <0.000001>\n[pid    77] 1700000052.5 <... clone resumed>) = 78 <0.2>\n";
    let rows = rows(text);
    assert!(rows.iter().any(|row| row.contains(",200000000,,77,77,0,clone,")), "{rows:?}");
    assert!(rows.iter().any(|row| row.contains(",9000,,77,77,0,write,")), "{rows:?}");
    let ran = said(text).exited(0);
    assert!(
        ran.said().contains("1 lines are not strace's and are left out, the first at byte 0: \"starting\""),
        "{ran}"
    );
    assert!(ran.said().contains("2 calls are on two lines"), "{ran}");
}

#[test]
fn a_text_without_times_is_refused_with_the_flags_that_give_them() {
    let ran = said(b"execve(\"/bin/true\", [\"true\"], 0x7) = 0\nbrk(NULL) = 0x55\n+++ exited with 0 +++\n")
        .exited(1);
    assert!(ran.stderr.contains("without times") && ran.stderr.contains("-ttt"), "{ran}");
}

#[test]
fn lines_that_are_not_in_order_are_sorted_and_long_arguments_are_cut() {
    let long = "x".repeat(5000);
    let text = format!(
        "8 1700000052.5 getpid() = 8 <0.000001>\n7 1700000052.1 write(1, \"{long}\", 5000) = 5000 <0.000001>\n"
    );
    let rows = rows(text.as_bytes());
    assert!(rows[0].contains(",write,") && rows[0].len() < 4300, "{rows:?}");
    let ran = said(text.as_bytes()).exited(0);
    assert!(ran.said().contains("the lines were not in order of time"), "{ran}");
    assert!(ran.said().contains("1 arguments are cut to 4096 bytes"), "{ran}");
}

#[test]
fn cuts_are_told_wherever_they_are_within_a_line() {
    let text = BRACKETS.as_bytes();
    let count = support::rounds(40, 200);
    let cuts: Vec<usize> = (1..=count).map(|number| text.len() * number / (count + 1)).collect();
    for at in cuts {
        let ran = said(&text[..at]);
        match text[at - 1] {
            b'\n' => _ = ran.exited(0),
            _ if !text[..at].contains(&b'\n') => assert!(matches!(ran.code(), Some(1 | 3)), "{at}: {ran}"),
            _ => {
                let ran = ran.exited(3);
                let line = text[..at].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
                assert!(
                    ran.said().contains(&format!("damage at byte {line}: the last line has no end")),
                    "{ran}"
                );
            }
        }
    }
}

#[test]
fn what_a_real_strace_writes_is_read_whole() {
    if !support::has_program("strace") {
        return support::skip("strace", "no strace on PATH");
    }
    let dir = support::tempdir();
    let path = |name: &str| dir.path().join(name);
    let shell = ["sh", "-c", "echo out; sh -c 'exit 3'; kill -9 $$"];
    let trace = |flags: &[&str]| Command::new("strace").current_dir(dir.path()).args(flags).args(shell).run();
    let file = trace(&["-f", "-ttt", "-T", "-o", "file.strace"]);
    if file.stderr.contains("ptrace") && !path("file.strace").exists() {
        return support::skip("ptrace", "this machine does not let one process trace another");
    }
    let terminal = trace(&["-f", "-tt"]);
    fs::write(path("terminal.strace"), format!("{}{}", terminal.stdout, terminal.stderr)).unwrap();
    for (name, calls) in [("file.strace", "slices"), ("terminal.strace", "instants")] {
        let ran = run_in(dir.path(), &["info", "--json", name]).exited(0);
        let info = ran.json();
        assert!(
            info["report"]["track_events"][calls].as_u64().is_some_and(|count| count > 30),
            "{name}: {info}"
        );
        convert_all(dir.path(), name);
    }
    let csv = fs::read_to_string(path("file.strace.csv")).unwrap();
    for has in [",exited with 3,", ",killed by SIGKILL", ",SIGCHLD,", ",execve,", "\nprocess,"] {
        assert!(csv.contains(has), "{has}: {csv}");
    }
}

/// Converts a text to each output that holds slices.
fn convert_all(dir: &Path, name: &str) {
    for ending in ["csv", "pftrace", "json", "firefox.json", "html", "systrace.html"] {
        let out = format!("{name}.{ending}");
        run_in(dir, &["convert", name, "-o", &out]).exited(0);
    }
}
