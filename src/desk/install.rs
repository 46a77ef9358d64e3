//! tracebridge's own files on a device: the binary is put there, and all of them are removed.

use std::time::Duration;

use super::device::{BINARY_PATH, Device, Privilege, SESSIONS_DIR, Session};
use super::device_json::{DeviceJson, PushedJson, Recordings};
use super::error::{DeskError, recordings};
use super::host_hints::host_hints;
use super::outcome::{Completeness, DeviceOutcome, DeviceResult};
use super::targets::Targets;
use super::user_interface::UserInterface;

/// How long the device may take to end processes and remove files.
const CLEAN_TIMEOUT: Duration = Duration::from_secs(60);

/// Puts the binary for this ABI, or for the device's own, on devices, unless it is there.
///
/// # Errors
/// [`DeskError`] if the devices cannot be found.
pub fn push(
    abi: Option<&str>,
    targets: &Targets,
    ui: &dyn UserInterface,
) -> Result<Vec<DeviceResult>, DeskError> {
    targets.on_each(ui, |mut target| {
        let installed = target.device.ensure_binary(abi)?;
        let abi = abi.unwrap_or(&target.device.facts.abi);
        let state = if installed.is_new { "pushed" } else { "is there" };
        let text = format!("{BINARY_PATH}: {abi}, {} bytes, {state}\n", installed.bytes);
        let pushed = PushedJson {
            abi: abi.to_owned(),
            path: BINARY_PATH,
            bytes: installed.bytes,
            pushed: installed.is_new,
        };
        let json = DeviceJson { pushed: Some(pushed), ..DeviceJson::default() };
        Ok(DeviceOutcome::complete(text, json))
    })
}

/// Ends the processes of tracebridge on devices, puts the kernel's settings back, and removes tracebridge's
/// files; recordings only with `removes_recordings`.
///
/// # Errors
/// [`DeskError`] if the devices cannot be found.
pub fn clean(
    removes_recordings: bool,
    targets: &Targets,
    ui: &dyn UserInterface,
) -> Result<Vec<DeviceResult>, DeskError> {
    targets.on_each(ui, |target| clean_device(&target.device, removes_recordings))
}

fn clean_device(device: &Device, removes_recordings: bool) -> Result<DeviceOutcome, DeskError> {
    let sessions = Session::list(device)?;
    if !sessions.is_empty() && !removes_recordings {
        let name = |session: &Session, output: &str| format!("{} ({output})", session.id());
        let names = sessions.iter().map(|state| name(&state.session, &state.output)).collect();
        return Err(DeskError::RecordingsLeft { serial: device.serial().to_owned(), names });
    }
    sessions.iter().for_each(|state| state.session.abandon());
    let mut text = String::new();
    if !sessions.is_empty() {
        text += &format!("{} removed\n", recordings(sessions.len()));
    }
    let mut completeness = Completeness::Complete;
    for user in users(device.privilege()) {
        let output = device.run_script(&clean_script(), user, CLEAN_TIMEOUT)?;
        text += &host_hints(&output.text());
        if output.status != 0 {
            completeness = Completeness::Lossy;
            text += &format!("{}\n", output.message());
        }
    }
    if text.is_empty() {
        text = "nothing to remove\n".to_owned();
    }
    let json = DeviceJson {
        recordings: Some(Recordings::Removed(sessions.len())),
        text: Some(text.trim().to_owned()),
        ..DeviceJson::default()
    };
    Ok(DeviceOutcome { completeness, text: text.into(), json })
}

/// The users whose files and saved settings are on the device. Each has saved settings of its own; those of
/// root are put back by root.
fn users(privilege: Privilege) -> Vec<Privilege> {
    if privilege.is_root() { vec![privilege, Privilege::Shell] } else { vec![Privilege::Shell] }
}

/// Ends every process of the binary, has the settings put back, and removes the files, as one user.
fn clean_script() -> String {
    format!(
        "n=0; for e in /proc/[0-9]*/exe; do case $(readlink $e 2>/dev/null) in {BINARY_PATH}*) \
         p=${{e%/exe}}; kill -TERM ${{p#/proc/}} 2>/dev/null && n=$((n+1));; esac; done; \
         if [ $n != 0 ]; then echo \"$n processes ended\"; sleep 2; fi; s=0; \
         if [ -x {BINARY_PATH} ]; then r=$({BINARY_PATH} restore --flight 2>&1) || s=$?; \
         case $r in nothing*) ;; *) echo \"$r\";; esac; fi; \
         if [ $s = 0 ] && [ -e {BINARY_PATH} ]; then echo 'removed: {BINARY_PATH}'; fi; \
         [ $s = 0 ] && rm -rf {SESSIONS_DIR} /data/local/tmp/tracebridge.*.part {BINARY_PATH} 2>/dev/null; \
         rmdir /data/local/tmp/tracebridge-* 2>/dev/null; exit $s"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_cleans_up_before_the_shell_does() {
        assert_eq!(users(Privilege::Shell), [Privilege::Shell]);
        assert_eq!(users(Privilege::AdbdRoot), [Privilege::AdbdRoot, Privilege::Shell]);
    }

    #[test]
    fn recordings_are_counted_in_words() {
        assert_eq!(recordings(1), "1 recording");
        assert_eq!(recordings(2), "2 recordings");
    }
}
