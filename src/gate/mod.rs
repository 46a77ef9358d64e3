//! A gate for CI: whether the runs of a candidate are slower than those of a baseline by more than conditions
//! such as `launch.total > +5%` permit.
//!
//! docs/gate.md describes the statistics and counts their false alarms.

mod cells;
mod condition;
mod error;
mod json;
mod judge;
mod junit;
mod markdown;
mod selection;
mod text;

pub use condition::Condition;
pub use judge::{Outcome, Side, judge};
pub use selection::Selection;
