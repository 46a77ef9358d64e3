//! Samples as a page draws them: strips of stacks on their threads. A sample stands for the time until the
//! next one of its thread; where the next one is late, because the thread did not run, for the time between
//! two samples. Functions that neighbouring samples have in common are one call, so that the panels for calls
//! take them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::collector::PageCollector;
use super::columns::SpanColumns;
use super::tracks::{Name, Owner, TrackRole};
use crate::clock::Timestamp;
use crate::formats::samples::{Sample, SampleEvent, SampleRate, SampleTables};
use crate::ids::Tid;
use crate::timeline::{MethodId, MethodName};

/// The length of a sample whose event type does not tell how often samples are taken, ns.
const UNKNOWN_INTERVAL_NS: u64 = 1_000_000;

/// The samples of a timeline, until all are known.
#[derive(Default)]
pub(super) struct SampleStrips {
    sets: Vec<Arc<SampleTables>>,
    /// Each with the number of its set.
    samples: Vec<(u32, Sample)>,
}

/// The contents of one strip: an event type of a set, on a thread.
type StripKey = (Tid, u32, u32);

impl SampleStrips {
    pub fn add_set(&mut self, tables: &Arc<SampleTables>) {
        self.sets.push(Arc::clone(tables));
    }

    pub fn add(&mut self, set: u32, sample: &Sample) {
        self.samples.push((set, *sample));
    }

    /// Adds the tracks of all samples to the page.
    pub fn add_tracks(self, page: &mut PageCollector) {
        let mut strips: BTreeMap<StripKey, Vec<Sample>> = BTreeMap::new();
        for (set, sample) in self.samples {
            let tid = self.sets[set as usize].threads[sample.thread as usize].tid;
            if tid.is_thread() {
                strips.entry((tid, set, sample.event)).or_default().push(sample);
            }
        }
        let mut methods: HashMap<(u32, u32), u32> = HashMap::new();
        for ((tid, set, number), mut samples) in strips {
            samples.sort_by_key(|sample| sample.time);
            let tables = &self.sets[set as usize];
            let event = &tables.events[number as usize];
            let is_alone = tables.events.iter().filter(|other| !other.is_off_cpu).count() == 1;
            let name = match event.is_off_cpu {
                true => "Samples: off CPU".to_owned(),
                false if is_alone => "Samples".to_owned(),
                false => format!("Samples: {}", event.name),
            };
            // The panels for calls take the calls of a method trace, where there is one of the thread: they
            // would count the time twice. Of several event types they take one.
            let has_calls = page.method_threads.iter().flatten().any(|(thread, _)| thread.tid == Some(tid));
            let is_first = tables.events.iter().position(|other| !other.is_off_cpu) == Some(number as usize);
            let spans = spans_of(&samples, event);
            if has_calls || !is_first {
                let mut label =
                    |frame: u32| (frame, page.strings.id(tables.frames[frame as usize].name.as_bytes()));
                let labels: HashMap<u32, u32> =
                    frames_of(tables, &samples).into_iter().map(&mut label).collect();
                let strip =
                    page.tracks.slices(TrackRole::Samples, Owner::thread(tid), Name::Named(name.as_bytes()));
                let begin = |strip: &mut SpanColumns, ts, frame| strip.begin(ts, labels[&frame]);
                draw(tables, &spans, strip, begin, |strip, ts| strip.end(ts, false));
                continue;
            }
            for frame in frames_of(tables, &samples) {
                methods.entry((set, frame)).or_insert_with(|| {
                    let next = page.methods.len() as u32;
                    page.method_name(MethodId(next), &method_name(tables, frame));
                    next
                });
            }
            let track = page.tracks.add_sample_calls(Owner::thread(tid), name);
            let Some(strip) = page.tracks.calls(track) else { continue };
            let begin =
                |strip: &mut SpanColumns, ts, frame| strip.begin_call(ts, methods[&(set, frame)], None);
            draw(tables, &spans, strip, begin, |strip, ts| strip.end_call(ts, None));
        }
    }
}

/// A stack over a stretch of time.
struct StackSpan {
    start: Timestamp,
    end: Timestamp,
    stack: u32,
}

/// The times that samples stand for, in order.
fn spans_of(samples: &[Sample], event: &SampleEvent) -> Vec<StackSpan> {
    let interval = match event.rate {
        SampleRate::Hz(hz) => 1_000_000_000 / hz.max(1),
        SampleRate::Period(ns) if event.is_time => ns,
        _ => UNKNOWN_INTERVAL_NS,
    };
    let span = |(number, sample): (usize, &Sample)| {
        let next = samples.get(number + 1).map(|next| next.time);
        let gap = next.map(|next| next - sample.time);
        let is_late = |gap: &u64| *gap > interval.saturating_add(interval / 2);
        let length = if event.is_off_cpu {
            sample.period
        } else {
            gap.filter(|gap| !is_late(gap)).unwrap_or(interval)
        };
        let end = sample.time.saturating_add(length);
        StackSpan { start: sample.time, end: next.map_or(end, |next| end.min(next)), stack: sample.stack }
    };
    samples.iter().enumerate().map(span).collect()
}

/// All frames on the stacks of samples.
fn frames_of(tables: &SampleTables, samples: &[Sample]) -> Vec<u32> {
    let mut stacks: Vec<u32> = samples.iter().map(|sample| sample.stack).collect();
    stacks.sort_unstable();
    stacks.dedup();
    let mut frames: Vec<u32> = stacks.into_iter().flat_map(|stack| tables.stacks.frames(stack)).collect();
    frames.sort_unstable();
    frames.dedup();
    frames
}

/// A method of Java with its class; another function by its name alone, and its file.
fn method_name(tables: &SampleTables, frame: u32) -> MethodName<'_> {
    let frame = &tables.frames[frame as usize];
    let file = tables.modules.get(frame.module as usize).map_or("", |module| module.file_name());
    match frame.method() {
        Some((class, name)) => MethodName { class, name, signature: "", file, line: None },
        None => MethodName { class: "", name: &frame.name, signature: "", file, line: None },
    }
}

/// Draws the stacks: what two neighbours have in common goes on.
fn draw(
    tables: &SampleTables,
    spans: &[StackSpan],
    strip: &mut SpanColumns,
    begin: impl Fn(&mut SpanColumns, Timestamp, u32),
    end: impl Fn(&mut SpanColumns, Timestamp),
) {
    // The stacks that are open, from the outermost call to the innermost: a stack is the number of its node.
    let mut open: Vec<u32> = Vec::new();
    let mut until = Timestamp::MIN;
    for span in spans {
        let mut stack: Vec<u32> = Vec::new();
        let mut at = span.stack;
        while let Some(node) = tables.stacks.nodes().get(at as usize) {
            stack.push(at);
            at = node.parent;
        }
        stack.reverse();
        let goes_on = until == span.start;
        let common = open.iter().zip(&stack).take_while(|(open, new)| goes_on && open == new).count();
        for _ in common..open.len() {
            end(strip, until);
        }
        open.truncate(common);
        for node in &stack[common..] {
            begin(strip, span.start, tables.stacks.nodes()[*node as usize].frame);
            open.push(*node);
        }
        until = span.end;
    }
    open.iter().for_each(|_| end(strip, until));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::samples::NO_STACK;

    #[test]
    fn a_sample_lasts_until_the_next_one_unless_that_is_late() {
        let sample = |time| Sample {
            time: Timestamp(time),
            thread: 0,
            event: 0,
            stack: NO_STACK,
            cpu: None,
            period: 1,
        };
        let event = SampleEvent { rate: SampleRate::Hz(1_000), ..SampleEvent::default() };
        let times = [5_000_000, 6_100_000, 9_000_000, 9_200_000];
        let spans = spans_of(&times.map(sample), &event);
        let lengths: Vec<u64> = spans.iter().map(|span| span.end - span.start).collect();
        assert_eq!(lengths, [1_100_000, 1_000_000, 200_000, 1_000_000]);
    }

    #[test]
    fn what_neighbouring_stacks_have_in_common_is_one_call() {
        let mut tables = SampleTables::default();
        let [deep, other] = [[0, 1], [0, 2]].map(|frames| tables.stacks.of_frames(frames));
        let span = |start, end, stack| StackSpan { start: Timestamp(start), end: Timestamp(end), stack };
        let mut strip = SpanColumns::default();
        let spans = [span(0, 10, deep), span(10, 20, other), span(50, 60, other)];
        draw(
            &tables,
            &spans,
            &mut strip,
            |strip, ts, frame| strip.begin(ts, frame),
            |strip, ts| strip.end(ts, false),
        );
        let drawn: Vec<(usize, u32, u64)> = strip.slices().collect();
        assert_eq!(drawn, [(0, 0, 20), (1, 1, 10), (1, 2, 10), (0, 0, 10), (1, 2, 10)]);
    }
}
