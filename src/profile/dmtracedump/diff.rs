//! The output of dmtracedump's option `-d`: two traces side by side.
//!
//! Deliberate difference from the old tool: a method that got faster has a negative difference. The old tool
//! printed the difference modulo 2^64.

use std::collections::HashMap;
use std::io::{self, Write};

use super::dump::{DumpRow, MethodDump};

type Key<'a> = (&'a str, Option<&'a str>, &'a str);

fn key(row: &DumpRow) -> Key<'_> {
    (&row.class, row.name.as_deref(), &row.signature)
}

/// A method that both traces have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change<'a> {
    /// The method in the earlier trace, and in the later one.
    pub rows: [&'a DumpRow; 2],
    /// The compared times of both, µs.
    pub figures: [u64; 2],
}

impl Change<'_> {
    /// The later time minus the earlier one, µs; 0 where the earlier one is 0, as in the old tool.
    pub(super) fn difference(&self) -> i64 {
        let [before, after] = self.figures;
        if before == 0 { 0 } else { after as i64 - before as i64 }
    }

    /// The later time in percent of the earlier one; 0 where the earlier one is 0, as in the old tool.
    pub(super) fn percent(&self) -> f64 {
        let [before, after] = self.figures;
        if before == 0 { 0.0 } else { after as f64 / before as f64 * 100.0 }
    }
}

/// The methods of two traces beside each other.
pub(super) struct DumpDiff<'a> {
    /// The methods of both traces by change of exclusive time, largest first.
    pub exclusive: Vec<Change<'a>>,
    /// The methods of both traces by change of inclusive time, largest first.
    pub inclusive: Vec<Change<'a>>,
    /// The methods of the earlier trace alone.
    pub gone: Vec<&'a DumpRow>,
    /// The methods of the later trace alone.
    pub new: Vec<&'a DumpRow>,
}

impl<'a> DumpDiff<'a> {
    pub(super) fn of(before: &'a MethodDump, after: &'a MethodDump) -> DumpDiff<'a> {
        let mut left: HashMap<Key<'_>, &DumpRow> = after.rows.iter().map(|row| (key(row), row)).collect();
        let mut both = Vec::new();
        let mut gone = Vec::new();
        for row in &before.rows {
            match left.remove(&key(row)) {
                Some(other) => both.push([row, other]),
                None => gone.push(row),
            }
        }
        let new = after.rows.iter().filter(|row| left.contains_key(&key(row))).collect();
        let exclusive = changes(&both, |row| row.exclusive);
        // Equal changes of inclusive time stand in the order of the changes of exclusive time.
        let both: Vec<_> = exclusive.iter().map(|change| change.rows).collect();
        let inclusive = changes(&both, |row| row.inclusive);
        DumpDiff { exclusive, inclusive, gone, new }
    }
}

fn changes<'a>(both: &[[&'a DumpRow; 2]], figure: fn(&DumpRow) -> u64) -> Vec<Change<'a>> {
    let mut changes: Vec<_> =
        both.iter().map(|rows| Change { rows: *rows, figures: rows.map(figure) }).collect();
    changes.sort_by_key(|change| std::cmp::Reverse(change.difference()));
    changes
}

/// Writes the methods of both traces by change of exclusive time, then by change of inclusive time, then the
/// methods that only one trace has.
pub(super) fn write_diff(before: &MethodDump, after: &MethodDump, out: &mut impl Write) -> io::Result<()> {
    let diff = DumpDiff::of(before, after);
    for change in diff.exclusive.iter().chain(&diff.inclusive) {
        let Change { rows: [before, after], figures: [a, b] } = change;
        let (difference, percent) = (change.difference(), change.percent());
        writeln!(out, "{} {a} {b} {difference} {percent:.2}", name(before))?;
        writeln!(out, "{}\n{}", before.calls[0], after.calls[0])?;
    }
    for row in diff.gone.into_iter().chain(diff.new) {
        writeln!(out, "{} {} {} {}", name(row), row.exclusive, row.inclusive, row.calls[0])?;
    }
    Ok(())
}

/// The name of a row. The old tool escapes names for HTML here, even in text.
pub(super) fn name(row: &DumpRow) -> String {
    let name = format!("{}.{}", row.class, row.name.as_deref().unwrap_or("(null)"));
    name.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
