//! Causes of constructed timelines, of which everything is known.

mod own_code;

use super::kept_time::KeptTime;
use super::model::Model;
use super::quotas::Quotas;
use super::spans::SpanAsked;
use super::*;
use crate::clock::Timestamp;
use crate::formats::{Order, ftrace_text};
use crate::ids::{Cpu, Pid, Tid};
use crate::trace_dat::{CpuQuota, EventCost, MachineFacts};
use crate::tracks::TrackBuilder;

pub(super) const MAIN: Tid = Tid(100);
pub(super) const WORKER: Tid = Tid(101);
pub(super) const SERVER: Tid = Tid(200);
/// The main thread of an app with a name that the kernel cuts.
const FEED: Tid = Tid(300);
pub(super) const IDLE: Tid = Tid::IDLE;
/// A thread whose process is not known.
pub(super) const STRANGER: Tid = Tid(900);

/// Lines of a text trace. Times are µs.
#[derive(Default)]
pub(super) struct Lines(Vec<(u64, String)>);

fn name(tid: Tid) -> String {
    match tid {
        IDLE => "<idle>".into(),
        MAIN => "main".into(),
        WORKER => "worker".into(),
        SERVER => "server".into(),
        FEED => "om.example.feed".into(),
        other => format!("t{other}"),
    }
}

fn process(tid: Tid) -> Pid {
    Pid(tid.0 / 100 * 100)
}

impl Lines {
    pub fn add(&mut self, us: u64, cpu: u32, tid: Tid, flags: &str, event: &str) -> &mut Lines {
        let secs = us / 1_000_000;
        let micros = us % 1_000_000;
        let tgid = match tid {
            IDLE | STRANGER => "-----".to_owned(),
            tid => format!("{:5}", process(tid).0),
        };
        let line = format!("{}-{tid} ({tgid}) [{cpu:03}] {flags} {secs}.{micros:06}: {event}\n", name(tid));
        self.0.push((us, line));
        self
    }

    /// `left` leaves the CPU in this state, and `entered` gets it.
    pub fn switch(&mut self, us: u64, cpu: u32, left: Tid, state: &str, entered: Tid) -> &mut Lines {
        let from = name(left).replace("<idle>", "swapper");
        let to = name(entered).replace("<idle>", "swapper");
        let event = format!(
            "sched_switch: prev_comm={from} prev_pid={left} prev_prio=120 prev_state={state} ==> next_comm={to} next_pid={entered} next_prio=120"
        );
        self.add(us, cpu, left, "d..2", &event)
    }

    pub fn waking(&mut self, us: u64, cpu: u32, waker: Tid, woken: Tid) -> &mut Lines {
        self.wake(us, cpu, waker, woken, "d..2", "sched_waking")
    }

    /// A wake-up while a hard interrupt is served.
    pub fn waking_by_interrupt(&mut self, us: u64, cpu: u32, woken: Tid) -> &mut Lines {
        self.wake(us, cpu, IDLE, woken, "d.h2", "sched_waking")
    }

    pub fn wake(
        &mut self,
        us: u64,
        cpu: u32,
        waker: Tid,
        woken: Tid,
        flags: &str,
        event: &str,
    ) -> &mut Lines {
        let event = format!("{event}: comm={} pid={woken} prio=120 target_cpu={cpu:03}", name(woken));
        self.add(us, cpu, waker, flags, &event)
    }

    pub fn marker(&mut self, us: u64, cpu: u32, tid: Tid, text: &str) -> &mut Lines {
        self.add(us, cpu, tid, "....", &format!("tracing_mark_write: {text}"))
    }

    pub fn slice(&mut self, us: std::ops::Range<u64>, cpu: u32, tid: Tid, name: &str) -> &mut Lines {
        let pid = process(tid);
        self.marker(us.start, cpu, tid, &format!("B|{pid}|{name}"));
        self.marker(us.end, cpu, tid, &format!("E|{pid}"))
    }

    pub fn model(&mut self) -> Model {
        self.model_of(KeptTime::default())
    }

    pub fn model_of(&mut self, kept: KeptTime) -> Model {
        self.model_with(kept, |_| {})
    }

    /// The model of the lines, and of what `more` adds.
    fn model_with(&mut self, kept: KeptTime, more: impl FnOnce(&mut TrackBuilder<ModelCollector>)) -> Model {
        self.0.sort_by_key(|(us, _)| *us);
        let text: String = self.0.iter().map(|(_, line)| line.as_str()).collect();
        let mut builder = TrackBuilder::new(ModelCollector::default());
        builder.sink().keep_only(kept);
        let text = format!("# tracer: nop\n#\n{text}");
        let report = ftrace_text::read(text.as_bytes(), Order::Time, &mut builder).unwrap();
        assert_eq!(report.damage, [], "{text}");
        more(&mut builder);
        let summary = crate::timeline::MergeSummary::new(crate::clock::Clock::Boottime, Vec::new(), report);
        crate::timeline::TimelineSink::finish(&mut builder, &summary).unwrap();
        std::mem::take(builder.sink()).into_model()
    }

    /// The parts of the slice `work`: path, subject, µs.
    pub fn causes(&mut self) -> Vec<(String, String, u64)> {
        Lines::causes_in(&self.model())
    }

    pub fn causes_in(model: &Model) -> Vec<(String, String, u64)> {
        let spans = model.spans(&Question::Slice("work".into())).unwrap();
        let [span] = spans.as_slice() else { panic!("{spans:?}") };
        let explained = model.explain(span);
        assert_eq!(explained.causes.iter().map(|part| part.ns).sum::<u64>(), explained.duration);
        let path = |part: &explanation::CausePart| {
            let hops = part.path.iter().map(|hop| format!("{} {}", hop.cause.name(), hop.thread));
            hops.collect::<Vec<_>>().join(" > ")
        };
        explained.causes.iter().map(|part| (path(part), part.subject.clone(), part.ns / 1000)).collect()
    }
}

pub(super) fn row(path: &str, subject: &str, us: u64) -> (String, String, u64) {
    (path.to_owned(), subject.to_owned(), us)
}

#[test]
fn a_wait_is_followed_to_the_thread_that_ended_it() {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", MAIN).switch(500, 1, IDLE, "R", WORKER);
    lines.slice(1000..10_000, 0, MAIN, "work");
    // main waits for worker, which computes, reads from the disk, and computes again.
    lines.switch(2000, 0, MAIN, "S", IDLE);
    lines.switch(3000, 1, WORKER, "D", IDLE);
    lines.waking_by_interrupt(7000, 1, WORKER).switch(7100, 1, IDLE, "R", WORKER);
    lines.waking(8000, 1, WORKER, MAIN).switch(8200, 0, IDLE, "R", MAIN);
    assert_eq!(
        lines.causes(),
        [
            row("lock main > disk worker", "", 4000),
            row("running main", "work", 2800),
            row("lock main > running worker", "", 1900),
            row("runnable main", "the CPU left its idle state", 200),
            row("lock main > runnable worker", "the CPU left its idle state", 100),
        ]
    );
}

#[test]
fn a_chain_over_processes_ends_at_whoever_computed() {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", MAIN).slice(1000..9000, 0, MAIN, "work");
    lines.waking(1900, 0, MAIN, WORKER);
    lines.switch(2000, 0, MAIN, "S", WORKER).waking(2900, 0, WORKER, SERVER);
    lines.switch(3000, 0, WORKER, "S", SERVER).waking(7000, 0, SERVER, WORKER);
    lines.switch(7000, 0, SERVER, "S", WORKER).waking(8000, 0, WORKER, MAIN);
    lines.switch(8000, 0, WORKER, "S", MAIN);
    let causes = lines.causes();
    assert_eq!(causes[0], row("lock main > ipc worker > running server", "", 4000));
    assert!(causes.contains(&row("lock main > running worker", "", 2000)), "{causes:?}");
}

#[test]
fn a_process_has_the_name_that_its_launch_has() {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", FEED).slice(1000..9000, 0, FEED, "work");
    lines.marker(1100, 1, SERVER, "S|200|launching: com.example.feed|0");
    lines.marker(8000, 1, SERVER, "F|200|launching: com.example.feed|0");
    let model = lines.model();
    assert_eq!(model.measured.launches[0].package, "com.example.feed");
    let spans = model.spans(&Question::Slice("work".into())).unwrap();
    let explained = model.explain(&spans[0]);
    assert_eq!(explained.causes[0].path[0].process, "com.example.feed");
}

#[test]
fn a_thread_that_is_ready_names_who_ran_instead() {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", MAIN).slice(1000..20_000, 0, MAIN, "work");
    lines.switch(2000, 0, MAIN, "R+", SERVER).switch(6000, 0, SERVER, "R", MAIN);
    // Ready for long, and the CPU idles.
    lines.switch(7000, 0, MAIN, "R", IDLE).switch(17_000, 0, IDLE, "R", MAIN);
    let causes = lines.causes();
    assert_eq!(causes[0], row("runnable main", "CPU 0 was idle", 10_000));
    assert_eq!(causes[2], row("runnable main", "server", 4000));
}

#[test]
fn a_group_is_throttled_when_it_has_used_up_its_quota_and_only_then() {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", SERVER).slice(1500..61_500, 0, MAIN, "work");
    for period in 0..4 {
        let begin = 1000 + period * 20_000;
        lines.switch(begin, 0, SERVER, "R", MAIN).switch(begin + 5000, 0, MAIN, "R", SERVER);
    }
    let of = |cause: &str, model: &Model| -> u64 {
        Lines::causes_in(model).iter().filter(|row| row.0 == format!("{cause} main")).map(|row| row.2).sum()
    };
    let mut model = lines.model();
    assert_eq!((of("throttled", &model), of("runnable", &model)), (0, 45_000));
    let mut with_quota = |quota_us: u64| {
        let throttled = CpuQuota { throttled: 3, throttled_ns: 45_000_000, ..CpuQuota::default() };
        let quota = CpuQuota { quota_us, period_us: 20_000, processes: vec![process(MAIN)], ..throttled };
        model.quotas = Quotas::new(Some(&MachineFacts { quotas: vec![quota], ..MachineFacts::default() }));
        model.find_throttled();
        (of("throttled", &model), of("runnable", &model))
    };
    assert_eq!(with_quota(5000), (45_000, 0));
    assert_eq!(with_quota(9000), (0, 45_000), "others had the CPU, and the quota was not used up");
}

#[test]
fn a_thread_that_queues_elsewhere_while_its_next_cpu_idles_says_so() {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", MAIN).switch(500, 1, IDLE, "R", WORKER);
    lines.slice(1000..20_000, 0, MAIN, "work").switch(1500, 1, WORKER, "S", IDLE);
    // CPU 1 idles while main queues behind the server on CPU 0, and takes main in the end.
    lines.switch(2000, 0, MAIN, "R+", SERVER).switch(9000, 1, IDLE, "R", MAIN);
    let causes = lines.causes();
    assert!(causes.contains(&row("runnable main", "CPU 1 was idle", 7000)), "{causes:?}");
}

#[test]
fn a_cpu_that_idled_while_a_thread_was_ready_is_named() {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", MAIN).switch(500, 1, IDLE, "R", WORKER);
    lines.slice(1000..20_000, 0, MAIN, "work").switch(1500, 1, WORKER, "S", IDLE);
    lines.switch(2000, 0, MAIN, "R+", SERVER).switch(9000, 0, SERVER, "R", MAIN);
    let mut model = lines.model();
    assert!(Lines::causes_in(&model).contains(&row("runnable main", "server", 7000)));
    model.facts = Some(MachineFacts::default().into());
    let named = row("runnable main", "server, while CPU 1 was idle", 7000);
    assert!(Lines::causes_in(&model).contains(&named));
    model.affinities.insert(MAIN, vec![Cpu(0)]);
    assert!(Lines::causes_in(&model).contains(&row("runnable main", "server", 7000)));
}

#[test]
fn a_wake_up_by_a_thread_of_an_unknown_process_is_no_message() {
    let woken_by = |waker: Tid| {
        let mut lines = Lines::default();
        lines.switch(500, 0, IDLE, "R", MAIN).switch(500, 1, IDLE, "R", waker);
        lines.slice(1000..10_000, 0, MAIN, "work").switch(2000, 0, MAIN, "S", IDLE);
        lines.waking(8000, 1, waker, MAIN).switch(8000, 0, IDLE, "R", MAIN);
        lines
    };
    let path = |lines: &mut Lines| lines.causes()[0].0.clone();
    assert_eq!(path(&mut woken_by(STRANGER)), "other_thread main > running t900");
    assert_eq!(path(&mut woken_by(SERVER)), "ipc main > running server");
    // Who made a thread as one of its own process is known.
    let born = format!("task_newtask: pid={STRANGER} comm=t900 clone_flags=3d0f00 oom_score_adj=0");
    let mut lines = woken_by(STRANGER);
    assert_eq!(path(lines.add(400, 0, MAIN, "....", &born)), "lock main > running t900");
}

#[test]
fn what_recording_takes_is_a_cause() {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", MAIN).slice(1000..10_000, 0, MAIN, "work");
    lines.slice(3000..5000, 0, MAIN, "inner").switch(7000, 0, MAIN, "S", IDLE);
    lines.waking_by_interrupt(8000, 0, MAIN).switch(8000, 0, IDLE, "R", MAIN);
    let mut model = lines.model();
    let event_cost = Some(EventCost { marker_ns: 100_000, switch_ns: 20_000 });
    model.facts = Some(MachineFacts { event_cost, ..MachineFacts::default() }.into());
    let causes = Lines::causes_in(&model);
    assert!(causes.contains(&row("tracing main", "markers", 200)), "{causes:?}");
    assert!(causes.contains(&row("tracing main", "recorded context switches", 20)), "{causes:?}");
}

#[test]
fn a_thread_with_events_runs_though_nothing_was_known_of_its_cpu() {
    let mut lines = Lines::default();
    // MAIN leaves CPU 0 while it is ready, and goes on on CPU 1, whose switch from idle was not recorded.
    lines.switch(0, 0, IDLE, "R", MAIN).switch(1000, 0, MAIN, "R+", WORKER);
    lines.slice(2000..7000, 1, MAIN, "work").switch(8000, 1, MAIN, "S", IDLE);
    assert_eq!(lines.causes(), [row("running main", "work", 5000)]);
}

#[test]
fn a_thread_with_events_runs_though_the_switch_to_it_was_not_recorded() {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", MAIN).slice(1000..20_000, 0, MAIN, "work");
    lines.switch(2000, 0, MAIN, "S", IDLE).waking_by_interrupt(3000, 0, MAIN);
    // No switch to main; only a marker tells that it runs again.
    lines.marker(3300, 0, MAIN, "I|100|here");
    let causes = lines.causes();
    assert_eq!(causes[0], row("running main", "work", 18_000));
    assert_eq!(causes[1].2, 1000, "{causes:?}");
}

#[test]
fn a_slow_clock_costs_what_the_fastest_one_would_have_saved() {
    let mut lines = Lines::default();
    let frequency = |khz: u32, cpu: u32| format!("cpu_frequency: state={khz} cpu_id={cpu}");
    lines.add(100, 0, IDLE, "....", &frequency(2_000_000, 0));
    lines.switch(500, 0, IDLE, "R", MAIN).slice(1000..5000, 0, MAIN, "work");
    lines.add(2000, 0, MAIN, "....", &frequency(500_000, 0));
    assert_eq!(lines.causes(), [row("slow_cpu main", "", 2250), row("running main", "work", 1750)]);
}

#[test]
fn markers_tell_waits_and_work_of_art() {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", MAIN).switch(500, 1, IDLE, "R", WORKER);
    lines.slice(1000..9000, 0, MAIN, "work");
    lines.slice(1500..2000, 0, MAIN, "VerifyClass com.example.Feed");
    lines.slice(2500..6500, 0, MAIN, "GC: Wait For Completion Alloc");
    lines.switch(3000, 0, MAIN, "S", IDLE).slice(2600..5900, 1, WORKER, "young concurrent copying GC");
    lines.waking(6000, 1, WORKER, MAIN).switch(6000, 0, IDLE, "R", MAIN);
    let causes = lines.causes();
    assert!(causes.contains(&row("class_loading main", "VerifyClass com.example.Feed", 500)), "{causes:?}");
    assert!(causes.contains(&row("gc main > gc worker", "young concurrent copying GC", 2900)), "{causes:?}");
    assert!(causes.contains(&row("gc main", "GC: Wait For Completion Alloc", 1000)), "{causes:?}");
}

#[test]
fn a_wake_up_before_the_thread_has_left_its_cpu_counts() {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", MAIN).switch(500, 1, IDLE, "R", WORKER);
    lines.slice(1000..9000, 0, MAIN, "work");
    // The worker wakes main, which is about to sleep; the kernel writes sched_wakeup where somebody else
    // runs.
    lines.waking(1990, 1, WORKER, MAIN).switch(2000, 0, MAIN, "S", SERVER);
    lines.wake(3000, 0, SERVER, MAIN, "d..2", "sched_wakeup").switch(3000, 0, SERVER, "S", MAIN);
    let causes = lines.causes();
    assert!(causes.contains(&row("lock main > running worker", "", 1000)), "{causes:?}");
}

#[test]
fn a_new_thread_is_followed_to_its_maker() {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", SERVER);
    let fork = format!("task_newtask: pid={MAIN} comm=main clone_flags=1200011 oom_score_adj=0");
    lines
        .add(3000, 0, SERVER, "....", &fork)
        .switch(3500, 0, SERVER, "S", MAIN)
        .switch(5000, 0, MAIN, "S", IDLE);
    let model = lines.model();
    let spans =
        model.spans(&Question::Stretch { thread: "main".into(), from_ns: None, to_ns: None }).unwrap();
    let explained = model.explain(&spans[0]);
    let first = &explained.causes[0];
    let path: Vec<_> = first.path.iter().map(|hop| (hop.cause.name(), hop.tid)).collect();
    assert_eq!((path.as_slice(), first.ns), (&[("start", MAIN), ("running", SERVER)][..], 2_500_000));
}

#[test]
fn nothing_is_explained_where_events_are_missing() {
    let mut model = {
        let mut lines = Lines::default();
        lines.switch(500, 0, IDLE, "R", MAIN).slice(1000..9000, 0, MAIN, "work");
        lines.model()
    };
    model.losses = vec![(Timestamp(2_000_000), Timestamp(5_000_000))];
    let spans = model.spans(&Question::Slice("work".into())).unwrap();
    let explained = model.explain(&spans[0]);
    let parts: Vec<_> = explained.causes.iter().map(|part| (part.path[0].cause.name(), part.ns)).collect();
    assert_eq!(parts, [("running", 5_000_000), ("not_recorded", 3_000_000)]);
}

#[test]
fn without_scheduling_nothing_is_said_but_that() {
    let mut lines = Lines::default();
    lines.slice(1000..9000, 0, MAIN, "work");
    assert_eq!(lines.causes(), [row("not_recorded main", "scheduling of the thread", 8000)]);
    assert_eq!(lines.model().missing().len(), 1);
}

#[test]
fn what_is_not_there_is_named_with_what_is() {
    let mut lines = Lines::default();
    lines.slice(1000..9000, 0, MAIN, "inflate");
    let model = lines.model();
    let error = model.spans(&Question::Slice("inflatte".into())).unwrap_err().to_string();
    assert_eq!(error, "no slice is called \"inflatte\"; there is inflate");
    assert_eq!(model.spans(&Question::LaunchNumber(2)).unwrap_err().to_string(), "the trace has 0 launches");
}

#[test]
fn two_sets_differ_by_their_causes() {
    let of = |sleep: u64| {
        let mut lines = Lines::default();
        lines.switch(500, 0, IDLE, "R", MAIN).slice(1000..3000 + sleep, 0, MAIN, "work");
        lines.switch(2000, 0, MAIN, "S", IDLE).waking_by_interrupt(2000 + sleep, 0, MAIN);
        lines.switch(2000 + sleep, 0, IDLE, "R", MAIN);
        let model = lines.model();
        let spans = model.spans(&Question::Slice("work".into())).unwrap();
        vec![model.explain(&spans[0])]
    };
    let change = difference(&of(5000), &of(1000));
    assert_eq!((change.delta_ns, change.causes[0].delta_ns), (4_000_000.0, 4_000_000.0));
    assert_eq!(change.causes[0].path, "sleep: main");
    assert_eq!(change.causes.iter().map(|cause| cause.delta_ns).sum::<f64>(), change.delta_ns);
    assert_eq!(change.lines(1)[1], "your code +4.00 ms");
    assert!(change.lines(1)[2].contains("sleep: main"), "{:?}", change.lines(1));
}

/// Numbers that look random, and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Events of threads that wake each other in whatever order, some at equal times. The time from one to the
/// next is up to three steps, µs.
fn random_events(seed: u64, count: usize, step: u64) -> Lines {
    let mut random = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut lines = Lines::default();
    let mut on_cpu = [IDLE; 3];
    let mut us = 100;
    for _ in 0..count {
        us += random.below(4) * step;
        let cpu = random.below(3) as usize;
        let tid = [IDLE, MAIN, WORKER, SERVER, Tid(201), FEED][random.below(6) as usize];
        let state = ["S", "D", "R", "R+", "X"][random.below(5) as usize];
        match random.below(5) {
            0 | 1 => {
                lines.switch(us, cpu as u32, on_cpu[cpu], state, tid);
                on_cpu[cpu] = tid;
            }
            2 => _ = lines.waking(us, cpu as u32, on_cpu[cpu], tid.max(Tid(1))),
            3 => _ = lines.waking_by_interrupt(us, cpu as u32, tid.max(Tid(1))),
            _ => {
                let text = if random.below(2) == 0 { "B|100|x" } else { "E|100" };
                lines.marker(us, cpu as u32, on_cpu[cpu].max(Tid(1)), text);
            }
        }
    }
    lines
}

fn span_of(tid: Tid, begin: Timestamp, end: Timestamp) -> SpanAsked {
    let threads = vec![(tid, end)];
    SpanAsked { what: String::new(), begin, end, threads, launched: None, detail: String::new() }
}

/// A model of the time that is asked about tells the same of it as one of the whole timeline, and is smaller.
#[test]
fn a_part_is_explained_as_the_whole_explains_it() {
    for seed in 1..=60_u64 {
        let mut lines = random_events(seed, 6000, 400);
        let whole = lines.model();
        let (first, last) = whole.extent;
        let length = last - first;
        let threads = [MAIN, WORKER, SERVER];
        let parts = [(first + length / 3, length / 10), (first + length / 3 * 2, length / 20)];
        let spans: Vec<SpanAsked> = parts
            .iter()
            .flat_map(|(begin, ns)| threads.map(|tid| span_of(tid, *begin, *begin + *ns)))
            .collect();
        let part = lines
            .model_of(KeptTime::of_spans(spans.iter().map(|span| (span.begin, span.end)), threads.to_vec()));
        let sizes = [&whole, &part].map(|model| {
            let threads = model.threads.values();
            threads.map(|thread| thread.changes.len() + thread.slices.list.len()).sum::<usize>()
        });
        assert!(sizes[1] * 10 < sizes[0] * 7, "seed {seed}: {sizes:?}");
        for span in &spans {
            let causes = |model: &Model| format!("{:#?}", model.explain(span).causes);
            assert_eq!(causes(&part), causes(&whole), "seed {seed}: {span:?}");
        }
    }
}

/// Whatever the events are, in whatever order threads wake each other and at whatever equal times: the parts
/// of a span share no moment, and add up to it.
#[test]
fn parts_are_disjoint_and_cover_the_span() {
    for seed in 1..=300_u64 {
        let mut lines = random_events(seed, 200, 50);
        let mut model = lines.model();
        if seed % 3 == 0 {
            model.losses = vec![
                (Timestamp(2_000_000), Timestamp(2_400_000)),
                (Timestamp(3_000_000), Timestamp(3_100_000)),
            ];
        }
        for tid in [MAIN, WORKER, SERVER] {
            let (first, last) = model.extent;
            // Beyond both ends of the recording.
            let begin = first.saturating_sub(1000);
            let end = last + 1000;
            let explained = model.explain(&span_of(tid, begin, end));
            let mut intervals: Vec<(Timestamp, Timestamp)> =
                explained.causes.iter().flat_map(|part| part.intervals.iter().copied()).collect();
            intervals.sort_unstable();
            assert_eq!(intervals.first().map(|first| first.0), Some(begin), "seed {seed}, thread {tid}");
            assert_eq!(intervals.last().map(|last| last.1), Some(end), "seed {seed}, thread {tid}");
            for pair in intervals.windows(2) {
                assert_eq!(pair[0].1, pair[1].0, "seed {seed}, thread {tid}: {pair:?}");
            }
            assert_eq!(explained.causes.iter().map(|part| part.ns).sum::<u64>(), explained.duration);
        }
    }
}
