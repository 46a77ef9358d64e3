//! What every reader offers, and how a file of any format is opened.

use std::io;

use super::art_method::MethodTrace;
use super::input::{Input, InputError};
use super::input_format::{FormatError, UnreadFile, identify};
use super::{Head, Order, ReadReport, Sink};

/// A file with kernel events, opened up to its head.
pub trait Recording {
    /// What the file says before its first event.
    fn head(&self) -> &Head;

    /// Pushes the head, then threads, processes, event types, events and losses to `sink`. Each call reads the file again.
    ///
    /// # Errors
    /// Those of `sink`, and [`io::ErrorKind::InvalidData`] where the file brings more event types than memory should hold.
    /// Whatever else is wrong with the file is in the report.
    fn read(&self, order: Order, sink: &mut dyn Sink) -> io::Result<ReadReport>;
}

/// A file of any format, opened.
pub enum OpenedInput<'a> {
    /// A file with kernel events.
    Recording(Box<dyn Recording + 'a>),
    /// A method trace of ART or Dalvik.
    MethodTrace(Box<MethodTrace<'a>>),
}

/// Why an input cannot be read. Every error names the input.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its bytes could not be had.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The file has a format that is not read.
    #[error("{name}: is {}, which is not read here ({})", file.what, file.cure)]
    NotRead {
        /// The path as given.
        name: String,
        /// What the file is, and which program opens it.
        file: UnreadFile,
    },
    /// The file has a format that is read, but its reader cannot open it.
    #[error("{name}: {source}")]
    Format {
        /// The path as given.
        name: String,
        /// What the format's reader says.
        source: FormatError,
    },
}

/// Opens `input` with the reader of its format.
///
/// # Errors
/// [`OpenError::NotRead`] and [`OpenError::Format`].
pub fn open(input: &Input) -> Result<OpenedInput<'_>, OpenError> {
    let format = identify(input).map_err(|file| OpenError::NotRead { name: input.name.clone(), file })?;
    (format.open)(input).map_err(|source| OpenError::Format { name: input.name.clone(), source })
}
