//! The errors of work with one device.

use std::io;

use crate::adb::AdbError;

/// Why something with a device failed.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
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
        /// The answer of `uname -m`.
        machine: String,
    },
    /// There is no binary to push.
    #[error(
        "no tracebridge binary for {abi}: build it with scripts/build-android --abi {abi}, or name the directory \
         that holds {abi}/tracebridge in TRACEBRIDGE_DEVICE_BINARIES (looked in: {directories})"
    )]
    NoBinary {
        /// The device's ABI.
        abi: String,
        /// The directories in which no binary was found.
        directories: String,
    },
    /// Other users of this machine may have put the binary there, or changed it.
    #[error(
        "{path}: belongs to another user, or others may write to it: no binary from there is put on a device \
         (chmod go-w, or name the directory with TRACEBRIDGE_DEVICE_BINARIES)"
    )]
    #[cfg_attr(not(unix), expect(dead_code, reason = "only Unix tells the owners of files"))]
    UntrustedBinary {
        /// The binary, or a directory above it.
        path: String,
    },
    /// A file of this machine cannot be read or written.
    #[error("{path}: {source}")]
    LocalFile {
        /// The file's path on the host.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// A command on the device failed.
    #[error("{serial}: {action}: {reason}")]
    Failed {
        /// The device.
        serial: String,
        /// The action that failed.
        action: String,
        /// The command's own words, or its status.
        reason: String,
    },
    /// A transferred file differs from the file that was sent.
    #[error("{serial}: {path}: {difference}; {consequence}")]
    Damaged {
        /// The device.
        serial: String,
        /// The file's path on the device.
        path: String,
        /// The difference.
        difference: String,
        /// Which copy is left.
        consequence: &'static str,
    },
    /// The device closes each connection at once while a recording goes on.
    #[error(
        "{serial}: the device closed the connection {times} times as soon as it was there: given up. The recording \
         goes on on the device. Fetch it with: tracebridge adb pull --resume --serial {serial}"
    )]
    ClosesConnections {
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
        /// How long the host waited for the device, seconds.
        seconds: u64,
    },
}
