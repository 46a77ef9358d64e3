//! What every reader offers: a file opened up to its head, whose events are read on demand.

use std::io;

use super::art_method::MethodTrace;
use super::{Head, Order, ReadReport, Sink};

/// A file with kernel events, opened up to its head.
pub trait Recording {
    /// What the file says before its first event.
    fn head(&self) -> &Head;

    /// Pushes the head, then threads, processes, event types, events and losses to `sink`. Each call reads
    /// the file again.
    ///
    /// # Errors
    /// Those of `sink`, and [`io::ErrorKind::InvalidData`] where the file brings more event types than memory
    /// should hold. Whatever else is wrong with the file is in the report.
    fn read(&self, order: Order, sink: &mut dyn Sink) -> io::Result<ReadReport>;
}

/// Why a reader cannot open a file of its format. The caller adds the file's name.
pub type FormatError = Box<dyn std::error::Error + Send + Sync>;

/// A file of any format, opened.
pub enum OpenedInput<'a> {
    /// A file with kernel events.
    Recording(Box<dyn Recording + 'a>),
    /// A method trace of ART or Dalvik.
    MethodTrace(Box<MethodTrace<'a>>),
}
