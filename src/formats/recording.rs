//! The result of opening a file: its head is read, and its events are read on demand.

use std::io;

use super::art_method::MethodTrace;
use super::contained::ContainedTrace;
use super::input::Input;
use super::samples::SampleRecording;
use super::video_frames::ScreenVideo;
use super::{Head, Order, ReadReport, Sink};

/// A file with kernel events, opened up to its head.
pub trait Recording {
    /// The format, the clock and the machine of the recording.
    fn head(&self) -> &Head;

    /// Pushes the head, then threads, processes, event types, events and losses to `sink`. Each call reads
    /// the file again.
    ///
    /// # Errors
    /// The errors of `sink`, and [`io::ErrorKind::InvalidData`] where the file has more event types than
    /// memory should hold. All other faults of the file are in the report.
    fn read(&self, order: Order, sink: &mut dyn Sink) -> io::Result<ReadReport>;

    /// The method traces that the file holds beside its events.
    fn method_traces(&self) -> Vec<ContainedTrace> {
        Vec::new()
    }

    /// The frames of a video of the screen, where the file is one. Its events are instants at the same times.
    fn video(&self) -> Option<&ScreenVideo> {
        None
    }

    /// The samples that the file holds beside its events, on the same clock.
    fn samples(&self) -> Option<Box<dyn SampleRecording + '_>> {
        None
    }
}

/// The reason why a reader cannot open a file of its format. The caller adds the file's name.
pub type FormatError = Box<dyn std::error::Error + Send + Sync>;

/// A file of any format, opened.
pub enum OpenedInput<'a> {
    /// A file with kernel events.
    Recording(Box<dyn Recording + 'a>),
    /// A method trace of ART or Dalvik.
    MethodTrace(Box<MethodTrace<'a>>),
    /// A file with samples.
    Samples(Box<dyn SampleRecording + 'a>),
}

impl OpenedInput<'_> {
    /// The method traces that a recording holds beside its events, as inputs of their own. `file` is the name
    /// of the recording.
    pub fn contained_inputs(&self, file: &str) -> Vec<Input> {
        let traces = match self {
            OpenedInput::Recording(recording) => recording.method_traces(),
            OpenedInput::MethodTrace(_) | OpenedInput::Samples(_) => Vec::new(),
        };
        traces.into_iter().map(|trace| trace.into_input(file)).collect()
    }

    /// The samples of the file; `None` where its format has none, or the file holds none beside its events.
    pub fn samples(&self) -> Option<Box<dyn SampleRecording + '_>> {
        match self {
            OpenedInput::Recording(recording) => recording.samples(),
            OpenedInput::Samples(samples) => Some(Box::new(samples.as_ref())),
            OpenedInput::MethodTrace(_) => None,
        }
    }
}
