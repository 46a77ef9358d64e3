//! Chrome's JSON as packets of a Perfetto trace: one packet for each event, with all that Perfetto's importer
//! of JSON takes from it.
//!
//! Perfetto has a message for such events, `LegacyEvent`. Its importer handles the message as it handles
//! JSON: phases, ids of asynchronous slices and their scopes, flows, and ends that name their slice. Times
//! within that message are microseconds, so that whole slices with a fraction of a microsecond become a begin
//! and an end. Arguments become debug annotations of the same types.

use std::collections::HashMap;
use std::hash::Hasher;
use std::io;

use rustc_hash::FxHasher;

use super::super::Out;
use super::packet::{attribute, packet};
use crate::clock::Timestamp;
use crate::depth::Depth;
use crate::formats::chrome_json::{
    ChromeJsonTrace, Id, IdScope, InstantScope, JsonEvent, JsonProcess, JsonThread, ThreadKey,
};
use crate::formats::json::{JsonText, Value, elements, float, integer, members};
use crate::formats::perfetto::LOSSES_ATTRIBUTE;
use crate::formats::perfetto::fields::{
    debug_annotation, flow_direction, instant_event_scope, legacy_event, process_descriptor,
    thread_descriptor, trace_packet, track_descriptor, track_event, track_event_type,
};
use crate::formats::perfetto::wire::write::{double, message, string, uint};
use crate::formats::{LossKind, LossPlace, ReadReport};

/// The packet sequence of all packets.
const SEQUENCE: u64 = 1;
/// The first uuid of a track.
const FIRST_TRACK: u64 = 0x7b_0000_0000;
/// The output is written in pieces of about this size, bytes.
const PIECE_BYTES: usize = 1 << 20;
/// A trace has so many counters at most.
const MAX_COUNTERS: usize = 1 << 18;
/// Arguments are written down to this depth: objects in objects.
const DEPTH: Depth = Depth::new(33);
/// The name that Perfetto's importer gives slices without one.
const NO_NAME: &[u8] = b"[No name]";

/// Writes a JSON trace. Returns the report of reading it.
///
/// # Errors
/// Those of writing, and of the temporary file for the order of events.
pub(in crate::export) fn write_json(json: &ChromeJsonTrace<'_>, out: &mut Out) -> io::Result<ReadReport> {
    let mut writer = JsonPackets {
        out: Vec::new(),
        processes: HashMap::new(),
        threads: HashMap::new(),
        counters: HashMap::new(),
        next_track: FIRST_TRACK,
        report: json.report(),
        left_out: 0,
        bad_counters: 0,
    };
    for (pid, process) in json.processes() {
        writer.process(*pid, process);
    }
    for (key, thread) in json.threads() {
        writer.thread(*key, thread);
    }
    json.for_each_group(&mut |group, order| {
        for event in order.iter().filter_map(|number| group.get(*number)) {
            writer.event(json.thread_of(event), event);
        }
        if writer.out.len() >= PIECE_BYTES {
            out.write_all(&writer.out)?;
            writer.out.clear();
        }
        Ok(())
    })?;
    let mut packets = std::mem::take(&mut writer.out);
    let report = writer.finish();
    if let Some(losses) = report.losses.to_json() {
        packet(&mut packets, SEQUENCE, |out| {
            message(out, trace_packet::TRACE_ATTRIBUTES, |out| attribute(out, LOSSES_ATTRIBUTE, &losses));
        });
    }
    out.write_all(&packets)?;
    out.flush()?;
    Ok(report)
}

struct JsonPackets {
    out: Vec<u8>,
    /// The uuids of tracks.
    processes: HashMap<i64, u64>,
    threads: HashMap<ThreadKey, u64>,
    counters: HashMap<(i64, Vec<u8>), u64>,
    next_track: u64,
    report: ReadReport,
    left_out: u64,
    bad_counters: u64,
}

impl JsonPackets {
    fn new_track(&mut self) -> u64 {
        self.next_track += 1;
        self.next_track - 1
    }

    fn descriptor(&mut self, uuid: u64, fill: impl FnOnce(&mut Vec<u8>)) {
        packet(&mut self.out, SEQUENCE, |out| {
            message(out, trace_packet::TRACK_DESCRIPTOR, |out| {
                uint(out, track_descriptor::UUID, uuid);
                fill(out);
            });
        });
    }

    fn process(&mut self, pid: i64, process: &JsonProcess) {
        let uuid = self.new_track();
        self.processes.insert(pid, uuid);
        self.descriptor(uuid, |out| {
            message(out, track_descriptor::PROCESS, |out| {
                uint(out, process_descriptor::PID, i64::from(pid as i32) as u64);
                if let Some(index) = process.sort_index {
                    uint(out, process_descriptor::LEGACY_SORT_INDEX, index as u64);
                }
                if let Some(name) = &process.name {
                    string(out, process_descriptor::PROCESS_NAME, name);
                }
                for label in &process.labels {
                    string(out, process_descriptor::PROCESS_LABELS, label);
                }
            });
        });
    }

    fn thread(&mut self, key: ThreadKey, thread: &JsonThread) {
        let uuid = self.new_track();
        self.threads.insert(key, uuid);
        let parent = self.processes.get(&key.pid).copied();
        let is_thread = i32::try_from(key.tid).is_ok() && i32::try_from(key.pid).is_ok();
        self.descriptor(uuid, |out| {
            if !is_thread {
                // No thread of a kernel has this number: a track that a writer has added.
                let name = thread.name.clone().unwrap_or_else(|| format!("thread {}", key.tid).into_bytes());
                string(out, track_descriptor::NAME, &name);
                parent.iter().for_each(|parent| uint(out, track_descriptor::PARENT_UUID, *parent));
                return;
            }
            message(out, track_descriptor::THREAD, |out| {
                uint(out, thread_descriptor::PID, key.pid as u64);
                uint(out, thread_descriptor::TID, key.tid as u64);
                if let Some(index) = thread.sort_index {
                    uint(out, thread_descriptor::LEGACY_SORT_INDEX, index as u64);
                }
                if let Some(name) = &thread.name {
                    string(out, thread_descriptor::THREAD_NAME, name);
                }
            });
        });
    }

    /// The track of a series of a counter.
    fn counter(&mut self, pid: i64, name: Vec<u8>) -> Option<u64> {
        let key = (pid, name);
        if let Some(uuid) = self.counters.get(&key) {
            return Some(*uuid);
        }
        if self.counters.len() >= MAX_COUNTERS {
            return None;
        }
        let uuid = self.new_track();
        let parent = self.processes.get(&pid).copied();
        self.descriptor(uuid, |out| {
            string(out, track_descriptor::NAME, &key.1);
            parent.iter().for_each(|parent| uint(out, track_descriptor::PARENT_UUID, *parent));
            message(out, track_descriptor::COUNTER, |_| ());
        });
        self.counters.insert(key, uuid);
        Some(uuid)
    }

    /// Appends a packet with an event at `ts` on the track of `thread`.
    fn track_event(&mut self, ts: Timestamp, thread: ThreadKey, fill: impl FnOnce(&mut Vec<u8>)) {
        let uuid = self.threads.get(&thread).copied().unwrap_or(0);
        packet(&mut self.out, SEQUENCE, |out| {
            uint(out, trace_packet::TIMESTAMP, ts.0);
            message(out, trace_packet::TRACK_EVENT, |out| {
                uint(out, track_event::TRACK_UUID, uuid);
                fill(out);
            });
        });
    }

    fn event(&mut self, thread: ThreadKey, event: &JsonEvent<'_>) {
        let Some(ts) = event.time() else { return };
        self.report.cover(ts);
        match event.phase {
            b'B' => {
                self.report.track_events.slices += 1;
                self.track_event(ts, thread, |out| {
                    uint(out, track_event::TYPE, track_event_type::SLICE_BEGIN);
                    describe(out, event, true);
                    bound_flow(out, event, 0, |_| ());
                });
            }
            b'E' => self.track_event(ts, thread, |out| {
                uint(out, track_event::TYPE, track_event_type::SLICE_END);
                describe(out, event, false);
            }),
            b'X' => self.whole_slice(ts, thread, event),
            b'i' | b'I' | b'R' => self.instant(ts, thread, event),
            b'C' => self.counters(ts, thread.pid, event),
            b's' | b't' | b'f' => {
                let Some((_, id)) = event.id else {
                    self.left_out += 1;
                    return;
                };
                self.track_event(ts, thread, |out| {
                    describe(out, event, false);
                    message(out, track_event::LEGACY_EVENT, |out| {
                        uint(out, legacy_event::PHASE, event.phase.into());
                        uint(out, legacy_event::UNSCOPED_ID, flow_id(id));
                        if event.binds_to_enclosing {
                            uint(out, legacy_event::BIND_TO_ENCLOSING, 1);
                        }
                    });
                });
            }
            _ => self.async_event(ts, thread, event),
        }
    }

    fn whole_slice(&mut self, ts: Timestamp, thread: ThreadKey, event: &JsonEvent<'_>) {
        let Some(dur) = event.dur.and_then(|dur| u64::try_from(dur).ok()) else {
            self.left_out += 1;
            return;
        };
        self.report.track_events.slices += 1;
        let end = ts.saturating_add(dur);
        self.report.cover(end);
        if dur.is_multiple_of(1000) {
            self.track_event(ts, thread, |out| {
                describe(out, event, true);
                bound_flow(out, event, b'X', |out| {
                    uint(out, legacy_event::DURATION_US, dur / 1000);
                    if let Some(ns) = event.tdur.filter(|_| event.tts.is_some()) {
                        uint(out, legacy_event::THREAD_DURATION_US, (ns / 1000) as u64);
                    }
                });
            });
            return;
        }
        self.track_event(ts, thread, |out| {
            uint(out, track_event::TYPE, track_event_type::SLICE_BEGIN);
            describe(out, event, true);
            bound_flow(out, event, 0, |_| ());
        });
        let thread_end = event.tts.zip(event.tdur).map(|(tts, tdur)| tts.saturating_add(tdur));
        let end_event = JsonEvent { args: None, tts: thread_end, ..*event };
        self.track_event(end, thread, |out| {
            uint(out, track_event::TYPE, track_event_type::SLICE_END);
            describe(out, &end_event, true);
        });
    }

    fn instant(&mut self, ts: Timestamp, thread: ThreadKey, event: &JsonEvent<'_>) {
        let scope = match event.instant {
            Some(InstantScope::Thread) => None,
            Some(InstantScope::Process) => Some(instant_event_scope::PROCESS),
            Some(InstantScope::Global) => Some(instant_event_scope::GLOBAL),
            None => {
                self.left_out += 1;
                return;
            }
        };
        self.report.track_events.instants += 1;
        self.track_event(ts, thread, |out| {
            if scope.is_none() {
                uint(out, track_event::TYPE, track_event_type::INSTANT);
            }
            describe(out, event, true);
            if let Some(scope) = scope {
                message(out, track_event::LEGACY_EVENT, |out| {
                    uint(out, legacy_event::PHASE, b'I'.into());
                    uint(out, legacy_event::INSTANT_EVENT_SCOPE, scope);
                });
            }
        });
    }

    fn async_event(&mut self, ts: Timestamp, thread: ThreadKey, event: &JsonEvent<'_>) {
        let Some((scope, id)) = event.id else {
            self.left_out += 1;
            return;
        };
        match event.phase {
            b'b' | b'S' => self.report.track_events.slices += 1,
            b'e' | b'F' => {}
            _ => self.report.track_events.instants += 1,
        }
        let field = match scope {
            IdScope::Unscoped => legacy_event::UNSCOPED_ID,
            IdScope::Local => legacy_event::LOCAL_ID,
            IdScope::Global => legacy_event::GLOBAL_ID,
        };
        self.track_event(ts, thread, |out| {
            describe(out, event, event.phase != b'e');
            bound_flow(out, event, event.phase, |out| uint(out, field, async_id(id)));
        });
    }

    fn counters(&mut self, ts: Timestamp, pid: i64, event: &JsonEvent<'_>) {
        let mut prefix = event.name.unwrap_or_default().bytes().into_owned();
        if let Some((IdScope::Unscoped, id)) = event.id {
            prefix.extend_from_slice(b" id: ");
            match id {
                Id::Number(number) => prefix.extend_from_slice(number.to_string().as_bytes()),
                Id::Text(text) => prefix.extend_from_slice(text),
            }
        }
        for (series, value) in members(event.args.unwrap_or(b"")) {
            let value = match value {
                Value::Number(number) => float(number),
                Value::Text(text) => float(text.raw()),
                _ => None,
            };
            let name = [&prefix, &b" "[..], &series.bytes()].concat();
            let uuid = value.and_then(|value| Some((value, self.counter(pid, name)?)));
            let Some((value, uuid)) = uuid else {
                self.bad_counters += 1;
                continue;
            };
            self.report.track_events.counter_values += 1;
            packet(&mut self.out, SEQUENCE, |out| {
                uint(out, trace_packet::TIMESTAMP, ts.0);
                message(out, trace_packet::TRACK_EVENT, |out| {
                    uint(out, track_event::TYPE, track_event_type::COUNTER);
                    uint(out, track_event::TRACK_UUID, uuid);
                    double(out, track_event::DOUBLE_COUNTER_VALUE, value);
                });
            });
        }
    }

    fn finish(self) -> ReadReport {
        let mut report = self.report;
        report.losses.add(LossKind::HomelessEvents, LossPlace::Recording, self.left_out);
        report.losses.add(LossKind::CounterValues, LossPlace::Recording, self.bad_counters);
        report
    }
}

/// Appends the members of events of all phases: categories, name, CPU time and arguments.
fn describe(out: &mut Vec<u8>, event: &JsonEvent<'_>, is_named: bool) {
    if let Some(cat) = event.cat.filter(|cat| !cat.is_empty()) {
        string(out, track_event::CATEGORIES, &cat.bytes());
    }
    match event.name.map(JsonText::bytes).filter(|name| !name.is_empty()) {
        Some(name) => string(out, track_event::NAME, &name),
        None if is_named => string(out, track_event::NAME, NO_NAME),
        None => {}
    }
    if let Some(ns) = event.tts {
        uint(out, track_event::THREAD_TIME_ABSOLUTE_US, (ns / 1000) as u64);
    }
    for (name, value) in members(event.args.unwrap_or(b"")) {
        annotation(out, track_event::DEBUG_ANNOTATIONS, Some(name), value, DEPTH);
    }
}

/// Appends a `LegacyEvent` with the phase, what `fill` appends, and the flow that the slice itself names;
/// nothing where there is neither a phase nor a flow.
fn bound_flow(out: &mut Vec<u8>, event: &JsonEvent<'_>, phase: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    let flow = event.bind_id.and_then(|id| {
        let direction = match (event.flow_in, event.flow_out) {
            (true, true) => flow_direction::INOUT,
            (true, false) => flow_direction::IN,
            (false, true) => flow_direction::OUT,
            (false, false) => return None,
        };
        Some((flow_id(id), direction))
    });
    if phase == 0 && flow.is_none() {
        return;
    }
    message(out, track_event::LEGACY_EVENT, |out| {
        if phase != 0 {
            uint(out, legacy_event::PHASE, phase.into());
        }
        fill(out);
        if let Some((id, direction)) = flow {
            uint(out, legacy_event::BIND_ID, id);
            uint(out, legacy_event::FLOW_DIRECTION, direction);
        }
    });
}

/// Appends an argument as a `DebugAnnotation` with the value's type. `null` has none.
fn annotation(out: &mut Vec<u8>, field: u32, name: Option<JsonText<'_>>, value: Value<'_>, depth: Depth) {
    let Ok(depth) = depth.inner() else { return };
    if value == Value::Null {
        return;
    }
    message(out, field, |out| {
        if let Some(name) = name {
            string(out, debug_annotation::NAME, &name.bytes());
        }
        match value {
            Value::Text(text) => string(out, debug_annotation::STRING_VALUE, &text.bytes()),
            Value::Bool(value) => uint(out, debug_annotation::BOOL_VALUE, value.into()),
            Value::Number(number) => match integer(number) {
                Some(int) if i64::try_from(int).is_ok() => uint(out, debug_annotation::INT_VALUE, int as u64),
                Some(int) if u64::try_from(int).is_ok() => {
                    uint(out, debug_annotation::UINT_VALUE, int as u64);
                }
                _ => match float(number) {
                    Some(value) => double(out, debug_annotation::DOUBLE_VALUE, value),
                    None => string(out, debug_annotation::STRING_VALUE, number),
                },
            },
            Value::Object(object) => members(object).for_each(|(name, value)| {
                annotation(out, debug_annotation::DICT_ENTRIES, Some(name), value, depth);
            }),
            Value::Array(array) => elements(array).for_each(|value| {
                annotation(out, debug_annotation::ARRAY_VALUES, None, value, depth);
            }),
            Value::Null => {}
        }
    });
}

fn hash(text: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text);
    hasher.finish()
}

/// The number of a flow: a text is a hexadecimal number.
fn flow_id(id: Id<'_>) -> u64 {
    match id {
        Id::Number(number) => number as u64,
        Id::Text(text) => {
            let digits = text.strip_prefix(b"0x").unwrap_or(text);
            let number = std::str::from_utf8(digits).ok().and_then(|text| u64::from_str_radix(text, 16).ok());
            number.unwrap_or_else(|| hash(text))
        }
    }
}

/// The number of asynchronous slices: the number 1 and the text `1` are one.
fn async_id(id: Id<'_>) -> u64 {
    match id {
        Id::Number(number) => hash(number.to_string().as_bytes()),
        Id::Text(text) => hash(text),
    }
}
