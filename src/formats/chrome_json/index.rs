//! The first pass over a trace: the names of processes and threads, the order of the events, damage, and what
//! is not read.

use std::collections::{BTreeMap, HashMap};
use std::io;

use super::event::{Id, JsonEvent};
use super::json::{Text, Value, elements, float, integer, member, members};
use super::names::{Process, Thread, ThreadKey};
use super::order::{OrderBuilder, TimeOrder};
use super::walk::{Walk, WalkedEvent};
use crate::clock::Clock;
use crate::formats::{Damage, ReadReport};

/// The most threads and processes that are told apart. A trace of a whole system has some thousands.
const MAX_THREADS: usize = 1 << 18;
/// The first number for a process or thread that the file names by a text: no kernel gives it.
const FIRST_OWN_ID: i64 = 1 << 24;

/// What the first pass has found.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) order: TimeOrder,
    pub(super) processes: BTreeMap<i64, Process>,
    pub(super) threads: BTreeMap<ThreadKey, Thread>,
    pub(super) ids: Ids,
    pub(super) clock: Option<Clock>,
    /// Whether a time has a fraction of a microsecond.
    pub(super) has_fractions: bool,
    pub(super) report: ReadReport,
}

/// The numbers of processes and threads that the file names by texts.
#[derive(Debug, Default)]
pub(super) struct Ids {
    numbers: HashMap<Vec<u8>, i64>,
}

impl Ids {
    fn number(&self, id: Id<'_>) -> i64 {
        match id {
            Id::Number(number) => number,
            Id::Text(text) => self.numbers.get(text).copied().unwrap_or(0),
        }
    }

    fn learn(&mut self, id: Option<Id<'_>>) {
        if let Some(Id::Text(text)) = id
            && !self.numbers.contains_key(text)
            && self.numbers.len() < MAX_THREADS
        {
            self.numbers.insert(text.to_vec(), FIRST_OWN_ID + self.numbers.len() as i64);
        }
    }

    pub(super) fn thread_of(&self, event: &JsonEvent<'_>) -> ThreadKey {
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
    timeless: u64,
}

/// Walks over the whole file. `read_up_to` is told how far the walk is.
pub(super) fn of(data: &[u8], read_up_to: &mut dyn FnMut(usize)) -> io::Result<Index> {
    let mut walk = Walk::new(data);
    let mut index = Index::default();
    let mut order = OrderBuilder::default();
    let mut unread = Unread::default();
    let mut last_thread = None;
    let mut is_full = false;
    while let Some(WalkedEvent { at, event }) = walk.next_event() {
        read_up_to(at);
        index.ids.learn(event.pid);
        index.ids.learn(event.tid);
        let key = index.ids.thread_of(&event);
        if last_thread != Some((key, event.tid)) {
            is_full |= !index.learn_thread(key, &event);
            last_thread = Some((key, event.tid));
        }
        unread.stacks += u64::from(event.has_stack);
        if event.is_placed() {
            index.has_fractions |= event.ts.is_some_and(|ts| ts % 1000 != 0);
            order.add(at, &event)?;
            continue;
        }
        match event.phase {
            b'M' => index.metadata(key, &event),
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
        match event.name.map(Text::raw) {
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

    fn finish(&mut self, mut walk: Walk<'_>, unread: &Unread, is_full: bool) {
        let report = &mut self.report;
        report.damage = walk.damage();
        if is_full {
            let what = format!("the file has more than {MAX_THREADS} threads: those beyond have no names");
            report.damage.push(Damage { offset: 0, what });
        }
        let (mut frames, mut samples) = (0, 0);
        for (name, value) in &walk.members {
            match (name.raw(), value) {
                (b"stackFrames", Value::Object(object)) => frames = members(object).count() as u64,
                (b"samples", Value::Array(array)) => samples = elements(array).count() as u64,
                (b"systemTraceEvents", Value::Text(text)) if !text.is_empty() => {
                    report.unread.insert("systemTraceEvents (text of the kernel's events)".into(), 1);
                }
                (b"metadata", Value::Object(object)) => self.clock = self.clock.or(clock_of(object)),
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
        ] {
            if count > 0 {
                report.unread.insert(name.to_owned(), count);
            }
        }
        for (count, what) in [
            (unread.timeless, "events are left out: they have no time, or one before the clock's zero"),
            (walk.no_events, "elements of the list of events are no events"),
        ] {
            if count > 0 {
                report.irregular.push(format!("{count} {what}"));
            }
        }
        report.lost_anywhere += unread.timeless;
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
