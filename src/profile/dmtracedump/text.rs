//! The profile as text, with the columns of dmtracedump.

use std::io::{self, Write};

use super::dump::{DumpGroup, DumpRelative, DumpRow, MethodDump};

const RULE: &str = "======================================================================";
const DASHES: &str = "---------------------------------------------";

/// A share in percent; `nan` if the whole is 0, as in the old tool.
fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole as f64
}

/// Writes the four sections: exclusive, inclusive with callers and callees, by class, by method name.
pub(super) fn write_text(dump: &MethodDump, out: &mut impl Write) -> io::Result<()> {
    exclusive(dump, out)?;
    inclusive(dump, out)?;
    writeln!(out, "\n{RULE}")?;
    let classes = dump.by_class();
    if classes.is_empty() {
        return writeln!(out, "\nNo classes.");
    }
    writeln!(out, "\nExclusive elapsed time for each class, summed over all the methods")?;
    writeln!(out, "in the class.\n\n   Cycles %/total Cumul.%  Calls+Recur  Class")?;
    groups(dump, &classes, out, |row| {
        format!("{} {}", row.name.as_deref().unwrap_or_default(), row.signature)
    })?;
    writeln!(out, "\n{RULE}\n\nExclusive elapsed time for each method, summed over all the classes")?;
    writeln!(
        out,
        "that contain a method with the same name.\n\n   Cycles %/total Cumul.%  Calls+Recur  Method"
    )?;
    let names = dump.by_name();
    groups(dump, &names, out, DumpRow::full_name)
}

fn exclusive(dump: &MethodDump, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\n{RULE}\nTotal cycles: {}\n", dump.total)?;
    writeln!(out, "Exclusive elapsed times for each method, not including time spent in")?;
    writeln!(out, "children, sorted by exclusive time.\n\n    Usecs  self %  sum %  Method")?;
    let mut sum = 0;
    for row in dump.by_exclusive().into_iter().take_while(|row| row.exclusive > 0) {
        sum += row.exclusive;
        let own = percent(row.exclusive, dump.total);
        let all = percent(sum, dump.total);
        writeln!(out, "{:9}  {own:6.2} {all:6.2}  [{}] {}", row.exclusive, row.index, row.full_name())?;
    }
    Ok(())
}

fn inclusive(dump: &MethodDump, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\n{RULE}\n\nInclusive elapsed times for each method and its parents and children,")?;
    writeln!(out, "sorted by inclusive time.\n\nindex  %/total %/self  index     calls         usecs name")?;
    for (n, row) in dump.rows.iter().enumerate().take_while(|(_, row)| row.inclusive > 0) {
        writeln!(out, "----------------------------------------------------")?;
        let own = percent(row.outermost_exclusive, row.inclusive);
        relatives(dump, row, &dump.parents[n], out)?;
        let index = format!("[{n}]");
        let share = percent(row.inclusive, dump.total);
        let [calls, recursive] = row.calls;
        let inclusive = row.inclusive;
        let name = row.full_name();
        writeln!(
            out,
            "{index:<6} {share:5.1}%   {:5} {:6} {calls:6}+{recursive:<6} {inclusive:9} {name}",
            "", ""
        )?;
        writeln!(
            out,
            "{:6} {:5}   {own:5.1}% {:>6} {:6} {:6} {:9}",
            "", "", "excl", "", "", row.outermost_exclusive
        )?;
        relatives(dump, row, &dump.children[n], out)?;
    }
    Ok(())
}

fn relatives(
    dump: &MethodDump,
    row: &DumpRow,
    lists: &[Vec<DumpRelative>; 2],
    out: &mut impl Write,
) -> io::Result<()> {
    for (recursive, list) in [false, true].into_iter().zip(lists) {
        if recursive && !list.is_empty() {
            writeln!(out, "               +++++++++++++++++++++++++")?;
        }
        for relative in list {
            let other = &dump.rows[relative.row];
            let share = if recursive {
                format!("{:6}", "")
            } else {
                format!("{:5.1}%", percent(relative.total, row.inclusive))
            };
            let index = format!("[{}]", other.index);
            let DumpRelative { calls, of_calls: all, total, .. } = relative;
            let name = other.full_name();
            writeln!(out, "{:6} {:5}   {share} {index:>6} {calls:6}/{all:<6} {total:9} {name}", "", "")?;
        }
    }
    Ok(())
}

fn groups(
    dump: &MethodDump,
    groups: &[DumpGroup<'_>],
    out: &mut impl Write,
    name: impl Fn(&DumpRow) -> String,
) -> io::Result<()> {
    let mut sum = 0;
    for group in groups.iter().take_while(|group| group.exclusive > 0) {
        sum += group.exclusive;
        let share = percent(group.exclusive, dump.total);
        let all = percent(sum, dump.total);
        let [calls, recursive] = group.calls;
        writeln!(
            out,
            "{DASHES}\n{:9} {share:7.1} {all:7.1} {calls:6}+{recursive:<6} {}",
            group.exclusive, group.name
        )?;
        let mut inner = 0;
        for row in &group.rows {
            inner += row.exclusive;
            let share = percent(row.exclusive, group.exclusive);
            let all = percent(inner, group.exclusive);
            let [calls, recursive] = row.calls;
            let name = name(row);
            let DumpRow { exclusive: own, inclusive: total, index, .. } = row;
            writeln!(
                out,
                "{own:9} {total:9} {share:7.1} {all:7.1} {calls:6}+{recursive:<6} [{index}] {name}"
            )?;
        }
    }
    Ok(())
}
