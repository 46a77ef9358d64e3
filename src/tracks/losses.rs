//! The periods in which events of a CPU are missing: from its last event before the loss to its next one.

use std::io;

use super::{Span, TrackBuilder, TrackSink};
use crate::formats::Event;

impl<S: TrackSink> TrackBuilder<S> {
    /// Ends the losses that came before `event` on its CPU.
    pub(super) fn end_losses(&mut self, event: &Event<'_>) -> io::Result<()> {
        let (last, counts) = self.cpu_losses.entry(event.cpu).or_default();
        for count in counts.drain(..) {
            let span = Span { start: *last, end: event.ts, open: false };
            self.sink.lost_between(event.cpu, span, count)?;
        }
        *last = event.ts;
        Ok(())
    }

    /// Ends at `end` the losses behind which a CPU has no event.
    pub(super) fn close_losses(&mut self, end: u64) -> io::Result<()> {
        for (cpu, (last, counts)) in std::mem::take(&mut self.cpu_losses) {
            for count in counts {
                self.sink.lost_between(cpu, Span { start: last, end, open: true }, count)?;
            }
        }
        Ok(())
    }
}
