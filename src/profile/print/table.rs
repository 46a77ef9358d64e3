//! Tables for people: columns of figures, and a name at the end of each row. On a terminal the columns that
//! are needed least give way to the names; a pipe or a file gets every column and every name in full.

use std::fmt::Write as _;

use crate::profile::names::{FittedName, ShownName};
use crate::profile::text_style::{Heat, TextStyle};

/// The columns in the order in which they are left out on a narrow terminal. The figure that rows are sorted
/// by and its share are [`Keep::Always`], whatever they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Keep {
    /// The number of recursive calls.
    Recursive,
    /// The shares of the second clock's times.
    SecondShare,
    /// Inclusive time in the second clock: the one that rows are not sorted by.
    SecondInclusive,
    /// The share of a time that rows are not sorted by.
    Share,
    /// Exclusive time in the second clock.
    SecondExclusive,
    /// The number of calls.
    Calls,
    /// The main clock's other time; the earlier of two figures that are compared.
    Other,
    Always,
}

/// One column of figures, which are aligned at their right ends.
#[derive(Debug, Clone)]
pub(super) struct PrintedColumn {
    pub head: String,
    /// The width of the widest figure.
    pub width: usize,
    pub keep: Keep,
    /// Whether the column shows how hot a row is.
    pub is_hot: bool,
}

impl PrintedColumn {
    pub(super) fn new(head: impl Into<String>, width: usize, keep: Keep) -> PrintedColumn {
        PrintedColumn { head: head.into(), width, keep, is_hot: false }
    }

    /// A column that shows how hot a row is, and that every terminal has.
    pub(super) fn hot(head: impl Into<String>, width: usize) -> PrintedColumn {
        PrintedColumn { is_hot: true, ..PrintedColumn::new(head, width, Keep::Always) }
    }

    fn width(&self) -> usize {
        self.width.max(self.head.chars().count())
    }
}

/// The space behind each column.
const GAP: usize = 2;

/// The layout of a table.
#[derive(Debug)]
pub(super) struct TextTable {
    columns: Vec<PrintedColumn>,
    /// The head above the names.
    title: String,
    /// The least [`PrintedColumn::keep`] of the columns that are printed.
    least: Keep,
    style: TextStyle,
}

impl TextTable {
    /// Makes a table. Its figures take at most half of the terminal, or the space that the widest name
    /// leaves.
    pub(super) fn new(
        columns: Vec<PrintedColumn>,
        title: &str,
        widest_name: usize,
        style: TextStyle,
    ) -> TextTable {
        let mut table = TextTable { columns, title: title.to_owned(), least: Keep::Recursive, style };
        let widest_name = widest_name.max(title.chars().count());
        let Some(width) = style.width else { return table };
        let room = (width / 2).max(width.saturating_sub(widest_name));
        let mut levels: Vec<Keep> = table.columns.iter().map(|column| column.keep).collect();
        levels.sort();
        for least in levels {
            table.least = least;
            if table.figures_width() <= room {
                break;
            }
        }
        table
    }

    fn is_shown(&self, column: &PrintedColumn) -> bool {
        column.keep >= self.least
    }

    fn figures_width(&self) -> usize {
        self.columns.iter().filter(|column| self.is_shown(column)).map(|column| column.width() + GAP).sum()
    }

    /// The columns that names have; `None` where names are not cut.
    pub(super) fn name_room(&self) -> Option<usize> {
        self.style.width.map(|width| width.saturating_sub(self.figures_width()))
    }

    /// The line above the rows.
    pub(super) fn head(&self) -> String {
        let mut line = String::new();
        for column in self.columns.iter().filter(|column| self.is_shown(column)) {
            let _ = write!(line, "{:>width$}{:GAP$}", column.head, "", width = column.width());
        }
        self.style.bold(&(line + &self.title))
    }

    /// One row: a figure for each column, shown or not, and the name behind `indent`. A name that does not
    /// fit beside the figures follows on a line of its own.
    pub(super) fn row(&self, figures: &[String], indent: &str, name: &ShownName, heat: Heat) -> String {
        let mut line = String::new();
        for (column, figure) in self.columns.iter().zip(figures).filter(|(column, _)| self.is_shown(column)) {
            let cell = format!("{figure:>width$}", width = column.width());
            let cell = if column.is_hot { self.style.hot(heat, &cell) } else { cell };
            let _ = write!(line, "{cell}{:GAP$}", "");
        }
        let Some(room) = self.name_room() else {
            return line + indent + &self.name(&name.fit_line(usize::MAX), heat);
        };
        let width = self.style.width.unwrap_or(room);
        match name.fit(room.saturating_sub(indent.chars().count())) {
            Some(fitted) => line + indent + &self.name(&fitted, heat),
            None => {
                let fitted = name.fit_line(width);
                let margin = width.saturating_sub(fitted.width());
                format!("{}\n{:margin$}{}", line.trim_end(), "", self.name(&fitted, heat))
            }
        }
    }

    fn name(&self, name: &FittedName, heat: Heat) -> String {
        format!("{}{}{}", name.before, self.style.hot(heat, &name.own), name.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(width: Option<usize>, name: &ShownName) -> String {
        let columns = vec![
            PrintedColumn::hot("wall excl", 7),
            PrintedColumn::new("cpu excl", 7, Keep::SecondExclusive),
            PrintedColumn::new("calls", 3, Keep::Calls),
            PrintedColumn::new("recursive", 1, Keep::Recursive),
        ];
        let table = TextTable::new(columns, "method", name.width(), TextStyle { width, colour: false });
        let figures = ["1.25 s ", "14.0 ms", "12", "0"].map(String::from);
        format!("{}\n{}", table.head(), table.row(&figures, "", name, Heat::Plain))
    }

    #[test]
    fn columns_give_way_to_names_in_the_order_of_their_need() {
        let name = ShownName::method("com.example.Screen", "onDraw", "(Canvas)", false);
        let all = "wall excl  cpu excl  calls  recursive  method\n  1.25 s    14.0 ms     12          0  com.example.Screen.onDraw(Canvas)";
        for (width, text) in [
            (None, all),
            (Some(80), all),
            (
                Some(70),
                "wall excl  cpu excl  calls  method\n  1.25 s    14.0 ms     12  com.example.Screen.onDraw(Canvas)",
            ),
            (Some(40), "wall excl  calls  method\n  1.25 s      12  …Screen.onDraw(Canvas)"),
            (Some(25), "wall excl  method\n  1.25 s   …een.onDraw(…)"),
            (Some(15), "wall excl  method\n  1.25 s\n…reen.onDraw(…)"),
        ] {
            let shown = lines(width, &name);
            assert_eq!(shown, text, "{width:?}");
        }
    }
}
