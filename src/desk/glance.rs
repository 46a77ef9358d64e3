//! A glance at adb for somebody who has asked for nothing yet: no server is started, and no device is asked.

use std::time::Duration;

use super::device::printable_text;
use crate::adb::{AdbError, Server, is_adb_there};

/// The state of adb on this computer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdbGlance {
    /// No program `adb` is on PATH or in an SDK, and no server runs.
    NotInstalled,
    /// The program is there, and no server runs that would know devices.
    NoServer,
    /// Why the server does not tell its devices.
    Unclear(String),
    /// The devices that the server knows.
    Devices(Vec<SeenDevice>),
}

/// A device as the adb server names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenDevice {
    /// Its serial, as it is.
    pub serial: String,
    /// The model's name, or the serial where the server knows none; without control characters.
    pub name: String,
    /// Why it cannot be used, in the server's word: `unauthorized`. `None` if it can.
    pub problem: Option<String>,
}

/// Looks at adb. The server's answer may take this long.
pub fn glance_at_adb(timeout: Duration) -> AdbGlance {
    let devices = Server::from_environment().and_then(|server| server.devices_if_running(timeout));
    match devices {
        Ok(devices) => AdbGlance::Devices(
            devices
                .into_iter()
                .map(|device| SeenDevice {
                    name: printable_text(device.model.as_deref().unwrap_or(&device.serial)),
                    problem: (!device.is_usable()).then(|| printable_text(&device.state)),
                    serial: device.serial,
                })
                .collect(),
        ),
        Err(AdbError::NoServer { .. }) if is_adb_there() => AdbGlance::NoServer,
        Err(AdbError::NoServer { .. }) => AdbGlance::NotInstalled,
        Err(error) => AdbGlance::Unclear(error.to_string()),
    }
}
