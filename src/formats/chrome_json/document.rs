//! An opened trace: its names, and its events in order of time.

use std::collections::BTreeMap;
use std::io;

use super::event::JsonEvent;
use super::index::{self, Index};
use super::names::{Process, Thread, ThreadKey};
use super::walk::WalkedEvent;
use crate::clock::{Clock, Snapshots};
use crate::formats::input::Input;
use crate::formats::{FormatId, Head, ReadReport};
use crate::progress;

/// The pages of so many bytes of the file are given back at once.
const RELEASE_STEP_BYTES: usize = 8 << 20;

/// A Chrome JSON trace whose first pass is done.
pub struct ChromeJson<'a> {
    data: &'a [u8],
    /// Whose pages are given back, once they have been read.
    input: Option<&'a Input>,
    head: Head,
    index: Index,
}

impl<'a> ChromeJson<'a> {
    /// Reads the names and the order of the events in `data`.
    ///
    /// # Errors
    /// Those of the temporary file.
    pub fn open(data: &'a [u8]) -> io::Result<ChromeJson<'a>> {
        ChromeJson::indexed(data, None)
    }

    /// Does the same as [`ChromeJson::open`] with a file, whose pages do not stay in memory.
    pub(crate) fn of(input: &'a Input) -> io::Result<ChromeJson<'a>> {
        ChromeJson::indexed(input, Some(input))
    }

    fn indexed(data: &'a [u8], input: Option<&'a Input>) -> io::Result<ChromeJson<'a>> {
        let mut pages = Pages { input, since: 0 };
        let index = index::of(data, &mut |at| pages.read_up_to(at))?;
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
        Ok(ChromeJson { data, input, head, index })
    }

    /// What is known before the first event.
    pub(super) fn facts(&self) -> &Head {
        &self.head
    }

    /// The processes.
    pub fn processes(&self) -> &BTreeMap<i64, Process> {
        &self.index.processes
    }

    /// The threads.
    pub fn threads(&self) -> &BTreeMap<ThreadKey, Thread> {
        &self.index.threads
    }

    /// The thread of an event. An event without a thread belongs to the first thread of its process.
    pub fn thread_of(&self, event: &JsonEvent<'_>) -> ThreadKey {
        self.index.ids.thread_of(event)
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
        self.index.order.for_each(self.data, &mut |WalkedEvent { at, event }| {
            // The bytes of the last events have been read, wherever they are.
            pages.read_bytes(at.abs_diff(last).min(1 << 12));
            last = at;
            use_event(&event)
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
