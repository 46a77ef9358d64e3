//! Method profiles: exclusive and inclusive times, callers and callees, call trees, comparisons.
//!
//! [`run()`] makes a whole profile from files to outputs. Inside, the records of a
//! [`selection`](count::selection) are streamed into one of three counters: [`flat`](count::flat) (times of
//! each method), [`tree`](count::tree) (times of each path of calls, from which [`graph`](count::graph)
//! derives callers and callees), or [`call_events`](count::call_events) (calls in time order). `rows` makes
//! rows of them; `print` and `files` make the outputs.

pub mod count;
pub mod dmtracedump;
mod error;
mod figures;
mod files;
mod names;
mod print;
mod profile_run;
mod request;
mod rows;
mod run;
mod sample_profile;
mod shown_name;
mod source;
mod text_style;

pub use error::{DrawError, ProfileError};
pub use profile_run::{ProfileOutput, ProfileReport};
pub use request::{
    PrintForm, ProfileFiles, ProfileRequest, RecordFilter, RowKind, RowRequest, SampleWeight, SortKey,
    TreeDirection,
};
pub use run::run;
pub use text_style::TextStyle;
