//! Puts items of a file in order, in bounded memory.
//!
//! The items are divided into runs. The items of a run are sorted in memory. Where there is more than one
//! run, they are stored in a temporary file ([`SpillWriter`]), and all runs are merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::ops::Range;

use super::spill::{FileBytes, Release, SpillWriter};

/// The bytes that stored items refer to.
pub(in crate::formats) trait RunSource {
    /// Releases the memory that holds them.
    fn release(&self);
}

/// An item that can be stored. Texts are stored as their places in the source.
pub(in crate::formats) trait RunItem<'a>: Clone {
    type Key: Ord + Copy;
    type Source: RunSource + 'a;

    fn key(&self) -> Self::Key;

    fn store(&self, source: &Self::Source, out: &mut Vec<u8>);

    /// Reads an item that [`RunItem::store`] has written.
    fn load(rest: &mut &[u8], source: &'a Self::Source) -> Option<Self>;
}

/// The bytes of stored items that are read before memory is released. Each item may be on another page of the
/// source.
const RELEASE_BYTES: usize = 2 << 20;

/// Collects items in the order of the file.
pub(in crate::formats) struct RunSorter<T> {
    items: Vec<T>,
    /// The most items of a run.
    max_items: usize,
    runs: Vec<Range<usize>>,
    store: SpillWriter,
    count: u64,
    /// The first error of the store, after which no item is kept.
    error: Option<io::Error>,
}

/// The items of all runs.
pub(in crate::formats) struct SortedRuns<T> {
    items: Vec<T>,
    runs: Vec<Range<usize>>,
    store: FileBytes,
    pub(in crate::formats) count: u64,
}

impl<T> Default for SortedRuns<T> {
    fn default() -> Self {
        SortedRuns { items: Vec::new(), runs: Vec::new(), store: FileBytes::Owned(Vec::new()), count: 0 }
    }
}

impl<'a, T: RunItem<'a>> RunSorter<T> {
    pub(in crate::formats) fn new(max_items: usize) -> RunSorter<T> {
        RunSorter {
            items: Vec::new(),
            max_items,
            runs: Vec::new(),
            store: SpillWriter::default(),
            count: 0,
            error: None,
        }
    }

    pub(in crate::formats) fn push(&mut self, item: T, source: &T::Source) {
        self.items.push(item);
        self.count += 1;
        if self.items.len() >= self.max_items {
            self.end_run(source);
        }
    }

    /// Stores the items of the current run.
    fn end_run(&mut self, source: &T::Source) {
        self.items.sort_by_key(RunItem::key);
        let start = self.store.len();
        let mut bytes = Vec::new();
        for item in &self.items {
            bytes.clear();
            item.store(source, &mut bytes);
            if let Err(error) = io::Write::write_all(&mut self.store, &bytes) {
                self.error.get_or_insert(error);
                break;
            }
        }
        self.runs.push(start..self.store.len());
        self.items.clear();
    }

    /// # Errors
    /// Those of the temporary file.
    pub(in crate::formats) fn finish(mut self, source: &T::Source) -> io::Result<SortedRuns<T>> {
        if !self.runs.is_empty() {
            self.end_run(source);
            self.items = Vec::new();
        }
        self.items.sort_by_key(RunItem::key);
        let RunSorter { items, runs, store, count, error, .. } = self;
        let store = error.map_or_else(|| store.finish(), Err)?;
        Ok(SortedRuns { items, runs, store, count })
    }
}

/// The rest of a run, with its next item.
struct RunRest<'s, T> {
    rest: &'s [u8],
    next: T,
}

/// Goes through all items in order; those of one key in the order of the file.
pub(in crate::formats) struct RunCursor<'s, 'a, T: RunItem<'a>> {
    sorted: &'s SortedRuns<T>,
    source: &'a T::Source,
    /// The number of the next item of the only run.
    at: usize,
    runs: Vec<Option<RunRest<'s, T>>>,
    heap: BinaryHeap<Reverse<(T::Key, usize)>>,
    /// The bytes that were read since memory was released.
    read: usize,
}

impl<'s, 'a, T: RunItem<'a>> RunCursor<'s, 'a, T> {
    pub(in crate::formats) fn new(sorted: &'s SortedRuns<T>, source: &'a T::Source) -> RunCursor<'s, 'a, T> {
        let mut cursor =
            RunCursor { sorted, source, at: 0, runs: Vec::new(), heap: BinaryHeap::new(), read: 0 };
        for range in &sorted.runs {
            let rest = sorted.store.get(range.clone()).unwrap_or_default();
            cursor.runs.push(None);
            cursor.enter(cursor.runs.len() - 1, rest);
        }
        cursor
    }

    /// Reads the next item of a run.
    fn enter(&mut self, run: usize, mut rest: &'s [u8]) {
        let before = rest.len();
        let next = T::load(&mut rest, self.source);
        self.read += before - rest.len();
        if let Some(next) = next {
            self.heap.push(Reverse((next.key(), run)));
            self.runs[run] = Some(RunRest { rest, next });
        }
    }

    /// The key of the next item.
    pub(in crate::formats) fn next_key(&self) -> Option<T::Key> {
        let stored = self.heap.peek().map(|Reverse((key, _))| *key);
        stored.or_else(|| self.sorted.items.get(self.at).map(RunItem::key))
    }
}

impl<'a, T: RunItem<'a>> Iterator for RunCursor<'_, 'a, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let Some(Reverse((_, run))) = self.heap.pop() else {
            let item = self.sorted.items.get(self.at)?.clone();
            self.at += 1;
            return Some(item);
        };
        let RunRest { rest, next } = self.runs.get_mut(run)?.take()?;
        self.enter(run, rest);
        if self.read >= RELEASE_BYTES {
            self.read = 0;
            self.sorted.store.release(0..self.sorted.store.len());
            self.source.release();
        }
        Some(next)
    }
}
