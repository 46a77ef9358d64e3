//! Counters that kernel events describe: CPU frequency, CPU idle state, and clock rates.

use std::io;

use super::{CounterSample, CounterScope, TrackBuilder, TrackSink};
use crate::formats::{Event, EventType};

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
