//! The server's list of devices.

use super::error::AdbError;

/// A device that the server knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedDevice {
    /// The name by which the server knows it: a serial number, or HOST:PORT.
    pub serial: String,
    /// `device` if it can be used; `offline`, `unauthorized`, `recovery`, `no permissions (…)`.
    pub state: String,
    /// The model's name, where the server knows it.
    pub model: Option<String>,
}

impl AttachedDevice {
    /// Parses the server's answer to `host:devices-l`: a line for each device.
    pub(super) fn parse_list(text: &str) -> Vec<AttachedDevice> {
        text.lines().filter_map(AttachedDevice::parse).collect()
    }

    /// Parses `SERIAL  STATE [KEY:VALUE…]`. The state `no permissions (…); see […]` is several words.
    fn parse(line: &str) -> Option<AttachedDevice> {
        let (serial, rest) = line.trim().split_once(char::is_whitespace)?;
        let rest = rest.trim();
        let state = if rest.starts_with("no permissions") {
            rest.find("] ").map_or(rest, |end| &rest[..=end])
        } else {
            rest.split_whitespace().next()?
        };
        let model = rest.split_whitespace().find_map(|word| word.strip_prefix("model:"));
        Some(AttachedDevice {
            serial: serial.to_owned(),
            state: state.to_owned(),
            model: model.map(|model| model.replace('_', " ")),
        })
    }

    /// Whether commands can run on the device.
    pub fn is_usable(&self) -> bool {
        self.state == "device"
    }

    /// Fails with the reason and a hint if the device cannot be used.
    ///
    /// # Errors
    /// The error of the device's state.
    pub fn check(&self) -> Result<(), AdbError> {
        let serial = self.serial.clone();
        let state = self.state.clone();
        match self.state.as_str() {
            "device" => Ok(()),
            "unauthorized" | "authorizing" => Err(AdbError::Unauthorized { serial }),
            "offline" | "connecting" | "detached" => Err(AdbError::Offline { serial }),
            text if text.starts_with("no permissions") => Err(AdbError::NoPermissions { serial, state }),
            _ => Err(AdbError::NotBooted { serial, state }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_devices_is_taken_apart_whatever_their_states() {
        let list = AttachedDevice::parse_list(
            "emulator-5554          device product:sdk model:Pixel_3a device:x transport_id:1\n\
             0123 unauthorized usb:1-2 transport_id:3\n\
             ???? no permissions (user in plugdev group; are your udev rules wrong?); see [http://x/y] usb:1-1\n\
             127.0.0.1:5555 offline\n\ngarbage\n",
        );
        let states: Vec<_> = list.iter().map(|d| (d.serial.as_str(), d.state.as_str())).collect();
        assert_eq!(
            states,
            [
                ("emulator-5554", "device"),
                ("0123", "unauthorized"),
                (
                    "????",
                    "no permissions (user in plugdev group; are your udev rules wrong?); see [http://x/y]"
                ),
                ("127.0.0.1:5555", "offline"),
            ]
        );
        assert_eq!(list[0].model.as_deref(), Some("Pixel 3a"));
        assert!(list[0].check().is_ok());
        assert!(matches!(list[1].check(), Err(AdbError::Unauthorized { .. })));
        assert!(matches!(list[2].check(), Err(AdbError::NoPermissions { .. })));
        assert!(matches!(list[3].check(), Err(AdbError::Offline { .. })));
    }
}
