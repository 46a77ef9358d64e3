//! Finds the launches of apps and the frames in a timeline, as Android's own tools find them.
//!
//! A [`Finder`] watches slices, asynchronous slices and instants pass, and keeps only those that mark
//! launches and frames. [`Finder::finish`] joins them. The rules are those of Perfetto's
//! `stdlib/android/startup/*.sql` and `stdlib/android/frames/*.sql`, which read markers of AOSP's
//! `ActivityMetricsLogger`, `Choreographer` and `CanvasContext`. All times are ns of the timeline.
//!
//! A [`RunMeter`] measures a whole run by them, and a [`Comparison`] compares two sets of runs.

mod apps;
mod comparison;
mod finder;
mod frame;
mod frame_figures;
mod launch;
mod launch_marks;
mod mark;
mod meter;
mod rules;
mod run;
mod span_log;
#[cfg(test)]
mod tests;

pub(crate) use self::apps::is_cut;
pub(crate) use self::comparison::{Comparison, LINES_OF_A_KIND, RunSet};
pub(crate) use self::finder::{Finder, FinderSink, Measured};
pub(crate) use self::frame::{Deadline, Frame, TimelineCounts};
pub(crate) use self::frame_figures::{
    FrameSummary, JANKY, PERCENTILES, Percentiles, WHOLE_SHARE, late_frames, percentiles, summarize,
};
pub(crate) use self::launch::{Cancelled, Cut, Launch, LaunchBegin, LaunchType, Rule, Stage};
pub(crate) use self::meter::RunMeter;
#[cfg(test)]
pub(crate) use self::run::Measure;
pub(crate) use self::run::{LaunchSpan, MeasuredRun, RunValue};
pub use self::run::{MeasureFilter, MeasureKind, RunTimes};
