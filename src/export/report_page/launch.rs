//! Launches and frames as the page's index and its tracks have them.

use serde_json::{Value, json};

use super::columns::{LATE, NO_DEADLINE};
use super::frames::FrameTimes;
use super::index::People;
use super::strings::Strings;
use super::tracks::{Name, Owner, PageTracks, Role};
use crate::measure::{Cut, Frame, Launch, LaunchType, Measured, Rule, Stage, summarize};

/// Launches as the index has them. `start` is the trace's start, ns.
pub(super) fn launches(measured: &Measured, people: &People, start: u64) -> Vec<Value> {
    measured.launches.iter().map(|launch| to_json(launch, people, start)).collect()
}

fn to_json(launch: &Launch, people: &People, start: u64) -> Value {
    let since_start = |ts: u64| ts.saturating_sub(start);
    let thread = |tid: Option<i32>| tid.and_then(|tid| people.thread(tid));
    let stage = |stage: &Stage| {
        let [from, to] = [stage.span.start, stage.span.end].map(since_start);
        json!({ "name": stage.name, "start_ns": from, "end_ns": to })
    };
    let stages: Vec<Value> = launch.stages.iter().map(stage).collect();
    json!({
        "package": launch.package,
        "type": launch.launch_type.map(LaunchType::name),
        "rule": Rule::sentence(launch.rule),
        "process": launch.pid.and_then(|pid| people.process(pid)),
        "thread": thread(launch.main_tid),
        "render_thread": thread(launch.render_tid),
        "begin_ns": since_start(launch.begin),
        "end_ns": since_start(launch.end),
        "cut": launch.cut.map(Cut::name),
        "ttid_ns": launch.ttid,
        "ttfd_ns": launch.ttfd,
        "overlapped": launch.is_overlapped,
        "stages": stages,
    })
}

/// The frames of each app and layer in numbers, as the index has them: as `info --json` prints them.
pub(super) fn frame_summaries(measured: &Measured) -> Value {
    json!(summarize(&measured.frames))
}

/// Makes a track of the frames of each process and layer, as far as they lie in the trace, which goes from
/// `extent.0` to `extent.1`, ns.
pub(super) fn add_frames(
    measured: &Measured,
    extent: (u64, u64),
    tracks: &mut PageTracks,
    strings: &mut Strings,
) {
    let is_within = |frame: &&Frame| frame.end >= extent.0 && frame.begin <= extent.1;
    for frame in measured.frames.iter().filter(is_within) {
        let label = strings.id(frame_name(frame).as_bytes());
        let layer = Name::Named(frame.layer.as_deref().unwrap_or_default().as_bytes());
        let overrun = frame.overrun();
        let late = if frame.is_janky() { LATE } else { 0 };
        let flags = late | if overrun.is_none() { NO_DEADLINE } else { 0 };
        let times = FrameTimes { cpu: frame.duration_cpu_ns, overrun: overrun.unwrap_or(0) };
        let shown = (frame.begin.max(extent.0), frame.end.min(extent.1));
        tracks
            .frames(Role::Frames, Owner::Process(frame.pid), layer)
            .push_measured(shown, label, flags, times);
    }
}

/// The number of a frame, of a late one followed by SurfaceFlinger's word for the reason.
fn frame_name(frame: &Frame) -> String {
    let number = frame.id.map_or_else(|| "frame".to_owned(), |id| id.to_string());
    let reason = frame.jank_type.as_ref().filter(|_| frame.is_janky());
    reason.map_or_else(|| number.clone(), |reason| format!("{number} {reason}"))
}
