//! Simulates launches of an app: a kernel recording and a method trace of each, with the work that is the
//! same in every launch and takes a little more or less time. A launch may be slower in one method, by a
//! known time. Without files: times of launches alone, which spread as those of real ones do, log-normally,
//! with a slow one now and then.

use crate::art_writer::{Action, ArtTrace, Method, Record};
use crate::scenario::{COMMS, Era, KernelEvent, Moment, NAMES, PID, Random, START, Scenario};

/// One launch.
#[derive(Debug, Clone, Copy)]
pub struct Launch {
    /// Two launches with one seed are equal.
    pub seed: u64,
    /// Days since the first one.
    pub day: u64,
    /// How much longer [`SLOW_METHOD`] takes, percent.
    pub slow_percent: u64,
    /// How long everything takes, percent of the usual.
    pub pace_percent: u64,
}

/// The files of a launch.
pub struct LaunchFiles {
    pub dat: Vec<u8>,
    pub trace: Vec<u8>,
    /// How much longer the launch took for its slow method, ns.
    pub planted_ns: u64,
}

/// The method that is slower in a slow launch; it writes markers of this name.
pub const SLOW_METHOD: &str = "com.example.app.Feed.bind";

const DAY_NS: u64 = 86_400_000_000_000;
const THREADS: usize = 6;
/// Calls on the main thread, and on each other thread: 10,000 together, and twice as many records.
const MAIN_CALLS: usize = 5_000;
const OTHER_CALLS: usize = 1_000;
const MAX_DEPTH: usize = 8;
const CLASSES: [&str; 10] =
    ["Feed", "Main", "Image", "Cache", "Theme", "Parser", "Client", "Socket", "Index", "Logger"];
const VERBS: [&str; 10] =
    ["load", "bind", "measure", "decode", "resolve", "open", "query", "apply", "update", "close"];
/// The main thread calls the methods of the first half of the classes, the other threads those of the second.
const METHODS_OF_HALF: u64 = 50;
const SLOW: u32 = 1;
/// A method of so many writes markers.
const MARKED_EVERY: u32 = 5;
/// How often a thread loses its CPU between two records, percent.
const SLEEP_PERCENT: u64 = 39;
/// The phases of a launch on the main thread: the slice's name, and the share of the calls after which it
/// ends.
const PHASES: [(&str, usize); 5] = [
    ("bindApplication", 40),
    ("activityStart", 60),
    ("inflate", 85),
    ("activityResume", 90),
    ("Choreographer#doFrame 1", 100),
];
const SYSTEM_SERVER: i32 = 1_000;

impl Launch {
    /// Makes the files.
    pub fn make(&self) -> LaunchFiles {
        let scenario =
            Scenario { later: self.day * DAY_NS, length: 600_000_000, ..Scenario::new(0, Era::ArtMono) };
        let mut random = Random(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let pace = noise(&mut random, 0.02) * self.pace_percent as f64 / 100.0;
        let slower = 1.0 + self.slow_percent as f64 / 100.0;
        let mut threads: Vec<Thread<'_>> = (0..THREADS)
            .map(|index| Thread {
                scenario: &scenario,
                index: index as u32,
                random: Random(random.range(1, u64::MAX)),
                pace,
                slower,
                planted: 0.0,
                now: START + 2_000_000 + 300_000 * index as u64,
                cpu: 0,
                moments: Vec::new(),
                records: Vec::new(),
            })
            .collect();
        threads.iter_mut().for_each(Thread::live);
        let planted_ns = threads.iter().map(|thread| thread.planted as u64).sum();
        let mut moments = Vec::new();
        let mut records = Vec::new();
        for mut thread in threads {
            moments.append(&mut thread.moments);
            records.append(&mut thread.records);
        }
        moments.sort_by_key(|moment| moment.ts);
        records.sort_by_key(|(ts, _)| *ts);
        let method = |class: &str, verb: &&str| Method::new(&format!("com.example.app.{class}"), verb);
        let trace = ArtTrace {
            start_us: scenario.start_us(),
            elapsed_us: u64::from(scenario.wall_us(START + scenario.length)),
            pid: PID as u32,
            threads: (0..THREADS).map(|i| (scenario.trace_id(i as u32), NAMES[i].to_owned())).collect(),
            methods: CLASSES
                .iter()
                .flat_map(|class| VERBS.iter().map(move |verb| method(class, verb)))
                .collect(),
            records: records.into_iter().map(|(_, record)| record).collect(),
            ..ArtTrace::default()
        };
        LaunchFiles { dat: scenario.dat(&moments), trace: trace.to_bytes(), planted_ns }
    }
}

/// A factor near 1, about normally distributed with this deviation.
fn noise(random: &mut Random, deviation: f64) -> f64 {
    let sum: u64 = (0..12).map(|_| random.range(0, 1_000_000)).sum();
    1.0 + deviation * (sum as f64 / 1e6 - 6.0)
}

fn name_of(method: u32) -> String {
    let class = CLASSES[method as usize / 10];
    let verb = VERBS[method as usize % 10];
    format!("com.example.app.{class}.{verb}")
}

struct Thread<'s> {
    scenario: &'s Scenario,
    index: u32,
    random: Random,
    /// How long everything takes; and the slow method beside that.
    pace: f64,
    slower: f64,
    /// The time that the slow method took longer, ns.
    planted: f64,
    now: u64,
    /// The thread's CPU time, ns.
    cpu: u64,
    moments: Vec<Moment>,
    records: Vec<(u64, Record)>,
}

impl Thread<'_> {
    fn tid(&self) -> i32 {
        PID + self.index as i32 * 3
    }

    fn live(&mut self) {
        let is_main = self.index == 0;
        if is_main {
            self.marker(&format!("S|{SYSTEM_SERVER}|launching: com.example.app|1"));
            self.now += 400_000;
        }
        self.switch(true);
        let calls = if is_main { MAIN_CALLS } else { OTHER_CALLS };
        // The same calls in every launch.
        let mut plan = Random(77 + u64::from(self.index));
        let mut open = Vec::new();
        let mut called = 0;
        let mut phases = PHASES.iter().filter(|_| is_main);
        let mut phase = None;
        while called < calls || !open.is_empty() {
            if open.is_empty() && phase.is_none_or(|(_, end)| called * 100 >= end * calls) {
                self.end_phase(phase);
                phase = phases.next().copied();
                if let Some((name, _)) = phase {
                    self.marker(&format!("B|{PID}|{name}"));
                }
            }
            let may_call = called < calls && open.len() < MAX_DEPTH;
            if may_call && (open.is_empty() || plan.chance(50)) {
                let method = plan.range(0, METHODS_OF_HALF) as u32;
                let method = if is_main { method } else { method + METHODS_OF_HALF as u32 };
                self.record(method, Action::Enter);
                open.push(method);
                called += 1;
            } else if let Some(method) = open.pop() {
                self.record(method, Action::Exit);
            }
            self.run(open.last().copied());
        }
        self.end_phase(phase);
        if is_main {
            self.marker(&format!("F|{SYSTEM_SERVER}|launching: com.example.app|1"));
        }
        self.switch(false);
    }

    fn end_phase(&mut self, phase: Option<(&str, usize)>) {
        if phase.is_some() {
            self.marker(&format!("E|{PID}"));
            self.now += 1_000;
        }
    }

    /// Begins or ends a call. Markers are within the call.
    fn record(&mut self, method: u32, action: Action) {
        let is_marked = method % MARKED_EVERY == SLOW % MARKED_EVERY;
        if is_marked && action == Action::Exit {
            self.marker(&format!("E|{PID}"));
            self.now += 500;
        }
        let record = Record {
            thread: self.scenario.trace_id(self.index),
            method,
            action,
            cpu_us: (self.cpu / 1_000) as u32,
            wall_us: self.scenario.wall_us(self.now),
        };
        self.records.push((self.now, record));
        if is_marked && action == Action::Enter {
            self.now += 500;
            self.marker(&format!("B|{PID}|{}", name_of(method)));
        }
    }

    /// Works for a while in the innermost method, and may lose the CPU.
    fn run(&mut self, method: Option<u32>) {
        let usual = match method {
            Some(SLOW) => 150_000.0,
            Some(method) => 3_000.0 + f64::from(method * 7_919 % 31) * 1_000.0,
            None => 4_000.0,
        };
        let ns = usual * self.pace * (0.7 + self.random.range(0, 600) as f64 / 1e3);
        let longer = if method == Some(SLOW) { ns * (self.slower - 1.0) } else { 0.0 };
        self.planted += longer;
        let ns = (ns + longer) as u64;
        self.now += ns;
        self.cpu += ns;
        if self.random.chance(SLEEP_PERCENT) {
            self.switch(false);
            self.now += (self.pace * self.random.range(5_000, 25_000) as f64) as u64;
            self.switch(true);
        }
    }

    fn switch(&mut self, to_me: bool) {
        let me = (self.tid(), COMMS[self.index as usize].to_owned());
        let idle = (0, format!("swapper/{}", self.index));
        let (tid, prev, next) = if to_me { (0, idle, me) } else { (me.0, me, idle) };
        self.moment(KernelEvent::Switch { prev, next }, tid);
        self.now += 500;
    }

    fn marker(&mut self, text: &str) {
        self.moment(KernelEvent::Marker(text.to_owned()), self.tid());
    }

    fn moment(&mut self, event: KernelEvent, tid: i32) {
        self.moments.push(Moment { ts: self.now, cpu: self.index, tid, event });
    }
}

/// A small generator of pseudo-random numbers (SplitMix64). The same seed gives the same numbers.
pub struct NoiseSource(pub u64);

impl NoiseSource {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number above 0 and at most 1.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// A number of the standard normal distribution (Box and Muller).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// How launches spread.
#[derive(Clone, Copy)]
pub struct Spread {
    /// The standard deviation of a launch's logarithm: 0.025 is 2.5 %.
    pub deviation: f64,
    /// The share of launches that take 10 to 60 % longer than they would.
    pub outliers: f64,
}

/// The spread of the tests: 2.5 %, and one slow launch of 25.
pub const USUAL: Spread = Spread { deviation: 0.025, outliers: 0.04 };

/// The times of `runs` launches with this median, ns.
pub fn launches(source: &mut NoiseSource, runs: usize, median_ns: f64, spread: Spread) -> Vec<u64> {
    let launch = |source: &mut NoiseSource| {
        let usual = median_ns * (spread.deviation * source.normal()).exp();
        let is_slow = source.unit() <= spread.outliers;
        let slow = 1.1 + 0.5 * source.unit();
        (if is_slow { usual * slow } else { usual }) as u64
    };
    (0..runs).map(|_| launch(source)).collect()
}
