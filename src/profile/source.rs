//! The data of a profile, whatever it is counted from: the calls of a method trace, or samples, which are
//! added up by thread and stack.

use std::collections::HashMap;

use rustc_hash::FxHashMap;

use super::count::call_stacks::{CallEvent, ThreadCallEvents, call_events};
use super::count::flat::FlatProfile;
use super::count::sample_tree::{
    FlatShape, OFF_CPU, SampleKey, SampleSum, SampleSums, WEIGHT, flat_of, tree_of,
};
use super::count::selection::ProfileSelection;
use super::count::tree::{CallTree, TreeOptions};
use super::error::ProfileError;
use super::figures::FigureColumns;
use super::request::{ProfileRequest, SampleWeight};
use crate::formats::ReadReport;
use crate::formats::art_method::{CPU, CallAnomalies, Method, MethodTrace, Ticks, TracedThread, WALL};
use crate::formats::input::Input;
use crate::formats::samples::{
    FrameKind, NO_STACK, SampleEvent, SampleFrame, SampleRate, SampleReading, SampleRecording, SampleTables,
    SampleThread,
};
use crate::formats::symbolize::symbolize;
use crate::formats::symbols::SymbolDirectory;
use crate::ids::Pid;

/// The data of a profile, with the facts that all outputs share.
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

    pub(super) fn pid(self) -> Option<Pid> {
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
    pub(super) fn columns(self) -> FigureColumns {
        match self {
            ProfileSource::Calls(trace) => {
                let clock = trace.header().clock;
                FigureColumns::of_calls(clock.has_cpu(), clock.has_wall())
            }
            ProfileSource::Samples(samples) => {
                let name = match samples.unit().as_str() {
                    "ns" => "time",
                    "samples" => "samples",
                    _ => "events",
                };
                FigureColumns::of_samples(name, samples.weighs_time(), samples.has_off_cpu())
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
            ProfileSource::Calls(trace) => CallTree::from_trace(trace, selection, TreeOptions::default()),
            ProfileSource::Samples(samples) => samples.tree(selection),
        }
    }

    /// The figures of each method.
    pub(super) fn flat(self, selection: &ProfileSelection) -> FlatProfile {
        match self {
            ProfileSource::Calls(trace) => FlatProfile::from_trace(trace, selection),
            ProfileSource::Samples(samples) => {
                samples.flat(selection, samples.methods.len(), |method| method)
            }
        }
    }

    /// The figures of each of `count` groups of methods; `groups` has the group of each method.
    pub(super) fn flat_of_groups(
        self,
        selection: &ProfileSelection,
        groups: &[u32],
        count: usize,
    ) -> FlatProfile {
        match self {
            ProfileSource::Calls(trace) => FlatProfile::from_groups(trace, selection, groups, count),
            ProfileSource::Samples(samples) => samples
                .flat(selection, count, |method| groups.get(method as usize).copied().unwrap_or(u32::MAX)),
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

/// The samples of one file.
#[derive(Debug)]
pub(super) struct SampleProfile {
    pub format: String,
    pub report: ReadReport,
    pub threads: Vec<TracedThread<'static>>,
    /// By frame.
    pub methods: Vec<Method<'static>>,
    tables: SampleTables,
    /// Sorted.
    sums: Vec<(SampleKey, SampleSum)>,
    /// The samples in order, where the request has outputs that need it.
    in_order: Vec<(SampleKey, u64)>,
    /// Number of samples of all event types, also of those outside of the window.
    pub samples: u64,
    /// The time of the last sample, ns since the first.
    pub end_ns: u64,
    /// The event type whose samples are weighed.
    event: usize,
    pub weight: SampleWeight,
    /// The process of the first thread.
    pub pid: Option<Pid>,
}

impl SampleProfile {
    /// Reads the samples of a recording and adds them up as the request says.
    pub(super) fn read(
        recording: &dyn SampleRecording,
        input: &Input,
        request: &ProfileRequest,
        symbols: Option<&SymbolDirectory>,
    ) -> Result<SampleProfile, ProfileError> {
        let needs_order = request.files.speedscope.is_some() || request.files.firefox.is_some();
        let mut sums = SampleSums {
            window: request.filter.window_ns.clone(),
            in_order: needs_order.then(Vec::new),
            ..SampleSums::default()
        };
        let SampleReading { mut tables, mut report, .. } =
            recording.read(&mut sums).map_err(ProfileError::Print)?;
        sums.add_waiting();
        if let Some(symbols) = symbols {
            symbolize_sums(&mut tables, &mut sums, symbols, &mut report);
        }
        let event = chosen_event(&tables.events, request.event.as_deref(), input)?;
        if request.event.is_none() {
            report.notes.extend(events_left_out(&tables.events, event));
        }
        let weight = request.weight.unwrap_or_default();
        let rate = tables.events.get(event).map(|event| (event.is_time, event.rate));
        if weight == SampleWeight::Time && !matches!(rate, Some((true, _) | (_, SampleRate::Hz(1..)))) {
            return Err(ProfileError::NoSampleTimes { name: input.name.clone() });
        }
        let mut sorted: Vec<_> = sums.sums.into_iter().collect();
        sorted.sort_unstable_by_key(|(key, _)| *key);
        let thread = |thread: &SampleThread| TracedThread {
            id: thread.tid.0 as u32,
            name: thread.name.clone().into(),
            declared: true,
            reused_id: false,
            records: thread.samples,
        };
        Ok(SampleProfile {
            format: recording.format(),
            report,
            threads: tables.threads.iter().map(thread).collect(),
            methods: methods(&tables),
            pid: tables.threads.first().map(|thread| thread.pid),
            tables,
            sums: sorted,
            in_order: sums.in_order.unwrap_or_default(),
            samples: sums.samples,
            end_ns: sums.end_ns,
            event,
            weight,
        })
    }

    fn event(&self) -> SampleEvent {
        self.tables.events.get(self.event).cloned().unwrap_or_default()
    }

    /// The name of the event type whose samples are weighed.
    pub(super) fn event_name(&self) -> String {
        self.event().name
    }

    /// Whether weights are times, ns.
    pub(super) fn weighs_time(&self) -> bool {
        match self.weight {
            SampleWeight::Period => self.event().is_time,
            SampleWeight::Count => false,
            SampleWeight::Time => true,
        }
    }

    /// The unit of weights: `ns`, `samples`, or the events that are counted.
    pub(super) fn unit(&self) -> String {
        match self.weight {
            _ if self.weighs_time() => "ns".to_owned(),
            SampleWeight::Count => "samples".to_owned(),
            _ => self.event_name(),
        }
    }

    /// Whether there are samples of the time that threads did not run, beside others.
    pub(super) fn has_off_cpu(&self) -> bool {
        let events = self.tables.events.iter().enumerate();
        events.into_iter().any(|(n, event)| event.is_off_cpu && n != self.event)
    }

    /// The weight of `sum` in both columns, and the number of its samples that count.
    fn figures(&self, event: &SampleEvent, key: &SampleKey, sum: &SampleSum) -> (Ticks, u64) {
        let mut figures = [0; 2];
        if key.event as usize == self.event {
            figures[WEIGHT] = match (self.weight, event.rate) {
                (SampleWeight::Count, _) => sum.count,
                (SampleWeight::Time, SampleRate::Hz(hz)) if !event.is_time => {
                    let ns = u128::from(sum.count) * 1_000_000_000 / u128::from(hz.max(1));
                    u64::try_from(ns).unwrap_or(u64::MAX)
                }
                _ => sum.period,
            };
            return (figures, sum.count);
        }
        let is_off_cpu = self.tables.events.get(key.event as usize).is_some_and(|event| event.is_off_cpu);
        if is_off_cpu {
            figures[OFF_CPU] = sum.period;
        }
        (figures, if is_off_cpu { sum.count } else { 0 })
    }

    /// The call tree of the selected threads.
    pub(super) fn tree(&self, selection: &ProfileSelection) -> CallTree {
        let event = self.event();
        let counts = |thread| selection.has_thread(thread);
        let figures = |key: &SampleKey, sum: &SampleSum| self.figures(&event, key, sum);
        tree_of(&self.sums, &self.tables.stacks, self.threads.len(), counts, figures)
    }

    /// The flat profile of the selected threads, of `rows` rows; `group` gives the row of each method.
    pub(super) fn flat(
        &self,
        selection: &ProfileSelection,
        rows: usize,
        group: impl Fn(u32) -> u32,
    ) -> FlatProfile {
        let event = self.event();
        let counts = |thread| selection.has_thread(thread);
        let figures = |key: &SampleKey, sum: &SampleSum| self.figures(&event, key, sum);
        let shape = FlatShape { threads: self.threads.len(), rows };
        flat_of(&self.sums, &self.tables.stacks, shape, counts, figures, group)
    }

    /// The samples of each thread as calls that begin and end, in order. Time is the sum of the weights
    /// before: the frames that two samples in a row have in common are one call.
    pub(super) fn call_events(&self, selection: &ProfileSelection) -> Vec<ThreadCallEvents> {
        let event = self.event();
        let mut threads: Vec<ThreadCallEvents> = (0..self.threads.len() as u32)
            .map(|thread| ThreadCallEvents { thread, ..ThreadCallEvents::default() })
            .collect();
        let mut open: Vec<Vec<u32>> = vec![Vec::new(); threads.len()];
        for (key, period) in &self.in_order {
            if !selection.has_thread(key.thread) {
                continue;
            }
            let (figures, count) = self.figures(&event, key, &SampleSum { count: 1, period: *period });
            let weight = figures[WEIGHT];
            if count == 0 || key.event as usize != self.event {
                continue;
            }
            let mut stack: Vec<u32> = self.stacks_from(key.stack);
            stack.reverse();
            let thread = &mut threads[key.thread as usize];
            let open = &mut open[key.thread as usize];
            let same = open.iter().zip(&stack).take_while(|(open, new)| open == new).count();
            let at = thread.last;
            let method = |stack: u32| self.tables.stacks.nodes()[stack as usize].frame;
            for stack in open.drain(same..).rev() {
                thread.events.push(CallEvent { at, method: method(stack), begins: false });
            }
            for new in &stack[same..] {
                thread.events.push(CallEvent { at, method: method(*new), begins: true });
                open.push(*new);
            }
            thread.last = at.saturating_add(weight);
        }
        for (thread, open) in threads.iter_mut().zip(open) {
            let at = thread.last;
            for stack in open.into_iter().rev() {
                let method = self.tables.stacks.nodes()[stack as usize].frame;
                thread.events.push(CallEvent { at, method, begins: false });
            }
        }
        threads.retain(|thread| !thread.events.is_empty());
        threads
    }

    /// A stack and those of its callers, innermost first.
    fn stacks_from(&self, stack: u32) -> Vec<u32> {
        let mut all = Vec::new();
        let mut at = stack;
        while at != NO_STACK && (at as usize) < self.tables.stacks.nodes().len() {
            all.push(at);
            at = self.tables.stacks.nodes()[at as usize].parent;
        }
        all
    }
}

/// Names the event types whose samples are in no column.
fn events_left_out(events: &[SampleEvent], chosen: usize) -> Option<String> {
    let others = events.iter().enumerate().filter(|(n, event)| *n != chosen && !event.is_off_cpu);
    let others = others.map(|(_, event)| event).filter(|event| event.samples > 0);
    let names: Vec<String> =
        others.map(|event| format!("{} ({} samples)", event.name, event.samples)).collect();
    let weighed = &events.get(chosen)?.name;
    (!names.is_empty()).then(|| {
        format!(
            "the samples of {weighed} are weighed; --event weighs those of another type: {}",
            names.join(", ")
        )
    })
}

/// Names the functions without a symbol, and says for how many samples that was of use.
fn symbolize_sums(
    tables: &mut SampleTables,
    sums: &mut SampleSums,
    symbols: &SymbolDirectory,
    report: &mut ReadReport,
) {
    let before = unsymbolised_percent(tables, sums);
    let symbolized = symbolize(tables, symbols);
    let mut renumbered = FxHashMap::default();
    for (key, sum) in sums.sums.drain() {
        let key = SampleKey { stack: symbolized.stack(key.stack), ..key };
        let together: &mut SampleSum = renumbered.entry(key).or_default();
        together.count += sum.count;
        together.period = together.period.saturating_add(sum.period);
    }
    sums.sums = renumbered;
    for (key, _) in sums.in_order.iter_mut().flatten() {
        key.stack = symbolized.stack(key.stack);
    }
    let after = unsymbolised_percent(tables, sums);
    report.notes.push(format!(
        "{after:.1} % of the samples lie in a function without a symbol, without --symbols {before:.1} %"
    ));
    report.notes.extend(symbolized.notes);
    if symbols.is_partial() {
        report.notes.push("--symbols: there are too many files, and not all of them are used".to_owned());
    }
}

/// The share of the samples whose innermost function has no symbol, percent.
fn unsymbolised_percent(tables: &SampleTables, sums: &SampleSums) -> f64 {
    let has_symbol = |stack: u32| {
        let innermost = tables.stacks.frames(stack).next();
        innermost.is_some_and(|frame| tables.frames[frame as usize].has_symbol)
    };
    let all: u64 = sums.sums.values().map(|sum| sum.count).sum();
    let unknown: u64 =
        sums.sums.iter().filter(|(key, _)| !has_symbol(key.stack)).map(|(_, sum)| sum.count).sum();
    if all == 0 { 0.0 } else { 100.0 * unknown as f64 / all as f64 }
}

/// The event type that is weighed: the requested one; else the first with samples of threads that run.
///
/// # Errors
/// [`ProfileError::NoSuchEvent`] where none has the requested name.
fn chosen_event(
    events: &[SampleEvent],
    requested: Option<&str>,
    input: &Input,
) -> Result<usize, ProfileError> {
    let Some(requested) = requested else {
        let running = events.iter().position(|event| event.samples > 0 && !event.is_off_cpu);
        return Ok(running.or_else(|| events.iter().position(|event| event.samples > 0)).unwrap_or(0));
    };
    events.iter().position(|event| event.name == requested).ok_or_else(|| {
        let known: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
        ProfileError::NoSuchEvent {
            name: input.name.clone(),
            requested: requested.to_owned(),
            known: known.join(", "),
        }
    })
}

/// The frames as methods. A function that several files have is named with its file.
fn methods(tables: &SampleTables) -> Vec<Method<'static>> {
    let mut files: HashMap<&str, Option<u32>> = HashMap::new();
    for frame in tables.frames.iter().filter(|frame| frame.kind != FrameKind::Java) {
        let module = files.entry(&frame.name).or_insert(Some(frame.module));
        *module = module.filter(|module| *module == frame.module);
    }
    let method = |(id, frame): (usize, &SampleFrame)| {
        let module = &tables.modules[frame.module as usize];
        let is_shared = files.get(frame.name.as_str()).is_some_and(Option::is_none);
        let (class, name) = match frame.method() {
            Some((class, name)) => (class.to_owned(), name.to_owned()),
            _ if is_shared && frame.has_symbol => {
                (String::new(), format!("{} [{}]", frame.name, module.file_name()))
            }
            _ => (String::new(), frame.name.clone()),
        };
        Method {
            id: id as u64,
            class: class.into(),
            name: name.into(),
            signature: "".into(),
            file: module.path.clone().into(),
            line: None,
            declared: true,
        }
    };
    tables.frames.iter().enumerate().map(method).collect()
}
