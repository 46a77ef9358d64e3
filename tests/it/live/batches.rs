//! All batches of a session together hold exactly what the report page of the whole recording holds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;
use support::recorder_streams::DatParts;
use support::report_page::{Page, Track};
use support::run_in;
use support::scenario::Random;
use tracebridge::internals::live::Live;

use super::feed::{Batch, Feeding, Items, Told, feed, options, recordings};

/// The roles that batches do not have.
const NOT_LIVE: [&str; 4] = ["wakeup", "binder", "flow", "causes"];
/// The roles whose depths are lanes, which depend on what is known of later slices.
const LANES: [&str; 2] = ["async", "frames"];

/// The texts that the numbers of a track stand for.
struct Texts<'a> {
    string: &'a dyn Fn(i64) -> String,
    threads: &'a Value,
    /// The name of the member of a thread that has its process, and what that means.
    start: u64,
}

impl Texts<'_> {
    fn thread(&self, index: i64) -> String {
        self.threads[index as usize]["tid"].to_string()
    }

    /// The item with this number, in words.
    fn item(&self, track: &Track, at: usize) -> String {
        let role = track.about["role"].as_str().unwrap();
        let mut out = String::new();
        for (name, values) in &track.columns {
            let value = values[at];
            let text = match name.as_str() {
                "start" | "time" => (value + self.start as i64).to_string(),
                "name" | "state" => (self.string)(value),
                "args" if value > 0 => (self.string)(value - 1),
                "thread" | "waker" if value > 0 => self.thread(value - 1),
                "depth" if LANES.contains(&role) => continue,
                // A column that has nothing but zeroes may be absent.
                "args" | "flags" | "thread" | "waker" if value == 0 => continue,
                _ => value.to_string(),
            };
            write!(out, "{name} {text} ").unwrap();
        }
        out
    }
}

/// A track in words: its role, its name and its owner.
fn track_name(about: &Value, threads: &Value, processes: &Value) -> String {
    let thread = about["thread"].as_u64().map(|at| threads[at as usize]["tid"].to_string());
    let process = about["process"].as_u64().map(|at| processes[at as usize]["pid"].to_string());
    // A process of a thread may become known later.
    let owner = thread.map(|tid| format!("thread {tid}")).or(process.map(|pid| format!("process {pid}")));
    format!("{} {} {:?} {:?} {}", about["kind"], about["role"], about["name"], owner, about["cpu"])
}

fn of_page(page: &Page) -> Items {
    let start = page.index["start_ns"].as_str().unwrap().parse().unwrap();
    let string = |id| page.string(id).to_owned();
    let texts = Texts { string: &string, threads: &page.index["threads"], start };
    let mut items = Items::new();
    for track in page.tracks() {
        if NOT_LIVE.contains(&track.about["role"].as_str().unwrap()) {
            continue;
        }
        let name = track_name(&track.about, &page.index["threads"], &page.index["processes"]);
        for at in 0..track.count() {
            *items.entry((name.clone(), texts.item(&track, at))).or_default() += 1;
        }
    }
    items
}

/// The items of all batches that are over. Checks what holds for every batch.
fn of_batches(batches: &[Batch]) -> Items {
    let mut items = Items::new();
    let mut keys: BTreeMap<u64, String> = BTreeMap::new();
    let mut numbers = BTreeSet::new();
    let mut to = 0;
    for batch in batches {
        assert!(numbers.insert(batch.number("batch")), "a number comes twice");
        assert_eq!(batch.number("from_ns"), to, "a batch begins where the one before ended");
        to = batch.number("to_ns");
        assert!(batch.number("from_ns") <= to);
        let start = batch.head["start_ns"].as_str().unwrap().parse().unwrap();
        let string = |id| batch.string(id);
        let texts = Texts { string: &string, threads: &batch.head["threads"], start };
        for track in batch.tracks() {
            let name = track_name(&track.about, &batch.head["threads"], &batch.head["processes"]);
            let key = track.about["key"].as_u64().unwrap();
            assert_eq!(keys.entry(key).or_insert_with(|| name.clone()), &name, "a key has one track");
            let over = track.count() - track.about["open"].as_u64().unwrap() as usize;
            check_order(&track, over);
            for at in 0..over {
                *items.entry((name.clone(), texts.item(&track, at))).or_default() += 1;
            }
        }
    }
    items
}

/// Slices and states come in the order of their ends; those that are open end with the batch.
fn check_order(track: &Track, over: usize) {
    let Some((starts, lengths)) = track.columns.get("start").zip(track.columns.get("duration")) else {
        return;
    };
    let ends: Vec<i64> = starts.iter().zip(lengths).map(|(start, length)| start + length).collect();
    assert!(ends[..over].is_sorted(), "{}", track.about);
    if track.about["role"] == "atrace" {
        assert!(starts[over..].is_sorted(), "the outermost first: {}", track.about);
    }
}

/// Compares two sets of items. The message has the first few that differ.
#[track_caller]
fn assert_same(what: &str, ours: &Items, whole: &Items) {
    let count = |items: &Items, item| items.get(item).copied().unwrap_or(0);
    let all: BTreeSet<_> = ours.keys().chain(whole.keys()).collect();
    let differing = all.into_iter().filter(|item| count(ours, item) != count(whole, item));
    let differing: Vec<String> = differing
        .map(|item| format!("{item:?}: {} in batches, {} on the page", count(ours, item), count(whole, item)))
        .collect();
    assert!(differing.is_empty(), "{what}: {} differ:\n{}", differing.len(), {
        differing.iter().take(10).cloned().collect::<Vec<_>>().join("\n")
    });
}

#[test]
fn all_batches_together_hold_what_the_page_of_the_whole_recording_holds() {
    for (name, dat) in recordings() {
        let dir = support::tempdir();
        std::fs::write(dir.path().join("x.dat"), &dat).unwrap();
        run_in(dir.path(), &["report", "x.dat", "-o", "x.html"]).exited_with_one_of(&[0, 3]);
        let whole = of_page(&Page::read(&dir.path().join("x.html")));
        let parts = DatParts::of(&dat);
        let stream = parts.stream(&mut Random(7)).concat();
        for feeding in [
            Feeding { seed: 1, longest: 200_000, batch_percent: 20 },
            Feeding { seed: 2, longest: 3_000, batch_percent: 1 },
            Feeding { seed: 3, longest: 10_000_000, batch_percent: 0 },
        ] {
            let mut live = Live::new(options(3600));
            let mut told = Told::default();
            feed(&mut live, &stream, feeding, &mut told);
            assert!(live.is_ended(), "{name}");
            told.add(live.batch(true));
            let what = format!("{name}, {feeding:?}, {} batches", told.batches.len());
            assert_same(&what, &of_batches(&told.batches), &whole);
            let events: u64 = told.batches.iter().map(|batch| batch.number("events")).sum();
            assert!(events > 0, "{what}: {events} events");
        }
    }
}
