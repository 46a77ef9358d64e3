//! The tables of a dataset: their columns, buffers of their rows, and Parquet files of them.
//!
//! docs/dataset.md describes every column; a test compares it with [`TABLES`]. The Parquet format is
//! defined in <https://parquet.apache.org/docs/file-format/>. All columns are flat: no value is a list or a
//! structure.

mod page_sizes;
mod read;
mod rows;
mod schema;
mod table_file;
mod trace_rows;

pub use read::{TableError, TableFile};
pub use rows::{Cell, Rows};
pub use schema::{COUNTED, SCHEMA_VERSION, TABLES, TableId, TableSchema};
pub use table_file::{PartFiles, UNFINISHED_PREFIX};
pub use trace_rows::{StartUnknown, TraceRows};
