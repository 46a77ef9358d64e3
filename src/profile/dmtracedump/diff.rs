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

/// The figure that a listing shows and is sorted by.
type Figure = fn(&DumpRow) -> u64;

/// Writes the methods of both traces by change of exclusive time, then by change of inclusive time, then the
/// methods that only one trace has.
pub(super) fn write_diff(before: &MethodDump, after: &MethodDump, out: &mut impl Write) -> io::Result<()> {
    let mut left: HashMap<Key<'_>, &DumpRow> = after.rows.iter().map(|row| (key(row), row)).collect();
    let mut both = Vec::new();
    let mut gone = Vec::new();
    for row in &before.rows {
        match left.remove(&key(row)) {
            Some(other) => both.push((row, other)),
            None => gone.push(row),
        }
    }
    let figures: [Figure; 2] = [|row| row.exclusive, |row| row.inclusive];
    for figure in figures {
        let change = |(a, b): &(&DumpRow, &DumpRow)| match figure(a) {
            0 => 0,
            before => figure(b) as i64 - before as i64,
        };
        both.sort_by_key(|pair| std::cmp::Reverse(change(pair)));
        for pair in &both {
            let (a, b) = (figure(pair.0), figure(pair.1));
            let percent = if a > 0 { b as f64 / a as f64 * 100.0 } else { 0.0 };
            writeln!(out, "{} {a} {b} {} {percent:.2}", name(pair.0), change(pair))?;
            writeln!(out, "{}\n{}", pair.0.calls[0], pair.1.calls[0])?;
        }
    }
    let new = after.rows.iter().filter(|row| left.contains_key(&key(row)));
    for row in gone.into_iter().chain(new) {
        writeln!(out, "{} {} {} {}", name(row), row.exclusive, row.inclusive, row.calls[0])?;
    }
    Ok(())
}

/// The name of a row. The old tool escapes names for HTML here, even in text.
fn name(row: &DumpRow) -> String {
    let name = format!("{}.{}", row.class, row.name.as_deref().unwrap_or("(null)"));
    name.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
