//! Writes the Parquet file of one table: rows are kept until they are a row group.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use super::rows::{ColumnRows, Rows, Values};
use super::schema::{ColumnKind, TABLES, TableColumn, TableSchema};
use crate::output_file::ScratchDir;

/// The rows of a row group: it is written as soon as there are as many. The rows of one trace are not
/// parted, so that a row group may have twice as many.
const ROW_GROUP_ROWS: usize = 128 << 10;

/// A row group of fewer rows is written when its rows take as much memory, bytes.
const ROW_GROUP_BYTES: usize = 16 << 20;

/// A dictionary of more bytes is given up, and the values are written one by one.
const MAX_DICTIONARY_BYTES: usize = 4 << 20;

/// The level of zstd: 3 is its default.
const ZSTD_LEVEL: i32 = 3;

/// The file of one table, while it is written.
pub(super) struct TableWriter {
    writer: SerializedFileWriter<File>,
    pending: Rows,
}

impl TableWriter {
    /// Begins the file of `table` in the directory `dir`, where it must not be yet.
    ///
    /// # Errors
    /// The system's error.
    pub fn create(dir: &Path, table: &'static TableSchema) -> io::Result<TableWriter> {
        let file = File::options().write(true).create_new(true).open(dir.join(table.file_name()))?;
        let schema = schema(table).map_err(error)?;
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties(table)?)).map_err(error)?;
        Ok(TableWriter { writer, pending: Rows::new(table) })
    }

    /// Adds rows. They are written when they are enough.
    ///
    /// # Errors
    /// The system's error.
    pub fn add(&mut self, rows: &Rows) -> io::Result<()> {
        self.pending.append(rows);
        if self.pending.len() >= ROW_GROUP_ROWS || self.pending.bytes() >= ROW_GROUP_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Size in memory of the rows that are not written yet, bytes.
    pub fn pending_bytes(&self) -> usize {
        self.pending.bytes()
    }

    /// Writes the pending rows as a row group.
    ///
    /// # Errors
    /// The system's error.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let empty = Rows::new(self.pending.table());
        let rows = std::mem::replace(&mut self.pending, empty);
        let mut group = self.writer.next_row_group().map_err(error)?;
        for column in &rows.columns {
            let Some(mut writer) = group.next_column().map_err(error)? else { break };
            write_column(writer.untyped(), column, &rows.texts).map_err(error)?;
            writer.close().map_err(error)?;
        }
        group.close().map_err(error)?;
        Ok(())
    }

    /// Writes the rest, and waits until the file is on the disk. Returns its size, bytes.
    ///
    /// # Errors
    /// The system's error.
    pub fn finish(mut self) -> io::Result<u64> {
        self.flush()?;
        let file = self.writer.into_inner().map_err(error)?;
        file.sync_all()?;
        Ok(file.metadata()?.len())
    }
}

/// The error of the system behind an error of the crate `parquet`.
pub(super) fn error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        other => io::Error::other(other),
    }
}

/// The schema of a table's file.
pub(super) fn schema(table: &TableSchema) -> Result<TypePtr, ParquetError> {
    let field = |column: &TableColumn| {
        let (physical, logical) = match column.kind {
            ColumnKind::Int64 | ColumnKind::Growing => (Physical::INT64, None),
            ColumnKind::Int32 => (Physical::INT32, None),
            ColumnKind::Double => (Physical::DOUBLE, None),
            ColumnKind::Bool => (Physical::BOOLEAN, None),
            ColumnKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnKind::Bytes => (Physical::BYTE_ARRAY, None),
        };
        let repetition = if column.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = Type::primitive_type_builder(column.name, physical);
        field.with_logical_type(logical).with_repetition(repetition).build().map(Arc::new)
    };
    let fields = table.columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(Type::group_type_builder(table.name).with_fields(fields).build()?))
}

fn properties(table: &TableSchema) -> io::Result<WriterProperties> {
    let zstd = ZstdLevel::try_new(ZSTD_LEVEL).map_err(error)?;
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("tracebridge version {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(zstd))
        .set_dictionary_enabled(true)
        .set_dictionary_page_size_limit(MAX_DICTIONARY_BYTES)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(None);
    for column in table.columns.iter().filter(|column| column.kind == ColumnKind::Growing) {
        let path = ColumnPath::from(column.name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    Ok(properties.build())
}

/// The values of the rows that have one.
fn defined<T: Clone>(values: &[T], defined: &[i16]) -> Vec<T> {
    if defined.is_empty() {
        return values.to_vec();
    }
    values.iter().zip(defined).filter(|(_, d)| **d == 1).map(|(value, _)| value.clone()).collect()
}

fn write_column(
    writer: &mut ColumnWriter<'_>,
    column: &ColumnRows,
    texts: &[ByteArray],
) -> Result<(), ParquetError> {
    let levels = (!column.defined.is_empty()).then_some(&column.defined[..]);
    match (writer, &column.values) {
        (ColumnWriter::Int64ColumnWriter(writer), Values::Int64(values)) => {
            writer.write_batch(&defined(values, &column.defined), levels, None)
        }
        (ColumnWriter::Int32ColumnWriter(writer), Values::Int32(values)) => {
            writer.write_batch(&defined(values, &column.defined), levels, None)
        }
        (ColumnWriter::DoubleColumnWriter(writer), Values::Double(values)) => {
            writer.write_batch(&defined(values, &column.defined), levels, None)
        }
        (ColumnWriter::BoolColumnWriter(writer), Values::Bool(values)) => {
            writer.write_batch(&defined(values, &column.defined), levels, None)
        }
        (ColumnWriter::ByteArrayColumnWriter(writer), Values::Text(numbers)) => {
            let text = |number: u32| texts.get(number as usize).cloned().unwrap_or_else(|| Vec::new().into());
            let values: Vec<ByteArray> = defined(numbers, &column.defined).into_iter().map(text).collect();
            writer.write_batch(&values, levels, None)
        }
        _ => Err(ParquetError::General("a column has another type than its table says".into())),
    }
    .map(drop)
}

/// All tables of a directory. Every table has its file, also where it has no row, so that a query finds it.
/// The directory has a temporary name, and is removed unless it is published.
pub struct PartFiles {
    dir: ScratchDir,
    writers: Vec<TableWriter>,
}

/// The name of a directory that is not complete begins so.
pub const UNFINISHED_PREFIX: &str = ".tmp";

/// The most memory that rows take which are not written yet, bytes.
const MAX_PENDING_BYTES: usize = 24 << 20;

impl PartFiles {
    /// Begins the files in a new directory in `parent`.
    ///
    /// # Errors
    /// The system's error.
    pub fn create(parent: &Path) -> io::Result<PartFiles> {
        let dir = ScratchDir::create_shared(parent, UNFINISHED_PREFIX)?;
        let create = |table| TableWriter::create(dir.path(), table);
        let writers = TABLES.iter().map(create).collect::<Result<_, _>>()?;
        Ok(PartFiles { dir, writers })
    }

    /// The directory under its temporary name.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Adds rows of a table.
    ///
    /// # Errors
    /// The system's error.
    pub fn add(&mut self, rows: &Rows) -> io::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.writers[rows.table().id as usize].add(rows)?;
        while self.writers.iter().map(TableWriter::pending_bytes).sum::<usize>() > MAX_PENDING_BYTES {
            let largest = self.writers.iter_mut().max_by_key(|writer| writer.pending_bytes());
            largest.map_or(Ok(()), TableWriter::flush)?;
        }
        Ok(())
    }

    /// Completes the files. When they are on the disk, the directory gets the name `target`, which nothing
    /// has yet. Returns the size of the files, bytes.
    ///
    /// # Errors
    /// The system's error; nothing is left then.
    pub fn publish(self, target: &Path) -> io::Result<u64> {
        let (dir, bytes) = self.finish()?;
        dir.publish(target)?;
        Ok(bytes)
    }

    /// The same for a directory that takes the place of `target`, which is removed. See
    /// [`ScratchDir::publish_over`].
    ///
    /// # Errors
    /// The system's error.
    pub fn publish_over(self, target: &Path) -> io::Result<u64> {
        let (dir, bytes) = self.finish()?;
        dir.publish_over(target)?;
        Ok(bytes)
    }

    fn finish(self) -> io::Result<(ScratchDir, u64)> {
        let bytes = self.writers.into_iter().map(TableWriter::finish).sum::<io::Result<u64>>()?;
        Ok((self.dir, bytes))
    }
}
