//! The reasons why a profile cannot be made or written.

use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use crate::art::MappingError;
use crate::formats::input::InputError;
use crate::formats::{FormatId, OpenError, art_method};
use crate::output_file::SameFile;

/// The reason why a profile cannot be made or written.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// An input cannot be opened, or is a file that no command reads.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The mapping file cannot be opened, or a trace has become shorter since it was opened.
    #[error(transparent)]
    Input(#[from] InputError),
    /// An input is a recording, which holds no method calls.
    #[error(
        "{name}: this is a file of the format {format}, which holds no method calls; `tracebridge info` says what it holds"
    )]
    NoMethodTrace {
        /// The path as given.
        name: String,
        /// The file's format.
        format: FormatId,
    },
    /// An input is not a method trace, or holds nothing that can be read.
    #[error("{name}: {source}")]
    Trace {
        /// The path as given.
        name: String,
        /// The reason.
        source: art_method::Error,
    },
    /// The samples have no event type of the requested name.
    #[error("{name}: no event type is called {requested}; it has {known}")]
    NoSuchEvent {
        /// The path as given.
        name: String,
        /// The requested name.
        requested: String,
        /// The names of the event types.
        known: String,
    },
    /// `--overhead` was given other files than a method trace and samples.
    #[error("--overhead compares a method trace with samples of the same run: name one file of each")]
    NotTraceAndSamples,
    /// Samples were to be compared with calls.
    #[error("--against compares samples with samples and method traces with method traces")]
    SamplesAgainstCalls,
    /// The weights of two files of samples are of different kinds.
    #[error(
        "--against needs one kind of weight, but the earlier file has {before}, and the later one {after}: see --event and --weight"
    )]
    OtherWeights {
        /// The unit of the earlier file's weights.
        before: String,
        /// The unit of the later file's weights.
        after: String,
    },
    /// A clock was requested for samples.
    #[error("{name}: holds samples, which have a weight and no clocks: leave --clock out, or see --weight")]
    SamplesHaveNoClocks {
        /// The path as given.
        name: String,
    },
    /// The time of a sample is not known.
    #[error("{name}: does not say how often its samples were taken: leave --weight time out")]
    NoSampleTimes {
        /// The path as given.
        name: String,
    },
    /// A directory with symbols cannot be read, or has none.
    #[error("--symbols {0}")]
    Symbols(#[source] io::Error),
    /// The directories hold no file with symbols.
    #[error(
        "--symbols: none of the files there is an ELF file or a symbol file of Breakpad: name the directory with \
         the libraries as they were built"
    )]
    NoSymbols,
    /// Symbols were given for a method trace.
    #[error("{name}: holds method calls, which have their names: leave --symbols out")]
    SymbolsForCalls {
        /// The path as given.
        name: String,
    },
    /// The mapping file cannot be used.
    #[error("{name}: {source}")]
    Mapping {
        /// The path as given.
        name: String,
        /// The reason.
        source: MappingError,
    },
    /// The trace was not recorded with the requested clock.
    #[error("{name}: has no such clock; it was recorded with {recorded}: leave --clock out")]
    NoSuchClock {
        /// The path as given.
        name: String,
        /// The clocks that the trace has.
        recorded: &'static str,
    },
    /// The trace has no times, and the request needs them.
    #[error(
        "{name}: holds the order of calls but no times, which {purpose} needs; `tracebridge profile` counts its calls"
    )]
    NoTimes {
        /// The path as given.
        name: String,
        /// The part of the request.
        purpose: &'static str,
    },
    /// An output file was requested, and nothing that was selected would be in it.
    #[error("{name}: {reason}")]
    NothingToWrite {
        /// The path as given.
        name: String,
        /// The lack of the selection, with the option that shows what there is.
        reason: String,
    },
    /// No thread of the trace has one of the requested names.
    #[error("{name}: no thread is called {requested}; --by thread lists them")]
    NoSuchThread {
        /// The path as given.
        name: String,
        /// The requested names.
        requested: String,
    },
    /// The requested window of time is empty.
    #[error("--from must lie before --to")]
    EmptyWindow,
    /// A comparison was requested with more than one later trace.
    #[error("--against compares one trace with another: name one trace beside it")]
    SeveralTracesToCompare,
    /// An output file was requested for more than one trace.
    #[error("an output file holds one trace: name one, or print a table, JSON or CSV of several")]
    SeveralTracesInOneFile,
    /// A comparison was requested in an output that has no form for it.
    #[error("--against goes with a table, --json, --csv, --folded and --flamegraph")]
    NoComparisonInThisOutput,
    /// `dmtracedump` was given more than one trace.
    #[error("one trace at a time; -d OTHER compares two")]
    SeveralTracesToDump,
    /// An output is an input, or is named twice.
    #[error(transparent)]
    SameFile(#[from] SameFile),
    /// An output file cannot be written.
    #[error("{path}: {source}")]
    WriteFile {
        /// The path as given.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The results cannot be printed.
    #[error("standard output: {0}")]
    Print(#[source] io::Error),
}

impl ProfileError {
    /// Whether the request contradicts itself, whatever the files hold.
    pub fn is_usage(&self) -> bool {
        use ProfileError::{
            EmptyWindow, NoComparisonInThisOutput, NotTraceAndSamples, SeveralTracesInOneFile,
            SeveralTracesToCompare,
        };
        matches!(
            self,
            EmptyWindow
                | NoComparisonInThisOutput
                | NotTraceAndSamples
                | SeveralTracesInOneFile
                | SeveralTracesToCompare
        )
    }

    /// The error of writing `path`.
    pub(super) fn write_file(path: &Path, source: io::Error) -> ProfileError {
        ProfileError::WriteFile { path: path.display().to_string(), source }
    }
}

/// The reason why Graphviz's `dot` draws no picture.
#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    /// The program is not there.
    #[error("Graphviz's dot is not installed (package graphviz)")]
    NotInstalled,
    /// The program cannot be run, or the graph cannot be written to its standard input.
    #[error("{0}")]
    Run(#[from] io::Error),
    /// The program has failed.
    #[error("Graphviz's dot failed: {0}")]
    Failed(ExitStatus),
    /// The program was ended because it took too long.
    #[error(
        "Graphviz's dot had not drawn the graph of {calls} calls after {} s: a higher --threshold leaves more of \
         them out",
        limit.as_secs()
    )]
    TooSlow {
        /// The time that the program had.
        limit: Duration,
        /// The number of arrows of the graph.
        calls: usize,
    },
    /// The program has ended without an error, and has written nothing.
    #[error("Graphviz's dot has drawn nothing")]
    Empty,
}

impl From<DrawError> for io::Error {
    fn from(error: DrawError) -> io::Error {
        match error {
            DrawError::Run(source) => source,
            other => io::Error::other(other),
        }
    }
}
