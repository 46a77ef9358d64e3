//! Mistakes in command lines: what is said of each, and what one probably wants instead.

use std::path::Path;

use clap::Command;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::command_line;
use crate::cli::tips::without_escapes;
use crate::console::complain;
use crate::desk::host_command;
use crate::file_access;
use crate::formats::input::Input;
use crate::formats::{self, FormatId};

/// Prints an error of the command line, and what one probably wants instead where a file stands in a place
/// where none belongs.
pub fn print_usage_error(error: clap::Error) {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let error = with_device_tip(error, &command_line(), &words);
    match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word))) if is_path(word) => {
            suggest_commands(word);
        }
        _ => _ = error.print(),
    }
}

/// Whether a word is the name of a file, or looks like one.
fn is_path(word: &str) -> bool {
    file_access::exists(Path::new(word)) || word.contains(['/', '.', '\\'])
}

/// Says which commands read a file, where its name stands in a command's place (`tracebridge app.trace`).
fn suggest_commands(word: &str) {
    let path = Path::new(word);
    if !file_access::exists(path) {
        return complain(format_args!("tracebridge: {word}: is no command, and no such file is here"));
    }
    // What is read from a pipe would be missing later.
    let input = file_access::is_file(path).then(|| Input::open(path).ok()).flatten();
    let commands = match input.map(|input| formats::identify(&input)) {
        Some(Ok(FormatId::MethodTrace)) => {
            ["open FILE", "info FILE", "profile FILE", "merge FILE -o OUT.pftrace"].as_slice()
        }
        Some(Ok(_)) => {
            &["open FILE", "info FILE", "merge FILE -o OUT.pftrace", "merge FILE APP.trace -o OUT.pftrace"]
        }
        _ => &["info FILE"],
    };
    complain(format_args!("tracebridge: {word} is a file, and no command comes before it. Perhaps:"));
    for command in commands {
        complain(format_args!("  tracebridge {}", command.replace("FILE", word)));
    }
}

/// The error without advice to make a name of a flag, and with the command that does the same for an attached
/// device.
fn with_device_tip(error: clap::Error, program: &Command, words: &[String]) -> clap::Error {
    let mut error = without_escapes(error);
    let Some(name) = words.first() else { return error };
    let on_adb = |name: &str| adb_command(program, name);
    let is_of_device = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::InvalidSubcommand, _) => {
            !is_path(name) && (on_adb(name).is_some() || host_command(name).is_some())
        }
        (ErrorKind::UnknownArgument, Some(ContextValue::String(word))) => host_command(name)
            .and_then(|host| on_adb(host.strip_prefix("adb ")?))
            .is_some_and(|command| has_flag(command, word)),
        _ => false,
    };
    if is_of_device {
        error.remove(ContextKind::SuggestedSubcommand);
        error.remove(ContextKind::SuggestedArg);
        let tip = StyledStr::from(device_tip(name));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

/// The command of `adb` that does for an attached device what the command of this name does on a device.
fn adb_command<'c>(program: &'c Command, name: &str) -> Option<&'c Command> {
    program.find_subcommand("adb")?.find_subcommand(name)
}

/// Where somebody at the host finds a command of the device, or of `adb`.
fn device_tip(name: &str) -> String {
    match host_command(name) {
        Some(host) => format!("`{name}` runs on a device; from here: `tracebridge {host}`"),
        None => format!("`{name}` is a command for attached devices: `tracebridge adb {name}`"),
    }
}

/// The command takes a flag that is given so.
fn has_flag(command: &Command, given: &str) -> bool {
    let short = given.strip_prefix('-').and_then(|rest| rest.chars().next());
    command.get_arguments().any(|arg| match given.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => short.is_some() && arg.get_short() == short,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::host::host_command_line;

    /// The answer to these words where the program has these commands.
    fn answer(program: &Command, line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let all = std::iter::once("tracebridge").chain(line.split(' '));
        let error = program.clone().try_get_matches_from(all).unwrap_err();
        with_device_tip(error, program, &words).to_string()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_tip_is_what_helps() {
        let program = command_line();
        for (line, tip) in [
            (
                "record --serial S1 sched",
                "tip: `record` runs on a device; from here: `tracebridge adb record`",
            ),
            ("launch --open com.a", "tip: `launch` runs on a device; from here: `tracebridge adb launch`"),
            ("restore --serial S1", "tip: `restore` runs on a device; from here: `tracebridge adb clean`"),
            ("devices", "tip: `devices` is a command for attached devices: `tracebridge adb devices`"),
            ("push -s S1", "tip: `push` is a command for attached devices: `tracebridge adb push`"),
            ("info --jsn x", "tip: a similar argument exists: '--json'"),
        ] {
            let answer = answer(&program, line);
            assert!(answer.contains(tip) && !answer.contains("use '--"), "{line}: {answer}");
        }
        for (line, tips) in [("convert -Y x.dat", 0), ("launch --root com.a", 1), ("adb -s S1 devices", 0)] {
            let answer = answer(&program, line);
            assert_eq!(answer.matches("tip:").count(), tips, "{line}: {answer}");
        }
    }

    #[test]
    fn where_no_device_commands_are_their_names_lead_to_those_of_adb() {
        for (line, tip) in [
            ("record sched -t 3", "tip: `record` runs on a device; from here: `tracebridge adb record`"),
            ("restore", "tip: `restore` runs on a device; from here: `tracebridge adb clean`"),
        ] {
            let answer = answer(&host_command_line(), line);
            assert!(answer.contains(tip), "{line}: {answer}");
        }
    }
}
