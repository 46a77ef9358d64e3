//! `why` as its user meets it: what it prints, and what it says where there is nothing to explain.

use std::fs;
use std::path::Path;

use support::launch_scenario::Launch;
use support::{Ran, run_in, run_line};

/// A slice that runs, waits for a worker that sleeps, and runs again. Times are ms.
pub const TRACE: &str = "# tracer: nop
#
  <idle>-0     (-----) [000] d..2 1.000000: sched_switch: prev_comm=swapper prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=main next_pid=100 next_prio=120
  main-100     (  100) [000] .... 1.001000: tracing_mark_write: B|100|load
  <idle>-0     (-----) [001] d..2 1.002000: sched_switch: prev_comm=swapper prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=worker next_pid=101 next_prio=120
  main-100     (  100) [000] d..2 1.005000: sched_switch: prev_comm=main prev_pid=100 prev_prio=120 prev_state=S ==> next_comm=swapper next_pid=0 next_prio=120
  worker-101   (  100) [001] d..2 1.006000: sched_switch: prev_comm=worker prev_pid=101 prev_prio=120 prev_state=S ==> next_comm=swapper next_pid=0 next_prio=120
  <idle>-0     (-----) [001] d.h2 1.046000: sched_waking: comm=worker pid=101 prio=120 target_cpu=001
  <idle>-0     (-----) [001] d..2 1.046100: sched_switch: prev_comm=swapper prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=worker next_pid=101 next_prio=120
  worker-101   (  100) [001] d..2 1.047000: sched_waking: comm=main pid=100 prio=120 target_cpu=000
  <idle>-0     (-----) [000] d..2 1.047200: sched_switch: prev_comm=swapper prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=main next_pid=100 next_prio=120
  main-100     (  100) [000] .... 1.051000: tracing_mark_write: E|100
";

fn why(dir: &Path, line: &str) -> Ran {
    fs::write(dir.join("x.txt"), TRACE).unwrap();
    run_in(dir, &format!("why {line}").split(' ').collect::<Vec<_>>())
}

#[test]
fn causes_are_printed_largest_first_with_a_line_for_what_is_unexplained() {
    let dir = support::tempdir();
    let printed = why(dir.path(), "x.txt --slice load").exited(0).stdout;
    let expected = "\
load on main (100): 50.0 ms
your code 16 % · your other threads 84 % · the kernel 1 % · not recorded 0 %
     40.0 ms   80 %? waited for a lock or a result of \"worker\", which slept, as the program had asked: a timer or a device
     7.80 ms   16 %  ran its own code in load
     1.90 ms    4 %~ waited for a lock or a result of \"worker\", which ran its own code (2 times)
      200 µs    0 %  was ready, and did not run: the CPU left its idle state
      100 µs    0 %~ waited for a lock or a result of \"worker\", which was ready, and did not run: the CPU left its idle state
        0 ns    0 %  unexplained
(~ told by the wake-up that ended the wait; ? inferred: no event says so)
without the first cause 10.0 ms, without the second 46.2 ms (3.80 ms is won: \"worker\" ran beside it, and ended 42.0 ms later), without the third 48.1 ms
note: no interrupts were recorded: record the category irq to tell timers from devices
note: no CPU frequencies were recorded: record the category freq to see slow clocks
";
    assert_eq!(printed, expected);
    // Without a question: there is no launch and no frame, so it is the main thread's longest slice.
    assert_eq!(why(dir.path(), "x.txt").exited(0).stdout, expected);
    let by_thread = why(dir.path(), "x.txt --threads").exited(0).stdout;
    let expected = "\
by thread:
     42.0 ms   84 %  worker of main: sleep 40.0 ms, running 1.90 ms, runnable 100 µs
     8.00 ms   16 %  main: running 7.80 ms, runnable 200 µs
";
    assert!(by_thread.contains(expected), "{by_thread}");
    let short = why(dir.path(), "x.txt --limit 1").exited(0).stdout;
    assert!(short.contains("10.0 ms   20 %  4 smaller causes"), "{short}");
}

#[test]
fn what_is_not_there_is_said_with_what_is() {
    let dir = support::tempdir();
    for (line, status, words) in [
        ("x.txt --slice loads", 1, "no slice is called \"loads\"; there is load"),
        ("x.txt --launch", 1, "the trace has 0 launches"),
        ("x.txt --launch com.example", 1, "no launch of com.example is in the trace"),
        ("x.txt --frame", 1, "no frame of the trace was late"),
        ("x.txt --frame 12", 1, "no frame has the number 12"),
        (
            "--launch x.txt x.txt",
            2,
            "--launch has taken the file x.txt: name the files first, or write --launch=1",
        ),
        ("--frame x.txt x.txt", 2, "or write --frame=late"),
        ("x.txt --frame soon", 2, "--frame takes a frame's number or the word late"),
        ("x.txt --method load", 1, "no method is called \"load\""),
        ("x.txt --thread main --from 9s", 1, "the time ends before it begins"),
        ("x.txt --from 9s", 2, "--thread"),
        ("x.txt --thread nobody", 1, "no thread is called \"nobody\""),
        ("missing.dat", 1, "missing.dat"),
    ] {
        let ran = why(dir.path(), line);
        let ran = ran.exited(status);
        assert!(ran.stderr.contains(words), "{line}: {ran}");
    }
}

#[test]
fn where_an_input_is_cut_the_missing_slice_may_be_in_the_rest() {
    let dir = support::tempdir();
    let cut = TRACE.find("main-100     (  100) [000] .... 1.001000").unwrap() + 30;
    fs::write(dir.path().join("cut.txt"), &TRACE[..cut]).unwrap();
    let said = why(dir.path(), "cut.txt --slice load").exited(1).stderr;
    let words = "no slice is called \"load\"; events were lost, or an input is damaged: `tracebridge info` says where";
    assert!(said.contains(words), "{said}");
}

/// The writer of the method trace says that its clock takes 150 ns to read.
#[test]
fn what_the_records_of_methods_took_at_least_is_told_where_the_trace_tells_it() {
    let dir = support::tempdir();
    let dir = dir.path();
    let made = Launch { seed: 1, day: 0, slow_percent: 0, pace_percent: 100 }.make();
    fs::write(dir.join("app.dat"), &made.dat).unwrap();
    fs::write(dir.join("app.trace"), &made.trace).unwrap();
    let records = || {
        let said = run_line(dir, "why app.dat app.trace --json").exited(0).json();
        let all = said["spans"][0]["circumstances"].as_array().unwrap().clone();
        all.into_iter().find(|one| one["name"] == "method_records")
    };
    let told = records().unwrap();
    let count = told["count"].as_u64().unwrap();
    assert!(count > 100 && told["ns"].as_u64() == Some(150 * count), "{told}");
    let text = run_line(dir, "why app.dat app.trace").exited(0).stdout;
    assert!(text.contains(&format!("records of methods, for which the clock was read ({count}, ")), "{text}");
    // A time that no clock takes is not told.
    let key = b"clock-call-overhead-nsec=150";
    let at = made.trace.windows(key.len()).position(|bytes| bytes == key).unwrap();
    let mut impossible = made.trace;
    impossible.splice(at..at + key.len(), *b"clock-call-overhead-nsec=999999");
    fs::write(dir.join("app.trace"), impossible).unwrap();
    assert_eq!(records(), None);
}

#[test]
fn a_difference_adds_up_over_causes() {
    let dir = support::tempdir();
    let slower = TRACE.replace("1.051000", "1.061000");
    fs::write(dir.path().join("new.txt"), slower).unwrap();
    let ran = why(dir.path(), "new.txt --slice load --against x.txt --json").exited(0);
    let said: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let against = &said["against"];
    assert_eq!((&against["delta_ns"], &against["causes"][0]["delta_ns"]), (&10e6.into(), &10e6.into()));
    assert_eq!(against["causes"][0]["path"], "running: main");
    let text = why(dir.path(), "new.txt --slice load --against x.txt").exited(0).stdout;
    assert!(
        text.starts_with(
            "60.0 ms now (1 span), 50.0 ms before (1 span): +10.0 ms\nyour code +10.0 ms\n    +10.0 ms  running: main (load)"
        ),
        "{text}"
    );
}

/// Nothing is written, so that no input can be in the way of an output.
#[test]
fn an_input_may_have_any_name_where_nothing_is_written() {
    let dir = support::tempdir();
    let dir = dir.path();
    fs::write(dir.join("x.txt"), TRACE).unwrap();
    for name in ["why", "launch", "run", "out"] {
        let file = format!("{name}.pftrace");
        run_in(dir, &["convert", "x.txt", "-o", &file]).exited(0);
        let before = fs::read(dir.join(&file)).unwrap();
        run_in(dir, &["why", &file]).exited(0);
        run_in(dir, &["why", &file, "--against", "x.txt"]).exited(0);
        run_in(dir, &["adb", "launch", "--compare", &file, "x.txt"]).exited(0);
        let gate = ["gate", "--baseline", &file, "--candidate", "x.txt", "--fail-if", "slice.load > +3%"];
        run_in(dir, &gate).exited(3);
        assert_eq!(fs::read(dir.join(&file)).unwrap(), before, "{file}");
    }
}

/// Chrome JSON: nested slices of a thread, an asynchronous slice of its process, and a thread with a name
/// alone.
#[test]
fn slices_and_threads_of_json_are_found_as_those_of_markers() {
    let dir = support::tempdir();
    let dir = dir.path();
    let event = |what: &str| format!("{{{what}, \"cat\": \"a\", \"pid\": 7}}");
    let name = |tid: u32, name: &str| {
        event(&format!(
            "\"ph\": \"M\", \"name\": \"thread_name\", \"tid\": {tid}, \"args\": {{\"name\": \"{name}\"}}"
        ))
    };
    let events = [
        name(7, "main"),
        name(8, "idler"),
        event("\"ph\": \"X\", \"name\": \"load\", \"tid\": 7, \"ts\": 1000, \"dur\": 700"),
        event("\"ph\": \"X\", \"name\": \"parse\", \"tid\": 7, \"ts\": 1100, \"dur\": 300"),
        event("\"ph\": \"b\", \"name\": \"fetch\", \"id\": 3, \"tid\": 7, \"ts\": 900"),
        event("\"ph\": \"e\", \"name\": \"fetch\", \"id\": 3, \"tid\": 7, \"ts\": 1900"),
    ];
    fs::write(dir.join("a.json"), format!("{{\"traceEvents\": [{}]}}", events.join(","))).unwrap();
    for (question, what, ns) in [
        (["--slice", "load"], "load on main (7)", 700_000),
        (["--slice", "parse"], "parse on main (7)", 300_000),
        (["--slice", "fetch"], "fetch on main (7)", 1_000_000),
        (["--thread", "main"], "thread main (7)", 1_000_000),
        (["--thread", "idler"], "thread idler (8)", 1_000_000),
    ] {
        let why = run_in(dir, &[&["why", "a.json", "--json"], &question[..]].concat()).json();
        let span = &why["spans"][0];
        assert_eq!((&span["what"], &span["duration_ns"]), (&what.into(), &ns.into()), "{question:?}: {why}");
    }
}
