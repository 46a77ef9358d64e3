//! The asynchronous slices that have begun and not ended.

use std::collections::HashMap;

use super::sink::{AsyncEdge, AsyncSlice};
use crate::clock::Timestamp;
use crate::ids::Pid;

/// The key that the begin and the end of an asynchronous slice share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct AsyncPlace<T> {
    pub pid: Pid,
    /// The markers are `G` and `H`, and `name` is the track's name.
    pub is_on_track: bool,
    pub name: T,
    pub cookie: i64,
}

impl<'a> AsyncPlace<&'a [u8]> {
    pub fn of_name(pid: Pid, name: &'a [u8], cookie: i64) -> Self {
        AsyncPlace { pid, is_on_track: false, name, cookie }
    }

    pub fn of_track(pid: Pid, track: &'a [u8], cookie: i64) -> Self {
        AsyncPlace { pid, is_on_track: true, name: track, cookie }
    }

    pub fn owned(&self) -> AsyncPlace<Vec<u8>> {
        let AsyncPlace { pid, is_on_track, name, cookie } = *self;
        AsyncPlace { pid, is_on_track, name: name.to_vec(), cookie }
    }

    pub fn slice(&self, id: u64, name: &'a [u8], ts: Timestamp, edge: AsyncEdge) -> AsyncSlice<'a> {
        let track = self.is_on_track.then_some(self.name);
        AsyncSlice { id, track, name, cookie: self.cookie, ts, edge }
    }
}

/// An asynchronous slice that has begun.
pub(super) struct OpenAsync {
    pub id: u64,
    pub begin: Timestamp,
    /// The name, where it is not that of the place.
    pub name: Option<Vec<u8>>,
}

/// The asynchronous slices that are open.
#[derive(Default)]
pub(super) struct OpenAsyncSlices {
    pub open: HashMap<AsyncPlace<Vec<u8>>, Vec<OpenAsync>>,
    pub last_id: u64,
}

impl OpenAsyncSlices {
    /// Keeps at most `most` slices of a place. Returns how many are gone.
    pub fn keep_innermost(&mut self, most: usize) -> u64 {
        let mut gone = 0;
        for open in self.open.values_mut() {
            let surplus = open.len().saturating_sub(most);
            open.drain(..surplus);
            gone += surplus as u64;
        }
        gone
    }
}
