//! The stages of an app's launch, as Android's own markers show them.

use serde_json::{Value, json};

use crate::export::launch_slices::{BIND, FRAME};
use crate::tracks::Span;

/// The most stages of one launch.
const MAX_STAGES: usize = 100;

/// The first launch of a trace: the outermost slices of the main thread, from the one that binds the app to
/// the first frame.
#[derive(Default)]
pub(super) struct Launch {
    tid: Option<i32>,
    stages: Vec<(String, Span)>,
    has_ended: bool,
}

impl Launch {
    /// Takes a slice that has ended. `is_outermost` says that it was in no other one.
    pub fn slice(&mut self, tid: i32, name: &[u8], span: Span, is_outermost: bool) {
        let is_first = self.tid.is_none() && name == BIND;
        if is_first {
            self.tid = Some(tid);
        }
        if self.has_ended || self.tid != Some(tid) || !(is_first || is_outermost) {
            return;
        }
        self.stages.push((String::from_utf8_lossy(name).into_owned(), span));
        self.has_ended = name.starts_with(FRAME) || self.stages.len() == MAX_STAGES;
    }

    /// The id of the main thread, if there is a launch.
    pub fn tid(&self) -> Option<i32> {
        self.tid
    }

    /// The launch as the index has it: of the thread with this index and its process. `start` is the trace's
    /// start, ns.
    pub fn to_json(&self, thread: usize, process: &str, start: u64) -> Value {
        let stage = |(name, span): &(String, Span)| {
            let [from, to] = [span.start, span.end].map(|ns| ns.saturating_sub(start));
            json!({ "name": name, "start_ns": from, "end_ns": to, "thread": thread })
        };
        let stages: Vec<Value> = self.stages.iter().map(stage).collect();
        json!({ "package": process, "stages": stages })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_goes_from_binding_the_app_to_the_first_frame() {
        let mut launch = Launch::default();
        let span = |start, end| Span { start, end, open: false };
        launch.slice(7, b"early", span(0, 5), true);
        launch.slice(7, b"bindApplication", span(10, 20), false);
        launch.slice(8, b"other thread", span(11, 12), true);
        launch.slice(7, b"inflate", span(21, 22), false);
        launch.slice(7, b"activityStart", span(20, 30), true);
        launch.slice(7, b"Choreographer#doFrame 12", span(30, 40), true);
        launch.slice(7, b"late", span(41, 42), true);
        let names: Vec<&str> = launch.stages.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["bindApplication", "activityStart", "Choreographer#doFrame 12"]);
    }
}
