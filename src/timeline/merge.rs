//! Puts inputs on one clock and pushes them to an exporter.
//!
//! A recording is read at most twice, however many inputs there are. The first reading collects evidence:
//! it is made where method traces are to be placed, or other recordings may hold the same events. The
//! second reading pushes the events.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use super::align::clock_map::{self, ReferenceClock};
use super::align::kernel_evidence::KernelEvidence;
use super::align::placement::{MergeOptions, Placement};
use super::align::reason::PlaceReason;
use super::align::running_times::RunningTimes;
use super::align::sample_evidence::SampleEvidence;
use super::align::sample_place::{self, SampleComparison, SamplePlacement};
use super::align::{self, AlignError};
use super::dedup::DuplicateFilter;
use super::merge_error::MergeError;
use super::recording_pass::{EvidencePass, RecordingInput, Timeline};
use super::recording_place::{OpenRecording, Places, owner_of};
use super::sample_pass::PlacedSamples;
use super::sink::TimelineSink;
use super::summary::{InputSummary, MergeSummary, Verdict};
use crate::clock::{Clock, Timestamp};
use crate::formats::art_method::MethodTrace;
use crate::formats::input::Input;
use crate::formats::samples::{CountOnly, SampleRecording, SampleTables};
use crate::formats::{self, Head, OpenedInput, Order, ReadReport, Recording};
use crate::ids::Pid;

/// A method trace, and its number among the inputs.
type MethodInput<'a> = (usize, Box<MethodTrace<'a>>);

/// A file with samples, and its number among the inputs.
type SampleInput<'a> = (usize, Box<dyn SampleRecording + 'a>);

/// Reads all `inputs` and pushes them to `out`, in one clock.
///
/// # Errors
/// [`MergeError`]. The output that `out` has written until then is incomplete.
pub fn merge(
    inputs: &[Input],
    out: &mut dyn TimelineSink,
    options: &MergeOptions,
) -> Result<MergeSummary, MergeError> {
    let contained;
    let mut opened = inputs.iter().map(formats::open).collect::<Result<Vec<_>, _>>()?;
    contained = contained_traces(inputs, &opened);
    for input in &contained {
        opened.push(formats::open(input)?);
    }
    let all: Vec<&Input> = inputs.iter().chain(&contained).collect();
    merge_opened(&all, opened, out, options).inspect(log_inputs)
}

/// Logs how the inputs were put on one clock.
fn log_inputs(summary: &MergeSummary) {
    for input in &summary.inputs {
        let InputSummary { name, clock, verdict, why, offset_ns, .. } = input;
        input.explain.iter().for_each(|trial| log::debug!("{name}: tried: {trial}"));
        log::debug!("{name}: clock {clock}, {}: {why}; moved by {offset_ns} ns", verdict.name());
    }
}

/// The method traces in recordings: they are inputs of their own, behind the others.
fn contained_traces(inputs: &[Input], opened: &[OpenedInput<'_>]) -> Vec<Input> {
    inputs.iter().zip(opened).flat_map(|(input, opened)| opened.contained_inputs(&input.name)).collect()
}

/// [`merge`] of inputs that are open already; `opened` is in the order of `inputs`.
fn merge_opened(
    inputs: &[&Input],
    opened: Vec<OpenedInput<'_>>,
    out: &mut dyn TimelineSink,
    options: &MergeOptions,
) -> Result<MergeSummary, MergeError> {
    let mut recordings: Vec<OpenRecording<'_>> = Vec::new();
    let mut videos = Vec::new();
    let mut traces = Vec::new();
    let mut samples = Vec::new();
    for (index, input) in opened.into_iter().enumerate() {
        match input {
            OpenedInput::Recording(recording) if recording.video().is_some() => {
                videos.push((index, recording));
            }
            OpenedInput::Recording(recording) => recordings.push((index, recording)),
            OpenedInput::MethodTrace(trace) => traces.push((index, trace)),
            OpenedInput::Samples(recording) => samples.push((index, recording)),
        }
    }
    // Nothing is placed by a video, and no other recording holds its frames.
    let without_videos = recordings.len();
    recordings.extend(videos);
    let owner = owner_of(&recordings, inputs);
    let reference = reference_clock(inputs, owner, &recordings, &traces, &samples);
    let head = timeline_head(&recordings, &traces, &samples, &reference);
    let owner_recording = recordings.iter().find(|(index, _)| Some(*index) == owner);
    let owner_snapshots = owner_recording.map(|(_, recording)| recording.head().snapshots.clone());
    let owner_snapshots = owner_snapshots.unwrap_or_default();
    let places = Places { inputs, reference: &reference, owner, owner_snapshots };
    let mut recordings = places.place_all(recordings, |index| out.passes_through(index))?;
    let videos = recordings.split_off(without_videos);
    recordings.sort_by_key(kept_before_others);
    let traced: Vec<Option<Pid>> = traces.iter().map(|(_, trace)| trace.header().pid).collect();
    let scout = if recordings.len() == 1 { out.scout() } else { None };
    let samples = samples.into_iter().map(read_samples).collect::<io::Result<Vec<_>>>()?;
    let (evidence, running, duplicates) = gather_evidence(&recordings, &traced, &samples, scout)?;
    let mut placed = Vec::new();
    for (_, trace) in &mut traces {
        align::settle_counter_unit(trace, evidence.as_ref(), &reference);
    }
    for (index, trace) in &traces {
        let input = &inputs[*index];
        let evidence = evidence.as_ref();
        // The user's decision comes before that of the archive that the trace came in.
        let options = &MergeOptions { offset_ns: options.offset_ns.or(input.offset_ns), ..*options };
        let placement = align::align(&input.name, trace, evidence, &reference, options)?;
        placed.push((*index, trace.as_ref(), placement));
    }
    drop(evidence);
    recordings.extend(videos);
    let mut placed_samples =
        recordings.iter().filter_map(contained_samples).collect::<io::Result<Vec<_>>>()?;
    let samples = samples
        .into_iter()
        .map(|read| place_samples(inputs[read.index], read, running.as_ref(), &reference, options))
        .collect::<Result<Vec<_>, AlignError>>()?;
    placed_samples.extend(samples);
    drop(running);
    let blank = inputs.iter().map(|input| blank_summary(input, reference.clock)).collect();
    let notes = manifest_notes(inputs);
    let report = ReadReport { notes, ..ReadReport::default() };
    let summary = MergeSummary::new(reference.clock, blank, report);
    let mut timeline = Timeline::new(out, summary, duplicates);
    timeline.head(&head)?;
    timeline.announce_samples(&placed_samples)?;
    push_all(&mut timeline, &recordings, &placed, &placed_samples)?;
    for (index, input) in inputs.iter().enumerate() {
        timeline.add_report(index, ReadReport { damage: input.damage.clone(), ..ReadReport::default() });
    }
    Ok(timeline.finish()?)
}

/// A file with samples that was read once.
struct ReadSamples<'a> {
    /// The file's number among the inputs.
    index: usize,
    recording: Box<dyn SampleRecording + 'a>,
    tables: Arc<SampleTables>,
    evidence: SampleEvidence,
}

/// Reads samples for the first time: the tables are complete then, and evidence for the place is kept.
fn read_samples((index, recording): SampleInput<'_>) -> io::Result<ReadSamples<'_>> {
    let mut evidence = SampleEvidence::default();
    let tables = Arc::new(recording.read(&mut evidence)?.tables);
    Ok(ReadSamples { index, recording, tables, evidence })
}

/// Finds the place of samples on the timeline.
fn place_samples<'a>(
    input: &Input,
    read: ReadSamples<'a>,
    running: Option<&RunningTimes>,
    reference: &ReferenceClock,
    options: &MergeOptions,
) -> Result<PlacedSamples<'a>, AlignError> {
    let ReadSamples { index, recording, tables, evidence } = read;
    let name = &input.name;
    let comparison =
        SampleComparison { name, recording: recording.as_ref(), evidence: &evidence, running, reference };
    // The user's decision comes before that of the archive that the samples came in.
    let options = MergeOptions { offset_ns: options.offset_ns.or(input.offset_ns), ..*options };
    let placement = sample_place::place(&comparison, &options)?;
    let SamplePlacement { map, finding } = placement;
    Ok(PlacedSamples { index, recording, tables, map, finding: Some(finding) })
}

/// The samples that a recording holds beside its events.
fn contained_samples<'r>(input: &'r RecordingInput<'_>) -> Option<io::Result<PlacedSamples<'r>>> {
    let recording = input.recording.samples().filter(|_| input.has_samples)?;
    let reading = recording.read(&mut CountOnly);
    Some(reading.map(|reading| PlacedSamples {
        index: input.index,
        recording,
        tables: Arc::new(reading.tables),
        map: input.map.clone(),
        finding: None,
    }))
}

/// The sort key of recordings. Where several recordings hold the same events, the events of the first one
/// by this key are kept: a recording that passes through whole, then the recording with the most exact
/// times, and among equally exact recordings the one that was given first.
fn kept_before_others(recording: &RecordingInput<'_>) -> Reverse<(bool, u8)> {
    Reverse((recording.passes_through, recording.recording.head().precision))
}

/// Reads the recordings whose events are compared with other inputs. Where method traces are to be placed,
/// these are all recordings; `traced` are the processes of the traces, where they tell them. The same holds
/// for samples. Where several recordings may hold the same events, it is the recording whose events are kept.
/// The scout looks at the recording in the same pass.
fn gather_evidence(
    recordings: &[RecordingInput<'_>],
    traced: &[Option<Pid>],
    samples: &[ReadSamples<'_>],
    mut scout: Option<&mut dyn TimelineSink>,
) -> io::Result<(Option<KernelEvidence>, Option<RunningTimes>, DuplicateFilter)> {
    let mut duplicates = DuplicateFilter::default();
    let with_method_traces = !traced.is_empty() && !recordings.is_empty();
    let mut evidence = with_method_traces.then(|| KernelEvidence::of_processes(traced));
    let with_samples = !samples.is_empty() && !recordings.is_empty();
    let sampled = samples.iter().flat_map(|samples| samples.tables.threads.iter().map(|thread| thread.tid));
    let mut running = with_samples.then(|| RunningTimes::of_threads(sampled));
    let kept = recordings.iter().min_by_key(|r| kept_before_others(r)).filter(|_| recordings.len() > 1);
    for input in recordings {
        let is_kept = kept.is_some_and(|kept| kept.index == input.index);
        if evidence.is_none() && running.is_none() && !is_kept && scout.is_none() {
            continue;
        }
        let order = if scout.is_some() { Order::Markers } else { Order::Any };
        let mut pass = EvidencePass {
            map: &input.map,
            evidence: evidence.as_mut(),
            running: running.as_mut(),
            duplicates: is_kept.then_some(&mut duplicates),
            scout: scout.as_deref_mut(),
        };
        let report = input.recording.read(order, &mut pass)?;
        if let Some(scout) = &mut scout {
            scout.finish(&MergeSummary::new(input.recording.head().clock, Vec::new(), report))?;
        }
    }
    if let Some(evidence) = &mut evidence {
        evidence.finish();
    }
    if let Some(running) = &mut running {
        running.finish();
    }
    Ok((evidence, running, duplicates))
}

/// Pushes method traces, samples and recordings. For an exporter that wants everything in order of time, the
/// first recording is pushed as it is read. All other inputs are buffered in memory and pushed between its
/// events.
fn push_all(
    timeline: &mut Timeline<'_>,
    recordings: &[RecordingInput<'_>],
    placed: &[(usize, &MethodTrace<'_>, Placement)],
    samples: &[PlacedSamples<'_>],
) -> io::Result<()> {
    let in_order = timeline.order() == Order::Time;
    let edges_in_order = timeline.edge_order() == Order::Time;
    if edges_in_order {
        timeline.buffer_method_traces(placed)?;
        timeline.push_samples(samples, true)?;
    }
    for input in recordings.iter().skip(1) {
        timeline.push_recording(input, true, in_order)?;
    }
    if let Some(first) = recordings.first() {
        timeline.push_recording(first, false, false)?;
    }
    timeline.push_buffered_until(Timestamp::MAX)?;
    if edges_in_order {
        return Ok(());
    }
    timeline.push_method_traces(placed)?;
    timeline.push_samples(samples, false)
}

/// The timeline's clock: the one that the manifest of an archive states, else BOOTTIME, where snapshots
/// convert the clock of the recording `owner`, else the clock of that recording. Without recordings it is the
/// usual clock of the first method trace, or that of the first samples.
fn reference_clock(
    inputs: &[&Input],
    owner: Option<usize>,
    recordings: &[OpenRecording<'_>],
    traces: &[MethodInput<'_>],
    samples: &[SampleInput<'_>],
) -> ReferenceClock {
    let heads = || recordings.iter().map(|(_, recording)| recording.head());
    let snapshots = heads().map(|head| &head.snapshots).find(|s| !s.list.is_empty()).cloned();
    let snapshots = snapshots.unwrap_or_default();
    let owner = recordings.iter().find(|(index, _)| Some(*index) == owner);
    let clock = match owner.map(|(_, recording)| recording.head().clock) {
        None => {
            let of_samples = || samples.first().map_or(Clock::Unknown, |(_, samples)| samples.clock());
            traces.first().map_or_else(of_samples, |(_, trace)| align::usual_clock(trace))
        }
        Some(Clock::Unknown) => Clock::Unknown,
        Some(clock) => {
            let wanted = inputs.iter().find_map(|input| input.place.as_ref()?.trace_time);
            let mut clocks = wanted.into_iter().chain([Clock::Boottime]);
            let is_reached = |to: &Clock| !clock_map::segments(&snapshots, clock, *to).is_empty();
            clocks.find(is_reached).unwrap_or(clock)
        }
    };
    ReferenceClock { clock, snapshots }
}

/// Notes about machines and descriptions in the manifests of archives.
fn manifest_notes(inputs: &[&Input]) -> Vec<String> {
    let places = || inputs.iter().filter_map(|input| input.place.as_deref());
    let machines: BTreeSet<&str> = places().filter_map(|place| place.machine.as_deref()).collect();
    let mut notes = Vec::new();
    if machines.len() > 1 {
        let names = machines.into_iter().collect::<Vec<_>>().join(", ");
        notes.push(format!(
            "the archive's manifest names several machines ({names}): threads, processes and CPUs of equal \
             numbers are shown as one"
        ));
    }
    let attributes = places().flat_map(|place| &place.attributes);
    notes.extend(attributes.map(|(key, value)| format!("attribute of the archive: {key} = {value}")));
    notes
}

fn timeline_head(
    recordings: &[(usize, Box<dyn Recording + '_>)],
    traces: &[MethodInput<'_>],
    samples: &[SampleInput<'_>],
    reference: &ReferenceClock,
) -> Head {
    let heads = || recordings.iter().map(|(_, recording)| recording.head());
    let formats: Vec<String> = heads()
        .map(|head| head.format.clone())
        .chain(traces.iter().map(|(_, trace)| trace.format()))
        .chain(samples.iter().map(|(_, samples)| samples.format()))
        .collect();
    Head {
        format: formats.join(" + "),
        clock: reference.clock,
        precision: heads().map(|head| head.precision).max().unwrap_or(9),
        snapshots: reference.snapshots.clone(),
        cpus: heads().filter_map(|head| head.cpus).max(),
        machine: heads().find_map(|head| head.machine.clone()),
        device: heads().find_map(|head| head.device.clone()),
        android_sdk: heads().find_map(|head| head.android_sdk),
        facts: heads().find_map(|head| head.facts.clone()),
    }
}

/// The summary of an input before it is read.
fn blank_summary(input: &Input, clock: Clock) -> InputSummary {
    InputSummary {
        name: input.name.clone(),
        size: input.size,
        format: String::new(),
        clock,
        why: PlaceReason::default(),
        offset_ns: 0,
        verdict: Verdict::Assumed,
        error_ns: None,
        confidence: None,
        residual_median_ns: None,
        residual_p99_ns: None,
        explain: Vec::new(),
        events: 0,
        duplicates: 0,
        method_edges: 0,
        samples: 0,
        header: Vec::new(),
        video: None,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::test_data::method_trace;
    use super::*;
    use crate::formats::ftrace_text::TextRecording;
    use crate::formats::{Event, EventType, Sink};

    /// A recording that counts how often it is read.
    struct CountingRecording<'a> {
        text: TextRecording<'a>,
        reads: &'a Cell<u32>,
    }

    impl Recording for CountingRecording<'_> {
        fn head(&self) -> &Head {
            self.text.head()
        }

        fn read(&self, order: Order, sink: &mut dyn Sink) -> io::Result<ReadReport> {
            self.reads.set(self.reads.get() + 1);
            self.text.read(order, sink)
        }
    }

    struct EventCounter {
        order: Order,
        events: u64,
    }

    impl Sink for EventCounter {
        fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
            self.events += 1;
            Ok(())
        }
    }

    impl TimelineSink for EventCounter {
        fn order(&mut self) -> Order {
            self.order
        }
        fn finish(&mut self, _: &MergeSummary) -> io::Result<()> {
            Ok(())
        }
    }

    /// Merges recordings and method traces. Each recording has three markers, one of which all recordings
    /// share. Returns how often each recording was read, and how many events the exporter received.
    fn reads(recordings: usize, traces: usize, order: Order) -> (Vec<u32>, u64) {
        let text = |n: usize| {
            let line = |at: usize| format!(" a-7 (    7) [000] ...1 {at}.5: tracing_mark_write: I|7|x\n");
            format!("# tracer: nop\n#\n{}{}{}", line(1), line(10 + n), line(20 + n))
        };
        let texts = (0..recordings).map(|n| Input::from_bytes(&format!("{n}.txt"), text(n).into_bytes()));
        let trace = method_trace(1_000_000, &[(7, 0, 0, 0, 10), (7, 0, 1, 0, 30)]);
        let traces = (0..traces).map(|n| Input::from_bytes(&format!("{n}.trace"), trace.clone()));
        let inputs: Vec<Input> = texts.chain(traces).collect();
        let counts: Vec<Cell<u32>> = vec![Cell::new(0); recordings];
        let opened = inputs.iter().enumerate().map(|(n, input)| match counts.get(n) {
            Some(reads) => {
                let text = TextRecording::open(input);
                OpenedInput::Recording(Box::new(CountingRecording { text, reads }))
            }
            None => formats::open(input).unwrap(),
        });
        let mut sink = EventCounter { order, events: 0 };
        let options = MergeOptions { offset_ns: Some(0), clock: None };
        merge_opened(&inputs.iter().collect::<Vec<_>>(), opened.collect(), &mut sink, &options).unwrap();
        (counts.iter().map(Cell::get).collect(), sink.events)
    }

    #[test]
    fn each_recording_is_read_at_most_twice_however_many_inputs_there_are() {
        for order in [Order::Any, Order::Time] {
            assert_eq!(reads(1, 0, order), (vec![1], 3), "nothing to compare with");
            assert_eq!(reads(1, 1, order), (vec![2], 3));
            assert_eq!(reads(1, 5, order), (vec![2], 3));
            assert_eq!(
                reads(3, 0, order),
                (vec![2, 1, 1], 7),
                "only the kept recording is read for duplicates"
            );
            assert_eq!(reads(3, 4, order), (vec![2, 2, 2], 7));
        }
    }
}
