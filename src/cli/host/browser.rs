//! Opens a page or an address in the user's browser.

use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{env, io};

use anyhow::bail;

use crate::child::{self, ChildKind};
use crate::console::complain;
use crate::markup;
use crate::output_file::{OutputFile, Readers, ScratchDir};

/// The directories of the pages that lead to secret addresses.
static LEADING_PAGES: Mutex<Vec<ScratchDir>> = Mutex::new(Vec::new());

/// How long a browser's command is watched for a failure. A command that runs longer is the browser itself.
const MAX_WAIT_FOR_FAILURE: Duration = Duration::from_secs(3);

/// Opens an address that others must not learn. Every user sees the arguments of a browser, so the browser
/// gets the path of a page that leads to the address, and that this user alone can read.
///
/// # Errors
/// As [`open`], and the system's where the page cannot be written.
pub(super) fn open_secret(address: &str) -> anyhow::Result<()> {
    // The directory of the session is in memory, and no other user can list it.
    let session = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let directory = session.and_then(|dir| ScratchDir::create(&dir).ok());
    let directory = directory.map_or_else(|| ScratchDir::create(&env::temp_dir()), Ok)?;
    let page = directory.path().join("live.html");
    let file = OutputFile::create(&page, Readers::Owner)?;
    file.file().write_all(leading_page(address).as_bytes())?;
    file.commit()?;
    LEADING_PAGES.lock().unwrap_or_else(PoisonError::into_inner).push(directory);
    open(page.as_os_str())
}

/// A page that leads to this address at once.
fn leading_page(address: &str) -> String {
    let address = markup::escape_attribute(address);
    format!(
        "<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer>\
         <meta http-equiv=refresh content=\"0;url={address}\"><title>tracebridge</title>\n"
    )
}

/// Removes the pages that lead to secret addresses, at a command's end.
pub(super) fn remove_leading_pages() {
    LEADING_PAGES.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

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
        let mut command = child::command(program, ChildKind::Independent);
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
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = child::command(program, ChildKind::Independent);
    // It names every browser that it has not found, a line for each.
    command.arg(page).stderr(Stdio::null());
    command
}

/// Windows starts what belongs to a file or an address with a command of its shell.
#[cfg(windows)]
fn system_browser(page: &OsStr) -> Command {
    let mut command = child::command("cmd", ChildKind::Independent);
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
