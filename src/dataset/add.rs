//! Adds traces to a dataset: several at once, each whole or not at all; and the traces of other datasets.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::check::check_part;
use super::dataset_dir::{DatasetDir, LockedDataset, Part, day_of_file, make_parent, part_name};
use super::error::DatasetError;
use super::open_parts::{OpenParts, RejectedInput};
use super::rewrite::{KeptTag, add_tags, compact, copy_rows, private_copy};
use super::trace::{Ingested, IngestedTrace, Refusal, TraceOptions, ingest};
use crate::file_access;
use crate::output_file::ScratchDir;
use crate::tables::{PartFiles, TABLES, TableFile};
use crate::workers::{Failure, InOrder, OrderedSink, run_parts, worker_count};

/// The largest number of traces that are read at once: each may take memory for its rows.
const MAX_WORKERS: usize = 8;

/// A request to add traces.
#[derive(Debug, Clone)]
pub struct AddRequest<'a> {
    /// The dataset's directory, which is made where it is missing.
    pub dataset: &'a Path,
    /// The files of each trace.
    pub traces: &'a [Vec<PathBuf>],
    /// Other datasets, whose traces are added with their tags.
    pub datasets: &'a [PathBuf],
    /// How the files are taken.
    pub options: TraceOptions<'a>,
}

/// The numbers of traces that were added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AddSummary {
    /// Traces that are new.
    pub added: usize,
    /// Traces that the dataset had already.
    pub known: usize,
    /// Those among them that got a tag.
    pub tagged: usize,
    /// Traces whose files were rejected.
    pub rejected: usize,
    /// Added traces that miss data, damaged places aside.
    pub lossy: usize,
    /// Parts that were published.
    pub parts: usize,
    /// Size of their files, bytes.
    pub bytes: u64,
}

/// Something that happens while traces are added, in the order of the traces.
#[derive(Debug)]
pub enum AddedEvent<'a> {
    /// Another process writes to the dataset; this one waits.
    Waits,
    /// The files of a trace are rejected for this reason, which names them.
    Rejected(&'a str),
    /// An added trace misses data: the trace's files, and the line of the account.
    Lost(&'a str, &'a str),
    /// A trace that the dataset has keeps the value of a tag that it has.
    KeepsTag(&'a KeptTag),
}

/// Adds traces to a dataset. A trace that the dataset has gets the tags whose keys it lacks, and is left as
/// it is otherwise. Files that cannot be taken are reported to `report`, and named in the table `rejected`.
/// At the end small parts are combined.
///
/// # Errors
/// [`DatasetError`] where the dataset cannot be written. What was published until then stays.
pub fn add(
    request: &AddRequest<'_>,
    report: &mut (dyn FnMut(AddedEvent<'_>) + Send),
) -> Result<AddSummary, DatasetError> {
    let locked = LockedDataset::lock(request.dataset, &mut || report(AddedEvent::Waits))?;
    let mut known = locked.dir.ids()?;
    let mut adopted = AddSummary::default();
    for dataset in request.datasets {
        adopt(&DatasetDir::open(dataset)?, &locked.dir, &mut known, &mut adopted, report)?;
    }
    let known = Mutex::new(known);
    let results = InOrder::new(Writer {
        known: &known,
        known_ids: HashSet::new(),
        parts: OpenParts::new(&locked.dir),
        summary: adopted,
        report,
    });
    let workers = worker_count(MAX_WORKERS).min(request.traces.len());
    let next = AtomicUsize::new(0);
    let work = |_: &()| {
        // The other workers would wait for a trace whose worker has panicked.
        let _guard = results.guard();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(paths) = request.traces.get(number) else { return };
            let is_known = |id: &str| lock(&known).contains(id);
            let result = ingest(paths, &request.options, locked.dir.path(), &is_known);
            // Not so far ahead of the next one to write that too many would be held in memory.
            let goes_on = results.wait_for_turn(number, workers)
                && results.deliver(number, IngestResult { paths, result });
            if !goes_on {
                return;
            }
        }
    };
    run_parts(&vec![(); workers], work);
    let mut writer = results.into_sink(request.traces.len()).map_err(|failure| match failure {
        Failure::Sink(error) => error,
        Failure::Panicked => DatasetError::Panicked,
    })?;
    writer.parts.finish()?;
    writer.summary.parts += writer.parts.parts;
    writer.summary.bytes += writer.parts.bytes;
    let tagged = add_tags(&locked.dir, &writer.known_ids, request.options.tags)?;
    writer.summary.tagged = tagged.traces;
    tagged.kept.iter().for_each(|kept| (writer.report)(AddedEvent::KeepsTag(kept)));
    compact(&locked.dir)?;
    Ok(writer.summary)
}

fn lock(known: &Mutex<HashSet<String>>) -> MutexGuard<'_, HashSet<String>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A trace whose rows are made, or why they are not.
struct IngestResult<'a> {
    paths: &'a [PathBuf],
    result: Result<Ingested, Refusal>,
}

/// Writes the traces in the order of the request, so that the same request always makes the same dataset.
struct Writer<'a> {
    /// The ids of the traces and of the rejected inputs.
    known: &'a Mutex<HashSet<String>>,
    /// The ids of the traces that the dataset had.
    known_ids: HashSet<String>,
    parts: OpenParts<'a>,
    summary: AddSummary,
    report: &'a mut (dyn FnMut(AddedEvent<'_>) + Send),
}

impl<'a> OrderedSink for Writer<'a> {
    type Item = IngestResult<'a>;
    type Error = DatasetError;

    fn take(&mut self, trace: IngestResult<'a>) -> Result<(), DatasetError> {
        match trace.result {
            Ok(Ingested::New(new)) if self.add_known(new.id.clone()) => {
                self.summary.added += 1;
                self.report_losses(
                    &trace.paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
                    &new,
                );
                self.parts.add(*new)
            }
            // Another trace of this request may have the same contents.
            Ok(Ingested::New(_)) => {
                self.summary.known += 1;
                Ok(())
            }
            Ok(Ingested::Known(id)) => {
                self.summary.known += 1;
                self.known_ids.insert(id);
                Ok(())
            }
            Err(Refusal::Files(refused)) => {
                let reason = refused.to_string();
                self.summary.rejected += 1;
                (self.report)(AddedEvent::Rejected(&reason));
                trace.paths.iter().try_for_each(|path| self.reject(path, &reason))
            }
            Err(Refusal::Dataset(error)) => Err(error),
        }
    }
}

impl Writer<'_> {
    /// Adds an id. Returns whether it is new.
    fn add_known(&self, id: String) -> bool {
        lock(self.known).insert(id)
    }

    /// Reports the data that a new trace misses.
    fn report_losses(&mut self, files: &[String], new: &IngestedTrace) {
        let account = new.summary.report.account();
        self.summary.lossy += usize::from(!account.is_empty());
        for loss in account.iter() {
            (self.report)(AddedEvent::Lost(&files.join(" + "), &loss.to_string()));
        }
    }

    fn reject(&mut self, path: &Path, reason: &str) -> Result<(), DatasetError> {
        let bytes =
            file_access::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|meta| meta.len());
        let input = RejectedInput { path, bytes, reason };
        if !self.add_known(input.id()) {
            return Ok(());
        }
        self.parts.reject(&day_of_file(path), &input)
    }
}

/// Adds the traces and rejected inputs of the dataset `from` that `to` has not, with their tags, and their
/// ids to `known`. Somebody else may have made that dataset, and may write to it meanwhile: each part is
/// copied, the copy is read whole, and only then it is taken. A part with a fault is rejected and reported to
/// `report`.
///
/// # Errors
/// [`DatasetError`] where `to` cannot be written, or `from` cannot be listed. What was published until then
/// stays.
fn adopt(
    from: &DatasetDir,
    to: &DatasetDir,
    known: &mut HashSet<String>,
    summary: &mut AddSummary,
    report: &mut dyn FnMut(AddedEvent<'_>),
) -> Result<(), DatasetError> {
    for part in from.parts()? {
        let mut reject = |fault: &str| {
            summary.rejected += 1;
            report(AddedEvent::Rejected(&format!("{}: is not added: {fault}", part.dir.display())));
        };
        if !is_day(part.day_name()) {
            reject("its directory is not named after a day");
            continue;
        }
        // Before anything is copied: the sizes of a file that is no table may be anything.
        if let Err(fault) = TABLES.iter().try_for_each(|table| TableFile::open(&part.dir, table).map(drop)) {
            reject(&fault.to_string());
            continue;
        }
        let copy = match private_copy(&part, to.path()) {
            Ok(copy) => copy,
            Err(error) => return Err(DatasetError::io(to.path())(error)),
        };
        let copied = Part { dir: copy.path().to_owned() };
        let checked = check_part(&copied);
        if let Some(fault) = checked.faults.first() {
            // The fault names a file of the copy, which is gone when somebody reads this.
            reject(&fault.replace(&*copied.dir.to_string_lossy(), &part.dir.to_string_lossy()));
            continue;
        }
        let ids = copied.all_ids()?;
        let new: HashSet<String> = ids.iter().filter(|id| !known.contains(*id)).cloned().collect();
        let new_traces = checked.traces.iter().filter(|id| !known.contains(*id)).count();
        summary.added += new_traces;
        summary.known += checked.traces.len() - new_traces;
        if new.is_empty() {
            continue;
        }
        let target = to.path().join(part.day_name()).join(part_name(new.iter().cloned().collect()));
        summary.bytes += publish(copy, &copied, &new, ids.len(), &target, to)?;
        summary.parts += 1;
        known.extend(new);
    }
    Ok(())
}

/// Whether a directory is named after a day: `day=2026-11-22`.
fn is_day(name: &OsStr) -> bool {
    let day = name.to_str().and_then(|name| name.strip_prefix("day=")).unwrap_or_default();
    day.len() == "2026-11-22".len() && day.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// Publishes the checked copy of a part, or of its `all` ids the `new` ones, as `target`. Returns the size
/// of the files, bytes.
fn publish(
    copy: ScratchDir,
    copied: &Part,
    new: &HashSet<String>,
    all: usize,
    target: &Path,
    to: &DatasetDir,
) -> Result<u64, DatasetError> {
    if new.len() == all {
        let bytes = copied.bytes()?;
        make_parent(target).and_then(|()| copy.publish(target)).map_err(DatasetError::io(target))?;
        return Ok(bytes);
    }
    let mut files = PartFiles::create(to.path()).map_err(DatasetError::io(to.path()))?;
    copy_rows(std::slice::from_ref(copied), &mut files, |id| new.contains(id))?;
    make_parent(target).and_then(|()| files.publish(target)).map_err(DatasetError::io(target))
}
