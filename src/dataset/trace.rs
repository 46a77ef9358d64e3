//! Turns the files of one trace into rows.

use std::io;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::day;
use super::error::DatasetError;
use super::method_rows::{self, MethodRowsError};
use crate::export::trace_tables::{self, LargeTables, Tabulated, TraceFacts};
use crate::formats::art_method::YEAR_2001_NS;
use crate::formats::input::Input;
use crate::formats::trace_dat::Release;
use crate::formats::unpack_budget::{UnpackLimit, names_limit};
use crate::formats::{InputSet, open_all};
use crate::tables::{Cell, PartFiles, StartUnknown, TableId, TraceRows};
use crate::text::file_name;
use crate::timeline::{self, MergeError, MergeOptions, MergeSummary};

/// How traces are taken.
#[derive(Debug, Clone, Copy, Default)]
pub struct TraceOptions<'a> {
    /// The large tables that get rows.
    pub large: LargeTables,
    /// Takes what can be read of damaged files.
    pub keep_damaged: bool,
    /// Keys and values for the table `tag`.
    pub tags: &'a [(String, String)],
    /// The user's limit on what each file may unpack to.
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
    /// The files are the reason: the sentence names them.
    Input(String),
    /// The dataset cannot be written.
    Dataset(DatasetError),
}

/// The result of looking at the files of a trace.
pub(super) enum Ingested {
    /// The dataset has the trace already.
    Known(String),
    /// A new trace.
    New(Box<IngestedTrace>),
}

/// The bytes that are hashed at once, and released again.
const HASH_STEP_BYTES: usize = 1 << 20;

/// The digits of an id: 128 bits.
pub(super) const ID_DIGITS: usize = 32;

/// Makes the rows of the trace in the files `paths`, unless `is_known` says that the dataset has its id.
/// The rows of a large trace go into files in a new directory in `scratch_parent`.
pub(super) fn ingest(
    paths: &[PathBuf],
    options: &TraceOptions<'_>,
    scratch_parent: &Path,
    is_known: &dyn Fn(&str) -> bool,
) -> Result<Ingested, Refusal> {
    let InputSet { inputs, omissions } =
        open_all(paths, options.unpack_limit).map_err(|error| input_error(&error))?;
    let id = trace_id(&inputs);
    if is_known(&id) {
        return Ok(Ingested::Known(id));
    }
    let source = TraceSource { paths, inputs: &inputs, id: &id, options, scratch_parent };
    let made = match source.rows(None) {
        Err(RowsError::StartUnknown) => {
            let (start, _) =
                timeline::extent(&inputs, &options.options).map_err(|error| input_error(&error))?;
            source.rows(Some(start))
        }
        made => made,
    };
    let mut made = made.map_err(|error| match error {
        RowsError::Refused(refusal) => refusal,
        RowsError::StartUnknown => Refusal::Input(format!("{}: {StartUnknown}", source.name())),
    })?;
    made.summary.report.notes.extend(omissions.iter().map(ToString::to_string));
    Ok(Ingested::New(Box::new(made)))
}

fn input_error(error: &dyn std::error::Error) -> Refusal {
    Refusal::Input(error.to_string())
}

/// The id of the trace in these inputs: a hash of their unpacked contents, whatever their names and their
/// order.
fn trace_id(inputs: &[Input]) -> String {
    let mut digests: Vec<[u8; 32]> = inputs.iter().map(digest).collect();
    digests.sort_unstable();
    hex_id(digests.iter().map(|digest| &digest[..]))
}

/// A hash of several strings of bytes, in hexadecimal digits.
pub(super) fn hex_id<'a>(parts: impl Iterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    HEXLOWER.encode(&hash.finalize()[..ID_DIGITS / 2])
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
    id: &'a str,
    options: &'a TraceOptions<'a>,
    scratch_parent: &'a Path,
}

enum RowsError {
    Refused(Refusal),
    StartUnknown,
}

impl From<Refusal> for RowsError {
    fn from(refusal: Refusal) -> RowsError {
        RowsError::Refused(refusal)
    }
}

impl TraceSource<'_> {
    /// The names of the files, for people.
    fn name(&self) -> String {
        let names = self.paths.iter().map(|path| path.display().to_string());
        names.map(|name| file_name(&name).to_owned()).collect::<Vec<_>>().join(" + ")
    }

    fn refused(&self, what: &str) -> Refusal {
        let names = self.inputs.iter().map(|input| input.name.as_str());
        Refusal::Input(format!("{}: {what}", names.collect::<Vec<_>>().join(", ")))
    }

    fn write_error(&self, error: io::Error) -> RowsError {
        match error {
            error if StartUnknown::is_in(&error) => RowsError::StartUnknown,
            // Only what is read is invalid: an input that brings more event types than memory should hold.
            error if error.kind() == io::ErrorKind::InvalidData => self.refused(&error.to_string()).into(),
            error => Refusal::Dataset(DatasetError::io(self.scratch_parent)(error)).into(),
        }
    }

    /// Makes the rows. `start` is where the trace begins, ns of its clock, if that is known.
    fn rows(&self, start: Option<u64>) -> Result<IngestedTrace, RowsError> {
        let mut rows = TraceRows::new(self.id, start, self.scratch_parent);
        let TraceOptions { options, large, .. } = self.options;
        let made = match trace_tables::tabulate(self.inputs, options, &mut rows, *large) {
            Ok(made) => made,
            Err(MergeError::Io(error)) => return Err(self.write_error(error)),
            Err(error) => return Err(input_error(&error).into()),
        };
        self.inputs.iter().try_for_each(Input::check_whole).map_err(|error| input_error(&error))?;
        let Tabulated { summary, head, threads, unmatched_asyncs } = made;
        if let Some(damage) = summary.report.damage.first()
            && !self.options.keep_damaged
        {
            let (offset, what) = (damage.offset, &damage.what);
            let cure = "--keep-damaged takes what can be read";
            let is = if names_limit(what) { "is too large" } else { "is damaged" };
            return Err(self.refused(&format!("{is} at byte {offset}: {what} ({cure})")).into());
        }
        let Some((head, first)) = head.zip(summary.report.first_ts) else {
            return Err(self.refused("holds no event and no call of a method").into());
        };
        rows.set_start(first);
        method_rows::push(self.inputs, &threads, &mut rows).map_err(|error| match error {
            MethodRowsError::Open(error) => RowsError::Refused(input_error(&error)),
            MethodRowsError::Write(error) => self.write_error(error),
        })?;
        let start_realtime =
            trace_tables::realtime(&head, summary.clock, first).filter(|ns| *ns > YEAR_2001_NS);
        let (day, day_from) = match start_realtime {
            Some(ns) => (day::of_realtime(ns), "wall clock"),
            None => (day::of_file(self.paths.first().map_or(Path::new(""), PathBuf::as_path)), "file"),
        };
        let facts = TraceFacts {
            name: &self.name(),
            head: &head,
            summary: &summary,
            start_realtime,
            day: &day,
            day_from,
            unmatched_asyncs,
            has_method_calls: self.options.large.method_calls,
        };
        let ended = self.push_ends(&mut rows, &facts).and_then(|()| rows.finish());
        let files = ended.map_err(|error| self.write_error(error))?;
        let bytes = self.inputs.iter().map(|input| input.size).sum();
        Ok(IngestedTrace { id: self.id.to_owned(), day, rows, files, bytes, summary })
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
