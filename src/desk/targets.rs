//! The devices that a command works on, and the work on all of them at the same time.

use std::any::Any;
use std::collections::HashSet;
use std::env;
use std::path::PathBuf;

use super::device::{Device, check_attached};
use super::error::DeskError;
use super::outcome::DeviceResult;
use super::output_names::OutputName;
use super::user_interface::UserInterface;
use crate::adb::{AdbError, AttachedDevice, Server};
use crate::workers::run_pool;

/// The most devices that are worked on at the same time: all that a shelf of phones holds, so that they
/// record the same moment.
const MAX_DEVICES_AT_ONCE: usize = 64;

/// Selects attached devices.
#[derive(Debug, Clone, Default)]
pub struct Targets {
    /// The devices with these serials. If there are none, the device that ANDROID_SERIAL names, else the only
    /// one that is attached.
    pub serials: Vec<String>,
    /// All attached devices.
    pub all: bool,
    /// Whether adbd is to start anew as root on them.
    pub become_root: bool,
}

/// A device while a command works on it.
pub struct TargetDevice<'a> {
    /// The device.
    pub device: Device,
    /// The names of its outputs.
    pub name: OutputName,
    /// The user of the command.
    pub ui: &'a dyn UserInterface,
}

impl TargetDevice<'_> {
    /// Shows the progress of the work on these files, if the command works on this device alone.
    pub fn show_progress(&self, files: &[PathBuf]) -> Option<Box<dyn Any>> {
        self.name.is_alone().then(|| self.ui.show_progress(files))
    }

    /// Whether the user has asked for the end of the recording.
    pub fn wants_end(&self) -> bool {
        self.ui.wants_end()
    }
}

impl Targets {
    /// Finds the adb server and the devices.
    ///
    /// # Errors
    /// [`DeskError`]. The state of a device that is named is checked when it is opened.
    fn resolve(&self) -> Result<(Server, Vec<String>), DeskError> {
        let server = Server::from_environment()?;
        server.ensure_running()?;
        let named = if self.all { Vec::new() } else { self.named_serials(env::var("ANDROID_SERIAL").ok()) };
        if named.iter().any(|serial| serial.is_empty() || serial.contains(char::is_whitespace)) {
            return Err(DeskError::Request("--serial: a serial is empty, or has white space in it".into()));
        }
        for serial in &named {
            check_attached(&server, serial)?;
        }
        if !named.is_empty() {
            return Ok((server, named));
        }
        let attached = server.devices()?;
        let serials: Vec<String> = if self.all {
            attached.iter().map(|device| device.serial.clone()).collect()
        } else {
            vec![only_device(&attached)?]
        };
        if serials.is_empty() { Err(AdbError::NoDevice.into()) } else { Ok((server, serials)) }
    }

    /// The serials that are named, each once; `preset` is that of the environment.
    fn named_serials(&self, preset: Option<String>) -> Vec<String> {
        let mut serials = self.serials.clone();
        if serials.is_empty() {
            serials.extend(preset.filter(|serial| !serial.is_empty()));
        }
        let mut seen = HashSet::new();
        serials.retain(|serial| seen.insert(serial.clone()));
        serials
    }

    /// Does the work on each device, on several at the same time. One that fails does not end the others. The
    /// results are in the order of the devices.
    ///
    /// # Errors
    /// [`DeskError`] if the devices cannot be found.
    pub fn on_each<T: Send>(
        &self,
        ui: &dyn UserInterface,
        work: impl Fn(TargetDevice<'_>) -> Result<T, DeskError> + Sync,
    ) -> Result<Vec<DeviceResult<T>>, DeskError> {
        let (server, serials) = self.resolve()?;
        let names = OutputName::for_devices(&serials);
        let work_on = |serial: &String, name: &OutputName| {
            let mut device = Device::open(&server, serial)?;
            if self.become_root {
                device.become_root()?;
            }
            work(TargetDevice { device, name: name.clone(), ui })
        };
        let devices: Vec<_> = serials.iter().zip(&names).collect();
        Ok(run_pool(&devices, MAX_DEVICES_AT_ONCE, |(serial, name)| DeviceResult {
            serial: (*serial).clone(),
            result: work_on(serial, name),
        }))
    }
}

/// The only usable device, or the only one at all, whose state is the error.
fn only_device(attached: &[AttachedDevice]) -> Result<String, AdbError> {
    let serials = |devices: &[&AttachedDevice]| devices.iter().map(|d| d.serial.clone()).collect();
    let usable: Vec<&AttachedDevice> = attached.iter().filter(|device| device.is_usable()).collect();
    match (usable.as_slice(), attached) {
        ([only], _) => Ok(only.serial.clone()),
        ([], []) => Err(AdbError::NoDevice),
        ([], [first, ..]) => first.check().map(|()| first.serial.clone()),
        (several, _) => Err(AdbError::SeveralDevices { serials: serials(several) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attached(states: &[(&str, &str)]) -> Vec<AttachedDevice> {
        let device = |(serial, state): &(&str, &str)| AttachedDevice {
            serial: (*serial).to_owned(),
            state: (*state).to_owned(),
            model: None,
        };
        states.iter().map(device).collect()
    }

    #[test]
    fn a_serial_counts_once_however_often_it_is_named() {
        let targets = Targets { serials: ["A", "B", "A"].map(str::to_owned).to_vec(), ..Targets::default() };
        assert_eq!(targets.named_serials(Some("C".to_owned())), ["A", "B"]);
        assert_eq!(Targets::default().named_serials(Some("C".to_owned())), ["C"]);
        assert!(Targets::default().named_serials(Some(String::new())).is_empty());
    }

    #[test]
    fn the_only_usable_device_is_meant() {
        let only = |states: &[(&str, &str)]| only_device(&attached(states)).map_err(|e| e.to_string());
        assert_eq!(only(&[("S1", "offline"), ("S2", "device")]), Ok("S2".to_owned()));
        assert!(only(&[]).unwrap_err().starts_with("no device: attach one"));
        assert!(only(&[("S1", "offline")]).unwrap_err().starts_with("S1: offline"));
        let several = only(&[("S1", "device"), ("S2", "device"), ("S3", "offline")]).unwrap_err();
        assert!(several.ends_with("--all: S1, S2"), "{several}");
    }
}
