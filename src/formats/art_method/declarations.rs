//! The declarations of a trace: keys, threads and methods of the text section and of the packets between
//! records.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use super::body::{IdMap, ThreadTable};
use super::{Method, TracedThread};
use crate::art::{KeySection, MethodLine};
use crate::formats::{Damage, ReadReport};

/// At most this many bad lines of the text section are reported one by one.
const MAX_BAD_LINES_REPORTED: usize = 10;

/// Everything that the file has declared so far, and the damage found so far.
pub(super) struct Declarations<'a> {
    pub(super) report: ReadReport,
    pub(super) keys: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    pub(super) threads: Vec<TracedThread<'a>>,
    pub(super) methods: Vec<Method<'a>>,
    pub(super) ids: IdMap,
    pub(super) table: ThreadTable,
    /// The index of the latest thread of each id.
    pub(super) latest: HashMap<u32, u32>,
}

impl<'a> Declarations<'a> {
    /// An empty collection. `text` is the text section that will be added next; it determines the size of
    /// the tables.
    pub(super) fn new(text: Option<&KeySection<'_>>) -> Self {
        Declarations {
            report: ReadReport::default(),
            keys: Vec::new(),
            threads: Vec::new(),
            methods: Vec::new(),
            ids: IdMap::for_count(text.map_or(0, |text| text.methods.len())),
            table: ThreadTable::empty(),
            latest: HashMap::new(),
        }
    }

    pub(super) fn damage(&mut self, offset: usize, what: impl ToString) {
        self.report.damage.push(Damage { offset: offset as u64, what: what.to_string() });
    }

    /// The packet at `offset`. Where it cannot be read, reports that the `left` bytes from there on are not
    /// read, and returns `None`.
    pub(super) fn readable<P>(
        &mut self,
        packet: Result<P, impl fmt::Display>,
        offset: usize,
        left: usize,
    ) -> Option<P> {
        packet
            .map_err(|error| self.damage(offset, format!("{error}: the last {left} bytes are not read")))
            .ok()
    }

    pub(super) fn irregular(&mut self, n: u64, what: &str) {
        if n > 0 {
            self.report.irregular.push(format!("{n} {what}"));
        }
    }

    pub(super) fn key(&self, name: &str) -> Option<&str> {
        self.keys.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_ref())
    }

    /// Adds the declarations of a text section, which begins at offset `at`. If `fresh` is true, an id that
    /// occurs twice means two threads; otherwise it means the same thread, declared again.
    pub(super) fn take_text(&mut self, text: KeySection<'a>, at: usize, fresh: bool) {
        for (offset, why) in text.bad_lines.iter().take(MAX_BAD_LINES_REPORTED) {
            self.damage(at + offset, format!("a line of the text section is skipped: {why}"));
        }
        if let Some(more) = text.bad_lines.len().checked_sub(MAX_BAD_LINES_REPORTED).filter(|n| *n > 0) {
            self.report.notes.push(format!("{more} more bad lines in the text section"));
        }
        self.keys.extend(text.keys);
        self.threads.reserve(text.threads.len());
        for (id, name) in text.threads {
            if fresh || !self.latest.contains_key(&id) {
                self.add_thread(id, name);
            }
        }
        if text.crlf_lines > 0 {
            let lines = text.crlf_lines;
            self.irregular(lines, "lines of text end in CR LF: some tool rewrote them, and maybe more");
        }
        self.methods.reserve(text.methods.len());
        for line in text.methods {
            self.add_method(line);
        }
    }

    pub(super) fn add_thread(&mut self, id: u32, name: Cow<'a, str>) -> u32 {
        let index = self.threads.len() as u32;
        let reused_id = self.latest.insert(id, index).is_some();
        self.threads.push(TracedThread { id, name, declared: true, reused_id, records: 0 });
        if let Ok(id) = u16::try_from(id)
            && !reused_id
        {
            self.table.bind(id, index);
        }
        index
    }

    /// Gives threads that a streaming file declares by the low 16 bits of their ids the whole ids, which
    /// only the list at the end has.
    pub(super) fn restore_cut_ids(&mut self, listed: &[(u32, Cow<'_, str>)]) {
        let by_cut_id = by_cut_id(listed.iter().map(|(id, _)| *id));
        for (cut, id) in by_cut_id.into_iter().filter_map(|(cut, id)| Some((cut, id?))) {
            if id != u32::from(cut)
                && let Some(index) = self.latest.remove(&u32::from(cut))
            {
                self.latest.insert(id, index);
                self.threads.iter_mut().filter(|t| t.id == u32::from(cut)).for_each(|t| t.id = id);
            }
        }
    }

    /// Makes the low 16 bits of a listed thread's id mean that thread, unless several listed threads have
    /// the same 16 bits: ART cut the ids in records so before May 2023.
    pub(super) fn bind_cut_ids(&mut self) {
        let by_cut_id = by_cut_id(self.threads.iter().map(|thread| thread.id));
        let ambiguous = by_cut_id.values().filter(|id| id.is_none()).count() as u64;
        // An id may be listed twice: it means the first of its threads until the second is found in the
        // records.
        for (index, thread) in self.threads.iter().enumerate().rev() {
            let cut = thread.id as u16;
            if thread.id > u32::from(u16::MAX) && by_cut_id.get(&cut) == Some(&Some(thread.id)) {
                self.table.bind(cut, index as u32);
            }
        }
        let what = "thread ids, cut to 16 bits as in records, are those of several listed threads: their records \
                    are not told apart";
        self.irregular(ambiguous, what);
    }

    pub(super) fn add_method(&mut self, line: MethodLine<'a>) {
        let index = self.methods.len() as u32;
        if self.ids.insert(line.id, index) == index {
            let MethodLine { id, class, name, signature, file, line } = line;
            self.methods.push(Method { id, class, name, signature, file, line, declared: true });
        }
    }
}

/// The ids with each value of the low 16 bits; `None` where several ids have the same.
fn by_cut_id(ids: impl Iterator<Item = u32>) -> HashMap<u16, Option<u32>> {
    let mut by_cut_id: HashMap<u16, Option<u32>> = HashMap::new();
    for id in ids {
        let only = by_cut_id.entry(id as u16).or_insert(Some(id));
        *only = only.filter(|other| *other == id);
    }
    by_cut_id
}

/// The stand-in for a method that no list declares.
pub(super) fn unknown_method<'a>(id: u64) -> Method<'a> {
    let none = || Cow::Borrowed("");
    Method { id, class: none(), name: none(), signature: none(), file: none(), line: None, declared: false }
}
