//! What can go wrong while recording, each with the knob or path it is about and what to do.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::android::PropertyError;
use crate::categories::SelectionError;

/// Why a recording could not start, go on or be cleaned up after.
#[derive(Debug, Error)]
pub enum Error {
    /// There is no tracefs in any of the usual places.
    #[error(
        "no tracefs at {tried}: mount one as root (`mount -t tracefs nodev /sys/kernel/tracing`) or name it with \
         --tracefs DIR"
    )]
    NoTracefs {
        /// The places looked at, with commas.
        tried: String,
    },
    /// A file of tracefs could not be read or written.
    #[error("{}: cannot {action}: {source}{}", path.display(), cure(source))]
    Knob {
        /// The file.
        path: PathBuf,
        /// `read`, `write "boot"`, `open`.
        action: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// An event that this kernel does not have.
    #[error("no event {name}: {hint}")]
    NoEvent {
        /// What was asked for.
        name: String,
        /// Where to look instead.
        hint: String,
    },
    /// A knob's value that this kernel does not offer.
    #[error("{knob} does not offer {asked:?}: it has {offered}")]
    NotOffered {
        /// The file of tracefs.
        knob: &'static str,
        /// What was asked for.
        asked: String,
        /// What there is.
        offered: String,
    },
    /// The output could not be written.
    #[error("{}: {source}{note}", path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
        /// What to know about it (the free bytes when it is full).
        note: String,
    },
    /// Another recorder holds the lock.
    #[error(
        "another recorder (pid {pid}) is using this trace buffer: wait for it, stop it, or take over with --force \
         (its recording ends there; its settings are put back)"
    )]
    Busy {
        /// Its process id, 0 where unknown.
        pid: u32,
    },
    /// A flight recorder has the buffer.
    #[error(
        "a flight recorder (started by pid {pid}) is using this trace buffer: end it with `tracebridge stop`, or take \
         over with --force (what it holds is lost; its settings are put back)"
    )]
    FlightRecorder {
        /// Who started it.
        pid: u32,
    },
    /// There is no flight recorder to dump or stop.
    #[error("no flight recorder is on here: `tracebridge start` starts one")]
    NoFlightRecorder,
    /// What was asked for cannot be recorded.
    #[error("nothing to record: {0}")]
    Nothing(String),
    /// A category or event that is not to be had.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// A property could not be read or set.
    #[error(transparent)]
    Property(#[from] PropertyError),
    /// The saved-settings record could not be kept.
    #[error("{}: cannot keep the record of the kernel's settings: {source}: {}", path.display(), state_cure(path, source))]
    State {
        /// The file or directory.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The header information of the kernel's ring buffer could not be understood.
    #[error("{}: {what}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

fn state_cure(path: &Path, error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::PermissionDenied && path.is_file() {
        return "it is another user's (root's, mostly): run this as that user";
    }
    "name a writable directory with --state-dir"
}

fn cure(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            " (needs root, or a device that lets the shell use tracefs; `tracebridge doctor` tells)"
        }
        io::ErrorKind::ResourceBusy => " (another tracer has it; stop it, or record into an --instance)",
        _ => "",
    }
}

impl Error {
    /// A failure at a file of tracefs.
    pub fn knob(path: &Path, action: impl Into<String>, source: io::Error) -> Error {
        Error::Knob { path: path.to_owned(), action: action.into(), source }
    }

    /// A failure at the output, without more to say.
    pub fn output(path: &Path, source: io::Error) -> Error {
        Error::Output { path: path.to_owned(), source, note: String::new() }
    }
}
