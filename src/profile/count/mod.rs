//! Counters: each receives the records of a [`selection`], and holds the times of methods, of paths of calls,
//! or the calls in the order of time.

pub mod call_events;
mod call_stacks;
pub mod flat;
pub mod graph;
pub(in crate::profile) mod sample_tree;
pub mod selection;
pub(crate) mod thread_methods;
pub(super) mod time_pair;
pub mod tree;
pub(super) mod tree_branches;
