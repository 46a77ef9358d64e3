//! A dataset: the tables of many traces, in Parquet files that any query engine reads.
//!
//! docs/dataset.md describes the files. A dataset is a directory: `day=2026-11-22/part=…/slice.parquet`. A
//! part holds some traces whole, and appears with one renaming. Whatever is not complete has a name that
//! begins with `.tmp`, and the next writer removes it.

mod add;
mod catalog;
mod check;
mod dataset_dir;
mod error;
mod groups;
mod method_rows;
mod open_parts;
mod rewrite;
mod run_times;
mod trace;

pub use crate::export::trace_tables::LargeTables;
pub use add::{AddRequest, AddedEvent, add};
pub use catalog::{ListedTrace, list};
pub use check::check;
pub use dataset_dir::is_dataset;
#[cfg(feature = "mcp")]
pub use dataset_dir::table_files;
#[cfg(feature = "mcp")]
pub use error::DatasetError;
pub use groups::pairs_of;
pub use rewrite::{KeptTag, remove};
pub use run_times::run_times;
pub use trace::{TraceOptions, export};
