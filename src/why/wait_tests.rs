//! Waits of constructed timelines: where they end, for what they are, and how that is known.

use super::model::Model;
use super::party::Party;
use super::tests::{IDLE, Lines, MAIN, SERVER, WORKER, row};
use super::*;
use crate::ids::{Pid, Tid};
use crate::trace_dat::MachineFacts;

/// A thread that wakes others for nothing.
const BYSTANDER: Tid = Tid(102);

/// `main` runs in the slice `work` from 1 ms on, and the worker runs beside it. The sleeps of `main` begin at
/// 2 ms: each has a length and the thread that ends it, and `main` runs for 50 µs before the next one. The
/// slice ends 1 ms after the last.
fn sleeps(of: &[(u64, Tid)]) -> Lines {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", MAIN).switch(500, 1, IDLE, "R", WORKER);
    let mut us = 2000;
    for (length, waker) in of {
        lines.switch(us, 0, MAIN, "S", IDLE);
        us += length;
        match *waker {
            IDLE => lines.waking_by_interrupt(us, 0, MAIN),
            waker => lines.waking(us, if waker == WORKER { 1 } else { 2 }, waker, MAIN),
        };
        lines.switch(us, 0, IDLE, "R", MAIN);
        us += 50;
    }
    lines.slice(1000..us + 1000, 0, MAIN, "work");
    lines
}

/// The time of the causes whose path is this, µs.
fn time(causes: &[(String, String, u64)], path: &str) -> u64 {
    causes.iter().filter(|row| row.0 == path).map(|row| row.2).sum()
}

const LOCK: &str = "lock main > running worker";

#[test]
fn a_wait_with_time_outs_is_one_wait() {
    // Each of them has times of 50 µs between the sleeps.
    for (of, locked) in [
        (&[(50_000, IDLE), (10_000, WORKER)][..], 60_050),
        (&[(5060, IDLE), (5060, IDLE), (5070, IDLE), (700, WORKER)], 16_040),
        (&[(1060, IDLE), (8070, IDLE), (64_100, IDLE), (20_000, WORKER)], 93_380),
        (&[(3000, BYSTANDER), (4000, BYSTANDER), (9000, WORKER)], 16_100),
    ] {
        let causes = sleeps(of).causes();
        assert_eq!(time(&causes, LOCK), locked, "{of:?}: {causes:?}");
    }
}

#[test]
fn sleeps_stay_sleeps() {
    let sleep = "sleep main";
    for (of, slept, locked) in [
        // A short sleep before a lock, and two of them.
        (&[(2000, IDLE), (60_000, WORKER)][..], 2000, 60_000),
        (&[(3000, IDLE), (9000, IDLE), (60_000, WORKER)], 12_000, 60_000),
        // A loop of small sleeps, after which the thread goes on, and one behind a lock.
        (&[(1060, IDLE), (1070, IDLE), (1060, IDLE)], 3190, 0),
        (&[(20_000, WORKER), (5000, IDLE)], 5000, 20_000),
    ] {
        let causes = sleeps(of).causes();
        assert_eq!((time(&causes, sleep), time(&causes, LOCK)), (slept, locked), "{of:?}: {causes:?}");
    }
}

/// A thread that wakes another one, or writes a marker, has done something between two sleeps.
#[test]
fn an_answer_ends_a_wait() {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", MAIN).slice(1000..40_000, 0, MAIN, "work");
    // The main thread sends a request to one server after the other; each computes and answers.
    for (begin, server, cpu) in [(2000, SERVER, 1), (12_000, WORKER, 2), (22_000, SERVER, 1)] {
        lines.waking(begin - 20, 0, MAIN, server).switch(begin, 0, MAIN, "S", IDLE);
        lines.switch(begin, cpu, IDLE, "R", server).waking(begin + 9970, cpu, server, MAIN);
        lines.switch(begin + 9970, 0, IDLE, "R", MAIN).switch(begin + 9975, cpu, server, "S", IDLE);
    }
    let causes = lines.causes();
    assert_eq!(time(&causes, "ipc main > running server"), 19_940, "{causes:?}");
    assert_eq!(time(&causes, LOCK), 9970, "{causes:?}");
}

/// Where calls are recorded, the futex tells.
#[test]
fn calls_tell_whether_a_wait_goes_on() {
    let with_calls = |of: &[(u64, Tid)], calls: [&str; 2]| {
        let mut lines = sleeps(of);
        lines.add(1990, 0, MAIN, "....", calls[0]);
        let second = 2000 + of[0].0 + 40;
        lines.add(second, 0, MAIN, "....", calls[1]);
        time(&lines.causes(), LOCK)
    };
    let futex = "sys_futex(uaddr: 7f0010, op: 80, val: 2)";
    let other = "sys_futex(uaddr: 7f9910, op: 80, val: 2)";
    let sleep = "sys_clock_nanosleep(which_clock: 0, flags: 0)";
    assert_eq!(with_calls(&[(50_000, IDLE), (10_000, WORKER)], [futex, futex]), 60_050);
    assert_eq!(with_calls(&[(2000, IDLE), (60_000, WORKER)], [futex, futex]), 62_050, "its time-out grew");
    assert_eq!(with_calls(&[(50_000, IDLE), (10_000, WORKER)], [sleep, futex]), 10_000);
    assert_eq!(with_calls(&[(50_000, IDLE), (10_000, WORKER)], [other, futex]), 10_000);
}

/// The main thread of a server that sleeps is not idle: somebody waits for it.
#[test]
fn idle_is_the_spans_own_main_thread_alone() {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", MAIN).slice(1000..60_000, 0, MAIN, "work");
    lines.switch(2000, 0, MAIN, "S", IDLE).switch(500, 1, IDLE, "R", SERVER);
    lines.switch(3000, 1, SERVER, "S", IDLE).waking_by_interrupt(53_000, 1, SERVER);
    lines.switch(53_000, 1, IDLE, "R", SERVER).waking(54_000, 1, SERVER, MAIN);
    lines.switch(54_000, 0, IDLE, "R", MAIN);
    let model = lines.model();
    assert!(Lines::causes_in(&model).contains(&row(
        "ipc main > sleep server",
        "a timer or a device",
        50_000
    )));
    let stretch = Question::Stretch { thread: "server".into(), from_ns: None, to_ns: None };
    let spans = model.spans(&stretch).unwrap();
    assert_eq!(model.explain(&spans[0]).causes[0].path_text(), "idle: server");
}

/// `main` waits uninterruptibly for 30 ms, and an interrupt ends that.
fn uninterruptible(reason: &str) -> Lines {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", MAIN).slice(1000..40_000, 0, MAIN, "work");
    lines.switch(2000, 0, MAIN, "D", IDLE);
    if !reason.is_empty() {
        lines.add(32_000, 0, IDLE, "d.h4", &format!("sched_blocked_reason: pid={MAIN} {reason}"));
    }
    lines.waking_by_interrupt(32_000, 0, MAIN).switch(32_000, 0, IDLE, "R", MAIN);
    lines
}

fn first(model: &Model) -> (String, String, &'static str) {
    let spans = model.spans(&Question::Slice("work".into())).unwrap();
    let first = model.explain(&spans[0]).causes.remove(0);
    (first.path_text(), first.subject, first.grade.name())
}

#[test]
fn a_wait_in_an_unknown_function_is_the_kernels_and_no_disk() {
    let told = |reason: &str| first(&uninterruptible(reason).model());
    let row = |path: &str, subject: &str, grade| (path.to_owned(), subject.to_owned(), grade);
    let driver = told("iowait=0 caller=msm_rpm_wait_for_ack+0x68/0x124");
    assert_eq!(driver, row("kernel: main", "msm_rpm_wait_for_ack", "event"));
    let disk = told("iowait=1 caller=some_file_system+0x1/0x2");
    assert_eq!(disk, row("disk: main", "some_file_system", "event"));
    assert_eq!(told(""), row("disk: main", "", "inferred"));
}

#[test]
fn where_block_requests_are_recorded_and_none_is_open_it_is_not_the_disk() {
    let told = |issue: u64, complete: u64| {
        let mut lines = uninterruptible("");
        lines.add(issue, 0, IDLE, "d..1", "block_rq_issue: 8,0 R 4096 () 1024 + 8 [main]");
        lines.add(complete, 0, IDLE, "d.s1", "block_rq_complete: 8,0 R () 1024 + 8 [0]");
        first(&lines.model())
    };
    let row = |path: &str, subject: &str, grade| (path.to_owned(), subject.to_owned(), grade);
    assert_eq!(told(600, 700), row("kernel: main", "a driver, which no event names", "inferred"));
    assert_eq!(told(3000, 31_000), row("disk: main", "", "wake_up"));
}

/// A timer whose hard interrupt no event has, inside of a soft interrupt that has one.
#[test]
fn a_timer_inside_of_a_soft_interrupt_is_a_timer() {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", MAIN).slice(1000..9000, 0, MAIN, "work");
    lines.switch(2000, 0, MAIN, "S", IDLE);
    lines.add(4990, 0, IDLE, "..s1", "softirq_entry: vec=4 [action=BLOCK]");
    lines.wake(5000, 0, IDLE, MAIN, "d.H3", "sched_waking");
    lines.add(5010, 0, IDLE, "..s1", "softirq_exit: vec=4 [action=BLOCK]");
    lines.switch(5020, 0, IDLE, "R", MAIN);
    assert_eq!(time(&lines.causes(), "sleep main"), 3000);
}

#[test]
fn switches_that_agree_are_believed_over_an_event_beside_them() {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", MAIN).slice(1000..2000, 0, MAIN, "work");
    lines.switch(10_000, 0, MAIN, "D", IDLE);
    lines.add(
        10_001,
        0,
        MAIN,
        "d..1",
        &format!("sched_blocked_reason: pid={MAIN} iowait=1 caller=io_schedule+0x46/0x70"),
    );
    lines.switch(160_000, 0, IDLE, "R", MAIN).switch(170_000, 0, MAIN, "S", IDLE);
    let model = lines.model();
    let all = Question::Stretch { thread: "main".into(), from_ns: None, to_ns: None };
    let explained = model.explain(&model.spans(&all).unwrap()[0]);
    let time = |cause: &str| -> u64 {
        explained.causes.iter().filter(|part| part.cause_name() == cause).map(|part| part.ns / 1000).sum()
    };
    assert_eq!((time("running"), time("disk")), (19_500, 150_000), "{:?}", explained.causes);
    assert!(model.missing().iter().all(|note| !note.contains("missing")), "{:?}", model.missing());
}

/// Where switches are recorded and a CPU has none, it has one thread.
#[test]
fn a_thread_whose_cpu_never_switches_runs() {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", MAIN).slice(1000..9000, 0, MAIN, "work").switch(2000, 0, MAIN, "S", IDLE);
    lines.slice(1500..7000, 1, WORKER, "held").waking(8000, 1, WORKER, MAIN);
    lines.switch(8000, 0, IDLE, "R", MAIN);
    assert_eq!(time(&lines.causes(), LOCK), 6000);
}

/// The switch away from a busy thread is not recorded: whoever is ready there is not told to wait for it, and
/// the thread is not told to run.
#[test]
fn a_missing_switch_makes_the_time_behind_it_not_recorded() {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", SERVER).waking(900, 1, WORKER, MAIN);
    lines.slice(1000..2000, 0, SERVER, "before");
    // Then nothing up to a switch from another thread to main.
    lines.switch(30_000, 0, Tid(777), "S", MAIN).switch(40_000, 0, MAIN, "S", IDLE);
    let model = lines.model();
    let spans = |thread: &str| {
        let all = Question::Stretch { thread: thread.into(), from_ns: None, to_ns: None };
        let parts = model.explain(&model.spans(&all).unwrap()[0]).causes;
        parts.into_iter().map(|part| (part.cause_name(), part.subject, part.ns / 1000)).collect::<Vec<_>>()
    };
    assert_eq!(spans("server")[0], ("not_recorded", "switches are missing".to_owned(), 38_000));
    assert!(spans("main").contains(&("not_recorded", "switches are missing".to_owned(), 28_000)));
    assert!(model.missing()[0].contains("between threads are missing (1 times)"), "{:?}", model.missing());
}

#[test]
fn another_process_of_the_recorders_name_does_not_record() {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", MAIN).slice(1000..40_000, 0, MAIN, "work");
    for (at, tid) in [(2000, Tid(7)), (12_000, Tid(8))] {
        let event = |from: Tid, to: Tid| {
            let name = |tid: Tid| if tid == MAIN { "main" } else { "tracebridge" };
            format!(
                "sched_switch: prev_comm={} prev_pid={from} prev_prio=120 prev_state=R ==> next_comm={} next_pid={to} next_prio=120",
                name(from),
                name(to)
            )
        };
        lines.add(at, 0, MAIN, "d..2", &event(MAIN, tid)).add(at + 5000, 0, tid, "d..2", &event(tid, MAIN));
    }
    let mut model = lines.model();
    assert_eq!(time(&Lines::causes_in(&model), "tracing main"), 10_000);
    model.facts = Some(MachineFacts { recorder: Some(Pid(7)), ..MachineFacts::default() }.into());
    let causes = Lines::causes_in(&model);
    assert_eq!((time(&causes, "tracing main"), time(&causes, "runnable main")), (5000, 5000));
}

#[test]
fn the_first_lines_say_whose_the_time_was_and_how_that_is_known() {
    let explained = |lines: &mut Lines| {
        let model = lines.model();
        let spans = model.spans(&Question::Slice("work".into())).unwrap();
        spans.iter().map(|span| model.explain(span)).collect::<Vec<_>>()
    };
    let one = explained(&mut sleeps(&[(50_000, IDLE), (10_000, WORKER)]));
    let text = lines(&one[0], 10);
    assert_eq!(text[1], "your code 3 % · your other threads 97 % · not recorded 0 %");
    assert!(text[2].contains("97 %? waited for a lock or a result of \"worker\""), "{text:?}");
    assert!(text.iter().any(|line| line == "(? inferred: no event says so)"), "{text:?}");
    assert_eq!(one[0].parties()[0].party, Party::OwnCode);
    // Spans of two threads.
    let mut two = Lines::default();
    two.switch(500, 0, IDLE, "R", MAIN).switch(500, 1, IDLE, "R", WORKER);
    two.slice(1000..9000, 0, MAIN, "work").slice(1000..8000, 1, WORKER, "work");
    let text = lines_of_several(&explained(&mut two), 10);
    assert!(text[2].contains("\"main\" ran its own code") && text[3].contains("\"worker\" ran"), "{text:?}");
    // Nothing is known.
    let mut unknown = Lines::default();
    unknown.slice(1000..9000, 0, MAIN, "work").slice(11_000..12_000, 0, MAIN, "work");
    let text = lines_of_several(&explained(&mut unknown), 10);
    assert!(text.iter().all(|line| !line.contains("unexplained")), "{text:?}");
    assert!(text[1].ends_with("not recorded 100 %") && text[4].contains("not recorded"), "{text:?}");
}
