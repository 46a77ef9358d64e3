//! Reads `TrackEvent` packets, and finds the other packets whose events lie on tracks: resolves what they
//! leave to the state of their packet sequence.
//!
//! A packet sequence interns names, and sets defaults, until a packet clears this state. A packet that needs
//! the state after a packet of the sequence was lost cannot be read, and is counted
//! (protos/perfetto/trace/trace_packet.proto, `SequenceFlags`).

use std::collections::{BTreeMap, HashMap};
use std::io;

use super::counter_packets::{CounterPacket, CounterReader, PolledCounter, is_counters};
use super::fields::{
    builtin_clock, event_name, interned_data, legacy_event, thread_descriptor, trace_packet,
    trace_packet_defaults, track_event, track_event_defaults, track_event_type,
};
use super::frame_timeline::{FramePackets, Frames};
use super::sequence_packet::SequencePacket;
use super::trace_streams::TraceStreams;
use super::track_clocks::{CustomClocks, MachineClocks, MachineTime, number};
use super::track_event_order::{PlacedTrackEvent, RUN_EVENTS, SortedTrackEvents, TrackEventSorter};
use super::track_table::{DescribedThread, PerfettoTrackKey, TrackTable, described_thread};
use super::wire::read::{WireValue, append_numbers, fields, last_value};
use crate::formats::{CounterValue, Flow, LossKind, LossPlace, Losses, TrackEventKind};
use crate::ids::{Pid, Tid};
use crate::progress::{self, Pass};

/// The track events of a trace.
#[derive(Default)]
pub(super) struct TrackEvents<'a> {
    pub(super) events: SortedTrackEvents<'a>,
    /// The frames of SurfaceFlinger.
    pub(super) frames: Frames<'a>,
    pub(super) table: TrackTable<'a>,
    /// Values of counters that are not read, by kind.
    pub(super) unread: BTreeMap<&'static str, u64>,
    /// Events that need packets which were lost, and events without a timestamp, or with a clock that no
    /// snapshot has introduced.
    pub(super) losses: Losses,
    /// Debug annotations, which no output but Perfetto's holds.
    pub(super) annotations: u64,
}

/// Legacy events of phases that are no slice, instant or counter: steps, metadata, objects, contexts.
const OTHER_PHASES: &str = "legacy events of other phases";
/// The losses of more packet sequences than this are counted together.
const MAX_NAMED_SEQUENCES: usize = 16;

impl TrackEvents<'_> {
    fn lost(&mut self, kind: LossKind, sequence: u64, count: u64) {
        let place = u32::try_from(sequence).map_or(LossPlace::Recording, LossPlace::Sequence);
        self.losses.add(kind, place, count);
    }

    /// The account of lost events. That of many packet sequences does not name them.
    pub(super) fn account(&self) -> Losses {
        let is_short = self.losses.iter().len() <= MAX_NAMED_SEQUENCES;
        if is_short { self.losses.clone() } else { self.losses.by_kind() }
    }
}

/// The state that a packet sequence has set so far.
#[derive(Default)]
struct SequenceState<'a> {
    is_valid: bool,
    names: HashMap<u64, &'a [u8]>,
    clock: Option<u64>,
    track: Option<u64>,
    counters: Vec<u64>,
    double_counters: Vec<u64>,
    /// The thread of events that name no track, in files of 2019.
    thread: Option<DescribedThread>,
    /// The time to which `timestamp_delta_us` adds, µs of MONOTONIC.
    reference_us: Option<u64>,
    thread_us: u64,
    /// The last value of each counter track whose values are differences.
    counter_sums: HashMap<u64, i64>,
}

impl SequenceState<'_> {
    fn clear(&mut self) {
        let SequenceState { thread, reference_us, thread_us, .. } = std::mem::take(self);
        *self = SequenceState { is_valid: true, thread, reference_us, thread_us, ..SequenceState::default() };
    }
}

/// The fields of a packet that concern track events.
#[derive(Default)]
struct PacketParts<'a> {
    head: SequencePacket<'a>,
    event: Option<&'a [u8]>,
    frame: Option<&'a [u8]>,
    counters: Option<CounterPacket<'a>>,
}

impl<'a> PacketParts<'a> {
    fn new(packet: &'a [u8]) -> PacketParts<'a> {
        let mut parts = PacketParts::default();
        parts.head = SequencePacket::read(packet, |field, value| match field {
            trace_packet::TRACK_EVENT => parts.event = Some(value.bytes()),
            trace_packet::FRAME_TIMELINE_EVENT => parts.frame = Some(value.bytes()),
            _ if is_counters(field) => {
                parts.counters = Some(CounterPacket { field, body: value.bytes() });
            }
            _ => {}
        });
        parts
    }

    /// Whether the packet holds something that lies on a track.
    fn has_content(&self) -> bool {
        self.event.is_some() || self.frame.is_some() || self.counters.is_some()
    }
}

struct TrackEventReader<'a, 'c> {
    clocks: &'c mut MachineClocks,
    custom: CustomClocks,
    sequences: HashMap<u64, SequenceState<'a>>,
    frames: FramePackets<'a>,
    counters: CounterReader<'a>,
    streams: &'a TraceStreams<'a>,
    events: TrackEventSorter<'a>,
    out: TrackEvents<'a>,
}

/// Reads the track events of all packets. `descriptors` are all `TrackDescriptor` messages: a descriptor may
/// come behind the events of its track.
///
/// # Errors
/// Those of a temporary file, in which many events wait.
pub(super) fn read<'a>(
    streams: &'a TraceStreams<'a>,
    descriptors: impl Iterator<Item = &'a [u8]>,
    clocks: &mut MachineClocks,
) -> io::Result<TrackEvents<'a>> {
    let mut reader = TrackEventReader {
        clocks,
        custom: CustomClocks::default(),
        sequences: HashMap::new(),
        frames: FramePackets::default(),
        counters: CounterReader::default(),
        streams,
        events: TrackEventSorter::new(RUN_EVENTS),
        out: TrackEvents::default(),
    };
    descriptors.for_each(|descriptor| reader.out.table.describe(descriptor));
    let _pass = Pass::begin("reading track events", streams.byte_len());
    for packet in streams.packets() {
        progress::advance(packet.body.len() as u64);
        reader.packet(&PacketParts::new(packet.body));
    }
    reader.out.unread = reader.counters.unread;
    reader.out.frames = reader.frames.join(&mut reader.out.table);
    reader.out.events = reader.events.finish(streams)?;
    Ok(reader.out)
}

impl<'a> TrackEventReader<'a, '_> {
    fn packet(&mut self, packet: &PacketParts<'a>) {
        let head = &packet.head;
        let state = self.sequences.entry(head.sequence).or_default();
        if head.is_cleared {
            state.clear();
        } else if head.is_after_loss {
            state.is_valid = false;
        }
        if let Some(defaults) = head.defaults {
            state.clock = number(defaults, trace_packet_defaults::TIMESTAMP_CLOCK_ID);
            let defaults = last_value(defaults, trace_packet_defaults::TRACK_EVENT_DEFAULTS);
            let defaults = defaults.map_or(&[][..], WireValue::bytes);
            state.track = number(defaults, track_event_defaults::TRACK_UUID);
            state.counters = uuids(defaults, track_event_defaults::EXTRA_COUNTER_TRACK_UUIDS);
            state.double_counters = uuids(defaults, track_event_defaults::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS);
        }
        if let Some(interned) = head.interned {
            for (_, name) in fields(interned).filter(|(n, _)| *n == interned_data::EVENT_NAMES) {
                let text = last_value(name.bytes(), event_name::NAME).map_or(&[][..], WireValue::bytes);
                state.names.insert(number(name.bytes(), event_name::IID).unwrap_or(0), text);
            }
        }
        if let Some(thread) = head.thread {
            state.thread = described_thread(thread);
            state.reference_us = number(thread, thread_descriptor::REFERENCE_TIMESTAMP_US);
            state.thread_us = number(thread, thread_descriptor::REFERENCE_THREAD_TIME_US).unwrap_or(0);
        }
        let is_valid = state.is_valid;
        let clock = state.clock;
        if let Some(snapshot) = head.snapshot {
            self.custom.learn(head.sequence, snapshot);
        }
        if head.needs_state() && !is_valid {
            let count = u64::from(packet.has_content());
            self.out.lost(LossKind::TrackEventsOfLostPackets, head.sequence, count);
            return;
        }
        // A clock whose timestamps are differences advances with every packet. A snapshot sets it.
        let id = head.clock.or(clock).unwrap_or(builtin_clock::BOOTTIME);
        let timestamp = head.timestamp.filter(|_| head.snapshot.is_none());
        let time = timestamp.and_then(|ts| self.custom.packet_time(head.sequence, id, ts));
        if let Some(event) = packet.event {
            self.event(head.sequence, time, event);
        }
        if let Some(counters) = packet.counters {
            self.counters(head.sequence, time, counters);
        }
        if let Some(frame) = packet.frame {
            match time {
                Some(time) => self.frames.push(self.clocks.convert(time), frame),
                None => self.out.lost(LossKind::TimelessTrackEvents, head.sequence, 1),
            }
        }
    }

    /// Reads a packet that polls counters, at a time of a clock of the machine.
    fn counters(&mut self, sequence: u64, time: Option<MachineTime>, packet: CounterPacket<'a>) {
        let clocks = &mut *self.clocks;
        let out = &mut self.out;
        let events = &mut self.events;
        let streams = self.streams;
        self.counters.read(packet, &mut |PolledCounter { owner, name, value, time: own }| {
            let Some(time) = own.or(time) else {
                out.lost(LossKind::TimelessTrackEvents, sequence, 1);
                return;
            };
            let ts = clocks.convert(time);
            let kind = TrackEventKind::Counter(value);
            let track = out.table.id(PerfettoTrackKey::Counter(owner, name), true);
            let flows = Box::default();
            events.push(PlacedTrackEvent { ts, track, kind, thread_ns: None, flows }, streams);
        });
    }

    fn event(&mut self, sequence: u64, time: Option<MachineTime>, event: &'a [u8]) {
        let Some(state) = self.sequences.get_mut(&sequence) else { return };
        let parts = EventParts::new(event);
        self.out.annotations += parts.annotations;
        let legacy_us = if let Some(us) = parts.absolute_us {
            Some(us)
        } else if let (Some(delta), Some(reference)) = (parts.delta_us, state.reference_us) {
            let us = reference.wrapping_add(delta);
            state.reference_us = Some(us);
            Some(us)
        } else {
            None
        };
        let legacy_time =
            legacy_us.map(|us| MachineTime { clock: builtin_clock::MONOTONIC, ns: us.saturating_mul(1_000) });
        let Some(time) = legacy_time.or(time) else {
            self.out.lost(LossKind::TimelessTrackEvents, sequence, 1);
            return;
        };
        let ts = self.clocks.convert(time);
        if let Some(delta) = parts.thread_delta_us {
            state.thread_us = state.thread_us.wrapping_add(delta);
        }
        let thread_us = parts.thread_absolute_us.or(parts.thread_delta_us.map(|_| state.thread_us));
        let name_iid = parts.name_iid.or(parts.legacy.as_ref().and_then(|l| l.name_iid));
        let interned = name_iid.and_then(|iid| state.names.get(&iid).copied());
        let name = parts.name.or(interned).unwrap_or(b"");
        let explicit = parts.track.or(state.track);
        let key = match (explicit, state.thread, &parts.legacy) {
            (_, _, Some(LegacyParts { tid: Some(tid), pid, .. })) => {
                PerfettoTrackKey::Thread(DescribedThread { pid: *pid, tid: *tid })
            }
            (Some(uuid), ..) => PerfettoTrackKey::Uuid(uuid),
            (None, Some(thread), _) => PerfettoTrackKey::Thread(thread),
            (None, None, _) => PerfettoTrackKey::Uuid(0),
        };
        let counters = if parts.counters.is_empty() { &state.counters } else { &parts.counters };
        let doubles =
            if parts.double_counters.is_empty() { &state.double_counters } else { &parts.double_counters };
        let table = &mut self.out.table;
        let thread_ns = thread_us.map(|us| us.saturating_mul(1_000));
        let events = &mut self.events;
        let streams = self.streams;
        let mut push = |track, kind, flows: &[Flow], ts| {
            events.push(PlacedTrackEvent { ts, track, kind, thread_ns, flows: flows.into() }, streams);
        };
        // The extra counters of a slice have the slice's time.
        for (uuid, value) in counters.iter().zip(&parts.counter_values) {
            let value = sum(&mut state.counter_sums, table, *uuid, *value as i64);
            push(table.id(PerfettoTrackKey::Uuid(*uuid), true), TrackEventKind::Counter(value), &[], ts);
        }
        for (uuid, value) in doubles.iter().zip(&parts.double_counter_values) {
            let value = CounterValue::Double(f64::from_bits(*value));
            push(table.id(PerfettoTrackKey::Uuid(*uuid), true), TrackEventKind::Counter(value), &[], ts);
        }
        let flows = &parts.flows[..];
        let begin = TrackEventKind::Begin { name };
        match parts.ty {
            track_event_type::SLICE_BEGIN => push(table.id(key, false), begin, flows, ts),
            track_event_type::SLICE_END => push(table.id(key, false), TrackEventKind::End, flows, ts),
            track_event_type::INSTANT => {
                push(table.id(key, false), TrackEventKind::Instant { name }, flows, ts);
            }
            track_event_type::COUNTER => {
                let PerfettoTrackKey::Uuid(uuid) = key else { return };
                let value = match (parts.double_value, parts.value) {
                    (Some(double), _) => CounterValue::Double(f64::from_bits(double)),
                    (None, value) => sum(&mut state.counter_sums, table, uuid, value.unwrap_or(0) as i64),
                };
                push(table.id(key, true), TrackEventKind::Counter(value), flows, ts);
            }
            _ => {
                let Some(legacy) = &parts.legacy else { return };
                let pid = legacy.pid.or(state.thread.and_then(|thread| thread.pid));
                let key = match (legacy.phase, legacy.id) {
                    (b'b' | b'e' | b'n' | b'S' | b'F', Some(id)) => PerfettoTrackKey::Async(pid, id, name),
                    _ => key,
                };
                let track = table.id(key, false);
                match legacy.phase {
                    b'B' | b'b' | b'S' => push(track, begin, flows, ts),
                    b'E' | b'e' | b'F' => push(track, TrackEventKind::End, flows, ts),
                    b'X' => {
                        push(track, begin, flows, ts);
                        let end = ts.saturating_add(legacy.duration_us.saturating_mul(1_000));
                        push(track, TrackEventKind::End, &[], end);
                    }
                    b'I' | b'i' | b'R' | b'n' => push(track, TrackEventKind::Instant { name }, flows, ts),
                    _ => *self.out.unread.entry(OTHER_PHASES).or_default() += 1,
                }
            }
        }
    }
}

/// The value of a counter whose event has the value `value`: the sum, if values are differences.
fn sum(sums: &mut HashMap<u64, i64>, table: &TrackTable<'_>, uuid: u64, value: i64) -> CounterValue {
    let spec = table.counter(uuid);
    let mut value = value;
    if spec.is_incremental {
        let sum = sums.entry(uuid).or_default();
        *sum = sum.wrapping_add(value);
        value = *sum;
    }
    CounterValue::Int(value.saturating_mul(spec.multiplier))
}

/// A repeated field of numbers, packed or not.
fn uuids(message: &[u8], field: u32) -> Vec<u64> {
    let mut out = Vec::new();
    fields(message).filter(|(n, _)| *n == field).for_each(|(_, value)| append_numbers(&mut out, value));
    out
}

/// Appends the elements of a repeated field of `fixed64` or `double`, packed or not.
fn append_fixed(out: &mut Vec<u64>, value: WireValue<'_>) {
    match value {
        WireValue::Number(number) => out.push(number),
        WireValue::Bytes(packed) => {
            let (numbers, _) = packed.as_chunks::<8>();
            out.extend(numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)));
        }
    }
}

/// The fields of a `TrackEvent`.
#[derive(Default)]
struct EventParts<'a> {
    ty: u64,
    name: Option<&'a [u8]>,
    name_iid: Option<u64>,
    track: Option<u64>,
    delta_us: Option<u64>,
    absolute_us: Option<u64>,
    thread_delta_us: Option<u64>,
    thread_absolute_us: Option<u64>,
    value: Option<u64>,
    double_value: Option<u64>,
    counters: Vec<u64>,
    counter_values: Vec<u64>,
    double_counters: Vec<u64>,
    double_counter_values: Vec<u64>,
    flows: Vec<Flow>,
    legacy: Option<LegacyParts>,
    annotations: u64,
}

/// The fields of a `LegacyEvent`: an event as Chrome's JSON format has it.
#[derive(Default)]
struct LegacyParts {
    phase: u8,
    name_iid: Option<u64>,
    duration_us: u64,
    id: Option<u64>,
    pid: Option<Pid>,
    tid: Option<Tid>,
}

impl<'a> EventParts<'a> {
    fn new(event: &'a [u8]) -> EventParts<'a> {
        let mut parts = EventParts::default();
        for (field, value) in fields(event) {
            match field {
                track_event::TYPE => parts.ty = value.number(),
                track_event::NAME => parts.name = Some(value.bytes()),
                track_event::NAME_IID => parts.name_iid = Some(value.number()),
                track_event::TRACK_UUID => parts.track = Some(value.number()),
                track_event::TIMESTAMP_DELTA_US => parts.delta_us = Some(value.number()),
                track_event::TIMESTAMP_ABSOLUTE_US => parts.absolute_us = Some(value.number()),
                track_event::THREAD_TIME_DELTA_US => parts.thread_delta_us = Some(value.number()),
                track_event::THREAD_TIME_ABSOLUTE_US => parts.thread_absolute_us = Some(value.number()),
                track_event::COUNTER_VALUE => parts.value = Some(value.number()),
                track_event::DOUBLE_COUNTER_VALUE => parts.double_value = Some(value.number()),
                track_event::EXTRA_COUNTER_TRACK_UUIDS => append_numbers(&mut parts.counters, value),
                track_event::EXTRA_COUNTER_VALUES => append_numbers(&mut parts.counter_values, value),
                track_event::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS => {
                    append_numbers(&mut parts.double_counters, value);
                }
                track_event::EXTRA_DOUBLE_COUNTER_VALUES => {
                    append_fixed(&mut parts.double_counter_values, value);
                }
                track_event::FLOW_IDS_OLD => parts.add_flows(append_numbers, value, false),
                track_event::FLOW_IDS => parts.add_flows(append_fixed, value, false),
                track_event::TERMINATING_FLOW_IDS_OLD => parts.add_flows(append_numbers, value, true),
                track_event::TERMINATING_FLOW_IDS => parts.add_flows(append_fixed, value, true),
                track_event::LEGACY_EVENT => parts.legacy = Some(LegacyParts::new(value.bytes())),
                track_event::DEBUG_ANNOTATIONS => parts.annotations += 1,
                _ => {}
            }
        }
        parts
    }

    fn add_flows(&mut self, append: fn(&mut Vec<u64>, WireValue<'_>), value: WireValue<'_>, ends: bool) {
        let mut ids = Vec::new();
        append(&mut ids, value);
        self.flows.extend(ids.into_iter().map(|id| Flow { id, ends }));
    }
}

impl LegacyParts {
    fn new(event: &[u8]) -> LegacyParts {
        let mut parts = LegacyParts::default();
        for (field, value) in fields(event) {
            match field {
                legacy_event::PHASE => parts.phase = value.number() as u8,
                legacy_event::NAME_IID => parts.name_iid = Some(value.number()),
                legacy_event::DURATION_US => parts.duration_us = value.number(),
                legacy_event::UNSCOPED_ID | legacy_event::LOCAL_ID | legacy_event::GLOBAL_ID => {
                    parts.id = Some(value.number());
                }
                legacy_event::PID_OVERRIDE => parts.pid = Some(Pid(value.int32())),
                legacy_event::TID_OVERRIDE => parts.tid = Some(Tid(value.int32())),
                _ => {}
            }
        }
        parts
    }
}
