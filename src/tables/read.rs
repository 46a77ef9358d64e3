//! Reads the Parquet file of one table.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::Type;

use super::rows::{ColumnRows, Rows, Values};
use super::schema::{Kind, Table};
use super::table_file::schema;

/// The most rows of a row group that is read. A file of ours has far fewer.
const MAX_ROW_GROUP_ROWS: i64 = 16 << 20;

/// Why the file of a table cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The system refused to open the file.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is damaged, or no Parquet file.
    #[error("{path}: {source}")]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ParquetError,
    },
    /// The file has other columns than the table.
    #[error(
        "{path}: its columns are not those of the table {table}: another version of tracebridge has written it, \
         or another program"
    )]
    OtherColumns {
        /// The file.
        path: PathBuf,
        /// The table.
        table: &'static str,
    },
    /// A row group has more rows than are kept in memory.
    #[error("{path}: row group {group} claims {rows} rows, and tracebridge writes none of so many")]
    RowGroup {
        /// The file.
        path: PathBuf,
        /// The number of the row group, from 0.
        group: usize,
        /// The rows that it claims.
        rows: i64,
    },
}

/// The file of a table, open to be read.
pub struct TableFile {
    path: PathBuf,
    table: &'static Table,
    /// `None` where the part is older than the table.
    reader: Option<SerializedFileReader<File>>,
    /// The place of each of the table's columns in the file; `None` where the file is older than the column,
    /// whose values are then null.
    places: Vec<Option<usize>>,
}

impl TableFile {
    /// Opens the file of `table` in the directory `dir`.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn open(dir: &Path, table: &'static Table) -> Result<TableFile, TableError> {
        let path = dir.join(table.file_name());
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && table.may_be_absent() => {
                return Ok(TableFile { path, table, reader: None, places: Vec::new() });
            }
            file => file.map_err(|source| TableError::Io { path: path.clone(), source })?,
        };
        let damaged = |source| TableError::Parquet { path: path.clone(), source };
        let reader = SerializedFileReader::new(file).map_err(damaged)?;
        let expected = schema(table).map_err(damaged)?;
        let found = reader.metadata().file_metadata().schema().get_fields();
        let place = |field: &Arc<Type>| found.iter().position(|found| found == field);
        let places: Vec<Option<usize>> = expected.get_fields().iter().map(place).collect();
        let known = places.iter().flatten().count();
        let lacks_needed =
            places.iter().zip(table.columns).any(|(at, column)| at.is_none() && !column.nullable);
        if known != found.len() || lacks_needed {
            return Err(TableError::OtherColumns { path, table: table.name });
        }
        Ok(TableFile { path, table, reader: Some(reader), places })
    }

    /// The number of row groups.
    pub fn row_groups(&self) -> usize {
        self.reader.as_ref().map_or(0, FileReader::num_row_groups)
    }

    /// Reads a row group.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn rows(&self, group: usize) -> Result<Rows, TableError> {
        self.read(group, |_| true)
    }

    /// Reads the columns of a row group that have these names. The other columns have no values.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn columns(&self, group: usize, names: &[&str]) -> Result<Rows, TableError> {
        self.read(group, |name| names.contains(&name))
    }

    fn read(&self, group: usize, is_read: impl Fn(&str) -> bool) -> Result<Rows, TableError> {
        let damaged = |source| TableError::Parquet { path: self.path.clone(), source };
        let Some(reader) = &self.reader else { return Ok(Rows::new(self.table)) };
        let reader = reader.get_row_group(group).map_err(damaged)?;
        let rows = reader.metadata().num_rows();
        if !(0..=MAX_ROW_GROUP_ROWS).contains(&rows) {
            return Err(TableError::RowGroup { path: self.path.clone(), group, rows });
        }
        let mut texts = Vec::new();
        let mut columns = Vec::new();
        for (at, column) in self.table.columns.iter().enumerate() {
            let Some(at) = self.places.get(at).copied().flatten().filter(|_| is_read(column.name)) else {
                columns.push(ColumnRows::without_values(column.kind, rows as usize));
                continue;
            };
            let column = ColumnRange { rows: rows as usize, nullable: column.nullable, kind: column.kind };
            let values = reader.get_column_reader(at).and_then(|reader| column.read(reader, &mut texts));
            columns.push(values.map_err(damaged)?);
        }
        Ok(Rows::of_columns(self.table, columns, texts, rows as usize))
    }

    /// Reads all rows: only for tables with a few rows for each trace.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn all_rows(&self) -> Result<Rows, TableError> {
        let mut all = Rows::new(self.table);
        for group in 0..self.row_groups() {
            all.append(&self.rows(group)?);
        }
        Ok(all)
    }
}

/// What is read of one column of a row group.
struct ColumnRange {
    rows: usize,
    nullable: bool,
    kind: Kind,
}

impl ColumnRange {
    fn read(&self, reader: ColumnReader, texts: &mut Vec<ByteArray>) -> Result<ColumnRows, ParquetError> {
        let (values, defined) = match reader {
            ColumnReader::Int64ColumnReader(reader) => self.values(reader, Values::Int64)?,
            ColumnReader::Int32ColumnReader(reader) => self.values(reader, Values::Int32)?,
            ColumnReader::DoubleColumnReader(reader) => self.values(reader, Values::Double)?,
            ColumnReader::BoolColumnReader(reader) => self.values(reader, Values::Bool)?,
            ColumnReader::ByteArrayColumnReader(reader) => {
                let (values, defined) = self.read_values(reader)?;
                if self.kind == Kind::Text
                    && values.iter().any(|text| std::str::from_utf8(text.data()).is_err())
                {
                    return Err(ParquetError::General("a text is not UTF-8".into()));
                }
                let first = texts.len() as u32;
                let numbers = (first..first + values.len() as u32).collect();
                texts.extend(values);
                (Values::Text(self.spread(numbers, &defined)), defined)
            }
            _ => return Err(ParquetError::General("a column of an unknown type".into())),
        };
        Ok(ColumnRows { values, defined })
    }

    fn values<T: DataType>(
        &self,
        reader: ColumnReaderImpl<T>,
        make: fn(Vec<T::T>) -> Values,
    ) -> Result<(Values, Vec<i16>), ParquetError> {
        let (values, defined) = self.read_values(reader)?;
        Ok((make(self.spread(values, &defined)), defined))
    }

    /// The values that are there, and for each row whether it has one.
    fn read_values<T: DataType>(
        &self,
        mut reader: ColumnReaderImpl<T>,
    ) -> Result<(Vec<T::T>, Vec<i16>), ParquetError> {
        let (mut values, mut defined, mut rows) = (Vec::new(), Vec::new(), 0);
        while rows < self.rows {
            let levels = self.nullable.then_some(&mut defined);
            let (read, ..) = reader.read_records(self.rows - rows, levels, None, &mut values)?;
            if read == 0 {
                return Err(ParquetError::General(format!(
                    "a column ends after {rows} of {} rows",
                    self.rows
                )));
            }
            rows += read;
        }
        let count = if self.nullable { defined.iter().filter(|d| **d == 1).count() } else { rows };
        if values.len() != count || self.nullable && defined.len() != self.rows {
            return Err(ParquetError::General("a column has more or fewer values than rows".into()));
        }
        Ok((values, defined))
    }

    /// One value for each row: the default where it has none.
    fn spread<V: Default + Clone>(&self, values: Vec<V>, defined: &[i16]) -> Vec<V> {
        if !self.nullable {
            return values;
        }
        let mut values = values.into_iter();
        defined
            .iter()
            .map(|d| if *d == 1 { values.next().unwrap_or_default() } else { V::default() })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::TableId;
    use super::super::table_file::TableWriter;
    use super::*;
    use crate::tables::Cell;

    #[test]
    fn a_file_that_is_older_than_a_column_has_null_there_and_a_part_may_be_older_than_a_table() {
        let dir = tempfile::tempdir().unwrap();
        let now = TableId::Launch.table();
        let before = now.column("type").unwrap();
        // What an earlier version wrote: the columns before `type`.
        let old: &'static Table = Box::leak(Box::new(Table { columns: &now.columns[..before], ..*now }));
        let mut rows = Rows::new(old);
        let cells: Vec<Cell<'_>> = (0..before)
            .map(|at| match old.columns[at].kind {
                Kind::Text => Cell::Text("request"),
                _ => Cell::Int(7),
            })
            .collect();
        rows.push(&cells);
        let mut writer = TableWriter::create(dir.path(), old).unwrap();
        writer.add(&rows).unwrap();
        writer.finish().unwrap();
        let read = TableFile::open(dir.path(), now).unwrap().all_rows().unwrap();
        assert_eq!((read.len(), read.cell(0, before - 1)), (1, Cell::Int(7)));
        assert!((before..now.columns.len()).all(|at| read.cell(0, at) == Cell::Null));
        let frames = TableFile::open(dir.path(), TableId::Frame.table()).unwrap();
        assert!(frames.row_groups() == 0 && frames.all_rows().unwrap().is_empty());
        assert!(TableFile::open(dir.path(), TableId::Slice.table()).is_err());
    }
}
