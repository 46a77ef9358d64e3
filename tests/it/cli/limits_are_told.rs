//! Readers leave out parts of which there are too many, and every command that reads the file tells it.

use std::fs;
use std::path::Path;

use super::many_events::{bytes, number};
use support::art_blocks::{self, Blocks, Writer};
use support::art_writer::{Action, ArtTrace, Method, Record};
use support::run_in;

/// Writes a Perfetto trace of these packets.
fn write_trace(path: &Path, packets: &[Vec<u8>]) {
    let mut trace = Vec::new();
    packets.iter().for_each(|packet| bytes(&mut trace, 1, packet));
    fs::write(path, trace).unwrap();
}

/// A message that `fill` fills.
fn message(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    fill(&mut out);
    out
}

/// A packet with a bundle of CPU 0 that holds `fields`.
fn bundle(fields: &[u8]) -> Vec<u8> {
    let bundle = message(|bundle| {
        number(bundle, 1, 0);
        bundle.extend_from_slice(fields);
    });
    message(|packet| bytes(packet, 1, &bundle))
}

/// Two switches, of which the second one is to the thread whose name is the last of so many.
fn switches(names: u64) -> Vec<u8> {
    let sched = message(|sched| {
        for name in 0..names {
            bytes(sched, 5, format!("t{name}").as_bytes());
        }
        bytes(sched, 1, &[100, 100]);
        bytes(sched, 2, &[1, 1]);
        bytes(sched, 3, &[10, 11]);
        bytes(sched, 4, &[120, 120]);
        let index = names - 1;
        bytes(sched, 6, &[0, index as u8 | 0x80, (index >> 7) as u8 | 0x80, (index >> 14) as u8]);
    });
    message(|bundle| bytes(bundle, 4, &sched))
}

#[test]
fn names_that_a_bundle_has_too_many_of_are_told_by_every_command() {
    let dir = support::tempdir();
    let dir = dir.path();
    let most = 65_536;
    write_trace(&dir.join("most.pftrace"), &[bundle(&switches(most))]);
    write_trace(&dir.join("more.pftrace"), &[bundle(&switches(most + 3))]);
    let commands: [&[&str]; 6] = [
        &["info"],
        &["convert", "-o", "x.txt"],
        &["convert", "-o", "x.json"],
        // Whole packets are copied.
        &["convert", "-o", "copy.pftrace"],
        &["merge", "-o", "merged.pftrace"],
        &["dataset", "add", "set"],
    ];
    for command in commands {
        let of = |file| [command, &[file]].concat();
        let said = run_in(dir, &of("most.pftrace")).exited(0).said();
        assert!(!said.contains("names of threads"), "{command:?}: {said}");
        let said = run_in(dir, &of("more.pftrace")).exited(3).said();
        assert!(said.contains("3 names of threads are left out"), "{command:?}: {said}");
        if command.contains(&"x.txt") {
            let text = fs::read_to_string(dir.join("x.txt")).unwrap();
            assert!(
                text.contains("next_comm=t0 next_pid=10") && text.contains("next_comm= next_pid=11"),
                "{text}"
            );
        }
    }
}

/// A `GenericFtraceEvent` with so many fields, in an event.
fn generic(fields: u64) -> Vec<u8> {
    let generic = message(|generic| {
        bytes(generic, 1, b"made_up");
        for n in 0..fields {
            let field = message(|field| {
                bytes(field, 1, format!("f{n}").as_bytes());
                number(field, 4, n);
            });
            bytes(generic, 2, &field);
        }
    });
    let event = message(|event| {
        number(event, 1, 100);
        number(event, 2, 7);
        bytes(event, GENERIC, &generic);
    });
    message(|bundle| bytes(bundle, 2, &event))
}

/// The number of `GenericFtraceEvent` in `FtraceEvent`.
const GENERIC: u64 = 327;

#[test]
fn values_of_an_event_that_are_too_many_are_told() {
    let dir = support::tempdir();
    let dir = dir.path();
    write_trace(&dir.join("most.pftrace"), &[bundle(&generic(32))]);
    write_trace(&dir.join("more.pftrace"), &[bundle(&generic(35))]);
    for command in [&["info"][..], &["convert", "-o", "x.txt"]] {
        let said = run_in(dir, &[command, &["most.pftrace"]].concat()).exited(0).said();
        assert!(!said.contains("are not read"), "{said}");
        let said = run_in(dir, &[command, &["more.pftrace"]].concat()).exited(0).said();
        assert!(said.contains("3 values of events are not read: of an event, 32 fields are"), "{said}");
    }
}

#[test]
fn fields_that_a_trace_describes_and_that_are_too_many_are_told() {
    let dir = support::tempdir();
    let dir = dir.path();
    // A type with 33 fields, of which one has a number that no real one has.
    let described = message(|descriptor| {
        number(descriptor, 1, 70_000);
        bytes(descriptor, 3, b"made");
        let fields = message(|list| {
            bytes(list, 1, b"made_up");
            for n in 1..=33 {
                let field = message(|field| {
                    bytes(field, 1, format!("f{n}").as_bytes());
                    number(field, 3, if n == 5 { 5_000 } else { n });
                    number(field, 4, 1);
                    number(field, 5, 4);
                });
                bytes(list, 2, &field);
            }
        });
        bytes(descriptor, 2, &fields);
    });
    let event = message(|event| {
        number(event, 1, 100);
        number(event, 2, 7);
        bytes(event, 70_000, &message(|fields| number(fields, 1, 9)));
    });
    let fields = message(|bundle| {
        bytes(bundle, 2, &event);
        bytes(bundle, DESCRIPTORS, &described);
    });
    write_trace(&dir.join("x.pftrace"), &[bundle(&fields)]);
    let said = run_in(dir, &["info", "x.pftrace"]).exited(0).said();
    assert!(said.contains("2 fields that the trace describes are not read"), "{said}");
}

/// The number of `generic_event_descriptors` in `FtraceEventBundle`.
const DESCRIPTORS: u64 = 11;

#[test]
fn a_track_that_lies_below_itself_is_told() {
    let dir = support::tempdir();
    let dir = dir.path();
    let descriptor = |uuid, parent| {
        let track = message(|track| {
            number(track, 1, uuid);
            bytes(track, 2, b"track");
            number(track, 5, parent);
        });
        message(|packet| bytes(packet, 60, &track))
    };
    let event = |kind, ts| {
        message(|packet| {
            number(packet, 8, ts);
            number(packet, 10, 1);
            let event = message(|event| {
                number(event, 9, kind);
                number(event, 11, 7);
                bytes(event, 23, b"slice");
            });
            bytes(packet, 11, &event);
        })
    };
    for (parent_of_8, is_told) in [(7, true), (0, false)] {
        let packets = [descriptor(7, 8), descriptor(8, parent_of_8), event(1, 100), event(2, 200)];
        write_trace(&dir.join("x.pftrace"), &packets);
        let said = run_in(dir, &["info", "x.pftrace"]).exited(0).said();
        let words = "1 tracks lie below too many others, or below themselves";
        assert_eq!(said.contains(words), is_told, "{said}");
    }
}

#[test]
fn event_types_of_samples_that_are_too_many_are_told() {
    let dir = support::tempdir();
    let dir = dir.path();
    // Of simpleperf's report-sample: names of event types, and a sample of one behind them.
    let framed = |record: &[u8]| [&(record.len() as u32).to_le_bytes()[..], record].concat();
    let report = |types: u64, id| {
        let names = message(|record| {
            let names = message(|info| (0..types).for_each(|n| bytes(info, 1, format!("e{n}").as_bytes())));
            bytes(record, 5, &names);
        });
        let sample = message(|record| {
            let sample = message(|sample| {
                number(sample, 1, 100);
                number(sample, 2, 7);
                number(sample, 4, 1);
                number(sample, 5, id);
            });
            bytes(record, 1, &sample);
        });
        [&b"SIMPLEPERF\x01\0"[..], &framed(&names), &framed(&sample), &[0; 4]].concat()
    };
    // perf.data as it comes through a pipe: event types, each of 64 bytes.
    let piped = |types: usize| {
        let attribute = [&[0; 4][..], &64u32.to_le_bytes(), &[0; 56]].concat();
        let record = [&64u32.to_le_bytes()[..], &[0; 2], &72u16.to_le_bytes(), &attribute].concat();
        [&b"PERFILE2"[..], &16u64.to_le_bytes(), &record.repeat(types)].concat()
    };
    let cases = [
        ("most", report(4_096, 4_095), None),
        ("names", report(4_099, 4_095), Some("3 event types and the events of 0 samples are taken for one")),
        ("sample", report(3, 4_096), Some("0 event types and the events of 1 samples are taken for one")),
        ("most.data", piped(4_096), None),
        ("more.data", piped(4_100), Some("4 event types are not read: the file has more than 4096")),
    ];
    for (name, file, words) in cases {
        fs::write(dir.join(name), file).unwrap();
        let said = run_in(dir, &["info", name]).exited(if words.is_some() { 3 } else { 0 }).said();
        assert!(said.contains(words.unwrap_or("")), "{name}: {said}");
    }
}

/// The text of a launch that begins so many slices of the main thread, one behind the other.
fn launch_of_slices(count: usize) -> String {
    let mark = |us: usize, what: &str| {
        format!(" com.example-7 ( 7) [000] ...1 1.{us:06}: tracing_mark_write: {what}\n")
    };
    let mut text = mark(50, "S|9|launching: com.example|1");
    for (at, step) in [(100, "bindApplication"), (112, "activityStart"), (114, "activityResume")] {
        text += &(mark(at, &format!("B|7|{step}")) + &mark(at + 1, "E|7"));
    }
    for number in 0..count {
        let at = 120 + 4 * number;
        text += &(mark(at, &format!("B|7|VerifyClass {number}")) + &mark(at + 1 + number % 3, "E|7"));
    }
    let end = 130 + 4 * count;
    text += &(mark(end, "B|7|Choreographer#doFrame 1") + &mark(end + 10, "E|7"));
    text + &mark(end + 10, "F|9|launching: com.example|1")
}

#[test]
fn stages_of_a_launch_beyond_the_limit_are_told() {
    let dir = support::tempdir();
    let dir = dir.path();
    let told = |count| {
        fs::write(dir.join("launch.txt"), launch_of_slices(count)).unwrap();
        let value = run_in(dir, &["info", "--json", "launch.txt"]).exited(0).json();
        let kept = value["launches"][0]["stages"].as_array().unwrap().len();
        let notes = value["report"]["notes"].as_array().unwrap().clone();
        let note =
            notes.iter().filter_map(|note| note.as_str()).find(|note| note.contains("stages of launches"));
        let left_out = note.map_or(0, |note| note.split(' ').next().unwrap().parse::<usize>().unwrap());
        (kept, left_out)
    };
    // The three steps and the frame are stages, too.
    assert_eq!(told(196), (200, 0));
    assert_eq!(told(197), (200, 1));
    assert_eq!(told(700), (200, 504));
}

#[test]
fn rows_of_a_comparison_beyond_the_limit_are_told() {
    let dir = support::tempdir();
    let dir = dir.path();
    for (set, count) in [("few", 900), ("many", 1_100)] {
        fs::create_dir(dir.join(set)).unwrap();
        fs::write(dir.join(set).join("a.txt"), launch_of_slices(count)).unwrap();
    }
    let compare = |set: &str, more: &[&str]| {
        run_in(dir, &[&["adb", "launch", "--compare", set, set][..], more].concat()).exited(0)
    };
    assert_eq!(compare("few", &["--json"]).json()["rows_left_out"], 0);
    // Slices and stages: the three steps, the parts and the frame of each.
    assert_eq!(compare("many", &["--json"]).json()["rows_left_out"], 2 * 104);
    let said = compare("many", &[]).said();
    assert!(said.contains("208 rows are left out: 1000 of a kind are kept"), "{said}");
    assert!(!compare("few", &[]).said().contains("rows are left out"));
}

#[test]
fn times_of_a_method_trace_beyond_the_limit_are_told() {
    let dir = support::tempdir();
    let dir = dir.path();
    let calls = ArtTrace {
        elapsed_us: 100,
        pid: 7,
        threads: vec![(1, "main".into())],
        methods: vec![Method::new("a.B", "run")],
        records: vec![Record::new(1, 0, Action::Enter, 1, 1), Record::new(1, 0, Action::Exit, 2, 2)],
        ..ArtTrace::default()
    };
    let writer = Writer::Third { frequency: 24_576_000, real: 24_576_000 };
    let whole = art_blocks::to_bytes(&calls, Blocks { streaming: false, wall: true, cpu: false, writer });
    fs::write(dir.join("app.trace"), &whole).unwrap();
    run_in(dir, &["info", "app.trace"]).exited(0);
    let mut late = Vec::new();
    art_blocks::sleb(&mut late, 1 << 55);
    art_blocks::sleb(&mut late, 0x7000_1000_0000);
    let block = [&[2, 1, 0, 0, 0, 1, 0, 0][..], &(late.len() as u32).to_le_bytes(), &late].concat();
    fs::write(dir.join("late.trace"), [whole, block].concat()).unwrap();
    for command in [&["info"][..], &["profile"]] {
        let said = run_in(dir, &[command, &["late.trace"]].concat()).exited(3).said();
        assert!(said.contains("1 records have times beyond 4503599627370496 ticks"), "{command:?}: {said}");
    }
}
