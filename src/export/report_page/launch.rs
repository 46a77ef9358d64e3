//! The launch of an app as the page's index has it.

use serde_json::{Value, json};

use crate::measure::{Launch, LaunchType, Measured, Stage};

/// The launch that the page shows: the first one that the recording does not cut, and whose main thread is
/// known.
pub(super) fn shown_launch(measured: &Measured) -> Option<&Launch> {
    measured.launches.iter().find(|launch| launch.cut.is_none() && launch.main_tid.is_some())
}

/// The launch as the index has it: of the thread with this index and its process. `start` is the trace's
/// start, ns.
pub(super) fn to_json(launch: &Launch, thread: usize, process: &str, start: u64) -> Value {
    let since_start = |ts: u64| ts.saturating_sub(start);
    let stage = |stage: &Stage| {
        let [from, to] = [stage.span.start, stage.span.end].map(since_start);
        json!({ "name": stage.name, "start_ns": from, "end_ns": to, "thread": thread })
    };
    let stages: Vec<Value> = launch.stages.iter().map(stage).collect();
    json!({
        "package": process,
        "type": launch.launch_type.map(LaunchType::name),
        "begin_ns": since_start(launch.begin),
        "duration_ns": launch.duration(),
        "ttid_ns": launch.ttid,
        "ttfd_ns": launch.ttfd,
        "stages": stages,
    })
}
