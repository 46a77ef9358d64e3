//! What is profiled: the calls of a method trace, or samples.

use super::count::call_events::{ThreadCallEvents, call_events};
use super::count::flat::FlatProfile;
use super::count::selection::ProfileSelection;
use super::count::tree::{CallTree, TreeOptions};
use super::figures::Columns;
use super::sample_profile::SampleProfile;
use crate::formats::ReadReport;
use crate::formats::art_method::{CPU, CallAnomalies, Method, MethodTrace, TracedThread, WALL};

/// What is profiled, with the facts that all outputs share.
#[derive(Debug, Clone, Copy)]
pub(super) enum ProfileSource<'t, 'a> {
    /// Calls: each has a begin and an end.
    Calls(&'t MethodTrace<'a>),
    /// Samples: each has a stack and a weight.
    Samples(&'t SampleProfile),
}

impl<'t, 'a> ProfileSource<'t, 'a> {
    pub(super) fn threads(self) -> &'t [TracedThread<'a>] {
        match self {
            ProfileSource::Calls(trace) => trace.threads(),
            ProfileSource::Samples(samples) => &samples.threads,
        }
    }

    pub(super) fn methods(self) -> &'t [Method<'a>] {
        match self {
            ProfileSource::Calls(trace) => trace.methods(),
            ProfileSource::Samples(samples) => &samples.methods,
        }
    }

    pub(super) fn report(self) -> &'t ReadReport {
        match self {
            ProfileSource::Calls(trace) => trace.report(),
            ProfileSource::Samples(samples) => &samples.report,
        }
    }

    pub(super) fn pid(self) -> Option<i32> {
        match self {
            ProfileSource::Calls(trace) => trace.header().pid,
            ProfileSource::Samples(samples) => samples.pid,
        }
    }

    /// Number of records of calls, or of samples.
    pub(super) fn records(self) -> u64 {
        match self {
            ProfileSource::Calls(trace) => trace.counts().records,
            ProfileSource::Samples(samples) => samples.samples,
        }
    }

    /// The kind of its records, for people.
    pub(super) fn record_name(self) -> &'static str {
        match self {
            ProfileSource::Calls(_) => "records",
            ProfileSource::Samples(_) => "samples",
        }
    }

    pub(super) fn format(self) -> String {
        match self {
            ProfileSource::Calls(trace) => trace.format(),
            ProfileSource::Samples(samples) => samples.format.clone(),
        }
    }

    /// Whether the main figure of a row is a time.
    pub(super) fn has_times(self) -> bool {
        match self {
            ProfileSource::Calls(trace) => trace.header().has_times(),
            ProfileSource::Samples(samples) => samples.weighs_time(),
        }
    }

    /// Whether it has the CPU time of threads beside their wall time.
    pub(super) fn has_cpu_time(self) -> bool {
        match self {
            ProfileSource::Calls(trace) => trace.header().clock.has_cpu(),
            ProfileSource::Samples(_) => false,
        }
    }

    /// Whether rows have figures beside the number of calls.
    pub(super) fn has_figures(self) -> bool {
        matches!(self, ProfileSource::Samples(_)) || self.has_times()
    }

    /// ns in a tick of the figures; 1 where they are no times.
    pub(super) fn tick_ns(self) -> u64 {
        match self {
            ProfileSource::Calls(trace) => trace.header().tick_ns,
            ProfileSource::Samples(_) => 1,
        }
    }

    /// The columns of figures.
    pub(super) fn columns(self) -> Columns {
        match self {
            ProfileSource::Calls(trace) => {
                let clock = trace.header().clock;
                Columns::of_calls(clock.has_cpu(), clock.has_wall())
            }
            ProfileSource::Samples(samples) => {
                let name = match samples.unit().as_str() {
                    "ns" => "time",
                    "samples" => "samples",
                    _ => "events",
                };
                Columns::of_samples(name, samples.weighs_time(), samples.has_off_cpu())
            }
        }
    }

    /// The clock to sort and draw by if none is requested: wall time where the trace has it. A trace without
    /// times counts calls in the place of wall time, and samples have their weight there.
    pub(super) fn main_clock(self) -> usize {
        match self {
            ProfileSource::Calls(trace) => {
                let clock = trace.header().clock;
                if clock.has_cpu() && !clock.has_wall() { CPU } else { WALL }
            }
            ProfileSource::Samples(_) => WALL,
        }
    }

    /// The time of the last record, ns since the start.
    pub(super) fn end_ns(self) -> u64 {
        match self {
            ProfileSource::Calls(trace) => {
                trace.records().filter_map(|record| record.wall.or(record.cpu)).max().unwrap_or(0)
            }
            ProfileSource::Samples(samples) => samples.end_ns,
        }
    }

    pub(super) fn tree(self, selection: &ProfileSelection) -> CallTree {
        match self {
            ProfileSource::Calls(trace) => CallTree::of(trace, selection, TreeOptions::default()),
            ProfileSource::Samples(samples) => samples.tree(selection),
        }
    }

    /// The figures of each method, or of each of `count` groups that `groups` has for the methods.
    pub(super) fn flat(self, selection: &ProfileSelection, groups: Option<(&[u32], usize)>) -> FlatProfile {
        match (self, groups) {
            (ProfileSource::Calls(trace), None) => FlatProfile::of(trace, selection),
            (ProfileSource::Calls(trace), Some((groups, count))) => {
                FlatProfile::of_groups(trace, selection, groups, count)
            }
            (ProfileSource::Samples(samples), None) => {
                samples.flat(selection, samples.methods.len(), |method| method)
            }
            (ProfileSource::Samples(samples), Some((groups, count))) => {
                samples
                    .flat(selection, count, |method| groups.get(method as usize).copied().unwrap_or(u32::MAX))
            }
        }
    }

    /// The calls of each thread in order.
    pub(super) fn call_events(
        self,
        selection: &ProfileSelection,
        clock: usize,
    ) -> (Vec<ThreadCallEvents>, CallAnomalies) {
        match self {
            ProfileSource::Calls(trace) => call_events(trace, selection, clock),
            ProfileSource::Samples(samples) => (samples.call_events(selection), CallAnomalies::default()),
        }
    }
}
