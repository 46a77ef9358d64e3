//! The slices of a thread come from the kernel's markers, or from a track that its program writes. Only those
//! of one source lie within each other.

use rustc_hash::FxHashMap;

use super::kept_time::KeptTime;
use super::model::ThreadHistory;
use super::names::NameId;
use super::slices::Slice;
use crate::clock::Timestamp;
use crate::formats::{TrackId, TrackOwner};
use crate::ids::Tid;
use crate::tracks::OwnTrack;

/// The source of the slices of each thread: that of its first slice.
#[derive(Debug, Default)]
pub(super) struct SliceSources(FxHashMap<Tid, SliceSource>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SliceSource {
    Markers,
    Track(TrackId),
}

/// The thread whose time a slice of a track takes: of a process its main thread. Of a track of the
/// machine no thread is known.
pub(super) fn thread_of(track: &OwnTrack) -> Tid {
    match track.owner {
        TrackOwner::Thread { tid, .. } => tid,
        TrackOwner::Process(pid) => pid.main_thread(),
        TrackOwner::Machine => Tid::UNKNOWN,
    }
}

impl SliceSources {
    /// Whether the slices of `source` are those of the thread.
    pub fn is_main_source(&mut self, tid: Tid, source: SliceSource) -> bool {
        *self.0.entry(tid).or_insert(source) == source
    }

    /// The same for a track: one of a process is none of its main thread.
    pub fn is_main_track(&mut self, tid: Tid, track: &OwnTrack) -> bool {
        matches!(track.owner, TrackOwner::Thread { .. })
            && self.is_main_source(tid, SliceSource::Track(track.id))
    }
}

impl ThreadHistory {
    /// Adds a slice beside those of the thread's own source.
    pub fn add_other(&mut self, start: Timestamp, end: Timestamp, name: NameId, kept: &KeptTime) {
        if kept.overlaps(start, end) {
            self.other_slices.push(Slice::alone(start, end, name));
        }
    }

    /// All slices of the thread.
    pub fn all_slices(&self) -> [&[Slice]; 2] {
        [&self.slices.list, &self.other_slices]
    }
}
