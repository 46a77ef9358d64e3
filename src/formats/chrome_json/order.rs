//! Puts the events of a file in order of time, in bounded memory.
//!
//! The file is divided into runs of so many events as fit into memory. A run that is in order is read again
//! from the file. Of any other run the places of its events are sorted, and stored in a temporary file where
//! there are many. All runs are then merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Mutex;

use super::event::JsonEvent;
use super::walk::{EventWalk, WalkedEvent};
use crate::clock::Timestamp;
use crate::formats::json::Scanner;

/// The most events of a run. Their places take 12 MiB.
const RUN_EVENTS: usize = 512 << 10;
/// The places of so many events are read at once.
const READ_PLACES: usize = 4 << 10;
/// The bytes of a place in the temporary file.
const PLACE_BYTES: usize = 24;

/// The place of an event in the file and in the order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct EventPlace {
    /// [`JsonEvent::sort_key`].
    key: (Timestamp, u64),
    /// Its offset in the file, bytes.
    at: u64,
}

/// A part of the file.
#[derive(Debug)]
enum EventRun {
    /// `count` events in order of time, of which the first begins at `at`, in a list that is a member of an
    /// object or not.
    InOrder { at: usize, in_object: bool, count: usize },
    /// The sorted places of events, which begin at the place of this number in the store.
    Sorted { first: u64, count: usize },
}

/// The sorted places of all runs that are not in order.
#[derive(Debug, Default)]
struct Store {
    /// The places of a single run.
    memory: Vec<EventPlace>,
    file: Option<Mutex<File>>,
    count: u64,
}

/// The runs of a file.
#[derive(Debug, Default)]
pub(super) struct TimeOrder {
    runs: Vec<EventRun>,
    store: Store,
}

/// Collects the events of a file in its own order.
#[derive(Debug, Default)]
pub(super) struct OrderBuilder {
    order: TimeOrder,
    /// The current run.
    places: Vec<EventPlace>,
    is_sorted: bool,
    /// Whether the run begins in a list that is a member of an object.
    in_object: bool,
}

impl OrderBuilder {
    /// Adds an event.
    #[inline]
    pub(super) fn add(&mut self, WalkedEvent { at, in_object, event }: &WalkedEvent<'_>) -> io::Result<()> {
        let at = *at;
        let place = EventPlace { key: event.sort_key(), at: at as u64 };
        self.is_sorted = match self.places.last() {
            None => {
                self.in_object = *in_object;
                true
            }
            Some(last) => self.is_sorted && *last <= place,
        };
        self.places.push(place);
        if self.places.len() < RUN_EVENTS { Ok(()) } else { self.end_run(true) }
    }

    fn end_run(&mut self, is_more: bool) -> io::Result<()> {
        let Some(first) = self.places.first() else { return Ok(()) };
        let count = self.places.len();
        if self.is_sorted {
            self.order.runs.push(EventRun::InOrder {
                at: first.at as usize,
                in_object: self.in_object,
                count,
            });
        } else {
            self.places.sort_unstable();
            let first = self.order.store.add(&mut self.places, is_more)?;
            self.order.runs.push(EventRun::Sorted { first, count });
        }
        self.places.clear();
        Ok(())
    }

    /// The order of all events that were added.
    pub(super) fn finish(mut self) -> io::Result<TimeOrder> {
        self.end_run(false)?;
        Ok(self.order)
    }
}

impl Store {
    /// Adds a run. Returns the number of its first place.
    fn add(&mut self, places: &mut Vec<EventPlace>, is_more: bool) -> io::Result<u64> {
        let first = self.count;
        self.count += places.len() as u64;
        if first == 0 && !is_more {
            self.memory = std::mem::take(places);
            return Ok(first);
        }
        if self.file.is_none() {
            self.file = Some(Mutex::new(tempfile::tempfile()?));
        }
        let Some(file) = &self.file else { return Ok(first) };
        let mut file = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        file.seek(SeekFrom::End(0))?;
        let mut bytes = Vec::with_capacity(READ_PLACES * PLACE_BYTES);
        for chunk in places.chunks(READ_PLACES) {
            bytes.clear();
            for place in chunk {
                for number in [place.key.0.0, place.key.1, place.at] {
                    bytes.extend_from_slice(&number.to_le_bytes());
                }
            }
            file.write_all(&bytes)?;
        }
        Ok(first)
    }

    /// Reads up to `count` places from the one with the number `first` on.
    fn read(&self, first: u64, count: usize) -> io::Result<Vec<EventPlace>> {
        let Some(file) = &self.file else {
            let start = first as usize;
            return Ok(self.memory.get(start..start + count).unwrap_or(&[]).to_vec());
        };
        let mut bytes = vec![0; count * PLACE_BYTES];
        let mut file = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        file.seek(SeekFrom::Start(first * PLACE_BYTES as u64))?;
        file.read_exact(&mut bytes)?;
        let (numbers, _) = bytes.as_chunks::<8>();
        let numbers: Vec<u64> = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let (places, _) = numbers.as_chunks::<3>();
        Ok(places.iter().map(|[ts, rank, at]| EventPlace { key: (Timestamp(*ts), *rank), at: *at }).collect())
    }
}

/// The rest of a run, with its next event.
enum Cursor<'a> {
    InOrder { walk: Box<EventWalk<'a>>, next: WalkedEvent<'a>, left: usize },
    Sorted { places: std::vec::IntoIter<EventPlace>, next: EventPlace, first: u64, left: usize },
}

impl<'a> Cursor<'a> {
    fn new(run: &EventRun, data: &'a [u8], store: &Store) -> io::Result<Option<Cursor<'a>>> {
        match *run {
            EventRun::InOrder { at, in_object, count } => {
                let mut walk = Box::new(EventWalk::at(data, at, in_object));
                let next = walk.next_event();
                Ok(next.map(|next| Cursor::InOrder { walk, next, left: count - 1 }))
            }
            EventRun::Sorted { first, count } => {
                let mut places = store.read(first, count.min(READ_PLACES))?.into_iter();
                let first = first + places.len() as u64;
                let left = count - places.len();
                Ok(places.next().map(|next| Cursor::Sorted { places, next, first, left }))
            }
        }
    }

    fn place(&self) -> EventPlace {
        match self {
            Cursor::InOrder { next, .. } => EventPlace { key: next.event.sort_key(), at: next.at as u64 },
            Cursor::Sorted { next, .. } => *next,
        }
    }

    /// Hands the next event to `use_event`, and moves behind it. Returns whether another one follows.
    ///
    /// An event is a few hundred bytes, so that it stays where it was read.
    fn take(
        &mut self,
        data: &'a [u8],
        store: &Store,
        use_event: &mut dyn FnMut(&WalkedEvent<'a>) -> io::Result<()>,
    ) -> io::Result<bool> {
        match self {
            Cursor::InOrder { walk, next, left } => {
                use_event(next)?;
                let following = (*left > 0).then(|| next_placed(walk)).flatten();
                let Some(following) = following else { return Ok(false) };
                *left -= 1;
                *next = following;
            }
            Cursor::Sorted { places, next, first, left } => {
                let at = next.at as usize;
                let event = JsonEvent::read(&mut Scanner::new(data, at));
                let event = event.map_err(|_| io::Error::other("an event has changed while it was read"))?;
                use_event(&WalkedEvent { at, in_object: false, event })?;
                if places.len() == 0 && *left > 0 {
                    *places = store.read(*first, (*left).min(READ_PLACES))?.into_iter();
                    *first += places.len() as u64;
                    *left -= places.len();
                }
                let Some(following) = places.next() else { return Ok(false) };
                *next = following;
            }
        }
        Ok(true)
    }
}

/// The next event that takes place at a time, as [`JsonEvent::is_placed`] says.
fn next_placed<'a>(walk: &mut EventWalk<'a>) -> Option<WalkedEvent<'a>> {
    loop {
        let next = walk.next_event()?;
        if next.event.is_placed() {
            return Some(next);
        }
    }
}

impl TimeOrder {
    /// Calls `use_event` with every event in order of time, and with the place of its text.
    pub(super) fn for_each<'a>(
        &self,
        data: &'a [u8],
        use_event: &mut dyn FnMut(&WalkedEvent<'a>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut cursors: Vec<Option<Cursor<'a>>> = Vec::new();
        for run in &self.runs {
            cursors.push(Cursor::new(run, data, &self.store)?);
        }
        let mut heap: BinaryHeap<Reverse<(EventPlace, usize)>> = cursors
            .iter()
            .enumerate()
            .filter_map(|(number, cursor)| Some(Reverse((cursor.as_ref()?.place(), number))))
            .collect();
        while let Some(Reverse((_, number))) = heap.pop() {
            let following = heap.peek().map(|Reverse((place, _))| *place);
            // The run goes on as long as its events come before those of all others.
            while let Some(cursor) = &mut cursors[number] {
                if !cursor.take(data, &self.store, use_event)? {
                    cursors[number] = None;
                    break;
                }
                let place = cursor.place();
                if following.is_some_and(|following| place > following) {
                    heap.push(Reverse((place, number)));
                    break;
                }
            }
        }
        Ok(())
    }
}
