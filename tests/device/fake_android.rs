//! Stand-ins for Android's own programs, on a device that has no Android framework: shell scripts of the same
//! names that have the real programs' interfaces.

use std::path::{Path, PathBuf};

use crate::adb::{DIR, Device};

/// Stand-ins in `/system/bin`, removed on drop.
pub struct FakeAndroid<'a> {
    device: &'a Device,
    names: &'static [&'static str],
}

impl<'a> FakeAndroid<'a> {
    /// Installs the stand-ins of these names, with these properties set. On a device that has Android's own
    /// programs the test is skipped, with a message: `None`.
    pub fn install(
        device: &'a Device,
        names: &'static [&'static str],
        properties: &[(&str, &str)],
    ) -> Option<FakeAndroid<'a>> {
        if device.shell("test -e /system/bin/app_process").status.success() {
            support::skip("stand-ins", "the device has Android's own programs");
            return None;
        }
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/device/fake_android");
        let files: Vec<PathBuf> = names.iter().map(|name| dir.join(name)).collect();
        device.push_all(&files, "/system/bin/");
        let mut script = format!(
            "umask 0 && cd /system/bin && chmod 755 {} && rm -rf {DIR}/properties && mkdir -m 777 {DIR}/properties",
            names.join(" ")
        );
        for (name, value) in properties {
            script.push_str(&format!(" && printf %s '{value}' >{DIR}/properties/{name}"));
        }
        device.run(&script);
        Some(FakeAndroid { device, names })
    }

    /// The properties that were set since this was last asked, in order and without the prefix
    /// `debug.atrace.`.
    pub fn log(&self) -> Vec<String> {
        let log = self.device.run(&format!("cd {DIR}/properties; touch log; cat log; rm log"));
        log.lines().map(|line| line.replace("debug.atrace.", "")).collect()
    }

    /// The calls of services since this was last asked, sorted.
    pub fn calls(&self) -> Vec<String> {
        let calls = self.device.run(&format!("cd {DIR}/properties; touch calls; sort calls; rm calls"));
        calls.lines().map(str::to_owned).collect()
    }
}

impl Drop for FakeAndroid<'_> {
    fn drop(&mut self) {
        let files: Vec<String> = self.names.iter().map(|name| format!("/system/bin/{name}")).collect();
        self.device.shell(&format!("rm -rf {} {DIR}/properties", files.join(" ")));
    }
}
