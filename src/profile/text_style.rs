//! The look of text that people read: its width and its colours.

use crate::console::printable;

/// The look of text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TextStyle {
    /// Columns of the terminal, which text fits into. `None` prints every line in full.
    pub width: Option<usize>,
    /// Whether to use colour.
    pub colour: bool,
}

/// The emphasis of a row, by its share of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heat {
    /// From [`HOT_PERCENT`] on: bold red.
    Hot,
    /// From [`WARM_PERCENT`] on: bold.
    Warm,
    Plain,
}

const HOT_PERCENT: f64 = 10.0;
const WARM_PERCENT: f64 = 3.0;

impl Heat {
    /// The heat of a share in percent.
    pub(super) fn from_percent(percent: f64) -> Heat {
        match percent {
            HOT_PERCENT.. => Heat::Hot,
            WARM_PERCENT.. => Heat::Warm,
            _ => Heat::Plain,
        }
    }
}

/// The space between a figure and its unit in a sentence.
pub(super) const NO_BREAK_SPACE: &str = "\u{a0}";

impl TextStyle {
    /// Bold text, where colour is on.
    pub(super) fn bold(self, text: &str) -> String {
        self.styled("\x1b[1m", text)
    }

    /// Grey text, where colour is on.
    pub(super) fn dim(self, text: &str) -> String {
        self.styled("\x1b[2m", text)
    }

    /// Text that stands out by `heat`, where colour is on. Red and bold can be read on light and on dark
    /// terminals.
    pub(super) fn hot(self, heat: Heat, text: &str) -> String {
        match heat {
            Heat::Hot => self.styled("\x1b[1;31m", text),
            Heat::Warm => self.bold(text),
            Heat::Plain => text.to_owned(),
        }
    }

    fn styled(self, style: &str, text: &str) -> String {
        if self.colour { format!("{style}{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Text in lines that end between words and fit the terminal. The control characters of names in it are
    /// escaped. A word that is wider than the terminal has a line of its own. No line ends at a no-break
    /// space, which becomes a space.
    pub(super) fn wrap(self, text: &str) -> String {
        let text = printable(text);
        let Some(width) = self.width else { return text.replace(NO_BREAK_SPACE, " ") };
        let mut out = String::with_capacity(text.len() + text.len() / width.max(1));
        let mut column = 0;
        for word in text.split(' ') {
            let len = word.chars().count();
            if column > 0 && column + 1 + len > width {
                out.push('\n');
                column = 0;
            } else if column > 0 {
                out.push(' ');
                column += 1;
            }
            out.push_str(&word.replace(NO_BREAK_SPACE, " "));
            column += len;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words() {
        let style = |width| TextStyle { width, colour: false };
        assert_eq!(style(Some(9)).wrap("one two three four"), "one two\nthree\nfour");
        assert_eq!(style(Some(3)).wrap("a verylong b"), "a\nverylong\nb");
        assert_eq!(style(Some(9)).wrap("wall 45.1\u{a0}s"), "wall\n45.1 s");
        assert_eq!(style(None).wrap("one two\x1b[2J"), "one two\\u001b[2J");
    }

    #[test]
    fn a_share_has_its_heat() {
        assert_eq!([12.0, 10.0, 9.9, 3.0, 2.9, 0.0].map(Heat::from_percent), {
            use Heat::{Hot, Plain, Warm};
            [Hot, Hot, Warm, Warm, Plain, Plain]
        });
    }
}
