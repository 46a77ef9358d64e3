//! The rules of the releases of Android: which markers are a launch.

use std::collections::HashMap;

use super::apps::Apps;
use super::launch::{Cancelled, Cut, Launch, LaunchBegin, LaunchEnd, LaunchType, Rule};
use super::launch_marks::{AsyncSpan, LaunchMarks, Launching, StepKind};
use crate::clock::Timestamp;

/// The first SDK versions whose launches are found by another rule.
const ANDROID_13: u32 = 33;
const ANDROID_10: u32 = 29;

/// The only process that may write of a launch.
const SYSTEM_SERVER: &str = "system_server";

/// The launches that a rule finds.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub launches: Vec<Launch>,
    pub cancelled: Vec<Cancelled>,
}

/// The rule of a timeline: that of the release that recorded it, if its markers are there; else that of the
/// markers that are there.
pub(super) fn choose(marks: &LaunchMarks, sdk: Option<u32>) -> Rule {
    match sdk {
        Some(ANDROID_13..) if marks.has_news => return Rule::Android12,
        Some(ANDROID_10..ANDROID_13) if marks.has_logger => return Rule::Android10,
        Some(..ANDROID_10) if !marks.launching.is_empty() => return Rule::Android9,
        _ => {}
    }
    if marks.has_news {
        Rule::Android12
    } else if marks.has_logger {
        Rule::Android10
    } else if !marks.launching.is_empty() {
        Rule::Android9
    } else if !marks.numbered.is_empty() {
        Rule::Android12
    } else {
        Rule::App
    }
}

/// The time that a timeline covers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimelineExtent {
    pub begin: Timestamp,
    pub end: Timestamp,
}

/// Takes the place of an extent where a launch has a begin and an end of its own.
const NO_EXTENT: TimelineExtent = TimelineExtent { begin: Timestamp::MIN, end: Timestamp::MIN };

/// Finds the launches of a timeline by a rule.
pub(super) fn find(rule: Rule, marks: &LaunchMarks, apps: &Apps<'_>, extent: TimelineExtent) -> Found {
    match rule {
        Rule::Android12 => android_12(marks, extent),
        Rule::Android10 => android_10(marks, apps, extent),
        Rule::Android9 => android_9(marks, apps, extent),
        Rule::App => Found { launches: by_app(apps), cancelled: Vec::new() },
    }
}

/// A launch with the begin and the end of a slice; what of the slice is missing lies outside of the
/// recording.
fn launch(rule: Rule, package: &str, span: AsyncSpan, extent: TimelineExtent) -> Launch {
    let cut = match span {
        AsyncSpan { begin: None, .. } => Some(Cut::Begin),
        AsyncSpan { end: None, .. } => Some(Cut::End),
        _ => None,
    };
    Launch {
        package: package.to_owned(),
        launch_type: None,
        rule,
        begin: span.begin.unwrap_or(extent.begin),
        end: span.end.unwrap_or(extent.end),
        cut,
        begins_with: LaunchBegin::Request,
        ends_with: LaunchEnd::System,
        pid: None,
        main_tid: None,
        render_tid: None,
        ttid: None,
        ttfd: None,
        stages: Vec::new(),
        is_overlapped: false,
    }
}

/// Android 12 and later (Perfetto's `startups_minsdk33.sql`): each launch has a number, and an instant that
/// names the package says that it is complete.
fn android_12(marks: &LaunchMarks, extent: TimelineExtent) -> Found {
    let mut completions: HashMap<i64, Vec<usize>> = HashMap::new();
    for (at, completion) in marks.completions.iter().enumerate() {
        completions.entry(completion.number).or_default().push(at);
    }
    for of_number in completions.values_mut() {
        of_number.sort_by_key(|at| marks.completions[*at].ts);
    }
    let mut found = Found::default();
    for (number, span) in &marks.numbered {
        // A number comes again where the system server came again: its launch is the first one behind.
        let from = span.end.or(span.begin).unwrap_or(extent.begin);
        let of_number = completions.get(number).map_or(&[][..], Vec::as_slice);
        let at = of_number.partition_point(|at| marks.completions[*at].ts < from);
        match of_number.get(at).map(|at| &marks.completions[*at]) {
            Some(completion) => {
                let launch_type = completion.launch_type;
                let launch = launch(Rule::Android12, &completion.package, *span, extent);
                found.launches.push(Launch { launch_type, ..launch });
            }
            None if span.end.is_none() => {
                found.launches.push(launch(Rule::Android12, "", *span, extent));
            }
            None => {
                let begin = span.begin.unwrap_or(extent.begin);
                found.cancelled.push(Cancelled { begin, end: from });
            }
        }
    }
    found
}

/// The slices `launching: PACKAGE` that the system server, or a process without a name, wrote.
fn of_system_server<'a>(marks: &'a LaunchMarks, apps: &Apps<'_>) -> Vec<&'a Launching> {
    let is_servers = |launching: &&Launching| {
        let name = apps.name(launching.pid);
        name.is_empty() || name == SYSTEM_SERVER || name == "<...>"
    };
    let mut slices: Vec<&Launching> = marks.launching.iter().filter(is_servers).collect();
    if slices.is_empty() {
        // No process is the system server by its name: a program may play it.
        slices = marks.launching.iter().collect();
    }
    slices.sort_by_key(|launching| launching.span.begin.unwrap_or_default());
    slices
}

/// Android 10 and 11 (Perfetto's `startups_minsdk29.sql`): between two intents there is exactly one slice of
/// a launch, which has ended, and somebody was told of that. The launch begins with the intent.
fn android_10(marks: &LaunchMarks, apps: &Apps<'_>, extent: TimelineExtent) -> Found {
    let mut found = Found::default();
    let mut slices = of_system_server(marks, apps);
    let mut intents = marks.intents.clone();
    let mut finished = marks.finished.clone();
    intents.sort_unstable();
    finished.sort_unstable();
    let first_intent = intents.first().copied().unwrap_or(Timestamp::MAX);
    // Launches whose intent came before the recording.
    let is_before = |span: AsyncSpan| span.begin.or(span.end).is_some_and(|ts| ts < first_intent);
    let before = slices.iter().filter(|slice| is_before(slice.span));
    found.launches.extend(before.map(|slice| {
        let span = AsyncSpan { begin: None, ..slice.span };
        launch(Rule::Android10, &slice.package, span, extent)
    }));
    slices.retain(|slice| slice.span.begin.is_some());
    let begun = |slice: &Launching| slice.span.begin.unwrap_or_default();
    for (at, intent) in intents.iter().enumerate() {
        // Both ends of the time are in it, as in SQL's BETWEEN.
        let to = intents.get(at + 1).copied().unwrap_or(extent.end.max(*intent));
        let from = slices.partition_point(|slice| begun(slice) < *intent);
        let slices: Vec<&&Launching> =
            slices[from..].iter().take_while(|slice| begun(slice) <= to).take(2).collect();
        let [slice] = slices[..] else { continue };
        let is_finished =
            finished.get(finished.partition_point(|ts| ts < intent)).is_some_and(|ts| *ts <= to);
        let span = AsyncSpan { begin: Some(*intent), end: slice.span.end };
        match slice.span.end {
            Some(end) if end <= to && is_finished && !slice.is_failed => {
                found.launches.push(launch(Rule::Android10, &slice.package, span, extent));
            }
            None if at + 1 == intents.len() && !is_finished => {
                found.launches.push(launch(Rule::Android10, &slice.package, span, extent));
            }
            end => found.cancelled.push(Cancelled { begin: *intent, end: end.unwrap_or(to) }),
        }
    }
    found
}

/// Android 9 and earlier (Perfetto's `startups_maxsdk28.sql`): the slice is the launch. A hot launch has
/// none: it goes from `activityResume` to the end of the first frame behind it.
fn android_9(marks: &LaunchMarks, apps: &Apps<'_>, extent: TimelineExtent) -> Found {
    let slices = of_system_server(marks, apps);
    let of = |slice: &&Launching| launch(Rule::Android9, &slice.package, slice.span, extent);
    let (failed, slices): (Vec<_>, Vec<_>) = slices.into_iter().partition(|slice| slice.is_failed);
    let mut launches: Vec<Launch> = slices.iter().map(of).collect();
    let mut covered: Vec<(Timestamp, Timestamp)> =
        launches.iter().map(|launch| (launch.begin, launch.end)).collect();
    covered.sort_unstable();
    let hot = apps.resumes().iter().filter(|resume| !is_covered(&covered, resume.begin));
    launches.extend(hot.filter_map(|resume| {
        let pid = resume.process();
        let frame = apps.first_frame(pid, resume.begin.saturating_add(1))?;
        let span = AsyncSpan { begin: Some(resume.begin), end: Some(frame.end) };
        let launch = launch(Rule::Android9, &apps.name(pid), span, extent);
        Some(Launch {
            launch_type: Some(LaunchType::Hot),
            begins_with: LaunchBegin::Activity,
            ends_with: LaunchEnd::Drawn,
            pid: Some(pid),
            main_tid: Some(resume.tid),
            ..launch
        })
    }));
    let cancelled = |slice: &Launching| Cancelled {
        begin: slice.span.begin.unwrap_or(extent.begin),
        end: slice.span.end.unwrap_or(extent.end),
    };
    Found { launches, cancelled: failed.into_iter().map(cancelled).collect() }
}

/// Whether one of the spans, which are in order, holds `ts`; the ends belong to a span.
fn is_covered(spans: &[(Timestamp, Timestamp)], ts: Timestamp) -> bool {
    let before = spans.partition_point(|(begin, _)| *begin <= ts);
    spans[..before].iter().rev().take(100).any(|(_, end)| ts <= *end)
}

/// Without markers of the system server, on a phone that lets nobody see it: a launch goes from the first
/// step of the app's main thread to the end of the first frame behind it. A process that shows no activity
/// and no frame runs a service or a provider: it is not launched.
fn by_app(apps: &Apps<'_>) -> Vec<Launch> {
    let mut launches = Vec::new();
    for (pid, steps) in apps.steps() {
        let mut shown_until = None;
        for (at, step) in steps.iter().enumerate() {
            if shown_until.is_some_and(|until| step.begin <= until) {
                continue;
            }
            let next_bind = steps[at + 1..].iter().find(|step| step.kind == StepKind::Bind);
            let limit = next_bind.map_or(Timestamp::MAX, |bind| bind.begin);
            let resume = steps[at..].iter().take(MAX_STEPS).find(|step| step.kind == StepKind::Resume);
            let resume = resume.filter(|resume| resume.begin < limit);
            let drawn = apps.first_frame(pid, step.begin).filter(|frame| frame.begin < limit);
            let frame = apps.ui_frames.first(pid, step.begin).filter(|(begin, _)| *begin < limit);
            let (launch_type, begins_with) = match step.kind {
                StepKind::Bind => (LaunchType::Cold, LaunchBegin::Bind),
                StepKind::Start => (LaunchType::Warm, LaunchBegin::Activity),
                StepKind::Resume => (LaunchType::Hot, LaunchBegin::Activity),
            };
            let (end, ends_with) = match (drawn, frame, resume) {
                (Some(drawn), ..) => (drawn.end, LaunchEnd::Drawn),
                (None, Some((_, end)), _) => (end, LaunchEnd::Frame),
                // No frame was recorded: the last thing that is known of the launch.
                (None, None, Some(resume)) => (resume.end, LaunchEnd::Resumed),
                (None, None, None) => continue,
            };
            let span = AsyncSpan { begin: Some(step.begin), end: Some(end) };
            let launch = launch(Rule::App, &apps.name(pid), span, NO_EXTENT);
            let launch_type = Some(launch_type);
            let main_tid = Some(step.tid);
            launches.push(Launch { launch_type, begins_with, ends_with, pid: Some(pid), main_tid, ..launch });
            shown_until = Some(end.max(resume.map_or(Timestamp::MIN, |resume| resume.end)));
        }
    }
    launches
}

/// The most steps behind one that are examined for its `activityResume`.
const MAX_STEPS: usize = 100;
