//! The request for a recording that is shown while it runs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::desk::error::DeskError;
use crate::live::Trigger;

/// The name of saved files, before they get a number and the ending of their format.
pub(super) const OUTPUT: &str = "live.dat";

/// A recording that is to be shown while it runs.
#[derive(Debug, Clone)]
pub struct LiveRequest {
    /// The arguments of tracebridge's own `record`: flags, and names behind them, after `--`.
    pub args: Vec<String>,
    /// The names of what is recorded, as they were given.
    pub names: Vec<String>,
    /// When the recording ends by itself.
    pub duration: Option<Duration>,
    /// How long pages are kept.
    pub keep: Duration,
    /// The app whose numbers are wanted.
    pub app: Option<String>,
    /// The title of the page; without one it is the device's serial.
    pub title: Option<String>,
    /// The conditions that are watched for.
    pub triggers: Vec<Trigger>,
    /// The time that the file of a condition holds before its moment.
    pub before: Duration,
    /// The same behind it.
    pub after: Duration,
    /// Whether the first condition that is met ends the recording.
    pub stops: bool,
    /// The port of the page; 0 takes any.
    pub port: u16,
    /// The directory of saved files.
    pub output_dir: PathBuf,
}

/// Fails unless files can be put into this directory.
pub(super) fn check_directory(directory: &Path) -> Result<(), DeskError> {
    let path = directory.display().to_string();
    match std::fs::metadata(directory) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(DeskError::NoDirectory { path }),
        Err(source) => Err(DeskError::LocalFile { path, source }),
    }
}
