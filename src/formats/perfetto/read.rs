//! Reads the kernel events, the track events and the frames of a Perfetto trace, its processes and threads,
//! its clocks and its losses.
//!
//! Packets of other data sources are named and counted in the report ([`ReadReport::unread`]), but not read.

use std::collections::HashMap;
use std::io;

use super::bundle::{self, BundleEvent, EventContent, IndexedBundle};
use super::event_decoder::{DecodedValues, EventDecoder, sched_switch_value};
use super::fields::{ftrace_event, trace_packet};
use super::frame_timeline::PlacedFrame;
use super::packets::{PacketIndex, method_trace_payload};
use super::perf_samples::{PerfettoSamples, SAMPLE_PACKETS};
use super::trace_streams::{TraceStreams, unpack};
use super::track_clocks::{MachineClocks, machine_clock};
use super::track_event_order::{PlacedTrackEvent, TrackEventCursor};
use super::track_events::{self, TrackEvents};
use super::track_table::INPUTS_TRACK;
use super::waiting_events::{MAX_WAITING, WaitingEvents};
use super::wire::read::{WireValue, fields, last_value};
use crate::clock::Timestamp;
use crate::formats::input::Input;
use crate::formats::run_order::RunCursor;
use crate::formats::samples::SampleRecording;
use crate::formats::spill::RELEASE_BYTES;
use crate::formats::unpack_budget::{UnpackBudget, UnpackLimit};
use crate::formats::{
    ContainedTrace, Damage, Event, EventTypeId, FormatError, FormatId, Head, OpenedInput, Order, Payload,
    ReadReport, Recording, Release, Sink, TrackEvent, TrackEventKind, Value,
};
use crate::ids::{Cpu, Tid};
use crate::progress::{self, Pass};

/// The comm of a thread that the trace does not name; ftrace's own text has the same placeholder.
const UNKNOWN_COMM: &[u8] = b"<...>";

/// A Perfetto trace whose head is read.
pub struct PerfettoRecording<'a> {
    streams: TraceStreams<'a>,
    head: Head,
    /// The damage that was found while packets were decompressed.
    unpacked: ReadReport,
    /// Whether packets hold method traces. They are copied out when they are asked for.
    has_method_traces: bool,
    /// Whether packets hold samples.
    has_samples: bool,
    /// The most events that wait in memory for earlier ones.
    max_waiting: usize,
}

/// Opens `input` as a Perfetto trace.
pub(in crate::formats) fn open(input: &Input) -> Result<OpenedInput<'_>, FormatError> {
    let recording = PerfettoRecording::open_within(input, Some(input), &input.unpack_budget);
    Ok(OpenedInput::Recording(Box::new(recording)))
}

/// Opens a Perfetto trace and pushes all of it to `sink`.
///
/// # Errors
/// Only the sink's own errors, and [`io::ErrorKind::InvalidData`] where the file has more event types than
/// memory should hold. All other faults of the file are in the report's damage.
pub fn read(data: &[u8], order: Order, sink: &mut dyn Sink) -> io::Result<ReadReport> {
    PerfettoRecording::open(data).read(order, sink)
}

impl<'a> PerfettoRecording<'a> {
    /// Unpacks the compressed packets and indexes all packets without decoding events. Any bytes can be
    /// opened; each reading reports the faults of the file.
    pub fn open(data: &'a [u8]) -> PerfettoRecording<'a> {
        PerfettoRecording::open_within(data, None, &UnpackLimit::default().budget(data.len() as u64))
    }

    /// The same as [`PerfettoRecording::open`], with the owner of the bytes, and a limit on what the packets
    /// may unpack to.
    fn open_within(
        data: &'a [u8],
        release: Option<&'a dyn Release>,
        budget: &UnpackBudget,
    ) -> PerfettoRecording<'a> {
        let mut unpacked = ReadReport::default();
        let streams = unpack(data, release, budget, &mut unpacked);
        let index = PacketIndex::new(&streams, &mut ReadReport::default());
        let head = Head {
            format: FormatId::Perfetto.name().into(),
            clock: index.head_clock(),
            precision: 9,
            cpus: index.bundles.iter().map(|bundle| bundle.cpu.count_if_last()).max(),
            snapshots: index.snapshots,
            machine: None,
            device: None,
            android_sdk: index.android_sdk.filter(|sdk| *sdk > 0),
            facts: None,
        };
        let has_method_traces = !index.method_traces.is_empty();
        let has_samples = SAMPLE_PACKETS.iter().any(|kind| index.types.count_of(*kind) > 0);
        PerfettoRecording {
            streams,
            head,
            unpacked,
            has_method_traces,
            has_samples,
            max_waiting: MAX_WAITING,
        }
    }
}

/// The method trace in a packet, of which [`super::packets::method_trace_payload`] found the payload.
fn method_trace(packet: &[u8]) -> ContainedTrace {
    let pid = last_value(packet, trace_packet::TRUSTED_PID).map(WireValue::int32);
    let message =
        fields(packet).find_map(|(_, value)| Some((value.bytes(), method_trace_payload(value.bytes())?)));
    let (message, payload) = message.unwrap_or_default();
    let name =
        last_value(message, PROCESS_NAME).map(|name| String::from_utf8_lossy(name.bytes()).into_owned());
    let pid = pid.map(|pid| format!("pid {pid}"));
    let process: Vec<String> = pid.into_iter().chain(name).collect();
    ContainedTrace { process: process.join(", "), bytes: payload.to_vec(), damage: Vec::new() }
}

/// The field of `ArtMethodTraceLongRunning` with the name of the process.
const PROCESS_NAME: u32 = 2;

impl Recording for PerfettoRecording<'_> {
    fn head(&self) -> &Head {
        &self.head
    }

    fn method_traces(&self) -> Vec<ContainedTrace> {
        if !self.has_method_traces {
            return Vec::new();
        }
        let index = PacketIndex::new(&self.streams, &mut ReadReport::default());
        index.method_traces.iter().map(|packet| method_trace(packet)).collect()
    }

    fn samples(&self) -> Option<Box<dyn SampleRecording + '_>> {
        let PerfettoRecording { streams, unpacked, .. } = self;
        let samples = || PerfettoSamples { recording: self, streams, unpacked };
        self.has_samples.then(|| Box::new(samples()) as Box<dyn SampleRecording + '_>)
    }

    fn read(&self, order: Order, sink: &mut dyn Sink) -> io::Result<ReadReport> {
        sink.head(&self.head)?;
        let mut report = self.unpacked.clone();
        let index = PacketIndex::new(&self.streams, &mut report);
        index.send_names(sink)?;
        let mut clocks = MachineClocks::new(self.head.clock, &self.head.snapshots);
        let track_events = if index.has_tracks {
            track_events::read(&self.streams, index.track_descriptors(), &mut clocks)?
        } else {
            TrackEvents::default()
        };
        for track in &track_events.table.tracks {
            sink.track(&track.track())?;
        }
        let mut reader = PerfettoReader {
            sink,
            report,
            track_events: &track_events,
            on_tracks: TrackEventCursor::new(&track_events.events, &self.streams),
            next_frame: 0,
            read: 0,
            streams: &self.streams,
            decoder: EventDecoder::default(),
            order,
            running: HashMap::new(),
            unknown_prev: 0,
            bytes_per_event: 0,
            max_waiting: self.max_waiting,
        };
        reader.read_bundles(&index)?;
        Ok(reader.finish(&index, &clocks))
    }
}

/// The number of events between two reports of the progress.
const PROGRESS_STEP_EVENTS: usize = 1 << 12;

/// The thread that runs on a CPU at the current event.
#[derive(Clone, Copy)]
struct RunningThread<'a> {
    tid: Tid,
    comm: &'a [u8],
    prio: i32,
}

struct PerfettoReader<'s, 'a> {
    sink: &'s mut dyn Sink,
    report: ReadReport,
    decoder: EventDecoder,
    order: Order,
    /// By CPU.
    running: HashMap<Cpu, RunningThread<'a>>,
    track_events: &'s TrackEvents<'a>,
    on_tracks: TrackEventCursor<'s, 'a>,
    /// The number of the next frame.
    next_frame: usize,
    /// The bytes of packets that were read since memory was released.
    read: usize,
    streams: &'a TraceStreams<'a>,
    /// The number of compact switches whose previous thread is not known.
    unknown_prev: u64,
    /// The bytes of all bundles by the number of all events, for the progress.
    bytes_per_event: u64,
    /// The most events that wait in memory.
    max_waiting: usize,
}

/// The bytes of all bundles.
fn bytes_of(index: &PacketIndex<'_>) -> u64 {
    index.bundles.iter().map(|bundle| bundle.content.byte_len() as u64).sum()
}

impl<'a> PerfettoReader<'_, 'a> {
    fn read_bundles(&mut self, index: &PacketIndex<'a>) -> io::Result<()> {
        let broken =
            if self.order == Order::Any { self.read_as_filed(index)? } else { self.read_by_time(index)? };
        self.report.damage.extend(bundle::broken(broken));
        Ok(())
    }

    /// Sends all events in the order of the file, those of tracks last. Returns how many bundles are broken.
    fn read_as_filed(&mut self, index: &PacketIndex<'a>) -> io::Result<u32> {
        let mut events: Vec<BundleEvent<'a>> = Vec::new();
        let mut broken = 0;
        let pass = Pass::begin("reading bundles", bytes_of(index));
        for (number, bundle) in index.bundles.iter().enumerate() {
            let bytes = bundle.content.byte_len();
            self.learn_types(bundle)?;
            events.clear();
            broken += bundle::events(bundle, number as u32, &mut events);
            self.send_all(&events, index)?;
            progress::advance(bytes as u64);
            self.release_read(bytes);
        }
        drop(pass);
        self.send_tracks(None)?;
        Ok(broken)
    }

    /// Sends all events in the order of time, or markers alone so and the others as they come. Returns how
    /// many bundles are broken.
    fn read_by_time(&mut self, index: &PacketIndex<'a>) -> io::Result<u32> {
        let bytes = bytes_of(index);
        for bundle in &index.bundles {
            self.learn_types(bundle)?;
        }
        let bundles = index.bundles.iter().enumerate();
        let mut firsts: Vec<(Timestamp, usize)> =
            bundles.map(|(number, bundle)| (bundle.extent.first_ts, number)).collect();
        let count: u64 = index.bundles.iter().map(|bundle| bundle.extent.events).sum();
        firsts.sort_unstable();
        let on_tracks = self.track_events.events.count + self.track_events.frames.list.len() as u64;
        self.bytes_per_event = bytes / (count + on_tracks).max(1);
        let _pass = Pass::begin("reading events", bytes);
        let mut waiting = WaitingEvents::new(self.max_waiting);
        let mut broken = 0;
        for (at, (_, number)) in firsts.iter().enumerate() {
            let bundle = &index.bundles[*number];
            let list = waiting.list();
            let first = list.len();
            broken += bundle::events(bundle, *number as u32, list);
            if self.order == Order::Markers {
                let others: Vec<BundleEvent<'a>> =
                    list.extract_if(first.., |event| !event.is_marker()).collect();
                self.send_all(&others, index)?;
            }
            // No bundle after this one begins earlier.
            let until = firsts.get(at + 1).map(|(next, _)| *next);
            if let Some(until) = until.filter(|_| waiting.are_many()) {
                let events = waiting.take_before(until, self.streams);
                self.send_with_tracks(&events, index)?;
                self.release_read(if events.is_empty() { bundle.content.byte_len() } else { RELEASE_BYTES });
            }
        }
        let waiting = waiting.finish(self.streams)?;
        let mut in_order = RunCursor::new(&waiting, self.streams);
        loop {
            let events: Vec<BundleEvent<'a>> = in_order.by_ref().take(PROGRESS_STEP_EVENTS).collect();
            if events.is_empty() {
                break;
            }
            self.send_with_tracks(&events, index)?;
        }
        self.send_tracks(None)?;
        Ok(broken)
    }

    /// Adds the event types that the bundle describes.
    fn learn_types(&mut self, bundle: &IndexedBundle<'a>) -> io::Result<()> {
        bundle.describing.map_or(Ok(()), |bundle| self.decoder.learn(bundle, self.sink))
    }

    /// Sends the events of the trace's own tracks and its frames, by time; of one time in the order of the
    /// file. With `until`, those before that time.
    fn send_tracks(&mut self, until: Option<Timestamp>) -> io::Result<()> {
        let all = self.track_events;
        loop {
            let event_ts = self.on_tracks.next_key();
            let frame_ts = all.frames.list.get(self.next_frame).map(|frame| frame.ts);
            let first = event_ts.into_iter().chain(frame_ts).min();
            let Some(first) = first.filter(|first| until.is_none_or(|until| *first < until)) else {
                return Ok(());
            };
            if event_ts == Some(first) {
                self.track_event()?;
            } else {
                self.next_frame += 1;
                self.frame(self.next_frame - 1)?;
            }
        }
    }

    /// Sends kernel events in order, and the events of tracks between them. Those come behind the kernel's
    /// events of the same time.
    fn send_with_tracks(&mut self, events: &[BundleEvent<'a>], index: &PacketIndex<'a>) -> io::Result<()> {
        let mut rest = events;
        while let Some(first) = rest.first() {
            self.send_tracks(Some(first.ts))?;
            let until = self.next_track_ts().unwrap_or(Timestamp::MAX);
            let count = rest.iter().take_while(|event| event.ts <= until).count();
            self.send_all(&rest[..count], index)?;
            rest = &rest[count..];
        }
        Ok(())
    }

    /// The time of the next event of a track, or of the next frame.
    fn next_track_ts(&self) -> Option<Timestamp> {
        let frame = self.track_events.frames.list.get(self.next_frame).map(|frame| frame.ts);
        self.on_tracks.next_key().into_iter().chain(frame).min()
    }

    /// Releases memory when so many bytes of packets were read.
    fn release_read(&mut self, bytes: usize) {
        self.read += bytes;
        if self.read >= RELEASE_BYTES {
            self.read = 0;
            self.streams.release();
        }
    }

    fn track_event(&mut self) -> io::Result<()> {
        let Some(event) = self.on_tracks.next() else { return Ok(()) };
        let track = self.track_events.table.tracks.get(event.track.0 as usize);
        if track.is_some_and(|track| track.track().name == INPUTS_TRACK.as_bytes()) {
            return Ok(());
        }
        let counts = &mut self.report.track_events;
        match event.kind {
            TrackEventKind::Begin { .. } => counts.slices += 1,
            TrackEventKind::End => {}
            TrackEventKind::Instant { .. } => counts.instants += 1,
            TrackEventKind::Counter(_) => counts.counter_values += 1,
            TrackEventKind::Frame(_) => {}
        }
        self.report.cover(event.ts);
        let PlacedTrackEvent { ts, track, kind, thread_ns, flows } = event;
        self.sink.track_event(&TrackEvent { ts, track, kind, thread_ns, flows: &flows, args: &[] })
    }

    fn frame(&mut self, number: usize) -> io::Result<()> {
        let Some(placed) = self.track_events.frames.list.get(number) else { return Ok(()) };
        let PlacedFrame { ts, track, frame } = placed;
        self.report.track_events.frames += 1;
        self.report.cover(*ts);
        frame.end.iter().for_each(|end| self.report.cover(*end));
        let kind = TrackEventKind::Frame(frame);
        self.sink.track_event(&TrackEvent {
            ts: *ts,
            track: *track,
            kind,
            thread_ns: None,
            flows: &[],
            args: &[],
        })
    }

    fn send_all(&mut self, events: &[BundleEvent<'a>], index: &PacketIndex<'a>) -> io::Result<()> {
        let mut values = DecodedValues::new();
        for (number, event) in events.iter().enumerate() {
            if number % PROGRESS_STEP_EVENTS == PROGRESS_STEP_EVENTS - 1 {
                progress::advance(PROGRESS_STEP_EVENTS as u64 * self.bytes_per_event);
            }
            match event.content {
                EventContent::LostEvents => {
                    self.report.cpus.entry(event.cpu).or_default().add_loss(None);
                    self.sink.lost(event.cpu, None)?;
                }
                EventContent::Whole(message) => {
                    let number = index.bundles.get(event.bundle as usize).map(|bundle| bundle.symbols);
                    let symbols = number.and_then(|number| index.symbols.get(number as usize));
                    let symbols = symbols.filter(|symbols| !symbols.is_empty());
                    self.whole_event(event, message, &mut values, symbols)?;
                }
                EventContent::CompactSwitch { prev_state, next_tid, next_prio, next_comm } => {
                    let id = self.decoder.switch(self.sink)?;
                    let next = RunningThread { tid: next_tid, comm: next_comm, prio: next_prio };
                    let prev = self.running.insert(event.cpu, next);
                    self.unknown_prev += u64::from(prev.is_none());
                    let prev =
                        prev.unwrap_or(RunningThread { tid: Tid::UNKNOWN, comm: UNKNOWN_COMM, prio: 0 });
                    let list = [
                        Value::Str(prev.comm),
                        Value::Int(prev.tid.into()),
                        Value::Int(prev.prio.into()),
                        Value::Int(prev_state),
                        Value::Str(next_comm),
                        Value::Int(next_tid.into()),
                        Value::Int(next_prio.into()),
                    ];
                    self.send(event, id, prev.tid, 0, &list)?;
                }
                EventContent::CompactWaking { tid: woken, target_cpu, prio, comm, flags } => {
                    let id = self.decoder.waking(self.sink)?;
                    let tid = self.running.get(&event.cpu).map_or(Tid::UNKNOWN, |r| r.tid);
                    let success = 1;
                    let list = [
                        Value::Str(comm),
                        Value::Int(woken.into()),
                        Value::Int(prio.into()),
                        Value::Int(success),
                        Value::Int(target_cpu.into()),
                    ];
                    self.send(event, id, tid, flags, &list)?;
                }
            }
        }
        Ok(())
    }

    /// Decodes an `FtraceEvent`. The field that is none of the common fields holds the event's own message.
    fn whole_event(
        &mut self,
        event: &BundleEvent<'a>,
        message: &'a [u8],
        values: &mut DecodedValues<'a>,
        symbols: Option<&HashMap<u64, &'a [u8]>>,
    ) -> io::Result<()> {
        let mut tid = Tid::IDLE;
        let mut flags = 0;
        let mut body = None;
        for (number, value) in fields(message) {
            match number {
                ftrace_event::TIMESTAMP => {}
                ftrace_event::PID => tid = Tid(value.int32()),
                ftrace_event::COMMON_FLAGS => flags = value.number() as u8,
                number => body = Some((number, value.bytes())),
            }
        }
        let Some((number, body)) = body else {
            self.report.notes.push("an event without its message was left out".into());
            self.report.notes.dedup();
            return Ok(());
        };
        let names_its_type = number == ftrace_event::GENERIC;
        let is_needed = matches!(number, ftrace_event::PRINT | ftrace_event::SCHED_SWITCH);
        if self.order == Order::Markers && !is_needed && !names_its_type {
            self.running.entry(event.cpu).or_insert(RunningThread { tid, comm: UNKNOWN_COMM, prio: 0 });
            let id = self.decoder.typed(number, self.sink)?;
            return self.send(event, id, tid, flags, &[]);
        }
        let id = self.decoder.decode(number, body, values, symbols, self.sink)?;
        if number == ftrace_event::SCHED_SWITCH {
            let int = |at: usize| match values.list[at] {
                Value::Int(v) => v as i32,
                _ => 0,
            };
            let Value::Str(comm) = values.list[sched_switch_value::NEXT_COMM] else { return Ok(()) };
            let tid = Tid(int(sched_switch_value::NEXT_PID));
            let prio = int(sched_switch_value::NEXT_PRIO);
            self.running.insert(event.cpu, RunningThread { tid, comm, prio });
        } else {
            self.running.entry(event.cpu).or_insert(RunningThread { tid, comm: UNKNOWN_COMM, prio: 0 });
        }
        if let Some(at) = values.array_field {
            let array = values.array;
            let mut list = values.list;
            list[at] = Value::Bytes(&array[..values.array_len]);
            return self.send(event, id, tid, flags, &list[..values.len]);
        }
        self.send(event, id, tid, flags, &values.list[..values.len])
    }

    fn send(
        &mut self,
        event: &BundleEvent<'_>,
        id: EventTypeId,
        tid: Tid,
        flags: u8,
        list: &[Value<'_>],
    ) -> io::Result<()> {
        self.report.count(event.cpu, event.ts);
        // A switch names the previous thread, to which it belongs. Any other event belongs to the running
        // thread.
        let comm = match list {
            [Value::Str(prev), Value::Int(pid), .., Value::Int(_), Value::Int(_)]
                if *pid == i64::from(tid) =>
            {
                Some(*prev)
            }
            _ => self.running.get(&event.cpu).filter(|r| r.tid == tid).map(|r| r.comm),
        };
        let comm = comm.filter(|comm| tid.is_thread() && *comm != UNKNOWN_COMM);
        let event = Event {
            ts: event.ts,
            cpu: event.cpu,
            tid,
            kind: id,
            flags: flags.into(),
            preempt_count: 0,
            comm,
            tgid: None,
            payload: Payload::Values { values: list, text: None },
        };
        self.sink.event(&event, self.decoder.get(id))
    }

    fn finish(mut self, index: &PacketIndex<'_>, clocks: &MachineClocks) -> ReadReport {
        index.losses.report(&mut self.report);
        let mut note = |count: u64, what: &str| {
            if count > 0 {
                self.report.notes.push(format!("{count} {what}"));
            }
        };
        let events = self.track_events;
        let frames = &events.frames;
        note(frames.unfinished(), "frames of FrameTimeline do not end in the trace");
        note(
            frames.ends_alone,
            "ends of FrameTimeline's frames are left out: the trace has no begin of theirs",
        );
        note(
            frames.bad_times,
            "packets of FrameTimeline are left out: their time is negative or far too large",
        );
        note(
            events.table.too_deep,
            "tracks lie below too many others, or below themselves: nothing says to which thread or process they \
             belong",
        );
        note(events.annotations, "debug annotations of track events are not read");
        for (id, count) in &clocks.unrelated {
            let clock = machine_clock(*id).map_or_else(|| format!("clock {id}"), |clock| clock.to_string());
            let what = format!("times are in {clock}, and are taken as they are: no clock snapshot has it");
            note(*count, &what);
        }
        if frames.malformed > 0 {
            let what = format!(
                "{} packets of FrameTimeline are left out: a cookie, a token or a process is missing",
                frames.malformed
            );
            self.report.damage.push(Damage { offset: 0, what });
        }
        self.report.losses.extend(events.account());
        note(
            self.unknown_prev,
            "first switches of a CPU do not name the previous thread (compact sched leaves it out)",
        );
        self.report.notes.extend(self.decoder.notes());
        self.report.unread = index.types.unread();
        self.report.unread.extend(events.unread.iter().map(|(kind, count)| ((*kind).to_owned(), *count)));
        if !self.decoder.unknown.is_empty() {
            let what = format!("event types that this version does not know: {:?}", self.decoder.unknown);
            self.report.notes.push(what);
        }
        self.report
    }
}

#[cfg(test)]
mod tests {
    use super::super::event_table;
    use super::super::fields::{
        compact_sched, ftrace_event_bundle, generic_ftrace_event, generic_ftrace_event_field, process_tree,
        process_tree_process, trace,
    };
    use super::super::wire::write;
    use super::*;
    use crate::formats::{EventType, ProcessInfo};

    #[derive(Debug, Default)]
    struct PerfettoLog(Vec<String>);

    impl Sink for PerfettoLog {
        fn process(&mut self, p: &ProcessInfo<'_>) -> io::Result<()> {
            self.0.push(format!("process {} {}", p.pid, String::from_utf8_lossy(p.name.unwrap_or(b""))));
            Ok(())
        }
        fn event(&mut self, e: &Event<'_>, kind: &EventType) -> io::Result<()> {
            let mut line = format!("{} cpu{} {}:", e.ts, e.cpu, e.tid).into_bytes();
            line.extend_from_slice(kind.name.as_bytes());
            line.push(b' ');
            crate::formats::event_catalog::render(e, kind, &mut line);
            self.0.push(String::from_utf8_lossy(&line).into_owned());
            Ok(())
        }
        fn lost(&mut self, cpu: Cpu, count: Option<u64>) -> io::Result<()> {
            self.0.push(format!("lost {count:?} on {cpu}"));
            Ok(())
        }
    }

    fn message(number: u32, body: &[u8]) -> Vec<u8> {
        let mut out = vec![];
        write::bytes(&mut out, number, body);
        out
    }

    fn uint(number: u32, value: u64) -> Vec<u8> {
        let mut out = vec![];
        write::uint(&mut out, number, value);
        out
    }

    fn packet(number: u32, body: &[u8]) -> Vec<u8> {
        message(trace::PACKET, &message(number, body))
    }

    fn event(ts: u64, pid: u64, number: u32, body: &[u8]) -> Vec<u8> {
        let common = [uint(ftrace_event::TIMESTAMP, ts), uint(ftrace_event::PID, pid)].concat();
        [common, message(number, body)].concat()
    }

    /// A bundle of CPU 2, which has lost events before the first one: at 9 ns a print of thread 7, at 10 ns a
    /// switch to thread 5, at 11 ns the waking of thread 5, at 12 ns a switch to thread 0.
    fn bundle_of_all() -> Vec<u8> {
        let table = event_table::by_name("ftrace", "print").unwrap();
        let print = event(9, 7, table.number, &message(table.fields[1].number, b"B|7|x"));
        let compact = [
            message(compact_sched::INTERN_TABLE, b"sh"),
            message(compact_sched::INTERN_TABLE, b"swapper"),
            message(compact_sched::SWITCH_TIMESTAMP, &[10, 2]),
            message(compact_sched::SWITCH_PREV_STATE, &[1, 2]),
            message(compact_sched::SWITCH_NEXT_PID, &[5, 0]),
            message(compact_sched::SWITCH_NEXT_PRIO, &[120, 120]),
            message(compact_sched::SWITCH_NEXT_COMM_INDEX, &[0, 1]),
            message(compact_sched::WAKING_TIMESTAMP, &[11]),
            message(compact_sched::WAKING_PID, &[5]),
            message(compact_sched::WAKING_TARGET_CPU, &[2]),
            message(compact_sched::WAKING_PRIO, &[120]),
            message(compact_sched::WAKING_COMM_INDEX, &[0]),
        ]
        .concat();
        [
            uint(ftrace_event_bundle::CPU, 2),
            uint(ftrace_event_bundle::LOST_EVENTS, 1),
            message(ftrace_event_bundle::COMPACT_SCHED, &compact),
            message(ftrace_event_bundle::EVENT, &print),
        ]
        .concat()
    }

    const ALL: [&str; 5] = [
        "lost None on 2",
        "9 cpu2 7:print ip=0 buf=B|7|x",
        "10 cpu2 7:sched_switch prev_comm=<...> prev_pid=7 prev_prio=0 prev_state=S ==> next_comm=sh next_pid=5 next_prio=120",
        "11 cpu2 5:sched_waking comm=sh pid=5 prio=120 target_cpu=002",
        "12 cpu2 5:sched_switch prev_comm=sh prev_pid=5 prev_prio=120 prev_state=D ==> next_comm=swapper next_pid=0 next_prio=120",
    ];

    fn read_log(data: &[u8]) -> (Vec<String>, ReadReport) {
        let mut log = PerfettoLog::default();
        let report = read(data, Order::Any, &mut log).unwrap();
        (log.0, report)
    }

    #[test]
    fn compact_and_whole_events_are_merged_by_time() {
        let (log, report) = read_log(&packet(trace_packet::FTRACE_EVENTS, &bundle_of_all()));
        assert_eq!(log, ALL);
        assert_eq!((report.events(), report.cpus[&Cpu(2)].gaps), (4, 1));
    }

    #[test]
    fn for_markers_alone_other_events_are_counted_and_not_decoded() {
        const SCHED_WAKEUP: u32 = 17;
        let marker = |ts, text: &[u8]| event(ts, 7, ftrace_event::PRINT, &message(2, text));
        let wakeup = event(8, 7, SCHED_WAKEUP, &message(1, b"woken"));
        let first = [
            uint(ftrace_event_bundle::CPU, 1),
            message(ftrace_event_bundle::EVENT, &marker(20, b"B|7|late")),
            message(ftrace_event_bundle::EVENT, &wakeup),
        ];
        let second = message(ftrace_event_bundle::EVENT, &marker(10, b"B|7|early"));
        let bundles = [first.concat(), second].map(|bundle| packet(trace_packet::FTRACE_EVENTS, &bundle));
        let mut log = PerfettoLog::default();
        let report = read(&bundles.concat(), Order::Markers, &mut log).unwrap();
        let markers: Vec<&String> = log.0.iter().filter(|line| line.contains("print")).collect();
        assert_eq!(markers, ["10 cpu0 7:print ip=0 buf=B|7|early", "20 cpu1 7:print ip=0 buf=B|7|late"]);
        assert!(log.0.iter().any(|line| line.contains("sched_wakeup") && !line.contains("woken")), "{log:?}");
        assert_eq!(report.events(), 3);
    }

    #[test]
    fn compressed_packets_are_read_like_others() {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        io::Write::write_all(&mut zlib, &packet(trace_packet::FTRACE_EVENTS, &bundle_of_all())).unwrap();
        let (log, report) = read_log(&packet(trace_packet::COMPRESSED_PACKETS, &zlib.finish().unwrap()));
        assert_eq!(log, ALL);
        assert!(report.damage.is_empty());
    }

    #[test]
    fn a_trace_cut_anywhere_keeps_its_whole_packets_and_reports_damage() {
        let app =
            [uint(process_tree_process::PID, 7), message(process_tree_process::CMDLINE, b"app")].concat();
        let tree = packet(trace_packet::PROCESS_TREE, &message(process_tree::PROCESSES, &app));
        let data = [packet(trace_packet::FTRACE_EVENTS, &bundle_of_all()), tree.clone()].concat();
        let (log, _) = read_log(&data);
        assert_eq!(log[0], "process 7 app");
        for cut in 1..data.len() {
            let (log, report) = read_log(&data[..cut]);
            if cut >= data.len() - tree.len() {
                assert_eq!(log, ALL);
            }
            assert_eq!(report.damage.is_empty(), cut == data.len() - tree.len(), "cut at {cut}: {report:?}");
        }
    }

    #[test]
    fn generic_events_keep_their_names() {
        use generic_ftrace_event_field as field;
        let f = |name: &[u8], value: Vec<u8>| {
            message(generic_ftrace_event::FIELD, &[message(field::NAME, name), value].concat())
        };
        let body = [
            message(generic_ftrace_event::EVENT_NAME, b"x/y"),
            f(b"a", uint(field::INT_VALUE, 5)),
            f(b"s", message(field::STR_VALUE, b"t")),
        ]
        .concat();
        let event = event(9, 7, ftrace_event::GENERIC, &body);
        let bundle = message(ftrace_event_bundle::EVENT, &event);
        let (log, _) = read_log(&packet(trace_packet::FTRACE_EVENTS, &bundle));
        assert_eq!(log, ["9 cpu0 7:y a=5 s=t"]);
    }
}
