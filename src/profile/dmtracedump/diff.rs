//! dmtracedump's `-d`: two traces side by side, in its layout.
//!
//! Deliberate difference: a method that got faster shows a negative difference, not 2^64 less it.

use std::collections::HashMap;
use std::io::{self, Write};

use super::dump::{Dump, Row};

type Key<'a> = (&'a str, Option<&'a str>, &'a str);

fn key(row: &Row) -> Key<'_> {
    (&row.class, row.name.as_deref(), &row.signature)
}

/// What a listing is sorted by and shows.
type Figure = fn(&Row) -> u64;

/// Methods of both, by change of exclusive and then of inclusive time, then those of one trace alone.
pub fn write_diff(before: &Dump, after: &Dump, out: &mut impl Write) -> io::Result<()> {
    let mut left: HashMap<Key<'_>, &Row> = after.rows.iter().map(|row| (key(row), row)).collect();
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
        let change = |(a, b): &(&Row, &Row)| match figure(a) {
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

/// The old tool writes names for HTML here, also in text.
fn name(row: &Row) -> String {
    let name = format!("{}.{}", row.class, row.name.as_deref().unwrap_or("(null)"));
    name.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
