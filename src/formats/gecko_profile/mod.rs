//! Profiles of the Firefox profiler as samples, in both forms of JSON: the processed one, which
//! profiler.firefox.com saves, samply writes, and tracebridge too (`preprocessedProfileVersion`), and the one
//! that Firefox itself and simpleperf's `gecko_profile_generator.py` write (docs-developer/ of
//! github.com/firefox-devtools/profiler: processed-profile-format.md, gecko-profile-format.md).
//!
//! The tables of a thread are columns, or rows with a schema. Newer versions of the processed form move
//! tables from the threads to `shared`; a table is read wherever it stands.

mod columns;
mod thread;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use rustc_hash::FxHashMap;

use self::thread::{GeckoLibrary, GeckoTables, GeckoThread, GeckoWeight, ThreadMembers, first_integer};
use super::Damage;
use super::input::{DETECTION_BYTES, Input};
use super::json::{Value, elements, elements_of_cut, float, members_of_cut};
use super::recording::{FormatError, OpenedInput};
use super::samples::{
    FrameIndex, Sample, SampleCollector, SampleEvent, SampleModule, SampleRate, SampleReading,
    SampleRecording, SampleSink,
};
use crate::clock::{Clock, Timestamp};
use crate::ids::{Pid, Tid};
use crate::progress::{self, Pass};

/// The member of `meta` that the processed form has.
const PROCESSED_VERSION: &[u8] = b"preprocessedProfileVersion";
/// Members of `meta` of which one is in every profile, beside `version`.
const OWN_META: [&[u8]; 4] = [b"interval", b"processType", b"stackwalk", b"startTime"];
/// The shortest time between two samples, ms. Files with exact times have less as their interval.
const MIN_INTERVAL_MS: f64 = 0.01;
/// The most processes whose profiles stand inside of another's.
const MAX_PROCESSES: usize = 1 << 12;

/// Whether these are the bytes of a profile of the Firefox profiler.
pub(super) fn detect(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let start = &bytes[..bytes.len().min(DETECTION_BYTES)];
    if start.trim_ascii_start().first() != Some(&b'{') {
        return false;
    }
    let (members, _) = members_of_cut(start);
    let meta = members.iter().find(|(name, _)| name.raw() == b"meta").map(|(_, value)| *value);
    let Some(Value::Object(meta)) = meta else { return false };
    let (meta, _) = members_of_cut(meta);
    let has = |name: &[u8]| meta.iter().any(|(member, _)| member.raw() == name);
    has(PROCESSED_VERSION) || has(b"version") && OWN_META.iter().any(|name| has(name))
}

/// Opens a profile.
pub(super) fn open(input: &Input) -> Result<OpenedInput<'_>, FormatError> {
    Ok(OpenedInput::Samples(Box::new(GeckoProfile::new(input))))
}

/// A profile of one process, or of all.
#[derive(Debug, Clone, Copy, Default)]
struct GeckoProcess<'a> {
    meta: &'a [u8],
    libs: &'a [u8],
    threads: &'a [u8],
    shared: &'a [u8],
    processes: &'a [u8],
    is_cut: bool,
}

fn array(value: Value<'_>) -> &[u8] {
    match value {
        Value::Array(array) => array,
        _ => &[],
    }
}

fn object(value: Value<'_>) -> &[u8] {
    match value {
        Value::Object(object) => object,
        _ => &[],
    }
}

impl<'a> GeckoProcess<'a> {
    fn new(text: &'a [u8]) -> GeckoProcess<'a> {
        let (members, is_cut) = members_of_cut(text);
        let mut process = GeckoProcess { is_cut, ..GeckoProcess::default() };
        for (name, value) in members {
            match name.raw() {
                b"meta" => process.meta = object(value),
                b"libs" => process.libs = array(value),
                b"threads" => process.threads = array(value),
                b"shared" => process.shared = object(value),
                b"processes" => process.processes = array(value),
                _ => {}
            }
        }
        process
    }

    fn meta(&self, name: &str) -> Option<Value<'a>> {
        let (members, _) = members_of_cut(self.meta);
        members.into_iter().find(|(member, _)| member.raw() == name.as_bytes()).map(|(_, value)| value)
    }

    fn meta_number(&self, name: &str) -> Option<f64> {
        match self.meta(name)? {
            Value::Number(number) => float(number),
            _ => None,
        }
    }
}

/// A file, opened.
struct GeckoProfile<'a> {
    data: &'a [u8],
    root: GeckoProcess<'a>,
    is_processed: bool,
}

impl<'a> GeckoProfile<'a> {
    fn new(data: &'a [u8]) -> GeckoProfile<'a> {
        let text = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
        let root = GeckoProcess::new(text);
        let is_processed = root.meta("preprocessedProfileVersion").is_some();
        GeckoProfile { data, root, is_processed }
    }

    /// The profile and those inside of it, each with the time that its start is behind the first one's, ns.
    fn processes(&self) -> (Vec<(GeckoProcess<'a>, i64)>, bool) {
        let start = self.root.meta_number("startTime").unwrap_or(0.0);
        let mut all = vec![(self.root, 0)];
        let mut at = 0;
        let mut is_cut = self.root.is_cut;
        while at < all.len() {
            let (inside, is_inside_cut) = match all[at].0.processes {
                [] => (Vec::new(), false),
                list => elements_of_cut(list),
            };
            is_cut |= is_inside_cut;
            for process in inside {
                let process = GeckoProcess::new(object(process));
                is_cut |= process.is_cut;
                let later = process.meta_number("startTime").unwrap_or(start) - start;
                if all.len() < MAX_PROCESSES {
                    all.push((process, nanoseconds(later)));
                }
            }
            at += 1;
        }
        (all, is_cut)
    }
}

/// ns of a number of ms.
fn nanoseconds(millis: f64) -> i64 {
    (millis * 1e6).round() as i64
}

impl SampleRecording for GeckoProfile<'_> {
    fn format(&self) -> String {
        let (form, version) = if self.is_processed {
            ("processed", "preprocessedProfileVersion")
        } else {
            ("as Firefox writes it", "version")
        };
        match self.root.meta_number(version) {
            Some(version) => format!("profile of the Firefox profiler, {form}, version {version}"),
            None => format!("profile of the Firefox profiler, {form}"),
        }
    }

    fn clock(&self) -> Clock {
        Clock::Unknown
    }

    fn facts(&self) -> Vec<(String, String)> {
        let fact = |name: &str| match self.root.meta(name)? {
            Value::Text(text) if !text.is_empty() => Some((name.to_owned(), text.to_text())),
            _ => None,
        };
        ["product", "platform", "oscpu", "abi", "importedFrom", "sourceURL"]
            .into_iter()
            .filter_map(fact)
            .collect()
    }

    fn read(&self, sink: &mut dyn SampleSink) -> io::Result<SampleReading> {
        let _pass = Pass::begin("reading samples", self.data.len() as u64);
        let mut reader = GeckoReader::default();
        let (processes, mut is_cut) = self.processes();
        let mut threads = Vec::new();
        for (process, later) in &processes {
            let libraries = libraries(process.libs);
            let categories = categories(process);
            let shared = ThreadMembers::new(process.shared);
            let interval = process.meta_number("interval");
            let (list, is_list_cut) = elements_of_cut(process.threads);
            is_cut |= is_list_cut;
            for thread in list {
                let thread = object(thread);
                progress::advance(thread.len() as u64);
                let tables = GeckoTables { libraries: &libraries, categories: &categories, shared: &shared };
                let own = ThreadMembers::new(thread);
                is_cut |= own.is_cut;
                reader.markers += own.markers();
                threads.extend(reader.thread(&own, &tables, interval, *later));
            }
        }
        reader.push(threads, sink)?;
        reader.finish(is_cut, self.data.len(), sink)
    }
}

/// The libraries of a process.
fn libraries(list: &[u8]) -> Vec<GeckoLibrary> {
    let library = |value: Value<'_>| {
        let (members, _) = members_of_cut(object(value));
        let text = |name: &str| {
            let found = members.iter().find(|(member, _)| member.raw() == name.as_bytes());
            match found.map(|(_, value)| *value) {
                Some(Value::Text(text)) => text.to_text(),
                _ => String::new(),
            }
        };
        let path = Some(text("path")).filter(|path| !path.is_empty()).unwrap_or_else(|| text("name"));
        GeckoLibrary { path, build_id: text("codeId").to_ascii_lowercase() }
    };
    elements(list).map(library).collect()
}

/// The names of the categories of frames.
fn categories(process: &GeckoProcess<'_>) -> Vec<String> {
    let list = process.meta("categories").map_or(&[][..], array);
    let name = |value: Value<'_>| {
        let (members, _) = members_of_cut(object(value));
        match members.into_iter().find(|(member, _)| member.raw() == b"name") {
            Some((_, Value::Text(text))) => text.to_text(),
            _ => String::new(),
        }
    };
    elements(list).map(name).collect()
}

/// Faults of a profile, counted.
#[derive(Default)]
struct GeckoFaults {
    /// Samples whose stack the tables do not have.
    without_stack: u64,
    /// Stacks whose caller stands behind them, and is left out.
    without_caller: u64,
    /// Samples from before the profile's start.
    early: u64,
}

#[derive(Default)]
struct GeckoReader {
    collector: SampleCollector,
    frames: FrameIndex,
    modules: FxHashMap<SampleModule, u32>,
    /// By kind of weight and interval: the index of the event type.
    events: FxHashMap<(GeckoWeight, u64), u32>,
    faults: GeckoFaults,
    /// Markers of threads, which are not read.
    markers: u64,
}

/// A sample of a thread that waits until its turn comes: time, number of the thread.
type NextSample = Reverse<(Timestamp, usize)>;

impl GeckoReader {
    /// Prepares the samples of a thread. `later` is added to their times, ns.
    fn thread<'a>(
        &mut self,
        own: &ThreadMembers<'a>,
        tables: &GeckoTables<'_, 'a>,
        interval: Option<f64>,
        later: i64,
    ) -> Option<GeckoThread<'a>> {
        let samples = own.samples(later)?;
        let hz = interval.filter(|ms| *ms >= MIN_INTERVAL_MS).map_or(0, |ms| (1e3 / ms).round() as u64);
        let weight = samples.weight;
        let events = &mut self.collector.reading.tables.events;
        let event = *self.events.entry((weight, hz)).or_insert_with(|| {
            events.push(SampleEvent {
                name: weight.name().to_owned(),
                is_time: weight == GeckoWeight::Time,
                rate: if hz > 0 && weight == GeckoWeight::Samples {
                    SampleRate::Hz(hz)
                } else {
                    SampleRate::Unknown
                },
                ..SampleEvent::default()
            });
            events.len() as u32 - 1
        });
        let mut stacks =
            own.stacks(tables, &mut self.collector.reading.tables, &mut self.frames, &mut self.modules);
        self.faults.without_caller += std::mem::take(&mut stacks.without_caller);
        let pid = Pid(first_integer(own.pid).unwrap_or(0) as i32);
        let tid = Tid(first_integer(own.tid).unwrap_or(0) as i32);
        let thread = self.collector.add_thread(pid, tid, own.name());
        Some(GeckoThread { thread, event, stacks, samples })
    }

    /// Pushes the samples of all threads in the order of time.
    fn push(&mut self, mut threads: Vec<GeckoThread<'_>>, sink: &mut dyn SampleSink) -> io::Result<()> {
        let mut next: Vec<_> = threads.iter_mut().map(GeckoThread::next).collect();
        let mut waiting: BinaryHeap<NextSample> = BinaryHeap::new();
        for (number, sample) in next.iter().enumerate() {
            waiting.extend(sample.as_ref().map(|sample| Reverse((sample.placed(), number))));
        }
        while let Some(Reverse((time, number))) = waiting.pop() {
            let Some(sample) = next[number].take() else { continue };
            let thread = &mut threads[number];
            self.faults.early += u64::from(sample.time < 0);
            let stack = thread.stacks.stack(sample.stack).unwrap_or_else(|| {
                self.faults.without_stack += 1;
                super::samples::NO_STACK
            });
            let period = sample.weight;
            self.collector.take(
                Sample { time, thread: thread.thread, event: thread.event, stack, cpu: None, period },
                sink,
            )?;
            next[number] = thread.next();
            waiting.extend(next[number].as_ref().map(|next| Reverse((next.placed(), number))));
        }
        Ok(())
    }

    fn finish(self, is_cut: bool, len: usize, sink: &mut dyn SampleSink) -> io::Result<SampleReading> {
        let GeckoFaults { without_stack, without_caller, early } = self.faults;
        let markers = self.markers;
        let mut reading = self.collector.finish(sink)?;
        let report = &mut reading.report;
        if markers > 0 {
            report
                .notes
                .push(format!("{markers} markers of the profile are not read, its samples alone are"));
        }
        if is_cut {
            let what = "the file is cut, or is no JSON behind a place: what stands there is not read";
            report.damage.push(Damage { offset: len as u64, what: what.to_owned() });
        }
        for (count, what) in [
            (without_stack, "samples name a stack that the file does not have"),
            (without_caller, "stacks name a caller that stands behind them, and have none"),
        ] {
            if count > 0 {
                report.damage.push(Damage { offset: 0, what: format!("{count} {what}") });
            }
        }
        if early > 0 {
            report.irregular.push(format!("{early} samples lie before the start, and are put there"));
        }
        Ok(reading)
    }
}

#[cfg(test)]
mod tests;
