//! The messages about input files: each once, and the file's name once for those that follow each other.

use std::collections::HashSet;

use crate::console::complain;

/// Prints messages about files on standard error.
#[derive(Default)]
pub(super) struct Messages {
    /// The file that the message before was about.
    file: Option<String>,
    said: HashSet<(String, String)>,
}

impl Messages {
    /// Prints a message about a file, unless it has been printed before.
    pub(super) fn say(&mut self, file: &str, text: &str) {
        if let Some(line) = self.line(file, text) {
            complain(format_args!("{line}"));
        }
    }

    fn line(&mut self, file: &str, text: &str) -> Option<String> {
        if !self.said.insert((file.to_owned(), text.to_owned())) {
            return None;
        }
        if self.file.as_deref() == Some(file) {
            return Some(format!("  {text}"));
        }
        self.file = Some(file.to_owned());
        Some(format!("tracebridge: {file}: {text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_printed_once_and_names_a_file_that_is_new() {
        let mut messages = Messages::default();
        let mut line = |file, text| messages.line(file, text);
        assert_eq!(line("a", "one"), Some("tracebridge: a: one".into()));
        assert_eq!(line("a", "two"), Some("  two".into()));
        assert_eq!(line("a", "one"), None);
        assert_eq!(line("b", "one"), Some("tracebridge: b: one".into()));
        assert_eq!(line("a", "three"), Some("tracebridge: a: three".into()));
    }
}
