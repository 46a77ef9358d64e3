//! The errors of the connection to a device, each with a hint.

use std::io;

/// Why the adb server or a device refused or failed. `action` is the action in a few words (`reading from
/// emulator-5554`).
#[derive(Debug, thiserror::Error)]
pub enum AdbError {
    /// There is no server, and no `adb` that could start one.
    #[error(
        "no adb: install Android's platform-tools and put adb on PATH, or name the SDK in ANDROID_HOME \
         (no adb server answers at {address})"
    )]
    NotInstalled {
        /// The address at which no server answers.
        address: String,
    },
    /// An environment variable cannot be understood.
    #[error("{variable}={value}: {rule}")]
    BadVariable {
        /// The environment variable's name.
        variable: &'static str,
        /// Its value.
        value: String,
        /// The rule that the value breaks.
        rule: &'static str,
    },
    /// Nothing answers at the server's address.
    #[error("no adb server answers at {address}: {source}")]
    NoServer {
        /// The server's address.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// `adb start-server` failed.
    #[error("{adb} start-server did not start an adb server at {address}: {reason}")]
    ServerNotStarted {
        /// The program.
        adb: String,
        /// The server's address.
        address: String,
        /// The program's own words, or the system's.
        reason: String,
    },
    /// Something else than an adb server answers, or the server's answer makes no sense.
    #[error("{action}: {reason}: not adb's protocol")]
    Protocol {
        /// The action that failed.
        action: String,
        /// The bytes or numbers that make no sense.
        reason: String,
    },
    /// No device is attached.
    #[error("no device: attach one and permit USB debugging on it, or `adb connect HOST:PORT`")]
    NoDevice,
    /// Several devices are attached, and none was chosen.
    #[error("several devices: choose with --serial S[,S…] or --all: {}", .serials.join(", "))]
    SeveralDevices {
        /// Their serials.
        serials: Vec<String>,
    },
    /// The device is not attached.
    #[error("no device {serial} (attached: {})", list(.attached))]
    NoSuchDevice {
        /// The serial that was asked for.
        serial: String,
        /// Those that are attached.
        attached: Vec<String>,
    },
    /// The user has not permitted debugging from this machine.
    #[error(
        "{serial}: unauthorized: unlock the device and accept the dialogue \"Allow USB debugging?\" (if none \
         appears, attach it anew)"
    )]
    Unauthorized {
        /// The device.
        serial: String,
    },
    /// The device is known and does not answer.
    #[error("{serial}: offline: attach it anew, or restart the device (`adb reconnect offline` may do)")]
    Offline {
        /// The device.
        serial: String,
    },
    /// The system does not permit the server to open the USB device.
    #[error("{serial}: no permission to open the USB device: {state}")]
    NoPermissions {
        /// The device.
        serial: String,
        /// The server's words.
        state: String,
    },
    /// The device is in a state that has no shell.
    #[error("{serial}: is in the state \"{state}\": boot Android on it")]
    NotBooted {
        /// The device.
        serial: String,
        /// The state's name.
        state: String,
    },
    /// The connection ended in the middle.
    #[error("{action}: the connection is lost")]
    ConnectionLost {
        /// The action that failed.
        action: String,
    },
    /// Nothing arrived for too long.
    #[error("{action}: nothing happened for {seconds} s: is the device awake and its cable good?")]
    Stalled {
        /// The action that failed.
        action: String,
        /// The time that was waited, seconds.
        seconds: u64,
    },
    /// A file comes, and so slowly that it would never end.
    #[error("{action}: only {bytes} bytes came within {seconds} s: is the device awake and its cable good?")]
    TooSlow {
        /// The action that failed.
        action: String,
        /// The bytes that came.
        bytes: u64,
        /// The time in which they came, seconds.
        seconds: u64,
    },
    /// A command went on for too long, and was never silent.
    #[error("{action}: it does not end: given up after {seconds} s")]
    NoEnd {
        /// The action that failed.
        action: String,
        /// The time that was waited, seconds.
        seconds: u64,
    },
    /// The server or the device refused, in its own words.
    #[error("{action}: adb says: {text}")]
    Refused {
        /// The action that was refused.
        action: String,
        /// adb's own text.
        text: String,
    },
    /// A file of this machine could not be read or written while it was transferred.
    #[error("{action}: {source}")]
    Local {
        /// The action that failed.
        action: String,
        /// The system's error.
        source: io::Error,
    },
}

impl AdbError {
    /// Whether the device may come back by itself: the connection is lost, or the device has gone offline.
    pub fn is_lost_connection(&self) -> bool {
        matches!(
            self,
            AdbError::ConnectionLost { .. }
                | AdbError::Stalled { .. }
                | AdbError::Offline { .. }
                | AdbError::NoSuchDevice { .. }
                | AdbError::NoDevice
                | AdbError::NoServer { .. }
        )
    }
}

fn list(serials: &[String]) -> String {
    if serials.is_empty() { "none".to_owned() } else { serials.join(", ") }
}
