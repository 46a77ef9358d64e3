//! The kept part of a running recording is a recording as the recorder would have written it.

use std::io;
use std::path::Path;

use support::recorder_streams::DatParts;
use support::run_in;
use support::scenario::Random;
use tracebridge::formats::trace_dat::TraceDat;
use tracebridge::formats::{Event, EventType, Order, Sink};
use tracebridge::internals::live::{Kept, KeptError, Live};

use super::feed::{Feeding, Told, feed, launch, options, recordings};

/// The events of a trace.dat: CPU, time, thread, type, bytes.
#[derive(Default)]
struct Events(Vec<(u32, u64, i32, String, Vec<u8>)>);

impl Sink for Events {
    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        let bytes = format!("{:?}", event.payload).into_bytes();
        self.0.push((event.cpu.0, event.ts.0, event.tid.0, kind.name.clone(), bytes));
        Ok(())
    }
}

fn events(dat: &[u8]) -> Vec<(u32, u64, i32, String, Vec<u8>)> {
    let mut events = Events::default();
    TraceDat::open(dat).unwrap().read(Order::Time, &mut events).unwrap();
    events.0
}

/// Follows a recording to its end.
fn followed(parts: &DatParts, keep_s: u64) -> Live {
    let mut live = Live::new(options(keep_s));
    let stream = parts.stream(&mut Random(11)).concat();
    let feeding = Feeding { seed: 5, longest: 50_000, batch_percent: 30 };
    feed(&mut live, &stream, feeding, &mut Told::default());
    live.batch(true);
    live
}

fn written(kept: &Kept, dir: &Path, name: &str) -> Vec<u8> {
    let path = dir.join(name);
    kept.write(&path, None).unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn a_recording_that_is_kept_whole_is_the_recording_itself() {
    for (name, dat) in recordings() {
        let parts = DatParts::of(&dat);
        let kept = followed(&parts, 3600).kept();
        let ordinary = parts.dat_with(&parts.cpus);
        assert!(kept.dat().unwrap() == ordinary, "{name}: bytes differ");
        assert!(!events(&ordinary).is_empty(), "{name}");
        assert_eq!(events(&ordinary), events(&dat), "{name}: the stream holds the recording");
        let dir = support::tempdir();
        std::fs::write(dir.path().join("test.dat"), &ordinary).unwrap();
        for ending in ["pftrace", "txt", "html"] {
            let args = ["convert", "test.dat", "-o", &format!("ordinary.{ending}")];
            run_in(dir.path(), &args).exited_with_one_of(&[0, 3]);
            let ordinary = std::fs::read(dir.path().join(format!("ordinary.{ending}"))).unwrap();
            assert!(written(&kept, dir.path(), &format!("kept.{ending}")) == ordinary, "{name}: .{ending}");
        }
        assert!(written(&kept, dir.path(), "kept.dat") == ordinary, "{name}: .dat");
        assert!(kept.page().unwrap() == written(&kept, dir.path(), "kept.html"), "{name}: the page");
    }
}

#[test]
fn with_less_time_to_keep_the_recording_is_cut_to_its_last_pages() {
    let mut cut = 0;
    for (name, dat) in recordings() {
        let parts = DatParts::of(&dat);
        let all = parts.cpus.iter().flatten().map(|page| DatParts::page_ts(page));
        let end = events(&dat).last().unwrap().1;
        let keep_s = ((end - all.min().unwrap()) / 2_000_000_000).max(1);
        let since = end.saturating_sub(keep_s * 1_000_000_000);
        // A page goes when the page behind it begins before the time that is kept.
        let last_pages = |pages: &Vec<Vec<u8>>| {
            let first = pages.iter().rposition(|page| DatParts::page_ts(page) <= since).unwrap_or(0);
            pages[first..].to_vec()
        };
        let cpus: Vec<Vec<Vec<u8>>> = parts.cpus.iter().map(last_pages).collect();
        let pages = |cpus: &[Vec<Vec<u8>>]| cpus.iter().map(Vec::len).sum::<usize>();
        cut += pages(&parts.cpus) - pages(&cpus);
        let kept = followed(&parts, keep_s).kept();
        assert_eq!(events(&kept.dat().unwrap()), events(&parts.dat_with(&cpus)), "{name}");
        let first = kept.extent_ns().unwrap().0;
        let begin = cpus.iter().flatten().map(|page| DatParts::page_ts(page)).min().unwrap();
        let start = events(&dat)[0].1;
        assert_eq!(first, begin.saturating_sub(start), "{name}");
    }
    assert!(cut > 10, "{cut} pages were cut");
}

#[test]
fn a_part_of_what_is_kept_has_the_events_of_its_time() {
    let dat = launch();
    let parts = DatParts::of(&dat);
    let live = followed(&parts, 3600);
    let all = events(&dat);
    let start = live.start().unwrap().0;
    let from = start + 200_000_000;
    let to = start + 300_000_000;
    let part = events(&live.kept().between(200_000_000, 300_000_000).dat().unwrap());
    let wanted: Vec<_> = all.iter().filter(|event| (from..=to).contains(&event.1)).cloned().collect();
    let within: Vec<_> = part.iter().filter(|event| (from..=to).contains(&event.1)).cloned().collect();
    assert!(!wanted.is_empty() && wanted == within);
    assert!(part.len() < all.len());
}

#[test]
fn nothing_is_written_of_a_recording_that_has_no_page_yet() {
    let mut live = Live::new(options(1));
    live.feed(&DatParts::of(&launch()).begin()).unwrap();
    assert!(live.batch(false).is_empty());
    let kept = live.kept();
    assert!(kept.is_empty());
    assert!(matches!(kept.dat(), Err(KeptError::Nothing)));
    let dir = support::tempdir();
    for name in ["x.dat", "x.pftrace"] {
        assert!(matches!(kept.write(&dir.path().join(name), None), Err(KeptError::Nothing)));
        assert!(!dir.path().join(name).exists());
    }
}
