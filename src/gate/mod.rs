//! A gate for CI: whether the runs of a candidate are slower than those of a baseline by more than conditions
//! such as `launch.total > +5%` permit.
//!
//! docs/gate.md describes the statistics and counts their false alarms.

mod condition;
mod judge;
mod report;

pub use condition::{Condition, Selection};
pub use judge::{GateOutcome, GateSide, judge};
#[cfg(all(test, target_os = "linux"))]
pub(crate) use report::JudgementJson;
