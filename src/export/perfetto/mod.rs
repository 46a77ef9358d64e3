//! Perfetto's trace format: what ui.perfetto.dev and trace_processor open.
//!
//! Defined by Perfetto's protos/perfetto/trace/*.proto. Times are written as BOOTTIME, the format's default; where
//! the timeline's clock is another that no snapshot ties to it, its readings stand in BOOTTIME's place, and a note
//! in the file says so.

mod bundle;
mod methods;
mod plan;
mod proto;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::bundle::{Cpu, Sched};
use self::methods::Methods;
use self::plan::Plan;
use self::proto::{double, message, string, uint};
use super::Out;
use super::background::Background;
use super::thread_names::ThreadNames;
use crate::clock::{Clock, Snapshots};
use crate::formats::{Event, EventType, EventTypeId, Head, ProcessInfo, Sink, ThreadInfo};
use crate::ftrace::limits::MAX_CPUS;
use crate::timeline::{Edge, InputSummary, MergeSummary, MethodId, MethodName, MethodThread, TimelineSink};

/// `trusted_packet_sequence_id` of all packets that need no sequence of their own.
const SEQUENCE: u64 = 1;
/// The track that says how the inputs were put together.
const NOTES_TRACK: u64 = 0x7b1d6e;

/// Appends a `TracePacket` that `fill` writes.
fn packet(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    message(out, 1, |out| {
        fill(out);
        uint(out, 10, SEQUENCE);
    });
}

/// Writes a timeline as a Perfetto trace.
pub struct PerfettoWriter {
    background: Background,
    out: Vec<u8>,
    kinds: Vec<(Plan, Option<Sched>)>,
    cpus: Vec<Option<Cpu>>,
    threads: ThreadNames,
    processes: BTreeMap<i32, KnownProcess>,
    /// Encoded on the writing thread, while the next edges are read.
    methods: Arc<Mutex<Methods>>,
    first_ts: u64,
    clock: Clock,
    left_out: Vec<String>,
}

#[derive(Default)]
struct KnownProcess {
    ppid: Option<i32>,
    name: Option<Vec<u8>>,
}

impl PerfettoWriter {
    /// Writes onto `out`.
    pub fn new(out: Out) -> PerfettoWriter {
        PerfettoWriter {
            background: Background::new(out),
            out: Vec::new(),
            kinds: Vec::new(),
            cpus: Vec::new(),
            threads: ThreadNames::default(),
            processes: BTreeMap::new(),
            methods: Arc::default(),
            first_ts: u64::MAX,
            clock: Clock::Boottime,
            left_out: Vec::new(),
        }
    }

    fn cpu(&mut self, number: u32) -> io::Result<&mut Cpu> {
        if number >= MAX_CPUS {
            return Err(io::Error::other(format!("CPU {number} is more than any machine has ({MAX_CPUS})")));
        }
        let index = number as usize;
        if self.cpus.len() <= index {
            self.cpus.resize_with(index + 1, || None);
        }
        Ok(self.cpus[index].get_or_insert_with(|| Cpu::new(number)))
    }

    fn methods(&self) -> MutexGuard<'_, Methods> {
        self.methods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `ProcessTree`, at the moment of the first event.
    fn process_tree(&mut self) {
        let mut processes: BTreeMap<i32, Option<i32>> =
            self.processes.keys().map(|pid| (*pid, None)).collect();
        let threads = self.threads.sorted();
        for (_, thread) in &threads {
            processes.extend(thread.tgid.map(|tgid| (tgid, None)));
        }
        if processes.is_empty() {
            return;
        }
        let ts = if self.first_ts == u64::MAX { 0 } else { self.first_ts };
        let (known, names) = (&self.processes, &self.threads);
        packet(&mut self.out, |out| {
            uint(out, 8, ts);
            message(out, 2, |out| {
                for pid in processes.keys() {
                    let process = known.get(pid);
                    let full = process.and_then(|p| p.name.as_deref());
                    let comm = names.get(*pid).and_then(|t| t.name.as_deref());
                    message(out, 1, |out| {
                        uint(out, 1, *pid as u64);
                        if let Some(ppid) = process.and_then(|p| p.ppid) {
                            uint(out, 2, ppid as u64);
                        }
                        if let Some(name) = full.or(comm) {
                            string(out, 3, name);
                        }
                        if full.is_none() && comm.is_some() {
                            uint(out, 9, 1);
                        }
                    });
                }
                for (tid, thread) in threads {
                    let Some(tgid) = thread.tgid else { continue };
                    message(out, 2, |out| {
                        uint(out, 1, tid as u64);
                        if let Some(name) = &thread.name {
                            string(out, 2, name);
                        }
                        uint(out, 3, tgid as u64);
                    });
                }
            });
        });
    }

    /// `FtraceStats`: losses are what changed between its two phases.
    fn stats(&mut self, phase: u64) {
        let cpus = &self.cpus;
        packet(&mut self.out, |out| {
            message(out, 34, |out| {
                uint(out, 1, phase);
                for (number, cpu) in cpus.iter().enumerate() {
                    let Some(cpu) = cpu else { continue };
                    let (events, lost) = if phase == 1 { (0, 0) } else { (cpu.events, cpu.lost) };
                    message(out, 2, |out| {
                        uint(out, 1, number as u64);
                        uint(out, 3, lost);
                        double(out, 7, 0.0);
                        uint(out, 9, events);
                    });
                }
            });
        });
    }

    /// One instant for each input, with how it was placed.
    fn notes(&mut self, outcome: &MergeSummary) {
        let first = if self.first_ts == u64::MAX { 0 } else { self.first_ts };
        packet(&mut self.out, |out| {
            message(out, 60, |out| {
                uint(out, 1, NOTES_TRACK);
                string(out, 2, b"tracebridge: inputs and their clocks");
            });
        });
        let left_out = self.left_out.join(" ");
        for input in &outcome.inputs {
            packet(&mut self.out, |out| {
                uint(out, 8, first);
                message(out, 11, |out| {
                    uint(out, 9, 3);
                    uint(out, 11, NOTES_TRACK);
                    string(out, 23, format!("{}: {}", input.name, input.verdict.name()).as_bytes());
                    note(out, input);
                    annotate(out, "timeline clock", self.clock.name());
                    if !left_out.is_empty() {
                        annotate(out, "fields without a place in this format", &left_out);
                    }
                });
            });
        }
    }
}

fn annotate(out: &mut Vec<u8>, name: &str, value: &str) {
    message(out, 4, |out| {
        string(out, 10, name.as_bytes());
        string(out, 6, value.as_bytes());
    });
}

fn note(out: &mut Vec<u8>, input: &InputSummary) {
    annotate(out, "format", &input.format);
    annotate(out, "clock", input.clock.name());
    annotate(out, "why", &input.why);
    annotate(out, "offset_ns", &input.offset_ns.to_string());
    for (name, residual) in
        [("residual_median_ns", input.residual_median_ns), ("residual_p99_ns", input.residual_p99_ns)]
    {
        if let Some(ns) = residual {
            annotate(out, name, &ns.to_string());
        }
    }
}

/// `ClockSnapshot`s with the ids of builtin_clock.proto.
fn clock_snapshots(out: &mut Vec<u8>, snapshots: &Snapshots) {
    for snapshot in &snapshots.list {
        packet(out, |out| {
            uint(out, 8, snapshot.boottime);
            message(out, 6, |out| {
                let clocks = [
                    (6, snapshot.boottime),
                    (1, snapshot.realtime),
                    (3, snapshot.monotonic),
                    (5, snapshot.monotonic_raw),
                ];
                for (id, reading) in clocks.into_iter().filter(|(_, reading)| *reading > 0) {
                    message(out, 1, |out| {
                        uint(out, 1, id);
                        uint(out, 2, reading);
                    });
                }
                uint(out, 2, 6);
            });
        });
    }
}

impl Sink for PerfettoWriter {
    fn head(&mut self, head: &Head) -> io::Result<()> {
        self.clock = head.clock;
        if head.clock == Clock::Boottime {
            clock_snapshots(&mut self.out, &head.snapshots);
        }
        packet(&mut self.out, |out| {
            message(out, 45, |out| {
                if let Some(machine) = &head.machine {
                    utsname(out, machine);
                }
                let version = concat!("tracebridge ", env!("CARGO_PKG_VERSION"));
                string(out, 4, version.as_bytes());
                if let Some(cpus) = head.cpus {
                    uint(out, 8, u64::from(cpus));
                }
            });
        });
        Ok(())
    }

    fn event_type(&mut self, id: EventTypeId, kind: &EventType) -> io::Result<()> {
        if id.0 as usize != self.kinds.len() {
            return Err(io::Error::other(format!("kind {} out of order", id.0)));
        }
        let plan = Plan::new(kind);
        for field in plan.left_out(kind) {
            self.left_out.push(format!("{}.{field}", kind.name));
        }
        self.kinds.push((plan, Sched::new(kind)));
        Ok(())
    }

    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        self.threads.learn(thread.tid, thread.tgid, thread.name);
        Ok(())
    }

    fn process(&mut self, process: &ProcessInfo<'_>) -> io::Result<()> {
        let known = self.processes.entry(process.pid).or_default();
        known.ppid = process.ppid.or(known.ppid);
        if let Some(name) = process.name {
            known.name = Some(name.to_vec());
        }
        Ok(())
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        self.first_ts = self.first_ts.min(event.ts);
        if event.comm.is_some() || event.tgid.is_some() {
            self.threads.learn(event.tid, event.tgid, event.comm);
        }
        self.cpu(event.cpu)?;
        let (Some((plan, sched)), Some(Some(cpu))) =
            (self.kinds.get(event.kind.0 as usize), self.cpus.get_mut(event.cpu as usize))
        else {
            return Err(io::Error::other(format!("event of kind {} that was not announced", event.kind.0)));
        };
        cpu.event(&mut self.out, event, kind, plan, sched.as_ref());
        self.background.offer(&mut self.out)
    }

    fn lost(&mut self, cpu: u32, count: Option<u64>) -> io::Result<()> {
        let mut out = std::mem::take(&mut self.out);
        let result = self.cpu(cpu).map(|cpu| cpu.lost(&mut out, count));
        self.out = out;
        result
    }
}

impl TimelineSink for PerfettoWriter {
    fn method(&mut self, id: MethodId, name: &MethodName<'_>) -> io::Result<()> {
        self.methods().method(id.0 as usize, name);
        Ok(())
    }

    fn method_thread(&mut self, thread: &MethodThread) -> io::Result<()> {
        self.methods().thread(thread);
        if let Some(tid) = thread.tid {
            // The full name is better than the kernel's 15 characters, but only the kernel's is certain.
            self.threads.learn(tid, thread.tgid, None);
        }
        Ok(())
    }

    fn edges(&mut self, thread: u32, edges: &[Edge]) -> io::Result<()> {
        if let Some(first) = edges.first() {
            self.first_ts = self.first_ts.min(first.ts);
        }
        if !self.out.is_empty() {
            self.background.write(&mut self.out)?;
        }
        let (methods, edges) = (Arc::clone(&self.methods), edges.to_vec());
        self.background.make(Box::new(move |out| {
            let mut methods = methods.lock().unwrap_or_else(PoisonError::into_inner);
            methods.edges(out, thread, &edges);
        }))
    }

    fn finish(&mut self, outcome: &MergeSummary) -> io::Result<()> {
        for cpu in self.cpus.iter_mut().flatten() {
            cpu.close(&mut self.out);
        }
        for (number, count) in &outcome.report.cpus {
            let cpu = self.cpu(*number)?;
            cpu.lost = cpu.lost.max(count.lost);
        }
        self.stats(1);
        self.stats(2);
        self.process_tree();
        self.notes(outcome);
        self.background.write(&mut self.out)?;
        self.background.finish()
    }
}

/// `Utsname` from what `uname -a` prints: `Linux host 6.1.0 #1 SMP … x86_64`.
fn utsname(out: &mut Vec<u8>, machine: &str) {
    let words: Vec<&str> = machine.split_ascii_whitespace().collect();
    let [sysname, _, release, version @ .., arch] = words.as_slice() else { return };
    message(out, 1, |out| {
        string(out, 1, sysname.as_bytes());
        string(out, 2, version.join(" ").as_bytes());
        string(out, 3, release.as_bytes());
        string(out, 4, arch.as_bytes());
    });
}
