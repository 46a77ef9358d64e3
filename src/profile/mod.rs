//! Method profiles: exclusive and inclusive times, callers and callees, call trees, diffs.
//!
//! Records go through [`drive`] into one of three counters: [`flat`] (times of each method), [`tree`] (times of each
//! path of calls, from which [`graph`] has callers and callees), or [`timeline`] (calls in time order).

pub mod diff;
pub mod dmtracedump;
pub mod dot;
pub mod drive;
pub mod firefox;
pub mod flat;
pub mod folded;
pub mod graph;
pub mod machine;
pub mod names;
pub mod print;
pub mod rows;
pub mod speedscope;
pub mod timeline;
pub mod tree;
pub mod tree_print;
