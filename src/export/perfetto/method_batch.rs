//! Method slices on their way to the writer thread, which makes packets of them. They go in batches of many
//! thousand: to hand a few over costs more than to make their packets.

use super::method_tracks::{MethodTrack, MethodTracks};
use crate::timeline::{Edge, MethodName};

/// The number of edges that a batch should have.
const BATCH_EDGES: usize = 16 << 10;

/// Names, threads and edges that the writer thread does not have yet.
#[derive(Default)]
pub(super) struct MethodBatch {
    names: Vec<(usize, Vec<u8>)>,
    tracks: Vec<(usize, MethodTrack)>,
    edges: Vec<Edge>,
    /// A thread's index and the end of its part of `edges`, in the order in which the edges came.
    parts: Vec<(u32, usize)>,
}

impl MethodBatch {
    /// Adds the name of the method with this id.
    pub(super) fn method(&mut self, id: usize, name: &MethodName<'_>) {
        let dot = if name.class.is_empty() { "" } else { "." };
        self.names.push((id, format!("{}{dot}{}", name.class, name.name).into_bytes()));
    }

    /// Adds the track of the thread with this index.
    pub(super) fn thread(&mut self, index: u32, track: MethodTrack) {
        self.tracks.push((index as usize, track));
    }

    /// Adds edges of a thread. Returns whether the batch should be handed over.
    pub(super) fn edges(&mut self, thread: u32, edges: &[Edge]) -> bool {
        if self.edges.capacity() == 0 {
            self.edges.reserve(BATCH_EDGES + edges.len());
        }
        self.edges.extend_from_slice(edges);
        self.parts.push((thread, self.edges.len()));
        self.edges.len() >= BATCH_EDGES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.tracks.is_empty() && self.names.is_empty()
    }

    /// Appends the packets for the batch's edges.
    pub(super) fn write(self, tracks: &mut MethodTracks, out: &mut Vec<u8>) {
        for (id, name) in self.names {
            tracks.set_name(id, name);
        }
        for (index, track) in self.tracks {
            tracks.set_track(index, track);
        }
        let mut start = 0;
        for (thread, end) in self.parts {
            tracks.edges(out, thread, &self.edges[start..end]);
            start = end;
        }
    }
}
