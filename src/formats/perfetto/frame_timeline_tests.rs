//! Tests of the reading of FrameTimeline, with traces that the tests encode themselves.

use std::io;

use super::fields::{
    actual_display_frame_start as actual_display, actual_surface_frame_start as actual_surface,
    builtin_clock, clock_snapshot, clock_snapshot_clock, expected_surface_frame_start as expected_surface,
    frame_end, frame_timeline_event as event, trace, trace_packet,
};
use super::read::read;
use super::wire::write::{message, string, uint};
use crate::formats::{
    Event, EventType, JankTypes, Order, PredictionType, PresentType, ReadReport, Sink, Track, TrackEvent,
    TrackEventKind, TrackKind, TrackOwner,
};

type Out = Vec<u8>;

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
fn packet(out: &mut Out, ts: u64, kind: u32, fill: impl FnOnce(&mut Out)) {
    message(out, trace::PACKET, |out| {
        uint(out, trace_packet::TIMESTAMP, ts);
        message(out, trace_packet::FRAME_TIMELINE_EVENT, |out| message(out, kind, fill));
    });
}

fn end(out: &mut Out, ts: u64, cookie: u64) {
    packet(out, ts, event::FRAME_END, |out| uint(out, frame_end::COOKIE, cookie));
}

/// The begin of a display frame of process 50; `jank` of an actual one.
fn display(out: &mut Out, ts: u64, cookie: u64, token: u64, jank: Option<u64>) {
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

/// The begin of a surface frame of process 7 in the display frame with the token 100 + `token`; `jank` of an
/// actual one.
fn surface(out: &mut Out, ts: u64, cookie: u64, token: u64, layer: &[u8], jank: Option<u64>) {
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
    let tracks = ["50 Expected Timeline", "50 Actual Timeline", "7 Expected Timeline", "7 Actual Timeline"];
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
    assert_eq!((report.first_ts, report.last_ts), (Some(4), Some(36)));
    assert!(report.unread.is_empty() && report.notes.is_empty() && !report.is_lossy(), "{report:?}");
}

#[test]
fn what_became_of_a_frame_is_read_whole() {
    struct Actual(Vec<crate::formats::ActualFrame>);
    impl Sink for Actual {
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
    let mut all = Actual(Vec::new());
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
    assert_eq!(report.last_ts, Some(4));
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
