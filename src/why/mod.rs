//! Says why a launch, a frame, a slice or a stretch of a thread took as long as it did.
//!
//! A [`ModelCollector`] watches a timeline pass and makes a [`Model`] of it. [`Model::explain`] walks the
//! critical path of a span, and splits its time over causes, so that each nanosecond belongs to exactly one.
//! `docs/why.md` has the rule of each cause, and its limits.

mod block_requests;
mod cause;
mod circumstances;
mod code_tree;
mod collect;
mod collected_event;
mod cpu_budget;
mod cpu_history;
mod cpu_speed;
mod difference;
mod explanation;
mod gaps;
mod grade;
mod headline;
mod kept_time;
mod lock_marker;
mod missing_switches;
mod model;
mod names;
mod own_code_words;
mod own_frame;
mod party;
mod quotas;
mod rewait;
mod savings;
mod sentences;
mod shown_frames;
mod slice_sources;
mod slices;
mod spans;
mod split;
mod syscalls;
#[cfg(test)]
mod tests;
mod totals;
#[cfg(test)]
mod wait_tests;
mod waits;
mod walk;

pub(crate) use self::collect::ModelCollector;
pub(crate) use self::difference::{Difference, difference};
pub(crate) use self::explanation::{Explanation, ExplanationJson};
pub(crate) use self::model::Model;
pub(crate) use self::sentences::{lines, lines_of_several, summed_lines, thread_lines};
pub(crate) use self::shown_frames::ShownFrames;
pub(crate) use self::spans::{NothingAsked, Question};
#[cfg(feature = "mcp")]
pub(crate) use self::totals::TableQuestion;
