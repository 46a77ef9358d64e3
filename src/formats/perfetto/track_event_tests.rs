//! Tests of the reading of track events, with traces that the tests encode themselves.

use std::io;

use super::fields::{
    builtin_clock, clock_snapshot, clock_snapshot_clock, counter_descriptor, event_name, interned_data,
    legacy_event, process_descriptor, sequence_flags, thread_descriptor, trace, trace_packet,
    trace_packet_defaults, track_descriptor, track_event, track_event_defaults, track_event_type,
};
use super::read::read;
use super::wire::write::{double, fixed64, message, string, uint};
use crate::clock::{Clock, Timestamp};
use crate::formats::{
    CounterValue, Event, EventType, Head, Order, ReadReport, Sink, Track, TrackEvent, TrackEventKind,
    TrackKind,
};

#[derive(Default)]
struct TrackLog {
    clock: Option<Clock>,
    tracks: Vec<String>,
    events: Vec<String>,
}

impl Sink for TrackLog {
    fn head(&mut self, head: &Head) -> io::Result<()> {
        self.clock = Some(head.clock);
        Ok(())
    }
    fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
        Ok(())
    }
    fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
        assert_eq!(track.id.0 as usize, self.tracks.len());
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let kind = if track.kind == TrackKind::Slices { String::new() } else { format!(" {:?}", track.kind) };
        self.tracks.push(format!("{:?} {:?}{kind}", track.owner, text(track.name)));
        Ok(())
    }
    fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let what = match event.kind {
            TrackEventKind::Begin { name } => format!("+{}", text(name)),
            TrackEventKind::End => "-".to_owned(),
            TrackEventKind::Instant { name } => format!("!{}", text(name)),
            TrackEventKind::Counter(CounterValue::Int(value)) => format!("={value}"),
            TrackEventKind::Counter(CounterValue::Double(value)) => format!("={value:?}"),
            TrackEventKind::Frame(frame) => format!("{frame:?}"),
        };
        let flows =
            event.flows.iter().map(|flow| format!(" {}{}", if flow.ends { '>' } else { '~' }, flow.id));
        let cpu = event.thread_ns.map_or(String::new(), |ns| format!(" cpu {ns}"));
        self.events.push(format!("{} #{} {what}{}{cpu}", event.ts, event.track.0, flows.collect::<String>()));
        Ok(())
    }
}

fn read_log(data: &[u8]) -> (TrackLog, ReadReport) {
    let mut log = TrackLog::default();
    let report = read(data, Order::Time, &mut log).unwrap();
    let mut other = TrackLog::default();
    read(data, Order::Any, &mut other).unwrap();
    assert_eq!(log.events, other.events, "both orders");
    (log, report)
}

/// A packet of sequence `sequence`.
fn packet(out: &mut Vec<u8>, sequence: u64, fill: impl FnOnce(&mut Vec<u8>)) {
    message(out, trace::PACKET, |out| {
        fill(out);
        uint(out, trace_packet::TRUSTED_PACKET_SEQUENCE_ID, sequence);
    });
}

/// A packet with a track event of type `ty`.
fn event(out: &mut Vec<u8>, sequence: u64, ts: u64, ty: u64, fill: impl FnOnce(&mut Vec<u8>)) {
    packet(out, sequence, |out| {
        uint(out, trace_packet::TIMESTAMP, ts);
        message(out, trace_packet::TRACK_EVENT, |out| {
            uint(out, track_event::TYPE, ty);
            fill(out);
        });
    });
}

fn descriptor(out: &mut Vec<u8>, uuid: u64, fill: impl FnOnce(&mut Vec<u8>)) {
    packet(out, 9, |out| {
        message(out, trace_packet::TRACK_DESCRIPTOR, |out| {
            uint(out, track_descriptor::UUID, uuid);
            fill(out);
        });
    });
}

fn thread(out: &mut Vec<u8>, uuid: u64, pid: u64, tid: u64) {
    descriptor(out, uuid, |out| {
        message(out, track_descriptor::THREAD, |out| {
            uint(out, thread_descriptor::PID, pid);
            uint(out, thread_descriptor::TID, tid);
        });
    });
}

fn named(name: &str) -> impl FnOnce(&mut Vec<u8>) {
    move |out| string(out, track_event::NAME, name.as_bytes())
}

fn on(uuid: u64, name: &str) -> impl FnOnce(&mut Vec<u8>) {
    move |out| {
        uint(out, track_event::TRACK_UUID, uuid);
        string(out, track_event::NAME, name.as_bytes());
    }
}

fn intern(out: &mut Vec<u8>, iid: u64, name: &str) {
    message(out, trace_packet::INTERNED_DATA, |out| {
        message(out, interned_data::EVENT_NAMES, |out| {
            uint(out, event_name::IID, iid);
            string(out, event_name::NAME, name.as_bytes());
        });
    });
}

fn snapshot(out: &mut Vec<u8>, sequence: u64, clocks: &[(u64, u64, u64, u64)]) {
    packet(out, sequence, |out| {
        message(out, trace_packet::CLOCK_SNAPSHOT, |out| {
            for (id, ts, is_incremental, unit) in clocks {
                message(out, clock_snapshot::CLOCKS, |out| {
                    uint(out, clock_snapshot_clock::CLOCK_ID, *id);
                    uint(out, clock_snapshot_clock::TIMESTAMP, *ts);
                    uint(out, clock_snapshot_clock::IS_INCREMENTAL, *is_incremental);
                    uint(out, clock_snapshot_clock::UNIT_MULTIPLIER_NS, *unit);
                });
            }
        });
    });
}

const BEGIN: u64 = track_event_type::SLICE_BEGIN;
const END: u64 = track_event_type::SLICE_END;
const INSTANT: u64 = track_event_type::INSTANT;
const COUNTER: u64 = track_event_type::COUNTER;
const BOOT: u64 = builtin_clock::BOOTTIME;
const MONO: u64 = builtin_clock::MONOTONIC;

#[test]
fn tracks_are_named_by_their_descriptors_wherever_these_stand() {
    let mut data = Vec::new();
    event(&mut data, 1, 20, INSTANT, on(3, "late"));
    event(&mut data, 1, 10, BEGIN, on(1, "own"));
    event(&mut data, 1, 15, END, |out| uint(out, track_event::TRACK_UUID, 1));
    event(&mut data, 1, 30, INSTANT, on(2, "of a process"));
    event(&mut data, 1, 40, INSTANT, named("on no track"));
    thread(&mut data, 1, 7, 8);
    descriptor(&mut data, 2, |out| {
        message(out, track_descriptor::PROCESS, |out| uint(out, process_descriptor::PID, 7));
    });
    descriptor(&mut data, 3, |out| {
        string(out, track_descriptor::NAME, b"child");
        uint(out, track_descriptor::PARENT_UUID, 1);
    });
    let (log, report) = read_log(&data);
    assert_eq!(
        log.tracks,
        [
            "Thread { tid: Tid(8), tgid: Some(Pid(7)) } \"child\"",
            "Thread { tid: Tid(8), tgid: Some(Pid(7)) } \"\"",
            "Process(Pid(7)) \"\"",
            "Machine \"\"",
        ]
    );
    assert_eq!(
        log.events,
        ["10 #1 +own", "15 #1 -", "20 #0 !late", "30 #2 !of a process", "40 #3 !on no track"]
    );
    assert_eq!((report.track_events.slices, report.track_events.instants), (1, 3));
    assert_eq!((report.first_ts, report.last_ts), (Some(Timestamp(10)), Some(Timestamp(40))));
}

#[test]
fn parents_in_a_circle_end() {
    let mut data = Vec::new();
    for (uuid, parent) in [(1, 2), (2, 1), (3, 3)] {
        descriptor(&mut data, uuid, |out| uint(out, track_descriptor::PARENT_UUID, parent));
        event(&mut data, 1, uuid, INSTANT, on(uuid, "x"));
    }
    assert_eq!(read_log(&data).0.events.len(), 3);
}

#[test]
fn names_defaults_and_a_clock_of_differences_come_from_the_sequence() {
    let mut data = Vec::new();
    thread(&mut data, 5, 7, 8);
    snapshot(&mut data, 1, &[(BOOT, 1_000_000, 0, 1), (64, 5, 1, 1_000)]);
    packet(&mut data, 1, |out| {
        uint(out, trace_packet::SEQUENCE_FLAGS, sequence_flags::INCREMENTAL_STATE_CLEARED);
        message(out, trace_packet::TRACE_PACKET_DEFAULTS, |out| {
            uint(out, trace_packet_defaults::TIMESTAMP_CLOCK_ID, 64);
            message(out, trace_packet_defaults::TRACK_EVENT_DEFAULTS, |out| {
                uint(out, track_event_defaults::TRACK_UUID, 5);
            });
        });
        intern(out, 3, "interned");
    });
    let begin = |out: &mut Vec<u8>, ts| {
        event(out, 1, ts, BEGIN, |out| {
            uint(out, track_event::NAME_IID, 3);
            uint(out, track_event::THREAD_TIME_ABSOLUTE_US, 4);
        });
    };
    begin(&mut data, 10);
    event(&mut data, 1, 5, END, |_| ());
    // A packet without an event advances the clock too.
    packet(&mut data, 1, |out| uint(out, trace_packet::TIMESTAMP, 100));
    event(&mut data, 1, 1, INSTANT, named("inline"));
    // Another sequence has neither the name nor the clock.
    event(&mut data, 2, 77, INSTANT, |out| uint(out, track_event::NAME_IID, 3));
    let (log, report) = read_log(&data);
    assert_eq!(log.tracks[0], "Thread { tid: Tid(8), tgid: Some(Pid(7)) } \"\"");
    assert_eq!(
        log.events,
        ["77 #1 !", "1010000 #0 +interned cpu 4000", "1015000 #0 -", "1116000 #0 !inline"]
    );
    assert_eq!(report.lost(), 0);
}

#[test]
fn after_a_lost_packet_events_that_need_the_state_are_counted_until_it_is_cleared() {
    let needs = |out: &mut Vec<u8>| {
        uint(out, trace_packet::SEQUENCE_FLAGS, sequence_flags::NEEDS_INCREMENTAL_STATE);
    };
    let instant = |out: &mut Vec<u8>, iid| {
        message(out, trace_packet::TRACK_EVENT, |out| {
            uint(out, track_event::TYPE, INSTANT);
            uint(out, track_event::NAME_IID, iid);
        });
    };
    let mut data = Vec::new();
    packet(&mut data, 1, |out| {
        uint(out, trace_packet::SEQUENCE_FLAGS, sequence_flags::INCREMENTAL_STATE_CLEARED);
        intern(out, 1, "before");
    });
    for (ts, after_loss) in [(10, false), (20, true), (30, false)] {
        packet(&mut data, 1, |out| {
            uint(out, trace_packet::TIMESTAMP, ts);
            uint(out, trace_packet::PREVIOUS_PACKET_DROPPED, after_loss.into());
            needs(out);
            instant(out, 1);
        });
    }
    packet(&mut data, 1, |out| {
        uint(out, trace_packet::SEQUENCE_FLAGS, sequence_flags::INCREMENTAL_STATE_CLEARED);
        intern(out, 1, "after");
    });
    packet(&mut data, 1, |out| {
        uint(out, trace_packet::TIMESTAMP, 40);
        needs(out);
        instant(out, 1);
    });
    let (log, report) = read_log(&data);
    assert_eq!(log.events, ["10 #0 !before", "40 #0 !after"]);
    assert_eq!(report.lost(), 2);
    let lines: Vec<String> = report.losses.iter().map(|loss| loss.to_string()).collect();
    assert!(lines[0].starts_with("lost: 2 track events are left out"), "{lines:?}");
}

#[test]
fn times_of_other_clocks_are_converted_by_snapshots() {
    let mut data = Vec::new();
    snapshot(&mut data, 1, &[(BOOT, 5_000, 0, 1), (MONO, 1_000, 0, 1)]);
    let at = |out: &mut Vec<u8>, clock, ts, name: &str| {
        packet(out, 1, |out| {
            uint(out, trace_packet::TIMESTAMP, ts);
            uint(out, trace_packet::TIMESTAMP_CLOCK_ID, clock);
            message(out, trace_packet::TRACK_EVENT, |out| {
                uint(out, track_event::TYPE, INSTANT);
                string(out, track_event::NAME, name.as_bytes());
            });
        });
    };
    at(&mut data, MONO, 1_500, "mono");
    snapshot(&mut data, 2, &[(MONO, 2_000, 0, 1), (200, 7, 0, 10)]);
    at(&mut data, 200, 17, "of all sequences");
    at(&mut data, 70, 1, "of a clock that nobody has introduced");
    let (log, report) = read_log(&data);
    assert_eq!(log.clock, Some(Clock::Boottime));
    assert_eq!(log.events, ["5500 #0 !mono", "6100 #0 !of all sequences"]);
    assert_eq!(report.lost(), 1, "{report:?}");
    // A trace without snapshots stays in its own clock.
    let mut data = Vec::new();
    at(&mut data, MONO, 1_500, "mono");
    let (log, _) = read_log(&data);
    assert_eq!((log.clock, log.events), (Some(Clock::Monotonic), vec!["1500 #0 !mono".to_owned()]));
}

#[test]
fn counters_have_units_differences_and_fractions() {
    let mut data = Vec::new();
    descriptor(&mut data, 1, |out| {
        string(out, track_descriptor::NAME, b"bytes");
        message(out, track_descriptor::COUNTER, |out| {
            uint(out, counter_descriptor::UNIT_MULTIPLIER, 10);
            uint(out, counter_descriptor::IS_INCREMENTAL, 1);
        });
    });
    for (ts, value) in [(1, 5), (2, -2i64 as u64)] {
        event(&mut data, 1, ts, COUNTER, |out| {
            uint(out, track_event::TRACK_UUID, 1);
            uint(out, track_event::COUNTER_VALUE, value);
        });
    }
    event(&mut data, 1, 3, COUNTER, |out| {
        uint(out, track_event::TRACK_UUID, 2);
        double(out, track_event::DOUBLE_COUNTER_VALUE, 0.25);
    });
    event(&mut data, 1, 4, BEGIN, |out| {
        string(out, track_event::NAME, b"slice");
        uint(out, track_event::EXTRA_COUNTER_TRACK_UUIDS, 1);
        uint(out, track_event::EXTRA_COUNTER_VALUES, 1);
        uint(out, track_event::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS, 2);
        double(out, track_event::EXTRA_DOUBLE_COUNTER_VALUES, 0.5);
        fixed64(out, track_event::FLOW_IDS, 77);
        fixed64(out, track_event::TERMINATING_FLOW_IDS, 78);
    });
    let (log, report) = read_log(&data);
    assert_eq!(log.tracks[0], "Machine \"bytes\" Counter");
    assert_eq!(
        log.events,
        ["1 #0 =50", "2 #0 =30", "3 #1 =0.25", "4 #0 =40", "4 #1 =0.5", "4 #2 +slice ~77 >78"]
    );
    assert_eq!(report.track_events.counter_values, 5);
}

#[test]
fn events_of_chromes_old_kinds_become_slices_and_instants() {
    let mut data = Vec::new();
    packet(&mut data, 1, |out| {
        message(out, trace_packet::THREAD_DESCRIPTOR, |out| {
            uint(out, thread_descriptor::PID, 7);
            uint(out, thread_descriptor::TID, 8);
            uint(out, thread_descriptor::REFERENCE_TIMESTAMP_US, 100);
        });
    });
    let legacy = |out: &mut Vec<u8>, phase: u8, name: &str, id: Option<u64>, duration: u64| {
        packet(out, 1, |out| {
            message(out, trace_packet::TRACK_EVENT, |out| {
                uint(out, track_event::TIMESTAMP_DELTA_US, 10);
                string(out, track_event::NAME, name.as_bytes());
                message(out, track_event::LEGACY_EVENT, |out| {
                    uint(out, legacy_event::PHASE, phase.into());
                    uint(out, legacy_event::DURATION_US, duration);
                    if let Some(id) = id {
                        uint(out, legacy_event::LOCAL_ID, id);
                    }
                });
            });
        });
    };
    legacy(&mut data, b'X', "complete", None, 5);
    legacy(&mut data, b'b', "async", Some(3), 0);
    legacy(&mut data, b'I', "instant", None, 0);
    legacy(&mut data, b'e', "async", Some(3), 0);
    let (log, _) = read_log(&data);
    assert_eq!(log.tracks, ["Thread { tid: Tid(8), tgid: Some(Pid(7)) } \"\"", "Process(Pid(7)) \"async\""]);
    let want =
        ["110000 #0 +complete", "115000 #0 -", "120000 #1 +async", "130000 #0 !instant", "140000 #1 -"];
    assert_eq!(log.events, want);
}

#[test]
fn a_trace_of_track_events_cut_anywhere_is_read_as_far_as_it_goes() {
    let mut data = Vec::new();
    snapshot(&mut data, 1, &[(BOOT, 1_000_000, 0, 1), (64, 5, 1, 1_000)]);
    thread(&mut data, 1, 7, 8);
    event(&mut data, 1, 10, BEGIN, on(1, "own"));
    event(&mut data, 1, 15, END, |out| uint(out, track_event::TRACK_UUID, 1));
    for cut in 1..data.len() {
        let (log, _) = read_log(&data[..cut]);
        assert!(log.events.len() < 2, "{cut}");
    }
}
