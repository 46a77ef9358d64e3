//! Finds the launches of apps and the frames in a timeline, as Android's own tools find them.
//!
//! A [`Finder`] watches slices, asynchronous slices and instants pass, and keeps only those that mark
//! launches and frames. [`Finder::finish`] joins them. The rules are those of Perfetto's
//! `stdlib/android/startup/*.sql` and `stdlib/android/frames/*.sql`, which read markers of AOSP's
//! `ActivityMetricsLogger`, `Choreographer` and `CanvasContext`. All times are ns of the timeline.

mod apps;
mod finder;
mod frame;
mod frame_deadline;
mod frame_figures;
mod frame_join;
mod launch;
mod launch_marks;
mod mark;
mod rules;
#[cfg(test)]
mod tests;

pub(crate) use self::finder::{Finder, FinderSink, Measured};
pub(crate) use self::frame::{Deadline, Frame};
pub(crate) use self::frame_figures::{
    FrameFigures, FrameSummary, JANKY, PERCENTILES, WHOLE_SHARE, summarize,
};
pub(crate) use self::launch::{Cancelled, Cut, Launch, LaunchBegin, LaunchType, Rule, Stage};
