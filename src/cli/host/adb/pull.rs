//! `adb pull`: files from a device, and what recordings have left there.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use serde_json::json;

use super::finish::free_output;
use super::outcome::{self, Outcome};
use super::recorded::fetch;
use super::target::{OutputName, TargetArgs};
use crate::cli::Exit;
use crate::cli::exit::{UsageError, message};
use crate::cli::host::progress_bar::ProgressBar;
use crate::cli::host::{interrupt, size};
use crate::export::OutputFormat;
use crate::remote::{COMMAND_TIME, Device, Session, SessionState, Verified, quoted};

/// Pull files from a device, or fetch what recordings have left there
///
/// A pulled file is compared with the device's by its length and its SHA-256, and removed on the device only
/// after that. Without FILE, lists the recordings that are on the device; --resume fetches and converts them
/// as `adb record` would have, those that are still running when they have ended. It replaces no file: where
/// one has the name of a recording, the recording gets a number (`trace-2.dat`).
#[derive(Debug, Args)]
#[command(after_help = "\
  tracebridge adb pull /data/local/tmp/x.dat --to out
  tracebridge adb pull                  (which recordings are on the device?)
  tracebridge adb pull --resume         (after a lost connection)")]
pub struct PullArgs {
    /// A path on the device; a name without a slash is in /data/local/tmp
    #[arg(value_name = "FILE", conflicts_with = "resume")]
    files: Vec<String>,
    /// Put the files into this directory, which is made if it is missing
    #[arg(long, value_name = "DIR", default_value = ".")]
    to: PathBuf,
    /// Do not remove the files on the device
    #[arg(long)]
    keep: bool,
    /// Fetch what recordings have left on the device, under the names that they were to have
    #[arg(long)]
    resume: bool,
    /// With --resume, replace files here that have the names of recordings
    #[arg(long, requires = "resume")]
    force: bool,
    #[command(flatten)]
    target: TargetArgs,
}

/// Runs `adb pull`.
pub fn run(args: &PullArgs) -> anyhow::Result<Exit> {
    if args.resume {
        interrupt::hold_first();
    }
    let results = args.target.on_each(|device, name| match (args.resume, args.files.as_slice()) {
        (true, _) => resume(args, &device, name),
        (false, []) => list(&device),
        (false, files) => pull(args, files, &device, name),
    })?;
    outcome::print(results, args.target.json)
}

fn pull(args: &PullArgs, files: &[String], device: &Device, name: &OutputName) -> anyhow::Result<Outcome> {
    make_dir(&args.to)?;
    let (mut text, mut list) = (String::new(), Vec::new());
    for file in files {
        let remote = if file.contains('/') { file.clone() } else { format!("/data/local/tmp/{file}") };
        let local = name.of(&args.to.join(local_name(&remote)?));
        let bar = name.is_alone().then(|| ProgressBar::of(std::slice::from_ref(&local)));
        let pulled = device.pull(&remote, &local, device.privilege())?;
        drop(bar);
        if !args.keep {
            let removed = format!("rm -f {}", quoted(&remote));
            let removed = device.run_script(&removed, device.privilege(), COMMAND_TIME)?;
            if removed.status != 0 {
                text += &format!("{remote} is still on the device: {}\n", removed.words());
            }
        }
        let how = if pulled.verified == Verified::Size { ", compared by its length alone" } else { "" };
        text += &format!("{} ({}{how})\n", local.display(), size(pulled.bytes));
        let verified = if pulled.verified == Verified::Size { "size" } else { "sha256" };
        list.push(json!({ "path": local.to_string_lossy(), "bytes": pulled.bytes, "verified": verified }));
    }
    Ok(Outcome { exit: Exit::Complete, text, json: json!({ "files": list }) })
}

/// The name here of a file of a device. A name from a device may not lead elsewhere.
fn local_name(remote: &str) -> Result<&str, UsageError> {
    // On Windows a backslash would lead into a directory.
    let name = remote.rsplit('/').next().unwrap_or_default();
    let name = if cfg!(windows) { name.rsplit(['\\', ':']).next().unwrap_or_default() } else { name };
    match name {
        "" | "." | ".." => Err(UsageError(format!("{remote}: names no file").into())),
        name => Ok(name),
    }
}

fn make_dir(dir: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())
}

fn list(device: &Device) -> anyhow::Result<Outcome> {
    let sessions = Session::list(device)?;
    let state = |s: &SessionState| if s.is_running { "running" } else { "ended" };
    let mut text: String =
        sessions.iter().map(|s| format!("{}  {}  {}\n", s.session.id(), state(s), s.output)).collect();
    text += match sessions.as_slice() {
        [] => "no recording has left anything on the device\n",
        _ => "fetch them with --resume, or remove them with `tracebridge adb clean --force`\n",
    };
    let list: Vec<_> = sessions
        .iter()
        .map(|s| json!({ "id": s.session.id(), "state": state(s), "output": s.output }))
        .collect();
    Ok(Outcome { exit: Exit::Complete, text, json: json!({ "recordings": list }) })
}

fn resume(args: &PullArgs, device: &Device, name: &OutputName) -> anyhow::Result<Outcome> {
    make_dir(&args.to)?;
    let sessions = Session::list(device)?;
    if sessions.is_empty() {
        let text = "no recording has left anything on the device\n".to_owned();
        return Ok(Outcome { exit: Exit::Complete, text, json: json!({ "recordings": [] }) });
    }
    let mut exits = Vec::new();
    let mut text = String::new();
    let mut list = Vec::new();
    for state in sessions {
        // One that cannot be fetched keeps no other from being fetched.
        match fetch_one(args, device, name, &state) {
            Ok(outcome) => {
                exits.push(outcome.exit);
                text += &outcome.text;
                list.push(outcome.json);
            }
            Err(error) => {
                let error = message(&error);
                let id = state.session.id();
                exits.push(Exit::Failed);
                text += &format!("{id} ({}) is still on the device: {error}\n", state.output);
                list.push(json!({ "id": id, "name": state.output, "error": error }));
            }
        }
    }
    Ok(Outcome { exit: outcome::worst(&exits), text, json: json!({ "recordings": list }) })
}

/// Fetches a recording, and removes it on the device when its output here is whole.
fn fetch_one(
    args: &PullArgs,
    device: &Device,
    name: &OutputName,
    SessionState { session, output, .. }: &SessionState,
) -> anyhow::Result<Outcome> {
    let ended = session.wait(&interrupt::has_come)?;
    let wanted = args.to.join(local_name(output).unwrap_or("trace.dat"));
    let wanted = if OutputFormat::of_path(&wanted).is_some() { wanted } else { wanted.with_extension("dat") };
    let wanted = name.of(&wanted);
    let output = if args.force { wanted.clone() } else { free_output(&ended.captures(session), &wanted) };
    let (mut outcome, _) = fetch(device, session, ended, &output, name.is_alone())?;
    if output != wanted {
        outcome.text += &format!("{} is another file: it was left alone\n", wanted.display());
    }
    if !args.keep {
        session.remove()?;
    }
    Ok(outcome)
}
