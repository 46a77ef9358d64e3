//! Reads the samples that `simpleperf report-sample --protobuf` writes, and with it Android Studio
//! (`cpu-simpleperf-*.trace`): `SIMPLEPERF`, a version of 16 bits, and messages of protobuf, each behind its
//! length, up to a length of 0 (android platform/system/extras, simpleperf/cmd_report_sample.proto).
//!
//! Samples come before the files with the names of their functions. So a first pass collects everything else.

use std::io;

use rustc_hash::FxHashMap;

use super::Damage;
use super::input::Input;
use super::recording::{FormatError, OpenedInput};
use super::samples::{
    FrameIndex, FrameKind, SCHED_SWITCH, Sample, SampleCollector, SampleEvent, SampleModule, SampleReading,
    SampleRecording, SampleSink, measures_time, readable,
};
use super::wire::read::{WireValue, fields};
use crate::clock::{Clock, Timestamp};
use crate::ids::{Pid, Tid};
use crate::progress::{self, Pass};

const MAGIC: &[u8] = b"SIMPLEPERF";
/// The magic and the version.
const HEAD_BYTES: usize = 12;

/// Field numbers of `Record`.
mod record {
    pub(super) const SAMPLE: u32 = 1;
    pub(super) const LOST: u32 = 2;
    pub(super) const FILE: u32 = 3;
    pub(super) const THREAD: u32 = 4;
    pub(super) const META_INFO: u32 = 5;
    pub(super) const CONTEXT_SWITCH: u32 = 6;
}

/// Field numbers of `Sample`.
mod sample {
    pub(super) const TIME: u32 = 1;
    pub(super) const THREAD_ID: u32 = 2;
    pub(super) const CALLCHAIN: u32 = 3;
    pub(super) const EVENT_COUNT: u32 = 4;
    pub(super) const EVENT_TYPE_ID: u32 = 5;
}

/// Field numbers of `ContextSwitch`.
mod context_switch {
    pub(super) const SWITCH_ON: u32 = 1;
    pub(super) const TIME: u32 = 2;
    pub(super) const THREAD_ID: u32 = 3;
}

/// The number of event types that are kept apart. Those behind them are taken for one.
const MAX_EVENTS: u64 = 4096;

/// The reason why a file cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SimpleperfReportError {
    /// The head is cut.
    #[error("the file ends inside of its head, at offset {0}: copy it again")]
    CutHead(usize),
}

/// Whether a file with these bytes is a report of samples.
pub fn detect(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Opens a report of samples.
pub(super) fn open(input: &Input) -> Result<OpenedInput<'_>, FormatError> {
    Ok(OpenedInput::Samples(Box::new(SimpleperfReport::parse(input)?)))
}

/// A file with code, and the names of its functions.
#[derive(Debug, Clone, Default)]
struct ReportFile<'a> {
    path: &'a [u8],
    symbols: Vec<&'a [u8]>,
}

/// An opened report.
#[derive(Debug, Clone)]
pub struct SimpleperfReport<'a> {
    data: &'a [u8],
    version: u16,
    /// By id.
    files: FxHashMap<u64, ReportFile<'a>>,
    /// Processes and names, by thread.
    threads: FxHashMap<Tid, (Pid, &'a [u8])>,
    events: Vec<String>,
    /// Names of event types beyond [`MAX_EVENTS`].
    unread_events: u64,
    traces_off_cpu: bool,
    lost: u64,
    /// The number of samples that the file says it has.
    stated: Option<u64>,
    facts: Vec<(String, String)>,
    damage: Option<Damage>,
}

/// The messages of a file, with their offsets.
struct ReportMessages<'a> {
    data: &'a [u8],
    at: usize,
    damage: Option<Damage>,
}

impl<'a> Iterator for ReportMessages<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.data.get(self.at..)?;
        let cut = |what: &str| Some(Damage { offset: self.at as u64, what: what.to_owned() });
        let Some((len, rest)) = rest.split_first_chunk::<4>() else {
            self.damage = cut("the file is cut: its end mark is missing");
            return None;
        };
        match u32::from_le_bytes(*len) as usize {
            0 => None,
            len => match rest.get(..len) {
                Some(message) => {
                    self.at += 4 + len;
                    Some(message)
                }
                None => {
                    let what = format!("the file is cut: a record of {len} bytes has {} of them", rest.len());
                    self.damage = cut(&what);
                    None
                }
            },
        }
    }
}

fn messages(data: &[u8]) -> ReportMessages<'_> {
    ReportMessages { data, at: HEAD_BYTES, damage: None }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl<'a> SimpleperfReport<'a> {
    /// Samples and context switches with their times, in the order of time. simpleperf writes some messages
    /// of a recording of the whole machine behind later ones.
    fn messages_in_time(&self) -> Vec<(u64, u32, &'a [u8])> {
        let timed = |(number, value): (u32, WireValue<'a>)| {
            let field = match number {
                record::SAMPLE => sample::TIME,
                record::CONTEXT_SWITCH => context_switch::TIME,
                _ => return None,
            };
            let time = fields(value.bytes()).find(|(number, _)| *number == field);
            Some((time.map_or(0, |(_, time)| time.number()), number, value.bytes()))
        };
        let mut timed: Vec<_> = messages(self.data).flat_map(fields).filter_map(timed).collect();
        timed.sort_by_key(|(time, ..)| *time);
        timed
    }

    /// Opens a report from its bytes.
    ///
    /// # Errors
    /// [`SimpleperfReportError`] where the head is cut. Other damage is in the report of the reading.
    pub fn parse(data: &'a [u8]) -> Result<SimpleperfReport<'a>, SimpleperfReportError> {
        let cut = SimpleperfReportError::CutHead(data.len());
        let version = data.get(MAGIC.len()..).and_then(|rest| rest.first_chunk()).ok_or(cut)?;
        let mut report = SimpleperfReport {
            data,
            version: u16::from_le_bytes(*version),
            files: FxHashMap::default(),
            threads: FxHashMap::default(),
            events: Vec::new(),
            unread_events: 0,
            traces_off_cpu: false,
            lost: 0,
            stated: None,
            facts: Vec::new(),
            damage: None,
        };
        let mut all = messages(data);
        for message in all.by_ref() {
            for (number, value) in fields(message) {
                match number {
                    record::LOST => report.take_losses(value.bytes()),
                    record::FILE => report.take_file(value.bytes()),
                    record::THREAD => report.take_thread(value.bytes()),
                    record::META_INFO => report.take_meta_info(value.bytes()),
                    _ => {}
                }
            }
        }
        report.damage = all.damage;
        Ok(report)
    }

    fn take_losses(&mut self, message: &[u8]) {
        for (number, value) in fields(message) {
            match number {
                1 => self.stated = Some(value.number()),
                2 => self.lost = self.lost.saturating_add(value.number()),
                _ => {}
            }
        }
    }

    fn take_file(&mut self, message: &'a [u8]) {
        let mut id = 0;
        let mut file = ReportFile::default();
        for (number, value) in fields(message) {
            match number {
                1 => id = value.number(),
                2 => file.path = value.bytes(),
                3 => file.symbols.push(value.bytes()),
                _ => {}
            }
        }
        self.files.insert(id, file);
    }

    fn take_thread(&mut self, message: &'a [u8]) {
        let mut tid = Tid::default();
        let mut pid = Pid::default();
        let mut name: &[u8] = &[];
        for (number, value) in fields(message) {
            match number {
                1 => tid = Tid(value.int32()),
                2 => pid = Pid(value.int32()),
                3 => name = value.bytes(),
                _ => {}
            }
        }
        self.threads.insert(tid, (pid, name));
    }

    fn take_meta_info(&mut self, message: &[u8]) {
        for (number, value) in fields(message) {
            let key = match number {
                1 if (self.events.len() as u64) < MAX_EVENTS => {
                    self.events.push(text(value.bytes()));
                    continue;
                }
                1 => {
                    self.unread_events += 1;
                    continue;
                }
                2 => "app_package_name",
                3 => "app_type",
                4 => "android_sdk_version",
                5 => "android_build_type",
                6 => {
                    self.traces_off_cpu = value.number() != 0;
                    "trace_offcpu"
                }
                _ => continue,
            };
            let value = match value {
                WireValue::Number(flag) if number == 6 => (flag != 0).to_string(),
                WireValue::Number(number) => number.to_string(),
                WireValue::Bytes(bytes) => text(bytes),
            };
            self.facts.push((key.to_owned(), value));
        }
    }

    fn event(&self, index: usize) -> SampleEvent {
        let name = self.events.get(index).cloned().unwrap_or_else(|| format!("event type {index}"));
        let is_off_cpu = self.traces_off_cpu && name == SCHED_SWITCH;
        SampleEvent {
            is_off_cpu,
            is_time: is_off_cpu || measures_time(&name),
            name,
            ..SampleEvent::default()
        }
    }
}

impl SampleRecording for SimpleperfReport<'_> {
    fn format(&self) -> String {
        format!("samples of simpleperf's report-sample, version {}", self.version)
    }

    fn clock(&self) -> Clock {
        Clock::Unknown
    }

    fn facts(&self) -> Vec<(String, String)> {
        self.facts.clone()
    }

    fn read(&self, sink: &mut dyn SampleSink) -> io::Result<SampleReading> {
        let mut reader = ReportReader {
            report: self,
            collector: SampleCollector::default(),
            threads: FxHashMap::default(),
            modules: FxHashMap::default(),
            frames: FrameIndex::default(),
            entries: FxHashMap::default(),
            chain: Vec::new(),
            without_file: 0,
            of_unread_events: 0,
        };
        reader.collector.reading.losses.lost = self.lost;
        let events = (0..self.events.len().max(1)).map(|index| self.event(index));
        reader.collector.reading.tables.events = events.collect();
        let _pass = Pass::begin("reading samples", self.data.len() as u64);
        for (_, number, message) in self.messages_in_time() {
            progress::advance(message.len() as u64 + 4);
            match number {
                record::SAMPLE => reader.sample(message, sink)?,
                _ => reader.context_switch(message, sink)?,
            }
        }
        let without_file = reader.without_file;
        let of_unread_events = reader.of_unread_events;
        let mut reading = reader.collector.finish(sink)?;
        reading.report.damage.extend(self.damage.clone());
        if self.unread_events > 0 || of_unread_events > 0 {
            let what = format!(
                "{} event types and the events of {of_unread_events} samples are taken for one: the report has more \
                 than {MAX_EVENTS} types",
                self.unread_events
            );
            reading.report.damage.push(Damage { offset: 0, what });
        }
        if without_file > 0 {
            let what = format!("{without_file} functions lie in files that the report does not name");
            reading.report.irregular.push(what);
        }
        let count: u64 = reading.tables.events.iter().map(|event| event.samples).sum();
        if let Some(stated) = self.stated.filter(|stated| *stated != count && self.damage.is_none()) {
            let what = format!("the report has {count} samples, and says that it has {stated}");
            reading.report.irregular.push(what);
        }
        Ok(reading)
    }
}

/// One entry of a call chain: address, file, symbol, execution type.
type ChainEntry = (u64, u64, i32, u64);

struct ReportReader<'r, 'a> {
    report: &'r SimpleperfReport<'a>,
    collector: SampleCollector,
    threads: FxHashMap<Tid, u32>,
    modules: FxHashMap<u64, u32>,
    frames: FrameIndex,
    entries: FxHashMap<ChainEntry, u32>,
    chain: Vec<u32>,
    /// Entries of call chains whose file is missing.
    without_file: u64,
    /// Samples of event types beyond [`MAX_EVENTS`].
    of_unread_events: u64,
}

impl ReportReader<'_, '_> {
    fn sample(&mut self, message: &[u8], sink: &mut dyn SampleSink) -> io::Result<()> {
        let mut found = Sample { time: Timestamp::MIN, thread: 0, event: 0, stack: 0, cpu: None, period: 0 };
        let mut tid = Tid::default();
        self.chain.clear();
        for (number, value) in fields(message) {
            match number {
                sample::TIME => found.time = Timestamp(value.number()),
                sample::THREAD_ID => tid = Tid(value.int32()),
                sample::CALLCHAIN => {
                    let frame = self.frame(value.bytes());
                    self.chain.push(frame);
                }
                sample::EVENT_COUNT => found.period = value.number(),
                sample::EVENT_TYPE_ID => {
                    self.of_unread_events += u64::from(value.number() >= MAX_EVENTS);
                    found.event = value.number().min(MAX_EVENTS) as u32;
                }
                _ => {}
            }
        }
        let tables = &mut self.collector.reading.tables;
        for index in tables.events.len()..=found.event as usize {
            tables.events.push(self.report.event(index));
        }
        found.stack = tables.stacks.of_frames(self.chain.iter().rev().copied());
        found.thread = self.thread(tid);
        self.collector.take(found, sink)
    }

    fn context_switch(&mut self, message: &[u8], sink: &mut dyn SampleSink) -> io::Result<()> {
        let mut begins = false;
        let mut time = Timestamp::MIN;
        let mut tid = Tid::default();
        for (number, value) in fields(message) {
            match number {
                context_switch::SWITCH_ON => begins = value.number() != 0,
                context_switch::TIME => time = Timestamp(value.number()),
                context_switch::THREAD_ID => tid = Tid(value.int32()),
                _ => {}
            }
        }
        match self.threads.get(&tid).filter(|_| begins) {
            Some(thread) => self.collector.runs_again(*thread, time, sink),
            None => Ok(()),
        }
    }

    fn thread(&mut self, tid: Tid) -> u32 {
        if let Some(thread) = self.threads.get(&tid) {
            return *thread;
        }
        let (pid, name) = self.report.threads.get(&tid).copied().unwrap_or_default();
        let thread = self.collector.add_thread(pid, tid, text(name));
        self.threads.insert(tid, thread);
        thread
    }

    fn frame(&mut self, message: &[u8]) -> u32 {
        const INTERPRETED_OR_JIT: [u64; 2] = [1, 2];
        // A field that is left out is 0; an unknown symbol has the number -1.
        let mut entry: ChainEntry = (0, 0, 0, 0);
        for (number, value) in fields(message) {
            match number {
                1 => entry.0 = value.number(),
                2 => entry.1 = value.number(),
                3 => entry.2 = value.int32(),
                4 => entry.3 = value.number(),
                _ => {}
            }
        }
        if let Some(frame) = self.entries.get(&entry) {
            return *frame;
        }
        let (address, file_id, symbol_id, execution) = entry;
        let report = self.report;
        let file = report.files.get(&file_id);
        self.without_file += u64::from(file.is_none());
        let symbol = file.zip(usize::try_from(symbol_id).ok()).and_then(|(file, at)| file.symbols.get(at));
        let tables = &mut self.collector.reading.tables;
        let module = *self.modules.entry(file_id).or_insert_with(|| {
            let path = text(file.map_or(&[], |file| file.path));
            tables.modules.push(SampleModule { path, ..SampleModule::default() });
            tables.modules.len() as u32 - 1
        });
        let path = &tables.modules[module as usize].path;
        let symbol = symbol.copied().unwrap_or(&[]);
        let is_java = INTERPRETED_OR_JIT.contains(&execution);
        let kind = if is_java { FrameKind::Java } else { FrameKind::of_code(path, symbol) };
        let name = String::from_utf8_lossy(symbol);
        let frame = self.frames.intern(tables, &readable(&name), module, kind, address);
        self.entries.insert(entry, frame);
        frame
    }
}
