//! A part of a timeline: what overlaps the part is passed on, and what began before it begins with it.

mod filter;
mod state;

pub use filter::WindowFilter;

use std::io;

use serde::Serialize;

use super::align::placement::MergeOptions;
use super::merge::{MergeError, merge};
use super::sink::TimelineSink;
use super::summary::{MergeSummary, Window};
use crate::formats::input::Input;
use crate::formats::{Event, EventType, Sink};

/// The part of a timeline that a user asks for, in ns from the timeline's begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WindowRequest {
    /// Where the part begins; `None` is the timeline's begin.
    pub from_ns: Option<u64>,
    /// Where the part ends; `None` is the timeline's end.
    pub to_ns: Option<u64>,
}

/// Why there is no such part of the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// The part would end before it begins.
    #[error("--to {to:.6} s is not behind --from {from:.6} s", to = seconds(*.to_ns), from = seconds(*.from_ns))]
    Empty {
        /// The requested begin, ns.
        from_ns: u64,
        /// The requested end, ns.
        to_ns: u64,
    },
    /// The part would begin behind the timeline's end.
    #[error(
        "--from {from:.6} s: the trace ends {length:.6} s after its begin",
        from = seconds(*.from_ns),
        length = seconds(*.length_ns)
    )]
    BehindEnd {
        /// The requested begin, ns.
        from_ns: u64,
        /// The length of the timeline, ns.
        length_ns: u64,
    },
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl WindowRequest {
    /// Whether this is the whole timeline.
    pub fn is_whole(&self) -> bool {
        *self == WindowRequest::default()
    }

    /// The part that is asked for, of a timeline that reaches from `first` to `last`, ns of its clock.
    ///
    /// # Errors
    /// [`WindowError`] where there is no such part.
    pub fn of_timeline(&self, first: u64, last: u64) -> Result<Window, WindowError> {
        let from_ns = self.from_ns.unwrap_or(0);
        if let Some(to_ns) = self.to_ns.filter(|to_ns| *to_ns <= from_ns) {
            return Err(WindowError::Empty { from_ns, to_ns });
        }
        let length_ns = last.saturating_sub(first);
        if from_ns > length_ns {
            return Err(WindowError::BehindEnd { from_ns, length_ns });
        }
        let to = self.to_ns.map_or(last, |to_ns| first.saturating_add(to_ns).min(last));
        Ok(Window { start: first, from: first + from_ns, to })
    }
}

/// Reads all `inputs`, and returns the first and the last time of their timeline, ns of its clock; both are 0
/// where it is empty.
///
/// # Errors
/// [`MergeError`].
pub fn extent(inputs: &[Input], options: &MergeOptions) -> Result<(u64, u64), MergeError> {
    let report = merge(inputs, &mut NullSink, options)?.report;
    Ok(report.first_ts.zip(report.last_ts).unwrap_or_default())
}

/// Ignores everything.
pub(super) struct NullSink;

impl Sink for NullSink {
    fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
        Ok(())
    }
}

impl TimelineSink for NullSink {
    fn finish(&mut self, _: &MergeSummary) -> io::Result<()> {
        Ok(())
    }
}

/// A [`Window`] in ns from the begin of the whole timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RelativeWindow {
    /// Where the part begins.
    pub from_ns: u64,
    /// Where the part ends.
    pub to_ns: u64,
}

impl Window {
    /// The part in times from the begin of the whole timeline.
    pub fn in_trace(self) -> RelativeWindow {
        let since_start = |ts: u64| ts.saturating_sub(self.start);
        RelativeWindow { from_ns: since_start(self.from), to_ns: since_start(self.to) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_lies_inside_of_the_timeline_or_there_is_none() {
        let part = |from_ns, to_ns| WindowRequest { from_ns, to_ns }.of_timeline(1_000, 3_000);
        let at = |from, to| Ok(Window { start: 1_000, from, to });
        assert_eq!(part(None, None), at(1_000, 3_000));
        assert_eq!(part(Some(500), Some(700)), at(1_500, 1_700));
        assert_eq!(part(Some(500), Some(9_000)), at(1_500, 3_000));
        assert_eq!(part(Some(700), Some(700)), Err(WindowError::Empty { from_ns: 700, to_ns: 700 }));
        assert_eq!(part(Some(2_001), None), Err(WindowError::BehindEnd { from_ns: 2_001, length_ns: 2_000 }));
    }
}
