//! When the launch of an app began and ended.

use crate::export::launch_slices::{BIND, FRAME, LAUNCHING};
use crate::tracks::{AsyncEdge, AsyncSlice, Span};

/// The launch of an app, ns of the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::export) struct LaunchSpan {
    /// When the system was asked to start the app; where its marker is missing, when the app's process was
    /// bound to it.
    pub from: u64,
    /// The end of the slice that the user named, else of the main thread's first frame, else of the binding.
    pub to: u64,
    /// Whether `from` is the request, and not the binding.
    pub from_request: bool,
    /// What `to` is.
    pub end: LaunchEnd,
}

impl LaunchSpan {
    /// With what the launch began, as the table `launch` has it.
    pub fn begins_with(&self) -> &'static str {
        begin_label(self.from_request)
    }
}

/// The begin of a launch as the table `launch` and the JSON of launches have it.
pub(in crate::export) fn begin_label(from_request: bool) -> &'static str {
    if from_request { "request" } else { "bind" }
}

/// With what a launch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::export) enum LaunchEnd {
    /// The slice that the user named.
    Named,
    /// The first frame.
    Frame,
    /// The binding of the process: no frame is marked.
    Bind,
}

impl LaunchEnd {
    /// The end as the table `launch` and the JSON of launches have it.
    pub fn label(self) -> &'static str {
        match self {
            LaunchEnd::Named => "named slice",
            LaunchEnd::Frame => "first frame",
            LaunchEnd::Bind => "bind end",
        }
    }
}

/// Moments of a launch, ns of the timeline; `None` where its marker is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::export) struct LaunchMoments {
    /// When the system was asked to start the app.
    pub requested: Option<u64>,
    /// When the binding of the app's process began.
    pub bound: Option<u64>,
    /// When the binding ended.
    pub bind_end: Option<u64>,
    /// When the main thread's first frame ended.
    pub frame_end: Option<u64>,
}

/// Looks for the first launch while slices pass.
#[derive(Debug, Default)]
pub(in crate::export) struct LaunchFinder {
    /// When the system was asked for the launch before the binding.
    requested: Option<u64>,
    /// When the system had the first frame of that launch on the screen.
    shown: Option<u64>,
    /// The main thread, and when its binding began.
    bound: Option<(i32, u64)>,
    /// A part of the name of the slice with which the launch ends, and the end of the first one behind the
    /// binding.
    until: Option<String>,
    until_end: Option<u64>,
    bind_end: Option<u64>,
    frame_end: Option<u64>,
}

impl LaunchFinder {
    /// A launch ends with the first slice whose name contains `until`.
    pub fn until(until: Option<&str>) -> LaunchFinder {
        LaunchFinder { until: until.map(str::to_owned), ..LaunchFinder::default() }
    }

    fn is_last(&self, name: &[u8]) -> bool {
        let until = self.until.as_ref().filter(|_| self.bound.is_some() && self.until_end.is_none());
        until.is_some_and(|until| String::from_utf8_lossy(name).contains(until.as_str()))
    }

    /// The app's main thread, if an app was launched.
    pub fn main_thread(&self) -> Option<i32> {
        self.bound.map(|(tid, _)| tid)
    }

    pub fn async_slice(&mut self, slice: &AsyncSlice<'_>) {
        let is_begin = matches!(slice.edge, AsyncEdge::Begin);
        if is_begin && self.bound.is_none() && self.shown.is_none() && slice.name.starts_with(LAUNCHING) {
            self.requested = Some(slice.ts);
        } else if slice.name.starts_with(LAUNCHING) && self.requested.is_some() {
            self.shown.get_or_insert(slice.ts);
        }
        if matches!(slice.edge, AsyncEdge::End(_)) && self.is_last(slice.name) {
            self.until_end = Some(slice.ts);
        }
    }

    pub fn begin(&mut self, tid: i32, ts: u64, name: &[u8]) {
        if self.bound.is_none() && name == BIND {
            self.bound = Some((tid, ts));
        }
    }

    pub fn end(&mut self, tid: i32, span: Span, name: &[u8]) {
        if !span.open && self.is_last(name) {
            self.until_end = Some(span.end);
        }
        if self.main_thread() != Some(tid) {
            return;
        }
        if name == BIND {
            self.bind_end.get_or_insert(span.end);
        } else if name.starts_with(FRAME) && !span.open {
            self.frame_end.get_or_insert(span.end);
        }
    }

    /// The moments of the launch that have been found.
    pub fn moments(&self) -> LaunchMoments {
        LaunchMoments {
            requested: self.requested,
            bound: self.bound.map(|(_, ts)| ts),
            bind_end: self.bind_end,
            frame_end: self.frame_end,
        }
    }

    pub fn span(&self) -> Option<LaunchSpan> {
        let Some((_, bound)) = self.bound else {
            // A warm start: the process was there.
            let (from, to) = self.requested.zip(self.shown)?;
            return Some(LaunchSpan { from, to, from_request: true, end: LaunchEnd::Frame });
        };
        let ends = [
            (self.until_end, LaunchEnd::Named),
            (self.frame_end, LaunchEnd::Frame),
            (self.bind_end, LaunchEnd::Bind),
        ];
        let (to, end) = ends.into_iter().find_map(|(to, end)| Some((to?, end)))?;
        let from_request = self.requested.is_some();
        Some(LaunchSpan { from: self.requested.unwrap_or(bound), to, from_request, end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, end: u64) -> Span {
        Span { start, end, open: false }
    }

    fn launching(ts: u64) -> AsyncSlice<'static> {
        AsyncSlice { track: None, name: b"launching: com.example", cookie: 0, ts, edge: AsyncEdge::Begin }
    }

    #[test]
    fn a_launch_goes_from_the_request_to_the_end_of_the_first_frame() {
        let mut finder = LaunchFinder::default();
        finder.end(7, span(1, 2), b"Choreographer#doFrame 1");
        finder.async_slice(&launching(5));
        finder.begin(7, 10, BIND);
        finder.end(7, span(10, 20), BIND);
        finder.async_slice(&launching(25));
        finder.end(8, span(20, 22), b"Choreographer#doFrame 2");
        assert_eq!(
            finder.span(),
            Some(LaunchSpan { from: 5, to: 20, from_request: true, end: LaunchEnd::Bind })
        );
        finder.end(7, span(30, 40), b"Choreographer#doFrame 3");
        finder.end(7, span(50, 60), b"Choreographer#doFrame 4");
        let expected = LaunchSpan { from: 5, to: 40, from_request: true, end: LaunchEnd::Frame };
        assert_eq!((finder.span(), finder.main_thread()), (Some(expected), Some(7)));
    }

    #[test]
    fn without_the_request_a_launch_begins_with_the_binding_and_without_that_there_is_none() {
        let mut finder = LaunchFinder::default();
        finder.async_slice(&launching(5));
        assert_eq!(finder.span(), None);
        let mut finder = LaunchFinder::default();
        finder.begin(7, 10, BIND);
        finder.end(7, span(10, 20), BIND);
        assert_eq!(finder.span().map(|span| (span.from, span.from_request)), Some((10, false)));
    }

    #[test]
    fn a_warm_start_binds_no_process_and_ends_as_the_system_says() {
        let mut finder = LaunchFinder::default();
        finder.async_slice(&launching(5));
        finder.async_slice(&AsyncSlice { edge: AsyncEdge::End(Some(5)), ..launching(45) });
        let expected = LaunchSpan { from: 5, to: 45, from_request: true, end: LaunchEnd::Frame };
        assert_eq!((finder.span(), finder.main_thread()), (Some(expected), None));
    }

    #[test]
    fn a_launch_goes_on_until_the_slice_that_the_user_names() {
        let mut finder = LaunchFinder::until(Some("loadFeed"));
        finder.end(9, span(1, 3), b"loadFeed of an earlier start");
        finder.begin(7, 10, BIND);
        finder.end(7, span(10, 20), BIND);
        finder.end(7, span(30, 40), b"Choreographer#doFrame 3");
        finder.end(9, span(35, 70), b"com.example.loadFeed");
        finder.end(9, span(80, 90), b"com.example.loadFeed");
        let expected = LaunchSpan { from: 10, to: 70, from_request: false, end: LaunchEnd::Named };
        assert_eq!(finder.span(), Some(expected));
    }
}
