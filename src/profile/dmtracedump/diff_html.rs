//! The output of dmtracedump's options `-h -d`: two traces side by side, as tables with headings.

use std::io::{self, Write};

use super::diff::{Change, DumpDiff, name};
use super::dump::{DumpRow, MethodDump};
use super::page::{write_foot, write_head, write_table_head};

const SECTIONS: [(&str, &str); 4] = [
    ("exclusive", "Exclusive"),
    ("inclusive", "Inclusive"),
    ("gone", "Run 1 methods not found in run 2"),
    ("new", "Run 2 methods not found in run 1"),
];

/// Writes the comparison of the traces with the names `runs`.
pub(super) fn write_diff(
    before: &MethodDump,
    after: &MethodDump,
    runs: [&str; 2],
    out: &mut impl Write,
) -> io::Result<()> {
    let diff = DumpDiff::of(before, after);
    let facts = format!("Run 1: {} · Run 2: {}", runs[0], runs[1]);
    write_head("Comparison of two method profiles", &facts, &SECTIONS, out)?;
    for (section, changes) in SECTIONS.iter().zip([&diff.exclusive, &diff.inclusive]) {
        let columns =
            ["Method<", "Run 1 (µs)", "Run 2 (µs)", "Diff (µs)", "Diff (%)", "1: calls", "2: calls"];
        write_section(*section, &columns, 3, out)?;
        for change in changes {
            write_change(change, out)?;
        }
        writeln!(out, "</tbody></table></section>")?;
    }
    for (section, rows) in SECTIONS[2..].iter().zip([&diff.gone, &diff.new]) {
        let columns = ["Method<", "Exclusive (µs)", "Inclusive (µs)", "calls"];
        write_section(*section, &columns, 2, out)?;
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
    (id, title): (&str, &str),
    columns: &[&str],
    sorted: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "<section id=\"{id}\"><h2>{title}</h2>")?;
    write_table_head("", columns, Some(sorted), out)?;
    writeln!(out, "<tbody>")
}

fn write_change(change: &Change<'_>, out: &mut impl Write) -> io::Result<()> {
    let Change { rows: [before, after], figures: [a, b] } = change;
    let class = match a.cmp(b) {
        std::cmp::Ordering::Less => " class=\"worse\"",
        std::cmp::Ordering::Equal => "",
        std::cmp::Ordering::Greater => " class=\"better\"",
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
