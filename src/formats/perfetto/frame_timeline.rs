//! Reads `FrameTimelineEvent` packets (protos/perfetto/trace/android/frame_timeline_event.proto): joins the
//! begin of each frame with its end.
//!
//! SurfaceFlinger writes the packets of a frame when the frame is over, and their times lie before that. A
//! begin and an end have the same cookie, which is used once.

use std::collections::{HashMap, HashSet};

use super::fields::{
    actual_display_frame_start as actual_display, actual_surface_frame_start as actual_surface,
    expected_display_frame_start as expected_display, expected_surface_frame_start as expected_surface,
    frame_end, frame_timeline_event,
};
use super::track_clocks::number;
use super::track_table::{PerfettoTrackKey, TrackTable};
use super::wire::read::{WireValue, fields, last_value};
use crate::clock::Timestamp;
use crate::formats::{
    ActualFrame, JankTypes, PredictionType, PresentType, SurfaceFrame, TimelineFrame, TrackId,
};
use crate::ids::Pid;

/// The most frames that wait for their end at one time. SurfaceFlinger writes the begin and the end of a
/// frame one behind the other.
const MAX_OPEN: usize = 1 << 16;
/// Some releases of Android write negative times, and times near the largest number, into frames without a
/// time. Perfetto's own tools leave out times above this limit.
const BAD_TIME: Timestamp = Timestamp(i64::MAX as u64 - 10_000_000_000);

/// A frame at its begin, in the recording's clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedFrame<'a> {
    pub(super) ts: Timestamp,
    pub(super) track: TrackId,
    pub(super) frame: TimelineFrame<'a>,
}

/// The frames of a trace, and the faults of frames that could not be read completely.
#[derive(Default)]
pub(super) struct Frames<'a> {
    /// In the order of their begins.
    pub(super) list: Vec<PlacedFrame<'a>>,
    /// Ends of frames whose begin the trace does not hold.
    pub(super) ends_alone: u64,
    /// Packets that lack a cookie, a token or a process, which every frame has.
    pub(super) malformed: u64,
    /// Packets with an impossible time.
    pub(super) bad_times: u64,
}

impl Frames<'_> {
    /// The frames whose end the trace does not hold.
    pub(super) fn unfinished(&self) -> u64 {
        self.list.iter().filter(|placed| placed.frame.end.is_none()).count() as u64
    }
}

/// The packets as they are found.
#[derive(Default)]
pub(super) struct FramePackets<'a> {
    /// Times of the recording's clock, and `FrameTimelineEvent` messages.
    list: Vec<(Timestamp, &'a [u8])>,
    bad_times: u64,
}

/// A frame that has begun.
#[derive(Debug, Clone, Copy)]
enum OpenFrame {
    /// The frame with this number.
    Kept(usize),
    /// A frame that repeats the one of another layer with the same token.
    Repeated,
}

impl<'a> FramePackets<'a> {
    /// Adds a `FrameTimelineEvent` at `ts` of the recording's clock.
    pub(super) fn push(&mut self, ts: Timestamp, event: &'a [u8]) {
        if ts >= BAD_TIME {
            self.bad_times += 1;
        } else {
            self.list.push((ts, event));
        }
    }

    /// Joins begins and ends. Each row of frames gets its track in `table`.
    pub(super) fn join(mut self, table: &mut TrackTable<'a>) -> Frames<'a> {
        // Begins stay in front of the ends of their time, as the file has them.
        self.list.sort_by_key(|(ts, _)| *ts);
        let mut out = Frames { bad_times: self.bad_times, ..Frames::default() };
        let mut open: HashMap<u64, OpenFrame> = HashMap::new();
        let mut expected: HashSet<(Pid, i64)> = HashSet::new();
        for (ts, event) in self.list {
            let Some((kind, body)) = fields(event).find(|(n, _)| is_event(*n)) else {
                out.malformed += 1;
                continue;
            };
            let body = body.bytes();
            if kind == frame_timeline_event::FRAME_END {
                match number(body, frame_end::COOKIE).map(|cookie| open.remove(&cookie)) {
                    Some(Some(OpenFrame::Kept(at))) => out.list[at].frame.end = Some(ts),
                    Some(Some(OpenFrame::Repeated)) => {}
                    Some(None) => out.ends_alone += 1,
                    None => out.malformed += 1,
                }
                continue;
            }
            let Some((cookie, frame)) = frame(kind, body) else {
                out.malformed += 1;
                continue;
            };
            let repeated = |surface: SurfaceFrame<'_>| !expected.insert((frame.pid, surface.token));
            let is_repeated = frame.actual.is_none() && frame.surface.is_some_and(repeated);
            if open.len() >= MAX_OPEN {
                forget_half(&mut open);
            }
            if is_repeated {
                open.insert(cookie, OpenFrame::Repeated);
                continue;
            }
            open.insert(cookie, OpenFrame::Kept(out.list.len()));
            let track = table.id(PerfettoTrackKey::Frames(frame.pid, frame.actual.is_some()), false);
            out.list.push(PlacedFrame { ts, track, frame });
        }
        out
    }
}

/// Forgets half of the frames that wait for their end, the older ones. They stay without an end.
fn forget_half(open: &mut HashMap<u64, OpenFrame>) {
    let mut waiting: Vec<usize> = open.values().filter_map(|frame| frame.number()).collect();
    let middle = waiting.len() / 2;
    let oldest_kept = if waiting.is_empty() { 0 } else { *waiting.select_nth_unstable(middle).1 };
    open.retain(|_, frame| frame.number().is_some_and(|number| number >= oldest_kept));
}

impl OpenFrame {
    fn number(self) -> Option<usize> {
        match self {
            OpenFrame::Kept(number) => Some(number),
            OpenFrame::Repeated => None,
        }
    }
}

/// Whether the field of `FrameTimelineEvent` is the begin or the end of a frame.
fn is_event(field: u32) -> bool {
    matches!(
        field,
        frame_timeline_event::EXPECTED_DISPLAY_FRAME_START
            | frame_timeline_event::ACTUAL_DISPLAY_FRAME_START
            | frame_timeline_event::EXPECTED_SURFACE_FRAME_START
            | frame_timeline_event::ACTUAL_SURFACE_FRAME_START
            | frame_timeline_event::FRAME_END
    )
}

/// The cookie and the frame of a begin; `None` where a part of it that every frame has is missing.
fn frame(kind: u32, body: &[u8]) -> Option<(u64, TimelineFrame<'_>)> {
    let is_surface = matches!(
        kind,
        frame_timeline_event::EXPECTED_SURFACE_FRAME_START | frame_timeline_event::ACTUAL_SURFACE_FRAME_START
    );
    // The messages of expected frames are those of actual frames without their last fields.
    let (cookie, token, pid) = if is_surface {
        (expected_surface::COOKIE, expected_surface::TOKEN, expected_surface::PID)
    } else {
        (expected_display::COOKIE, expected_display::TOKEN, expected_display::PID)
    };
    let cookie = number(body, cookie)?;
    let token = number(body, token)? as i64;
    let pid = Pid(last_value(body, pid)?.int32());
    let surface = is_surface.then(|| {
        let layer = last_value(body, expected_surface::LAYER_NAME).map_or(&[][..], WireValue::bytes);
        SurfaceFrame { token, layer }
    });
    let display_token =
        if is_surface { number(body, expected_surface::DISPLAY_FRAME_TOKEN)? as i64 } else { token };
    let actual = match kind {
        frame_timeline_event::ACTUAL_SURFACE_FRAME_START => Some(actual_frame(
            body,
            [
                actual_surface::JANK_TYPE,
                actual_surface::PRESENT_TYPE,
                actual_surface::ON_TIME_FINISH,
                actual_surface::GPU_COMPOSITION,
                actual_surface::PREDICTION_TYPE,
            ],
        )),
        frame_timeline_event::ACTUAL_DISPLAY_FRAME_START => Some(actual_frame(
            body,
            [
                actual_display::JANK_TYPE,
                actual_display::PRESENT_TYPE,
                actual_display::ON_TIME_FINISH,
                actual_display::GPU_COMPOSITION,
                actual_display::PREDICTION_TYPE,
            ],
        )),
        _ => None,
    };
    Some((cookie, TimelineFrame { end: None, pid, display_token, surface, actual }))
}

/// The outcome of a frame, from a message that has it in these fields.
fn actual_frame(body: &[u8], [jank, present, on_time, gpu, prediction]: [u32; 5]) -> ActualFrame {
    let number = |field| number(body, field).unwrap_or(0);
    ActualFrame {
        jank: JankTypes(number(jank) as u32),
        present: PresentType::of_number(number(present)),
        on_time_finish: number(on_time) != 0,
        gpu_composition: number(gpu) != 0,
        prediction: PredictionType::of_number(number(prediction)),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::super::fields::{
        actual_display_frame_start as actual_display, actual_surface_frame_start as actual_surface,
        builtin_clock, clock_snapshot, clock_snapshot_clock,
        expected_surface_frame_start as expected_surface, frame_end, frame_timeline_event as event, trace,
        trace_packet,
    };
    use super::super::read::read;
    use super::super::wire::write::{message, string, uint};
    use crate::clock::Timestamp;
    use crate::formats::{
        Event, EventType, JankTypes, Order, PredictionType, PresentType, ReadReport, Sink, Track, TrackEvent,
        TrackEventKind, TrackKind, TrackOwner,
    };

    #[derive(Default)]
    struct FrameLog {
        tracks: Vec<String>,
        frames: Vec<String>,
    }

    impl Sink for FrameLog {
        fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
            Ok(())
        }
        fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
            assert_eq!(track.kind, TrackKind::Frames);
            let TrackOwner::Process(pid) = track.owner else { panic!("{track:?}") };
            self.tracks.push(format!("{pid} {}", String::from_utf8_lossy(track.name)));
            Ok(())
        }
        fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
            let TrackEventKind::Frame(frame) = event.kind else { panic!("{event:?}") };
            let end = frame.end.map_or("…".to_owned(), |end| end.to_string());
            let layer = String::from_utf8_lossy(frame.layer()).into_owned();
            let tokens = match frame.surface {
                Some(surface) => format!("{} in {}", surface.token, frame.display_token),
                None => frame.display_token.to_string(),
            };
            let jank = frame.actual.map_or(String::new(), |actual| format!(" {}", actual.jank.text()));
            self.frames.push(format!("{}-{end} #{} {tokens} {layer}{jank}", event.ts, event.track.0));
            Ok(())
        }
    }

    fn read_log(data: &[u8]) -> (FrameLog, ReadReport) {
        let mut log = FrameLog::default();
        let report = read(data, Order::Time, &mut log).unwrap();
        let mut other = FrameLog::default();
        read(data, Order::Any, &mut other).unwrap();
        assert_eq!(log.frames, other.frames, "both orders");
        assert_eq!(report.track_events.frames, log.frames.len() as u64);
        (log, report)
    }

    /// A packet at `ts` with the event `kind`.
    fn packet(out: &mut Vec<u8>, ts: u64, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
        message(out, trace::PACKET, |out| {
            uint(out, trace_packet::TIMESTAMP, ts);
            message(out, trace_packet::FRAME_TIMELINE_EVENT, |out| message(out, kind, fill));
        });
    }

    fn end(out: &mut Vec<u8>, ts: u64, cookie: u64) {
        packet(out, ts, event::FRAME_END, |out| uint(out, frame_end::COOKIE, cookie));
    }

    /// The begin of a display frame of process 50; `jank` of an actual one.
    fn display(out: &mut Vec<u8>, ts: u64, cookie: u64, token: u64, jank: Option<u64>) {
        let kind = match jank {
            Some(_) => event::ACTUAL_DISPLAY_FRAME_START,
            None => event::EXPECTED_DISPLAY_FRAME_START,
        };
        packet(out, ts, kind, |out| {
            uint(out, actual_display::COOKIE, cookie);
            uint(out, actual_display::TOKEN, token);
            uint(out, actual_display::PID, 50);
            if let Some(jank) = jank {
                uint(out, actual_display::PRESENT_TYPE, 1);
                uint(out, actual_display::ON_TIME_FINISH, 1);
                uint(out, actual_display::JANK_TYPE, jank);
                uint(out, actual_display::PREDICTION_TYPE, 1);
            }
        });
    }

    /// The begin of a surface frame of process 7 in the display frame with the token 100 + `token`; `jank` of
    /// an actual one.
    fn surface(out: &mut Vec<u8>, ts: u64, cookie: u64, token: u64, layer: &[u8], jank: Option<u64>) {
        let kind = match jank {
            Some(_) => event::ACTUAL_SURFACE_FRAME_START,
            None => event::EXPECTED_SURFACE_FRAME_START,
        };
        packet(out, ts, kind, |out| {
            uint(out, actual_surface::COOKIE, cookie);
            uint(out, actual_surface::TOKEN, token);
            uint(out, actual_surface::DISPLAY_FRAME_TOKEN, 100 + token);
            uint(out, actual_surface::PID, 7);
            string(out, actual_surface::LAYER_NAME, layer);
            if let Some(jank) = jank {
                uint(out, actual_surface::PRESENT_TYPE, 2);
                uint(out, actual_surface::GPU_COMPOSITION, 1);
                uint(out, actual_surface::JANK_TYPE, jank);
                uint(out, actual_surface::PREDICTION_TYPE, 2);
            }
        });
    }

    #[test]
    fn expected_and_actual_frames_of_layers_and_displays_have_tracks_of_their_processes() {
        let mut data = Vec::new();
        display(&mut data, 20, 1, 105, None);
        end(&mut data, 36, 1);
        display(&mut data, 21, 2, 105, Some(1));
        end(&mut data, 30, 2);
        surface(&mut data, 4, 3, 5, b"", None);
        end(&mut data, 20, 3);
        surface(&mut data, 5, 4, 5, b"TX - app#1", Some(64 | 128));
        end(&mut data, 33, 4);
        let (log, report) = read_log(&data);
        let tracks =
            ["50 Expected Timeline", "50 Actual Timeline", "7 Expected Timeline", "7 Actual Timeline"];
        let mut found = log.tracks.clone();
        found.sort_unstable();
        let mut want = tracks.map(str::to_owned);
        want.sort_unstable();
        assert_eq!(found, want);
        let number = |name: &str| log.tracks.iter().position(|track| track == name).unwrap();
        let [expected_display, actual_display, expected, actual] = tracks.map(number);
        let want = [
            format!("4-20 #{expected} 5 in 105 "),
            format!("5-33 #{actual} 5 in 105 TX - app#1 App Deadline Missed, Buffer Stuffing"),
            format!("20-36 #{expected_display} 105 "),
            format!("21-30 #{actual_display} 105  None"),
        ];
        assert_eq!(log.frames, want);
        assert_eq!((report.first_ts, report.last_ts), (Some(Timestamp(4)), Some(Timestamp(36))));
        assert!(report.unread.is_empty() && report.notes.is_empty() && !report.is_lossy(), "{report:?}");
    }

    #[test]
    fn what_became_of_a_frame_is_read_whole() {
        struct ActualPacket(Vec<crate::formats::ActualFrame>);
        impl Sink for ActualPacket {
            fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
                Ok(())
            }
            fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
                let TrackEventKind::Frame(frame) = event.kind else { panic!("{event:?}") };
                self.0.extend(frame.actual);
                Ok(())
            }
        }
        let mut data = Vec::new();
        surface(&mut data, 1, 1, 5, b"", Some(64));
        display(&mut data, 2, 2, 105, Some(1));
        let mut all = ActualPacket(Vec::new());
        read(&data, Order::Any, &mut all).unwrap();
        let [surface, display] = all.0.as_slice() else { panic!("{:?}", all.0) };
        assert_eq!((surface.jank, surface.present), (JankTypes(64), PresentType::Late));
        assert_eq!((surface.on_time_finish, surface.gpu_composition), (false, true));
        assert_eq!(surface.prediction, PredictionType::Expired);
        assert_eq!((display.jank, display.present), (JankTypes(1), PresentType::OnTime));
        assert_eq!((display.on_time_finish, display.gpu_composition), (true, false));
        assert_eq!(display.prediction, PredictionType::Valid);
    }

    #[test]
    fn what_is_expected_of_several_layers_with_one_token_is_one_frame() {
        let mut data = Vec::new();
        surface(&mut data, 4, 1, 5, b"", None);
        surface(&mut data, 4, 2, 5, b"", None);
        end(&mut data, 20, 1);
        end(&mut data, 20, 2);
        surface(&mut data, 5, 3, 5, b"a", Some(1));
        surface(&mut data, 5, 4, 5, b"b", Some(1));
        let (log, report) = read_log(&data);
        assert_eq!(log.frames, ["4-20 #0 5 in 105 ", "5-… #1 5 in 105 a None", "5-… #1 5 in 105 b None"]);
        assert_eq!(report.notes, ["2 frames of FrameTimeline do not end in the trace"]);
        assert!(!report.is_lossy());
    }

    #[test]
    fn begins_and_ends_are_joined_whatever_their_order_in_the_file() {
        let mut data = Vec::new();
        end(&mut data, 30, 1);
        end(&mut data, 19, 2);
        display(&mut data, 10, 2, 101, None);
        display(&mut data, 5, 1, 100, None);
        let (log, report) = read_log(&data);
        assert_eq!(log.frames, ["5-30 #0 100 ", "10-19 #0 101 "]);
        assert!(report.notes.is_empty());
    }

    #[test]
    fn cookies_that_are_used_wrongly_are_told_and_the_rest_is_read() {
        let mut data = Vec::new();
        end(&mut data, 3, 9);
        display(&mut data, 5, 1, 100, None);
        display(&mut data, 7, 1, 101, None);
        end(&mut data, 9, 1);
        end(&mut data, 9, 1);
        let (log, report) = read_log(&data);
        assert_eq!(log.frames, ["5-… #0 100 ", "7-9 #0 101 "]);
        assert_eq!(
            report.notes,
            [
                "1 frames of FrameTimeline do not end in the trace",
                "2 ends of FrameTimeline's frames are left out: the trace has no begin of theirs"
            ]
        );
    }

    #[test]
    fn frames_without_number_that_never_end_take_bounded_memory_and_the_latest_ones_still_end() {
        const FRAMES: u64 = 300_000;
        let mut data = Vec::new();
        for cookie in 0..FRAMES {
            display(&mut data, 1_000 + cookie, cookie, cookie, None);
        }
        end(&mut data, 5_000_000, 0);
        end(&mut data, 5_000_001, FRAMES - 1);
        let (log, report) = read_log(&data);
        assert_eq!(log.frames.len() as u64, FRAMES);
        assert_eq!(log.frames[0], "1000-… #0 0 ");
        let last = FRAMES - 1;
        assert_eq!(log.frames.last().unwrap(), &format!("{}-5000001 #0 {last} ", 1_000 + last));
        assert_eq!(
            report.notes,
            [
                &format!("{last} frames of FrameTimeline do not end in the trace"),
                "1 ends of FrameTimeline's frames are left out: the trace has no begin of theirs"
            ]
        );
    }

    #[test]
    fn packets_without_what_a_frame_needs_are_damage() {
        let mut data = Vec::new();
        for missing in [
            expected_surface::COOKIE,
            expected_surface::TOKEN,
            expected_surface::DISPLAY_FRAME_TOKEN,
            expected_surface::PID,
        ] {
            packet(&mut data, 5, event::EXPECTED_SURFACE_FRAME_START, |out| {
                for field in 1..=4 {
                    if field != missing {
                        uint(out, field, 3);
                    }
                }
            });
        }
        packet(&mut data, 5, event::FRAME_END, |_| ());
        packet(&mut data, 5, 77, |_| ());
        let (log, report) = read_log(&data);
        assert!(log.frames.is_empty());
        assert_eq!(report.damage.len(), 1);
        assert_eq!(
            report.damage[0].what,
            "6 packets of FrameTimeline are left out: a cookie, a token or a process is missing"
        );
    }

    #[test]
    fn impossible_times_are_left_out_and_told() {
        let mut data = Vec::new();
        display(&mut data, u64::MAX, 1, 100, None);
        display(&mut data, i64::MAX as u64, 2, 100, None);
        display(&mut data, 4, 3, 100, None);
        end(&mut data, u64::MAX - 5, 3);
        let (log, report) = read_log(&data);
        assert_eq!(log.frames, ["4-… #0 100 "]);
        let told = "3 packets of FrameTimeline are left out: their time is negative or far too large";
        assert!(report.notes.iter().any(|note| note == told), "{:?}", report.notes);
        assert_eq!(report.last_ts, Some(Timestamp(4)));
    }

    #[test]
    fn times_in_another_clock_are_those_of_the_recording() {
        let mut data = Vec::new();
        message(&mut data, trace::PACKET, |out| {
            message(out, trace_packet::CLOCK_SNAPSHOT, |out| {
                for (id, reading) in [(builtin_clock::BOOTTIME, 5_000), (builtin_clock::MONOTONIC, 1_000)] {
                    message(out, clock_snapshot::CLOCKS, |out| {
                        uint(out, clock_snapshot_clock::CLOCK_ID, id);
                        uint(out, clock_snapshot_clock::TIMESTAMP, reading);
                    });
                }
            });
        });
        for (ts, kind) in [(1_100, event::EXPECTED_DISPLAY_FRAME_START), (1_200, event::FRAME_END)] {
            message(&mut data, trace::PACKET, |out| {
                uint(out, trace_packet::TIMESTAMP, ts);
                uint(out, trace_packet::TIMESTAMP_CLOCK_ID, builtin_clock::MONOTONIC);
                message(out, trace_packet::FRAME_TIMELINE_EVENT, |out| {
                    message(out, kind, |out| (1..=3).for_each(|field| uint(out, field, 1)));
                });
            });
        }
        let (log, _) = read_log(&data);
        assert_eq!(log.frames, ["5100-5200 #0 1 "]);
    }

    #[test]
    fn a_trace_cut_anywhere_keeps_its_whole_packets() {
        let mut data = Vec::new();
        surface(&mut data, 4, 1, 5, b"", None);
        end(&mut data, 20, 1);
        surface(&mut data, 5, 2, 5, b"TX - app#1", Some(64));
        end(&mut data, 33, 2);
        let mut seen = 0;
        for cut in 0..=data.len() {
            let (log, _) = read_log(&data[..cut]);
            assert!(log.frames.len() >= seen, "cut at {cut}");
            seen = log.frames.len();
        }
        assert_eq!(seen, 2);
    }

    #[test]
    fn a_trace_with_any_byte_changed_is_read_to_its_end() {
        let mut data = Vec::new();
        display(&mut data, 3, 7, 105, None);
        surface(&mut data, 4, 1, 5, b"", None);
        end(&mut data, 20, 1);
        surface(&mut data, 5, 2, 5, b"TX - app#1", Some(64));
        display(&mut data, 6, 3, 105, Some(1));
        end(&mut data, 33, 2);
        for at in 0..data.len() {
            for byte in 0..=u8::MAX {
                let mut changed = data.clone();
                changed[at] = byte;
                let mut log = AnyFrames::default();
                let report = read(&changed, Order::Time, &mut log).unwrap();
                assert_eq!(report.track_events.frames, log.0);
                assert!(log.0 <= 4, "byte {at} is {byte}");
            }
        }
    }

    /// Counts frames, none of which ends before it begins.
    #[derive(Default)]
    struct AnyFrames(u64);

    impl Sink for AnyFrames {
        fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
            Ok(())
        }
        fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
            if let TrackEventKind::Frame(frame) = event.kind {
                assert!(frame.end.is_none_or(|end| end >= event.ts));
                self.0 += 1;
            }
            Ok(())
        }
    }
}
