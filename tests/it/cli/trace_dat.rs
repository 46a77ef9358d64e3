//! trace.dat files of machines with either byte order and either word size, in both versions and with every
//! compression; and damaged files.

use std::io;

use tracebridge::clock::Clock;
use tracebridge::formats::trace_dat::TraceDat;
use tracebridge::formats::{Event, EventType, Head, Order, ReadReport, Sink, ThreadInfo, Value};
use tracebridge::ids::Cpu;

use support::foreign_dat::{Endian, FLYRECORD, MAGIC, Packing, all, make};
use support::scenario::{Era, KernelEvent, Moment, PID, START, Scenario};

#[derive(Default)]
struct CollectedTrace {
    clock: Option<Clock>,
    machine: Option<String>,
    threads: Vec<(i32, Option<i32>, Option<String>)>,
    events: Vec<(u64, u32, i32, u64, i64, String, String)>,
    lost: Vec<(u32, Option<u64>, usize)>,
}

impl Sink for CollectedTrace {
    fn head(&mut self, head: &Head) -> io::Result<()> {
        self.clock = Some(head.clock);
        self.machine = head.machine.clone();
        Ok(())
    }
    fn thread(&mut self, t: &ThreadInfo<'_>) -> io::Result<()> {
        let name = t.name.map(|n| String::from_utf8_lossy(n).into_owned());
        self.threads.push((t.tid.0, t.tgid.map(|tgid| tgid.0), name));
        Ok(())
    }
    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        let text = |i| match event.value(kind, i) {
            Some(Value::Str(s)) => String::from_utf8_lossy(s).into_owned(),
            other => format!("{other:?}"),
        };
        let int = |i| event.int(kind, i).unwrap_or(i64::MIN);
        self.events.push((event.ts.0, event.cpu.0, event.tid.0, int(0) as u64, int(1), text(2), text(3)));
        Ok(())
    }
    fn lost(&mut self, cpu: Cpu, count: Option<u64>) -> io::Result<()> {
        self.lost.push((cpu.0, count, self.events.len()));
        Ok(())
    }
}

fn read(bytes: &[u8], order: Order) -> (CollectedTrace, ReadReport) {
    let mut collected = CollectedTrace::default();
    let report = TraceDat::open(bytes).unwrap().read(order, &mut collected).unwrap();
    (collected, report)
}

#[test]
fn every_machine_and_compression_gives_the_same_events() {
    for (endian, long, packing) in all() {
        let what = format!("{endian:?} {long} {packing:?}");
        let (collected, report) = read(&make(endian, long, packing), Order::Time);
        assert_eq!(
            (collected.clock, collected.machine.as_deref()),
            (Some(Clock::Boottime), Some("Made Up 1.0")),
            "{what}"
        );
        assert_eq!(report.damage, [], "{what}");
        assert_eq!((report.events(), report.lost()), (120, 7), "{what}");
        assert!(collected.events.is_sorted_by_key(|e| (e.0, e.1)), "{what}");
        assert_eq!(collected.events[0], (1_001_000, 0, 40, 0, 0, "hello".into(), "ab".into()), "{what}");
        let last = collected.events.last().unwrap();
        assert_eq!(last, &(1_070_500, 1, 40, 159, -159, "hello".into(), "ab".into()), "{what}");
        // The loss is reported right before the event that follows the gap.
        assert_eq!(collected.lost.iter().map(|l| (l.0, l.1)).collect::<Vec<_>>(), [(1, Some(7))], "{what}");
        assert_eq!(collected.events[collected.lost[0].2].3, 130, "{what}");
        let forty_one = Some("forty one".to_owned());
        let want = [(40, Some(39), Some("forty".to_owned())), (41, None, forty_one), (42, Some(39), None)];
        assert_eq!(collected.threads, want, "{what}");
        let (any, _) = read(&make(endian, long, packing), Order::Any);
        assert_eq!(any.events.len(), 120, "{what}");
    }
}

#[test]
fn the_text_of_a_foreign_machines_recording_is_right() {
    let dir = support::tempdir();
    for (endian, long, packing) in all() {
        let path = dir.path().join("it.dat");
        std::fs::write(&path, make(endian, long, packing)).unwrap();
        let done =
            support::tracebridge().args(["convert", "--format", "systrace", "-o", "-"]).arg(&path).run();
        // The exit status is 3 because seven events were lost.
        assert_eq!(done.code(), Some(3), "{}", done.stderr);
        let text = &done.stdout;
        let lines: Vec<&str> = text.lines().filter(|l| !l.starts_with('#')).collect();
        assert_eq!(lines.len(), 121);
        let first =
            "           forty-40      (     39) [000] d..2.     0.001001: made_up: n=0 m=0 t=hello f=ab";
        assert_eq!(lines[0], first);
        assert!(lines.contains(&"CPU:1 [LOST 7 EVENTS]"));
    }
}

/// A program may give a thread a name with a line end in it, as `echo x >/proc/self/comm` does.
#[test]
fn a_line_end_in_a_threads_name_makes_no_two_lines_of_an_event() {
    let dir = support::tempdir();
    let path = dir.path().join("names.dat");
    let waiter = (0, "swapper/0".to_owned());
    let named = (PID + 1, "two\nlines\r".to_owned());
    let switch = |ts, tid, prev: &(i32, String), next: &(i32, String)| Moment {
        ts: START + ts,
        cpu: 0,
        tid,
        event: KernelEvent::Switch { prev: prev.clone(), next: next.clone() },
    };
    let moments = [switch(1_000, 0, &waiter, &named), switch(2_000, named.0, &named, &waiter)];
    std::fs::write(&path, Scenario::new(1, Era::Art14).dat(&moments)).unwrap();
    let done = support::tracebridge().args(["convert", "--format", "systrace", "-o", "-"]).arg(&path).run();
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let lines: Vec<&str> = done.stdout.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].contains(" next_comm=two lines  next_pid=21001 "), "{}", lines[0]);
    assert!(
        lines[1].contains(" two lines -21001 ") && lines[1].contains(" prev_comm=two lines  prev_pid=21001 ")
    );
}

#[test]
fn a_file_cut_anywhere_opens_in_part_and_reports_damage_or_is_refused() {
    for (endian, long, packing) in all() {
        let whole = make(endian, long, packing);
        let cuts = support::rounds(50, 200);
        for n in 0..cuts {
            let cut = &whole[..whole.len() * n / cuts];
            match TraceDat::open(cut) {
                Err(error) => assert!(!error.to_string().is_empty()),
                Ok(dat) => {
                    let mut collected = CollectedTrace::default();
                    let report = dat.read(Order::Time, &mut collected).unwrap();
                    // A cut behind the events of the last page removes only padding.
                    let padding = packing == Packing::V6 && report.events() == 120;
                    assert!(report.is_lossy() || padding, "{packing:?} cut at {}", cut.len());
                    assert!(!report.damage.is_empty() || padding, "{packing:?} cut at {}", cut.len());
                }
            }
        }
    }
}

#[test]
fn a_table_that_gives_the_same_bytes_to_two_cpus_is_reported_as_damage() {
    let mut file = make(Endian::Little, 8, Packing::V6);
    // The table behind `flyrecord`: u64 offset and u64 size of each CPU.
    let table = file.windows(10).position(|w| w == FLYRECORD).unwrap() + 10;
    file.copy_within(table..table + 16, table + 16);
    let len = file.len() - 8192;
    file.truncate(len);
    let (collected, report) = read(&file, Order::Time);
    assert_eq!(collected.events.len(), 60);
    assert!(report.damage[0].what.contains("more than once"), "{:?}", report.damage);
}

#[test]
fn changed_bytes_never_cause_a_panic() {
    // A small generator of pseudo-random numbers (xorshift), so that every run makes the same
    // changes.
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for (endian, long, packing) in all() {
        let whole = make(endian, long, packing);
        for _ in 0..support::rounds(40, 150) {
            let mut bytes = whole.clone();
            for _ in 0..=random() % 8 {
                let at = random() as usize % bytes.len();
                bytes[at] = if random() % 3 == 0 { 0xff } else { random() as u8 };
            }
            if let Ok(dat) = TraceDat::open(&bytes) {
                let _ = dat.read(Order::Time, &mut CollectedTrace::default());
            }
        }
    }
    for len in [1, 10, 100, 10_000] {
        let noise: Vec<u8> = (0..len).map(|_| random() as u8).collect();
        assert!(TraceDat::open(&noise).is_err());
        let after_magic = [MAGIC.as_slice(), b"6\0\0\x08\0\x10\0\0", &noise].concat();
        assert!(TraceDat::open(&after_magic).is_err());
    }
}

#[test]
fn trace_cmd_reports_seconds_where_the_clock_counts_ns() {
    if !support::has_program("trace-cmd") {
        return support::skip("trace-cmd", "trace-cmd is not installed");
    }
    let dir = support::tempdir();
    let input = dir.path().join("boot.dat");
    let out = dir.path().join("out.dat");
    std::fs::write(&input, make(Endian::Little, 8, Packing::V6)).unwrap();
    let done = support::tracebridge().arg("convert").arg(&input).arg("-o").arg(&out).run();
    assert_eq!(done.code(), Some(3), "seven events are lost: {done:?}");
    let report = support::Command::new("trace-cmd").args(["report", "-i"]).arg(&out).run().stdout;
    let times: Vec<&str> = report
        .lines()
        .filter_map(|line| line.split_once("] ")?.1.split_once(": made_up:"))
        .map(|t| t.0)
        .collect();
    assert_eq!(times.len(), 120, "{report}");
    assert!(times[0].ends_with("0.001001"), "{}", times[0]);
    assert_eq!(clock_of(&out), Some(Clock::Boottime), "the clock's name is in the file all the same");
}

/// The clock that the product finds in a file.
fn clock_of(dat: &std::path::Path) -> Option<Clock> {
    let bytes = std::fs::read(dat).unwrap();
    let dat = TraceDat::open(&bytes).unwrap();
    let mut collected = CollectedTrace::default();
    dat.read(Order::Any, &mut collected).unwrap();
    collected.clock
}
