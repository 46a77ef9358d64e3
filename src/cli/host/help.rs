//! The help of the program: its commands by where they act, and the help of `adb` in the words of the host.

use clap::{Arg, Command};

use crate::desk::host_hints;

/// The commands of the host, by where they act.
const GROUPS: [(&str, &[&str]); 3] = [
    ("Commands for attached devices, from this computer:", &["adb"]),
    (
        "Commands for files:",
        &[
            "open",
            "live",
            "info",
            "why",
            "report",
            "profile",
            "merge",
            "gate",
            "dataset",
            "mcp",
            "dmtracedump",
        ],
    ),
    ("Commands about this program:", &["version", "completions"]),
];

/// The end of `--help` and of the manual page.
const AFTER_HELP: &str = "\
Nothing leaves this computer: there is no telemetry, no search for updates and no account. `tracebridge adb` talks to the
adb server, and to nobody else.

Environment variables: TRACEBRIDGE_LOG (what -v prints, by parts), TRACEBRIDGE_ADB_TIMEOUT (when a silent device counts as
stalled), TRACEBRIDGE_DEVICE_BINARIES (other device binaries than those inside), and adb's own ANDROID_SERIAL,
ANDROID_ADB_SERVER_PORT and ADB_SERVER_SOCKET. docs/commands.md#environment-variables has all.";

/// The commands to begin with.
const FIRST_COMMANDS: &str = "
Begin with one of these:
  tracebridge open app.trace                                    # shows a recording in the browser, offline
  tracebridge adb devices                                       # lists the attached phones
  tracebridge adb launch com.example.app -o start.html --open   # records the start of an app, and shows it
";

/// The title of all other commands.
const ON_THIS_MACHINE: &str =
    "Commands that record this machine itself, as on a device (a phone on adb: tracebridge adb COMMAND):";

/// Has `--help` list the commands of the program by where they act, those of the device last.
pub(super) fn in_groups(program: Command) -> Command {
    let abouts: Vec<(String, String)> = program
        .get_subcommands()
        .map(|own| (own.get_name().to_owned(), own.get_about().map(ToString::to_string).unwrap_or_default()))
        .collect();
    let width = abouts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, about): &(String, String)| format!("  {name:width$}  {about}\n");
    let is_listed = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let mut text = format!("{{about}}\n\n{{usage-heading}} {{usage}}\n{FIRST_COMMANDS}");
    for (title, names) in GROUPS {
        let of_group = names.iter().filter_map(|name| abouts.iter().find(|(own, _)| own == name));
        text += &format!("\n{title}\n{}", of_group.map(line).collect::<String>());
    }
    let others: String = abouts.iter().filter(|(name, _)| !is_listed(name)).map(line).collect();
    if !others.is_empty() {
        text += &format!("\n{ON_THIS_MACHINE}\n{others}");
    }
    let text = text + "\nOptions:\n{options}\n\n`tracebridge help COMMAND` explains a command.{after-help}";
    program.help_template(text).after_long_help(AFTER_HELP)
}

/// The command with the host's commands in the help of its flags, of which many are the device's too.
pub(super) fn with_host_hints(command: Command) -> Command {
    let hinted = |arg: Arg| {
        let help = arg.get_help().map(|help| host_hints(&help.to_string()));
        let long_help = arg.get_long_help().map(|help| host_hints(&help.to_string()));
        let arg = if let Some(help) = help { arg.help(help) } else { arg };
        if let Some(help) = long_help { arg.long_help(help) } else { arg }
    };
    command.mut_args(hinted).mut_subcommands(with_host_hints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::host::{command_line, host_command_line};

    #[test]
    fn every_command_is_listed_once_and_those_of_a_device_last() {
        let mut program = command_line();
        let help = program.render_help().to_string();
        // clap's own command has a line below them.
        for own in program.get_subcommands().filter(|own| own.get_name() != "help") {
            let line = format!("\n  {} ", own.get_name());
            assert_eq!(help.matches(&line).count(), 1, "{}: {help}", own.get_name());
        }
        let place = |name: &str| help.find(&format!("\n  {name} ")).unwrap();
        assert!(place("adb") < place("open") && place("dmtracedump") < help.len(), "{help}");
        #[cfg(target_os = "linux")]
        assert!(place("gate") < help.find(ON_THIS_MACHINE).unwrap() && place("gate") < place("record"));
        let host = host_command_line().render_help().to_string();
        assert!(!host.contains("\n  record ") && !host.contains(ON_THIS_MACHINE), "{host}");
    }

    #[test]
    fn the_help_of_adb_names_commands_of_the_host() {
        let program = command_line();
        let record = program.find_subcommand("adb").unwrap().find_subcommand("record").unwrap();
        let help = record.clone().render_long_help().to_string();
        assert!(help.contains("`tracebridge adb list` shows them"), "{help}");
        assert!(!help.contains("`tracebridge list`"), "{help}");
    }
}
