//! The errors of commands on attached devices.

use std::borrow::Cow;
use std::io;

use super::device::DeviceError;
use crate::adb::AdbError;
use crate::export::convert::ConvertError;
use crate::live::KeptError;

/// Why a command on a device failed.
#[derive(Debug, thiserror::Error)]
pub enum DeskError {
    /// The connection, the device's state, or a transfer.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The part of a running recording that is kept could not be written.
    #[error(transparent)]
    Kept(#[from] KeptError),
    /// The recorded files could not be converted.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// The request contradicts itself, or names a thing that there is not.
    #[error("{0}")]
    Request(Cow<'static, str>),
    /// The output's ending names no format that a recording can become.
    #[error("{output}: its ending names no format: name it by one of: {endings}")]
    UnknownEnding {
        /// The output's path as given.
        output: String,
        /// The endings that there are.
        endings: String,
    },
    /// A file of the host.
    #[error("{path}: {source}")]
    LocalFile {
        /// The file's path.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The output's directory is none.
    #[error("{path}: is no directory")]
    NoDirectory {
        /// The path.
        path: String,
    },
    /// Standard input could not be read.
    #[error("standard input: {0}")]
    StandardInput(#[source] io::Error),
    /// The device cannot give a command standard input.
    #[error("{serial}: mark -: a command has standard input on Android 7 and newer alone")]
    NoStandardInput {
        /// The device.
        serial: String,
    },
    /// A command on the device refused its arguments.
    #[error("{serial}: {message}")]
    CommandUsage {
        /// The device.
        serial: String,
        /// The command's own words.
        message: String,
    },
    /// A command on the device failed.
    #[error("{serial}: {message}")]
    CommandFailed {
        /// The device.
        serial: String,
        /// The command's own words.
        message: String,
    },
    /// The recorder was killed before it wrote a file.
    #[error(
        "{serial}: the recorder was killed, and left nothing to fetch. `tracebridge adb clean --force` puts the \
         device's settings back and removes what is left of the recording in {dir}"
    )]
    RecorderKilled {
        /// The device.
        serial: String,
        /// The directory of the recording on the device.
        dir: String,
    },
    /// A stream ended before its first event.
    #[error(
        "{serial}: {reason}: no event had come, and a stream leaves nothing on the device. Without --stream a \
         recording goes on while the connection is lost"
    )]
    NoEventCame {
        /// The device.
        serial: String,
        /// Why the stream ended.
        reason: String,
    },
    /// The recorder that was asked for is not on the device.
    #[error("{serial}: there is no {program} on the device")]
    NoRecorder {
        /// The device.
        serial: String,
        /// The recorder.
        program: &'static str,
    },
    /// A video was asked for, and the device makes none.
    #[error("{serial}: the device has no screenrecord, which makes the video: leave --video out")]
    NoScreenrecord {
        /// The device.
        serial: String,
    },
    /// The kernel's caches could not be dropped.
    #[error("{serial}: --drop-caches: {message} (it needs root)")]
    CachesKept {
        /// The device.
        serial: String,
        /// The shell's words.
        message: String,
    },
    /// Recordings are on the device that nobody has fetched.
    #[error(
        "{serial}: nobody has fetched {}: {}. Fetch with `tracebridge adb pull --resume`, or remove with \
         `tracebridge adb clean --force`",
        recordings(.names.len()),
        .names.join(", ")
    )]
    RecordingsLeft {
        /// The device.
        serial: String,
        /// The ids and output names of the recordings.
        names: Vec<String>,
    },
    /// The app is not on the device.
    #[error("{serial}: {package} is not installed")]
    NotInstalled {
        /// The device.
        serial: String,
        /// The app's package.
        package: String,
    },
    /// The app consists of several files.
    #[error(
        "{serial}: {package} is installed in {parts} parts (split APKs), which cannot be put back from one file: \
         build the other version under another package, and name that with --against"
    )]
    SplitApp {
        /// The device.
        serial: String,
        /// The app's package.
        package: String,
        /// The number of files.
        parts: usize,
    },
    /// The version of the app that was on the device could not be installed again.
    #[error("the app's own version is in {copy}: {source}")]
    NotPutBack {
        /// The copy of the app on the device. It is the only one that is left.
        copy: String,
        /// The error of the installation.
        source: Box<DeskError>,
    },
    /// The app has written no method trace.
    #[error(
        "{serial}: {file}: no method trace after {seconds} s: does {app} run, and is it debuggable or profileable?"
    )]
    NoMethodTrace {
        /// The device.
        serial: String,
        /// The path of the trace on the device.
        file: String,
        /// The time that was waited, seconds.
        seconds: u64,
        /// The app's process.
        app: String,
    },
}

impl DeskError {
    /// Whether the command line is wrong, and not the device or a file.
    pub fn is_usage(&self) -> bool {
        match self {
            DeskError::Request(_) | DeskError::UnknownEnding { .. } | DeskError::CommandUsage { .. } => true,
            DeskError::Convert(error) => error.is_usage(),
            _ => false,
        }
    }
}

impl From<AdbError> for DeskError {
    fn from(error: AdbError) -> DeskError {
        DeskError::Device(error.into())
    }
}

/// `1 recording`, `2 recordings`.
pub(super) fn recordings(count: usize) -> String {
    format!("{count} recording{}", if count == 1 { "" } else { "s" })
}
