//! The flags of a command line as they were given, for a command that hands them on.

use std::fmt;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Id};

/// A flag as it stands on the command line. It is displayed as one argument: `--buffer=99`, `--force`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GivenFlag {
    /// The name of the flag's field.
    pub(super) id: Id,
    /// The flag with its dashes: `--buffer`.
    pub(super) name: String,
    value: Option<String>,
}

impl fmt::Display for GivenFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Finds those of these flags that the command line has. A flag with several values is there once for each.
/// Positional arguments are not among them.
pub(super) fn given_flags<'a>(args: impl Iterator<Item = &'a Arg>, matches: &ArgMatches) -> Vec<GivenFlag> {
    let mut given = Vec::new();
    for arg in args {
        let id = arg.get_id();
        let Some(long) = arg.get_long() else { continue };
        // The flags that every command has, --help and --version, are none of this one.
        let is_given = matches!(matches.try_contains_id(id.as_str()), Ok(true))
            && matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        if !is_given {
            continue;
        }
        let flag = |value| GivenFlag { id: id.clone(), name: format!("--{long}"), value };
        if arg.get_action().takes_values() {
            let values = matches.get_raw(id.as_str()).into_iter().flatten();
            given.extend(values.map(|value| flag(Some(value.to_string_lossy().into_owned()))));
        } else {
            given.push(flag(None));
        }
    }
    given
}
