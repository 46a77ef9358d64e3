//! Opens a page or an address in the user's browser.

use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, io};

use anyhow::bail;

use crate::console::complain;

/// How long a browser's command is watched for a failure. A command that runs longer is the browser itself.
const MAX_WAIT_FOR_FAILURE: Duration = Duration::from_secs(3);

/// Opens `page`, a path or an address, with $BROWSER, or else with the system's own way.
///
/// # Errors
/// If no command could be started that opens it.
pub(super) fn open(page: &OsStr) -> anyhow::Result<()> {
    for mut command in browsers(page) {
        match run(&mut command) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => complain(format_args!("{}: {error}", command.get_program().display())),
        }
    }
    bail!("no browser could be started: open {} in one", page.display())
}

/// The commands that may open a page, the first choice first.
fn browsers(page: &OsStr) -> Vec<Command> {
    let mut commands = Vec::new();
    // A list of commands, in which %s stands for the page. A colon is part of a path on Windows.
    let chosen = env::var("BROWSER").unwrap_or_default();
    for line in chosen.split(if cfg!(windows) { ';' } else { ':' }) {
        let mut words = line.split_whitespace();
        let Some(program) = words.next() else { continue };
        let mut command = Command::new(program);
        for word in words.clone() {
            command.arg(if word == "%s" { page } else { OsStr::new(word) });
        }
        if words.all(|word| word != "%s") {
            command.arg(page);
        }
        commands.push(command);
    }
    commands.push(system_browser(page));
    commands
}

#[cfg(not(windows))]
fn system_browser(page: &OsStr) -> Command {
    let mut command = Command::new(if cfg!(target_os = "macos") { "open" } else { "xdg-open" });
    // It names every browser that it has not found, a line for each.
    command.arg(page).stderr(Stdio::null());
    command
}

/// Windows starts what belongs to a file or an address with a command of its shell.
#[cfg(windows)]
fn system_browser(page: &OsStr) -> Command {
    let mut command = Command::new("cmd");
    // The first text in quotes is the title of a window. The page is in quotes too, so that `&` in its name
    // begins no other command; a name has no quotes in it.
    let mut quoted = std::ffi::OsString::from("\"");
    quoted.push(page);
    quoted.push("\"");
    command.args(["/C", "start", ""]);
    std::os::windows::process::CommandExt::raw_arg(&mut command, quoted);
    command
}

/// Starts a command, and returns whether it has not failed.
fn run(command: &mut Command) -> io::Result<bool> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let give_up = Instant::now() + MAX_WAIT_FOR_FAILURE;
    while Instant::now() < give_up {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(true)
}
