//! The comparison of two profiles as a table for people.

use std::io::{self, Write};

use super::diff::{DiffRow, RowChange};
use super::figures::{CLOCKS, DURATION_WIDTH, count, duration, percent};
use super::names::TraceNames;
use super::row_print::{RowLook, count_width};
use super::rows::{ProfileRows, SortKey, figure};
use super::shown_name::ShownName;
use super::table::{Column, Keep, Table};
use super::text_style::Heat;

/// Writes changes as a table. `profiles` are the earlier and the later one.
pub(super) fn write_table(
    changes: &[DiffRow],
    profiles: [(&ProfileRows, &TraceNames<'_, '_>); 2],
    look: RowLook,
    out: &mut impl Write,
) -> io::Result<()> {
    let by = profiles[1].0.by.name();
    let has_times = profiles.iter().any(|(rows, _)| rows.clocks.contains(&true));
    let clock = CLOCKS.iter().find(|(clock, _)| *clock == look.clock).map_or("", |(_, name)| name);
    let what = match look.sort {
        SortKey::Exclusive => format!("{by}, {clock} excl"),
        SortKey::Inclusive if !has_times => format!("{by}, calls incl"),
        SortKey::Inclusive => format!("{by}, {clock} incl"),
        SortKey::Calls => format!("{by}, calls"),
    };
    let of = |stat| figure(stat, look.sort, look.clock);
    let is_count = look.sort == SortKey::Calls || !has_times;
    let show = |value| if is_count { count(value) } else { duration(value) };
    let width = match is_count {
        true => count_width(changes.iter().map(|row| of(&row.before).max(of(&row.after)))),
        false => DURATION_WIDTH,
    };
    let names: Vec<ShownName> = changes
        .iter()
        .map(|row| {
            let (rows, names) = profiles[row.in_profile.0];
            rows.shown(names, &row.in_profile.1, look.descriptors)
        })
        .collect();
    let columns = vec![
        Column::hot("change", 1 + width),
        Column::new("before", width, Keep::Other),
        Column::new("after", width, Keep::Always),
        Column::new("", "slower".len(), Keep::Always),
    ];
    let table = Table::new(columns, &what, names.iter().map(ShownName::width).max().unwrap_or(0), look.style);
    writeln!(out, "{}", table.head())?;
    for (row, name) in changes.iter().zip(&names) {
        let delta = u64::try_from(row.delta.unsigned_abs()).unwrap_or(u64::MAX);
        let sign = match row.delta {
            0 => "",
            1.. => "+",
            _ => "-",
        };
        let figures = [
            format!("{sign}{}", show(delta)),
            show(of(&row.before)),
            show(of(&row.after)),
            row.change.name().into(),
        ];
        writeln!(out, "{}", table.row(&figures, "", name, heat(row, delta, profiles, look)))?;
    }
    Ok(())
}

/// A change stands out by its share of the earlier profile's time. What became faster is at most bold.
fn heat(
    row: &DiffRow,
    delta: u64,
    profiles: [(&ProfileRows, &TraceNames<'_, '_>); 2],
    look: RowLook,
) -> Heat {
    if look.sort == SortKey::Calls {
        return Heat::Plain;
    }
    match (Heat::of(percent(delta, profiles[0].0.total[look.clock])), row.change) {
        (Heat::Hot, RowChange::Faster | RowChange::Gone) => Heat::Warm,
        (heat, _) => heat,
    }
}
