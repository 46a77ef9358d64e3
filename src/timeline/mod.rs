//! One timeline from several inputs: clocks, identity of threads, merge.

mod align;
mod fit;
mod identity;
mod map;
mod merge;
mod methods;
mod observe;
mod outcome;
mod place;
mod rename;
mod sink;
mod source;
mod stored;
mod traced;
mod vote;

pub use align::AlignError;
pub use merge::{MergeError, MergeOptions, merge};
pub use outcome::{InputSummary, MergeSummary, Verdict};
pub use rename::Renamed;
pub use sink::{Edge, EdgeKind, MethodId, MethodName, MethodThread, TimelineSink};
pub use source::{Kernel, Opened, Source, SourceError};
