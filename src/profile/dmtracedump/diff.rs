//! The output of dmtracedump's option `-d`: two traces side by side, as text and with `-h` as HTML.
//!
//! Deliberate difference from the old tool: a method that got faster has a negative difference. The old tool
//! printed the difference modulo 2^64.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;
use std::io::{self, Write};

use super::dump::{DumpRow, MethodDump};
use super::html::{PageSection, write_foot, write_head, write_table_head};

type DumpKey<'a> = (&'a str, Option<&'a str>, &'a str);

fn key(row: &DumpRow) -> DumpKey<'_> {
    (&row.class, row.name.as_deref(), &row.signature)
}

/// A method that both traces have.
#[derive(Debug, Clone, Copy)]
struct Change<'a> {
    /// The method in the earlier trace, and in the later one.
    rows: [&'a DumpRow; 2],
    /// The compared times of both, µs.
    figures: [u64; 2],
}

impl Change<'_> {
    /// The later time minus the earlier one, µs; 0 where the earlier one is 0, as in the old tool.
    fn difference(&self) -> i64 {
        let [before, after] = self.figures;
        if before == 0 { 0 } else { after as i64 - before as i64 }
    }

    /// The later time in percent of the earlier one; 0 where the earlier one is 0, as in the old tool.
    fn percent(&self) -> f64 {
        let [before, after] = self.figures;
        if before == 0 { 0.0 } else { after as f64 / before as f64 * 100.0 }
    }
}

/// The methods of two traces beside each other.
struct DumpDiff<'a> {
    /// The methods of both traces by change of exclusive time, largest first.
    exclusive: Vec<Change<'a>>,
    /// The methods of both traces by change of inclusive time, largest first.
    inclusive: Vec<Change<'a>>,
    /// The methods of the earlier trace alone.
    gone: Vec<&'a DumpRow>,
    /// The methods of the later trace alone.
    new: Vec<&'a DumpRow>,
}

impl<'a> DumpDiff<'a> {
    fn new(before: &'a MethodDump, after: &'a MethodDump) -> DumpDiff<'a> {
        let mut left: HashMap<DumpKey<'_>, &DumpRow> = after.rows.iter().map(|row| (key(row), row)).collect();
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
    changes.sort_by_key(|change| Reverse(change.difference()));
    changes
}

/// Writes the methods of both traces by change of exclusive time, then by change of inclusive time, then the
/// methods that only one trace has.
pub(super) fn write_text_diff(
    before: &MethodDump,
    after: &MethodDump,
    out: &mut impl Write,
) -> io::Result<()> {
    let diff = DumpDiff::new(before, after);
    for change in diff.exclusive.iter().chain(&diff.inclusive) {
        let Change { rows: [before, after], figures: [a, b] } = change;
        writeln!(out, "{} {a} {b} {} {:.2}", name(before), change.difference(), change.percent())?;
        writeln!(out, "{}\n{}", before.calls[0], after.calls[0])?;
    }
    for row in diff.gone.into_iter().chain(diff.new) {
        writeln!(out, "{} {} {} {}", name(row), row.exclusive, row.inclusive, row.calls[0])?;
    }
    Ok(())
}

/// The name of a row. The old tool escapes names for HTML here, even in text.
fn name(row: &DumpRow) -> String {
    let name = format!("{}.{}", row.class, row.name.as_deref().unwrap_or("(null)"));
    name.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

const SECTIONS: [PageSection; 4] = [
    PageSection { id: "exclusive", title: "Exclusive" },
    PageSection { id: "inclusive", title: "Inclusive" },
    PageSection { id: "gone", title: "Run 1 methods not found in run 2" },
    PageSection { id: "new", title: "Run 2 methods not found in run 1" },
];

/// Writes the comparison of the traces with the names `runs`.
pub(super) fn write_html_diff(
    before: &MethodDump,
    after: &MethodDump,
    runs: [&str; 2],
    out: &mut impl Write,
) -> io::Result<()> {
    let diff = DumpDiff::new(before, after);
    let facts = format!("Run 1: {} · Run 2: {}", runs[0], runs[1]);
    write_head("Comparison of two method profiles", &facts, &SECTIONS, out)?;
    for (section, changes) in SECTIONS.iter().zip([&diff.exclusive, &diff.inclusive]) {
        let columns =
            ["Method<", "Run 1 (µs)", "Run 2 (µs)", "Diff (µs)", "Diff (%)", "1: calls", "2: calls"];
        write_section(section, &columns, 3, out)?;
        for change in changes {
            write_change(change, out)?;
        }
        writeln!(out, "</tbody></table></section>")?;
    }
    for (section, rows) in SECTIONS[2..].iter().zip([&diff.gone, &diff.new]) {
        let columns = ["Method<", "Exclusive (µs)", "Inclusive (µs)", "calls"];
        write_section(section, &columns, 2, out)?;
        for row in rows {
            let DumpRow { exclusive, inclusive, calls, .. } = row;
            writeln!(
                out,
                "<tr><td class=\"name\">{}</td><td>{exclusive}</td><td>{inclusive}</td><td>{}</td></tr>",
                name(row),
                calls[0]
            )?;
        }
        writeln!(out, "</tbody></table></section>")?;
    }
    write_foot(out)
}

fn write_section(
    section: &PageSection,
    columns: &[&str],
    sorted: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    section.begin(out)?;
    write_table_head("", columns, Some(sorted), out)?;
    writeln!(out, "<tbody>")
}

fn write_change(change: &Change<'_>, out: &mut impl Write) -> io::Result<()> {
    let Change { rows: [before, after], figures: [a, b] } = change;
    let class = match a.cmp(b) {
        Ordering::Less => " class=\"worse\"",
        Ordering::Equal => "",
        Ordering::Greater => " class=\"better\"",
    };
    writeln!(
        out,
        "<tr><td class=\"name\">{}</td><td>{a}</td><td>{b}</td><td{class}>{}</td><td{class}>{:.2}</td>\
         <td>{}</td><td>{}</td></tr>",
        name(before),
        change.difference(),
        change.percent(),
        before.calls[0],
        after.calls[0]
    )
}
