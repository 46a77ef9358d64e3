//! Mistakes in command lines: what is said of each, and what one probably wants instead.

use std::path::Path;

use clap::Command;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::command_line;
use crate::console::complain;
use crate::formats::input::Input;
use crate::formats::{self, FormatId};

/// Prints an error of the command line, and what one probably wants instead where a file stands in a place
/// where none belongs.
pub fn print_usage_error(error: clap::Error) {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let error = with_true_tips(error, &command_line(), &words);
    match (error.kind(), error.get(ContextKind::InvalidSubcommand), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word)), _) if is_path(word) => {
            suggest_commands(word);
        }
        (ErrorKind::UnknownArgument, _, Some(ContextValue::String(word)))
            if !word.starts_with('-') && words.first().is_some_and(|command| command == "convert") =>
        {
            let _ = error.print();
            complain(format_args!(
                "\nconvert takes one input, and -o before the output: tracebridge convert IN -o OUT.pftrace\n\
                 merge puts several inputs into one file: tracebridge merge IN {word} -o OUT.pftrace"
            ));
        }
        _ => _ = error.print(),
    }
}

/// Whether a word is the name of a file, or looks like one.
fn is_path(word: &str) -> bool {
    Path::new(word).exists() || word.contains(['/', '.', '\\'])
}

/// Says which commands read a file, where its name stands in a command's place (`tracebridge app.trace`).
fn suggest_commands(word: &str) {
    let path = Path::new(word);
    if !path.exists() {
        return complain(format_args!("tracebridge: {word}: is no command, and no such file is here"));
    }
    // What is read from a pipe would be missing later.
    let input = path.is_file().then(|| Input::open(path).ok()).flatten();
    let commands = match input.map(|input| formats::identify(&input)) {
        Some(Ok(FormatId::MethodTrace)) => {
            ["open FILE", "info FILE", "profile FILE", "convert FILE -o OUT.pftrace"].as_slice()
        }
        Some(Ok(_)) => {
            &["open FILE", "info FILE", "convert FILE -o OUT.pftrace", "merge FILE APP.trace -o OUT.pftrace"]
        }
        _ => &["info FILE"],
    };
    complain(format_args!("tracebridge: {word} is a file, and no command comes before it. Perhaps:"));
    for command in commands {
        complain(format_args!("  tracebridge {}", command.replace("FILE", word)));
    }
}

/// The error with tips that are true. For an argument that a command does not take, clap advises to put `--`
/// before it, which makes a name of it that nobody means.
fn with_true_tips(mut error: clap::Error, program: &Command, words: &[String]) -> clap::Error {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.clone()),
        _ => None,
    };
    match (error.kind(), context(ContextKind::InvalidArg), context(ContextKind::InvalidSubcommand)) {
        (ErrorKind::UnknownArgument, Some(word), _)
            if word.starts_with('-') && !Path::new(&word).exists() =>
        {
            let mut tips = match error.remove(ContextKind::Suggested) {
                Some(ContextValue::StyledStrs(tips)) => tips,
                _ => Vec::new(),
            };
            tips.retain(|tip| !tip.to_string().starts_with("to pass "));
            tips.extend(tip_for_argument(&word, program, words).map(StyledStr::from));
            if !tips.is_empty() {
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
            }
        }
        (ErrorKind::InvalidSubcommand, _, Some(name))
            if words.first() == Some(&name) && adb_command(program, &name).is_some() && !is_path(&name) =>
        {
            error.remove(ContextKind::SuggestedSubcommand);
            let tip = StyledStr::from(device_tip(&name));
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
        }
        _ => {}
    }
    error
}

/// The argument or option that the user probably means by an argument that the command does not take.
fn tip_for_argument(word: &str, program: &Command, words: &[String]) -> Option<String> {
    let mut command = program;
    let mut depth = 0;
    while let Some(inner) = words.get(depth).and_then(|name| command.find_subcommand(name)) {
        command = inner;
        depth += 1;
    }
    let at = words.iter().position(|given| given.starts_with(word))?;
    if let Some(option) = at.checked_sub(1).and_then(|before| option(command, &words[before])) {
        let values = option.get_value_names().unwrap_or_default();
        let value = values.first().map_or("a value", |name| name.as_str());
        let given = &words[at - 1];
        return Some(format!("'{given}' takes <{value}>, which does not begin with '-'"));
    }
    // A command of the device, typed on the host with a flag of the host's.
    let on_host = adb_command(program, command.get_name()).filter(|_| depth == 1)?;
    let has_flag = option_or_switch(on_host, word);
    (is_device_command(command.get_name()) && has_flag).then(|| device_tip(command.get_name()))
}

/// The command of `adb` that does for an attached device what the command of this name does on a device.
fn adb_command<'c>(program: &'c Command, name: &str) -> Option<&'c Command> {
    program.find_subcommand("adb")?.find_subcommand(name)
}

fn device_tip(name: &str) -> String {
    format!("`{name}` runs on a device; from here: `tracebridge adb {name}`")
}

/// The option of the command that is given so, if it takes a value.
fn option<'c>(command: &'c Command, given: &str) -> Option<&'c clap::Arg> {
    command.get_arguments().find(|arg| is_given_as(arg, given) && arg.get_action().takes_values())
}

fn option_or_switch(command: &Command, given: &str) -> bool {
    command.get_arguments().any(|arg| is_given_as(arg, given))
}

fn is_given_as(arg: &clap::Arg, given: &str) -> bool {
    let long = given.strip_prefix("--");
    let short = given.strip_prefix('-').and_then(|rest| rest.chars().next());
    match long {
        Some(long) => arg.get_long() == Some(long),
        None => short.is_some() && arg.get_short() == short,
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_device_command(name: &str) -> bool {
    <tracebridge_device::DeviceCommand as clap::Subcommand>::has_subcommand(name)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn is_device_command(_: &str) -> bool {
    false
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
        with_true_tips(error, program, &words).to_string()
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
            ("record sched -t -3", "tip: '-t' takes <TIME>, which does not begin with '-'"),
            ("adb record sched -t -3", "tip: '-t' takes <TIME>, which does not begin with '-'"),
            ("info --jsn x", "tip: a similar argument exists: '--json'"),
        ] {
            let answer = answer(&program, line);
            assert!(answer.contains(tip) && !answer.contains("use '--"), "{line}: {answer}");
        }
        let answer = answer(&program, "convert -Y x.dat");
        assert!(!answer.contains("tip:"), "{answer}");
    }

    #[test]
    fn where_no_device_commands_are_their_names_lead_to_those_of_adb() {
        let answer = answer(&host_command_line(), "record sched -t 3");
        assert!(
            answer.contains("tip: `record` runs on a device; from here: `tracebridge adb record`"),
            "{answer}"
        );
    }
}
