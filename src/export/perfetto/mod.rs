//! Writes Perfetto's trace format, which ui.perfetto.dev and trace_processor open.
//!
//! Perfetto's protos/perfetto/trace/*.proto define the format. Times are written as BOOTTIME, the format's
//! default clock. If no clock snapshot relates the timeline's clock to BOOTTIME, the timeline's clock
//! readings are written in BOOTTIME's place, and an annotation in the file names the clock.
//!
//! The packets of Perfetto traces among the inputs pass through whole (`pass_through.rs`). Beside them only
//! the timeline's other inputs are written, in packet sequences and on tracks of their own.

mod bundle;
mod event_encoder;
mod json_packets;
mod kernel_events;
mod method_tracks;
mod own_tracks;
mod packet;
mod pass_through;
mod samples;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

pub(super) use self::json_packets::write_json;
use self::kernel_events::KernelEvents;
use self::method_tracks::{MethodBatch, MethodTrack, MethodTracks};
use self::own_tracks::OwnTracks;
use self::packet::{FreeIds, attribute, packet, timestamp};
use self::pass_through::PassedInputs;
pub(super) use self::pass_through::copy;
use self::samples::SampleWriter;
use super::Out;
use super::writer_thread::WriterThread;
use crate::art::Mapping;
use crate::clock::{Clock, Snapshots, Timestamp};
use crate::formats::input::Input;
use crate::formats::perfetto::LOSSES_ATTRIBUTE;
use crate::formats::perfetto::fields::{
    builtin_clock, clock_snapshot, clock_snapshot_clock, debug_annotation, ftrace_cpu_stats, ftrace_stats,
    ftrace_stats_phase, process_tree, process_tree_process, process_tree_thread, system_info, trace_packet,
    track_descriptor, track_event, track_event_type, utsname,
};
use crate::formats::perfetto::track_table::INPUTS_TRACK as INPUTS_TRACK_NAME;
use crate::formats::perfetto::wire::write::{double, int, message, string, uint};
use crate::formats::samples::{Sample, SampleTables};
use crate::formats::{
    Event, EventType, EventTypeId, FormatId, Head, Loss, Losses, ProcessInfo, Sink, ThreadInfo, Track,
    TrackEvent, has_format,
};
use crate::ftrace::print_fmt::Symbolizer;
use crate::ids::{Cpu, Pid};
use crate::text::file_name;
use crate::timeline::{Edge, InputSummary, MergeSummary, MethodId, MethodName, MethodThread, TimelineSink};
use crate::tracks::thread_names::ThreadNames;

/// The uuid of the track that shows how each input's clock was related to the timeline's clock.
const INPUTS_TRACK: u64 = 0x7b1d6e;

/// Writes a timeline as a Perfetto trace.
pub(super) struct PerfettoWriter<'a> {
    writer: WriterThread,
    out: Vec<u8>,
    kernel: KernelEvents,
    threads: ThreadNames,
    processes: BTreeMap<Pid, KnownProcess>,
    /// Shared with the writer thread, which encodes method slices while the next ones are read.
    methods: Arc<Mutex<MethodTracks>>,
    /// The method slices that `methods` does not have yet.
    batch: MethodBatch,
    /// The time of the first event; [`Timestamp::MAX`] as long as there is none.
    first_ts: Timestamp,
    clock: Clock,
    /// Fields of kernel events that Perfetto's messages cannot hold, each as `event.field`.
    left_out: Vec<String>,
    /// The Perfetto traces whose packets pass through.
    passed: Option<PassedInputs<'a>>,
    ids: FreeIds,
    own_tracks: OwnTracks,
    samples: SampleWriter,
}

#[derive(Default)]
struct KnownProcess {
    ppid: Option<Pid>,
    name: Option<Vec<u8>>,
}

impl<'a> PerfettoWriter<'a> {
    /// A writer that passes through the packets of the Perfetto traces among `inputs`. `mapping` gives
    /// obfuscated names in them back.
    pub(super) fn passing(out: Out, inputs: &'a [Input], mapping: Option<&'a Mapping<'a>>) -> Self {
        let writer = PerfettoWriter::new(out);
        if !inputs.iter().any(|input| has_format(input, FormatId::Perfetto)) {
            return writer;
        }
        let (passed, ids) = PassedInputs::new(inputs, mapping);
        let kernel = KernelEvents::new(ids.main_sequence);
        PerfettoWriter { passed: Some(passed), ids, kernel, ..writer }
    }

    pub(super) fn new(out: Out) -> Self {
        PerfettoWriter {
            writer: WriterThread::new(out),
            out: Vec::new(),
            kernel: KernelEvents::new(FreeIds::default().main_sequence),
            threads: ThreadNames::default(),
            processes: BTreeMap::new(),
            methods: Arc::default(),
            batch: MethodBatch::default(),
            first_ts: Timestamp::MAX,
            clock: Clock::Boottime,
            left_out: Vec::new(),
            passed: None,
            ids: FreeIds::default(),
            own_tracks: OwnTracks::default(),
            samples: SampleWriter::default(),
        }
    }

    /// The clock of the packets' timestamps, a value of the enum `BuiltinClock`. Where packets pass through,
    /// it is the timeline's clock, so that Perfetto relates it to the clocks of those packets.
    fn packet_clock(&self) -> u64 {
        match self.clock {
            Clock::Monotonic if self.passed.is_some() => builtin_clock::MONOTONIC,
            Clock::MonotonicRaw if self.passed.is_some() => builtin_clock::MONOTONIC_RAW,
            Clock::Realtime if self.passed.is_some() => builtin_clock::REALTIME,
            _ => builtin_clock::BOOTTIME,
        }
    }

    /// The time of the first event; the clock's begin if there is none.
    fn start(&self) -> Timestamp {
        if self.first_ts == Timestamp::MAX { Timestamp::MIN } else { self.first_ts }
    }

    /// Hands over the method slices that wait. They come before the bytes in `out`.
    fn write_methods(&mut self) -> io::Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let methods = Arc::clone(&self.methods);
        let batch = std::mem::take(&mut self.batch);
        self.writer.run(Box::new(move |out| {
            batch.write(&mut methods.lock().unwrap_or_else(PoisonError::into_inner), out);
        }))
    }

    #[inline]
    fn write_if_full(&mut self) -> io::Result<()> {
        self.write_methods()?;
        self.writer.write_if_full(&mut self.out)
    }

    /// Writes the `ProcessTree`, at the time of the first event.
    fn process_tree(&mut self) {
        let mut processes: BTreeMap<Pid, Option<Pid>> =
            self.processes.keys().map(|pid| (*pid, None)).collect();
        let threads = self.threads.sorted();
        for (_, thread) in &threads {
            processes.extend(thread.tgid.map(|tgid| (tgid, None)));
        }
        if processes.is_empty() {
            return;
        }
        let ts = self.start();
        let clock = self.packet_clock();
        let sequence = self.ids.main_sequence;
        let known = &self.processes;
        let names = &self.threads;
        packet(&mut self.out, sequence, |out| {
            timestamp(out, ts, clock);
            message(out, trace_packet::PROCESS_TREE, |out| {
                for pid in processes.keys() {
                    let process = known.get(pid);
                    let full = process.and_then(|p| p.name.as_deref());
                    let comm = names.get(pid.main_thread()).and_then(|t| t.name.as_deref());
                    message(out, process_tree::PROCESSES, |out| {
                        int(out, process_tree_process::PID, *pid);
                        if let Some(ppid) = process.and_then(|p| p.ppid) {
                            int(out, process_tree_process::PPID, ppid);
                        }
                        if let Some(name) = full.or(comm) {
                            string(out, process_tree_process::CMDLINE, name);
                        }
                        if full.is_none() && comm.is_some() {
                            uint(out, process_tree_process::CMDLINE_IS_COMM, 1);
                        }
                    });
                }
                for (tid, thread) in threads {
                    let Some(tgid) = thread.tgid else { continue };
                    message(out, process_tree::THREADS, |out| {
                        int(out, process_tree_thread::TID, tid);
                        if let Some(name) = &thread.name {
                            string(out, process_tree_thread::NAME, name);
                        }
                        int(out, process_tree_thread::TGID, tgid);
                    });
                }
            });
        });
    }

    /// Writes the `FtraceStats` of a phase: start or end of the recording. A reader takes the difference
    /// between the two phases as the recording's losses.
    fn stats(&mut self, phase: u64) {
        let cpus = &self.kernel.packets().cpus;
        packet(&mut self.out, self.ids.main_sequence, |out| {
            message(out, trace_packet::FTRACE_STATS, |out| {
                uint(out, ftrace_stats::PHASE, phase);
                for (number, cpu) in cpus.iter().enumerate() {
                    let Some(cpu) = cpu else { continue };
                    let (events, lost) = match phase {
                        ftrace_stats_phase::START_OF_TRACE => (0, 0),
                        _ => (cpu.events, cpu.lost),
                    };
                    message(out, ftrace_stats::CPU_STATS, |out| {
                        uint(out, ftrace_cpu_stats::CPU, number as u64);
                        uint(out, ftrace_cpu_stats::OVERRUN, lost);
                        double(out, ftrace_cpu_stats::NOW_TS, 0.0);
                        uint(out, ftrace_cpu_stats::READ_EVENTS, events);
                    });
                }
            });
        });
    }

    /// Writes how each input's clock was related to the timeline's clock: into the trace's metadata, and on a
    /// track of its own where a method trace was placed, which may be wrong.
    fn describe_inputs(&mut self, outcome: &MergeSummary) {
        let losses = self.own_losses(outcome).to_json();
        let sequence = self.ids.main_sequence;
        packet(&mut self.out, sequence, |out| {
            message(out, trace_packet::TRACE_ATTRIBUTES, |out| {
                attribute(out, "tracebridge.clock", self.clock.name());
                for input in &outcome.inputs {
                    let key = format!("tracebridge.{}", file_name(&input.name));
                    attribute(out, &key, &format!("{}: {}", input.verdict.name(), input.why));
                }
                losses.iter().for_each(|losses| attribute(out, LOSSES_ATTRIBUTE, losses));
                if !self.left_out.is_empty() {
                    attribute(out, "tracebridge.fields without a place", &self.left_out.join(" "));
                }
            });
        });
        if outcome.inputs.iter().any(|input| !input.header.is_empty()) {
            self.mark_inputs(outcome);
        }
    }

    /// The losses that no packet tells which passes through.
    fn own_losses(&self, outcome: &MergeSummary) -> Losses {
        let passes = |input: usize| self.passed.as_ref().is_some_and(|passed| passed.contains(input));
        let is_told = |loss: &Loss| match &loss.input {
            Some(name) => outcome.inputs.iter().position(|input| *input.name == **name).is_some_and(passes),
            None => outcome.inputs.len() == 1 && passes(0),
        };
        let mut own = Losses::default();
        outcome.report.losses.iter().filter(|loss| !is_told(loss)).for_each(|loss| own.add_loss(loss));
        own
    }

    /// Writes one instant for each input, annotated with how the input's clock was related to the timeline's
    /// clock.
    fn mark_inputs(&mut self, outcome: &MergeSummary) {
        let first = self.start();
        let clock = self.packet_clock();
        let sequence = self.ids.main_sequence;
        let track = self.ids.track(INPUTS_TRACK);
        packet(&mut self.out, sequence, |out| {
            message(out, trace_packet::TRACK_DESCRIPTOR, |out| {
                uint(out, track_descriptor::UUID, track);
                string(out, track_descriptor::NAME, INPUTS_TRACK_NAME.as_bytes());
            });
        });
        let left_out = self.left_out.join(" ");
        for input in &outcome.inputs {
            packet(&mut self.out, sequence, |out| {
                timestamp(out, first, clock);
                message(out, trace_packet::TRACK_EVENT, |out| {
                    uint(out, track_event::TYPE, track_event_type::INSTANT);
                    uint(out, track_event::TRACK_UUID, track);
                    let name = format!("{}: {}", file_name(&input.name), input.verdict.name());
                    string(out, track_event::NAME, name.as_bytes());
                    annotate_input(out, input);
                    annotate(out, "timeline clock", self.clock.name());
                    if !left_out.is_empty() {
                        annotate(out, "fields without a place in this format", &left_out);
                    }
                });
            });
        }
    }
}

/// Appends a `DebugAnnotation` to a `TrackEvent`.
fn annotate(out: &mut Vec<u8>, name: &str, value: &str) {
    message(out, track_event::DEBUG_ANNOTATIONS, |out| {
        string(out, debug_annotation::NAME, name.as_bytes());
        string(out, debug_annotation::STRING_VALUE, value.as_bytes());
    });
}

fn annotate_input(out: &mut Vec<u8>, input: &InputSummary) {
    annotate(out, "format", &input.format);
    annotate(out, "clock", input.clock.name());
    annotate(out, "why", &input.why.to_string());
    annotate(out, "offset_ns", &input.offset_ns.to_string());
    for (name, ns) in [
        ("error_ns", input.error_ns),
        ("residual_median_ns", input.residual_median_ns),
        ("residual_p99_ns", input.residual_p99_ns),
    ] {
        if let Some(ns) = ns {
            annotate(out, name, &ns.to_string());
        }
    }
}

/// Appends a `ClockSnapshot` for each snapshot.
fn clock_snapshots(out: &mut Vec<u8>, sequence: u64, snapshots: &Snapshots) {
    for snapshot in &snapshots.list {
        packet(out, sequence, |out| {
            uint(out, trace_packet::TIMESTAMP, snapshot.boottime);
            message(out, trace_packet::CLOCK_SNAPSHOT, |out| {
                let clocks = [
                    (builtin_clock::BOOTTIME, snapshot.boottime),
                    (builtin_clock::REALTIME, snapshot.realtime),
                    (builtin_clock::MONOTONIC, snapshot.monotonic),
                    (builtin_clock::MONOTONIC_RAW, snapshot.monotonic_raw),
                ];
                for (id, reading) in clocks.into_iter().filter(|(_, reading)| *reading > 0) {
                    message(out, clock_snapshot::CLOCKS, |out| {
                        uint(out, clock_snapshot_clock::CLOCK_ID, id);
                        uint(out, clock_snapshot_clock::TIMESTAMP, reading);
                    });
                }
                uint(out, clock_snapshot::PRIMARY_TRACE_CLOCK, builtin_clock::BOOTTIME);
            });
        });
    }
}

impl Sink for PerfettoWriter<'_> {
    fn head(&mut self, head: &Head) -> io::Result<()> {
        self.clock = head.clock;
        let passed = self.passed.as_ref();
        if head.clock == Clock::Boottime && !passed.is_some_and(|passed| passed.has_clock_snapshots) {
            clock_snapshots(&mut self.out, self.ids.main_sequence, &head.snapshots);
        }
        if passed.is_some() {
            // The traces that pass through describe their machine themselves.
            return Ok(());
        }
        packet(&mut self.out, self.ids.main_sequence, |out| {
            message(out, trace_packet::SYSTEM_INFO, |out| {
                if let Some(machine) = &head.machine {
                    write_utsname(out, machine);
                }
                let version = concat!("tracebridge ", env!("CARGO_PKG_VERSION"));
                string(out, system_info::TRACING_SERVICE_VERSION, version.as_bytes());
                if let Some(cpus) = head.cpus {
                    uint(out, system_info::NUM_CPUS, u64::from(cpus));
                }
            });
        });
        Ok(())
    }

    fn event_type(&mut self, id: EventTypeId, kind: &EventType) -> io::Result<()> {
        let left_out = self.kernel.add_type(id, kind)?;
        self.left_out.extend(left_out.into_iter().map(|field| format!("{}.{field}", kind.name)));
        Ok(())
    }

    fn kernel(&mut self, symbolizer: &Arc<Symbolizer>) -> io::Result<()> {
        self.kernel.packets().symbols.symbolizer.get_or_insert_with(|| Arc::clone(symbolizer));
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
    fn event(&mut self, event: &Event<'_>, _: &EventType) -> io::Result<()> {
        self.first_ts = self.first_ts.min(event.ts);
        if event.comm.is_some() || event.tgid.is_some() {
            self.threads.learn(event.tid, event.tgid, event.comm);
        }
        self.kernel.event(&mut self.writer, &mut self.out, event)?;
        self.write_if_full()
    }

    fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
        self.own_tracks.track(&mut self.out, &mut self.ids, track);
        Ok(())
    }

    fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        self.first_ts = self.first_ts.min(event.ts);
        let sequence = self.ids.main_sequence;
        let clock = self.packet_clock();
        self.own_tracks.event(&mut self.out, sequence, event, clock);
        self.write_if_full()
    }

    fn lost(&mut self, cpu: Cpu, count: Option<u64>) -> io::Result<()> {
        self.kernel.lost(&mut self.out, cpu, count)
    }
}

impl TimelineSink for PerfettoWriter<'_> {
    fn method(&mut self, id: MethodId, name: &MethodName<'_>) -> io::Result<()> {
        self.batch.method(id.0 as usize, name);
        Ok(())
    }

    fn method_thread(&mut self, thread: &MethodThread) -> io::Result<()> {
        let clock = self.packet_clock();
        self.batch.thread(thread.index, MethodTrack::new(thread, &mut self.ids, clock));
        if let Some(tid) = thread.tid {
            // The method trace has the thread's full name and the kernel only 15 characters of it. But
            // only the kernel's name is certain to belong to this thread.
            self.threads.learn(tid, thread.tgid, None);
        }
        Ok(())
    }

    fn edges(&mut self, thread: u32, edges: &[Edge]) -> io::Result<()> {
        if let Some(first) = edges.first() {
            self.first_ts = self.first_ts.min(first.ts);
        }
        if !self.out.is_empty() {
            self.write_methods()?;
            self.writer.write(&mut self.out)?;
        }
        if self.batch.edges(thread, edges) { self.write_methods() } else { Ok(()) }
    }

    fn sample_set(&mut self, _: u32, tables: &Arc<SampleTables>) -> io::Result<()> {
        self.samples.add_set(tables, &mut self.ids);
        Ok(())
    }

    fn sample(&mut self, set: u32, sample: &Sample) -> io::Result<()> {
        self.first_ts = self.first_ts.min(sample.time);
        let clock = self.packet_clock();
        self.samples.sample(&mut self.out, set, sample, clock);
        self.write_if_full()
    }

    fn finish(&mut self, outcome: &MergeSummary) -> io::Result<()> {
        self.kernel.stop_batches(&mut self.writer, &mut self.out)?;
        let mut kernel = self.kernel.packets();
        kernel.close(&mut self.out);
        for (number, count) in &outcome.report.cpus {
            let cpu = kernel.cpu(*number)?;
            cpu.lost = cpu.lost.max(count.lost);
        }
        drop(kernel);
        if self.first_ts == Timestamp::MAX {
            self.first_ts = outcome.report.first_ts.unwrap_or(Timestamp::MAX);
        }
        // The traces that pass through have these counts already, for the same CPUs.
        if self.passed.is_none() {
            self.stats(ftrace_stats_phase::START_OF_TRACE);
            self.stats(ftrace_stats_phase::END_OF_TRACE);
        }
        self.process_tree();
        self.describe_inputs(outcome);
        self.write_methods()?;
        self.writer.write(&mut self.out)?;
        if let Some(passed) = &self.passed {
            passed.write(&mut |out| self.writer.write(out))?;
        }
        self.writer.finish()
    }

    fn passes_through(&mut self, input: usize) -> bool {
        self.passed.as_ref().is_some_and(|passed| passed.contains(input))
    }
}

/// Appends a `Utsname`. `machine` is the output of `uname -a`: `Linux host 6.1.0 #1 SMP … x86_64`.
fn write_utsname(out: &mut Vec<u8>, machine: &str) {
    let words: Vec<&str> = machine.split_ascii_whitespace().collect();
    let [sysname, _, release, version @ .., arch] = words.as_slice() else { return };
    message(out, system_info::UTSNAME, |out| {
        string(out, utsname::SYSNAME, sysname.as_bytes());
        string(out, utsname::VERSION, version.join(" ").as_bytes());
        string(out, utsname::RELEASE, release.as_bytes());
        string(out, utsname::MACHINE, arch.as_bytes());
    });
}
