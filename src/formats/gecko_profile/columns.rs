//! The columns of a table, in both forms: an object with an array for each column, or `schema` and `data`,
//! an array of rows.

use crate::formats::json::{Value, elements, integer, members_of_cut};

/// A table.
#[derive(Debug, Clone, Default)]
pub(super) struct GeckoTable<'a> {
    /// The columns of the processed form, by name.
    columns: Vec<(&'a [u8], Value<'a>)>,
    /// The rows of the other form.
    rows: Option<&'a [u8]>,
    /// Where the fields of a row stand, by name.
    schema: Vec<(&'a [u8], usize)>,
}

impl<'a> GeckoTable<'a> {
    pub(super) fn new(table: &'a [u8]) -> GeckoTable<'a> {
        let mut out = GeckoTable::default();
        for (name, value) in members_of_cut(table).0 {
            match (name.raw(), value) {
                (b"schema", Value::Object(schema)) => {
                    for (name, value) in members_of_cut(schema).0 {
                        let Value::Number(at) = value else { continue };
                        let at = integer(at).and_then(|at| usize::try_from(at).ok());
                        out.schema.extend(at.map(|at| (name.raw(), at)));
                    }
                }
                (b"data", Value::Array(rows)) => out.rows = Some(rows),
                (name, value) => out.columns.push((name, value)),
            }
        }
        out
    }

    /// Whether the table has this column.
    pub(super) fn has(&self, name: &str) -> bool {
        let name = name.as_bytes();
        match self.rows {
            Some(_) => self.schema.iter().any(|(column, _)| *column == name),
            None => {
                self.columns.iter().any(|(column, value)| *column == name && matches!(value, Value::Array(_)))
            }
        }
    }

    /// The member of a table that is no column.
    pub(super) fn single(&self, name: &str) -> Option<Value<'a>> {
        self.columns.iter().find(|(column, _)| *column == name.as_bytes()).map(|(_, value)| *value)
    }

    /// The values of a column; none of a column that the table does not have.
    pub(super) fn column(&self, name: &str) -> GeckoColumn<'a> {
        let name = name.as_bytes();
        if let Some(rows) = self.rows {
            let at = self.schema.iter().find(|(column, _)| *column == name).map(|(_, at)| *at);
            return match at {
                Some(at) => GeckoColumn { values: Box::new(elements(rows)), field: Some(at) },
                None => GeckoColumn { values: Box::new(std::iter::empty()), field: None },
            };
        }
        match self.columns.iter().find(|(column, _)| *column == name) {
            Some((_, Value::Array(values))) => {
                GeckoColumn { values: Box::new(elements(values)), field: None }
            }
            _ => GeckoColumn { values: Box::new(std::iter::empty()), field: None },
        }
    }

    /// The indices in a column; `u32::MAX` stands for `null`, and for what is no index.
    pub(super) fn indices(&self, name: &str) -> Vec<u32> {
        self.column(name).map(index).collect()
    }
}

/// An index of another table.
pub(super) fn index(value: Value<'_>) -> u32 {
    match value {
        Value::Number(number) => integer(number).and_then(|n| u32::try_from(n).ok()).unwrap_or(u32::MAX),
        _ => u32::MAX,
    }
}

/// Steps through the values of a column.
pub(super) struct GeckoColumn<'a> {
    /// The values, or rows.
    values: Box<dyn Iterator<Item = Value<'a>> + 'a>,
    /// The place of the column in a row.
    field: Option<usize>,
}

impl<'a> Iterator for GeckoColumn<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        let value = self.values.next()?;
        match (self.field, value) {
            (None, value) => Some(value),
            // Fields at the end of a row may be left out.
            (Some(at), Value::Array(row)) => Some(elements(row).nth(at).unwrap_or(Value::Null)),
            (Some(_), _) => Some(Value::Null),
        }
    }
}
