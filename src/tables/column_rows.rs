//! Some rows of one column, read from its pages.

use std::collections::HashMap;

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;

use super::rows::{ColumnRows, Values};
use super::schema::ColumnKind;

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
