//! The names and the columns of the tables.

/// The version of the tables, in every row of `trace`. It grows when a column is removed, renamed or changes
/// its meaning; a new column or table does not change it.
pub const SCHEMA_VERSION: i32 = 1;

/// The kind of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// A 64-bit integer; repeated values are kept once.
    Int64,
    /// A 64-bit integer that grows from row to row: a time or a number. The differences are kept.
    Growing,
    /// A 32-bit integer.
    Int32,
    /// A floating-point number.
    Double,
    /// True or false.
    Bool,
    /// UTF-8 text.
    Text,
    /// Bytes that are no text.
    Bytes,
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableColumn {
    /// The column's name.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: ColumnKind,
    /// Whether rows may lack a value.
    pub nullable: bool,
}

/// A table.
#[derive(Debug, Clone, Copy)]
pub struct TableSchema {
    /// The table's number.
    pub id: TableId,
    /// The table's name, and with `.parquet` that of its file.
    pub name: &'static str,
    /// The columns, in the order of the file.
    pub columns: &'static [TableColumn],
    /// The columns by which the rows of a trace are sorted, as far as they are in memory together.
    pub sorted_by: &'static [&'static str],
}

/// The number of a table: its place in [`TABLES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableId {
    Trace,
    Source,
    Tag,
    Process,
    Thread,
    Slice,
    Sched,
    ThreadState,
    Counter,
    MethodProfile,
    MethodCall,
    Launch,
    Event,
    Frame,
    Cause,
    Sample,
    Measure,
    Rejected,
}

impl TableId {
    /// The table.
    pub fn table(self) -> &'static TableSchema {
        &TABLES[self as usize]
    }
}

impl TableSchema {
    /// Whether parts that an earlier version has written lack the table: it came later.
    pub fn may_be_absent(&self) -> bool {
        matches!(self.id, TableId::Frame | TableId::Cause | TableId::Sample | TableId::Measure)
    }

    /// The place of a column, where the table has it.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The name of the table's file in a part.
    pub fn file_name(&self) -> String {
        format!("{}.parquet", self.name)
    }
}

/// The tables whose rows are counted in a column of `trace`, in the order of these columns.
pub const COUNTED: [(TableId, &str); 8] = [
    (TableId::Slice, "slices"),
    (TableId::Sched, "scheds"),
    (TableId::ThreadState, "thread_states"),
    (TableId::Counter, "counters"),
    (TableId::MethodProfile, "method_profiles"),
    (TableId::MethodCall, "method_calls"),
    (TableId::Launch, "launches"),
    (TableId::Event, "raw_events"),
];

const fn column(name: &'static str, kind: ColumnKind) -> TableColumn {
    TableColumn { name, kind, nullable: false }
}

const fn nullable(name: &'static str, kind: ColumnKind) -> TableColumn {
    TableColumn { name, kind, nullable: true }
}

use ColumnKind::{Bool, Bytes, Double, Growing, Int32, Int64, Text};

const TRACE_ID: TableColumn = column("trace_id", Text);
const TS: TableColumn = column("ts", Growing);
const TS_ABS: TableColumn = column("ts_abs", Growing);
const DUR: TableColumn = column("dur", Int64);

/// Every table, in the order of [`TableId`].
#[rustfmt::skip]
pub static TABLES: &[TableSchema] = &[
    TableSchema { id: TableId::Trace, name: "trace", sorted_by: &[], columns: &[
        TRACE_ID, column("schema_version", Int32), column("tracebridge_version", Text),
        column("name", Text), column("format", Text), column("clock", Text), TS_ABS, DUR,
        nullable("start_realtime", Int64), column("day", Text), column("day_from", Text),
        nullable("machine", Text), nullable("device", Text), nullable("android_release", Text),
        nullable("cpus", Int32), column("events", Int64), column("lost_events", Int64),
        column("loss_gaps", Int64), column("unmatched_ends", Int64), column("damaged_places", Int64),
        nullable("damage", Text), nullable("verdict", Text), nullable("residual_median_ns", Int64),
        nullable("residual_p99_ns", Int64), column("has_method_calls", Bool),
        column("slices", Int64), column("scheds", Int64), column("thread_states", Int64),
        column("counters", Int64), column("method_profiles", Int64), column("method_calls", Int64),
        column("launches", Int64), column("raw_events", Int64),
    ] },
    TableSchema { id: TableId::Source, name: "source", sorted_by: &[], columns: &[
        TRACE_ID, column("number", Int32), column("path", Text), nullable("path_bytes", Bytes),
        column("bytes", Int64), column("format", Text), column("clock", Text), column("verdict", Text),
        column("why", Text), column("offset_ns", Int64), nullable("residual_median_ns", Int64),
        nullable("residual_p99_ns", Int64), column("events", Int64), column("duplicates", Int64),
        column("method_edges", Int64),
    ] },
    TableSchema { id: TableId::Tag, name: "tag", sorted_by: &[], columns: &[
        TRACE_ID, column("key", Text), column("value", Text),
    ] },
    TableSchema { id: TableId::Process, name: "process", sorted_by: &["pid"], columns: &[
        TRACE_ID, column("pid", Int32), nullable("name", Text),
    ] },
    TableSchema { id: TableId::Thread, name: "thread", sorted_by: &["utid"], columns: &[
        TRACE_ID, column("utid", Int64), nullable("tid", Int32), nullable("pid", Int32),
        nullable("name", Text), nullable("is_main", Bool), nullable("method_thread_id", Int64),
        nullable("method_thread_name", Text), nullable("doubt", Text),
    ] },
    TableSchema { id: TableId::Slice, name: "slice", sorted_by: &["utid", "ts_abs", "slice_id"], columns: &[
        TRACE_ID, column("slice_id", Growing), nullable("parent_id", Int64), column("kind", Text),
        nullable("utid", Int64), nullable("pid", Int32), nullable("cpu", Int32), nullable("track", Text),
        column("name", Text), nullable("cookie", Int64), nullable("depth", Int32), TS, TS_ABS, DUR,
        nullable("exclusive_ns", Int64), nullable("cpu_dur", Int64), column("is_open", Bool),
    ] },
    TableSchema { id: TableId::Sched, name: "sched", sorted_by: &["utid", "ts_abs"], columns: &[
        TRACE_ID, column("utid", Int64), column("cpu", Int32), TS, TS_ABS, DUR, column("priority", Int32),
        column("is_open", Bool),
    ] },
    TableSchema { id: TableId::ThreadState, name: "thread_state", sorted_by: &["utid", "ts_abs"], columns: &[
        TRACE_ID, column("utid", Int64), column("state", Text), nullable("cpu", Int32),
        nullable("waker_utid", Int64), TS, TS_ABS, DUR, column("is_open", Bool),
    ] },
    TableSchema { id: TableId::Counter, name: "counter", sorted_by: &["name", "ts_abs"], columns: &[
        TRACE_ID, column("name", Text), column("scope", Text), nullable("pid", Int32),
        nullable("utid", Int64), nullable("cpu", Int32), TS, TS_ABS, column("value", Double),
        nullable("value_int", Int64),
    ] },
    TableSchema { id: TableId::MethodProfile, name: "method_profile", sorted_by: &[], columns: &[
        TRACE_ID, column("utid", Int64), column("method", Text), column("class", Text), column("name", Text),
        nullable("signature", Text), nullable("file", Text), column("calls", Int64),
        column("recursive_calls", Int64), nullable("wall_exclusive_ns", Int64),
        nullable("wall_inclusive_ns", Int64), nullable("cpu_exclusive_ns", Int64),
        nullable("cpu_inclusive_ns", Int64),
    ] },
    TableSchema { id: TableId::MethodCall, name: "method_call", sorted_by: &["utid", "ts_abs", "call_id"], columns: &[
        TRACE_ID, column("call_id", Growing), nullable("parent_id", Int64), column("utid", Int64),
        column("method", Text), nullable("signature", Text), column("depth", Int32), TS, TS_ABS, DUR,
        column("exclusive_ns", Int64), nullable("cpu_dur", Int64),
    ] },
    TableSchema { id: TableId::Launch, name: "launch", sorted_by: &[], columns: &[
        TRACE_ID, nullable("app", Text), nullable("utid", Int64), TS, TS_ABS, DUR,
        column("begins_with", Text), column("ends_with", Text), nullable("request_to_bind_ns", Int64),
        nullable("bind_ns", Int64), nullable("bind_to_frame_ns", Int64), nullable("type", Text),
        nullable("rule", Text), nullable("pid", Int32), nullable("render_utid", Int64),
        nullable("ttid_ns", Int64), nullable("ttfd_ns", Int64), nullable("overlapped", Bool),
    ] },
    TableSchema { id: TableId::Event, name: "event", sorted_by: &["ts_abs"], columns: &[
        TRACE_ID, column("utid", Int64), column("cpu", Int32), TS, TS_ABS, column("name", Text),
        column("args", Text),
    ] },
    TableSchema { id: TableId::Frame, name: "frame", sorted_by: &["pid", "ts_abs"], columns: &[
        TRACE_ID, nullable("id", Int64), nullable("app", Text), column("pid", Int32), nullable("layer", Text),
        nullable("utid", Int64), nullable("render_utid", Int64), TS, TS_ABS, DUR, nullable("cpu_ns", Int64),
        nullable("duration_cpu_ns", Int64), nullable("overrun_ns", Int64), nullable("deadline", Text),
        nullable("jank_type", Text),
    ] },
    TableSchema { id: TableId::Cause, name: "cause", sorted_by: &["ts_abs"], columns: &[
        TRACE_ID, column("span", Text), nullable("app", Text), nullable("frame_id", Int64), TS, TS_ABS, DUR,
        column("cause", Text), column("path", Text), nullable("subject", Text), column("ns", Int64),
        column("count", Int64), nullable("own", Text),
    ] },
    TableSchema { id: TableId::Sample, name: "sample", sorted_by: &["utid", "ts_abs"], columns: &[
        TRACE_ID, column("utid", Int64), nullable("cpu", Int32), TS, TS_ABS, column("event", Text),
        column("period", Int64), column("is_off_cpu", Bool), nullable("function", Text),
        nullable("kind", Text), nullable("module", Text), nullable("own_function", Text),
        nullable("stack", Text),
    ] },
    TableSchema { id: TableId::Measure, name: "measure", sorted_by: &["kind", "name"], columns: &[
        TRACE_ID, column("kind", Text), column("name", Text), nullable("utid", Int64),
        column("value", Int64), nullable("count", Int64),
    ] },
    TableSchema { id: TableId::Rejected, name: "rejected", sorted_by: &[], columns: &[
        column("rejected_id", Text), column("path", Text), nullable("path_bytes", Bytes),
        nullable("bytes", Int64), column("reason", Text),
    ] },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_is_in_its_place_and_sorted_by_columns_that_it_has() {
        for (place, table) in TABLES.iter().enumerate() {
            assert_eq!(table.id as usize, place, "{}", table.name);
            assert!(table.sorted_by.iter().all(|name| table.column(name).is_some()), "{}", table.name);
            let names: std::collections::BTreeSet<_> = table.columns.iter().map(|c| c.name).collect();
            assert_eq!(names.len(), table.columns.len(), "{}", table.name);
            let is_trace = table.columns[0].name == "trace_id";
            assert!(is_trace || table.id == TableId::Rejected, "{}", table.name);
        }
    }

    #[test]
    fn the_last_columns_of_a_trace_count_its_rows() {
        let trace = TableId::Trace.table().columns;
        let last: Vec<&str> = trace[trace.len() - COUNTED.len()..].iter().map(|column| column.name).collect();
        assert_eq!(last, COUNTED.map(|(_, column)| column));
    }

    #[test]
    fn the_documentation_names_every_column_of_every_table() {
        let text = include_str!("../../docs/dataset.md");
        for table in TABLES {
            let heading = format!("\n### `{}`\n", table.name);
            let (_, section) = text.split_once(&heading).unwrap_or_else(|| panic!("no {heading}"));
            let section = section.split("\n### ").next().unwrap().split("\n## ").next().unwrap();
            let documented: Vec<&str> = section
                .lines()
                .filter_map(|line| line.strip_prefix("| `")?.split_once("` |").map(|(name, _)| name))
                .collect();
            let columns: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
            assert_eq!(documented, columns, "{}", table.name);
        }
    }
}
