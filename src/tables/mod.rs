//! The tables of a dataset: their columns, buffers of their rows, and Parquet files of them.
//!
//! docs/dataset.md describes every column; a test compares it with [`TABLES`]. The Parquet format is
//! defined in <https://parquet.apache.org/docs/file-format/>. All columns are flat: no value is a list or a
//! structure.

mod column_rows;
mod open_regular;
mod page_sizes;
mod parquet_guard;
mod part_files;
mod read;
mod rows;
mod schema;
mod table_file;
mod trace_rows;

pub use open_regular::open_regular;
pub use part_files::{PartFiles, UNFINISHED_PREFIX};
pub use read::{TableError, TableFile};
pub use rows::{Cell, Rows};
pub use schema::{COUNTED, SCHEMA_VERSION, TABLES, Table, TableId};
pub use trace_rows::{StartUnknown, TraceRows};
