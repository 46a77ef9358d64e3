//! Puts inputs on one clock and pushes them to an exporter.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::align::{self, Reference};
use super::map::{self, ClockMap};
use super::methods::{self, Numbers};
use super::place::Placement;
use super::source::{Kernel, Opened, Source, SourceError};
use super::stored::{Known, Stored};
use super::{Edge, InputSummary, MergeSummary, MethodId, MethodName, MethodThread, TimelineSink, Verdict};
use crate::clock::{Clock, Snapshots};
use crate::formats::art_method::{CallAnomalies, MethodTrace};
use crate::formats::{
    Damage, Event, EventType, EventTypeId, Head, Order, ProcessInfo, ReadReport, Sink, ThreadInfo,
};
use crate::ftrace::print_fmt::Symbolizer;
use crate::markers::Marker;

/// What the user decides instead of the evidence.
#[derive(Debug, Clone, Copy, Default)]
pub struct MergeOptions {
    /// ns to add to the method trace's times.
    pub offset_ns: Option<i64>,
    /// The clock of the method trace's start.
    pub clock: Option<Clock>,
}

/// Why a merge was not done.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// An input.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Nothing tells where a method trace lies.
    #[error(transparent)]
    Align(#[from] align::AlignError),
    /// The exporter, or the reader's format.
    #[error("{0}")]
    Io(#[from] io::Error),
}

struct KernelInput<'a> {
    index: usize,
    kernel: Kernel<'a>,
    head: Head,
}

/// Reads all `sources` and pushes them to `out`, in one clock.
///
/// # Errors
/// [`MergeError`]; what `out` has been given until then is no whole file.
pub fn merge(
    sources: &[Source],
    out: &mut dyn TimelineSink,
    options: &MergeOptions,
) -> Result<MergeSummary, MergeError> {
    let (mut kernels, mut traces) = (Vec::new(), Vec::new());
    for (index, source) in sources.iter().enumerate() {
        match source.read()? {
            Opened::Kernel(kernel) => kernels.push(KernelInput { index, head: kernel.head()?, kernel }),
            Opened::Method(trace) => traces.push((index, trace)),
        }
    }
    let reference = reference(&kernels, &traces);
    let mut placed = Vec::new();
    for (index, trace) in &traces {
        let inputs: Vec<_> = kernels.iter().map(|k| (&k.kernel, place_kernel(k, &reference).0)).collect();
        placed.push((
            *index,
            trace.as_ref(),
            align::place(&sources[*index].input.name, trace, &inputs, &reference, options)?,
        ));
    }
    let mut run = Run {
        outcome: MergeSummary {
            clock: reference.clock,
            inputs: sources.iter().map(|s| blank(s, reference.clock)).collect(),
            report: ReadReport::default(),
            markers: 0,
            methods: 0,
            problems: CallAnomalies::default(),
            threads: 0,
        },
        seen: Vec::new(),
        next_kind: 0,
        pending: Vec::new(),
        stored: Vec::new(),
        known: Known::default(),
        out,
    };
    run.out.head(&timeline_head(&kernels, &traces, &reference))?;
    let in_order = run.out.order() == Order::Time;
    if in_order {
        run.all_methods(&placed)?;
        // A stable sort keeps each thread's own order where times are equal.
        run.pending.sort_by_key(|(_, edge)| edge.ts);
        run.pending.reverse();
    }
    // The first one is the one to keep where others have the same: the most exact, and of those the first given.
    kernels.sort_by_key(|k| std::cmp::Reverse(k.head.precision));
    if let [first, _, ..] = kernels.as_slice() {
        run.known.map = place_kernel(first, &reference).0;
        first.kernel.read(Order::Any, &mut run.known)?;
    }
    // In order, the others are kept, and come in between the events of the first one.
    for input in kernels.iter().skip(1) {
        run.kernel(input, &reference, true, in_order)?;
    }
    if let Some(first) = kernels.first() {
        run.kernel(first, &reference, false, false)?;
    }
    run.until(u64::MAX)?;
    if !in_order {
        run.all_methods(&placed)?;
    }
    for (index, source) in sources.iter().enumerate() {
        let (damage, none) = (source.input.damage.clone(), ReadReport::default());
        run.wrong(index, ReadReport { damage, ..none });
    }
    run.outcome.threads = run.seen.iter().map(|word| u64::from(word.count_ones())).sum();
    run.out.finish(&run.outcome)?;
    run.outcome.report.notes.extend(run.out.notes());
    Ok(run.outcome)
}

/// The timeline's clock: BOOTTIME where the first recording's clock can be expressed in it, else that clock.
fn reference(kernels: &[KernelInput<'_>], traces: &[(usize, Box<MethodTrace<'_>>)]) -> Reference {
    let snapshots = kernels.iter().map(|k| &k.head.snapshots).find(|s| !s.list.is_empty()).cloned();
    let snapshots = snapshots.unwrap_or_default();
    let clock = match kernels.iter().map(|k| k.head.clock).find(|c| *c != Clock::Unknown) {
        Some(clock) if map::eras(&snapshots, clock, Clock::Boottime).is_empty() => clock,
        Some(_) => Clock::Boottime,
        None if kernels.is_empty() => traces.first().map_or(Clock::Unknown, |(_, t)| align::usual_clock(t)),
        None => Clock::Unknown,
    };
    Reference { clock, snapshots }
}

fn timeline_head(
    kernels: &[KernelInput<'_>],
    traces: &[(usize, Box<MethodTrace<'_>>)],
    reference: &Reference,
) -> Head {
    let formats: Vec<String> =
        kernels.iter().map(|k| k.head.format.clone()).chain(traces.iter().map(|(_, t)| t.format())).collect();
    Head {
        format: formats.join(" + "),
        clock: reference.clock,
        precision: kernels.iter().map(|k| k.head.precision).max().unwrap_or(9),
        snapshots: reference.snapshots.clone(),
        cpus: kernels.iter().filter_map(|k| k.head.cpus).max(),
        machine: kernels.iter().find_map(|k| k.head.machine.clone()),
    }
}

fn blank(source: &Source, clock: Clock) -> InputSummary {
    InputSummary {
        name: source.input.name.clone(),
        size: source.input.size,
        format: source.format.name().into(),
        clock,
        why: String::new(),
        offset_ns: 0,
        verdict: Verdict::Assumed,
        residual_median_ns: None,
        residual_p99_ns: None,
        explain: Vec::new(),
        events: 0,
        duplicates: 0,
        method_edges: 0,
    }
}

/// From a recording's clock to the timeline's, how sure that is, and why.
fn place_kernel(input: &KernelInput<'_>, reference: &Reference) -> (ClockMap, Verdict, String) {
    let clock = input.head.clock;
    if clock == reference.clock {
        return (
            ClockMap::default(),
            Verdict::Consistent,
            format!("it is recorded in {clock}, the timeline's clock"),
        );
    }
    let own: &Snapshots =
        if input.head.snapshots.list.is_empty() { &reference.snapshots } else { &input.head.snapshots };
    match map::joined(&map::eras(own, clock, reference.clock)) {
        Some(map) => {
            (map, Verdict::Consistent, format!("{clock} is turned into {} by snapshots", reference.clock))
        }
        None => (
            ClockMap::default(),
            Verdict::Assumed,
            format!("nothing ties {clock} to {}: the times are taken as they are", reference.clock),
        ),
    }
}

struct Run<'o> {
    outcome: MergeSummary,
    /// A bit for each thread id seen.
    seen: Vec<u64>,
    next_kind: u32,
    /// For an exporter that wants everything in order: edges to come, the latest first.
    pending: Vec<(u32, Edge)>,
    /// The same for events of all recordings but one.
    stored: Vec<Stored>,
    /// What those of several recordings have that were read before.
    known: Known,
    out: &'o mut dyn TimelineSink,
}

type Placed<'t, 'a> = (usize, &'t MethodTrace<'a>, Placement);

impl Run<'_> {
    fn all_methods(&mut self, placed: &[Placed<'_, '_>]) -> io::Result<()> {
        let mut numbers = Numbers::default();
        for (index, trace, placement) in placed {
            self.methods(*index, trace, placement, &mut numbers)?;
        }
        Ok(())
    }

    /// Pushes what was kept and is due.
    #[inline]
    fn until(&mut self, ts: u64) -> io::Result<()> {
        if self.pending.is_empty() && self.stored.is_empty() { Ok(()) } else { self.kept_until(ts) }
    }

    fn kept_until(&mut self, ts: u64) -> io::Result<()> {
        loop {
            let next = self.stored.iter_mut().min_by_key(|s| s.next_ts().unwrap_or(u64::MAX));
            let Some(next) = next.filter(|s| s.next_ts().is_some_and(|t| t <= ts)) else { break };
            if let Some(at) = next.next_ts() {
                while let Some((thread, edge)) = self.pending.pop_if(|(_, edge)| edge.ts <= at) {
                    self.out.edges(thread, &[edge])?;
                }
            }
            next.pop(self.out)?;
        }
        while let Some((thread, edge)) = self.pending.pop_if(|(_, edge)| edge.ts <= ts) {
            self.out.edges(thread, &[edge])?;
        }
        Ok(())
    }

    /// Pushes one recording: without what is `known` from another, and `store`d until its time comes.
    fn kernel(
        &mut self,
        input: &KernelInput<'_>,
        reference: &Reference,
        known: bool,
        store: bool,
    ) -> io::Result<()> {
        let (map, mut verdict, mut why) = place_kernel(input, reference);
        self.known.next_recording();
        let order = self.out.order();
        let mut sink = Pass {
            map: (map != ClockMap::default()).then_some(map),
            kinds: Vec::new(),
            is_print: Vec::new(),
            events: 0,
            first_offset: None,
            without_known: known,
            twice: BTreeMap::new(),
            stored: store.then(Stored::default),
            run: self,
        };
        let mut report = input.kernel.read(order, &mut sink)?;
        let (events, offset) = (sink.events, sink.first_offset.unwrap_or(0));
        let (twice, stored) = (sink.twice, sink.stored);
        if let Some(mut stored) = stored {
            stored.sort();
            self.stored.push(stored);
        }
        let duplicates: u64 = twice.values().sum();
        for (cpu, count) in &twice {
            if let Some(counted) = report.cpus.get_mut(cpu) {
                counted.events = counted.events.saturating_sub(*count);
                // The same buffer: its losses were counted with the first recording.
                (counted.lost, counted.gaps) = (0, 0);
            }
        }
        if duplicates > 0 {
            verdict = Verdict::Proven;
            why =
                format!("{why}; {duplicates} of its events are in another recording too, at the same times");
        }
        let about = &mut self.outcome.inputs[input.index];
        about.format = input.head.format.clone();
        about.clock = input.head.clock;
        (about.verdict, about.why, about.offset_ns, about.events) = (verdict, why, offset, events);
        about.duplicates = duplicates;
        let total = &mut self.outcome.report;
        for (cpu, count) in report.cpus {
            let sum = total.cpus.entry(cpu).or_default();
            sum.events += count.events;
            sum.lost += count.lost;
            sum.gaps += count.gaps;
        }
        let moved = |t: Option<u64>| t.map(|t| t.saturating_add_signed(offset));
        extend(total, moved(report.first_ts), moved(report.last_ts));
        self.wrong(input.index, ReadReport { cpus: Default::default(), ..report });
        Ok(())
    }

    /// Takes over what is wrong with an input. Where there are several, each line names its own.
    fn wrong(&mut self, index: usize, report: ReadReport) {
        let several = self.outcome.inputs.len() > 1;
        let name = self.outcome.inputs[index].name.clone();
        let named = |line: String| if several { format!("{name}: {line}") } else { line };
        let total = &mut self.outcome.report;
        total.damage.extend(report.damage.into_iter().map(|d| Damage { what: named(d.what), ..d }));
        total.irregular.extend(report.irregular.into_iter().map(named));
        total.notes.extend(report.notes.into_iter().map(named));
    }

    fn methods(
        &mut self,
        index: usize,
        trace: &MethodTrace<'_>,
        placement: &Placement,
        numbers: &mut Numbers,
    ) -> io::Result<()> {
        let counts = if self.out.order() == Order::Time {
            methods::push(trace, placement, numbers, &mut Collector { run: self })?
        } else {
            methods::push(trace, placement, numbers, self.out)?
        };
        let finding = &placement.finding;
        let about = &mut self.outcome.inputs[index];
        about.format = trace.format();
        about.clock = finding.clock;
        about.verdict = finding.verdict;
        about.why = finding.why.clone();
        about.offset_ns = placement.time(0, 0, placement.start).wrapping_sub(placement.start) as i64;
        about.residual_median_ns = finding.median;
        about.residual_p99_ns = finding.p99;
        about.explain = finding.explain.clone();
        about.method_edges = 2 * counts.enters;
        self.outcome.methods += counts.enters;
        self.outcome.problems.add(counts.problems);
        extend(&mut self.outcome.report, counts.first, counts.last);
        let mut report = trace.report().clone();
        report.irregular.extend(counts.problems.lines());
        self.wrong(index, report);
        for (thread, identity) in trace.threads().iter().zip(&placement.identities) {
            if let Some(tid) = identity.tid {
                mark(&mut self.seen, tid);
            }
            if let Some(doubt) = &identity.doubt {
                let name = thread.label();
                self.outcome.report.notes.push(format!("thread {name} (id {}): {doubt}", thread.id));
            }
        }
        Ok(())
    }
}

fn extend(report: &mut ReadReport, first: Option<u64>, last: Option<u64>) {
    report.first_ts = [report.first_ts, first].into_iter().flatten().min();
    report.last_ts = report.last_ts.max(last);
}

/// Thread ids go up to 2^22 (`PID_MAX_LIMIT`).
fn mark(seen: &mut Vec<u64>, tid: i32) {
    let Ok(bit) = usize::try_from(tid) else { return };
    if bit >= 1 << 22 {
        return;
    }
    if seen.len() <= bit / 64 {
        seen.resize(bit / 64 + 1, 0);
    }
    seen[bit / 64] |= 1 << (bit % 64);
}

/// Keeps edges until their time comes.
struct Collector<'r, 'o> {
    run: &'r mut Run<'o>,
}

impl Sink for Collector<'_, '_> {
    fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
        Ok(())
    }
}

impl TimelineSink for Collector<'_, '_> {
    fn method(&mut self, id: MethodId, name: &MethodName<'_>) -> io::Result<()> {
        self.run.out.method(id, name)
    }
    fn method_thread(&mut self, thread: &MethodThread) -> io::Result<()> {
        self.run.out.method_thread(thread)
    }
    fn edges(&mut self, thread: u32, edges: &[Edge]) -> io::Result<()> {
        self.run.pending.extend(edges.iter().map(|edge| (thread, *edge)));
        Ok(())
    }
    fn finish(&mut self, _: &MergeSummary) -> io::Result<()> {
        Ok(())
    }
}

/// One recording's events on their way to the exporter: kinds numbered over all inputs, times in the one clock.
struct Pass<'r, 'o> {
    map: Option<ClockMap>,
    kinds: Vec<EventTypeId>,
    is_print: Vec<Option<usize>>,
    events: u64,
    first_offset: Option<i64>,
    without_known: bool,
    /// Events left out per CPU, since another recording has them.
    twice: BTreeMap<u32, u64>,
    stored: Option<Stored>,
    run: &'r mut Run<'o>,
}

impl Sink for Pass<'_, '_> {
    fn event_type(&mut self, _: EventTypeId, kind: &EventType) -> io::Result<()> {
        let id = EventTypeId(self.run.next_kind);
        self.run.next_kind += 1;
        self.kinds.push(id);
        self.is_print.push((kind.name == "print").then(|| kind.field("buf")).flatten());
        if let Some(stored) = &mut self.stored {
            stored.kind(kind);
        }
        self.run.out.event_type(id, kind)
    }

    fn kernel(&mut self, context: &Arc<Symbolizer>) -> io::Result<()> {
        self.run.out.kernel(context)
    }

    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        self.run.out.thread(thread)
    }

    fn process(&mut self, process: &ProcessInfo<'_>) -> io::Result<()> {
        self.run.out.process(process)
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        let index = event.kind.0 as usize;
        let mut event = *event;
        event.kind = *self.kinds.get(index).ok_or_else(|| io::Error::other("an event of no kind"))?;
        if let Some(map) = &self.map {
            let offset = map.offset_at(event.ts);
            self.first_offset.get_or_insert(offset);
            event.ts = event.ts.saturating_add_signed(offset);
        }
        if self.without_known {
            if self.run.known.meet(&event, kind) {
                *self.twice.entry(event.cpu).or_default() += 1;
                return Ok(());
            }
            self.run.known.learn(&event, kind);
        }
        mark(&mut self.run.seen, event.tid);
        if let Some(buf) = self.is_print[index]
            && event.text(kind, buf).is_some_and(|text| Marker::parse(text).is_some())
        {
            self.run.outcome.markers += 1;
        }
        self.events += 1;
        if let Some(stored) = &mut self.stored {
            stored.push(&event, index);
            return Ok(());
        }
        self.run.until(event.ts)?;
        self.run.out.event(&event, kind)
    }

    fn lost(&mut self, cpu: u32, count: Option<u64>) -> io::Result<()> {
        self.run.out.lost(cpu, count)
    }
}
