//! Tests of the reader of files that grow.

use support::growing_dat::GrowingFile;
use support::launch_scenario::Launch;
use support::recorder_streams::DatParts;
use support::scenario::Random;

use super::*;
use crate::formats::{Event, EventType, Order, Sink};
use crate::trace_dat::recorder_stream::{RecorderStream, parse_frame_head, parse_round};

/// The events of a recording: CPU, time, thread, bytes.
#[derive(Debug, Default, PartialEq)]
struct Events(Vec<(u32, u64, i32, String)>);

impl Sink for Events {
    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        let bytes = format!("{} {:?}", kind.name, event.payload);
        self.0.push((event.cpu.0, event.ts.0, event.tid.0, bytes));
        Ok(())
    }
}

fn events(dat: &[u8]) -> Events {
    let mut events = Events::default();
    TraceDat::open(dat).unwrap().read(Order::Time, &mut events).unwrap();
    events
}

fn launch() -> Vec<u8> {
    Launch { seed: 3, day: 0, slow_percent: 0, pace_percent: 100 }.make().dat
}

/// The trace.dat of a stream.
fn dat_of(stream: &[u8]) -> Vec<u8> {
    let stream = RecorderStream::parse(stream).unwrap();
    assert_eq!(stream.cut, None);
    let mut dat = Vec::new();
    stream.write_dat(&mut dat).unwrap();
    dat
}

/// Follows a file to its end, which must come.
fn follow(dat: &mut GrowingDat, stream: &mut Vec<u8>) {
    for _ in 0..10_000 {
        if dat.step(stream).unwrap() == GrowingStep::Ended {
            return;
        }
    }
    panic!("the file does not end");
}

/// The times of pages and rounds in a stream, in its order: a round is `Err`.
fn times(stream: &[u8]) -> Vec<Result<u64, u64>> {
    let mut rest = &stream[MAGIC.len()..];
    let mut times = Vec::new();
    while let Some((head, behind)) = rest.split_first_chunk() {
        let (kind, _, len) = parse_frame_head(head).unwrap();
        let (payload, behind) = behind.split_at(len);
        rest = behind;
        match kind {
            FrameKind::Pages => times.push(Ok(DatParts::page_ts(payload))),
            FrameKind::Round => times.push(Err(parse_round(payload).unwrap().0)),
            _ => {}
        }
    }
    times
}

#[test]
fn a_file_that_is_complete_is_sent_in_the_order_of_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.dat");
    let dat = launch();
    std::fs::write(&path, &dat).unwrap();
    let mut stream = Vec::new();
    follow(&mut GrowingDat::open(File::open(&path).unwrap()).unwrap(), &mut stream);
    assert!(events(&dat_of(&stream)) == events(&dat));
    let times = times(&stream);
    let pages: Vec<u64> = times.iter().filter_map(|time| time.ok()).collect();
    assert!(pages.is_sorted() && pages.len() > 20);
}

#[test]
fn whatever_is_written_between_two_looks_every_event_is_sent_once() {
    let dat = launch();
    let all = events(&dat);
    let parts = DatParts::of(&dat);
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..20 {
        let mut random = Random(seed * 2 + 1);
        let path = dir.path().join("x.dat");
        let mut file = GrowingFile::create(&path, &dat);
        let mut followed = GrowingDat::open(File::open(&path).unwrap()).unwrap();
        let mut stream = Vec::new();
        let mut next = vec![0; parts.cpus.len()];
        while (0..next.len()).any(|cpu| next[cpu] < parts.cpus[cpu].len()) {
            let cpu = random.range(0, next.len() as u64) as usize;
            let from = next[cpu];
            next[cpu] = (from + random.range(1, 9) as usize).min(parts.cpus[cpu].len());
            file.append(cpu, &parts.cpus[cpu][from..next[cpu]]);
            if random.chance(40) {
                followed.step(&mut stream).unwrap();
            }
            if random.chance(10) {
                file.put_facts(false, &format!("phone {seed}"));
            }
        }
        file.complete();
        for cpu in 1..parts.cpus.len() {
            if random.chance(50) {
                followed.step(&mut stream).unwrap();
            }
            file.close_hole(&path, cpu);
        }
        follow(&mut followed, &mut stream);
        assert!(events(&dat_of(&stream)) == all, "seed {seed}");
        assert_eq!(followed.notes(), Vec::<String>::new(), "seed {seed}");
    }
}

#[test]
fn a_page_is_sent_when_it_is_known_to_be_written() {
    let dat = launch();
    let parts = DatParts::of(&dat);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.dat");
    let mut file = GrowingFile::create(&path, &dat);
    let mut followed = GrowingDat::open(File::open(&path).unwrap()).unwrap();
    let pages = |followed: &mut GrowingDat| {
        let mut stream = Vec::new();
        followed.step(&mut stream).unwrap();
        let begin = if stream.starts_with(MAGIC) { 0 } else { MAGIC.len() };
        times(&[&MAGIC[..begin], &stream].concat())
    };
    assert_eq!(pages(&mut followed), []);
    file.append(0, &parts.cpus[0][..1]);
    assert_eq!(pages(&mut followed).len(), 0, "nobody knows whether it is written");
    file.append(1, &parts.cpus[1][..1]);
    let first = DatParts::page_ts(&parts.cpus[0][0]);
    assert_eq!(pages(&mut followed), [Ok(first), Err(first - HOLD_NS)]);
    // The recorder has nothing to write.
    followed.changed = Instant::now().checked_sub(IDLE_TIME).unwrap();
    let all = pages(&mut followed);
    let last_of = |cpu: usize| {
        let page = followed.layout.page(&parts.cpus[cpu][0]).unwrap();
        page.records().last().unwrap().ts.0
    };
    let last = last_of(0).max(last_of(1));
    assert_eq!(all, [Ok(DatParts::page_ts(&parts.cpus[1][0])), Err(last + 1)]);
    assert_eq!(pages(&mut followed), [], "it is told once");
    // An entry alone, and after that long time no page: it is not there yet.
    file.enter(0, 4096);
    assert_eq!(pages(&mut followed), []);
    followed.changed = Instant::now().checked_sub(IDLE_TIME).unwrap();
    assert!(pages(&mut followed).iter().all(Result::is_err));
}

#[test]
fn a_recorder_that_was_killed_leaves_pages_that_are_told_to_be_empty() {
    let dat = launch();
    let parts = DatParts::of(&dat);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.dat");
    let mut file = GrowingFile::create(&path, &dat);
    file.append(0, &parts.cpus[0][..2]);
    file.append(1, &parts.cpus[1][..1]);
    file.enter(0, 8192);
    file.complete();
    let mut followed = GrowingDat::open(File::open(&path).unwrap()).unwrap();
    let mut stream = Vec::new();
    follow(&mut followed, &mut stream);
    assert_eq!(times(&stream).iter().filter(|time| time.is_ok()).count(), 3);
    assert!(followed.notes()[0].contains("CPU 0: empty pages"), "{:?}", followed.notes());
}

#[test]
fn files_that_are_cut_or_name_pages_twice_are_errors_with_their_place() {
    let dat = launch();
    let parts = DatParts::of(&dat);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.dat");
    let mut file = GrowingFile::create(&path, &dat);
    file.append(0, &parts.cpus[0][..3]);
    file.append(1, &parts.cpus[1][..1]);
    let mut followed = GrowingDat::open(File::open(&path).unwrap()).unwrap();
    let mut stream = Vec::new();
    followed.step(&mut stream).unwrap();
    file.append(1, &parts.cpus[1][1..2]);
    followed.step(&mut stream).unwrap();
    let at = file.enter(0, 0);
    file.cut(at - 4096);
    let error = followed.step(&mut stream).unwrap_err().to_string();
    assert!(error.contains(&format!("at byte {}", at - 4096)) && error.contains("was cut"), "{error}");
    file.cut(0);
    assert!(matches!(followed.step(&mut stream), Err(GrowingError::Head(_))));
    // A table in which CPU 1 has the pages of CPU 0.
    let mut double = dat.clone();
    let entry: Vec<u8> = dat[parts.table_at..parts.table_at + 16].to_vec();
    double[parts.table_at + 16..parts.table_at + 32].copy_from_slice(&entry);
    std::fs::write(&path, &double).unwrap();
    let mut followed = GrowingDat::open(File::open(&path).unwrap()).unwrap();
    let error = followed.step(&mut stream).unwrap_err().to_string();
    assert!(error.contains("names the same bytes more than once"), "{error}");
    // Every cut of the head has a place.
    for len in [0, 5, 11, 20, 1000, parts.table_at + 8] {
        std::fs::write(&path, &dat[..len]).unwrap();
        let error = GrowingDat::open(File::open(&path).unwrap()).err().unwrap().to_string();
        assert!(error.contains(&format!("cut at byte {len}")) || error.contains("empty"), "{len}: {error}");
    }
}

#[test]
fn bytes_that_are_none_of_a_recording_end_in_an_error_and_not_in_memory() {
    let dat = launch();
    let parts = DatParts::of(&dat);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.dat");
    for seed in 0..200 {
        let mut random = Random(seed * 2 + 1);
        let mut bytes = dat.clone();
        for _ in 0..random.range(1, 30) {
            let from = if random.chance(50) { parts.table_at as u64 - 200 } else { 0 };
            let at = random.range(from, parts.table_at as u64 + 200) as usize;
            bytes[at] = random.range(0, 256) as u8;
        }
        std::fs::write(&path, &bytes).unwrap();
        let Ok(mut followed) = GrowingDat::open(File::open(&path).unwrap()) else { continue };
        let mut stream = Vec::new();
        for _ in 0..100 {
            match followed.step(&mut stream) {
                Ok(GrowingStep::Goes | GrowingStep::Waits) => {}
                Ok(GrowingStep::Ended) | Err(_) => break,
            }
        }
        assert!(stream.len() < 3 * bytes.len(), "seed {seed}");
    }
}
