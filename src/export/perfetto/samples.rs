//! Writes samples as `PerfSample` messages.
//!
//! Each event type of each set has a packet sequence of its own, whose defaults name the event type: so
//! Perfetto tells them apart. Call stacks, frames, functions and files are interned in each sequence when the
//! first sample has them.
//!
//! The samples of threads that stopped running have a counter that follows them: the sum of the times until
//! the threads ran again.

use std::collections::BTreeMap;
use std::sync::Arc;

use data_encoding::HEXLOWER_PERMISSIVE;
use rustc_hash::FxHashSet;

use super::packet::{FreeIds, packet, timestamp};
use crate::formats::perfetto::fields::{
    callstack, follower_event, frame, frame_kind, interned_data, interned_string, mapping,
    perf_events_timebase, perf_sample, perf_sample_defaults, sequence_flags, trace_packet,
    trace_packet_defaults,
};
use crate::formats::perfetto::sample_events::OFF_CPU_FOLLOWER;
use crate::formats::perfetto::wire::write::{bytes, int, message, string, uint};
use crate::formats::samples::{FrameKind, NO_STACK, Sample, SampleEvent, SampleRate, SampleTables};
use crate::ids::Cpu;

/// The sets of samples of a timeline.
#[derive(Default)]
pub(super) struct SampleWriter {
    /// By the number of the set.
    sets: Vec<SampleSet>,
}

struct SampleSet {
    tables: Arc<SampleTables>,
    /// By event type.
    streams: Vec<EventStream>,
}

/// The packet sequence of an event type.
struct EventStream {
    sequence: u64,
    has_begun: bool,
    /// The numbers of what the sequence has interned. The id of the item with number n is n + 1.
    stacks: FxHashSet<u32>,
    frames: FxHashSet<u32>,
    modules: FxHashSet<u32>,
    /// By CPU: the sum of the periods, which the samples state.
    counts: BTreeMap<Option<Cpu>, u64>,
}

impl SampleWriter {
    /// Adds the next set.
    pub(super) fn add_set(&mut self, tables: &Arc<SampleTables>, ids: &mut FreeIds) {
        let stream = |_: &SampleEvent| EventStream {
            sequence: ids.sequence(),
            has_begun: false,
            stacks: FxHashSet::default(),
            frames: FxHashSet::default(),
            modules: FxHashSet::default(),
            counts: BTreeMap::new(),
        };
        let streams = tables.events.iter().map(stream).collect();
        self.sets.push(SampleSet { tables: Arc::clone(tables), streams });
    }

    /// Appends the packet of a sample. `clock` is that of the timeline, a value of the enum `BuiltinClock`.
    pub(super) fn sample(&mut self, out: &mut Vec<u8>, set: u32, sample: &Sample, clock: u64) {
        let Some(SampleSet { tables, streams }) = self.sets.get_mut(set as usize) else { return };
        let Some(stream) = streams.get_mut(sample.event as usize) else { return };
        let event = &tables.events[sample.event as usize];
        packet(out, stream.sequence, |out| {
            timestamp(out, sample.time, clock);
            let is_first = !std::mem::replace(&mut stream.has_begun, true);
            let cleared = if is_first { sequence_flags::INCREMENTAL_STATE_CLEARED } else { 0 };
            uint(out, trace_packet::SEQUENCE_FLAGS, sequence_flags::NEEDS_INCREMENTAL_STATE | cleared);
            if is_first {
                defaults(out, event);
            }
            stream.intern(out, tables, sample.stack);
            let thread = &tables.threads[sample.thread as usize];
            let count = stream.counts.entry(sample.cpu).or_default();
            *count = count.saturating_add(sample.period);
            message(out, trace_packet::PERF_SAMPLE, |out| {
                if let Some(cpu) = sample.cpu {
                    uint(out, perf_sample::CPU, u64::from(cpu.0));
                }
                int(out, perf_sample::PID, thread.pid);
                int(out, perf_sample::TID, thread.tid);
                if sample.stack != NO_STACK {
                    uint(out, perf_sample::CALLSTACK_IID, iid(sample.stack));
                }
                uint(out, perf_sample::TIMEBASE_COUNT, *count);
                if event.is_off_cpu {
                    uint(out, perf_sample::FOLLOWER_COUNTS, *count);
                }
            });
        });
    }
}

/// The id of the item with this number.
fn iid(number: u32) -> u64 {
    u64::from(number) + 1
}

/// Appends the defaults of the packet sequence of an event type: its name and its rate.
fn defaults(out: &mut Vec<u8>, event: &SampleEvent) {
    message(out, trace_packet::TRACE_PACKET_DEFAULTS, |out| {
        message(out, trace_packet_defaults::PERF_SAMPLE_DEFAULTS, |out| {
            message(out, perf_sample_defaults::TIMEBASE, |out| {
                match event.rate {
                    SampleRate::Hz(hz) => uint(out, perf_events_timebase::FREQUENCY, hz),
                    SampleRate::Period(period) => uint(out, perf_events_timebase::PERIOD, period),
                    SampleRate::Unknown => {}
                }
                string(out, perf_events_timebase::NAME, event.name.as_bytes());
            });
            if event.is_off_cpu {
                message(out, perf_sample_defaults::FOLLOWERS, |out| {
                    string(out, follower_event::NAME, OFF_CPU_FOLLOWER.as_bytes());
                });
            }
        });
    });
}

impl EventStream {
    /// Appends what the sequence has not interned of a stack.
    fn intern(&mut self, out: &mut Vec<u8>, tables: &SampleTables, stack: u32) {
        if stack == NO_STACK || !self.stacks.insert(stack) {
            return;
        }
        let frames: Vec<u32> = tables.stacks.frames(stack).collect();
        message(out, trace_packet::INTERNED_DATA, |out| {
            for number in &frames {
                self.intern_frame(out, tables, *number);
            }
            message(out, interned_data::CALLSTACKS, |out| {
                uint(out, callstack::IID, iid(stack));
                // The outermost frame comes first.
                frames.iter().rev().for_each(|number| uint(out, callstack::FRAME_IDS, iid(*number)));
            });
        });
    }

    fn intern_frame(&mut self, out: &mut Vec<u8>, tables: &SampleTables, number: u32) {
        if !self.frames.insert(number) {
            return;
        }
        let described = &tables.frames[number as usize];
        let module = described.module;
        let has_module = (module as usize) < tables.modules.len();
        if has_module {
            self.intern_module(out, tables, module);
        }
        // A frame without a symbol is named by its place, as everywhere.
        intern_text(out, interned_data::FUNCTION_NAMES, iid(number), described.name.as_bytes());
        message(out, interned_data::FRAMES, |out| {
            uint(out, frame::IID, iid(number));
            uint(out, frame::FUNCTION_NAME_ID, iid(number));
            if has_module {
                uint(out, frame::MAPPING_ID, iid(module));
            }
            uint(out, frame::REL_PC, described.address);
            if described.kind == FrameKind::Kernel {
                uint(out, frame::KIND, frame_kind::KERNEL);
            }
        });
    }

    fn intern_module(&mut self, out: &mut Vec<u8>, tables: &SampleTables, number: u32) {
        if !self.modules.insert(number) {
            return;
        }
        let module = &tables.modules[number as usize];
        let build_id = HEXLOWER_PERMISSIVE.decode(module.build_id.as_bytes()).unwrap_or_default();
        if !build_id.is_empty() {
            intern_text(out, interned_data::BUILD_IDS, iid(number), &build_id);
        }
        // Perfetto joins the parts of a path with slashes, and begins it with one.
        let path = module.path.strip_prefix('/').unwrap_or(&module.path);
        intern_text(out, interned_data::MAPPING_PATHS, iid(number), path.as_bytes());
        message(out, interned_data::MAPPINGS, |out| {
            uint(out, mapping::IID, iid(number));
            if !build_id.is_empty() {
                uint(out, mapping::BUILD_ID, iid(number));
            }
            uint(out, mapping::PATH_STRING_IDS, iid(number));
        });
    }
}

/// Appends an `InternedString`.
fn intern_text(out: &mut Vec<u8>, field: u32, iid: u64, text: &[u8]) {
    message(out, field, |out| {
        uint(out, interned_string::IID, iid);
        bytes(out, interned_string::STR, text);
    });
}
