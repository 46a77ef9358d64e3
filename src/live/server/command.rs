//! The commands that a live page sends. Whatever else comes is refused with a sentence that the page shows.

use serde::Deserialize;

use crate::categories::{CategorySwitch, MAX_CATEGORY_BYTES, MAX_SWITCHED};

/// The longest command, bytes.
pub(super) const MAX_COMMAND_BYTES: usize = 4096;
/// The longest name of a marker, bytes.
const MAX_MARK_BYTES: usize = 200;

/// A command of a live page.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub enum LiveCommand {
    /// A marker is to be written into the recording.
    Mark {
        /// Its text.
        name: String,
    },
    /// The kept part is to be written into a file.
    Save {
        /// The format of the file.
        format: SavedFormat,
    },
    /// Categories are to be switched while the recording goes on.
    Categories {
        /// The names of those to switch on.
        #[serde(default)]
        on: Vec<String>,
        /// The names of those to switch off.
        #[serde(default)]
        off: Vec<String>,
    },
    /// The recording is to end.
    Stop {},
}

/// The format of a file that a live page has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SavedFormat {
    /// A trace.dat.
    Dat,
    /// A Perfetto trace.
    Pftrace,
    /// A report page.
    Html,
}

impl SavedFormat {
    /// The ending of the file's name.
    pub fn ending(self) -> &'static str {
        match self {
            SavedFormat::Dat => "dat",
            SavedFormat::Pftrace => "pftrace",
            SavedFormat::Html => "html",
        }
    }
}

/// Why a text is no command.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    #[error("a command has at most {MAX_COMMAND_BYTES} bytes, this one has {0}")]
    Long(usize),
    #[error("not a command: {0}")]
    Json(#[from] serde_json::Error),
    #[error("a marker's name has 1 to {MAX_MARK_BYTES} bytes, without control characters")]
    Mark,
    #[error(
        "a command names 1 to {MAX_SWITCHED} categories, each with up to {MAX_CATEGORY_BYTES} letters, digits, _ and -"
    )]
    Categories,
}

impl LiveCommand {
    /// The command in a page's message.
    pub(super) fn parse(text: &str) -> Result<LiveCommand, CommandError> {
        if text.len() > MAX_COMMAND_BYTES {
            return Err(CommandError::Long(text.len()));
        }
        let command: LiveCommand = serde_json::from_str(text)?;
        match &command {
            LiveCommand::Mark { name } => {
                let is_name =
                    (1..=MAX_MARK_BYTES).contains(&name.trim().len()) && name.len() <= MAX_MARK_BYTES;
                if !is_name || name.chars().any(char::is_control) {
                    return Err(CommandError::Mark);
                }
            }
            LiveCommand::Categories { on, off } => {
                let switch = CategorySwitch { on: on.clone(), off: off.clone() };
                if !switch.is_sound() {
                    return Err(CommandError::Categories);
                }
            }
            LiveCommand::Save { .. } | LiveCommand::Stop {} => {}
        }
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<LiveCommand, String> {
        LiveCommand::parse(text).map_err(|error| error.to_string())
    }

    #[test]
    fn the_commands_of_a_page_are_understood() {
        let name = "it's <b>100 %</b> — 図".to_owned();
        assert_eq!(parse(r#"{"do":"mark","name":"it's <b>100 %</b> — 図"}"#), Ok(LiveCommand::Mark { name }));
        for (text, format) in
            [("dat", SavedFormat::Dat), ("pftrace", SavedFormat::Pftrace), ("html", SavedFormat::Html)]
        {
            assert_eq!(
                parse(&format!(r#"{{"do":"save","format":"{text}"}}"#)),
                Ok(LiveCommand::Save { format })
            );
            assert_eq!(format.ending(), text);
        }
        assert_eq!(
            parse(r#"{"do":"categories","on":["gfx"],"off":["sched"]}"#),
            Ok(LiveCommand::Categories { on: vec!["gfx".into()], off: vec!["sched".into()] })
        );
        assert_eq!(parse(r#"{"do":"stop"}"#), Ok(LiveCommand::Stop {}));
    }

    #[test]
    fn hostile_commands_are_refused() {
        let long = format!(r#"{{"do":"mark","name":"{}"}}"#, "x".repeat(5000));
        assert!(parse(&long).unwrap_err().starts_with("a command has at most 4096 bytes"));
        let many = format!(r#"{{"do":"categories","on":["{}"]}}"#, ["a"; 65].join("\",\""));
        let deep = "[".repeat(4000);
        for text in [
            "",
            "null",
            "{}",
            r#"{"do":"shell","name":"x"}"#,
            r#"{"do":"mark"}"#,
            r#"{"do":"mark","name":1}"#,
            r#"{"do":"mark","name":"x","path":"/etc"}"#,
            r#"{"do":"mark","name":""}"#,
            r#"{"do":"mark","name":"  "}"#,
            r#"{"do":"mark","name":"a\nb"}"#,
            r#"{"do":"mark","name":"a\u0000b"}"#,
            r#"{"do":"mark","name":"a\u001b[2Jb"}"#,
            r#"{"do":"mark","name":"a\u0085b"}"#,
            &format!(r#"{{"do":"mark","name":"{}"}}"#, "x".repeat(201)),
            r#"{"do":"save","format":"/etc/passwd"}"#,
            r#"{"do":"save","format":"dat","path":"/x"}"#,
            r#"{"do":"categories","on":["--output=/x"]}"#,
            r#"{"do":"categories","on":["a b"]}"#,
            r#"{"do":"categories","on":["a\noff sched"]}"#,
            r#"{"do":"categories","on":[""]}"#,
            r#"{"do":"categories","off":["../x"]}"#,
            &many,
            &deep,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
