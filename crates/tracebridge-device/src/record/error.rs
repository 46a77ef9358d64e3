//! The errors of a recording. Every error names its file and what the user can do.

use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use thiserror::Error;

use super::file_access::{RequiredAccess, inspect};
use crate::android::{PropertyError, UserIdentity};
use crate::categories::{MalformedVendorFile, SelectionError, VENDOR_FILE};

/// Why a recording could not start, could not go on, or could not be cleaned up after.
#[derive(Debug, Error)]
pub(crate) enum RecordError {
    /// None of the directories that were tried is a tracefs.
    #[error(
        "no tracefs at {tried}: mount one as root (`mount -t tracefs nodev /sys/kernel/tracing`) or name it with \
         --tracefs DIR"
    )]
    NoTracefs {
        /// The directories that were tried, separated by commas.
        tried: String,
    },
    /// A file of tracefs could not be opened, read or written.
    #[error("{}: cannot {action}: {}", path.display(), knob_cause(cause, refused_by.as_deref()))]
    Knob {
        /// The file.
        path: PathBuf,
        /// The action that failed, as it follows "cannot": `read`, `write "boot"`, `open`.
        action: String,
        /// The kernel's answer.
        cause: io::Error,
        /// The obstacle to the access (see [`RecordError::explained`]); `None` if that was not examined.
        refused_by: Option<String>,
    },
    /// A file of tracefs that this user may not use ended the command.
    #[error("{}", with_hint(.0))]
    Denied(Box<RecordError>),
    /// A file shows that parts of the device have different values, so that no single value to write would
    /// put it back.
    #[error("{}: some of what it sets is on or larger and some is not, and this could not be put back", path.display())]
    Mixed {
        /// The file.
        path: PathBuf,
    },
    /// The instance of a flight recorder cannot be used.
    #[error(
        "{0}; if somebody removed it: `tracebridge restore --flight` puts back what `start` changed elsewhere"
    )]
    FlightInstance(Box<RecordError>),
    /// This kernel does not offer the value that was asked for.
    #[error("{knob} does not offer {asked:?}: it has {offered}")]
    NotOffered {
        /// The file of tracefs that lists the values.
        knob: &'static str,
        /// The value that was asked for.
        asked: String,
        /// The values that the kernel offers, separated by spaces.
        offered: String,
    },
    /// The capture could not be written.
    #[error("{}: {source}{note}", path.display())]
    Output {
        /// The capture.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
        /// The number of free bytes, where the file system is full; otherwise empty.
        note: String,
    },
    /// The reader of a stream takes nothing.
    #[error("the reader of the stream took nothing more: the stream lacks its end")]
    Stalled,
    /// The capture's name belongs to a directory, a device or a pipe.
    #[error("{}: not a regular file", .0.display())]
    NotRegularFile(PathBuf),
    /// Another recorder holds the lock of this trace buffer.
    #[error(
        "another recorder{} is using this trace buffer: wait for it, stop it, or take over with --force \
         (its recording ends there; its settings are put back)",
        if *pid == 0 { String::new() } else { format!(" (pid {pid})") }
    )]
    Busy {
        /// That recorder's process id; 0 where it is unknown.
        pid: u32,
    },
    /// A flight recorder is using this trace buffer.
    #[error(
        "a flight recorder (started by pid {pid}) is using this trace buffer: end it with `tracebridge stop`, or take \
         over with --force (what it holds is lost; its settings are put back)"
    )]
    FlightRecorder {
        /// The process that started the flight recorder.
        pid: u32,
    },
    /// There is no flight recorder to dump or to stop.
    #[error("no flight recorder is on here: `tracebridge start` starts one")]
    NoFlightRecorder,
    /// A line on standard input is no command to a live recording.
    #[error("a command is `on NAME… off NAME…`, with 1 to 64 names of categories")]
    NoCommand,
    /// The request names no category, event, app or function.
    #[error("nothing to record: name a category (`tracebridge list`), GROUP/EVENT, -a APP or -k FUNCTION")]
    NothingSelected,
    /// Nothing of what the request names can be recorded here.
    #[error("nothing to record: {0}")]
    NothingAvailable(String),
    /// A name in the request is not a category or event that can be recorded.
    #[error("{0} (--lenient leaves it out)")]
    Selection(#[from] SelectionError),
    /// The vendor's file of categories could not be understood.
    #[error("{VENDOR_FILE}: {0}")]
    VendorFile(#[from] MalformedVendorFile),
    /// An Android system property could not be read or set.
    #[error(transparent)]
    Property(#[from] PropertyError),
    /// The signals that end a recording could not be blocked.
    #[error("cannot block the signals that end a recording: {0}")]
    Signals(#[source] io::Error),
    /// The system starts no further thread for the work during which to record.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    /// The file of saved settings could not be read or written.
    #[error("{}: cannot keep the record of the kernel's settings: {source}: {}", path.display(), settings_file_hint(path, source))]
    SettingsFile {
        /// The file, or the directory it is to be in.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A file among the saved settings is not one that a recorder of this user wrote.
    #[error("{}: not used as saved settings: {reason}: remove it", path.display())]
    UnusableSettings {
        /// The file.
        path: PathBuf,
        /// The fault that was found.
        reason: String,
    },
    /// The name of an instance is no single part of a path.
    #[error("--instance {0:?}: the name of an instance is neither empty nor `.` or `..`, and has no `/`")]
    InstanceName(String),
    /// The kernel described its ring buffer in a way that the recorder does not understand.
    #[error("{}: {what}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The fault in its content.
        what: String,
    },
}

fn settings_file_hint(path: &Path, error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::PermissionDenied && path.is_file() {
        return "it is another user's (root's, mostly): run this as that user";
    }
    if error.kind() == io::ErrorKind::FileTooLarge {
        return "the values to save are longer than 1 MiB in all: shorten the lists of functions in tracefs";
    }
    "name a writable directory with --state-dir"
}

/// The error with a hint at what would help, unless it has one itself.
fn with_hint(error: &RecordError) -> String {
    let text = error.to_string();
    if text.contains("`tracebridge doctor`") {
        text
    } else {
        format!("{text} (`tracebridge doctor` says what would change that)")
    }
}

fn knob_cause(error: &io::Error, refused_by: Option<&str>) -> String {
    match (error.kind(), refused_by) {
        (_, Some(refused_by)) => {
            format!("refused by {refused_by} (`tracebridge doctor` says what would change that)")
        }
        (io::ErrorKind::PermissionDenied, None) => {
            format!("{error} (`tracebridge doctor` says what refuses it)")
        }
        (io::ErrorKind::ResourceBusy, None) => {
            format!("{error} (another tracer has it; stop it, or record into an --instance)")
        }
        _ => error.to_string(),
    }
}

impl RecordError {
    /// A failure at a file of tracefs. `action` follows the word "cannot" in the message.
    pub(crate) fn knob(path: &Path, action: impl Into<String>, source: io::Error) -> RecordError {
        RecordError::Knob { path: path.to_owned(), action: action.into(), cause: source, refused_by: None }
    }

    /// The error as one that ends a command: what denies a file, and where to find out what would change
    /// that.
    pub(crate) fn fatal(self) -> RecordError {
        if self.is_denied() { RecordError::Denied(Box::new(self.explained())) } else { self }
    }

    /// The kernel's answer, where a file of tracefs was refused.
    pub(crate) fn kernel_error(&self) -> Option<&io::Error> {
        match self {
            RecordError::Knob { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// Whether this user may not use a file of tracefs.
    pub(crate) fn is_denied(&self) -> bool {
        self.kernel_error().is_some_and(|e| e.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Why it failed, without the name of the file: for a sentence about several files that fail alike.
    pub(crate) fn cause(&self) -> String {
        match self {
            RecordError::Knob { refused_by: Some(refused_by), .. } => format!("refused by {refused_by}"),
            RecordError::Knob { cause, .. } => cause.to_string(),
            RecordError::Mixed { .. } => {
                "its group is partly on, which could not be put back afterwards".to_owned()
            }
            other => other.to_string(),
        }
    }

    /// Finds out what denies a file: owner and mode, SELinux, or something else. Other errors stay as they
    /// are.
    pub(crate) fn explained(mut self) -> RecordError {
        if self.is_denied()
            && let RecordError::Knob { path, action, refused_by, .. } = &mut self
        {
            let write = !matches!(action.as_str(), "read" | "open" | "list");
            let path = if access(path.as_path(), AccessFlags::F_OK).is_ok() {
                path.as_path()
            } else {
                path.parent().unwrap_or(path)
            };
            let user = UserIdentity::current();
            let wanted = RequiredAccess { read: !write, write, try_open: false };
            *refused_by = refused_by.take().or_else(|| inspect(path, &user, wanted).refused_by(&user));
        }
        self
    }

    /// A failure to write the capture at `path`.
    pub(crate) fn output(path: &Path, source: io::Error) -> RecordError {
        RecordError::Output { path: path.to_owned(), source, note: String::new() }
    }
}
