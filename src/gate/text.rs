//! A judgement as a text for a terminal.

use super::cells::{self, TITLES};
use super::judge::Judgement;

impl Judgement {
    /// The judgement in lines for people.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = cells::sides(self).to_vec();
        for judged in &self.conditions {
            lines.push(String::new());
            lines.push(judged.condition.to_string());
            let (shown, more) = cells::shown(judged);
            let titles = TITLES.map(str::to_owned);
            let rows: Vec<[String; 8]> = std::iter::once(titles)
                .chain(shown.iter().map(|measure| cells::cells(judged, measure)))
                .collect();
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
