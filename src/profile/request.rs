//! A request for a profile: the inputs, the records that count, and the outputs to write.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::text_style::TextStyle;
use crate::formats::unpack_budget::UnpackLimit;

/// A request for a profile. Without an output file the profile is printed.
#[derive(Debug, Clone, Default)]
pub struct ProfileRequest {
    /// The method traces, each of which is profiled by itself. `NAME.key` includes `NAME.data`.
    pub traces: Vec<PathBuf>,
    /// An earlier trace to compare with.
    pub earlier: Option<PathBuf>,
    /// A mapping file of R8 or ProGuard.
    pub mapping: Option<PathBuf>,
    /// Directories with the symbols of functions that samples name by their address.
    pub symbols: Vec<PathBuf>,
    /// The user's limit on what each file may unpack to.
    pub unpack_limit: UnpackLimit,
    /// The clock to sort, draw and cut by: [`CPU`](crate::formats::art_method::CPU) or
    /// [`WALL`](crate::formats::art_method::WALL). `None` selects wall time where the trace has it, and
    /// thread-CPU time for flame graphs and call graphs.
    pub clock: Option<usize>,
    /// The event type whose samples are weighed, by its name. `None` selects the first that has samples of
    /// threads that run.
    pub event: Option<String>,
    /// The weight of a sample. `None` selects its period.
    pub weight: Option<SampleWeight>,
    /// The records that count.
    pub filter: RecordFilter,
    /// The rows.
    pub rows: RowRequest,
    /// Prints a call tree in place of rows.
    pub tree: Option<TreeDirection>,
    /// Names methods with their JVM descriptors in text. Without it text has Java types; JSON and CSV have
    /// the descriptors always.
    pub descriptors: bool,
    /// The least share of a method, percent: a call tree leaves out branches below this share of their
    /// thread's time, or of the time of all threads from the methods up; a call graph methods below this
    /// share of the whole time. `None` selects 1 for trees and 5 for graphs.
    pub threshold_percent: Option<f64>,
    /// The form of the printed results.
    pub form: PrintForm,
    /// The look of text.
    pub style: TextStyle,
    /// The output files.
    pub files: ProfileFiles,
}

/// Which records of a trace count.
#[derive(Debug, Clone, Default)]
pub struct RecordFilter {
    /// Parts of thread names, or whole thread ids; empty selects all threads.
    pub threads: Vec<String>,
    /// Start and end of the time that counts, ns since the trace's start.
    pub window_ns: Option<Range<u64>>,
}

/// Which rows are printed.
#[derive(Debug, Clone, Default)]
pub struct RowRequest {
    /// The kind of thing that one row stands for.
    pub kind: RowKind,
    /// The figure to sort by, largest first.
    pub sort: SortKey,
    /// The number of rows; 0 prints all. `None` prints 40 rows of a table and all rows of JSON and CSV.
    pub limit: Option<usize>,
    /// Prints only rows whose name contains this pattern, in which `*` stands for any text.
    pub name_pattern: Option<String>,
    /// Prints the callers and callees of each method.
    pub relations: bool,
}

/// The kinds of rows that a profile can have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RowKind {
    /// One method; overloads have rows of their own.
    #[default]
    Method,
    /// All methods of a class.
    Class,
    /// All methods of a package, without the packages inside.
    Package,
    /// One thread.
    Thread,
}

impl RowKind {
    /// The kind of thing that one row stands for, for people.
    pub(super) fn name(self) -> &'static str {
        match self {
            RowKind::Method => "method",
            RowKind::Class => "class",
            RowKind::Package => "package",
            RowKind::Thread => "thread",
        }
    }
}

/// The figure that rows are sorted by, largest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SortKey {
    /// Exclusive time: without the calls inside.
    #[default]
    Exclusive,
    /// Inclusive time: with the calls inside.
    Inclusive,
    /// Number of calls, with recursive calls.
    Calls,
}

/// The weight of a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SampleWeight {
    /// Its period: ns of `cpu-clock` and `task-clock`, else the number of events since the sample before.
    #[default]
    Period,
    /// 1.
    Count,
    /// The time between two samples, ns: the period of an event type that measures time, else what the
    /// requested frequency makes.
    Time,
}

/// The direction of a printed call tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeDirection {
    /// From the threads down to the calls.
    TopDown,
    /// From the methods that take the time up to their callers.
    BottomUp,
}

/// The form of the printed results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PrintForm {
    /// A table or an indented tree for people.
    #[default]
    Text,
    /// JSON, times in ns.
    Json,
    /// CSV, times in ns. A call tree has no CSV form.
    Csv,
}

/// The output files; the path `-` prints a file.
#[derive(Debug, Clone, Default)]
pub struct ProfileFiles {
    /// Folded stacks.
    pub folded: Option<PathBuf>,
    /// A flame graph (SVG).
    pub flamegraph: Option<PathBuf>,
    /// The packages whose methods a flame graph shows in the app's colour; empty to guess them.
    pub app: Vec<String>,
    /// Takes all threads together in folded stacks and flame graphs.
    pub merge_threads: bool,
    /// The call graph in Graphviz's language.
    pub dot: Option<PathBuf>,
    /// The call graph drawn as PNG.
    pub png: Option<PathBuf>,
    /// The call graph drawn as SVG.
    pub svg: Option<PathBuf>,
    /// A file for speedscope.app.
    pub speedscope: Option<PathBuf>,
    /// A file for profiler.firefox.com.
    pub firefox: Option<PathBuf>,
    /// A file for pprof, packed with gzip.
    pub pprof: Option<PathBuf>,
}

impl ProfileFiles {
    /// Whether any file is requested.
    pub(super) fn any(&self) -> bool {
        !self.paths().is_empty()
    }

    /// The paths of the requested files.
    pub(super) fn paths(&self) -> Vec<&Path> {
        let ProfileFiles {
            folded,
            flamegraph,
            app: _,
            merge_threads: _,
            dot,
            png,
            svg,
            speedscope,
            firefox,
            pprof,
        } = self;
        [folded, flamegraph, dot, png, svg, speedscope, firefox, pprof]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
            .collect()
    }
}
