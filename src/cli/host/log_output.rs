//! The log of the host's commands: `-v` prints it, and the environment variable `TRACEBRIDGE_LOG` the parts
//! that its filter names.

use std::borrow::Cow;
use std::env;
use std::io::Write;
use std::time::Instant;

use clap::{Arg, ArgAction};
use env_logger::{Builder, WriteStyle};
use log::LevelFilter;

use crate::console::printable;

/// The environment variable with a filter: `debug`, or `tracebridge::adb=trace,warn`.
const VARIABLE: &str = "TRACEBRIDGE_LOG";

/// The flag's name on the command line. The device's recording commands have a flag of this name, too.
pub(super) const VERBOSE: &str = "verbose";

/// The most characters of a message. Answers of devices can be long.
const MAX_MESSAGE_CHARS: usize = 1_000;

/// The flag, which the command's own subcommands have as well.
pub(super) fn verbose_flag() -> Arg {
    Arg::new(VERBOSE)
        .short('v')
        .long(VERBOSE)
        .action(ArgAction::SetTrue)
        .global(true)
        .help("Print on stderr what is asked of adb and read, decided and written")
        .long_help(format!(
            "Print on stderr what is asked of adb and what it answers, which reader reads each input, how inputs are \
             put on one clock, and which files are written. The environment variable {VARIABLE} does the same for \
             parts of the program: docs/troubleshooting.md"
        ))
}

/// Prints the messages of the log on standard error from now on: all of this program if `is_verbose`, and
/// those that the environment variable asks for.
pub(super) fn start(is_verbose: bool) {
    let filter = env::var(VARIABLE).ok().filter(|filter| !filter.is_empty());
    if !is_verbose && filter.is_none() {
        return;
    }
    let mut log = Builder::new();
    if is_verbose {
        log.filter_module(env!("CARGO_PKG_NAME"), LevelFilter::Debug);
    }
    if let Some(filter) = filter {
        log.parse_filters(&filter);
    }
    let started = Instant::now();
    log.write_style(WriteStyle::Never).format(move |out, record| {
        let seconds = started.elapsed().as_secs_f64();
        let room = record.target().strip_prefix("tracebridge::").unwrap_or(record.target());
        writeln!(out, "{seconds:9.3} {} {room}: {}", record.level(), message(&record.args().to_string()))
    });
    // A second log is none of this program.
    let _ = log.try_init();
}

/// A message on one line, cut where it is too long: names and answers come from files and devices.
fn message(text: &str) -> String {
    let length = text.char_indices().nth(MAX_MESSAGE_CHARS).map(|(at, _)| at);
    let Some(length) = length else { return printable(text).into_owned() };
    let cut: Cow<'_, str> = printable(&text[..length]);
    format!("{cut}… ({} bytes)", text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_of_limited_length() {
        assert_eq!(message("a\x1b[2J\nb"), "a\\u001b[2J\\u000ab");
        assert_eq!(message(&"ä".repeat(MAX_MESSAGE_CHARS)), "ä".repeat(MAX_MESSAGE_CHARS));
        let long = message(&"ä".repeat(MAX_MESSAGE_CHARS + 1));
        assert!(long.ends_with("ä… (2002 bytes)") && long.chars().count() < MAX_MESSAGE_CHARS + 20, "{long}");
    }
}
