//! Ring-buffer pages as a real kernel handed them out, against the text that the same kernel printed of the
//! same events.

use std::path::PathBuf;

use support::TempDir;

use super::text::{
    events, exact_times, reported_times, rounded, systrace, trace_cmd_report, without_learned_names,
};
use support::dat_writer::{DatFile, RingBuffer, common};
use support::kernel_pages::KernelPages;
use support::scenario::{Era, Scenario};

/// A trace.dat around the pages of a scenario, written by the tests' own writer.
fn assembled(scenario: &str) -> (TempDir, PathBuf) {
    written(&from_pages(scenario))
}

fn from_pages(scenario: &str) -> DatFile {
    let kernel = KernelPages::read(scenario);
    let mut file = DatFile::with_texts_of(&kernel);
    let data = file.header_page.lines().find(|line| line.contains(" data;")).unwrap();
    let size = |text: &str| text.split(';').next().unwrap().parse::<u32>().unwrap();
    // The data begin behind a timestamp and a counter of 8 bytes each.
    file.page_size = 16 + size(data.split_once("size:").unwrap().1);
    file.cpus = (0..2).map(|cpu| kernel.cpu(cpu).to_vec()).collect();
    file
}

fn written(file: &DatFile) -> (TempDir, PathBuf) {
    let dir = support::tempdir();
    let path = dir.path().join("golden.dat");
    std::fs::write(&path, file.to_bytes()).unwrap();
    (dir, path)
}

/// Compares two lists and names the first difference.
#[track_caller]
pub fn assert_same<T: PartialEq + std::fmt::Debug>(ours: &[T], golden: &[T], of: &str) {
    for (n, (ours, golden)) in ours.iter().zip(golden).enumerate() {
        assert_eq!(ours, golden, "{of}: event {n}");
    }
    assert_eq!(ours.len(), golden.len(), "{of}: number of events");
}

#[test]
fn every_page_decodes_to_the_lines_that_the_kernel_printed() {
    let mut compared = 0;
    for scenario in KernelPages::scenarios() {
        let (_dir, dat) = assembled(&scenario);
        let ours = events(&systrace(&dat, if scenario.starts_with("lost") { 3 } else { 0 }));
        let mut kernel = events(&KernelPages::printed(&scenario));
        if scenario == "counter" {
            // The kernel prints ticks as they are; the product prints them with a point, rounded.
            for event in &mut kernel {
                event.time = rounded(event.ns());
            }
        }
        let ours = without_learned_names(ours, &kernel, |event| &mut event.task);
        assert_same(&ours, &kernel, &scenario);
        compared += kernel.len();
    }
    assert!(compared > 250, "only {compared} events were compared");
}

/// The kernel keeps the names of some hundred threads, so that a long recording's list lacks others.
#[test]
fn a_thread_that_the_list_lacks_is_named_by_the_events() {
    let mut file = from_pages("events");
    file.saved_cmdlines.clear();
    let (_dir, dat) = written(&file);
    let named = exact_times(&dat);
    assert!(named.len() > 100, "only {} events", named.len());
    let unnamed: Vec<_> = named.iter().filter(|event| event.2.starts_with("<...>-")).collect();
    assert!(unnamed.is_empty(), "{} of {}: {unnamed:?}", unnamed.len(), named.len());
}

fn info(dat: &PathBuf) -> serde_json::Value {
    let done = support::tracebridge().args(["info", "--json"]).arg(dat).run();
    done.json()
}

#[test]
fn ticks_of_the_cpu_s_counter_are_exactly_those_that_the_kernel_printed() {
    let (_dir, dat) = assembled("counter");
    let kernel = events(&KernelPages::printed("counter"));
    let kernel: Vec<u64> = kernel.iter().map(|event| event.ns()).collect();
    let ours: Vec<u64> = exact_times(&dat).into_iter().map(|(ticks, ..)| ticks).collect();
    assert_same(&ours, &kernel, "counter");
}

#[test]
fn overwritten_events_are_counted_as_the_kernel_counts_them() {
    let kernel = KernelPages::read("lost");
    let stats = kernel.text("cpu0.stats");
    let overrun: u64 = stats.lines().find_map(|l| l.strip_prefix("overrun: ")).unwrap().parse().unwrap();
    assert!(overrun > 0);
    let (_dir, dat) = assembled("lost");
    assert_eq!(info(&dat)["lost"], overrun);
    assert!(systrace(&dat, 3).contains(&format!("CPU:0 [LOST {overrun} EVENTS]")));
}

#[test]
fn a_full_page_says_that_events_are_missing_but_not_how_many() {
    let (_dir, dat) = assembled("lost_uncounted");
    let info = info(&dat);
    assert_eq!((&info["lost"], &info["report"]["cpus"]["0"]["gaps"]), (&0.into(), &1.into()), "{info}");
}

#[test]
fn trace_cmd_reads_the_same_nanoseconds_from_every_page() {
    if !support::has_program("trace-cmd") {
        return support::skip("trace-cmd", "trace-cmd is not installed");
    }
    // trace-cmd 3.1 does not know sub-buffers larger than a page.
    for scenario in ["events", "lost", "lost_uncounted"] {
        let (_dir, dat) = assembled(scenario);
        let reported = reported_times(&trace_cmd_report(&dat));
        let exact = without_learned_names(exact_times(&dat), &reported, |event| &mut event.2);
        assert_same(&exact, &reported, scenario);
    }
}

/// The number of the `print` event of every kernel.
const TRACE_PRINT: u16 = 5;

fn marker(tid: i32, text: &str) -> Vec<u8> {
    let mut fields = common(TRACE_PRINT, tid);
    fields.u64(0xffff_ffff_8149_895a).raw(text.as_bytes()).raw(b"\n\0");
    fields.0
}

/// Every kind of record that a page can hold, written by the tests' own writer: known times, and trace-cmd
/// agrees.
#[test]
fn the_tests_own_writer_is_understood_by_trace_cmd_and_by_the_product() {
    const START_NS: u64 = 5_000_000_000_123;
    let mut ring = RingBuffer::default();
    let mut expected = Vec::new();
    let mut times = [0, 1, 133_000_000, 134_217_727, 134_217_728, 60_000_000_000].into_iter();
    let mut ts_ns = START_NS;
    // Texts on both sides of the longest event whose length fits into `type_len`.
    for length in [1, 60, 93, 94, 95, 96, 97, 98, 1_000, 3_000, 3_000] {
        let text = "m".repeat(length);
        ts_ns += times.next().unwrap_or(7);
        ring.event(ts_ns, &marker(71, &text));
        expected.push((ts_ns, text));
    }
    for (n, lost) in [Some(12), None].into_iter().enumerate() {
        ring.lost(lost);
        ts_ns += 9;
        ring.event(ts_ns, &marker(71, &format!("after a loss {n}")));
        expected.push((ts_ns, format!("after a loss {n}")));
    }
    ts_ns += 4_000_000_000;
    ring.event_with_absolute_time(ts_ns, &marker(71, "absolute"));
    expected.push((ts_ns, "absolute".into()));

    let mut file = DatFile::with_texts_of(&KernelPages::read("events"));
    file.saved_cmdlines = "71 writer\n".into();
    file.cpus = vec![ring.into_pages(), Vec::new()];
    let (_dir, dat) = written(&file);
    let line = |(ts_ns, _): &(u64, String)| (*ts_ns, 0, "writer-71".to_owned(), "print".to_owned());
    let expected_times: Vec<_> = expected.iter().map(line).collect();
    assert_same(&exact_times(&dat), &expected_times, "the product");
    let texts: Vec<String> = events(&systrace(&dat, 3)).into_iter().map(|e| e.fields).collect();
    let expected_texts: Vec<String> = expected.into_iter().map(|(_, text)| text).collect();
    assert_same(&texts, &expected_texts, "the product's text");
    assert_eq!(info(&dat)["lost"], 12);

    if !support::has_program("trace-cmd") {
        return support::skip("trace-cmd", "trace-cmd is not installed");
    }
    let report = trace_cmd_report(&dat);
    assert_same(&reported_times(&report), &expected_times, "trace-cmd");
    let text = |e: super::text::Event| e.fields.rsplit_once("tracing_mark_write: ").unwrap().1.to_owned();
    assert_same(
        &events(&report).into_iter().map(text).collect::<Vec<_>>(),
        &expected_texts,
        "trace-cmd's text",
    );
    assert!(report.contains("[12 EVENTS DROPPED]"), "{report}");
}

/// The simulated devices that alignment and merging are tested with.
#[test]
fn a_simulated_recording_reads_the_same_in_trace_cmd() {
    if !support::has_program("trace-cmd") {
        return support::skip("trace-cmd", "trace-cmd is not installed");
    }
    let dir = support::tempdir();
    let dat = dir.path().join("simulated.dat");
    std::fs::write(&dat, Scenario { length: 200_000_000, ..Scenario::new(1, Era::Art14) }.make().dat)
        .unwrap();
    let ours = exact_times(&dat);
    assert!(ours.len() > 1_000, "only {} events", ours.len());
    assert_same(&ours, &reported_times(&trace_cmd_report(&dat)), "simulated");
}
