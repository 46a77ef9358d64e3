//! One timeline from several inputs: clocks, identity of threads, merge.

mod outcome;
mod sink;

pub use outcome::{InputOutcome, Outcome, Verdict};
pub use sink::{Edge, EdgeKind, MethodId, MethodName, MethodThread, TimelineSink};
