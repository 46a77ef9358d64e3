//! Two versions of an app on a device, which take turns in being installed.

use std::path::Path;
use std::time::Duration;

use super::delivery::local_error;
use super::device::{COMMAND_TIMEOUT, Device, Privilege, quoted};
use super::error::DeskError;
use crate::file_access;

/// How long the package manager may take to install an app.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(120);

/// The version of the app that is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AppVersion {
    /// The one that was on the device.
    Own,
    /// The file of the host.
    Other,
}

/// Two versions of an app on a device. The one that was there is put back at the end.
pub(super) struct AppVersions<'a> {
    device: &'a Device,
    /// The copy of the device's own version, on the device.
    own: String,
    /// The other version, on the device.
    other: String,
    installed: AppVersion,
}

impl<'a> AppVersions<'a> {
    /// Copies the app's own file on the device, and pushes the other version's file to it.
    pub(super) fn prepare(
        device: &'a Device,
        package: &str,
        apk: &Path,
    ) -> Result<AppVersions<'a>, DeskError> {
        let paths = run(device, &format!("pm path {}", quoted(package)), COMMAND_TIMEOUT)?;
        let installed = installed_file(device.serial(), package, &paths)?;
        let copy = |label: &str| format!("/data/local/tmp/tracebridge-{package}-{label}.apk");
        let versions =
            AppVersions { device, own: copy("own"), other: copy("other"), installed: AppVersion::Own };
        run(device, &format!("cp {} {}", quoted(installed), quoted(&versions.own)), INSTALL_TIMEOUT)?;
        let mut file = file_access::open(apk).map_err(local_error(apk))?;
        device.transport().sync()?.push(&mut file, &versions.other, 0o644, 0)?;
        Ok(versions)
    }

    /// Installs a version, unless it is installed.
    pub(super) fn install(&mut self, version: AppVersion) -> Result<(), DeskError> {
        if self.installed == version {
            return Ok(());
        }
        let file = if version == AppVersion::Own { &self.own } else { &self.other };
        // -d: the older one of two versions may take the newer one's place.
        let answer = run(self.device, &format!("pm install -r -d -t {}", quoted(file)), INSTALL_TIMEOUT)?;
        if !answer.contains("Success") {
            let serial = self.device.serial().to_owned();
            let message = format!("pm install: {}", answer.trim());
            return Err(DeskError::CommandFailed { serial, message });
        }
        self.installed = version;
        Ok(())
    }

    /// Installs the version that was on the device, and removes the copies.
    pub(super) fn put_back(mut self) -> Result<(), DeskError> {
        if let Err(error) = self.install(AppVersion::Own) {
            // The copy is the only one that is left.
            return Err(DeskError::NotPutBack { copy: self.own, source: Box::new(error) });
        }
        let files = format!("rm -f {} {}", quoted(&self.own), quoted(&self.other));
        run(self.device, &files, COMMAND_TIMEOUT).map(drop)
    }
}

/// The only file of an app, of the lines that `pm path` prints for its package.
fn installed_file<'p>(serial: &str, package: &str, paths: &'p str) -> Result<&'p str, DeskError> {
    let paths: Vec<&str> = paths.lines().filter_map(|line| line.trim().strip_prefix("package:")).collect();
    let serial = serial.to_owned();
    let package = package.to_owned();
    match paths[..] {
        [installed] => Ok(installed),
        [] => Err(DeskError::NotInstalled { serial, package }),
        _ => Err(DeskError::SplitApp { serial, package, parts: paths.len() }),
    }
}

/// Runs a script as adb's user, who may install apps. Returns its output.
fn run(device: &Device, script: &str, timeout: Duration) -> Result<String, DeskError> {
    let output = device.run_script(script, Privilege::Shell, timeout)?;
    if output.status != 0 {
        let serial = device.serial().to_owned();
        return Err(DeskError::CommandFailed { serial, message: format!("{script}: {}", output.message()) });
    }
    Ok(output.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_of_one_file_can_be_put_back_and_no_other() {
        let file = |paths| installed_file("S1", "com.a", paths).map_err(|error| error.to_string());
        assert_eq!(file("package:/data/app/a/base.apk\r\n"), Ok("/data/app/a/base.apk"));
        assert_eq!(file(""), Err("S1: com.a is not installed".to_owned()));
        let split = file("package:/a/base.apk\npackage:/a/split_x.apk\n").unwrap_err();
        assert!(split.starts_with("S1: com.a is installed in 2 parts (split APKs)"), "{split}");
    }
}
