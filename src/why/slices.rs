//! Slices that lie within each other: those of markers, the calls of methods, and the kernel's searches for
//! memory.

use super::kept_time::KeptTime;
use super::names::NameId;
use crate::clock::Timestamp;

/// The number of no slice.
const NONE: u32 = u32::MAX;

/// A slice or a call of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    pub start: Timestamp,
    /// [`Timestamp::MAX`] while the slice is open.
    pub end: Timestamp,
    pub name: NameId,
    /// The number of the slice around this one.
    parent: u32,
}

/// The slices of one thread, in the order of their begins.
#[derive(Debug, Default)]
pub(super) struct Slices {
    pub list: Vec<Slice>,
    open: Vec<u32>,
}

impl Slice {
    /// A slice that lies in no other one.
    pub fn alone(start: Timestamp, end: Timestamp, name: NameId) -> Slice {
        Slice { start, end, name, parent: NONE }
    }
}

impl Slices {
    pub fn begin(&mut self, start: Timestamp, name: NameId) {
        let parent = self.open.last().copied().unwrap_or(NONE);
        self.open.push(self.list.len() as u32);
        self.list.push(Slice { start, end: Timestamp::MAX, name, parent });
    }

    /// Ends the innermost open slice. It is forgotten where nothing of it is in `kept`: whoever was within it
    /// is then forgotten already.
    pub fn end(&mut self, end: Timestamp, kept: &KeptTime) {
        let Some(at) = self.open.pop() else { return };
        let is_last = at as usize + 1 == self.list.len();
        let Some(slice) = self.list.get_mut(at as usize) else { return };
        slice.end = end;
        if is_last && !kept.overlaps(slice.start, end) {
            self.list.pop();
        }
    }

    /// The innermost slice that is open at `ts`.
    pub fn innermost(&self, ts: Timestamp) -> Option<&Slice> {
        let at = self.list.partition_point(|slice| slice.start <= ts).checked_sub(1)?;
        let slice = &self.list[at];
        self.outwards(slice).find(|slice| slice.end > ts)
    }

    /// The slice, the one around it, and so on.
    pub fn outwards<'s>(&'s self, slice: &'s Slice) -> impl Iterator<Item = &'s Slice> {
        std::iter::successors(Some(slice), |slice| self.list.get(slice.parent as usize))
    }

    /// Calls `with` for each part of `from..to` in which one slice is the innermost, or none.
    pub fn parts(
        &self,
        from: Timestamp,
        to: Timestamp,
        mut with: impl FnMut(Timestamp, Timestamp, Option<&Slice>),
    ) {
        self.stacks(from, to, |begin, end, open| with(begin, end, open.last().copied()));
    }

    /// Calls `with` for each part of `from..to` in which the same slices are open: the outermost first.
    pub fn stacks<'s>(
        &'s self,
        from: Timestamp,
        to: Timestamp,
        mut with: impl FnMut(Timestamp, Timestamp, &[&'s Slice]),
    ) {
        let mut open: Vec<&'s Slice> =
            self.innermost(from).map(|slice| self.outwards(slice).collect()).unwrap_or_default();
        open.reverse();
        let mut at = from;
        let mut next = self.list.partition_point(|slice| slice.start <= from);
        while at < to {
            while open.last().is_some_and(|slice| slice.end <= at) {
                open.pop();
            }
            while let Some(slice) = self.list.get(next).filter(|slice| slice.start <= at) {
                next += 1;
                if slice.end > at {
                    open.push(slice);
                }
            }
            let ends = open.last().map_or(Timestamp::MAX, |slice| slice.end);
            let begins = self.list.get(next).map_or(Timestamp::MAX, |slice| slice.start);
            let until = to.min(ends).min(begins);
            with(at, until, &open);
            at = until;
        }
    }
}
