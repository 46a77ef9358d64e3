//! Orders the events of all bundles by time, in bounded memory.
//!
//! A recorder reads one CPU after the other, again and again, so that a bundle overlaps those that were read
//! shortly before and after it, and no others: few events wait. Where many wait, as in a file whose bundles
//! are out of order, all events from there on are sorted in a temporary file.

use std::io;

use super::bundle::{BundleEvent, EventContent};
use super::trace_streams::{TraceStreams, load_text, store_text};
use crate::clock::Timestamp;
use crate::formats::run_order::{RunItem, RunSorter, SortedRuns};
use crate::ids::{Cpu, Tid};
use crate::varint;

/// Events are sorted when at least so many wait.
const MIN_SORTED: usize = 1 << 14;
/// The most events that wait in memory. They take 32 MiB.
pub(super) const MAX_WAITING: usize = 512 << 10;

/// Events that wait until all those before them are read.
pub(super) struct WaitingEvents<'a> {
    list: Vec<BundleEvent<'a>>,
    /// How many of them were there when they were sorted last.
    sorted: usize,
    max: usize,
    /// The sorter of all events, once too many waited.
    stored: Option<RunSorter<BundleEvent<'a>>>,
}

impl<'a> WaitingEvents<'a> {
    /// At most about `max` events are kept in memory.
    pub(super) fn new(max: usize) -> WaitingEvents<'a> {
        WaitingEvents { list: Vec::new(), sorted: 0, max, stored: None }
    }

    /// The list, to which events may be added.
    pub(super) fn list(&mut self) -> &mut Vec<BundleEvent<'a>> {
        &mut self.list
    }

    /// Whether so many are new that sorting the list is worth its time.
    pub(super) fn are_many(&self) -> bool {
        let many = self.sorted * 2 + MIN_SORTED;
        self.stored.is_some() || self.list.len() >= many.min(self.max)
    }

    /// Takes the events before `until` out of the list. They are in the order of time; events of one time by
    /// CPU, and then in the order of the file. Once too many wait, none are taken any more.
    pub(super) fn take_before(
        &mut self,
        until: Timestamp,
        streams: &TraceStreams<'a>,
    ) -> Vec<BundleEvent<'a>> {
        let mut taken = Vec::new();
        if self.stored.is_none() {
            self.list.sort_by_key(RunItem::key);
            let end = self.list.partition_point(|event| event.ts < until);
            let rest = self.list.split_off(end);
            self.sorted = rest.len();
            taken = std::mem::replace(&mut self.list, rest);
        }
        if self.list.len() >= self.max / 2 || self.stored.is_some() {
            let stored = self.stored.get_or_insert_with(|| RunSorter::new(self.max));
            self.list.drain(..).for_each(|event| stored.push(event, streams));
        }
        taken
    }

    /// All events that are left.
    ///
    /// # Errors
    /// Those of the temporary file.
    pub(super) fn finish(self, streams: &TraceStreams<'a>) -> io::Result<SortedRuns<BundleEvent<'a>>> {
        let mut all = self.stored.unwrap_or_else(|| RunSorter::new(usize::MAX));
        self.list.into_iter().for_each(|event| all.push(event, streams));
        all.finish(streams)
    }
}

/// The tags of stored events.
mod stored {
    pub const WHOLE: u64 = 0;
    pub const SWITCH: u64 = 1;
    pub const WAKING: u64 = 2;
    pub const LOST: u64 = 3;
}

impl<'a> RunItem<'a> for BundleEvent<'a> {
    type Key = (Timestamp, Cpu, u32);
    type Source = TraceStreams<'a>;

    fn key(&self) -> Self::Key {
        (self.ts, self.cpu, self.bundle)
    }

    fn store(&self, streams: &TraceStreams<'a>, out: &mut Vec<u8>) {
        let mut numbers = |numbers: &[u64]| numbers.iter().for_each(|number| varint::push(out, *number));
        numbers(&[self.ts.0, self.cpu.0.into(), self.bundle.into()]);
        let signed = |number: i32| u64::from(number as u32);
        match self.content {
            EventContent::Whole(message) => {
                numbers(&[stored::WHOLE]);
                store_text(message, streams, out);
            }
            EventContent::CompactSwitch { prev_state, next_tid, next_prio, next_comm } => {
                numbers(&[stored::SWITCH, prev_state as u64, signed(next_tid.0), signed(next_prio)]);
                store_text(next_comm, streams, out);
            }
            EventContent::CompactWaking { tid, target_cpu, prio, comm, flags } => {
                numbers(&[stored::WAKING, signed(tid.0), signed(target_cpu), signed(prio), flags.into()]);
                store_text(comm, streams, out);
            }
            EventContent::LostEvents => numbers(&[stored::LOST]),
        }
    }

    fn load(rest: &mut &[u8], streams: &'a TraceStreams<'a>) -> Option<Self> {
        let mut number = || varint::take(rest);
        let ts = Timestamp(number()?);
        let cpu = Cpu(number()? as u32);
        let bundle = number()? as u32;
        let content = match number()? {
            stored::WHOLE => EventContent::Whole(load_text(rest, streams)?),
            stored::SWITCH => EventContent::CompactSwitch {
                prev_state: number()? as i64,
                next_tid: Tid(number()? as i32),
                next_prio: number()? as i32,
                next_comm: load_text(rest, streams)?,
            },
            stored::WAKING => EventContent::CompactWaking {
                tid: Tid(number()? as i32),
                target_cpu: number()? as i32,
                prio: number()? as i32,
                flags: number()? as u8,
                comm: load_text(rest, streams)?,
            },
            _ => EventContent::LostEvents,
        };
        Some(BundleEvent { ts, cpu, bundle, content })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::run_order::RunCursor;

    /// The order of 400 events of all kinds, which come in bundles of 10 that overlap, with at most `max` of
    /// them in memory, and how many came before the end.
    fn order(max: usize) -> (Vec<String>, usize) {
        let file = b"some bytes of a trace";
        let streams = TraceStreams::of_file(file);
        let bytes = streams.stream(0);
        let mut waiting = WaitingEvents::new(max);
        let mut out = Vec::new();
        for bundle in 0..40u32 {
            for n in 0..10u64 {
                let content = match n % 4 {
                    0 => EventContent::Whole(&bytes[n as usize..][..4]),
                    1 => EventContent::LostEvents,
                    2 => EventContent::CompactSwitch {
                        prev_state: -3,
                        next_tid: Tid(-1),
                        next_prio: -120,
                        next_comm: &bytes[5..10],
                    },
                    _ => EventContent::CompactWaking {
                        tid: Tid(7),
                        target_cpu: -2,
                        prio: 5,
                        comm: b"",
                        flags: 255,
                    },
                };
                let ts = Timestamp(n * 50 + u64::from(bundle % 7));
                waiting.list().push(BundleEvent { ts, cpu: Cpu(bundle % 3), bundle, content });
            }
            if waiting.are_many() {
                out.extend(waiting.take_before(Timestamp(40), &streams));
            }
        }
        let before_the_end = out.len();
        let rest = waiting.finish(&streams).unwrap();
        out.extend(RunCursor::new(&rest, &streams));
        (out.iter().map(|event| format!("{event:?}")).collect(), before_the_end)
    }

    #[test]
    fn events_that_are_sorted_in_a_file_are_those_that_are_sorted_in_memory() {
        let (expected, _) = order(usize::MAX);
        assert_eq!(expected.len(), 400);
        let (found, before_the_end) = order(32);
        assert!(before_the_end < 60, "most were in the file: {before_the_end}");
        let sorted = |mut events: Vec<String>| {
            events.sort();
            events
        };
        assert_eq!(found[before_the_end..].len(), 400 - before_the_end);
        assert_eq!(sorted(found.clone()), sorted(expected.clone()));
        assert_eq!(order(400).0, expected);
    }
}
