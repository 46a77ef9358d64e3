//! Another version of an app, which takes the app's place for its launches.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::remote::{COMMAND_TIME, Device, Privilege, quoted};

/// How long the package manager may take to put an app in place.
const INSTALL_TIME: Duration = Duration::from_secs(120);

/// Which version of the app is in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// The one that was there.
    Own,
    /// The file of this machine.
    Other,
}

/// Two versions of an app on a device. The one that was there is put back at the end.
pub(super) struct OtherVersion<'a> {
    device: &'a Device,
    /// The copies of both versions on the device.
    own: String,
    other: String,
    in_place: Version,
}

impl<'a> OtherVersion<'a> {
    /// Copies the app's own file on the device, and pushes the other version's file to it.
    pub(super) fn prepare(device: &'a Device, package: &str, apk: &Path) -> anyhow::Result<OtherVersion<'a>> {
        let serial = device.serial();
        let paths = run(device, &format!("pm path {}", quoted(package)), COMMAND_TIME)?;
        let paths: Vec<&str> =
            paths.lines().filter_map(|line| line.trim().strip_prefix("package:")).collect();
        let [installed] = paths[..] else {
            match paths.len() {
                0 => bail!("{serial}: {package} is not installed"),
                parts => bail!(
                    "{serial}: {package} is installed in {parts} parts (split APKs), which cannot be put back from \
                     one file: build the other version under another package, and name that with --against"
                ),
            }
        };
        let copy = |what: &str| format!("/data/local/tmp/tracebridge-{package}-{what}.apk");
        let versions =
            OtherVersion { device, own: copy("own"), other: copy("other"), in_place: Version::Own };
        run(device, &format!("cp {} {}", quoted(installed), quoted(&versions.own)), INSTALL_TIME)?;
        let mut file = File::open(apk).with_context(|| apk.display().to_string())?;
        device.transport().sync()?.push(&mut file, &versions.other, 0o644, 0, &mut |_| {})?;
        Ok(versions)
    }

    /// Puts a version in place.
    pub(super) fn install(&mut self, version: Version) -> anyhow::Result<()> {
        if self.in_place == version {
            return Ok(());
        }
        let file = if version == Version::Own { &self.own } else { &self.other };
        // -d: the older one of two versions may take the newer one's place.
        let said = run(self.device, &format!("pm install -r -d -t {}", quoted(file)), INSTALL_TIME)?;
        if !said.contains("Success") {
            bail!("{}: pm install: {}", self.device.serial(), said.trim());
        }
        self.in_place = version;
        Ok(())
    }

    /// Puts the version back that was there, and removes the copies.
    pub(super) fn put_back(mut self) -> anyhow::Result<()> {
        let back = self.install(Version::Own);
        match back {
            // The copy is the only one that is left.
            Err(error) => Err(error.context(format!("the app's own version is in {}", self.own))),
            Ok(()) => {
                let files = format!("rm -f {} {}", quoted(&self.own), quoted(&self.other));
                run(self.device, &files, COMMAND_TIME).map(drop)
            }
        }
    }
}

/// Runs a script as adb's user, who may install apps. Returns what it printed.
fn run(device: &Device, script: &str, patience: Duration) -> anyhow::Result<String> {
    let output = device.run_script(script, Privilege::Shell, patience)?;
    match output.status {
        0 => Ok(output.text()),
        _ => bail!("{}: {script}: {}", device.serial(), output.words()),
    }
}
