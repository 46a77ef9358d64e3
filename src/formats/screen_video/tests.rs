//! Tests of the reader of screen videos.

use support::screen_video::{PlantedFrame, REALTIME_OFFSET_NS, Tables, frames, video};

use super::*;
use crate::clock::Timestamp;

const FIRST_NS: u64 = 81_234_567_890_123;

fn parse(data: &[u8]) -> Result<VideoRecording, VideoError> {
    VideoRecording::parse(data, &mut |_| {})
}

/// The names and times of the instants that the reader pushes.
#[derive(Default)]
struct Instants(Vec<(u64, String)>);

impl Sink for Instants {
    fn event(&mut self, _: &crate::formats::Event<'_>, _: &crate::formats::EventType) -> io::Result<()> {
        Ok(())
    }

    fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        if let TrackEventKind::Instant { name } = event.kind {
            self.0.push((event.ts.0, String::from_utf8_lossy(name).into_owned()));
        }
        Ok(())
    }
}

#[test]
fn each_frame_has_its_time_since_boot_and_its_time_in_the_video() {
    let data = video(&frames(FIRST_NS, 10), Tables::Both);
    assert!(detect(&data));
    let recording = parse(&data).unwrap();
    assert_eq!((recording.head.clock, recording.head.precision), (Clock::Boottime, 9));
    let video = recording.video().unwrap();
    assert_eq!((video.frames.len(), video.track_frames, video.length_ns), (10, Some(10), 1_000_000_000));
    assert_eq!(video.frames[3], VideoFrame { ts: Timestamp(FIRST_NS + 300_000_000), video_ns: 300_000_000 });
    assert_eq!(video.wall_start, Some(Timestamp(FIRST_NS + REALTIME_OFFSET_NS as u64)));
    let mut sink = Instants::default();
    let report = recording.read(Order::Time, &mut sink).unwrap();
    assert!(!report.is_lossy() && report.irregular.is_empty(), "{report:?}");
    assert_eq!(report.track_events.instants, 10);
    assert_eq!(sink.0[3], (FIRST_NS + 300_000_000, "frame 3, 0.300 s".to_owned()));
}

#[test]
fn older_tables_have_their_own_units_and_clocks() {
    let all = frames(FIRST_NS, 4);
    let old = parse(&video(&all, Tables::Microseconds)).unwrap();
    assert_eq!((old.head.clock, old.head.precision), (Clock::Boottime, 6));
    assert_eq!(old.video.frames[1].ts, Timestamp((FIRST_NS + 100_000_000) / 1000 * 1000));
    assert_eq!(old.video.wall_start, None);
    let first_version = parse(&video(&all, Tables::Version1)).unwrap();
    assert_eq!(first_version.head.clock, Clock::Monotonic);
    assert_eq!(first_version.video.frames[1].ts, Timestamp(FIRST_NS + 100_000_000));
}

#[test]
fn the_screen_shows_the_last_frame_that_is_not_later() {
    let video = parse(&video(&frames(1_000_000_000, 3), Tables::Both)).unwrap().video;
    let at = |ms: u64| video.frame_at(Timestamp(ms * 1_000_000));
    assert_eq!([999, 1000, 1099, 1100, 5000].map(at), [None, Some(0), Some(0), Some(1), Some(2)]);
}

#[test]
fn a_video_without_a_table_is_refused_with_the_way_to_one() {
    let error = parse(&video(&frames(FIRST_NS, 3), Tables::None)).err().unwrap().to_string();
    assert!(error.contains("no table") && error.contains("adb record --video"), "{error}");
}

#[test]
fn a_table_that_disagrees_with_the_video_track_is_damage() {
    let whole = video(&frames(FIRST_NS, 5), Tables::Both);
    let magic = b"#VV1NSC0PET1ME2#";
    let at = memchr::memmem::find(&whole, magic).unwrap();
    let count_at = at + magic.len() + 12;
    let with = |count: u32| {
        let mut data = whole.clone();
        data[count_at..count_at + 4].copy_from_slice(&count.to_le_bytes());
        parse(&data)
    };
    let fewer = with(4).unwrap();
    assert_eq!(fewer.video.frames.len(), 4);
    assert_eq!(fewer.report.damage.len(), 1);
    assert_eq!(fewer.report.damage[0].offset, at as u64);
    let said = &fewer.report.damage[0].what;
    assert!(said.contains("4 frames") && said.contains("has 5 frames"), "{said}");
    // The count claims gigabytes: the memory follows the file.
    let claimed = with(u32::MAX).unwrap();
    assert!(claimed.video.frames.len() <= 5 && claimed.report.is_lossy());
    assert!(matches!(with(0), Err(VideoError::NoFrames { .. })));
}

#[test]
fn frames_that_go_backwards_are_shown_with_the_frame_before() {
    let mut all = frames(FIRST_NS, 4);
    all[2] = PlantedFrame { boot_ns: FIRST_NS + 50_000_000, ..all[2] };
    let mut data = video(&frames(FIRST_NS, 4), Tables::Both);
    let table = video_table(&all);
    let at = memchr::memmem::find(&data, b"#VV1NSC0PET1ME2#").unwrap();
    data[at..at + table.len()].copy_from_slice(&table);
    let recording = parse(&data).unwrap();
    let times: Vec<u64> =
        recording.video.frames.iter().map(|frame| (frame.ts.0 - FIRST_NS) / 1_000_000).collect();
    assert_eq!(times, [0, 100, 100, 300]);
    assert!(recording.report.irregular[0].starts_with("1 frames"), "{:?}", recording.report.irregular);
}

/// The table with a version alone.
fn video_table(all: &[PlantedFrame]) -> Vec<u8> {
    let head =
        [&2u32.to_le_bytes()[..], &REALTIME_OFFSET_NS.to_le_bytes(), &(all.len() as u32).to_le_bytes()];
    let times: Vec<u8> = all.iter().flat_map(|frame| frame.boot_ns.to_le_bytes()).collect();
    [b"#VV1NSC0PET1ME2#".as_slice(), &head.concat(), &times].concat()
}

#[test]
fn two_hundred_cuts_are_told_each() {
    let whole = video(&frames(FIRST_NS, 10), Tables::Both);
    for n in 0..200 {
        let end = 8 + n * (whole.len() - 8) / 200;
        match parse(&whole[..end]) {
            Ok(cut) => assert!(cut.report.is_lossy() && !cut.video.frames.is_empty(), "cut at {end}"),
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains(&end.to_string()) || error.contains("lists none"), "{end}: {error}");
            }
        }
    }
}

#[test]
fn one_changed_byte_never_makes_it_fail_otherwise_than_with_an_error() {
    let whole = video(&frames(FIRST_NS, 3), Tables::Both);
    let index = memchr::memmem::find(&whole, b"moov").unwrap() - 4;
    let table = memchr::memmem::find(&whole, b"#VV1NSC0PET1ME!#").unwrap();
    for at in (0..64).chain(table..whole.len()) {
        for value in [0, 1, 0x7f, 0xff] {
            let mut data = whole.clone();
            data[at] = value;
            if let Ok(video) = parse(&data) {
                video.read(Order::Time, &mut Instants::default()).unwrap();
            }
        }
    }
    // A box of 64 bits whose size is less than its head, and one that ends behind the last byte of all.
    for size in [0u64, 15, u64::MAX] {
        let mut data = whole.clone();
        data[index..index + 4].copy_from_slice(&1u32.to_be_bytes());
        data[index + 8..index + 16].copy_from_slice(&size.to_be_bytes());
        assert!(parse(&data).unwrap().report.is_lossy(), "{size}");
    }
}

#[test]
fn a_time_that_no_clock_has_ends_the_frames() {
    let mut data = video(&frames(FIRST_NS, 3), Tables::Both);
    let at = memchr::memmem::find(&data, b"#VV1NSC0PET1ME2#").unwrap() + 32 + 8;
    data[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    let recording = parse(&data).unwrap();
    assert_eq!(recording.video.frames.len(), 1);
    assert!(recording.report.damage.iter().any(|damage| damage.what.contains("frame 1")));
}
