//! A judgement as Markdown, for the comment of a bot or the summary of a job.

use super::cells::{self, TITLES};
use super::judge::Judgement;

impl Judgement {
    /// The judgement as Markdown with tables (GitHub Flavored Markdown).
    pub fn to_markdown(&self) -> String {
        let mut text = format!("### {}\n\n", escape(&cells::outcome(self)));
        for side in cells::sides(self) {
            text += &format!("- {}\n", escape(&side));
        }
        for judged in &self.conditions {
            text += &format!("\n**{}**\n\n", escape(&judged.condition.text));
            text += &format!("| {} |\n", TITLES.join(" | "));
            text += "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n";
            let (shown, more) = cells::shown(judged);
            for measure in shown {
                let cells = cells::cells(judged, measure).map(|cell| escape(&cell));
                text += &format!("| {} |\n", cells.join(" | "));
            }
            if more > 0 {
                text += &format!("\n… and {more} more.\n");
            }
        }
        let grown = self.grown_lines();
        if !grown.is_empty() {
            text += "\n**What grew in the launches**\n\n";
        }
        for line in grown {
            text += &format!("- {}\n", escape(line.trim_start()));
        }
        if self.tested > 1 {
            text += &format!(
                "\n{} measures were tested together: p is corrected for that (Holm).\n",
                self.tested
            );
        }
        if !self.notes.is_empty() {
            text += "\n";
        }
        for note in &self.notes {
            text += &format!("- {}\n", escape(note));
        }
        text
    }
}

/// Text that Markdown shows as it is: every character that could be markup gets a backslash, and control
/// characters are replaced.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for char in text.chars() {
        match char {
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '(' | ')' | '#' | '|' | '~'
            | '!' | '&' | '@' => escaped.extend(['\\', char]),
            char if char.is_control() => escaped.push('\u{fffd}'),
            char => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_cannot_break_a_table_or_bring_markup() {
        assert_eq!(escape("a|b\n<img src=x> [x](y) `c` d"), r"a\|b�\<img src=x\> \[x\]\(y\) \`c\` d");
        assert_eq!(escape("slice.draw 95 %, +5.0 -"), "slice.draw 95 %, +5.0 -");
    }
}
