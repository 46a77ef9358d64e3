//! A judgement as a text for a terminal.

use super::cells::{self, TITLES};
use super::judge::Judgement;
use crate::console::printable;

impl Judgement {
    /// The judgement in lines for people.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = cells::sides(self).to_vec();
        for judged in &self.conditions {
            lines.push(String::new());
            lines.push(printable(&judged.condition.text).into_owned());
            let (shown, more) = cells::shown(judged);
            let titles = TITLES.map(str::to_owned);
            // A line feed in a name would break the table.
            let row = |measure| cells::cells(judged, measure).map(|cell| printable(&cell).into_owned());
            let rows: Vec<[String; 8]> = std::iter::once(titles).chain(shown.iter().map(row)).collect();
            let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
            let widths: [usize; 8] = std::array::from_fn(width);
            for row in &rows {
                let cell = |(at, cell): (usize, &String)| match at {
                    // Names and words begin together, figures end together.
                    0 | 7 => format!("{cell:<0$}", widths[at]),
                    _ => format!("{cell:>0$}", widths[at]),
                };
                let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
                lines.push(format!("  {}", cells.join("  ")).trim_end().to_owned());
            }
            if more > 0 {
                lines.push(format!("  … and {more} more (--json has all)"));
            }
        }
        let grown = self.grown_lines();
        if !grown.is_empty() {
            lines.extend([String::new(), "what grew in the launches".to_owned()]);
            lines.extend(grown.iter().map(|line| format!("  {}", printable(line))));
        }
        lines.push(String::new());
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        if self.tested > 1 {
            lines.push(format!(
                "{} measures were tested together: p is corrected for that (Holm).",
                self.tested
            ));
        }
        lines.push(cells::outcome(self));
        lines
    }
}
