//! Reads the tables of a dataset with the row reader of the crate `parquet`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;

/// One row of a table.
pub struct Row(BTreeMap<String, Field>);

impl Row {
    fn field(&self, column: &str) -> &Field {
        self.0.get(column).unwrap_or_else(|| panic!("no column {column} in {:?}", self.0.keys()))
    }

    /// The integer in a column; `None` for null.
    pub fn int(&self, column: &str) -> Option<i64> {
        match self.field(column) {
            Field::Null => None,
            Field::Long(value) => Some(*value),
            Field::Int(value) => Some((*value).into()),
            other => panic!("{column} is {other:?}"),
        }
    }

    /// The text in a column; `None` for null.
    pub fn text(&self, column: &str) -> Option<&str> {
        match self.field(column) {
            Field::Null => None,
            Field::Str(text) => Some(text),
            other => panic!("{column} is {other:?}"),
        }
    }

    /// The bytes in a column; `None` for null.
    pub fn bytes(&self, column: &str) -> Option<&[u8]> {
        match self.field(column) {
            Field::Null => None,
            Field::Bytes(bytes) => Some(bytes.data()),
            other => panic!("{column} is {other:?}"),
        }
    }

    pub fn double(&self, column: &str) -> f64 {
        match self.field(column) {
            Field::Double(value) => *value,
            other => panic!("{column} is {other:?}"),
        }
    }

    pub fn is(&self, column: &str) -> bool {
        match self.field(column) {
            Field::Bool(value) => *value,
            other => panic!("{column} is {other:?}"),
        }
    }
}

/// The rows of a file.
pub fn rows_of(file: &Path) -> Vec<Row> {
    rows_in(File::open(file).unwrap())
}

/// The rows of an open file.
pub fn rows_in(file: File) -> Vec<Row> {
    let reader = SerializedFileReader::new(file).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| {
        Row(row.unwrap().get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect())
    })
    .collect()
}

/// The rows of a table in all parts of a dataset.
pub fn rows(dataset: &Path, table: &str) -> Vec<Row> {
    parts(dataset).iter().flat_map(|part| rows_of(&part.join(format!("{table}.parquet")))).collect()
}

/// The directories of the parts, sorted.
pub fn parts(dataset: &Path) -> Vec<PathBuf> {
    let dirs = |dir: &Path, prefix: &str| -> BTreeSet<PathBuf> {
        let entries = fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap());
        let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
        named.map(|entry| entry.path()).collect()
    };
    dirs(dataset, "day=").iter().flat_map(|day| dirs(day, "part=")).collect()
}

/// Sums an integer column by a text column.
pub fn sums(rows: &[&Row], key: impl Fn(&Row) -> String, column: &str) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    for row in rows {
        *sums.entry(key(row)).or_default() += row.int(column).unwrap_or(0);
    }
    sums
}

/// Asserts that the sums of a table over its threads are the rows of `profile --json`.
pub fn assert_same_profile<'t>(table: impl IntoIterator<Item = &'t Row>, profile: &Value) {
    let table: Vec<&Row> = table.into_iter().collect();
    let key = |row: &Row| {
        let signature = row.text("signature").map_or(String::new(), |signature| format!(" {signature}"));
        row.text("method").unwrap().to_owned() + &signature
    };
    for (column, field) in [
        ("calls", "calls"),
        ("recursive_calls", "recursive_calls"),
        ("wall_exclusive_ns", "wall_exclusive_ns"),
        ("wall_inclusive_ns", "wall_inclusive_ns"),
        ("cpu_exclusive_ns", "cpu_exclusive_ns"),
        ("cpu_inclusive_ns", "cpu_inclusive_ns"),
    ] {
        let mut expected: BTreeMap<String, i64> = BTreeMap::new();
        for row in profile["rows"].as_array().unwrap() {
            let name = row["name"].as_str().unwrap().to_owned();
            *expected.entry(name).or_default() += row[field].as_i64().unwrap_or(0);
        }
        assert_eq!(sums(&table, key, column), expected, "{column} of {}", profile["file"]);
    }
}
