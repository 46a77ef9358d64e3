//! A track that a program writes itself.

use crate::formats::{CounterValue, TrackId, TrackOwner};

/// A track, and the slices that are open on it.
pub(crate) struct OwnTrack {
    pub id: TrackId,
    /// The track's own name; empty for the track that stands for its owner.
    pub name: String,
    pub owner: TrackOwner,
    /// The time of the begin, and the name.
    pub(super) open: Vec<(u64, Vec<u8>)>,
}

impl OwnTrack {
    /// The track's process and thread, as far as it belongs to one.
    pub fn place(&self) -> (Option<i32>, Option<i32>) {
        match self.owner {
            TrackOwner::Thread { tid, tgid } => (tgid, Some(tid)),
            TrackOwner::Process(pid) => (Some(pid), None),
            TrackOwner::Machine => (None, None),
        }
    }

    /// The track's name; where it has none, what it belongs to.
    pub fn label(&self) -> String {
        match (self.name.as_str(), self.owner) {
            ("", TrackOwner::Thread { tid, .. }) => format!("thread {tid}"),
            ("", TrackOwner::Process(pid)) => format!("process {pid}"),
            ("", TrackOwner::Machine) => "track events".to_owned(),
            (name, _) => name.to_owned(),
        }
    }
}

/// The value of a counter, as a whole number where it is one.
pub(crate) fn counter_number(value: CounterValue) -> Result<i64, f64> {
    match value {
        CounterValue::Int(value) => Ok(value),
        CounterValue::Double(value) if value.fract() == 0.0 && value.abs() < 9.0e15 => Ok(value as i64),
        CounterValue::Double(value) => Err(value),
    }
}
