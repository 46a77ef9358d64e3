//! The arguments of each tool: from their types come the schemas that a client reads.

use schemars::JsonSchema;
use serde::Deserialize;

/// The files of one trace.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct FilesArguments {
    /// The files of one trace: a recording, and its method trace where there is one. Paths are relative to
    /// the server's first directory; `archive.zip//member` names a file in an archive
    pub files: Vec<String>,
}

/// A question about the causes of a trace's time. Without one it is about the first launch, else about late
/// frames, else about the longest slices of a main thread.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct QuestionArguments {
    /// A launch: its number (1 is the first), or the package of which all launches are meant
    pub launch: Option<String>,
    /// A frame's number, or `late` for all late frames
    pub frame: Option<String>,
    /// The slices of this name, or whose name contains it
    pub slice: Option<String>,
    /// The calls of this method (`package.Class.method`, or a part of it)
    pub method: Option<String>,
    /// A stretch of this thread's time: its name or number
    pub thread: Option<String>,
    /// With `thread`: the begin, after the begin of the trace (`1.5s`, `200ms`)
    pub from: Option<String>,
    /// With `thread`: the end, after the begin of the trace
    pub to: Option<String>,
}

/// The arguments of `why`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct WhyArguments {
    #[serde(flatten)]
    pub files: FilesArguments,
    #[serde(flatten)]
    pub question: QuestionArguments,
}

/// The arguments of `why_against`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct WhyAgainstArguments {
    /// The files of the newer runs; files of one directory whose names differ in their endings alone are one
    /// run
    pub new: Vec<String>,
    /// The files of the older runs
    pub old: Vec<String>,
    #[serde(flatten)]
    pub question: QuestionArguments,
}

/// The arguments of `profile`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ProfileArguments {
    /// The method trace or the samples
    pub file: String,
    /// Only this thread
    pub thread: Option<String>,
    /// The callers and callees of the methods whose name fits this pattern (`com.example.*`), in place of the
    /// methods that took longest
    pub method: Option<String>,
    /// `method` (the default), `class`, `package` or `thread`
    pub by: Option<String>,
    /// `exclusive` (the default: without what a method calls), `inclusive` or `calls`
    pub sort: Option<String>,
    /// `wall` (the default) or `cpu`
    pub clock: Option<String>,
    /// As many rows as this [default: 20]
    pub top: Option<u32>,
    /// R8's or ProGuard's mapping.txt
    pub mapping: Option<String>,
}

/// The arguments of `slices` and `thread_states`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TableArguments {
    #[serde(flatten)]
    pub files: FilesArguments,
    /// Of `slices`: a part of their names
    pub name: Option<String>,
    /// Of `slices`: calls of methods in place of slices
    #[serde(default)]
    pub methods: bool,
    /// Only the threads of this name or number
    pub thread: Option<String>,
    /// Only the threads of processes whose name contains this
    pub process: Option<String>,
    /// The begin, after the begin of the trace (`1.5s`, `200ms`)
    pub from: Option<String>,
    /// The end, after the begin of the trace
    pub to: Option<String>,
}

/// The arguments of `query`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct QueryArguments {
    /// The directory of a dataset
    pub dataset: String,
    /// One SELECT of DuckDB's SQL over the dataset's tables, which tracebridge://docs/dataset.md describes
    pub sql: String,
}

/// The arguments of `gate`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct GateArguments {
    /// The runs to compare with: files, directories of files, or datasets
    pub baseline: Vec<String>,
    /// The runs to judge
    pub candidate: Vec<String>,
    /// Conditions such as `launch.total > +3%` or `slice.inflate* > +2ms`
    pub fail_if: Vec<String>,
    /// Of a baseline that is a dataset: tags such as `build=1233`
    #[serde(default)]
    pub baseline_tags: Vec<String>,
    /// Of a candidate that is a dataset: tags such as `build=1234`
    #[serde(default)]
    pub candidate_tags: Vec<String>,
}

/// The arguments of `report`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ReportArguments {
    #[serde(flatten)]
    pub files: FilesArguments,
    /// The page to write, which must not be there yet: `slow-start.html`
    pub output: String,
    /// The files of an older run to compare with
    #[serde(default)]
    pub against: Vec<String>,
}

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct NoArguments {}

/// The device that a tool works on.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct DeviceArguments {
    /// The device's serial; needed where several are attached
    pub serial: Option<String>,
}

/// The arguments of `record`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct RecordArguments {
    #[serde(flatten)]
    pub device: DeviceArguments,
    /// Categories (`sched`, `gfx`, `view`, …; `doctor` says which the device has) [default: sched]
    #[serde(default)]
    pub categories: Vec<String>,
    /// The package whose markers are recorded, too
    pub app: Option<String>,
    /// How long, such as `5s`; 60 s at most
    pub time: String,
    /// The recording to write, which must not be there yet: `scroll.dat`, `scroll.html`
    pub output: String,
}

/// The arguments of `launch`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct LaunchArguments {
    #[serde(flatten)]
    pub device: DeviceArguments,
    /// The app's package
    pub package: String,
    /// How often [default: 1], 20 at most
    pub runs: Option<u32>,
    /// Whether the process stays, so that the start is a warm one
    #[serde(default)]
    pub warm: bool,
    /// The directory or file to write, which must not be there yet: `start.html`
    pub output: String,
}

/// How large the answer may be, and how long it may take: arguments that every tool has.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct AnswerArguments {
    /// The most bytes of the answer [default: 4000, at most 64000]
    pub max_bytes: Option<usize>,
    /// The most seconds that the answer may take [default: 30, at most 600]
    pub timeout_s: Option<u64>,
}
