//! Rows of one table in memory, by column.

use std::cmp::Ordering;
use std::collections::HashMap;

use parquet::data_type::ByteArray;

use super::schema::{ColumnKind, TableColumn, TableSchema};

use crate::clock::Timestamp;
use crate::ids::{Cpu, Pid, Tid};

/// One value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// No value.
    Null,
    /// For [`ColumnKind::Int64`], [`ColumnKind::Growing`] and [`ColumnKind::Int32`].
    Int(i64),
    /// For [`ColumnKind::Double`].
    Double(f64),
    /// For [`ColumnKind::Bool`].
    Bool(bool),
    /// For [`ColumnKind::Text`].
    Text(&'a str),
    /// For [`ColumnKind::Bytes`].
    Bytes(&'a [u8]),
}

impl From<i64> for Cell<'_> {
    fn from(value: i64) -> Self {
        Cell::Int(value)
    }
}

impl From<i32> for Cell<'_> {
    fn from(value: i32) -> Self {
        Cell::Int(value.into())
    }
}

impl From<u32> for Cell<'_> {
    fn from(value: u32) -> Self {
        Cell::Int(value.into())
    }
}

impl From<Tid> for Cell<'_> {
    fn from(value: Tid) -> Self {
        Cell::Int(value.into())
    }
}

impl From<Pid> for Cell<'_> {
    fn from(value: Pid) -> Self {
        Cell::Int(value.into())
    }
}

impl From<Cpu> for Cell<'_> {
    fn from(value: Cpu) -> Self {
        Cell::Int(value.into())
    }
}

/// The ns: those beyond 2^63 − 1 become that.
impl From<Timestamp> for Cell<'_> {
    fn from(value: Timestamp) -> Self {
        value.0.into()
    }
}

/// Lengths and counts: those beyond 2^63 − 1 become that.
impl From<u64> for Cell<'_> {
    fn from(value: u64) -> Self {
        Cell::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Cell<'_> {
    fn from(value: usize) -> Self {
        Cell::from(value as u64)
    }
}

impl From<bool> for Cell<'_> {
    fn from(value: bool) -> Self {
        Cell::Bool(value)
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(value: &'a str) -> Self {
        Cell::Text(value)
    }
}

impl<'a> From<&'a String> for Cell<'a> {
    fn from(value: &'a String) -> Self {
        Cell::Text(value)
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}

/// The values of one column; a row without a value has 0 here.
#[derive(Debug, Clone)]
pub(super) enum Values {
    Int64(Vec<i64>),
    Int32(Vec<i32>),
    Double(Vec<f64>),
    Bool(Vec<bool>),
    /// Numbers of texts in [`Rows::texts`].
    Text(Vec<u32>),
}

impl Values {
    fn new(kind: ColumnKind) -> Values {
        match kind {
            ColumnKind::Int64 | ColumnKind::Growing => Values::Int64(Vec::new()),
            ColumnKind::Int32 => Values::Int32(Vec::new()),
            ColumnKind::Double => Values::Double(Vec::new()),
            ColumnKind::Bool => Values::Bool(Vec::new()),
            ColumnKind::Text | ColumnKind::Bytes => Values::Text(Vec::new()),
        }
    }

    /// The size of one value in memory, bytes.
    fn width(&self) -> usize {
        match self {
            Values::Int64(_) | Values::Double(_) => 8,
            Values::Int32(_) | Values::Text(_) => 4,
            Values::Bool(_) => 1,
        }
    }

    fn reordered(&self, order: &[u32]) -> Values {
        fn pick<T: Copy>(values: &[T], order: &[u32]) -> Vec<T> {
            order.iter().map(|row| values[*row as usize]).collect()
        }
        match self {
            Values::Int64(values) => Values::Int64(pick(values, order)),
            Values::Int32(values) => Values::Int32(pick(values, order)),
            Values::Double(values) => Values::Double(pick(values, order)),
            Values::Bool(values) => Values::Bool(pick(values, order)),
            Values::Text(values) => Values::Text(pick(values, order)),
        }
    }
}

/// One column of [`Rows`].
#[derive(Debug, Clone)]
pub(super) struct ColumnRows {
    pub values: Values,
    /// For each row 1, or 0 where it has no value; empty in a column in which every row has one.
    pub defined: Vec<i16>,
}

impl ColumnRows {
    /// A column of so many rows that are not read.
    pub fn without_values(kind: ColumnKind, rows: usize) -> ColumnRows {
        ColumnRows { values: Values::new(kind), defined: vec![0; rows] }
    }
}

/// Rows of one table.
#[derive(Debug, Clone)]
pub struct Rows {
    table: &'static TableSchema,
    pub(super) columns: Vec<ColumnRows>,
    /// Each text and each string of bytes once.
    pub(super) texts: Vec<ByteArray>,
    numbers: HashMap<Box<[u8]>, u32>,
    len: usize,
    /// The size of [`Rows::texts`] and of the numbers beside it, bytes.
    text_bytes: usize,
}

/// Memory that a text takes beside its own bytes, which are kept twice, bytes.
const TEXT_OVERHEAD_BYTES: usize = 96;

impl Rows {
    /// No rows of `table`.
    pub fn new(table: &'static TableSchema) -> Rows {
        let column =
            |column: &TableColumn| ColumnRows { values: Values::new(column.kind), defined: Vec::new() };
        Rows {
            table,
            columns: table.columns.iter().map(column).collect(),
            texts: Vec::new(),
            numbers: HashMap::new(),
            len: 0,
            text_bytes: 0,
        }
    }

    /// The table.
    pub(super) fn table(&self) -> &'static TableSchema {
        self.table
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// About the size in memory, bytes.
    pub fn bytes(&self) -> usize {
        let width: usize = self
            .columns
            .iter()
            .zip(self.table.columns)
            .map(|(rows, column)| rows.values.width() + if column.nullable { 2 } else { 0 })
            .sum();
        self.len * width + self.text_bytes
    }

    /// Adds a row. A cell that does not fit its column counts as no value, and as 0 in a column that needs
    /// one.
    pub fn push(&mut self, cells: &[Cell<'_>]) {
        debug_assert_eq!(cells.len(), self.columns.len(), "cells of a row of {}", self.table.name);
        for (at, column) in self.table.columns.iter().enumerate() {
            let cell = cells.get(at).copied().unwrap_or(Cell::Null);
            let text = match cell {
                Cell::Text(text) if column.kind == ColumnKind::Text => Some(self.number(text.as_bytes())),
                Cell::Bytes(bytes) if column.kind == ColumnKind::Bytes => Some(self.number(bytes)),
                Cell::Null
                    if !column.nullable && matches!(column.kind, ColumnKind::Text | ColumnKind::Bytes) =>
                {
                    Some(self.number(b""))
                }
                _ => None,
            };
            let rows = &mut self.columns[at];
            let is_defined = match (&mut rows.values, cell) {
                (Values::Int64(values), Cell::Int(value)) => {
                    values.push(value);
                    true
                }
                (Values::Int32(values), Cell::Int(value)) => {
                    values.push(value.clamp(i32::MIN.into(), i32::MAX.into()) as i32);
                    true
                }
                (Values::Double(values), Cell::Double(value)) => {
                    values.push(value);
                    true
                }
                (Values::Bool(values), Cell::Bool(value)) => {
                    values.push(value);
                    true
                }
                (Values::Text(values), _) => {
                    values.push(text.unwrap_or(0));
                    text.is_some()
                }
                (Values::Int64(values), _) => push_nothing(values),
                (Values::Int32(values), _) => push_nothing(values),
                (Values::Double(values), _) => push_nothing(values),
                (Values::Bool(values), _) => push_nothing(values),
            };
            debug_assert!(is_defined || column.nullable, "{}.{} needs a value", self.table.name, column.name);
            if column.nullable {
                rows.defined.push(i16::from(is_defined));
            }
        }
        self.len += 1;
    }

    /// The number of a text.
    fn number(&mut self, text: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.texts.push(ByteArray::from(text.to_vec()));
        self.numbers.insert(text.into(), number);
        self.text_bytes += 2 * text.len() + TEXT_OVERHEAD_BYTES;
        number
    }

    /// Adds the rows of `other`, which are of the same table.
    pub fn append(&mut self, other: &Rows) {
        let numbers: Vec<u32> = other.texts.iter().map(|text| self.number(text.data())).collect();
        for (column, more) in self.columns.iter_mut().zip(&other.columns) {
            match (&mut column.values, &more.values) {
                (Values::Int64(values), Values::Int64(more)) => values.extend_from_slice(more),
                (Values::Int32(values), Values::Int32(more)) => values.extend_from_slice(more),
                (Values::Double(values), Values::Double(more)) => values.extend_from_slice(more),
                (Values::Bool(values), Values::Bool(more)) => values.extend_from_slice(more),
                (Values::Text(values), Values::Text(more)) => {
                    let number = |old: &u32| numbers.get(*old as usize).copied().unwrap_or(0);
                    values.extend(more.iter().map(number));
                }
                _ => debug_assert!(false, "rows of two tables"),
            }
            column.defined.extend_from_slice(&more.defined);
        }
        self.len += other.len;
    }

    /// Sets the column `ts` of every row to the time of the column `ts_abs` since `start`, ns. Does nothing
    /// in a table without these columns.
    pub fn set_relative_times(&mut self, start: i64) {
        let (Some(ts), Some(ts_abs)) = (self.table.column("ts"), self.table.column("ts_abs")) else { return };
        if let Values::Int64(absolute) = &self.columns[ts_abs].values {
            let relative = absolute.iter().map(|time| time.saturating_sub(start)).collect();
            self.columns[ts].values = Values::Int64(relative);
        }
    }

    /// Sorts the rows by the columns of [`TableSchema::sorted_by`]; rows without a value come last.
    pub fn sort(&mut self) {
        let keys: Vec<&ColumnRows> = self
            .table
            .sorted_by
            .iter()
            .filter_map(|name| Some(&self.columns[self.table.column(name)?]))
            .collect();
        if keys.is_empty() {
            return;
        }
        let mut order: Vec<u32> = (0..self.len as u32).collect();
        let compare = |a: &u32, b: &u32| {
            let of_key = |key: &&ColumnRows| self.compare(key, *a as usize, *b as usize);
            keys.iter().map(of_key).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        order.sort_by(compare);
        self.pick(&order);
    }

    fn compare(&self, key: &ColumnRows, a: usize, b: usize) -> Ordering {
        let is_defined = |row: usize| key.defined.get(row).is_none_or(|defined| *defined == 1);
        let by_value = || match &key.values {
            Values::Int64(values) => values[a].cmp(&values[b]),
            Values::Int32(values) => values[a].cmp(&values[b]),
            Values::Double(values) => values[a].total_cmp(&values[b]),
            Values::Bool(values) => values[a].cmp(&values[b]),
            Values::Text(values) if values[a] == values[b] => Ordering::Equal,
            Values::Text(values) => {
                let text = |number: u32| self.texts.get(number as usize).map(ByteArray::data);
                text(values[a]).cmp(&text(values[b]))
            }
        };
        match (is_defined(a), is_defined(b)) {
            (true, true) => by_value(),
            (a, b) => b.cmp(&a),
        }
    }

    /// Leaves only the rows with these numbers, in this order.
    fn pick(&mut self, order: &[u32]) {
        for column in &mut self.columns {
            column.values = column.values.reordered(order);
            if !column.defined.is_empty() {
                column.defined = order.iter().map(|row| column.defined[*row as usize]).collect();
            }
        }
        self.len = order.len();
    }

    /// Leaves only the rows whose text in `column` fulfils `keep`.
    pub fn retain(&mut self, column: usize, keep: impl Fn(&str) -> bool) {
        let kept: Vec<u32> = (0..self.len)
            .filter(|row| self.text(*row, column).is_none_or(&keep))
            .map(|row| row as u32)
            .collect();
        self.pick(&kept);
    }

    /// The text in a row; `None` where there is none, or the column holds no text.
    pub fn text(&self, row: usize, column: usize) -> Option<&str> {
        match self.cell(row, column) {
            Cell::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value in a row.
    pub fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let Some(rows) = self.columns.get(column) else { return Cell::Null };
        if rows.defined.get(row).is_some_and(|defined| *defined == 0) {
            return Cell::Null;
        }
        let bytes = |number: &u32| self.texts.get(*number as usize).map_or(&b""[..], ByteArray::data);
        match &rows.values {
            Values::Int64(values) => values.get(row).copied().into(),
            Values::Int32(values) => values.get(row).copied().into(),
            Values::Double(values) => values.get(row).map_or(Cell::Null, |value| Cell::Double(*value)),
            Values::Bool(values) => values.get(row).copied().into(),
            Values::Text(values) => values.get(row).map_or(Cell::Null, |number| {
                match (self.table.columns[column].kind, std::str::from_utf8(bytes(number))) {
                    (ColumnKind::Text, Ok(text)) => Cell::Text(text),
                    _ => Cell::Bytes(bytes(number)),
                }
            }),
        }
    }

    /// Makes rows of columns that were read; `texts` are those that the columns of texts number.
    pub(super) fn of_columns(
        table: &'static TableSchema,
        columns: Vec<ColumnRows>,
        texts: Vec<ByteArray>,
        len: usize,
    ) -> Rows {
        let text_bytes = texts.iter().map(|text| text.len() + TEXT_OVERHEAD_BYTES).sum();
        Rows { table, columns, texts, numbers: HashMap::new(), len, text_bytes }
    }
}

fn push_nothing<T: Default>(values: &mut Vec<T>) -> bool {
    values.push(T::default());
    false
}

#[cfg(test)]
mod tests {
    use super::super::schema::TableId;
    use super::*;

    impl Rows {
        fn int(&self, row: usize, column: usize) -> Option<i64> {
            match self.cell(row, column) {
                Cell::Int(value) => Some(value),
                _ => None,
            }
        }
    }

    fn states(rows: &[(i64, &str, Option<i64>, i64)]) -> Rows {
        let mut states = Rows::new(TableId::ThreadState.table());
        for (utid, state, cpu, ts) in rows {
            let cpu = Cell::from(*cpu);
            let ts = Cell::from(*ts);
            let zero = Cell::Int(0);
            states.push(&[
                "t".into(),
                (*utid).into(),
                (*state).into(),
                cpu,
                Cell::Null,
                zero,
                ts,
                zero,
                false.into(),
            ]);
        }
        states
    }

    #[test]
    fn rows_are_sorted_by_the_columns_of_their_table_and_keep_their_cells_together() {
        let mut rows = states(&[(9, "b", None, 5), (7, "a", Some(1), 8), (7, "c", Some(2), 6)]);
        rows.sort();
        rows.set_relative_times(5);
        let row = |n| (rows.int(n, 1), rows.text(n, 2), rows.int(n, 3), rows.int(n, 5), rows.int(n, 6));
        assert_eq!(row(0), (Some(7), Some("c"), Some(2), Some(1), Some(6)));
        assert_eq!(row(1), (Some(7), Some("a"), Some(1), Some(3), Some(8)));
        assert_eq!(row(2), (Some(9), Some("b"), None, Some(0), Some(5)));
    }

    #[test]
    fn appended_rows_keep_their_texts() {
        let mut rows = states(&[(1, "one", None, 1)]);
        rows.append(&states(&[(2, "two", None, 1), (3, "one", None, 1)]));
        assert_eq!([0, 1, 2].map(|n| rows.text(n, 2).unwrap().to_owned()), ["one", "two", "one"]);
        rows.retain(2, |state| state == "one");
        assert_eq!([0, 1].map(|n| rows.int(n, 1).unwrap()), [1, 3]);
        assert_eq!(rows.len(), 2);
    }
}
