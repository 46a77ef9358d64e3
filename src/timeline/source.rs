//! Inputs: the one place that opens a file of any format and hands its events on.

use std::io;
use std::path::Path;

use crate::formats::art_method::{self, MethodTrace};
use crate::formats::detect::{self, InputFormat, Other};
use crate::formats::input::{Input, OpenError};
use crate::formats::trace_dat::{TraceDat, TraceDatError};
use crate::formats::{Event, EventType, Head, Order, ReadReport, Sink, ftrace_text, perfetto};

/// Why an input cannot be part of a timeline.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It is something else.
    #[error("{name}: is {}, which is not read here ({})", other.what, other.cure)]
    Other {
        /// The path as given.
        name: String,
        /// What it is.
        other: Other,
    },
    /// It is a trace.dat that does not open.
    #[error("{name}: {source}")]
    TraceDat {
        /// The path as given.
        name: String,
        /// Why.
        source: TraceDatError,
    },
    /// It is a method trace that does not open.
    #[error("{name}: {source}")]
    Method {
        /// The path as given.
        name: String,
        /// Why.
        source: art_method::Error,
    },
    /// A format that is known, but not read yet.
    #[error("{name}: is {}, which this version does not read", format.name())]
    NotYet {
        /// The path as given.
        name: String,
        /// What it is.
        format: InputFormat,
    },
    /// Reading or writing went wrong on the way.
    #[error("{name}: {source}")]
    Io {
        /// The path as given.
        name: String,
        /// What the system or the exporter says.
        source: io::Error,
    },
}

/// An input's bytes and their format.
#[derive(Debug)]
pub struct Source {
    /// The bytes.
    pub input: Input,
    /// What they are.
    pub format: InputFormat,
}

/// An input, opened.
pub enum Opened<'a> {
    /// Kernel events.
    Kernel(Kernel<'a>),
    /// A method trace.
    Method(Box<MethodTrace<'a>>),
}

/// An input with kernel events.
pub enum Kernel<'a> {
    /// trace-cmd's file.
    TraceDat(Box<TraceDat<'a>>),
    /// ftrace's text in any form.
    Text(&'a [u8]),
    /// A Perfetto trace.
    Perfetto(&'a [u8]),
}

impl Source {
    /// Maps or reads `path` (`-` is standard input), and names its format.
    pub fn open(path: &Path) -> Result<Source, SourceError> {
        let input = Input::open(path)?;
        let format = detect::detect(&input);
        Ok(Source { input, format })
    }

    /// Opens it as what it is.
    pub fn read(&self) -> Result<Opened<'_>, SourceError> {
        let name = || self.input.name.clone();
        match self.format {
            InputFormat::TraceDat => match TraceDat::open(&self.input) {
                Ok(mut dat) => {
                    dat.set_release(&self.input);
                    Ok(Opened::Kernel(Kernel::TraceDat(Box::new(dat))))
                }
                Err(source) => Err(SourceError::TraceDat { name: name(), source }),
            },
            InputFormat::ArtMethod => match MethodTrace::parse(&self.input) {
                Ok(trace) => Ok(Opened::Method(Box::new(trace))),
                Err(source) => Err(SourceError::Method { name: name(), source }),
            },
            InputFormat::FtraceText | InputFormat::SystraceHtml => {
                Ok(Opened::Kernel(Kernel::Text(&self.input)))
            }
            InputFormat::Perfetto => Ok(Opened::Kernel(Kernel::Perfetto(&self.input))),
            InputFormat::Other(other) => Err(SourceError::Other { name: name(), other }),
            format => Err(SourceError::NotYet { name: name(), format }),
        }
    }
}

impl Kernel<'_> {
    /// What it says before its first event.
    pub fn head(&self) -> io::Result<Head> {
        match self {
            Kernel::TraceDat(dat) => Ok(dat.head()),
            Kernel::Text(_) | Kernel::Perfetto(_) => {
                let mut sink = HeadOnly(None);
                let result = self.read(Order::Any, &mut sink);
                sink.0.ok_or(()).or_else(|()| result.and(Err(io::Error::other("no head"))))
            }
        }
    }

    /// Pushes everything in it.
    pub fn read(&self, order: Order, sink: &mut dyn Sink) -> io::Result<ReadReport> {
        match self {
            Kernel::TraceDat(dat) => dat.read(order, sink),
            Kernel::Text(text) => ftrace_text::read(text, order, sink),
            Kernel::Perfetto(trace) => perfetto::read(trace, order, sink),
        }
    }
}

/// Keeps the head, and wants nothing more.
struct HeadOnly(Option<Head>);

impl Sink for HeadOnly {
    fn head(&mut self, head: &Head) -> io::Result<()> {
        self.0 = Some(head.clone());
        Err(io::ErrorKind::Other.into())
    }

    fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
        Err(io::ErrorKind::Other.into())
    }
}
