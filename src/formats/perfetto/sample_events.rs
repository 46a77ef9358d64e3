//! The event types of a trace's samples, from what a packet sequence says of the counter that takes them:
//! `PerfSampleDefaults` and `PerfEvents.Timebase` of the data source `linux.perf`, and
//! `StackSample.CounterDescriptor` (protos/perfetto/common/perf_events.proto and
//! protos/perfetto/trace/profiling/stack_sample.proto).

use std::collections::HashMap;

use super::fields::{
    follower_event, perf_events_timebase as timebase, perf_events_tracepoint, perf_sample_defaults,
    stack_sample_counter_descriptor as descriptor, stack_sample_unit as unit,
};
use super::track_clocks::number;
use super::wire::read::{WireValue, fields, last_value};
use crate::formats::samples::{SampleEvent, SampleRate, measures_time};

/// The most event types that are kept apart. Those behind them are taken for one.
const MAX_EVENTS: usize = 4096;

/// The counters of the enum `PerfEvents.Counter`, in its order, with the names that perf gives them.
const COUNTERS: [&str; 21] = [
    "unknown",
    "cpu-clock",
    "page-faults",
    "task-clock",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "cpu-cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branch-instructions",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
    "dummy",
];
/// The event type of samples whose trace does not name it: Android 11 wrote no defaults.
const UNNAMED_EVENT: &str = "perf_sample";
/// The event type of Chrome's sampling profiler.
const STREAMING_EVENT: &str = "chrome_sample";
/// The event type of stack samples that name neither a counter nor their profiler.
const UNNAMED_STACK_SAMPLE: &str = "stack_sample";

/// The name of the counter that follows samples of threads that stopped running: the sum of the times until
/// they ran again, ns.
pub(crate) const OFF_CPU_FOLLOWER: &str = "off-cpu-ns";

/// The counter that takes samples: its name and its rate.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct SampleCounter {
    name: String,
    frequency: u64,
    period: u64,
    is_time: bool,
    /// The place of [`OFF_CPU_FOLLOWER`] among the counters that follow the samples.
    pub(super) off_cpu_follower: Option<usize>,
}

/// The text of a field that has one.
fn text(message: &[u8], field: u32) -> Option<String> {
    let text = last_value(message, field).map(WireValue::bytes).filter(|text| !text.is_empty());
    text.map(|text| String::from_utf8_lossy(text).into_owned())
}

impl SampleCounter {
    /// Reads a `PerfSampleDefaults`.
    pub(super) fn of_perf(defaults: &[u8]) -> SampleCounter {
        let message = last_value(defaults, perf_sample_defaults::TIMEBASE).map_or(&[][..], WireValue::bytes);
        let tracepoint = last_value(message, timebase::TRACEPOINT).map(WireValue::bytes);
        let tracepoint = tracepoint.and_then(|point| text(point, perf_events_tracepoint::NAME));
        let counter = number(message, timebase::COUNTER);
        let counter = counter.and_then(|number| COUNTERS.get(usize::try_from(number).ok()?));
        let raw = last_value(message, timebase::RAW_EVENT).map(|_| "raw event".to_owned());
        let name = tracepoint
            .map(|name| name.replace('/', ":"))
            .or_else(|| counter.map(|name| (*name).to_owned()))
            .or_else(|| text(message, timebase::NAME))
            .or(raw)
            .unwrap_or_else(|| COUNTERS[1].to_owned());
        let frequency = number(message, timebase::FREQUENCY).unwrap_or(0);
        let period = number(message, timebase::PERIOD).unwrap_or(0);
        let mut followers = fields(defaults).filter(|(n, _)| *n == perf_sample_defaults::FOLLOWERS);
        let off_cpu_follower = followers.position(|(_, follower)| {
            text(follower.bytes(), follower_event::NAME).as_deref() == Some(OFF_CPU_FOLLOWER)
        });
        let is_time = measures_time(&name) && (frequency > 0 || period > 0);
        SampleCounter { name, frequency, period, is_time, off_cpu_follower }
    }

    /// The counter of samples whose sequence has no defaults.
    pub(super) fn unnamed() -> SampleCounter {
        SampleCounter { name: UNNAMED_EVENT.to_owned(), ..SampleCounter::default() }
    }

    /// The counter of streaming samples.
    pub(super) fn streaming() -> SampleCounter {
        SampleCounter { name: STREAMING_EVENT.to_owned(), ..SampleCounter::default() }
    }

    /// Reads a `StackSample.CounterDescriptor`, which is empty where a sample names none. `source` is the
    /// profiler that took the samples. Returns also the factor by which weights are to be multiplied.
    pub(super) fn of_stack_samples(message: &[u8], source: &[u8]) -> (SampleCounter, u64) {
        let unit = number(message, descriptor::UNIT);
        let unit_name = unit.and_then(|unit| {
            Some(match unit {
                unit::NANOSECONDS => "time",
                unit::CPU_CYCLES => "cpu-cycles",
                unit::INSTRUCTIONS => "instructions",
                unit::BYTES => "bytes",
                unit::PAGE_FAULTS => "page-faults",
                unit::CACHE_MISSES => "cache-misses",
                unit::CACHE_REFERENCES => "cache-references",
                unit::BRANCH_MISSES => "branch-misses",
                _ => return None,
            })
        });
        let source = || (!source.is_empty()).then(|| String::from_utf8_lossy(source).into_owned());
        let name = text(message, descriptor::NAME)
            .or_else(|| text(message, descriptor::UNIT_STR))
            .or_else(|| unit_name.map(str::to_owned))
            .or_else(source)
            .unwrap_or_else(|| UNNAMED_STACK_SAMPLE.to_owned());
        let is_time = unit == Some(unit::NANOSECONDS);
        let factor = number(message, descriptor::UNIT_MULTIPLIER).unwrap_or(1);
        (SampleCounter { name, is_time, ..SampleCounter::default() }, factor)
    }

    fn event(&self) -> SampleEvent {
        let rate = match (self.period, self.frequency) {
            (1.., _) => SampleRate::Period(self.period),
            (0, 1..) => SampleRate::Hz(self.frequency),
            (0, 0) => SampleRate::Unknown,
        };
        let is_off_cpu = self.off_cpu_follower.is_some();
        let is_time = self.is_time || is_off_cpu;
        SampleEvent { is_time, is_off_cpu, rate, name: self.name.clone(), ..SampleEvent::default() }
    }
}

/// The event types of a trace.
#[derive(Default)]
pub(super) struct SampleEvents {
    known: HashMap<SampleCounter, u32>,
}

impl SampleEvents {
    /// The index of the event type of a counter; a new one is added to `events`.
    pub(super) fn of_counter(&mut self, events: &mut Vec<SampleEvent>, counter: &SampleCounter) -> u32 {
        if let Some(event) = self.known.get(counter) {
            return *event;
        }
        if events.len() < MAX_EVENTS {
            events.push(counter.event());
        }
        let event = events.len() as u32 - 1;
        self.known.insert(counter.clone(), event);
        event
    }
}
