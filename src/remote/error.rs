//! What can go wrong on the way from a device to a file here.

use std::io;

use crate::adb::AdbError;

/// Why something with a device failed.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The connection, or the device's state.
    #[error(transparent)]
    Adb(#[from] AdbError),
    /// Nothing tells for which processor the device's binary must be.
    #[error(
        "{serial}: unknown machine \"{machine}\": there are binaries for arm64-v8a, armeabi-v7a, x86_64 and x86"
    )]
    UnknownAbi {
        /// The device.
        serial: String,
        /// What `uname -m` says.
        machine: String,
    },
    /// There is no binary to push.
    #[error(
        "no tracebridge binary for {abi}: build it with scripts/build-android --abi {abi}, or name the directory \
         that holds {abi}/tracebridge in TRACEBRIDGE_DEVICE_BINARIES (looked in: {looked_in})"
    )]
    NoBinary {
        /// The device's ABI.
        abi: String,
        /// The directories that were looked in.
        looked_in: String,
    },
    /// A file of this machine cannot be read or written.
    #[error("{path}: {source}")]
    Local {
        /// The file's path here.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// A command on the device failed.
    #[error("{serial}: {what}: {why}")]
    Failed {
        /// The device.
        serial: String,
        /// What was going on.
        what: String,
        /// The command's own words, or its status.
        why: String,
    },
    /// A transferred file is not what was sent.
    #[error("{serial}: {path}: {why}; {kept}")]
    Damaged {
        /// The device.
        serial: String,
        /// The file's path on the device.
        path: String,
        /// What differs.
        why: String,
        /// What is kept.
        kept: &'static str,
    },
    /// The device closes each connection at once while a recording goes on.
    #[error(
        "{serial}: the device closed the connection {times} times as soon as it was there: given up. The recording \
         goes on on the device. Fetch it with: tracebridge adb pull --resume --serial {serial}"
    )]
    NotKept {
        /// The device.
        serial: String,
        /// How often it closed the connection.
        times: u32,
    },
    /// The connection was lost while a recording goes on.
    #[error(
        "{serial}: the connection is lost, and the device did not come back within {seconds} s: the recording goes \
         on on the device. Fetch it with: tracebridge adb pull --resume --serial {serial}"
    )]
    LeftRunning {
        /// The device.
        serial: String,
        /// How long it was waited for the device.
        seconds: u64,
    },
}
