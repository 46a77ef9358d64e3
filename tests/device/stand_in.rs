//! Stand-ins for Android's own programs, on a device that has no framework: shell scripts of the same names that speak
//! the real ones' interfaces.

use std::path::Path;

use crate::adb::{DIR, Device};
use crate::support;

/// Stand-ins in `/system/bin`, removed on drop.
pub struct StandIns<'a> {
    device: &'a Device,
    names: &'static [&'static str],
}

impl<'a> StandIns<'a> {
    /// Puts these there, with no property set; `None`, and said, on a device that has Android's own.
    pub fn install(device: &'a Device, names: &'static [&'static str]) -> Option<StandIns<'a>> {
        if device.run("ls /system/bin").lines().any(|program| program == "app_process") {
            support::skip("stand-ins", "the device has Android's own programs");
            return None;
        }
        for name in names {
            let file = format!("tests/device/stand_in_{name}");
            device.push(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file), &format!("/system/bin/{name}"));
            device.run(&format!("chmod 755 /system/bin/{name}"));
        }
        device.run(&format!("rm -rf {DIR}/properties; mkdir -m 777 {DIR}/properties"));
        Some(StandIns { device, names })
    }

    /// Gives a property a value, as if it had always had it.
    pub fn set(&self, name: &str, value: &str) {
        self.device.run(&format!("printf %s '{value}' >{DIR}/properties/{name}"));
    }

    /// What was set since the last time this was asked, `debug.atrace.` left out; in order.
    pub fn log(&self) -> Vec<String> {
        let log = self.device.run(&format!("cd {DIR}/properties; touch log; cat log; rm log"));
        log.lines().map(|line| line.replace("debug.atrace.", "")).collect()
    }

    /// The calls of services.
    pub fn calls(&self) -> Vec<String> {
        let calls = self.device.run(&format!("cd {DIR}/properties; touch calls; sort calls; rm calls"));
        calls.lines().map(str::to_owned).collect()
    }
}

impl Drop for StandIns<'_> {
    fn drop(&mut self) {
        let files: Vec<String> = self.names.iter().map(|name| format!("/system/bin/{name}")).collect();
        self.device.shell(&format!("rm -rf {} {DIR}/properties", files.join(" ")));
    }
}
