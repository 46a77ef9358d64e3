//! The look of text that people read, and the form of numbers in it.

use crate::console::printable;
use crate::formats::art_method::{CPU, WALL};

/// The look of text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TextStyle {
    /// Columns of the terminal, to which lines are cut. `None` cuts no line.
    pub width: Option<usize>,
    /// Whether to use colour.
    pub colour: bool,
}

impl TextStyle {
    /// Bold text, where colour is on.
    pub(super) fn bold(self, text: &str) -> String {
        if self.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Grey text, where colour is on.
    pub(super) fn dim(self, text: &str) -> String {
        if self.colour { format!("\x1b[2m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Cuts a line to the width of the terminal, and escapes the control characters of names in it.
    pub(super) fn fit(self, line: &str) -> String {
        let line = printable(line);
        match self.width {
            Some(width) if line.chars().count() > width => {
                line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
            }
            _ => line.into_owned(),
        }
    }
}

/// The clocks with their names, in the order of columns.
pub(super) const CLOCKS: [(usize, &str); 2] = [(WALL, "wall"), (CPU, "cpu")];

/// A time in ns, printed as ms with three decimals; digits below 1 µs are cut.
pub(super) fn ms(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000, ns / 1_000 % 1_000)
}

/// A share in percent; 0 where the whole is 0.
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}
