//! Writes the tracks that programs write themselves, as `TrackDescriptor` and `TrackEvent` messages, and the
//! frames of FrameTimeline, which lie on tracks too, as `FrameTimelineEvent` packets, as SurfaceFlinger does.

use std::collections::HashMap;

use super::packet::{FreeIds, packet, timestamp};
use crate::clock::Timestamp;
use crate::formats::perfetto::fields::{
    actual_display_frame_start as actual_display, actual_surface_frame_start as actual_surface,
    debug_annotation, frame_end, frame_timeline_event, process_descriptor, thread_descriptor, trace_packet,
    track_descriptor, track_event, track_event_type,
};
use crate::formats::perfetto::wire::write::{double, fixed64, int, message, string, uint};
use crate::formats::{CounterValue, TimelineFrame, Track, TrackEvent, TrackEventKind, TrackKind, TrackOwner};
use crate::ids::Pid;

/// The first uuid that is tried for a track, and for a thread or process that a track belongs to.
const FIRST_TRACK: u64 = 0x7b_0000_0000;
const FIRST_OWNER: u64 = 0x7c_0000_0000;

/// The tracks that are written so far.
#[derive(Default)]
pub(super) struct OwnTracks {
    /// The uuids, by track.
    uuids: Vec<u64>,
    /// The uuids of threads and processes.
    owners: HashMap<TrackOwner, u64>,
    frames: FrameWriter,
}

impl OwnTracks {
    /// Describes a track, and before it the thread or process that it belongs to.
    pub(super) fn track(&mut self, out: &mut Vec<u8>, ids: &mut FreeIds, track: &Track<'_>) {
        if track.kind == TrackKind::Frames {
            // Perfetto makes the tracks of frames itself.
            self.uuids.push(0);
            return;
        }
        let sequence = ids.main_sequence;
        let owner = (track.owner != TrackOwner::Machine).then(|| {
            let next = FIRST_OWNER + self.owners.len() as u64;
            *self.owners.entry(track.owner).or_insert_with(|| {
                let uuid = ids.track(next);
                packet(out, sequence, |out| {
                    message(out, trace_packet::TRACK_DESCRIPTOR, |out| describe_owner(out, uuid, track));
                });
                uuid
            })
        });
        let uuid = match owner {
            Some(owner) if track.name.is_empty() && track.kind != TrackKind::Counter => owner,
            _ => {
                let uuid = ids.track(FIRST_TRACK + self.uuids.len() as u64);
                packet(out, sequence, |out| {
                    message(out, trace_packet::TRACK_DESCRIPTOR, |out| {
                        uint(out, track_descriptor::UUID, uuid);
                        string(out, track_descriptor::NAME, track.name);
                        if let Some(owner) = owner {
                            uint(out, track_descriptor::PARENT_UUID, owner);
                        }
                        if track.kind == TrackKind::Counter {
                            message(out, track_descriptor::COUNTER, |_| ());
                        }
                    });
                });
                uuid
            }
        };
        self.uuids.push(uuid);
    }

    /// Appends an event; `clock` is the clock of its time, a value of the enum `BuiltinClock`.
    pub(super) fn event(&mut self, out: &mut Vec<u8>, sequence: u64, event: &TrackEvent<'_>, clock: u64) {
        if let TrackEventKind::Frame(frame) = event.kind {
            return self.frames.frame(out, sequence, event.ts, frame, clock);
        }
        let Some(uuid) = self.uuids.get(event.track.0 as usize) else { return };
        packet(out, sequence, |out| {
            timestamp(out, event.ts, clock);
            message(out, trace_packet::TRACK_EVENT, |out| {
                let (ty, name) = match event.kind {
                    TrackEventKind::Begin { name } => (track_event_type::SLICE_BEGIN, Some(name)),
                    TrackEventKind::End => (track_event_type::SLICE_END, None),
                    TrackEventKind::Instant { name } => (track_event_type::INSTANT, Some(name)),
                    TrackEventKind::Counter(_) => (track_event_type::COUNTER, None),
                    TrackEventKind::Frame(_) => return,
                };
                uint(out, track_event::TYPE, ty);
                uint(out, track_event::TRACK_UUID, *uuid);
                if let Some(ns) = event.thread_ns {
                    uint(out, track_event::THREAD_TIME_ABSOLUTE_US, ns / 1000);
                }
                if let Some(name) = name {
                    string(out, track_event::NAME, name);
                }
                match event.kind {
                    TrackEventKind::Counter(CounterValue::Int(value)) => {
                        uint(out, track_event::COUNTER_VALUE, value as u64);
                    }
                    TrackEventKind::Counter(CounterValue::Double(value)) => {
                        double(out, track_event::DOUBLE_COUNTER_VALUE, value);
                    }
                    _ => {}
                }
                for arg in event.args {
                    message(out, track_event::DEBUG_ANNOTATIONS, |out| {
                        string(out, debug_annotation::NAME, arg.name.as_bytes());
                        string(out, debug_annotation::STRING_VALUE, arg.value);
                    });
                }
                for flow in event.flows {
                    let field =
                        if flow.ends { track_event::TERMINATING_FLOW_IDS } else { track_event::FLOW_IDS };
                    fixed64(out, field, flow.id);
                }
            });
        });
    }
}

fn describe_owner(out: &mut Vec<u8>, uuid: u64, track: &Track<'_>) {
    uint(out, track_descriptor::UUID, uuid);
    match track.owner {
        TrackOwner::Thread { tid, tgid } => message(out, track_descriptor::THREAD, |out| {
            int(out, thread_descriptor::PID, tgid.unwrap_or(Pid::of_main_thread(tid)));
            int(out, thread_descriptor::TID, tid);
            if !track.owner_name.is_empty() {
                string(out, thread_descriptor::THREAD_NAME, track.owner_name);
            }
        }),
        TrackOwner::Process(pid) => message(out, track_descriptor::PROCESS, |out| {
            int(out, process_descriptor::PID, pid);
            if !track.owner_name.is_empty() {
                string(out, process_descriptor::PROCESS_NAME, track.owner_name);
            }
        }),
        TrackOwner::Machine => {}
    }
}

/// The frames that are written so far.
#[derive(Default)]
struct FrameWriter {
    /// The cookie of the last frame. Each frame has its own, which joins its begin and its end.
    cookie: u64,
}

impl FrameWriter {
    /// Appends a frame that begins at `ts`: two packets, or one if its end is not known. `clock` is the clock
    /// of its times, a value of the enum `BuiltinClock`.
    fn frame(
        &mut self,
        out: &mut Vec<u8>,
        sequence: u64,
        ts: Timestamp,
        frame: &TimelineFrame<'_>,
        clock: u64,
    ) {
        self.cookie += 1;
        let cookie = self.cookie;
        packet(out, sequence, |out| {
            timestamp(out, ts, clock);
            message(out, trace_packet::FRAME_TIMELINE_EVENT, |out| begin_frame(out, cookie, frame));
        });
        let Some(end) = frame.end else { return };
        packet(out, sequence, |out| {
            timestamp(out, end, clock);
            message(out, trace_packet::FRAME_TIMELINE_EVENT, |out| {
                message(out, frame_timeline_event::FRAME_END, |out| uint(out, frame_end::COOKIE, cookie));
            });
        });
    }
}

/// Appends the begin of a frame. The message of an expected frame is the message of an actual frame without
/// its last fields.
fn begin_frame(out: &mut Vec<u8>, cookie: u64, frame: &TimelineFrame<'_>) {
    let event = match (frame.surface.is_some(), frame.actual.is_some()) {
        (true, true) => frame_timeline_event::ACTUAL_SURFACE_FRAME_START,
        (true, false) => frame_timeline_event::EXPECTED_SURFACE_FRAME_START,
        (false, true) => frame_timeline_event::ACTUAL_DISPLAY_FRAME_START,
        (false, false) => frame_timeline_event::EXPECTED_DISPLAY_FRAME_START,
    };
    message(out, event, |out| match &frame.surface {
        Some(surface) => {
            uint(out, actual_surface::COOKIE, cookie);
            uint(out, actual_surface::TOKEN, surface.token as u64);
            uint(out, actual_surface::DISPLAY_FRAME_TOKEN, frame.display_token as u64);
            int(out, actual_surface::PID, frame.pid);
            string(out, actual_surface::LAYER_NAME, surface.layer);
            if let Some(actual) = &frame.actual {
                uint(out, actual_surface::PRESENT_TYPE, actual.present.number());
                uint(out, actual_surface::ON_TIME_FINISH, actual.on_time_finish.into());
                uint(out, actual_surface::GPU_COMPOSITION, actual.gpu_composition.into());
                uint(out, actual_surface::JANK_TYPE, actual.jank.0.into());
                uint(out, actual_surface::PREDICTION_TYPE, actual.prediction.number());
            }
        }
        None => {
            uint(out, actual_display::COOKIE, cookie);
            uint(out, actual_display::TOKEN, frame.display_token as u64);
            int(out, actual_display::PID, frame.pid);
            if let Some(actual) = &frame.actual {
                uint(out, actual_display::PRESENT_TYPE, actual.present.number());
                uint(out, actual_display::ON_TIME_FINISH, actual.on_time_finish.into());
                uint(out, actual_display::GPU_COMPOSITION, actual.gpu_composition.into());
                uint(out, actual_display::JANK_TYPE, actual.jank.0.into());
                uint(out, actual_display::PREDICTION_TYPE, actual.prediction.number());
            }
        }
    });
}
