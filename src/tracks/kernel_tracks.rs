//! Tracks of CPUs and of the machine that kernel events describe: counters (CPU frequency, CPU idle state,
//! clock rates), the interrupts that each CPU served, and the periods in which events of a CPU are missing.

use std::io;

use super::builder::TrackBuilder;
use super::sink::{CounterSample, CounterScope, Span, TrackSink};
use crate::formats::{Event, EventType};
use crate::ftrace::softirq;

/// `cpu_idle` has this state when the CPU leaves idle: (u32)-1.
const NOT_IDLE: i64 = 0xffff_ffff;

impl<S: TrackSink> TrackBuilder<S> {
    pub(super) fn cpu_counter(
        &mut self,
        event: &Event<'_>,
        kind: &EventType,
        name: &'static str,
        value: usize,
        cpu: usize,
    ) -> io::Result<()> {
        let cpu = event.int(kind, cpu).unwrap_or(event.cpu.into()) as u32;
        let value = match event.int(kind, value).unwrap_or(0) {
            NOT_IDLE => -1,
            other => other,
        };
        let counter = CounterSample { name, ts: event.ts, value };
        self.sink.counter(&self.tasks, CounterScope::Cpu(cpu), counter)
    }

    pub(super) fn clock_rate(
        &mut self,
        event: &Event<'_>,
        kind: &EventType,
        name: usize,
        value: usize,
    ) -> io::Result<()> {
        let name = String::from_utf8_lossy(event.text(kind, name).unwrap_or(b""));
        let value = event.int(kind, value).unwrap_or(0);
        let counter = CounterSample { name: &name, ts: event.ts, value };
        self.sink.counter(&self.tasks, CounterScope::System, counter)
    }
}

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

/// A loss lasts from the last event of its CPU before it to the next one.
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
