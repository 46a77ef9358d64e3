//! Reads the Parquet file of one table, some rows at a time.
//!
//! The file may be damaged, or made by somebody who wants to do harm. So nothing that it says of its sizes is
//! believed unseen: rows have a limit that follows from the size of the file, pages are measured before they
//! are read (`page_sizes.rs`), and a panic of the crate `parquet` is an error.

use std::any::Any;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::Type;

use super::page_sizes::page_sizes;
use super::rows::{Cell, ColumnRows, Rows, Values};
use super::schema::{ColumnKind, TableId, TableSchema};
use super::table_file::schema;
use crate::file_access::open_regular;

/// Rows are read so many at a time.
const BATCH_ROWS: usize = 32 << 10;

/// A file may have so many rows whatever its size.
const LEAST_ROW_LIMIT: u64 = 4 << 20;

/// A larger table has no more rows for each byte of its file. Real ones have one row for 5 to 30 bytes.
const MAX_ROWS_PER_BYTE: u64 = 16;

/// The footer is no larger, bytes. It takes some 100 bytes for each column of a row group.
const MAX_FOOTER_BYTES: u64 = 16 << 20;

/// Memory that the pages that are read at once may take, bytes. A row group of tracebridge has pages of 1 MB,
/// and dictionaries of 4 MB.
const MAX_PAGE_MEMORY: u64 = 256 << 20;

/// Bytes of a file that belong to no column of it and not to its footer.
const MAX_UNUSED_BYTES: u64 = 1 << 20;

/// A table of which all rows are kept has no more of them: a part has at most 64 traces.
const MAX_KEPT_ROWS: u64 = 64 << 10;

/// The texts of these rows are no longer together, bytes.
const MAX_KEPT_TEXT_BYTES: usize = 64 << 20;

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
        /// The fault.
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
    /// The file says of itself what no table of a trace has.
    #[error("{path}: {what}: tracebridge writes no such table")]
    Limit {
        /// The file.
        path: PathBuf,
        /// The limit, and what exceeds it.
        what: String,
    },
}

/// The file of a table, open to be read.
pub struct TableFile {
    path: PathBuf,
    table: &'static TableSchema,
    /// `None` where the part is older than the table.
    file: Option<OpenFile>,
    /// The place of each of the table's columns in the file; `None` where the file is older than the column,
    /// whose values are then null.
    places: Vec<Option<usize>>,
}

struct OpenFile {
    reader: SerializedFileReader<File>,
    /// The same file, to measure its pages.
    file: File,
    /// The rows of each row group.
    groups: Vec<u64>,
}

impl TableFile {
    /// Opens the file of `table` in the directory `dir`.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn open(dir: &Path, table: &'static TableSchema) -> Result<TableFile, TableError> {
        let path = dir.join(table.file_name());
        let file = match open_regular(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && table.may_be_absent() => {
                return Ok(TableFile { path, table, file: None, places: Vec::new() });
            }
            file => file.map_err(|source| TableError::Io { path: path.clone(), source })?,
        };
        TableFile::of_file(path, table, file)
    }

    fn of_file(path: PathBuf, table: &'static TableSchema, file: File) -> Result<TableFile, TableError> {
        let damaged = |source| TableError::Parquet { path: path.clone(), source };
        let limit = |what| TableError::Limit { path: path.clone(), what };
        let io = |source| TableError::Io { path: path.clone(), source };
        let size = file.metadata().map_err(io)?.len();
        let footer = footer_bytes(&file, size).map_err(io)?;
        if footer > MAX_FOOTER_BYTES.min(size) {
            return Err(limit(format!("its footer has {footer} bytes")));
        }
        let second = file.try_clone().map_err(io)?;
        let (reader, facts) = guarded(|| {
            let reader = SerializedFileReader::new(file)?;
            let facts = FooterFacts::new(&reader)?;
            Ok((reader, facts))
        })
        .map_err(damaged)?;
        let row_limit = match table.id {
            TableId::Trace | TableId::Rejected => MAX_KEPT_ROWS,
            _ => LEAST_ROW_LIMIT.max(size.saturating_mul(MAX_ROWS_PER_BYTE)),
        };
        let rows: u64 = facts.groups.iter().fold(0, |sum, rows| sum.saturating_add(*rows));
        if rows > row_limit {
            return Err(limit(format!("{rows} rows in {size} bytes")));
        }
        if facts.column_bytes.saturating_add(footer + MAX_UNUSED_BYTES) < size {
            return Err(limit(format!("{} of its {size} bytes belong to a column", facts.column_bytes)));
        }
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
        let file = Some(OpenFile { reader, file: second, groups: facts.groups });
        Ok(TableFile { path, table, file, places })
    }

    /// The number of rows, as the footer says it.
    pub fn row_count(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.groups.iter().sum())
    }

    /// Reads all rows, some at a time.
    pub fn batches(&self) -> RowBatches<'_> {
        RowBatches { file: self, names: None, next_group: 0, group: None }
    }

    /// Reads the columns with these names, some rows at a time. The other columns have no values.
    pub fn batches_of<'a>(&'a self, names: &'a [&'a str]) -> RowBatches<'a> {
        RowBatches { file: self, names: Some(names), next_group: 0, group: None }
    }

    /// Reads all rows: only for tables with a few rows for each trace.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn all_rows(&self) -> Result<Rows, TableError> {
        if self.row_count() > MAX_KEPT_ROWS {
            return Err(self.limit(format!("{} rows of the table {}", self.row_count(), self.table.name)));
        }
        let mut all = Rows::new(self.table);
        let mut text_bytes = 0;
        for rows in self.batches() {
            let rows = rows?;
            text_bytes += (0..rows.len()).map(|row| self.text_bytes(&rows, row)).sum::<usize>();
            if text_bytes > MAX_KEPT_TEXT_BYTES {
                return Err(self.limit(format!("more than {MAX_KEPT_TEXT_BYTES} bytes of text")));
            }
            all.append(&rows);
        }
        Ok(all)
    }

    fn text_bytes(&self, rows: &Rows, row: usize) -> usize {
        let length = |column| match rows.cell(row, column) {
            Cell::Text(text) => text.len(),
            Cell::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        (0..self.table.columns.len()).map(length).sum()
    }

    fn limit(&self, what: String) -> TableError {
        TableError::Limit { path: self.path.clone(), what }
    }

    /// Opens the columns of a row group, after their pages were measured.
    fn open_group(
        &self,
        file: &OpenFile,
        group: usize,
        is_read: impl Fn(&str) -> bool,
    ) -> Result<Vec<Option<ColumnReader>>, TableError> {
        let rows = file.groups.get(group).copied().unwrap_or(0);
        let mut memory: u64 = 0;
        let columns = guarded(|| {
            let reader = file.reader.get_row_group(group)?;
            let mut columns = Vec::new();
            for (at, column) in self.table.columns.iter().enumerate() {
                let Some(at) = self.places.get(at).copied().flatten().filter(|_| is_read(column.name)) else {
                    columns.push(None);
                    continue;
                };
                let (start, length) = reader.metadata().column(at).byte_range();
                let sizes = page_sizes(&file.file, start..start.saturating_add(length))?;
                if sizes.values != rows {
                    let values = sizes.values;
                    let name = column.name;
                    return Err(ParquetError::General(format!(
                        "the column {name} has {values} values in a row group of {rows} rows"
                    )));
                }
                memory = memory.saturating_add(sizes.memory);
                columns.push((memory <= MAX_PAGE_MEMORY).then(|| reader.get_column_reader(at)).transpose()?);
            }
            Ok(columns)
        })
        .map_err(|source| TableError::Parquet { path: self.path.clone(), source })?;
        if memory > MAX_PAGE_MEMORY {
            return Err(self.limit(format!("pages of {memory} bytes in a row group")));
        }
        Ok(columns)
    }
}

/// The rows of a table, some at a time. Nothing comes after an error.
pub struct RowBatches<'a> {
    file: &'a TableFile,
    /// The columns that are read; `None` for all.
    names: Option<&'a [&'a str]>,
    next_group: usize,
    group: Option<OpenGroup>,
}

struct OpenGroup {
    columns: Vec<Option<ColumnReader>>,
    rows_left: u64,
}

impl Iterator for RowBatches<'_> {
    type Item = Result<Rows, TableError>;

    fn next(&mut self) -> Option<Result<Rows, TableError>> {
        let file = self.file.file.as_ref()?;
        while self.group.as_ref().is_none_or(|group| group.rows_left == 0) {
            let rows_left = *file.groups.get(self.next_group)?;
            let is_read = |name: &str| self.names.is_none_or(|names| names.contains(&name));
            match self.file.open_group(file, self.next_group, is_read) {
                Ok(columns) => self.group = Some(OpenGroup { columns, rows_left }),
                Err(error) => {
                    self.next_group = usize::MAX;
                    self.group = None;
                    return Some(Err(error));
                }
            }
            self.next_group += 1;
        }
        let mut group = self.group.take()?;
        let rows = group.rows_left.min(BATCH_ROWS as u64) as usize;
        group.rows_left -= rows as u64;
        match guarded(|| self.file.read_rows(&mut group.columns, rows)) {
            Ok(rows) => {
                self.group = Some(group);
                Some(Ok(rows))
            }
            Err(source) => {
                self.next_group = usize::MAX;
                Some(Err(TableError::Parquet { path: self.file.path.clone(), source }))
            }
        }
    }
}

impl TableFile {
    fn read_rows(&self, columns: &mut [Option<ColumnReader>], rows: usize) -> Result<Rows, ParquetError> {
        let mut texts = Vec::new();
        let mut read = Vec::new();
        for (column, reader) in self.table.columns.iter().zip(columns) {
            let next = NextRows { rows, nullable: column.nullable, kind: column.kind };
            read.push(match reader {
                Some(reader) => next.read(reader, &mut texts)?,
                None => ColumnRows::without_values(column.kind, rows),
            });
        }
        Ok(Rows::of_columns(self.table, read, texts, rows))
    }
}

/// The facts about a file that its footer states.
struct FooterFacts {
    /// The rows of each row group.
    groups: Vec<u64>,
    /// Size of all columns, bytes.
    column_bytes: u64,
}

impl FooterFacts {
    fn new(reader: &SerializedFileReader<File>) -> Result<FooterFacts, ParquetError> {
        let mut groups = Vec::new();
        let mut column_bytes = 0_u64;
        for group in reader.metadata().row_groups() {
            let rows = u64::try_from(group.num_rows());
            groups.push(rows.map_err(|_| ParquetError::General("a row group of fewer than 0 rows".into()))?);
            for column in group.columns() {
                column_bytes = column_bytes.saturating_add(column.byte_range().1);
            }
        }
        Ok(FooterFacts { groups, column_bytes })
    }
}

/// Size of the footer, bytes: the four bytes before the magic number at the end.
fn footer_bytes(file: &File, size: u64) -> io::Result<u64> {
    use std::io::{Read, Seek, SeekFrom};
    let mut end = [0; 8];
    let mut file = file.try_clone()?;
    if size < end.len() as u64 {
        return Ok(0);
    }
    file.seek(SeekFrom::End(-(end.len() as i64)))?;
    file.read_exact(&mut end)?;
    Ok(u32::from_le_bytes([end[0], end[1], end[2], end[3]]).into())
}

thread_local! {
    /// Whether a panic of this thread is one of the reader's, which becomes an error.
    static IS_READING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Runs `read`, which calls the reader. A panic in it is an error, and is not printed. What `read` has
/// changed must not be used after that.
///
/// # Errors
/// The error of `read`.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    HOOK.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_READING.get() {
                hook(info);
            }
        }));
    });
    let outer = IS_READING.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(read));
    IS_READING.set(outer);
    result.unwrap_or_else(|panicked| {
        Err(ParquetError::General(format!(
            "is damaged in a way that its reader does not expect: {}",
            words(&*panicked)
        )))
    })
}

fn words(panicked: &(dyn Any + Send)) -> &str {
    let text = panicked.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panicked.downcast_ref::<&str>().copied()).unwrap_or("no reason given")
}

/// The texts of the rows that are read at once are no longer, each counted as often as it occurs, bytes: who
/// looks at each row must come to an end.
const MAX_TEXT_BYTES: usize = 512 << 20;

/// The next rows of one column of a row group.
pub(super) struct NextRows {
    /// How many are read.
    pub rows: usize,
    /// Whether rows may lack a value.
    pub nullable: bool,
    /// The kind of the values.
    pub kind: ColumnKind,
}

impl NextRows {
    /// Reads the rows. Texts are added to `texts`, one that several rows share only once.
    ///
    /// # Errors
    /// The error of the crate `parquet`; one where a column ends early, or a text is not UTF-8.
    pub fn read(
        &self,
        reader: &mut ColumnReader,
        texts: &mut Vec<ByteArray>,
    ) -> Result<ColumnRows, ParquetError> {
        let (values, defined) = match reader {
            ColumnReader::Int64ColumnReader(reader) => self.values(reader, Values::Int64)?,
            ColumnReader::Int32ColumnReader(reader) => self.values(reader, Values::Int32)?,
            ColumnReader::DoubleColumnReader(reader) => self.values(reader, Values::Double)?,
            ColumnReader::BoolColumnReader(reader) => self.values(reader, Values::Bool)?,
            ColumnReader::ByteArrayColumnReader(reader) => {
                let (values, defined) = self.read_values(reader)?;
                let numbers = self.number(values, texts)?;
                (Values::Text(self.spread(numbers, &defined)), defined)
            }
            _ => return Err(ParquetError::General("a column of an unknown type".into())),
        };
        Ok(ColumnRows { values, defined })
    }

    /// Adds each text to `texts`, and returns their numbers. The values of a dictionary share their bytes:
    /// they are told by their address, so that a long text of many rows is looked at once.
    fn number(&self, values: Vec<ByteArray>, texts: &mut Vec<ByteArray>) -> Result<Vec<u32>, ParquetError> {
        let mut known: HashMap<(*const u8, usize), u32> = HashMap::new();
        let mut numbers = Vec::with_capacity(values.len());
        if values.iter().map(ByteArray::len).sum::<usize>() > MAX_TEXT_BYTES {
            return Err(ParquetError::General(format!(
                "texts of more than {MAX_TEXT_BYTES} bytes in few rows"
            )));
        }
        for value in values {
            let place = (value.data().as_ptr(), value.len());
            let number = match known.get(&place) {
                Some(number) => *number,
                None if self.kind == ColumnKind::Text && std::str::from_utf8(value.data()).is_err() => {
                    return Err(ParquetError::General("a text is not UTF-8".into()));
                }
                None => {
                    let number = texts.len() as u32;
                    known.insert(place, number);
                    texts.push(value);
                    number
                }
            };
            numbers.push(number);
        }
        Ok(numbers)
    }

    fn values<T: DataType>(
        &self,
        reader: &mut ColumnReaderImpl<T>,
        make: fn(Vec<T::T>) -> Values,
    ) -> Result<(Values, Vec<i16>), ParquetError> {
        let (values, defined) = self.read_values(reader)?;
        Ok((make(self.spread(values, &defined)), defined))
    }

    /// The values that are there, and for each row whether it has one.
    fn read_values<T: DataType>(
        &self,
        reader: &mut ColumnReaderImpl<T>,
    ) -> Result<(Vec<T::T>, Vec<i16>), ParquetError> {
        let mut values = Vec::new();
        let mut defined = Vec::new();
        let mut rows = 0;
        while rows < self.rows {
            let levels = self.nullable.then_some(&mut defined);
            let (read, ..) = reader.read_records(self.rows - rows, levels, None, &mut values)?;
            if read == 0 {
                return Err(ParquetError::General("a column ends before its row group does".into()));
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
    use super::super::schema::ColumnKind;
    use super::super::table_file::TableWriter;
    use super::*;
    use crate::tables::Cell;

    #[test]
    fn a_file_that_is_older_than_a_column_has_null_there_and_a_part_may_be_older_than_a_table() {
        let dir = tempfile::tempdir().unwrap();
        let now = TableId::Launch.table();
        let before = now.column("type").unwrap();
        // A file of an earlier version: the columns before `type`.
        let old: &'static TableSchema =
            Box::leak(Box::new(TableSchema { columns: &now.columns[..before], ..*now }));
        let mut rows = Rows::new(old);
        let cells: Vec<Cell<'_>> = (0..before)
            .map(|at| match old.columns[at].kind {
                ColumnKind::Text => Cell::Text("request"),
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
        assert!(frames.row_count() == 0 && frames.all_rows().unwrap().is_empty());
        assert!(TableFile::open(dir.path(), TableId::Slice.table()).is_err());
    }

    #[test]
    fn a_panic_of_the_reader_is_an_error_with_its_words() {
        let error = guarded::<()>(|| panic!("index {} out of range", 7)).unwrap_err().to_string();
        assert!(error.contains("index 7 out of range"), "{error}");
        assert!(guarded(|| Ok(5)).unwrap() == 5 && !IS_READING.get());
    }
}
