//! The reasons why a dataset cannot be read or written.

use std::io;
use std::path::{Path, PathBuf};

use crate::formats::OpenError;
use crate::formats::input::InputError;
use crate::formats::unpack_budget::names_limit;
use crate::tables::{StartUnknown, TableError};
use crate::timeline::MergeError;
use crate::workers::Failure;

/// Why a dataset cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The directory is not there.
    #[error("{path}: there is no dataset: `tracebridge dataset add {path} FILES` makes one")]
    Missing {
        /// The path as given.
        path: String,
    },
    /// The directory holds other things.
    #[error("{path}: is not empty, and no dataset: name a new directory, or one that `dataset add` has made")]
    NoDataset {
        /// The path as given.
        path: String,
    },
    /// The output of `convert` would replace something else.
    #[error("{path}: exists, and is no directory of tables: name another output, or remove it")]
    NoTables {
        /// The path as given.
        path: String,
    },
    /// The file of a table cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// No trace has this id.
    #[error(
        "{id}: no trace of the dataset has an id that begins so; `tracebridge dataset list` shows the ids"
    )]
    NoSuchTrace {
        /// The id as given.
        id: String,
    },
    /// No trace has this id, but not all ids can be read.
    #[error(
        "{id}: no trace that can be read has an id that begins so; {source}: `tracebridge dataset remove \
         DATASET {part}` removes this part with all that is in it"
    )]
    UnreadablePart {
        /// The id as given.
        id: String,
        /// The name of the first part whose ids cannot be read.
        part: String,
        /// Why.
        source: Box<DatasetError>,
    },
    /// Several traces have ids that begin so.
    #[error("{id}: {count} traces have ids that begin so: give more digits")]
    SeveralTraces {
        /// The id as given.
        id: String,
        /// How many.
        count: usize,
    },
    /// The files of a trace are not taken.
    #[error(transparent)]
    Refused(#[from] RefusedTrace),
    /// A thread that read a trace panicked.
    #[error("{}", Failure::<io::Error>::Panicked)]
    Panicked,
    /// The system refused something.
    #[error("{path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl DatasetError {
    /// Makes an error of the system about `path`.
    pub(super) fn io(path: &Path) -> impl Fn(io::Error) -> DatasetError {
        let path = path.to_owned();
        move |source| DatasetError::Io { path: path.clone(), source }
    }
}

/// Why the files of a trace are not taken.
#[derive(Debug, thiserror::Error)]
pub enum RefusedTrace {
    /// A file cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A file changed while it was read.
    #[error(transparent)]
    Changed(#[from] InputError),
    /// The files cannot be put on one timeline.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// The contents cannot be read.
    #[error("{files}: {source}")]
    Unreadable {
        /// The names of the files.
        files: String,
        /// The reason.
        source: io::Error,
    },
    /// A file is damaged, or unpacks to more than the user allows.
    #[error(
        "{files}: {} at byte {offset}: {what} (--keep-damaged takes what can be read)",
        if names_limit(.what) { "is too large" } else { "is damaged" }
    )]
    Damaged {
        /// The names of the files.
        files: String,
        /// The first damaged byte.
        offset: u64,
        /// The damage.
        what: String,
    },
    /// The files hold nothing that a table has rows for.
    #[error("{files}: holds no event and no call of a method")]
    Empty {
        /// The names of the files.
        files: String,
    },
    /// The rows need the start of the trace, although it was given.
    #[error("{files}: {StartUnknown}")]
    StartUnknown {
        /// The names of the files.
        files: String,
    },
}
