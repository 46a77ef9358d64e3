//! Pairs the begins and the ends of asynchronous slices, by the rules of Perfetto's `AsyncTrackSetTracker`.
//!
//! | markers | slices of one process and cookie |
//! | --- | --- |
//! | `S`, `F` | of one name: they do not nest, a second begin changes nothing |
//! | `G`, `H` | of one track: an end ends the slice that began last, and the name is the begin's |

use std::io;

use super::builder::TrackBuilder;
use super::open_async::{AsyncPlace, OpenAsync};
use super::sink::{AsyncEdge, TrackSink};
use crate::clock::Timestamp;

impl<S: TrackSink> TrackBuilder<S> {
    pub(super) fn async_begin(
        &mut self,
        place: &AsyncPlace<&[u8]>,
        name: &[u8],
        ts: Timestamp,
    ) -> io::Result<()> {
        let open = self.asyncs.open.entry(place.owned()).or_default();
        if !place.is_on_track && !open.is_empty() {
            return Ok(());
        }
        self.asyncs.last_id += 1;
        let id = self.asyncs.last_id;
        open.push(OpenAsync { id, begin: ts, name: place.is_on_track.then(|| name.to_vec()) });
        self.sink.async_edge(&self.tasks, place.pid, &place.slice(id, name, ts, AsyncEdge::Begin))
    }

    /// `name` is that of an end without a begin.
    pub(super) fn async_end(
        &mut self,
        place: &AsyncPlace<&[u8]>,
        name: &[u8],
        ts: Timestamp,
    ) -> io::Result<()> {
        let key = place.owned();
        let open = self.asyncs.open.get_mut(&key);
        let Some((begun, is_last)) = open.and_then(|open| Some((open.pop()?, open.is_empty()))) else {
            // The slice began before the recording.
            self.unmatched_ends += 1;
            let slice = place.slice(0, name, ts, AsyncEdge::EndWithoutBegin);
            return self.sink.async_edge(&self.tasks, place.pid, &slice);
        };
        if is_last {
            self.asyncs.open.remove(&key);
        }
        let name = begun.name.as_deref().unwrap_or(place.name);
        let edge = AsyncEdge::End { begin: begun.begin, open: false };
        self.sink.async_edge(&self.tasks, place.pid, &place.slice(begun.id, name, ts, edge))
    }

    /// Ends at `end` the asynchronous slices that no marker ended, in the order of their begins.
    pub(super) fn close_async_slices(&mut self, end: Timestamp) -> io::Result<()> {
        let open = std::mem::take(&mut self.asyncs.open);
        let mut open: Vec<_> =
            open.iter().flat_map(|(place, open)| open.iter().map(move |open| (place, open))).collect();
        open.sort_unstable_by_key(|(_, open)| open.id);
        for (place, open) in open {
            let AsyncPlace { pid, is_on_track, ref name, cookie } = *place;
            let place = AsyncPlace { pid, is_on_track, name: name.as_slice(), cookie };
            let name = open.name.as_deref().unwrap_or(place.name);
            let edge = AsyncEdge::End { begin: open.begin, open: true };
            self.sink.async_edge(&self.tasks, pid, &place.slice(open.id, name, end, edge))?;
        }
        Ok(())
    }
}
