//! The interrupts that each CPU served.

use std::io;

use super::{Span, TrackBuilder, TrackSink};
use crate::formats::{Event, EventType};
use crate::ftrace::softirq;

impl<S: TrackSink> TrackBuilder<S> {
    pub(super) fn irq_entry(&mut self, event: &Event<'_>, kind: &EventType, name: usize) -> io::Result<()> {
        let name = String::from_utf8_lossy(event.text(kind, name).unwrap_or(b"irq")).into_owned();
        self.begin_irq(event, name)
    }

    pub(super) fn softirq_entry(
        &mut self,
        event: &Event<'_>,
        kind: &EventType,
        vec: usize,
    ) -> io::Result<()> {
        let vec = event.int(kind, vec).unwrap_or(-1);
        let name = softirq::name(vec).unwrap_or("softirq");
        self.begin_irq(event, format!("softirq {name}"))
    }

    fn begin_irq(&mut self, event: &Event<'_>, name: String) -> io::Result<()> {
        self.sink.irq_begin(event.cpu, event.ts, &name)?;
        self.irqs.entry(event.cpu).or_default().push((event.ts, name));
        Ok(())
    }

    /// Ends the innermost interrupt of the event's CPU.
    pub(super) fn irq_exit(&mut self, event: &Event<'_>) -> io::Result<()> {
        match self.irqs.get_mut(&event.cpu).and_then(Vec::pop) {
            Some((start, name)) => {
                self.sink.irq(event.cpu, &name, Span { start, end: event.ts, open: false })
            }
            // The interrupt began before the recording.
            None => {
                self.unmatched_ends += 1;
                Ok(())
            }
        }
    }

    /// Ends at `end` the interrupts that no event ended.
    pub(super) fn close_interrupts(&mut self, end: u64) -> io::Result<()> {
        for (cpu, open) in std::mem::take(&mut self.irqs) {
            for (start, name) in open.into_iter().rev() {
                self.sink.irq(cpu, &name, Span { start, end, open: true })?;
            }
        }
        Ok(())
    }
}
