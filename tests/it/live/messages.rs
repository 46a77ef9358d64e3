//! Messages beside the batches: numbers, launches, triggers and gaps.

use serde_json::{Value, json};
use support::recorder_streams::DatParts;
use support::report_page::Page;
use support::run_in;
use support::scenario::{Random, START};
use tracebridge::internals::live::{Live, LiveOptions};

use super::feed::{Feeding, PERIOD_NS, Told, feed, frames, frames_with, launch, options};

/// Follows a recording with these options to its end.
fn follow(dat: &[u8], options: LiveOptions) -> Told {
    let mut live = Live::new(options);
    let mut told = Told::default();
    for piece in DatParts::of(dat).stream(&mut Random(3)) {
        live.feed(&piece).unwrap();
        told.add(live.batch(false));
    }
    told.add(live.batch(true));
    told
}

fn page_of(dat: &[u8]) -> Page {
    let dir = support::tempdir();
    std::fs::write(dir.path().join("x.dat"), dat).unwrap();
    run_in(dir.path(), &["report", "x.dat", "-o", "x.html"]).exited_with_one_of(&[0, 3]);
    Page::read(&dir.path().join("x.html"))
}

/// The frames of a page: begin, end, whether late, overrun in ns.
fn frames_of(page: &Page) -> Vec<(i64, i64, bool, i64)> {
    let tracks = page.tracks();
    let frames = tracks.iter().filter(|track| track.is("slices", "frames"));
    let mut all: Vec<_> = frames
        .flat_map(|track| {
            let column = |name: &str| track.columns[name].clone();
            let [starts, lengths, flags] = ["start", "duration", "flags"].map(column);
            let overruns = column("overrun");
            (0..track.count())
                .map(move |at| (starts[at], starts[at] + lengths[at], flags[at] & 4 != 0, overruns[at]))
        })
        .collect();
    all.sort_unstable();
    all
}

#[test]
fn the_numbers_are_those_of_the_last_ten_seconds() {
    let dat = frames(30);
    let page = page_of(&dat);
    let told = follow(&dat, LiveOptions { app: Some("com.example.app".into()), ..options(5) });
    let numbers = told.of_kind("numbers");
    assert!((55..=64).contains(&numbers.len()), "one each 500 ms of 30 s: {}", numbers.len());
    let last = numbers.last().unwrap();
    let at = last["at_ns"].as_i64().unwrap();
    let frames = frames_of(&page);
    let within: Vec<_> = frames.iter().filter(|(_, end, ..)| at - 10_000_000_000 <= *end).collect();
    let late = within.iter().filter(|(.., late, _)| *late).count();
    assert!(late > 5 && within.len() > 400, "{late} of {}", within.len());
    assert_eq!(
        (last["frames"].as_u64(), last["janky"].as_u64()),
        (Some(within.len() as u64), Some(late as u64))
    );
    // Two of a hundred frames take 90 ms, the others 9.5 ms.
    assert_eq!(last["p95_ms"], json!(9.5));
    assert_eq!(last["lost"], json!(0));
    // The RenderThread has a CPU for 4 ms of nearly each frame.
    let usual = 4_000_001.0 * 100.0 / PERIOD_NS as f64;
    let cpu = last["app_cpu_percent"].as_f64().unwrap();
    assert!((usual - 6.0..usual + 9.0).contains(&cpu), "{cpu} % and not about {usual} %");
    let rate = last["events_per_s"].as_u64().unwrap();
    assert!((300..600).contains(&rate), "{rate} events a second");
}

#[test]
fn a_launch_is_told_once_when_it_is_known_as_the_page_of_the_whole_has_it() {
    let mut count = 0;
    for dat in [frames(5), launch()] {
        let page = page_of(&dat);
        let told = follow(&dat, options(5));
        let whole: Vec<&Value> =
            page.index["launches"].as_array().unwrap().iter().filter(|it| it["cut"].is_null()).collect();
        let live = told.of_kind("launch");
        assert_eq!(live.len(), whole.len(), "{live:?}, {whole:?}");
        for (live, whole) in live.iter().zip(whole) {
            for member in ["package", "type", "begin_ns", "end_ns", "ttid_ns", "ttfd_ns"] {
                assert_eq!(live[member], whole[member], "{member}");
            }
            count += 1;
        }
    }
    assert!(count > 0);
    // While the recording goes on.
    let told = follow(&frames(5), options(5));
    let launch = told.of_kind("launch")[0];
    let numbers = told.of_kind("numbers").len();
    let at = told.texts.iter().position(|text| text == launch).unwrap();
    assert!(at < numbers / 2, "message {at} of {}", told.texts.len());
}

#[test]
fn triggers_are_met_by_frames_slices_and_launches() {
    let dat = frames(10);
    let triggers = ["frame.overrun > 50ms", "slice infl* > 3ms", "slice infl* > 5ms", "launch"];
    let triggers: Vec<_> = triggers.iter().map(|text| text.parse().unwrap()).collect();
    let told = follow(&dat, LiveOptions { triggers, ..options(5) });
    let met = |text: &str| told.triggered.iter().filter(|it| it.trigger == text).collect::<Vec<_>>();
    let page = page_of(&dat);
    let late: Vec<_> = frames_of(&page).into_iter().filter(|frame| frame.3 > 50_000_000).collect();
    let frames = met("frame.overrun > 50ms");
    assert!(late.len() > 5);
    let mut ends: Vec<i64> = frames.iter().map(|occurrence| occurrence.at_ns as i64).collect();
    ends.sort_unstable();
    assert_eq!(ends, late.iter().map(|frame| frame.1).collect::<Vec<_>>());
    let first = frames[0];
    assert!(first.what.starts_with("frame-") && first.text.contains("ms after its deadline"), "{first:?}");
    let slices = met("slice infl* > 3ms");
    assert_eq!(slices.len(), 10);
    assert!(slices[0].text.starts_with("inflate took 4.0 ms on "), "{:?}", slices[0]);
    assert_eq!(met("slice infl* > 5ms"), Vec::<&_>::new());
    let launches = met("launch");
    assert_eq!(launches.len(), 1);
    assert_eq!(launches[0].what, "launch-com.example.app");
}

#[test]
fn a_lost_connection_is_a_gap_and_what_came_before_it_is_kept() {
    let dat = frames(15);
    let parts = DatParts::of(&dat);
    let pieces = parts.stream(&mut Random(3));
    let (before, after) = pieces[1..].split_at(80);
    let (_, after) = after.split_at(80);
    let mut live = Live::new(options(3600));
    let mut told = Told::default();
    let feeding = Feeding { seed: 1, longest: 20_000, batch_percent: 10 };
    feed(&mut live, &[pieces[0].clone(), before.concat()].concat(), feeding, &mut told);
    live.connection_lost("the cable was pulled");
    told.add(live.batch(false));
    assert_eq!(told.of_kind("gap"), Vec::<&Value>::new(), "the device has not come back");
    feed(&mut live, &[pieces[0].clone(), after.concat()].concat(), feeding, &mut told);
    told.add(live.batch(true));
    let gaps = told.of_kind("gap");
    assert_eq!((gaps.len(), &gaps[0]["text"]), (1, &json!("the cable was pulled")));
    let [from, to] = ["from_ns", "to_ns"].map(|member| gaps[0][member].as_u64().unwrap());
    // 80 rounds of some 50 ms, less the time of the last pages before it.
    assert!((1_000_000_000..4_500_000_000).contains(&(to - from)), "{} ns", to - from);
    let inside = |batch: &&super::feed::Batch| batch.number("to_ns") > from && batch.number("from_ns") < to;
    assert_eq!(told.batches.iter().filter(inside).count(), 0, "no batch says what happened in the gap");
    // Both parts are in one file.
    let events: u64 = told.batches.iter().map(|batch| batch.number("events")).sum();
    let kept = live.kept().dat().unwrap();
    let mut count = Counter(0);
    let dat = tracebridge::formats::trace_dat::TraceDat::open(&kept).unwrap();
    dat.read(tracebridge::formats::Order::Time, &mut count).unwrap();
    assert_eq!(count.0, events);
}

#[test]
fn a_marker_of_the_page_is_told_when_it_comes_back_with_its_own_time() {
    let dat = frames_with(20, &[(7_000_000_000, "I|21000|seven </script>")]);
    let mut live = Live::new(options(5));
    live.await_mark("seven </script>");
    let mut told = Told::default();
    let pieces = DatParts::of(&dat).stream(&mut Random(3));
    live.feed(&pieces[0]).unwrap();
    live.await_mark("never");
    live.await_mark("forgotten");
    live.forget_mark("forgotten");
    for piece in &pieces[1..] {
        live.feed(piece).unwrap();
        told.add(live.batch(false));
    }
    let marks = told.of_kind("mark");
    let start = live.start().unwrap().0;
    let wanted = json!({ "kind": "mark", "name": "seven </script>", "at_ns": START + 7_000_000_000 - start });
    assert_eq!(marks, [&wanted]);
    let texts: Vec<&str> = told.of_kind("error").iter().filter_map(|error| error["text"].as_str()).collect();
    assert_eq!(texts, ["the marker \"never\" was written, and is not in the recording"]);
}

struct Counter(u64);

impl tracebridge::formats::Sink for Counter {
    fn event(
        &mut self,
        _: &tracebridge::formats::Event<'_>,
        _: &tracebridge::formats::EventType,
    ) -> std::io::Result<()> {
        self.0 += 1;
        Ok(())
    }
}
