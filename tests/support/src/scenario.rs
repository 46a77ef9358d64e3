//! Simulates a device whose clocks, threads and calls are known exactly, and writes what two recorders would
//! have recorded of it at the same time: a kernel recording (a trace.dat with clock snapshots) and a method
//! trace.

use std::fmt::Write as _;

use serde_json::json;

use crate::art_writer::{Action, ArtTrace, Method, Record};
use crate::dat_writer::{DatFile, RingBuffer, common};
use crate::kernel_pages::KernelPages;

/// A generator of pseudo-random numbers (xorshift) that yields the same numbers in every run.
pub struct Random(pub u64);

impl Random {
    /// A number from `from` up to but not including `to`.
    pub fn range(&mut self, from: u64, to: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        from + (self.0 >> 11) % (to - from).max(1)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.range(0, 100) < percent
    }
}

/// Which runtime writes the method trace, and with which clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    Dalvik,
    ArtMono,
    ArtCounter,
    Art14,
}

/// A simulated device and app. Times are ns of BOOTTIME, unless their comment names another clock.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub seed: u64,
    pub era: Era,
    /// How much later than usual the wall clock says that it is, ns.
    pub later: u64,
    /// How long the device had been suspended before the trace, ns.
    pub suspended: u64,
    /// When the device is suspended during the trace, and for how long, ns.
    pub suspend: Option<(u64, u64)>,
    /// When somebody sets the wall clock, and by how much, ns.
    pub step: Option<(u64, i64)>,
    /// Whether methods write markers.
    pub markers: bool,
    /// `None` where the CPU tells its counter's frequency, as on arm64. Elsewhere the runtime measures the
    /// frequency, with this error, ppm.
    pub hz_off_ppm: Option<i64>,
    /// How much the counter had counted at boot, ns.
    pub counter_ahead: u64,
    pub threads: u32,
    /// The length of the trace, ns.
    pub length: u64,
    /// ns between clock snapshots.
    pub snapshot_every: u64,
    /// User space may not read the counter, so the snapshots lack it.
    pub counter_hidden: bool,
    /// The kernel records in CLOCK_MONOTONIC, not in CLOCK_BOOTTIME.
    pub records_mono: bool,
    /// Every thread only calls one method, at these times apart (ns), and never sleeps.
    pub period: Option<u64>,
}

/// When the trace begins: BOOTTIME, ns.
pub const START: u64 = 5_000_000_000_000;
const REALTIME_AT_BOOT: u64 = 1_790_000_000_000_000_000;
/// arm64's usual frequency, Hz.
const HZ: u64 = 19_200_000;
pub const PID: i32 = 21_000;
pub const NAMES: [&str; 6] = [
    "main",
    "RenderThread",
    "pool-1-thread-1",
    "pool-1-thread-1",
    "OkHttp ConnectionPool dispatcher",
    "com.example.app.Loader",
];
pub const COMMS: [&str; 6] = [
    "com.example.app",
    "RenderThread",
    "pool-1-thread-1",
    "pool-1-thread-1",
    "OkHttp Connecti",
    "mple.app.Loader",
];
const METHODS: [&str; 4] = ["onCreate", "inflate", "measure", "draw"];

/// One simulated moment that the kernel records.
pub struct Moment {
    pub ts: u64,
    pub cpu: u32,
    pub tid: i32,
    pub event: KernelEvent,
}

pub enum KernelEvent {
    Switch { prev: (i32, String), next: (i32, String) },
    Marker(String),
}

/// The files that a scenario produces.
pub struct SimulatedFiles {
    pub dat: Vec<u8>,
    pub trace: Vec<u8>,
    /// The content of `trace`, for other writers.
    pub art: ArtTrace,
    /// Per thread: its kernel id, and the true times of its records in order.
    pub truth: Vec<(i32, Vec<u64>)>,
}

impl Scenario {
    pub fn new(seed: u64, era: Era) -> Scenario {
        Scenario {
            seed,
            era,
            later: 0,
            suspended: 30_000_000_000,
            suspend: None,
            step: None,
            markers: true,
            hz_off_ppm: None,
            counter_ahead: 3_456_789_012,
            threads: 6,
            length: 2_000_000_000,
            snapshot_every: 1_000_000_000,
            counter_hidden: false,
            records_mono: false,
            period: None,
        }
    }

    fn monotonic(&self, t: u64) -> u64 {
        let again = self.suspend.map_or(0, |(at, long)| t.saturating_sub(at).min(long));
        t - self.suspended - again
    }

    fn realtime(&self, t: u64) -> u64 {
        let step = self.step.filter(|(at, _)| t >= *at).map_or(0, |(_, by)| by);
        (t + REALTIME_AT_BOOT + self.later).wrapping_add_signed(step)
    }

    /// Ticks. The counter runs on while the device is suspended.
    fn counter(&self, t: u64) -> u64 {
        ((u128::from(t + self.counter_ahead)) * u128::from(HZ) / 1_000_000_000) as u64
    }

    /// The time that the runtime reads from its counter, ns.
    fn counter_ns(&self, t: u64) -> u64 {
        let ns = u128::from(self.counter(t)) * 1_000_000_000 / u128::from(HZ);
        (ns as i128 + ns as i128 * i128::from(self.hz_off_ppm.unwrap_or(0)) / 1_000_000) as u64
    }

    /// The runtime's start and the difference of an instant to it, µs.
    pub fn start_us(&self) -> u64 {
        (match self.era {
            Era::Dalvik => self.realtime(START),
            Era::ArtMono | Era::Art14 => self.monotonic(START),
            Era::ArtCounter => self.counter_ns(START),
        }) / 1_000
    }

    pub fn wall_us(&self, t: u64) -> u32 {
        let since = |clock: &dyn Fn(u64) -> u64| clock(t).wrapping_sub(clock(START)) as i64 / 1_000;
        (match self.era {
            Era::Dalvik => since(&|t| self.realtime(t)),
            Era::ArtMono => since(&|t| self.monotonic(t)),
            Era::ArtCounter | Era::Art14 => since(&|t| self.counter_ns(t)),
        }) as u32
    }

    /// The clocks as the product's recorder writes them, as JSON. The shape is the product's own: nobody else
    /// defines it.
    fn snapshots(&self) -> Vec<u8> {
        let from = START - 50_000_000;
        let to = START + self.length + 50_000_000;
        let mut times: Vec<u64> = (from..to).step_by(self.snapshot_every as usize).chain([to]).collect();
        times.retain(|t| self.suspend.is_none_or(|(at, long)| *t < at || *t > at + long));
        let snapshot = |t: u64| {
            json!({
                "realtime": self.realtime(t),
                "monotonic": self.monotonic(t),
                "monotonic_raw": self.monotonic(t),
                "boottime": t,
                "counter": (!self.counter_hidden).then(|| self.counter(t)),
                "ftrace": null,
                "took": 120,
            })
        };
        let all = json!({
            "complete": true,
            "counter_hz": self.hz_off_ppm.is_none().then_some(HZ),
            "ftrace_clock": if self.records_mono { "monotonic" } else { "boottime" },
            "list": times.into_iter().map(snapshot).collect::<Vec<_>>(),
        });
        all.to_string().into_bytes()
    }

    fn asleep_until(&self, t: u64) -> u64 {
        self.suspend.filter(|(at, long)| t >= *at && t < at + long).map_or(t, |(at, long)| at + long + 1_000)
    }

    pub fn make(&self) -> SimulatedFiles {
        let mut random = Random(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut moments = Vec::new();
        let mut records: Vec<(u64, Record)> = Vec::new();
        let mut truth = Vec::new();
        for index in 0..self.threads {
            let mut thread = Simulated {
                scenario: self,
                random: Random(random.range(1, u64::MAX)),
                index,
                tid: PID + index as i32 * 3,
                now: START - random.range(1_000_000, 5_000_000),
                cpu: 0,
                cpu_base: None,
                moments: Vec::new(),
                records: Vec::new(),
            };
            thread.live();
            truth.push((thread.tid, thread.records.iter().map(|(t, _)| *t).collect()));
            moments.append(&mut thread.moments);
            records.append(&mut thread.records);
        }
        moments.sort_by_key(|m| m.ts);
        records.sort_by_key(|(t, _)| *t);
        let method = |name: &&str| Method::new("com.example.app.Main", name);
        let trace = ArtTrace {
            dalvik: self.era == Era::Dalvik,
            start_us: self.start_us(),
            elapsed_us: u64::from(self.wall_us(START + self.length)),
            pid: PID as u32,
            threads: (0..self.threads)
                .map(|i| (self.trace_id(i), NAMES[i as usize % 6].to_owned()))
                .collect(),
            methods: METHODS.iter().map(method).collect(),
            records: records.into_iter().map(|(_, r)| r).collect(),
        };
        SimulatedFiles { dat: self.dat(&moments), trace: trace.to_bytes(), art: trace, truth }
    }

    pub fn trace_id(&self, index: u32) -> u16 {
        match self.era {
            Era::Dalvik | Era::ArtMono => (PID + index as i32 * 3) as u16,
            Era::ArtCounter | Era::Art14 => index as u16 + 1,
        }
    }

    /// The kernel recording: each thread has a CPU of its own.
    pub fn dat(&self, moments: &[Moment]) -> Vec<u8> {
        let mut file = DatFile::with_texts_of(&KernelPages::read("events"));
        let sched_switch = file.event_id("sched_switch");
        let print = file.event_id("print");
        let mut cpus: Vec<RingBuffer> = (0..self.threads).map(|_| RingBuffer::default()).collect();
        for moment in moments {
            let ts = if self.records_mono { self.monotonic(moment.ts) } else { moment.ts };
            cpus[moment.cpu as usize].event(ts, &moment.record(sched_switch, print));
        }
        let mut comms = String::new();
        let mut tgids = String::new();
        for index in 0..self.threads as usize {
            let tid = PID + index as i32 * 3;
            let _ = writeln!(comms, "{tid} {}", COMMS[index % 6]);
            let _ = writeln!(tgids, "{tid} {PID}");
        }
        file.saved_cmdlines = comms;
        file.options =
            vec![(OPTION_SAVED_TGIDS, tgids.into_bytes()), (OPTION_CLOCK_SNAPSHOTS, self.snapshots())];
        file.trace_clock = if self.records_mono { "[mono]" } else { "[boot]" }.into();
        file.cpus = cpus.into_iter().map(RingBuffer::into_pages).collect();
        file.to_bytes()
    }
}

/// gpuvis' number for `saved_tgids`.
const OPTION_SAVED_TGIDS: u16 = 32;
/// The product's own number for [`Scenario::snapshots`].
const OPTION_CLOCK_SNAPSHOTS: u16 = 0x7462;

impl Moment {
    /// The event as the kernel lays it out: see the `format` files of tests/golden/pages/events.zip.
    fn record(&self, sched_switch: u16, print: u16) -> Vec<u8> {
        match &self.event {
            KernelEvent::Switch { prev, next } => {
                let mut out = common(sched_switch, self.tid);
                // Priority 120; TASK_INTERRUPTIBLE.
                out.char_array(&prev.1, 16).i32(prev.0).i32(120).u64(1);
                out.char_array(&next.1, 16).i32(next.0).i32(120);
                out.0
            }
            KernelEvent::Marker(text) => {
                let mut out = common(print, self.tid);
                out.u64(0).raw(text.as_bytes()).raw(b"\n\0");
                out.0
            }
        }
    }
}

struct Simulated<'s> {
    scenario: &'s Scenario,
    random: Random,
    index: u32,
    tid: i32,
    now: u64,
    cpu: u64,
    cpu_base: Option<u64>,
    moments: Vec<Moment>,
    records: Vec<(u64, Record)>,
}

impl Simulated<'_> {
    /// Runs and sleeps in turns until the trace ends. The first and the last turn lie outside the method
    /// trace.
    fn live(&mut self) {
        if let Some(period) = self.scenario.period {
            return self.live_periodically(period);
        }
        let comm = COMMS[self.index as usize % 6].to_owned();
        let idle = (0, format!("swapper/{}", self.index));
        while self.now < START + self.scenario.length {
            self.now = self.scenario.asleep_until(self.now);
            let me = (self.tid, comm.clone());
            self.moment(KernelEvent::Switch { prev: idle.clone(), next: me.clone() }, 0);
            self.run(2_000);
            let traced = self.now > START && self.now + 3_000_000 < START + self.scenario.length;
            for _ in 0..self.random.range(1, 4) {
                self.call(0, traced);
            }
            self.run(2_000);
            let tid = self.tid;
            self.moment(KernelEvent::Switch { prev: me, next: idle.clone() }, tid);
            self.now += self.random.range(200_000, 6_000_000);
        }
    }

    fn live_periodically(&mut self, period: u64) {
        let deepest = METHODS.len() as u32 - 1;
        let first = START - 4_000_000 + u64::from(self.index) * 1_000;
        for at in (first..START + self.scenario.length).step_by(period as usize) {
            self.now = at;
            let traced = at > START && at + 4_000_000 < START + self.scenario.length;
            self.call_within(deepest, traced, 3_000);
        }
    }

    fn moment(&mut self, event: KernelEvent, tid: i32) {
        self.moments.push(Moment { ts: self.now, cpu: self.index, tid, event });
    }

    fn run(&mut self, most: u64) {
        let ns = self.random.range(most / 3, most);
        self.now += ns;
        self.cpu += ns;
    }

    fn record(&mut self, method: u32, action: Action) {
        let base = *self.cpu_base.get_or_insert(self.cpu);
        let record = Record {
            thread: self.scenario.trace_id(self.index),
            method,
            action,
            cpu_us: ((self.cpu - base) / 1_000) as u32,
            wall_us: self.scenario.wall_us(self.now),
        };
        self.records.push((self.now, record));
    }

    fn call(&mut self, depth: u32, traced: bool) {
        self.call_within(depth, traced, 40_000);
    }

    /// Calls a method that takes up to `most` ns without its callees.
    fn call_within(&mut self, depth: u32, traced: bool, most: u64) {
        if traced {
            self.record(depth, Action::Enter);
        }
        self.run(1_500);
        if self.scenario.markers {
            let text = format!("B|{PID}|com.example.app.Main.{}", METHODS[depth as usize]);
            self.moment(KernelEvent::Marker(text), self.tid);
        }
        self.run(most);
        if depth + 1 < METHODS.len() as u32 {
            for _ in 0..self.random.range(1, 3) {
                self.call(depth + 1, traced);
            }
        }
        if self.scenario.markers {
            self.moment(KernelEvent::Marker(format!("E|{PID}")), self.tid);
        }
        self.run(1_500);
        if traced {
            self.record(depth, Action::Exit);
        }
    }
}
