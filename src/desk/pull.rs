//! Files that are pulled from a device, and recordings that are still on it.

use std::fs;
use std::path::{Path, PathBuf};

use super::delivery::local_error;
use super::device::{COMMAND_TIMEOUT, Session, SessionState, Verification, quoted};
use super::device_json::{DeviceJson, FetchedFile, RecordingOnDevice, Recordings};
use super::error::DeskError;
use super::outcome::{Completeness, DeviceOutcome, DeviceResult, LineKind};
use super::output_names::free_output;
use super::recording::fetch;
use super::targets::{TargetDevice, Targets};
use super::user_interface::UserInterface;
use crate::export::OutputFormat;
use crate::text::byte_size;

/// The directory of a device's file that is named without one.
const DEFAULT_DIR: &str = "/data/local/tmp";

/// Where files and recordings go, and whether they stay on the device.
#[derive(Debug, Clone)]
pub struct PullRequest {
    /// The directory for the files, which is made if it is missing.
    pub directory: PathBuf,
    /// Whether the files stay on the device.
    pub keep: bool,
    /// Whether recordings replace files of their names.
    pub replace: bool,
}

/// Pulls files from devices.
///
/// # Errors
/// [`DeskError`] if the devices cannot be found.
pub fn pull(
    request: &PullRequest,
    files: &[String],
    targets: &Targets,
    ui: &dyn UserInterface,
) -> Result<Vec<DeviceResult>, DeskError> {
    targets.on_each(ui, |target| pull_files(request, files, &target))
}

/// Lists the recordings that are on devices.
///
/// # Errors
/// [`DeskError`] if the devices cannot be found.
pub fn list_recordings(targets: &Targets, ui: &dyn UserInterface) -> Result<Vec<DeviceResult>, DeskError> {
    targets.on_each(ui, |target| Ok(list_outcome(&Session::list(&target.device)?)))
}

/// Fetches the recordings that are on devices, those that still run when they have ended.
///
/// # Errors
/// [`DeskError`] if the devices cannot be found.
pub fn resume(
    request: &PullRequest,
    targets: &Targets,
    ui: &dyn UserInterface,
) -> Result<Vec<DeviceResult>, DeskError> {
    targets.on_each(ui, |target| fetch_all(request, &target))
}

fn pull_files(
    request: &PullRequest,
    files: &[String],
    target: &TargetDevice<'_>,
) -> Result<DeviceOutcome, DeskError> {
    let PullRequest { directory, keep, .. } = request;
    let device = &target.device;
    fs::create_dir_all(directory).map_err(local_error(directory))?;
    let mut text = String::new();
    let mut list = Vec::new();
    for file in files {
        let remote = if file.contains('/') { file.clone() } else { format!("{DEFAULT_DIR}/{file}") };
        let local = target.name.output(&directory.join(file_name(&remote)?));
        let progress = target.show_progress(std::slice::from_ref(&local));
        let pulled = device.pull(&remote, &local, device.privilege())?;
        drop(progress);
        if !keep {
            let script = format!("rm -f {}", quoted(&remote));
            let removed = device.run_script(&script, device.privilege(), COMMAND_TIMEOUT)?;
            if removed.status != 0 {
                text += &format!("{remote} is still on the device: {}\n", removed.message());
            }
        }
        let is_weak = pulled.verification == Verification::Size;
        let comparison = if is_weak { ", compared by its length alone" } else { "" };
        text += &format!("{} ({}{comparison})\n", local.display(), byte_size(pulled.bytes));
        list.push(FetchedFile {
            path: Some(local.to_string_lossy().into_owned()),
            bytes: Some(pulled.bytes),
            verified: Some(pulled.verification),
            ..FetchedFile::default()
        });
    }
    Ok(DeviceOutcome::complete(text, DeviceJson { files: Some(list), ..DeviceJson::default() }))
}

/// The name on the host for a file of a device. A name from a device must not lead to another directory.
pub(super) fn file_name(remote: &str) -> Result<&str, DeskError> {
    // On Windows a backslash would lead into a directory.
    let name = remote.rsplit('/').next().unwrap_or_default();
    let name = if cfg!(windows) { name.rsplit(['\\', ':']).next().unwrap_or_default() } else { name };
    match name {
        "" | "." | ".." => Err(DeskError::Request(format!("{remote}: names no file").into())),
        name => Ok(name),
    }
}

/// The outcome that lists these recordings.
fn list_outcome(sessions: &[SessionState]) -> DeviceOutcome {
    let state = |session: &SessionState| if session.is_running { "running" } else { "ended" };
    let line = |s: &SessionState| format!("{}  {}  {}\n", s.session.id(), state(s), s.output);
    let mut text: String = sessions.iter().map(line).collect();
    text += if sessions.is_empty() {
        "no recording has left anything on the device\n"
    } else {
        "fetch them with --resume, or remove them with `tracebridge adb clean --force`\n"
    };
    let left = |s: &SessionState| RecordingOnDevice::Left {
        id: s.session.id().to_owned(),
        state: state(s),
        output: s.output.clone(),
    };
    DeviceOutcome::complete(text, recordings(sessions.iter().map(left).collect()))
}

/// Fetches all recordings of a device. One that cannot be fetched keeps no other from being fetched.
fn fetch_all(request: &PullRequest, target: &TargetDevice<'_>) -> Result<DeviceOutcome, DeskError> {
    fs::create_dir_all(&request.directory).map_err(local_error(&request.directory))?;
    let sessions = Session::list(&target.device)?;
    if sessions.is_empty() {
        return Ok(list_outcome(&sessions));
    }
    let mut completeness = Completeness::Complete;
    let mut text = String::new();
    let mut list = Vec::new();
    for state in sessions {
        match fetch_one(request, target, &state) {
            Ok(outcome) => {
                completeness = completeness.max(outcome.completeness);
                text += &outcome.text.to_string();
                list.push(RecordingOnDevice::Fetched(Box::new(outcome.json)));
            }
            Err(error) => {
                let error = error.to_string();
                let id = state.session.id();
                completeness = Completeness::Failed;
                text += &format!("{id} ({}) is still on the device: {error}\n", state.output);
                let id = id.to_owned();
                list.push(RecordingOnDevice::NotFetched { id, name: state.output, error });
            }
        }
    }
    Ok(DeviceOutcome { completeness, text: text.into(), json: recordings(list) })
}

fn recordings(list: Vec<RecordingOnDevice>) -> DeviceJson {
    DeviceJson { recordings: Some(Recordings::List(list)), ..DeviceJson::default() }
}

/// Fetches a recording, and removes it on the device when its output on the host is whole.
fn fetch_one(
    request: &PullRequest,
    target: &TargetDevice<'_>,
    state: &SessionState,
) -> Result<DeviceOutcome, DeskError> {
    let session = &state.session;
    let end = session.wait(&|| target.wants_end())?;
    let wanted = target.name.output(&recording_output(&request.directory, &state.output));
    let output = if request.replace { wanted.clone() } else { free_output(&end.captures(session), &wanted) };
    let (mut outcome, _) = fetch(target, session, end, &output)?;
    if output != wanted {
        let kept = format!("{} is another file: it was left alone", wanted.display());
        outcome.text.push(LineKind::Note, &kept);
    }
    if !request.keep {
        session.remove()?;
    }
    Ok(outcome)
}

/// The output for a recording that was to have the name `name`, which comes from the device.
fn recording_output(directory: &Path, name: &str) -> PathBuf {
    let output = directory.join(file_name(name).unwrap_or("trace.dat"));
    if OutputFormat::of_path(&output).is_some() { output } else { output.with_extension("dat") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_from_a_device_leads_to_no_other_directory() {
        assert_eq!(file_name("/data/local/tmp/x.dat").unwrap(), "x.dat");
        for remote in ["/data/..", "x/.", "/data/local/tmp/", ""] {
            assert!(file_name(remote).unwrap_err().is_usage(), "{remote}");
        }
        let output = |name| recording_output(Path::new("out"), name).display().to_string();
        assert_eq!(output("x.pftrace"), "out/x.pftrace");
        assert_eq!(output("../../x.pftrace"), "out/x.pftrace");
        assert_eq!(output(".."), "out/trace.dat");
        // What no format writes is kept as a capture.
        assert_eq!(output("x.sh"), "out/x.dat");
    }

    #[test]
    fn without_recordings_the_list_says_so() {
        let outcome = list_outcome(&[]);
        assert_eq!(outcome.text.to_string(), "no recording has left anything on the device\n");
        assert_eq!(outcome.json, recordings(Vec::new()));
    }
}
