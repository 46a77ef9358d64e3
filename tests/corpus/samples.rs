//! Samples of real files, compared with simpleperf's own text, with the crate `linux-perf-data` and with
//! Perfetto's own classes.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use linux_perf_data::linux_perf_event_reader::{EventRecord, RecordType};
use linux_perf_data::{PerfFileReader, PerfFileRecord};
use tracebridge::formats::input::Input;
use tracebridge::formats::open;
use tracebridge::formats::samples::{CountOnly, Sample, SampleReading, SampleSink, SampleTables};

use support::python::{PERFETTO, python_with};
use support::{Command, corpus};

/// One sample as text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ShownSample {
    /// Time, µs.
    time_us: u64,
    pid: i32,
    tid: i32,
    cpu: u32,
    period: u64,
    event: String,
    /// Function and file, innermost first.
    stack: Vec<(String, String)>,
}

#[derive(Default)]
struct Shown(Vec<ShownSample>);

impl SampleSink for Shown {
    fn sample(&mut self, tables: &SampleTables, sample: &Sample) -> io::Result<()> {
        let thread = &tables.threads[sample.thread as usize];
        let frame = |frame: u32| {
            let frame = &tables.frames[frame as usize];
            (frame.name.clone(), tables.modules[frame.module as usize].path.clone())
        };
        self.0.push(ShownSample {
            time_us: sample.time.0 / 1_000,
            pid: thread.pid.0,
            tid: thread.tid.0,
            cpu: sample.cpu.map_or(0, |cpu| cpu.0),
            period: sample.period,
            event: tables.events[sample.event as usize].name.clone(),
            stack: tables.stacks.frames(sample.stack).map(frame).collect(),
        });
        Ok(())
    }
}

/// The samples of a file, and the result of reading it.
fn read(path: &Path) -> (Vec<ShownSample>, SampleReading) {
    let input = Input::open(path).unwrap();
    let opened = open(&input).unwrap();
    let recording = opened.samples().unwrap_or_else(|| panic!("{path:?} has samples"));
    let mut shown = Shown::default();
    let reading = recording.read(&mut shown).unwrap();
    (shown.0, reading)
}

pub(crate) fn file(name: &str) -> Option<PathBuf> {
    let dir = corpus()?.join("simpleperf");
    let found = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    found.into_iter().find(|path| path.to_str().is_some_and(|path| path.ends_with(name)))
}

/// The samples of a file as `perf script` prints them: process and thread, time in ns, period, event.
pub(crate) fn script_lines(path: &Path) -> Vec<(String, u64, u64, String)> {
    #[derive(Default)]
    struct Lines(Vec<(String, u64, u64, String)>);
    impl SampleSink for Lines {
        fn sample(&mut self, tables: &SampleTables, sample: &Sample) -> io::Result<()> {
            let thread = &tables.threads[sample.thread as usize];
            let event = tables.events[sample.event as usize].name.clone();
            self.0.push((format!("{}/{}", thread.pid, thread.tid), sample.time.0, sample.period, event));
            Ok(())
        }
    }
    let input = Input::open(path).unwrap();
    let opened = open(&input).unwrap();
    let mut lines = Lines::default();
    opened.samples().unwrap().read(&mut lines).unwrap();
    lines.0
}

/// The samples of a text that simpleperf's report_sample.py has printed.
fn printed(text: &str) -> (Vec<ShownSample>, BTreeMap<i32, String>) {
    let mut all = Vec::new();
    let mut names = BTreeMap::new();
    for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let mut lines = block.trim_start_matches('\n').lines();
        let (name, rest) = lines.next().unwrap().split_once('\t').unwrap();
        let words: Vec<&str> = rest.split_whitespace().collect();
        let (pid, tid) = words[0].split_once('/').unwrap();
        let (seconds, micros) = words[2].trim_end_matches(':').split_once('.').unwrap();
        let number = |text: &str| text.parse::<u64>().unwrap();
        let frame = |line: &str| {
            let (_, rest) = line.trim().split_once(' ').unwrap();
            let open = rest.rfind(" (/").or_else(|| rest.rfind(" (")).unwrap();
            (rest[..open].to_owned(), rest[open + 2..].trim_end_matches(')').to_owned())
        };
        all.push(ShownSample {
            time_us: number(seconds) * 1_000_000 + number(micros),
            pid: pid.parse().unwrap(),
            tid: tid.parse().unwrap(),
            cpu: words[1].trim_matches(['[', ']']).parse().unwrap(),
            period: number(words[3]),
            event: words[4].trim_end_matches(':').to_owned(),
            stack: lines.map(frame).collect(),
        });
        names.insert(tid.parse().unwrap(), name.to_owned());
    }
    (all, names)
}

/// simpleperf writes an unknown function as `file[+address]`.
fn as_simpleperf_writes(name: &str) -> String {
    match name.rsplit_once("+0x") {
        Some((file, address)) if address.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            format!("{file}[+{address}]")
        }
        _ => name.to_owned(),
    }
}

#[test]
fn every_sample_of_a_file_equals_simpleperfs_own_text() {
    let Some(path) = file("perf_display_bitmaps.data") else { return };
    let mut text = String::new();
    let packed = fs::File::open(file("perf_display_bitmaps.perf-script.gz").unwrap()).unwrap();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
    let (want, names) = printed(&text);
    let (mut found, reading) = read(&path);
    for sample in &mut found {
        sample.stack.iter_mut().for_each(|frame| frame.0 = as_simpleperf_writes(&frame.0));
    }
    let mut want_sorted = want.clone();
    want_sorted.sort();
    found.sort();
    assert_eq!(found.len(), want.len());
    let key = |sample: &ShownSample| (sample.time_us, sample.tid, sample.cpu, sample.period);
    let mut different = std::collections::BTreeSet::new();
    for (found, want) in found.iter().zip(&want_sorted) {
        assert_eq!((key(found), &found.event, found.pid), (key(want), &want.event, want.pid));
        assert_eq!(found.stack.len(), want.stack.len(), "{found:#?}\n{want:#?}");
        let frames = found.stack.iter().zip(&want.stack);
        different.extend(frames.filter(|(found, want)| found != want));
    }
    assert!(different.is_empty(), "{different:#?}");
    for thread in &reading.tables.threads {
        assert_eq!(names.get(&thread.tid.0), Some(&thread.name));
    }
}

/// The counts of the crate `linux-perf-data`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    by_thread: BTreeMap<(i32, i32), u64>,
    by_event: BTreeMap<usize, u64>,
    lost: u64,
    throttled: u64,
}

fn counts_of_the_crate(bytes: &[u8]) -> Counts {
    let is_pipe = bytes[8..16] == 16u64.to_le_bytes();
    let reader = if is_pipe {
        PerfFileReader::parse_pipe(io::Cursor::new(bytes))
    } else {
        PerfFileReader::parse_file(io::Cursor::new(bytes))
    };
    let PerfFileReader { mut perf_file, mut record_iter } = reader.unwrap();
    let mut counts = Counts::default();
    while let Ok(Some(record)) = record_iter.next_record(&mut perf_file) {
        let PerfFileRecord::EventRecord { attr_index, record } = record else { continue };
        counts.throttled += u64::from(record.record_type == RecordType::THROTTLE);
        match record.parse().unwrap() {
            EventRecord::Sample(sample) => {
                let thread = (sample.pid.unwrap(), sample.tid.unwrap());
                *counts.by_thread.entry(thread).or_default() += 1;
                *counts.by_event.entry(attr_index).or_default() += 1;
            }
            EventRecord::Lost(lost) => counts.lost += lost.count,
            _ => {}
        }
    }
    counts
}

#[test]
fn samples_threads_events_and_losses_equal_those_of_another_reader() {
    let Some(corpus) = corpus() else { return };
    let mut files = 0;
    for entry in fs::read_dir(corpus.join("simpleperf")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "data") {
            continue;
        }
        let (samples, reading) = read(&path);
        let mut want = counts_of_the_crate(&fs::read(&path).unwrap());
        let mut found =
            Counts { lost: reading.losses.lost, throttled: reading.losses.throttled, ..Counts::default() };
        for thread in &reading.tables.threads {
            *found.by_thread.entry((thread.pid.0, thread.tid.0)).or_default() += thread.samples;
        }
        for (index, event) in reading.tables.events.iter().enumerate().filter(|(_, event)| event.samples > 0)
        {
            found.by_event.insert(index, event.samples);
        }
        // The crate takes both event types of this file for the first one; perf script names eight samples
        // cycles and two cpu-clock.
        if path.to_str().is_some_and(|path| path.contains("two_event_types")) {
            want.by_event = BTreeMap::from([(0, 8), (1, 2)]);
        }
        assert_eq!(found, want, "{path:?}");
        assert_eq!(samples.len() as u64, want.by_event.values().sum::<u64>());
        assert!(reading.report.damage.is_empty(), "{path:?}: {:?}", reading.report.damage);
        files += 1;
    }
    assert!(files >= 11, "{files}");
}

/// The samples of a trace by Perfetto's published classes, one a line: time of BOOTTIME, process, thread,
/// CPU, and the frames, outermost first, as path, build id and function; null for a mangled one.
const SAMPLES_BY_PERFETTOS_CLASSES: &str = r#"
import json, sys
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as p
trace = p.Trace()
trace.ParseFromString(open(sys.argv[1], 'rb').read())
names, paths, build_ids, mappings, frames, stacks = {}, {}, {}, {}, {}, {}
pairs = []
for packet in trace.packet:
    clocks = {c.clock_id: c.timestamp for c in packet.clock_snapshot.clocks}
    if clocks:
        pairs.append((clocks[5], clocks[6]))
pairs.sort()
def boottime(raw):
    before = [pair for pair in pairs if pair[0] <= raw]
    after = [pair for pair in pairs if pair[0] > raw]
    if before and after:
        (x0, y0), (x1, y1) = before[-1], after[0]
        return y0 + (raw - x0) * (y1 - y0) // (x1 - x0)
    x0, y0 = before[-1] if before else after[0]
    return raw - x0 + y0
lost = skipped = 0
for packet in trace.packet:
    data = packet.interned_data
    for table, list in ((names, data.function_names), (paths, data.mapping_paths), (build_ids, data.build_ids)):
        table.update({entry.iid: entry.str for entry in list})
    for table, list in ((mappings, data.mappings), (frames, data.frames), (stacks, data.callstacks)):
        table.update({entry.iid: entry for entry in list})
    if not packet.HasField('perf_sample'):
        continue
    sample = packet.perf_sample
    lost += sample.kernel_records_lost
    skipped += sample.HasField('sample_skipped_reason')
    if sample.kernel_records_lost or sample.HasField('sample_skipped_reason'):
        continue
    shown = []
    for frame_id in stacks[sample.callstack_iid].frame_ids:
        frame = frames[frame_id]
        mapping = mappings[frame.mapping_id]
        path = '/'.join(paths[part].decode() for part in mapping.path_string_ids)
        path = '[kernel.kallsyms]' if path == 'kernel' else path if path[:1] in ('', '[') else '/' + path
        name = names.get(frame.function_name_id, b'').decode()
        if not name:
            name = '%s+0x%x' % (path.rsplit('/')[-1] or '[unknown]', frame.rel_pc)
        mangled = name.startswith(('_Z', '_R', '__dl_'))
        shown.append([path, build_ids.get(mapping.build_id, b'').hex(), None if mangled else name])
    pid, tid = (number - (number >> 31 << 32) for number in (sample.pid, sample.tid))
    print(json.dumps([boottime(packet.timestamp), pid, tid, sample.cpu, shown]))
print(json.dumps([lost, skipped]))
"#;

/// The frames of a sample, outermost first: path, build id and function.
type PerfettoFrames = Vec<(String, String, Option<String>)>;

/// Collects times, processes, threads, CPUs and frames.
#[derive(Default)]
struct OfPerfetto(Vec<(u64, i32, i32, u32, PerfettoFrames)>);

impl SampleSink for OfPerfetto {
    fn sample(&mut self, tables: &SampleTables, sample: &Sample) -> io::Result<()> {
        let thread = &tables.threads[sample.thread as usize];
        let frame = |frame: u32| {
            let frame = &tables.frames[frame as usize];
            let module = &tables.modules[frame.module as usize];
            (module.path.clone(), module.build_id.clone(), Some(frame.name.clone()))
        };
        let mut frames: PerfettoFrames = tables.stacks.frames(sample.stack).map(frame).collect();
        frames.reverse();
        self.0.push((sample.time.0, thread.pid.0, thread.tid.0, sample.cpu.unwrap().0, frames));
        Ok(())
    }
}

#[test]
fn samples_of_a_perfetto_trace_are_those_that_perfettos_own_classes_decode() {
    let Some(corpus) = corpus() else { return };
    let Some(python) = python_with(PERFETTO) else { return };
    let name =
        "microsoft__Microsoft-Performance-Tools-Linux-Android__perfetto_android12_cpuschedstack.pftrace";
    let path = corpus.join("perfetto").join(name);
    let decoded =
        Command::new(&python).args(["-c", SAMPLES_BY_PERFETTOS_CLASSES]).arg(&path).run().exited(0).stdout;
    let (samples, last) = decoded.trim_end().rsplit_once('\n').unwrap();
    let mut want: Vec<(u64, i32, i32, u32, PerfettoFrames)> =
        samples.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [lost, skipped]: [u64; 2] = serde_json::from_str(last).unwrap();
    let input = Input::open(&path).unwrap();
    let opened = open(&input).unwrap();
    let mut found = OfPerfetto::default();
    let reading = opened.samples().unwrap().read(&mut found).unwrap();
    assert!(found.0.is_sorted_by_key(|sample| sample.0), "samples come in the order of time");
    want.sort();
    found.0.sort();
    assert_eq!((found.0.len(), reading.losses.lost), (want.len(), lost + skipped));
    let packets = 7_977;
    assert_eq!(want.len() as u64 + skipped + 2_777, packets, "the packets of the trace");
    for (found, want) in found.0.iter().zip(&want) {
        assert_eq!((found.0, found.1, found.2, found.3), (want.0, want.1, want.2, want.3));
        assert_eq!(found.4.len(), want.4.len(), "{found:?}\n{want:?}");
        for (found, want) in found.4.iter().zip(&want.4) {
            assert_eq!((&found.0, &found.1), (&want.0, &want.1));
            assert!(want.2.is_none() || found.2 == want.2, "{found:?} {want:?}");
        }
    }
}

/// Whether a cut is between two records of a file that came through a pipe: it has no end mark, so that
/// nobody can tell that records are missing.
fn is_between_records(bytes: &[u8], cut: usize) -> bool {
    const PIPE_HEAD: usize = 16;
    if bytes[8..PIPE_HEAD] != [PIPE_HEAD as u8, 0, 0, 0, 0, 0, 0, 0] {
        return false;
    }
    let mut at = PIPE_HEAD;
    while at < cut {
        // The size of a record is in the last two bytes of its head of eight.
        at += usize::from(u16::from_le_bytes([bytes[at + 6], bytes[at + 7]])).max(8);
    }
    at == cut
}

#[test]
fn a_file_cut_at_200_places_or_changed_in_one_byte_is_an_error_or_read_in_part() {
    let Some(corpus) = corpus() else { return };
    let mut files = 0;
    for entry in fs::read_dir(corpus.join("simpleperf")).unwrap() {
        let path = entry.unwrap().path();
        let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
        if !["data", "proto_data", "trace"].contains(&end) {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let count = |bytes: &[u8]| {
            let input = Input::from_bytes("changed", bytes.to_vec());
            let opened = open(&input).ok()?;
            let reading = opened.samples()?.read(&mut CountOnly).unwrap();
            let samples = reading.tables.events.iter().map(|event| event.samples).sum::<u64>();
            let frames = reading.tables.frames.iter().map(|frame| frame.name.clone()).collect::<Vec<_>>();
            Some((samples, reading.report.damage, frames))
        };
        let (whole, _, whole_frames) = count(&bytes).unwrap();
        let mut last = 0;
        for n in 0..200 {
            let Some((samples, damage, frames)) = count(&bytes[..bytes.len() * n / 200]) else { continue };
            // Behind the last section of one file are bytes of an older, longer one, which nothing names;
            // behind the records of another are messages that the recorder printed.
            let has_all = samples == whole && frames == whole_frames;
            let is_told = !damage.is_empty() || has_all || is_between_records(&bytes, bytes.len() * n / 200);
            assert!(samples <= whole && is_told, "{path:?} cut at {n}/200");
            last = samples;
        }
        // All samples of one file are in a single compressed record near its end, which every cut goes
        // through.
        let is_in_one_record = path.ends_with("mstange__linux-perf-data__sleep.compressed2.pipe.data");
        let has_most = last > whole / 2 || is_in_one_record;
        assert!(has_most, "{path:?}: {last} of {whole} samples lie before the last cut");
        for n in 0..64 {
            let mut changed = bytes.clone();
            let at = (bytes.len() * n / 64 + 5) % bytes.len();
            changed[at] ^= 0xff;
            count(&changed);
        }
        files += 1;
    }
    assert_eq!(files, 13, "the files of simpleperf and perf");
}
