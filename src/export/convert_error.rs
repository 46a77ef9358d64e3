//! Why a conversion was not done.

use std::io;

use super::{FORMATS, formats_that_hold};
use crate::formats::OpenError;
use crate::formats::input::InputError;
use crate::output_file::SameFile;
use crate::timeline::{DataKind, MergeError, WindowError};

/// Why a conversion was not done.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// No format has the name that the user gave.
    #[error("--format {name}: no format has this name or ending: {}", format_list())]
    UnknownFormat {
        /// The name as given.
        name: String,
    },
    /// The output's ending names no format.
    #[error("{output}: its ending names no format; use --format, or one of: {}", format_list())]
    UnknownEnding {
        /// The output's path as given.
        output: String,
    },
    /// Writing would destroy an input.
    #[error(transparent)]
    SameFile(#[from] SameFile),
    /// An input cannot be opened or unpacked, or no reader accepts it.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The mapping file cannot be opened, or an input has become shorter since it was opened.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The mapping file cannot be used: it is not a mapping file of R8 or ProGuard.
    #[error("{name}: {source}")]
    Mapping {
        /// The mapping file's path as given.
        name: String,
        /// What is wrong with the mapping file.
        source: crate::art::MappingError,
    },
    /// Standard output is a terminal, which would show binary data.
    #[error("standard output is a terminal: redirect it, or name a file with -o")]
    OutputIsTerminal,
    /// An archive was requested on standard output, or compressed with gzip.
    #[error("a zip is written to a file, and packed no further: name one with -o")]
    ArchiveNeedsFile,
    /// An archive was requested with `--mapping`, but an archive holds the method traces unchanged.
    #[error("the method traces go into a zip as they are: --mapping needs one file (-o OUT.pftrace)")]
    ArchiveWithMapping,
    /// No archive can be made of these inputs.
    #[error("{0}")]
    ArchiveInputs(&'static str),
    /// The output would be empty: its format holds none of the data of the inputs.
    #[error(
        "{format} has no place for {data}, and the inputs hold nothing else: nothing is written. Outputs that \
         hold {data}: {}",
        formats_that_hold(*.data_kind)
    )]
    NothingToHold {
        /// The name of the output's format.
        format: &'static str,
        /// The data of the inputs, for people.
        data: String,
        /// The kind of the data.
        data_kind: DataKind,
    },
    /// The output could not be created, or not be completed.
    #[error("{path}: {source}")]
    Output {
        /// The output's path as given.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The timeline has no such part.
    #[error(transparent)]
    Window(#[from] WindowError),
    /// The merge failed; no output is left behind.
    #[error(transparent)]
    Merge(#[from] MergeError),
}

impl ConvertError {
    /// Whether another command line is the cure, whatever the inputs are.
    pub fn is_usage(&self) -> bool {
        use ConvertError::*;
        let is_window = matches!(self, Window(WindowError::Empty { .. }));
        is_window
            || matches!(
                self,
                UnknownFormat { .. } | UnknownEnding { .. } | ArchiveNeedsFile | ArchiveWithMapping
            )
    }
}

/// Every format's name and endings, for messages.
fn format_list() -> String {
    let formats = FORMATS.iter().map(|format| format!("{} ({})", format.name, format.endings.join(" ")));
    formats.collect::<Vec<_>>().join(", ")
}
