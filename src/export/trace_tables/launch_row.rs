//! The row of the table `launch`.

use std::io;

use super::sink::TableSink;
use crate::tables::{Cell, TableId};

impl TableSink<'_> {
    /// Makes a row of the launch in the timeline, if there is one.
    pub(super) fn push_launch(&mut self) -> io::Result<()> {
        let Some(span) = self.launch.span() else { return Ok(()) };
        let moments = self.launch.moments();
        let between = |from: Option<u64>, to: Option<u64>| {
            Cell::from(from.zip(to).map(|(from, to)| to.saturating_sub(from)))
        };
        self.rows.push(
            TableId::Launch,
            [
                self.launched_app.as_ref().into(),
                self.launch.main_thread().into(),
                Cell::Int(0),
                span.from.into(),
                span.to.saturating_sub(span.from).into(),
                span.begins_with().into(),
                span.end.label().into(),
                between(moments.requested, moments.bound),
                between(moments.bound, moments.bind_end),
                between(moments.bind_end, moments.frame_end),
            ],
        )
    }
}
