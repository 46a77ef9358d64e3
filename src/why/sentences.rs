//! Causes in words, for people.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::cause::Cause;
use super::explanation::{CausePart, Explanation, LineKey, NamedHop, Saving, parties, sum};
use super::grade::{Grade, legend};
use super::headline::headline;
use super::lock_marker::LockMarker;
use super::own_code_words::OwnCode;
use super::party;
use crate::text::duration;

/// Words for a thread that was ready while nobody had its CPU.
const READY_ALONE: &str = "was ready, and did not run";
/// Subjects that a line names.
const SUBJECTS: usize = 3;

/// A line about one cause: all parts of one path, of one own frame and of one monitor.
struct Line<'a> {
    path: &'a [NamedHop],
    ns: u64,
    count: u64,
    grade: Grade,
    /// Largest first.
    subjects: Vec<(&'a str, u64)>,
    /// By subject: the samples that tell it, the most first.
    sampled: Vec<(&'a str, u64)>,
    /// The app's code that ran.
    own: Option<OwnCode<'a>>,
}

impl Line<'_> {
    /// Words for the line. Where spans of several threads are explained together, they begin with the
    /// thread's name.
    fn words(&self, of_span: &str, is_of_several: bool) -> String {
        let text = self.text(of_span);
        match self.path.first() {
            Some(first) if is_of_several && !first.thread.is_empty() => {
                format!("\"{}\" {text}", first.thread)
            }
            _ => text,
        }
    }

    fn is_unknown(&self) -> bool {
        matches!(self.path.last().map(|hop| hop.cause), Some(Cause::Unexplained | Cause::NotRecorded))
    }

    fn text(&self, of_span: &str) -> String {
        let mut text = String::new();
        for (hop, next) in self.path.iter().zip(self.path.iter().skip(1)) {
            let of = if next.process == of_span || next.process.is_empty() {
                String::new()
            } else {
                format!(" of {}", next.process)
            };
            let name = if next.thread.is_empty() {
                format!("thread {}", next.tid)
            } else {
                format!("\"{}\"", next.thread)
            };
            let which = if text.is_empty() { "" } else { ", which " };
            text.push_str(which);
            match LockMarker::parse(&hop.about) {
                Some(marker) => {
                    let waker = Some(next.thread.as_str()).filter(|name| !name.is_empty());
                    text.push_str(&marker.sentence(waker));
                }
                None => {
                    let about =
                        if hop.about.is_empty() { String::new() } else { format!(" ({})", hop.about) };
                    text.push_str(&format!("{} {name}{of}{about}", waited_for(hop.cause)));
                }
            }
        }
        let which = if text.is_empty() { "" } else { ", which " };
        let cause = self.path.last().map_or(Cause::Unexplained, |hop| hop.cause);
        text.push_str(which);
        let lock = self.subjects.first().filter(|_| cause == Cause::Lock);
        match lock.and_then(|(name, _)| LockMarker::parse(name)) {
            Some(marker) => text.push_str(&marker.sentence(None)),
            None => {
                let never_queued = cause == Cause::Runnable
                    && self
                        .subjects
                        .iter()
                        .all(|(name, _)| name.starts_with("CPU ") || name.starts_with("the CPU "));
                text.push_str(if never_queued { READY_ALONE } else { words(cause) });
                text.push_str(&self.about());
            }
        }
        // Pieces of own code are calls of many methods: their number says nothing.
        if self.count > 1 && self.own.is_none() {
            text.push_str(&format!(" ({} times)", self.count));
        }
        text
    }

    /// The subjects of the cause, behind its words.
    fn about(&self) -> String {
        if let Some(own) = &self.own {
            return own.text();
        }
        let all: u64 = self.sampled.iter().map(|(_, samples)| samples).sum();
        let subjects: Vec<String> = match &self.subjects[..] {
            _ if all > 0 => {
                let most = self.sampled.iter().take(SUBJECTS).enumerate();
                most.map(|(at, (name, samples))| {
                    let percent = *samples as f64 * 100.0 / all as f64;
                    let of = if at == 0 { format!(" of {all} samples") } else { String::new() };
                    format!("{percent:.0} %{of} in {name}")
                })
                .collect()
            }
            [(name, _)] if !name.is_empty() => vec![(*name).to_owned()],
            subjects => {
                let named = subjects.iter().filter(|(name, _)| !name.is_empty());
                named.take(SUBJECTS).map(|(name, ns)| format!("{name} {}", duration(*ns))).collect()
            }
        };
        if subjects.is_empty() { String::new() } else { format!(": {}", subjects.join(", ")) }
    }
}

/// The lines of one explanation: the span, its causes, the rest.
pub(crate) fn lines(explanation: &Explanation, limit: usize) -> Vec<String> {
    let detail =
        if explanation.detail.is_empty() { String::new() } else { format!(" ({})", explanation.detail) };
    let mut lines = vec![format!("{}: {}{detail}", explanation.what, duration(explanation.duration))];
    lines.push(party::line(&explanation.parties()));
    lines.extend(headline(&explanation.causes, explanation.duration));
    lines.extend(cause_lines(&explanation.causes, explanation.duration, limit));
    lines.extend(savings_line(explanation));
    let also = explanation
        .circumstances
        .iter()
        .map(|one| format!("{} ({}, {})", one.words, one.count, duration(one.ns)));
    let also: Vec<String> = also.collect();
    if !also.is_empty() {
        lines.push(format!("meanwhile: {}", also.join(", ")));
    }
    lines.extend(explanation.video.iter().map(ToString::to_string));
    lines
}

/// The span's time without each of its largest causes.
fn savings_line(explanation: &Explanation) -> Option<String> {
    let one = |(saving, number): (&Saving, &str)| {
        let mut text = format!("without the {number} {}", duration(explanation.duration - saving.saves_ns));
        if let Some(beside) = &saving.beside {
            let name = if beside.thread.is_empty() { "another thread" } else { &beside.thread };
            let won = match saving.saves_ns {
                0 => "nothing".to_owned(),
                ns => duration(ns),
            };
            let later = duration(beside.ends_later_ns);
            text.push_str(&format!(" ({won} is won: \"{name}\" ran beside it, and ended {later} later)"));
        }
        text
    };
    let texts: Vec<String> =
        explanation.savings.iter().zip(["first cause", "second", "third"]).map(one).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// The lines of several spans of one kind: their causes together, and the longest spans.
pub(crate) fn lines_of_several(explanations: &[Explanation], limit: usize) -> Vec<String> {
    let total: u64 = explanations.iter().map(|one| one.duration).sum();
    let mut longest: Vec<&Explanation> = explanations.iter().collect();
    longest.sort_by_key(|one| (Reverse(one.duration), one.begin));
    let durations = longest
        .first()
        .zip(longest.last())
        .map(|(most, least)| format!(", {} to {}", duration(least.duration), duration(most.duration)));
    let mut lines = vec![format!(
        "{} spans, {} together{}",
        explanations.len(),
        duration(total),
        durations.unwrap_or_default()
    )];
    lines.extend(party_and_cause_lines(explanations, total, limit));
    lines.push("the longest:".to_owned());
    for one in longest.iter().take(SUBJECTS) {
        let largest = largest_line(&one.causes, one.duration);
        lines.push(format!("{:>10}  {}: {}", duration(one.duration), one.what, largest.trim_start()));
        lines.extend(one.video.iter().map(|shown| format!("{:>10}  {shown}", "")));
    }
    lines
}

/// The causes of several spans together; `None` without spans.
pub(crate) fn summed_lines(explanations: &[Explanation], limit: usize) -> Option<Vec<String>> {
    let total: u64 = explanations.iter().map(|one| one.duration).sum();
    (!explanations.is_empty()).then(|| party_and_cause_lines(explanations, total, limit))
}

/// Lines of whose time several spans took and of the app's places in it, and those of their causes together.
fn party_and_cause_lines(explanations: &[Explanation], total: u64, limit: usize) -> Vec<String> {
    let causes = sum(explanations);
    let mut lines = vec![party::line(&parties(&causes, total))];
    lines.extend(headline(&causes, total));
    lines.extend(cause_lines(&causes, total, limit));
    lines
}

/// A line for all parts of each key, the largest first.
fn by_key(causes: &[CausePart]) -> Vec<Line<'_>> {
    let mut by_key: BTreeMap<LineKey<'_>, Line<'_>> = BTreeMap::new();
    for part in causes {
        let line = by_key.entry(LineKey::of(part)).or_insert_with(|| Line {
            path: &part.path,
            ns: 0,
            count: 0,
            grade: part.grade,
            subjects: Vec::new(),
            sampled: Vec::new(),
            own: part.own.as_ref().map(OwnCode::new),
        });
        line.ns += part.ns;
        line.count += part.count;
        line.grade = line.grade.max(part.grade);
        line.subjects.push((&part.subject, part.ns));
        if part.samples > 0 {
            line.sampled.push((&part.subject, part.samples));
        }
        if let (Some(code), Some(own)) = (&mut line.own, &part.own) {
            code.add(own, &part.subject, part.ns, part.samples);
        }
    }
    let mut all: Vec<Line<'_>> = by_key.into_values().collect();
    for line in &mut all {
        line.subjects.sort_by_key(|(_, ns)| Reverse(*ns));
        line.sampled.sort_by_key(|(_, samples)| Reverse(*samples));
    }
    all.sort_by_key(|line| Reverse(line.ns));
    all
}

/// The name of the process of the span's own thread.
fn own_process(causes: &[CausePart]) -> &str {
    causes.first().and_then(|part| part.path.first()).map_or("", |hop| hop.process.as_str())
}

/// A line for the largest cause, also where that is not recorded.
fn largest_line(causes: &[CausePart], duration: u64) -> String {
    let all = by_key(causes);
    let Some(largest) = all.first() else { return String::new() };
    row(largest.ns, duration, largest.grade, &largest.text(own_process(causes)))
}

/// A line for each of the largest causes, one for the rest, and one for what is unexplained or not recorded.
fn cause_lines(causes: &[CausePart], duration: u64, limit: usize) -> Vec<String> {
    let (unknown, known): (Vec<Line<'_>>, Vec<Line<'_>>) =
        by_key(causes).into_iter().partition(Line::is_unknown);
    let process = own_process(causes);
    let own_thread =
        |part: &CausePart| part.path.first().map(|hop| (hop.thread.clone(), hop.process.clone()));
    let first = causes.first().map(own_thread);
    let is_of_several = causes.iter().any(|part| Some(own_thread(part)) != first);
    let shown = known.iter().take(limit);
    let mut lines: Vec<String> = shown
        .clone()
        .map(|line| row(line.ns, duration, line.grade, &line.words(process, is_of_several)))
        .collect();
    let rest = &known[known.len().min(limit)..];
    if !rest.is_empty() {
        let ns = rest.iter().map(|line| line.ns).sum();
        lines.push(row(ns, duration, Grade::Event, &format!("{} smaller causes", rest.len())));
    }
    for (cause, words) in [(Cause::Unexplained, "unexplained"), (Cause::NotRecorded, "not recorded")] {
        let of_cause: Vec<&Line<'_>> =
            unknown.iter().filter(|line| line.path.last().is_some_and(|hop| hop.cause == cause)).collect();
        let ns: u64 = of_cause.iter().map(|line| line.ns).sum();
        // Where nothing is known, that nothing is unexplained says nothing.
        if ns > 0 || cause == Cause::Unexplained && !known.is_empty() {
            let mut why: Vec<&str> =
                of_cause.iter().flat_map(|line| line.subjects.iter().map(|(name, _)| *name)).collect();
            why.sort_unstable();
            why.dedup();
            why.retain(|name| !name.is_empty());
            let why = if why.is_empty() { String::new() } else { format!(": {}", why.join(", ")) };
            lines.push(row(ns, duration, Grade::Event, &format!("{words}{why}")));
        }
    }
    lines.extend(legend(shown.map(|line| line.grade)));
    lines
}

/// A line of a time, its share of `whole`, ns, and the sign of how it is known.
fn row(ns: u64, whole: u64, grade: Grade, text: &str) -> String {
    let percent = if whole == 0 { 0.0 } else { ns as f64 * 100.0 / whole as f64 };
    format!("{:>12} {percent:>4.0} %{} {text}", duration(ns), grade.sign())
}

/// A line for each of the threads in whose time the largest causes lie, with these causes, and one for the
/// rest.
pub(crate) fn thread_lines(explanations: &[Explanation], limit: usize) -> Vec<String> {
    let whole: u64 = explanations.iter().map(|one| one.duration).sum();
    let mut by_thread: BTreeMap<(&str, &str), BTreeMap<&str, u64>> = BTreeMap::new();
    for part in explanations.iter().flat_map(|one| &one.causes) {
        let Some(hop) = part.path.last() else { continue };
        let causes = by_thread.entry((&hop.process, &hop.thread)).or_default();
        *causes.entry(hop.cause.name()).or_default() += part.ns;
    }
    let mut threads: Vec<(u64, String)> = Vec::new();
    for ((process, thread), causes) in by_thread {
        let mut causes: Vec<(&str, u64)> = causes.into_iter().collect();
        causes.sort_by_key(|(_, ns)| Reverse(*ns));
        let list = causes.iter().take(SUBJECTS).map(|(name, ns)| format!("{name} {}", duration(*ns)));
        let list = list.collect::<Vec<_>>().join(", ");
        let of =
            if process.is_empty() || process == thread { String::new() } else { format!(" of {process}") };
        let thread = if thread.is_empty() { "a thread without a name" } else { thread };
        threads.push((causes.iter().map(|(_, ns)| ns).sum(), format!("{thread}{of}: {list}")));
    }
    threads.sort_by_key(|(ns, _)| Reverse(*ns));
    let rest = threads.split_off(threads.len().min(limit));
    let mut lines = vec!["by thread:".to_owned()];
    lines.extend(threads.iter().map(|(ns, text)| row(*ns, whole, Grade::Event, text)));
    if !rest.is_empty() {
        let ns = rest.iter().map(|(ns, _)| ns).sum();
        lines.push(row(ns, whole, Grade::Event, &format!("{} more threads", rest.len())));
    }
    lines
}

/// Words for a wait that another thread ended; its name follows.
fn waited_for(cause: Cause) -> &'static str {
    match cause {
        Cause::Lock => "waited for a lock or a result of",
        Cause::Binder => "waited for the answer to a binder call to",
        Cause::Ipc => "waited for a message from",
        Cause::Gc => "waited for the garbage collection of",
        Cause::Gpu => "waited for a buffer or the graphics processor, for",
        Cause::Idle => "had nothing to do until a message came from",
        Cause::Sleep => "slept until it was woken by",
        Cause::Start => "was not there yet, and was started by",
        _ => "waited for",
    }
}

/// Words for a cause.
fn words(cause: Cause) -> &'static str {
    match cause {
        Cause::Running => "ran its own code",
        Cause::Runnable => "was ready, but others ran on its CPU",
        Cause::Throttled => "was ready, but its group had used up its share of the CPU",
        Cause::SlowCpu => "ran slowly, below the highest CPU frequency",
        Cause::Disk => "waited for the disk",
        Cause::PageFault => "waited for a page of memory",
        Cause::Reclaim => "waited while the kernel looked for free memory",
        Cause::Lock => "waited for a lock",
        Cause::Binder => "waited for a binder call",
        Cause::Ipc => "waited for another process or the network",
        Cause::OtherThread => "waited for another thread",
        Cause::Gc => "collected garbage",
        Cause::Jit => "compiled methods",
        Cause::ClassLoading => "loaded classes and libraries",
        Cause::Gpu => "waited for a buffer or the graphics processor",
        Cause::Sleep => "slept, as the program had asked",
        Cause::Idle => "had nothing to do",
        Cause::Vsync => "waited for the time of the next frame",
        Cause::Interrupt => "was interrupted",
        Cause::Kernel => "waited for the kernel",
        Cause::Tracing => "wrote the trace",
        Cause::Start => "was not there yet",
        Cause::Unexplained => "unexplained",
        Cause::NotRecorded => "not recorded",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page says what `why` prints. `UPDATE_GOLDEN=1 cargo test --lib the_page_has_the_words` writes the
    /// file anew.
    #[test]
    fn the_page_has_the_words_of_causes() {
        let entry = |cause: Cause| (cause.name(), [words(cause), waited_for(cause)]);
        let entries: std::collections::BTreeMap<_, _> = Cause::ALL.into_iter().map(entry).collect();
        let text = serde_json::to_string_pretty(&entries).unwrap() + "\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/web/src/why/cause_words.json");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        let checked_in: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(checked_in, serde_json::to_value(&entries).unwrap());
    }
}
