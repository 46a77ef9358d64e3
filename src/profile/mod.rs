//! Method profiles: exclusive and inclusive times, callers and callees, call trees, diffs.

pub mod dmtrace;
pub mod dmtrace_diff;
pub mod dmtrace_html;
pub mod dmtrace_text;
pub mod dot;
pub mod drive;
pub mod flat;
pub mod graph;
pub mod machine;
pub mod tree;
