//! An opened trace: its names, and its events in order of time.

use std::collections::{BTreeMap, HashMap};
use std::io;

use super::event::{Id, JsonEvent, JsonProcess, JsonThread, ThreadKey};
use super::order::{OrderBuilder, TimeOrder};
use super::slices::SharedTimes;
use super::walk::{EventWalk, WalkedEvent};
use rustc_hash::FxHashSet;

use crate::clock::{Clock, Snapshots};
use crate::formats::input::Input;
use crate::formats::json::{JsonText, Value, elements, float, integer, member, members};
use crate::formats::{Damage, FormatId, Head, LossKind, LossPlace, Losses, ReadReport};
use crate::progress;

/// The pages of so many bytes of the file are given back at once.
const RELEASE_STEP_BYTES: usize = 8 << 20;

/// A Chrome JSON trace whose first pass is done.
pub struct ChromeJsonTrace<'a> {
    data: &'a [u8],
    /// Whose pages are given back, once they have been read.
    input: Option<&'a Input>,
    head: Head,
    index: Index,
}

impl<'a> ChromeJsonTrace<'a> {
    /// Reads the names and the order of the events in `data`.
    ///
    /// # Errors
    /// Those of the temporary file.
    pub fn open(data: &'a [u8]) -> io::Result<ChromeJsonTrace<'a>> {
        ChromeJsonTrace::indexed(data, None)
    }

    /// Does the same as [`ChromeJsonTrace::open`] with a file, whose pages do not stay in memory.
    pub(crate) fn from_input(input: &'a Input) -> io::Result<ChromeJsonTrace<'a>> {
        ChromeJsonTrace::indexed(input, Some(input))
    }

    fn indexed(data: &'a [u8], input: Option<&'a Input>) -> io::Result<ChromeJsonTrace<'a>> {
        let mut pages = Pages { input, since: 0 };
        let index = read_index(data, &mut |at| pages.read_up_to(at))?;
        let head = Head {
            format: FormatId::ChromeJson.name().into(),
            clock: index.clock.unwrap_or(Clock::Unknown),
            precision: if index.has_fractions { 9 } else { 6 },
            snapshots: Snapshots::default(),
            cpus: None,
            machine: None,
            device: None,
            android_sdk: None,
            facts: None,
        };
        Ok(ChromeJsonTrace { data, input, head, index })
    }

    /// The facts about the trace that are known before the first event.
    pub(super) fn facts(&self) -> &Head {
        &self.head
    }

    /// The processes.
    pub fn processes(&self) -> &BTreeMap<i64, JsonProcess> {
        &self.index.processes
    }

    /// The threads.
    pub fn threads(&self) -> &BTreeMap<ThreadKey, JsonThread> {
        &self.index.threads
    }

    /// The thread of an event. An event without a thread belongs to the first thread of its process.
    pub fn thread_of(&self, event: &JsonEvent<'_>) -> ThreadKey {
        self.index.ids.thread_of(event)
    }

    /// The threads on which a `B` and an `X` have one time.
    pub(super) fn threads_with_shared_times(&self) -> &FxHashSet<ThreadKey> {
        &self.index.shared_times.threads
    }

    /// The report of the first pass: damage, and what is not read.
    pub fn report(&self) -> ReadReport {
        self.index.report.clone()
    }

    /// Calls `use_event` with every event that takes place at a time, in order of time.
    ///
    /// # Errors
    /// Those of `use_event`, and of the temporary file.
    pub fn for_each(&self, use_event: &mut dyn FnMut(&JsonEvent<'a>) -> io::Result<()>) -> io::Result<()> {
        let mut pages = Pages { input: self.input, since: 0 };
        let mut last = 0;
        self.index.order.for_each(self.data, &mut |WalkedEvent { at, event, .. }| {
            // The bytes of the last events have been read, wherever they are.
            pages.read_bytes(at.abs_diff(last).min(1 << 12));
            last = *at;
            use_event(event)
        })
    }
}

/// Gives the pages of a file back that have been read.
struct Pages<'a> {
    input: Option<&'a Input>,
    since: usize,
}

impl Pages<'_> {
    /// The file has been read up to `at`.
    fn read_up_to(&mut self, at: usize) {
        if at - self.since >= RELEASE_STEP_BYTES {
            progress::advance((at - self.since) as u64);
            if let Some(input) = self.input {
                input.release_pages(self.since..at);
            }
            self.since = at;
        }
    }

    /// So many bytes have been read anywhere.
    fn read_bytes(&mut self, count: usize) {
        self.since += count;
        if self.since >= RELEASE_STEP_BYTES {
            progress::advance(self.since as u64);
            if let Some(input) = self.input {
                input.release_pages(0..input.len());
            }
            self.since = 0;
        }
    }
}

/// The most threads and processes that are told apart. A trace of a whole system has some thousands.
const MAX_THREADS: usize = 1 << 18;
/// The first number for a process or thread that the file names by a text: no kernel gives it.
const FIRST_OWN_ID: i64 = 1 << 24;

/// The findings of the first pass over a trace.
#[derive(Debug, Default)]
struct Index {
    order: TimeOrder,
    processes: BTreeMap<i64, JsonProcess>,
    threads: BTreeMap<ThreadKey, JsonThread>,
    ids: Ids,
    clock: Option<Clock>,
    /// Whether a time has a fraction of a microsecond.
    has_fractions: bool,
    shared_times: SharedTimes,
    report: ReadReport,
}

/// The numbers of processes and threads that the file names by texts.
#[derive(Debug, Default)]
struct Ids {
    numbers: HashMap<Vec<u8>, i64>,
}

impl Ids {
    fn number(&self, id: Id<'_>) -> i64 {
        match id {
            Id::Number(number) => number,
            Id::Text(text) => self.numbers.get(text).copied().unwrap_or(0),
        }
    }

    /// Gives an id that is a text its number. Returns `false` where there are too many.
    fn learn(&mut self, id: Option<Id<'_>>) -> bool {
        let Some(Id::Text(text)) = id else { return true };
        if self.numbers.contains_key(text) {
            return true;
        }
        let has_room = self.numbers.len() < MAX_THREADS;
        if has_room {
            self.numbers.insert(text.to_vec(), FIRST_OWN_ID + self.numbers.len() as i64);
        }
        has_room
    }

    fn thread_of(&self, event: &JsonEvent<'_>) -> ThreadKey {
        let pid = event.pid.map_or(0, |id| self.number(id));
        ThreadKey { pid, tid: event.tid.map_or(pid, |id| self.number(id)) }
    }
}

/// Counts of what is not read.
#[derive(Default)]
struct Unread {
    samples: u64,
    stacks: u64,
    objects: u64,
    dumps: u64,
    other_phases: u64,
    thread_states: u64,
    timeless: u64,
}

/// Walks over the whole file. `read_up_to` is told how far the walk is.
fn read_index(data: &[u8], read_up_to: &mut dyn FnMut(usize)) -> io::Result<Index> {
    let mut walk = EventWalk::new(data);
    let mut index = Index::default();
    let mut order = OrderBuilder::default();
    let mut unread = Unread::default();
    let mut last_thread = None;
    let mut is_full = false;
    while let Some(walked) = walk.next_event() {
        let WalkedEvent { at, event, .. } = &walked;
        read_up_to(*at);
        is_full |= !index.ids.learn(event.pid);
        is_full |= !index.ids.learn(event.tid);
        let key = index.ids.thread_of(event);
        if last_thread != Some((key, event.tid)) {
            is_full |= !index.learn_thread(key, event);
            last_thread = Some((key, event.tid));
        }
        unread.stacks += u64::from(event.has_stack);
        if event.phase == b'T' && event.cat.is_some_and(|cat| cat.raw() == b"thread_state") {
            unread.thread_states += 1;
            continue;
        }
        if event.is_placed() {
            index.has_fractions |= event.ts.is_some_and(|ts| ts % 1000 != 0);
            index.shared_times.add(key, event);
            order.add(&walked)?;
            continue;
        }
        match event.phase {
            b'M' => index.metadata(key, event),
            b'P' => unread.samples += 1,
            b'N' | b'O' | b'D' => unread.objects += 1,
            b'v' | b'V' => unread.dumps += 1,
            b'B' | b'E' | b'X' | b'i' | b'I' | b'R' | b'b' | b'e' | b'n' | b'S' | b'T' | b'p' | b'F'
            | b'C' | b's' | b't' | b'f' => unread.timeless += 1,
            _ => unread.other_phases += 1,
        }
    }
    index.order = order.finish()?;
    index.mark_ambiguous();
    index.finish(walk, &unread, is_full);
    Ok(index)
}

impl Index {
    /// Remembers a thread and its process. Returns `false` where there are too many.
    fn learn_thread(&mut self, key: ThreadKey, event: &JsonEvent<'_>) -> bool {
        if self.threads.len() + self.processes.len() >= MAX_THREADS {
            return self.threads.contains_key(&key);
        }
        let process = self.processes.entry(key.pid).or_default();
        if let Some(Id::Text(name)) = event.pid {
            process.name.get_or_insert_with(|| name.to_vec());
        }
        let is_metadata_of_process = event.phase == b'M' && event.tid.is_none_or(|tid| tid == Id::Number(0));
        if !is_metadata_of_process {
            let thread = self.threads.entry(key).or_default();
            if let Some(Id::Text(name)) = event.tid {
                thread.name.get_or_insert_with(|| name.to_vec());
            }
        }
        true
    }

    /// Reads an `M` event.
    fn metadata(&mut self, key: ThreadKey, event: &JsonEvent<'_>) {
        let Some(args) = event.args else { return };
        let text = |name| match member(args, name) {
            Some(Value::Text(text)) if !text.is_empty() => Some(text.bytes().into_owned()),
            _ => None,
        };
        let number = |name| match member(args, name) {
            Some(Value::Number(number)) => integer(number)
                .and_then(|number| i64::try_from(number).ok())
                .or_else(|| float(number).map(|number| number as i64)),
            _ => None,
        };
        let process = self.processes.get_mut(&key.pid);
        match event.name.map(JsonText::raw) {
            Some(b"process_name") => {
                if let (Some(process), Some(name)) = (process, text("name")) {
                    process.name = Some(name);
                }
            }
            Some(b"process_labels") => {
                if let (Some(process), Some(labels)) = (process, text("labels")) {
                    process.labels.push(labels);
                }
            }
            Some(b"process_sort_index") => {
                if let (Some(process), Some(index)) = (process, number("sort_index")) {
                    process.sort_index = Some(index);
                }
            }
            Some(b"thread_name") => {
                if let Some(name) = text("name")
                    && (self.threads.len() < MAX_THREADS || self.threads.contains_key(&key))
                {
                    self.threads.entry(key).or_default().name = Some(name);
                }
            }
            Some(b"thread_sort_index") => {
                if let (Some(thread), Some(index)) = (self.threads.get_mut(&key), number("sort_index")) {
                    thread.sort_index = Some(index);
                }
            }
            _ => {}
        }
    }

    /// Marks the threads whose number threads of other processes have, too.
    fn mark_ambiguous(&mut self) {
        let mut processes: HashMap<i64, u32> = HashMap::new();
        self.threads.keys().for_each(|key| *processes.entry(key.tid).or_default() += 1);
        for (key, thread) in &mut self.threads {
            thread.is_ambiguous = processes.get(&key.tid).is_some_and(|count| *count > 1);
        }
    }

    fn finish(&mut self, mut walk: EventWalk<'_>, unread: &Unread, is_full: bool) {
        let report = &mut self.report;
        report.damage = walk.damage();
        if is_full {
            let what = format!("the file has more than {MAX_THREADS} threads: those beyond have no names");
            report.damage.push(Damage { offset: 0, what });
        }
        let mut frames = 0;
        let mut samples = 0;
        for (name, value) in &walk.members {
            match (name.raw(), value) {
                (b"stackFrames", Value::Object(object)) => frames = members(object).count() as u64,
                (b"samples", Value::Array(array)) => samples = elements(array).count() as u64,
                (b"systemTraceEvents", Value::Text(text)) if !text.is_empty() => {
                    report.unread.insert("systemTraceEvents (text of the kernel's events)".into(), 1);
                }
                (b"metadata", Value::Object(object)) => {
                    self.clock = self.clock.or(clock_of(object));
                    report.losses.extend(losses_of(object));
                }
                _ => {}
            }
        }
        for (name, count) in [
            ("samples (P)", unread.samples.saturating_add(samples)),
            ("stack frames", frames),
            ("stacks of events", unread.stacks),
            ("events of objects (N, O, D)", unread.objects),
            ("memory dumps (v, V)", unread.dumps),
            ("events of other phases", unread.other_phases),
            ("thread states", unread.thread_states),
        ] {
            if count > 0 {
                report.unread.insert(name.to_owned(), count);
            }
        }
        if walk.no_events > 0 {
            report.irregular.push(format!("{} elements of the list of events are no events", walk.no_events));
        }
        report.losses.add(LossKind::TimelessEvents, LossPlace::Recording, unread.timeless);
    }
}

/// The account of missing data in the metadata of a file that tracebridge has written.
fn losses_of(metadata: &[u8]) -> Losses {
    let Some(Value::Object(summary)) = member(metadata, "tracebridge") else { return Losses::default() };
    let Some(Value::Object(report)) = member(summary, "report") else { return Losses::default() };
    match member(report, "losses") {
        Some(Value::Array(losses)) => Losses::from_json(losses),
        _ => Losses::default(),
    }
}

/// The clock that the metadata of Chromium and of tracebridge name.
fn clock_of(metadata: &[u8]) -> Option<Clock> {
    let text = |value: Value<'_>| match value {
        Value::Text(text) => Some(text.bytes().into_owned()),
        _ => None,
    };
    if let Some(Value::Object(summary)) = member(metadata, "tracebridge") {
        let name = member(summary, "clock").and_then(text)?;
        let name = String::from_utf8(name).ok()?;
        return serde_json::from_value(serde_json::Value::String(name)).ok();
    }
    match member(metadata, "clock-domain").and_then(text)?.as_slice() {
        b"LINUX_CLOCK_MONOTONIC" => Some(Clock::Monotonic),
        _ => None,
    }
}
