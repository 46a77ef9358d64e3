//! Reads the samples of a Perfetto trace: those of the data source `linux.perf` (`PerfSample`), which
//! Android's ProfilingManager records too, those of Chrome's older sampling profiler
//! (`StreamingProfilePacket`), and those of any profiler that states their counter (`StackSample`).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::io;

use rustc_hash::FxHashMap;

use super::callstacks::{CallstackResolver, InternedCallstacks};
use super::deobfuscation::{MappingText, PackageMappings};
use super::fields::{
    builtin_clock, perf_sample, perf_sample_sample_skip_reason as skip_reason, stack_sample_defaults,
    streaming_profile_packet as streaming, thread_descriptor, trace_packet, trace_packet_defaults,
};
use super::packets::PacketIndex;
use super::sample_events::{SampleCounter, SampleEvents};
use super::sequence_packet::SequencePacket;
use super::stack_samples::{InternedContexts, StackSampleParts, StatedStack};
use super::trace_streams::TraceStreams;
use super::track_clocks::{CustomClocks, MachineClocks, MachineTime, number};
use super::track_table::{DescribedThread, described_thread};
use super::wire::read::{WireValue, append_numbers, fields, last_value};
use crate::clock::{Clock, Timestamp};
use crate::formats::samples::{
    NO_STACK, Sample, SampleCollector, SampleRate, SampleReading, SampleRecording, SampleSink,
};
use crate::formats::{Event, EventType, Order, ProcessInfo, ReadReport, Recording, Sink, ThreadInfo};
use crate::ids::{Cpu, Pid, Tid};
use crate::progress::{self, Pass};

/// The types of packets that samples are read from.
pub(super) const SAMPLE_PACKETS: [u32; 3] =
    [trace_packet::PERF_SAMPLE, trace_packet::STREAMING_PROFILE_PACKET, trace_packet::STACK_SAMPLE];

/// So many samples wait until all earlier ones have come: CPUs write their packets in turns.
const WINDOW_SAMPLES: usize = 1 << 16;

/// The samples of a Perfetto trace.
pub(super) struct PerfettoSamples<'r, 'a> {
    /// The recording that the samples stand beside.
    pub(super) recording: &'r dyn Recording,
    pub(super) streams: &'r TraceStreams<'a>,
    /// The damage that was found while packets were decompressed.
    pub(super) unpacked: &'r ReadReport,
}

impl SampleRecording for PerfettoSamples<'_, '_> {
    fn format(&self) -> String {
        "samples of a Perfetto trace".to_owned()
    }

    fn clock(&self) -> Clock {
        self.recording.head().clock
    }

    fn facts(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn read(&self, sink: &mut dyn SampleSink) -> io::Result<SampleReading> {
        let head = self.recording.head();
        let streams = self.streams;
        let mut report = self.unpacked.clone();
        let index = PacketIndex::new(streams, &mut report);
        let mut names = SampledNames::default();
        index.send_names(&mut names)?;
        let symbols: Vec<&[u8]> = streams
            .packets()
            .filter_map(|packet| Some(last_value(packet.body, trace_packet::MODULE_SYMBOLS)?.bytes()))
            .collect();
        let texts: Vec<MappingText> =
            streams.packets().filter_map(|packet| MappingText::of_packet(packet.body)).collect();
        let mut reader = SamplePacketReader {
            clocks: MachineClocks::new(head.clock, &head.snapshots),
            custom: CustomClocks::default(),
            sequences: HashMap::new(),
            resolver: CallstackResolver::new(&symbols, PackageMappings::new(&texts)),
            collector: SampleCollector::default(),
            threads: FxHashMap::default(),
            events: SampleEvents::default(),
            names,
            waiting: BinaryHeap::new(),
            number: 0,
            counts: SkippedCounts::default(),
        };
        reader.collector.reading.report = report;
        reader.read_packets(streams, sink)?;
        let unnamed = reader.finish(sink)?;
        self.name_threads(unnamed)
    }
}

impl PerfettoSamples<'_, '_> {
    /// Names the threads that the trace does not list by the names that its kernel events have.
    fn name_threads(&self, mut reading: SampleReading) -> io::Result<SampleReading> {
        let unnamed = reading.tables.threads.iter().filter(|thread| thread.name.is_empty());
        let mut names = SampledNames {
            wanted: unnamed.map(|thread| (thread.tid, String::new())).collect(),
            ..SampledNames::default()
        };
        if names.wanted.is_empty() {
            return Ok(reading);
        }
        self.recording.read(Order::Any, &mut names)?;
        for thread in reading.tables.threads.iter_mut().filter(|thread| thread.name.is_empty()) {
            thread.name = names.wanted.get(&thread.tid).cloned().unwrap_or_default();
        }
        Ok(reading)
    }
}

/// Collects the names of threads.
#[derive(Default)]
struct SampledNames {
    /// Names of threads and of processes that the trace lists.
    threads: FxHashMap<Tid, String>,
    /// The processes of threads.
    processes_of: FxHashMap<Tid, Pid>,
    processes: FxHashMap<Pid, String>,
    /// The threads whose names kernel events are asked for.
    wanted: FxHashMap<Tid, String>,
}

impl SampledNames {
    /// The name that the trace lists: a thread's, or that of the process for its main thread.
    fn listed(&self, pid: Pid, tid: Tid) -> String {
        let main = || self.processes.get(&pid).filter(|_| tid.0 == pid.0);
        self.threads.get(&tid).or_else(main).cloned().unwrap_or_default()
    }
}

impl Sink for SampledNames {
    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        if let Some(pid) = thread.tgid {
            self.processes_of.insert(thread.tid, pid);
        }
        if let Some(name) = thread.name.filter(|name| !name.is_empty()) {
            self.threads.insert(thread.tid, String::from_utf8_lossy(name).into_owned());
        }
        Ok(())
    }

    fn process(&mut self, process: &ProcessInfo<'_>) -> io::Result<()> {
        if let Some(name) = process.name.filter(|name| !name.is_empty()) {
            self.processes.insert(process.pid, String::from_utf8_lossy(name).into_owned());
        }
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>, _: &EventType) -> io::Result<()> {
        if let Some(comm) = event.comm
            && let Some(name) = self.wanted.get_mut(&event.tid)
            && name.as_bytes() != comm
        {
            *name = String::from_utf8_lossy(comm).into_owned();
        }
        Ok(())
    }
}

/// Whether a `PerfSample` stands for a sample that the profiler dropped.
pub(super) fn is_dropped(sample: &[u8]) -> bool {
    let reason = last_value(sample, perf_sample::SAMPLE_SKIPPED_REASON).map(WireValue::number);
    reason.is_some_and(|reason| reason != skip_reason::NOT_IN_SCOPE)
}

/// Packets that say why there is no sample, and faults of samples.
#[derive(Default)]
struct SkippedCounts {
    /// Samples that the profiler dropped.
    skipped: u64,
    /// Samples that a filter left out.
    out_of_scope: u64,
    /// How often the profiler stopped because it used too much of the machine.
    stopped: u64,
    /// Samples whose stack the profiler could not unwind to its end.
    not_unwound: u64,
    /// Samples that need packets which were lost.
    unreadable: u64,
    /// Samples without a time.
    timeless: u64,
    /// Samples that name their process, and no thread of it.
    of_processes: u64,
    /// Samples that name neither.
    of_nobody: u64,
}

/// The state of a packet sequence.
#[derive(Default)]
struct SampledSequence<'a> {
    is_valid: bool,
    clock: Option<u64>,
    interned: InternedCallstacks<'a>,
    contexts: InternedContexts<'a>,
    counter: Option<SampleCounter>,
    /// Index of the event type of the samples, once there is one.
    event: Option<u32>,
    streaming_event: Option<u32>,
    /// The profiler of the stack samples, and the description of their counter.
    source: &'a [u8],
    descriptor: &'a [u8],
    /// By description of a counter: the event type of stack samples, and the factor of their weights.
    stack_events: HashMap<&'a [u8], (u32, u64)>,
    /// The thread of streaming samples, and the time to which their differences add, µs of MONOTONIC.
    thread: Option<DescribedThread>,
    reference_us: u64,
    /// By CPU: the last value of the counter that takes the samples.
    counted: HashMap<Option<Cpu>, u64>,
    /// By CPU: the sum of the times that samples of threads which stopped running have, ns.
    off_cpu: HashMap<Option<Cpu>, u64>,
}

impl<'a> SampledSequence<'a> {
    fn clear(&mut self) {
        let SampledSequence { thread, reference_us, counted, off_cpu, .. } = std::mem::take(self);
        let is_valid = true;
        *self = SampledSequence {
            is_valid,
            thread,
            reference_us,
            counted,
            off_cpu,
            ..SampledSequence::default()
        };
    }

    /// Takes over a `TracePacketDefaults`.
    fn set_defaults(&mut self, defaults: &'a [u8]) {
        let message = |field| last_value(defaults, field).map(WireValue::bytes);
        self.clock = number(defaults, trace_packet_defaults::TIMESTAMP_CLOCK_ID);
        self.counter = message(trace_packet_defaults::PERF_SAMPLE_DEFAULTS).map(SampleCounter::of_perf);
        self.event = None;
        let of_stacks = message(trace_packet_defaults::STACK_SAMPLE_DEFAULTS).unwrap_or_default();
        let part = |field| last_value(of_stacks, field).map_or(&[][..], WireValue::bytes);
        self.source = part(stack_sample_defaults::SOURCE);
        self.descriptor = part(stack_sample_defaults::PRIMARY_DESCRIPTOR);
        self.stack_events.clear();
    }
}

/// The fields of a packet that concern samples.
#[derive(Default)]
struct SamplePacketParts<'a> {
    head: SequencePacket<'a>,
    sample: Option<&'a [u8]>,
    streaming: Option<&'a [u8]>,
    stack_sample: Option<&'a [u8]>,
}

impl<'a> SamplePacketParts<'a> {
    fn new(packet: &'a [u8]) -> SamplePacketParts<'a> {
        let mut parts = SamplePacketParts::default();
        parts.head = SequencePacket::read(packet, |field, value| match field {
            trace_packet::PERF_SAMPLE => parts.sample = Some(value.bytes()),
            trace_packet::STREAMING_PROFILE_PACKET => parts.streaming = Some(value.bytes()),
            trace_packet::STACK_SAMPLE => parts.stack_sample = Some(value.bytes()),
            _ => {}
        });
        parts
    }
}

/// A sample that waits, by its time and its place in the file.
type WaitingSample = Reverse<(Timestamp, u64, PackedSample)>;

/// The rest of a sample: thread, event type, stack, CPU and period.
type PackedSample = (u32, u32, u32, Option<Cpu>, u64);

struct SamplePacketReader<'a> {
    clocks: MachineClocks,
    custom: CustomClocks,
    sequences: HashMap<u64, SampledSequence<'a>>,
    resolver: CallstackResolver<'a>,
    collector: SampleCollector,
    threads: FxHashMap<(Pid, Tid), u32>,
    events: SampleEvents,
    names: SampledNames,
    waiting: BinaryHeap<WaitingSample>,
    /// Number of samples so far.
    number: u64,
    counts: SkippedCounts,
}

impl<'a> SamplePacketReader<'a> {
    fn read_packets(&mut self, streams: &'a TraceStreams<'_>, sink: &mut dyn SampleSink) -> io::Result<()> {
        let _pass = Pass::begin("reading samples", streams.byte_len());
        for packet in streams.packets() {
            progress::advance(packet.body.len() as u64);
            self.packet(&SamplePacketParts::new(packet.body), sink)?;
        }
        Ok(())
    }

    fn packet(&mut self, packet: &SamplePacketParts<'a>, sink: &mut dyn SampleSink) -> io::Result<()> {
        let head = &packet.head;
        let state = self.sequences.entry(head.sequence).or_default();
        if head.is_cleared {
            state.clear();
        } else if head.is_after_loss {
            state.is_valid = false;
        }
        if let Some(defaults) = head.defaults {
            state.set_defaults(defaults);
        }
        if let Some(interned) = head.interned {
            state.interned.learn(interned);
            state.contexts.learn(interned);
        }
        if let Some(thread) = head.thread {
            state.thread = described_thread(thread);
            state.reference_us = number(thread, thread_descriptor::REFERENCE_TIMESTAMP_US).unwrap_or(0);
        }
        let clock = head.clock.or(state.clock).unwrap_or(builtin_clock::BOOTTIME);
        let is_readable = state.is_valid || !head.needs_state();
        if let Some(snapshot) = head.snapshot {
            self.custom.learn(head.sequence, snapshot);
        }
        // A clock whose timestamps are differences advances with every packet that can be read.
        let timestamp = head.timestamp.filter(|_| head.snapshot.is_none() && is_readable);
        let time = timestamp.and_then(|ts| self.custom.packet_time(head.sequence, clock, ts));
        match packet {
            SamplePacketParts { sample: Some(sample), .. } => {
                self.perf_sample(head.sequence, time, is_readable, sample, sink)
            }
            SamplePacketParts { streaming: None, stack_sample: None, .. } => Ok(()),
            _ if !is_readable => {
                self.counts.unreadable += 1;
                Ok(())
            }
            SamplePacketParts { streaming: Some(streaming), .. } => {
                self.streaming(head.sequence, streaming, sink)
            }
            SamplePacketParts { stack_sample: Some(sample), .. } => {
                self.stack_sample(head.sequence, time, sample, sink)
            }
        }
    }

    /// Reads a `PerfSample`: a sample, or the reason why there is none.
    fn perf_sample(
        &mut self,
        sequence: u64,
        time: Option<MachineTime>,
        is_readable: bool,
        message: &'a [u8],
        sink: &mut dyn SampleSink,
    ) -> io::Result<()> {
        let mut cpu = None;
        let mut pid = Pid::default();
        let mut tid = Tid::default();
        let mut callstack = None;
        let mut counted = None;
        let mut followers = Vec::new();
        let mut skipped = None;
        let mut is_sample = true;
        let mut is_not_unwound = false;
        for (field, value) in fields(message) {
            match field {
                perf_sample::CPU => cpu = Some(Cpu(value.number() as u32)),
                perf_sample::PID => pid = Pid(value.int32()),
                perf_sample::TID => tid = Tid(value.int32()),
                perf_sample::CALLSTACK_IID => callstack = Some(value.number()),
                perf_sample::TIMEBASE_COUNT => counted = Some(value.number()),
                perf_sample::FOLLOWER_COUNTS => append_numbers(&mut followers, value),
                perf_sample::UNWIND_ERROR => is_not_unwound = value.number() != 0,
                perf_sample::SAMPLE_SKIPPED_REASON => skipped = Some(value.number()),
                perf_sample::KERNEL_RECORDS_LOST => {
                    let lost = &mut self.collector.reading.losses.lost;
                    *lost = lost.saturating_add(value.number());
                    is_sample = false;
                }
                perf_sample::PRODUCER_EVENT => {
                    self.counts.stopped += 1;
                    is_sample = false;
                }
                _ => {}
            }
        }
        if !is_sample {
            return Ok(());
        }
        if !is_readable {
            self.counts.unreadable += 1;
            return Ok(());
        }
        let Some(state) = self.sequences.get_mut(&sequence) else { return Ok(()) };
        // The counter counts the events of a CPU, also those of samples that are left out.
        let before = counted.and_then(|count| state.counted.insert(cpu, count));
        let off_cpu = state.counter.as_ref().and_then(|counter| followers.get(counter.off_cpu_follower?));
        let off_cpu = off_cpu.map(|sum| sum.saturating_sub(state.off_cpu.insert(cpu, *sum).unwrap_or(0)));
        match skipped {
            Some(skip_reason::NOT_IN_SCOPE) => {
                self.counts.out_of_scope += 1;
                return Ok(());
            }
            Some(_) => {
                self.counts.skipped += 1;
                return Ok(());
            }
            None => {}
        }
        let Some(time) = time else {
            self.counts.timeless += 1;
            return Ok(());
        };
        self.counts.not_unwound += u64::from(is_not_unwound);
        let tables = &mut self.collector.reading.tables;
        let stack = callstack.map_or(NO_STACK, |iid| self.resolver.stack(tables, &mut state.interned, iid));
        let event = match state.event {
            Some(event) => event,
            None => {
                let counter = state.counter.get_or_insert_with(SampleCounter::unnamed);
                *state.event.insert(self.events.of_counter(&mut tables.events, counter))
            }
        };
        let event_type = &tables.events[event as usize];
        let period = match event_type.rate {
            _ if off_cpu.is_some() => off_cpu.unwrap_or(0),
            SampleRate::Period(period) => period,
            SampleRate::Hz(hz) if event_type.is_time => 1_000_000_000 / hz.max(1),
            SampleRate::Hz(_) => counted.map_or(1, |count| count.saturating_sub(before.unwrap_or(0))),
            SampleRate::Unknown => 1,
        };
        let time = self.clocks.convert(time);
        let thread = self.thread(pid, tid);
        self.push(Sample { time, thread, event, stack, cpu, period }, sink)
    }

    /// Reads a `StreamingProfilePacket`: the samples of one thread, each with the time since the one before.
    fn streaming(&mut self, sequence: u64, message: &'a [u8], sink: &mut dyn SampleSink) -> io::Result<()> {
        let mut callstacks = Vec::new();
        let mut deltas = Vec::new();
        for (field, value) in fields(message) {
            match field {
                streaming::CALLSTACK_IID => append_numbers(&mut callstacks, value),
                streaming::TIMESTAMP_DELTA_US => append_numbers(&mut deltas, value),
                _ => {}
            }
        }
        self.counts.timeless += callstacks.len().saturating_sub(deltas.len()) as u64;
        let Some(state) = self.sequences.get_mut(&sequence) else { return Ok(()) };
        let Some(thread) = state.thread else {
            self.counts.unreadable += callstacks.len() as u64;
            return Ok(());
        };
        let tables = &mut self.collector.reading.tables;
        let event = *state
            .streaming_event
            .get_or_insert_with(|| self.events.of_counter(&mut tables.events, &SampleCounter::streaming()));
        let mut samples = Vec::new();
        for (at, delta) in deltas.iter().enumerate() {
            state.reference_us = state.reference_us.wrapping_add(*delta);
            let Some(iid) = callstacks.get(at) else { continue };
            let ns = state.reference_us.saturating_mul(1_000);
            samples.push((ns, self.resolver.stack(tables, &mut state.interned, *iid)));
        }
        let thread = self.thread(thread.pid.unwrap_or_default(), thread.tid);
        for (ns, stack) in samples {
            let time = self.clocks.convert(MachineTime { clock: builtin_clock::MONOTONIC, ns });
            self.push(Sample { time, thread, event, stack, cpu: None, period: 1 }, sink)?;
        }
        Ok(())
    }

    /// Reads a `StackSample`.
    fn stack_sample(
        &mut self,
        sequence: u64,
        time: Option<MachineTime>,
        message: &'a [u8],
        sink: &mut dyn SampleSink,
    ) -> io::Result<()> {
        let Some(state) = self.sequences.get_mut(&sequence) else { return Ok(()) };
        let parts = StackSampleParts::new(message, &state.contexts);
        self.resolver.missing += parts.missing;
        let Some(time) = time else {
            self.counts.timeless += 1;
            return Ok(());
        };
        let (pid, tid) = match (parts.pid, parts.tid) {
            (Some(pid), Some(tid)) => (pid, tid),
            (None, Some(tid)) => (self.names.processes_of.get(&tid).copied().unwrap_or_default(), tid),
            (Some(pid), None) => {
                self.counts.of_processes += 1;
                (pid, Tid(pid.0))
            }
            (None, None) => {
                self.counts.of_nobody += 1;
                return Ok(());
            }
        };
        self.counts.not_unwound += u64::from(parts.is_not_unwound);
        let tables = &mut self.collector.reading.tables;
        let stack = match parts.stack {
            StatedStack::None => NO_STACK,
            StatedStack::Interned(iid) => self.resolver.stack(tables, &mut state.interned, iid),
            StatedStack::Inline(stack) => self.resolver.inline_stack(tables, stack),
        };
        let descriptor = parts.counter.unwrap_or(state.descriptor);
        let (event, factor) = *state.stack_events.entry(descriptor).or_insert_with(|| {
            let (counter, factor) = SampleCounter::of_stack_samples(descriptor, state.source);
            (self.events.of_counter(&mut tables.events, &counter), factor)
        });
        let period = parts.weight.map_or(1, |weight| weight.saturating_mul(factor));
        let time = self.clocks.convert(time);
        let thread = self.thread(pid, tid);
        self.push(Sample { time, thread, event, stack, cpu: parts.cpu, period }, sink)
    }

    fn thread(&mut self, pid: Pid, tid: Tid) -> u32 {
        if let Some(thread) = self.threads.get(&(pid, tid)) {
            return *thread;
        }
        let index = self.collector.add_thread(pid, tid, self.names.listed(pid, tid));
        self.threads.insert((pid, tid), index);
        index
    }

    /// Takes a sample; the oldest one that waits is passed on when too many do.
    fn push(&mut self, sample: Sample, sink: &mut dyn SampleSink) -> io::Result<()> {
        let Sample { time, thread, event, stack, cpu, period } = sample;
        self.waiting.push(Reverse((time, self.number, (thread, event, stack, cpu, period))));
        self.number += 1;
        if self.waiting.len() > WINDOW_SAMPLES { self.pass_on(sink) } else { Ok(()) }
    }

    fn pass_on(&mut self, sink: &mut dyn SampleSink) -> io::Result<()> {
        let Some(Reverse((time, _, (thread, event, stack, cpu, period)))) = self.waiting.pop() else {
            return Ok(());
        };
        self.collector.push(Sample { time, thread, event, stack, cpu, period }, sink)
    }

    fn finish(mut self, sink: &mut dyn SampleSink) -> io::Result<SampleReading> {
        while !self.waiting.is_empty() {
            self.pass_on(sink)?;
        }
        let SkippedCounts { skipped, out_of_scope, stopped, not_unwound, unreadable, timeless, .. } =
            self.counts;
        let SkippedCounts { of_processes, of_nobody, .. } = self.counts;
        let losses = &mut self.collector.reading.losses;
        for count in [skipped, unreadable, timeless, of_nobody] {
            losses.lost = losses.lost.saturating_add(count);
        }
        losses.throttled = stopped;
        let report = &mut self.collector.reading.report;
        let missing = self.resolver.missing;
        let lines = [
            (skipped, "samples were dropped by the profiler, which could not read or unwind them in time"),
            (unreadable, "samples depend on packets that were lost, and are not read"),
            (timeless, "samples have no time, and are not read"),
            (out_of_scope, "samples are of processes that the profiler was told to leave out"),
            (not_unwound, "samples have an incomplete stack: the profiler could not unwind it to its end"),
            (of_processes, "samples name a process and no thread of it: they count for its main thread"),
            (of_nobody, "samples name neither a thread nor a process, and are not read"),
            (missing, "callstacks, frames or mappings are missing in the trace"),
        ];
        let lines = lines.iter().filter(|(count, _)| *count > 0);
        report.notes.extend(lines.map(|(count, what)| format!("{count} {what}")));
        let unrelated: BTreeMap<u64, u64> = std::mem::take(&mut self.clocks.unrelated).into_iter().collect();
        for (clock, count) in unrelated {
            report.irregular.push(format!(
                "{count} times of samples are of clock {clock}, which no snapshot relates to the others"
            ));
        }
        self.collector.finish(sink)
    }
}
