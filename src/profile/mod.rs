//! Method profiles: exclusive and inclusive times, callers and callees, call trees, comparisons.
//!
//! [`run()`] makes a whole profile from files to outputs. Inside, [`record_stream`] streams the selected
//! records into one of three counters: [`flat`] (times of each method), [`tree`] (times of each path of
//! calls, from which [`graph`] derives callers and callees), or [`call_events`] (calls in time order).
//! `rows` and the printing modules make the outputs.

pub mod call_events;
mod call_relations;
mod call_stacks;
mod code_origin;
mod diff;
mod diff_print;
pub mod dmtracedump;
mod error;
mod figures;
mod firefox;
mod flame_graph;
pub mod flat;
mod folded;
pub mod graph;
mod graph_picture;
mod inputs;
mod names;
mod output;
mod print_profile;
mod profile_run;
pub mod record_stream;
mod request;
mod row_data;
mod row_print;
mod rows;
mod run;
mod shown_name;
mod signature;
mod speedscope;
mod summary;
mod table;
mod text_style;
mod thread_filter;
pub(crate) mod thread_methods;
mod ticks;
mod time_pair;
pub mod tree;
mod tree_branches;
mod tree_print;
mod waiting;
mod write_files;
mod writer;

pub use error::{DrawError, ProfileError};
pub use output::{ProfileOutput, ProfileReport};
pub use request::{PrintForm, ProfileFiles, ProfileRequest, RecordFilter, RowRequest, TreeDirection};
pub use rows::{RowKind, SortKey};
pub use run::run;
pub use text_style::TextStyle;
