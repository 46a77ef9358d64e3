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
    let similar = context(ContextKind::SuggestedArg);
    match (error.kind(), context(ContextKind::InvalidArg), context(ContextKind::InvalidSubcommand)) {
        (ErrorKind::UnknownArgument, Some(word), _)
            if word.starts_with('-') && !file_access::exists(Path::new(&word)) =>
        {
            error = without_escapes(error);
            let mut tips = match error.remove(ContextKind::Suggested) {
                Some(ContextValue::StyledStrs(tips)) => tips,
                _ => Vec::new(),
            };
            let tip = tip_for_argument(&word, program, words);
            // clap finds `--all` similar to `--kallsyms`.
            if tip.is_some() || similar.is_some_and(|similar| !begins_alike(&similar, &word)) {
                error.remove(ContextKind::SuggestedArg);
            }
            tips.extend(tip.map(StyledStr::from));
            if !tips.is_empty() {
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
            }
        }
        (ErrorKind::InvalidSubcommand, _, Some(name))
            if words.first() == Some(&name)
                && (adb_command(program, &name).is_some() || host_command(&name).is_some())
                && !is_path(&name) =>
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
    let name = command.get_name();
    // As `adb -s SERIAL COMMAND` has it.
    if name == "adb" && depth == 1 {
        let behind = words[at..].iter().find_map(|given| command.find_subcommand(given.as_str()));
        let takes = |inner: &Command| option_or_switch(inner, word);
        let is_taken = behind.map_or_else(|| command.get_subcommands().any(takes), takes);
        let behind = behind.map_or("COMMAND", Command::get_name);
        let tip = || format!("'{word}' stands behind the command: `tracebridge adb {behind} {word} …`");
        return is_taken.then(tip);
    }
    // A command of the device, typed on the host with a flag of the host's.
    let on_host = host_command(name).filter(|_| depth == 1)?;
    let has_flag = option_or_switch(adb_command(program, on_host.strip_prefix("adb ")?)?, word);
    has_flag.then(|| device_tip(name))
}

/// Whether two options begin with the same letter.
fn begins_alike(one: &str, other: &str) -> bool {
    let letter = |option: &str| option.trim_start_matches('-').chars().next();
    letter(one) == letter(other)
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
            ("restore --serial S1", "tip: `restore` runs on a device; from here: `tracebridge adb clean`"),
            ("devices", "tip: `devices` is a command for attached devices: `tracebridge adb devices`"),
            ("push -s S1", "tip: `push` is a command for attached devices: `tracebridge adb push`"),
            ("record sched -t -3", "tip: '-t' takes <TIME>, which does not begin with '-'"),
            ("adb record sched -t -3", "tip: '-t' takes <TIME>, which does not begin with '-'"),
            ("info --jsn x", "tip: a similar argument exists: '--json'"),
            ("adb -s S1 record sched", "tip: '-s' stands behind the command: `tracebridge adb record -s …`"),
            ("adb --all", "tip: '--all' stands behind the command: `tracebridge adb COMMAND --all …`"),
        ] {
            let answer = answer(&program, line);
            assert!(answer.contains(tip) && !answer.contains("use '--"), "{line}: {answer}");
        }
        for (line, tips) in [
            ("convert -Y x.dat", 0),
            ("dump --open", 0),
            ("launch --root com.a", 1),
            ("adb -s S1 devices", 0),
        ] {
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
