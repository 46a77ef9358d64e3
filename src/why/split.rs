//! The causes of a span, and the time of each.

use rustc_hash::FxHashMap;

use super::cause::{PathId, Paths, SubjectId};
use super::grade::GradedTime;
use super::own_frame::OwnFrame;
use crate::clock::Timestamp;
use crate::ids::Tid;

/// The most intervals that are kept of one cause.
const MAX_INTERVALS: usize = 1000;

/// The time that belongs to one cause.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub ns: u64,
    /// How often: parts that follow each other count once.
    pub count: u64,
    /// The first of them.
    pub intervals: Vec<(Timestamp, Timestamp)>,
    /// Samples that tell the subject.
    pub samples: u64,
    /// By the number of a segment of the span, the time in it, ns: 2n is the time before the n-th wait of the
    /// span's own thread that leads to another thread, 2n+1 the time in this wait.
    pub by_segment: Vec<(u32, u64)>,
    last_end: Timestamp,
}

/// The cause that a [`Share`] belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ShareKey {
    pub path: PathId,
    /// The app's code that ran.
    pub own: Option<OwnFrame>,
    pub subject: SubjectId,
}

/// A wait of the span's own thread that leads to another thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OwnWait {
    pub tid: Tid,
    pub from: Timestamp,
    pub to: Timestamp,
    /// The thread that ended it.
    pub waker: Tid,
}

/// The causes of one span, or of several.
#[derive(Debug, Default)]
pub(super) struct Split {
    pub paths: Paths,
    pub shares: FxHashMap<ShareKey, Share>,
    /// How each path is known.
    pub grades: FxHashMap<PathId, GradedTime>,
    /// In the order of time.
    pub waits: Vec<OwnWait>,
}

impl Split {
    pub fn add(&mut self, key: ShareKey, segment: u32, start: Timestamp, end: Timestamp) {
        let share = self.shares.entry(key).or_default();
        share.ns += end - start;
        match share.by_segment.last_mut() {
            Some((last, ns)) if *last == segment => *ns += end - start,
            _ => share.by_segment.push((segment, end - start)),
        }
        if share.count > 0 && share.last_end == start {
            if let Some(last) = share.intervals.last_mut().filter(|last| last.1 == start) {
                last.1 = end;
            }
        } else {
            share.count += 1;
            if share.intervals.len() < MAX_INTERVALS {
                share.intervals.push((start, end));
            }
        }
        share.last_end = end;
    }
}
