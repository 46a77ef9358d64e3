//! Messages of the binary on a device, with the host's commands in place of the device's.

use crate::adb::shown;

/// The device's commands that messages name, and the host's commands that do the same.
const COMMANDS: [(&str, &str); 9] = [
    ("doctor", "adb doctor"),
    ("dump", "adb dump"),
    ("launch", "adb launch"),
    ("list", "adb list"),
    ("mark", "adb mark"),
    ("record", "adb record"),
    ("restore", "adb clean"),
    ("start", "adb start"),
    ("stop", "adb stop"),
];

/// The host's command that does the same as this command of the device.
pub fn host_command(command: &str) -> Option<&'static str> {
    COMMANDS.iter().find(|(device, _)| *device == command).map(|(_, host)| *host)
}

/// A message of a device with the commands that its reader would call: "`tracebridge stop`" is "`tracebridge
/// adb stop`" on the host. One without end is cut.
pub fn host_hints(message: &str) -> String {
    let message = shown(message);
    let mut parts = message.split("`tracebridge ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text += "`tracebridge ";
        let end = part.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(part.len());
        let (command, rest) = part.split_at(end);
        text += host_command(command).unwrap_or(command);
        // `clean` puts everything back.
        text += if command == "restore" { rest.trim_start_matches(" --flight") } else { rest };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_a_device_names_commands_of_the_host() {
        for (device, host) in [
            ("end it with `tracebridge stop`, or take", "end it with `tracebridge adb stop`, or take"),
            ("name a category (`tracebridge list`), -a", "name a category (`tracebridge adb list`), -a"),
            ("try `tracebridge restore` later", "try `tracebridge adb clean` later"),
            ("`tracebridge restore --flight` puts back", "`tracebridge adb clean` puts back"),
            (
                "`tracebridge info` counts, `tracebridge dump` takes",
                "`tracebridge info` counts, `tracebridge adb dump` takes",
            ),
            ("`tracebridge mark --help` lists them", "`tracebridge adb mark --help` lists them"),
            ("tracebridge stop without quotes", "tracebridge stop without quotes"),
        ] {
            assert_eq!(host_hints(device), host);
        }
    }
}
