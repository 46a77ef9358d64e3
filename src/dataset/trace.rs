//! Turns the files of one trace into rows: for a dataset, and for `convert IN -o x.parquet`, which writes the
//! tables of one trace to a directory of that name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::dataset_dir::{day_of_file, day_of_realtime, hex_id, make_parent};
use super::error::{DatasetError, RefusedTrace};
use super::method_rows::{self, MethodRowsError};
use crate::clock::Timestamp;
use crate::export::runs::benchmark_times;
use crate::export::trace_tables::{self, LargeTables, Tabulated, TraceFacts};
use crate::file_access;
use crate::formats::art_method::YEAR_2001_NS;
use crate::formats::input::Input;
use crate::formats::unpack_budget::UnpackLimit;
use crate::formats::{InputSet, Release, open_all};
use crate::output_file::dir_of;
use crate::tables::{Cell, PartFiles, StartUnknown, TABLES, TableId, TraceRows};
use crate::text::file_name;
use crate::timeline::{self, MergeError, MergeOptions, MergeSummary};

/// How traces are taken.
#[derive(Debug, Clone, Default)]
pub struct TraceOptions<'a> {
    /// The large tables that get rows.
    pub large: LargeTables,
    /// Takes what can be read of damaged files.
    pub keep_damaged: bool,
    /// Keys and values for the table `tag`.
    pub tags: &'a [(String, String)],
    /// The user's limit on what the files of each trace may unpack to.
    pub unpack_limit: UnpackLimit,
    /// The user's decisions about the place of method traces.
    pub options: MergeOptions,
}

/// A trace whose rows are made.
pub(super) struct IngestedTrace {
    /// The trace's id.
    pub id: String,
    /// The day of its start.
    pub day: String,
    /// The rows that are in memory.
    pub rows: TraceRows,
    /// The files of a trace that is too large for memory; its rows are in them.
    pub files: Option<PartFiles>,
    /// The size of its inputs, bytes.
    pub bytes: u64,
    /// The counts, losses and verdicts.
    pub summary: MergeSummary,
}

/// Why a trace is not taken.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The files are the reason.
    Files(RefusedTrace),
    /// The dataset cannot be written.
    Dataset(DatasetError),
}

/// A trace that was read, unless the dataset has it.
pub(super) enum Ingested {
    /// The dataset has the trace with this id already.
    Known(String),
    /// A new trace.
    New(Box<IngestedTrace>),
}

/// The bytes that are hashed at once, and released again.
const HASH_STEP_BYTES: usize = 1 << 20;

/// Makes the rows of the trace in the files `paths`, unless `is_known` says that the dataset has its id.
/// The rows of a large trace go into files in a new directory in `scratch_parent`.
pub(super) fn ingest(
    paths: &[PathBuf],
    options: &TraceOptions<'_>,
    scratch_parent: &Path,
    is_known: &dyn Fn(&str) -> bool,
) -> Result<Ingested, Refusal> {
    let files = open_all(paths, &options.unpack_limit.afresh()).map_err(RefusedTrace::from)?;
    let id = trace_id(&files.inputs);
    if is_known(&id) {
        return Ok(Ingested::Known(id));
    }
    Ok(Ingested::New(Box::new(make_rows(paths, &files, id, options, scratch_parent)?)))
}

/// Makes the rows of the trace with this id in `files`, which were opened from `paths`.
fn make_rows(
    paths: &[PathBuf],
    files: &InputSet,
    id: String,
    options: &TraceOptions<'_>,
    scratch_parent: &Path,
) -> Result<IngestedTrace, Refusal> {
    let inputs = &files.inputs;
    let source = TraceSource { paths, inputs, id, options, scratch_parent };
    let made = match source.rows(None) {
        Err(RowsError::StartUnknown) => {
            let (start, _) = timeline::extent(inputs, &options.options).map_err(RefusedTrace::from)?;
            source.rows(Some(start))
        }
        made => made,
    };
    let mut made = made.map_err(|error| match error {
        RowsError::Refused(refusal) => refusal,
        RowsError::StartUnknown => RefusedTrace::StartUnknown { files: source.name() }.into(),
    })?;
    made.summary.report.notes.extend(files.omissions.iter().map(ToString::to_string));
    Ok(made)
}

/// The id of the trace in these inputs: a hash of their unpacked contents, whatever their names and their
/// order.
fn trace_id(inputs: &[Input]) -> String {
    let mut digests: Vec<[u8; 32]> = inputs.iter().map(digest).collect();
    digests.sort_unstable();
    hex_id(digests.iter().map(|digest| &digest[..]))
}

fn digest(input: &Input) -> [u8; 32] {
    let mut hash = Sha256::new();
    // An offset from an archive decides where a method trace lies.
    hash.update(input.offset_ns.unwrap_or(0).to_le_bytes());
    let mut at = 0;
    for step in input.chunks(HASH_STEP_BYTES) {
        hash.update(step);
        input.release(at..at + step.len());
        at += step.len();
    }
    hash.finalize().into()
}

/// The files of a trace, open.
struct TraceSource<'a> {
    paths: &'a [PathBuf],
    inputs: &'a [Input],
    id: String,
    options: &'a TraceOptions<'a>,
    scratch_parent: &'a Path,
}

impl From<RefusedTrace> for Refusal {
    fn from(refused: RefusedTrace) -> Refusal {
        Refusal::Files(refused)
    }
}

enum RowsError {
    Refused(Refusal),
    StartUnknown,
}

impl From<RefusedTrace> for RowsError {
    fn from(refused: RefusedTrace) -> RowsError {
        RowsError::Refused(refused.into())
    }
}

impl TraceSource<'_> {
    /// The names of the files, for people.
    fn name(&self) -> String {
        let names = self.paths.iter().map(|path| path.display().to_string());
        names.map(|name| file_name(&name).to_owned()).collect::<Vec<_>>().join(" + ")
    }

    /// The inputs in the files, for people.
    fn input_names(&self) -> String {
        let names = self.inputs.iter().map(|input| input.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    }

    fn write_error(&self, error: io::Error) -> RowsError {
        match error {
            error if StartUnknown::is_in(&error) => RowsError::StartUnknown,
            // Only what is read is invalid: an input that brings more event types than memory should hold.
            source if source.kind() == io::ErrorKind::InvalidData => {
                RefusedTrace::Unreadable { files: self.input_names(), source }.into()
            }
            error => RowsError::Refused(Refusal::Dataset(DatasetError::io(self.scratch_parent)(error))),
        }
    }

    /// Makes the rows. `start` is where the trace begins, in its clock, if that is known.
    fn rows(&self, start: Option<Timestamp>) -> Result<IngestedTrace, RowsError> {
        let mut rows = TraceRows::new(&self.id, start, self.scratch_parent);
        let TraceOptions { options, large, .. } = self.options;
        let metrics = benchmark_times(self.paths)
            .map_err(|source| RefusedTrace::Unreadable { files: self.input_names(), source })?;
        let made = match trace_tables::tabulate(self.inputs, options, &mut rows, *large, metrics) {
            Ok(made) => made,
            Err(MergeError::Io(error)) => return Err(self.write_error(error)),
            Err(error) => return Err(RefusedTrace::Merge(error).into()),
        };
        self.inputs.iter().try_for_each(Input::check_whole).map_err(RefusedTrace::from)?;
        let Tabulated { summary, head, threads } = made;
        if let Some(damage) = summary.report.damage.first()
            && !self.options.keep_damaged
        {
            let files = self.input_names();
            let refused = RefusedTrace::Damaged { files, offset: damage.offset, what: damage.what.clone() };
            return Err(refused.into());
        }
        let Some((head, first)) = head.zip(summary.report.first_ts) else {
            return Err(RefusedTrace::Empty { files: self.input_names() }.into());
        };
        rows.set_start(first);
        method_rows::push(self.inputs, &threads, &mut rows).map_err(|error| match error {
            MethodRowsError::Open(error) => RefusedTrace::Open(error).into(),
            MethodRowsError::Write(error) => self.write_error(error),
        })?;
        let start_realtime =
            trace_tables::realtime(&head, summary.clock, first).filter(|ts| ts.0 > YEAR_2001_NS);
        let (day, day_from) = match start_realtime {
            Some(ts) => (day_of_realtime(ts), "wall clock"),
            None => (day_of_file(self.paths.first().map_or(Path::new(""), PathBuf::as_path)), "file"),
        };
        let facts = TraceFacts {
            name: &self.name(),
            head: &head,
            summary: &summary,
            start_realtime,
            day: &day,
            day_from,
            has_method_calls: self.options.large.method_calls,
        };
        let ended = self.push_ends(&mut rows, &facts).and_then(|()| rows.finish());
        let files = ended.map_err(|error| self.write_error(error))?;
        let bytes = self.inputs.iter().map(|input| input.size).sum();
        Ok(IngestedTrace { id: self.id.clone(), day, rows, files, bytes, summary })
    }

    /// Makes the rows that each trace has at its end.
    fn push_ends(&self, rows: &mut TraceRows, facts: &TraceFacts<'_>) -> io::Result<()> {
        for (number, input) in facts.summary.inputs.iter().enumerate() {
            let path = self.paths.iter().find(|path| path.display().to_string() == input.name);
            let bytes =
                path.filter(|path| path.to_str().is_none()).map(|path| path.as_os_str().as_encoded_bytes());
            trace_tables::push_source(rows, number, input, bytes)?;
        }
        for (key, value) in self.options.tags {
            rows.push(TableId::Tag, [key.into(), Cell::from(value)])?;
        }
        trace_tables::push_trace(rows, facts)
    }
}

/// The tables of a trace that were written.
#[derive(Debug)]
pub struct Exported {
    /// Size of the files, bytes.
    pub bytes: u64,
    /// The summary of the timeline.
    pub summary: MergeSummary,
}

/// Writes the tables of the trace in `inputs` to the directory `output`. The directory appears when it is
/// complete, and replaces one of the same kind.
///
/// # Errors
/// [`DatasetError`]; `output` is then as it was.
pub fn export(
    inputs: &[PathBuf],
    output: &Path,
    options: &TraceOptions<'_>,
) -> Result<Exported, DatasetError> {
    let replaces = fs::symlink_metadata(output).is_ok();
    if replaces && !holds_tables(output) {
        return Err(DatasetError::NoTables { path: output.display().to_string() });
    }
    make_parent(output).map_err(DatasetError::io(output))?;
    let parent = dir_of(output);
    let opened = open_all(inputs, &options.unpack_limit).map_err(RefusedTrace::from)?;
    let id = trace_id(&opened.inputs);
    let made = make_rows(inputs, &opened, id, options, parent);
    let IngestedTrace { rows, files, summary, .. } = made.map_err(|refusal| match refusal {
        Refusal::Files(refused) => DatasetError::Refused(refused),
        Refusal::Dataset(error) => error,
    })?;
    let publish = || -> io::Result<u64> {
        let files = match files {
            Some(files) => files,
            None => {
                let mut files = PartFiles::create(parent)?;
                rows.write_to_part(&mut files)?;
                files
            }
        };
        if replaces { files.publish_over(output) } else { files.publish(output) }
    };
    Ok(Exported { bytes: publish().map_err(DatasetError::io(output))?, summary })
}

/// Whether a directory holds tables and nothing else.
fn holds_tables(dir: &Path) -> bool {
    let Ok(entries) = file_access::entries(dir) else { return false };
    let entries: Vec<PathBuf> = entries.flatten().collect();
    let is_table = |entry: &PathBuf| TABLES.iter().any(|table| entry.ends_with(table.file_name()));
    !entries.is_empty() && entries.iter().all(is_table)
}
