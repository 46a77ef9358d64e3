//! Adds traces to a dataset: several at once, each whole or not at all.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::add_summary::{AddSummary, AddedEvent};
use super::adopt::adopt;
use super::batches::{Batches, RejectedInput};
use super::compact::compact;
use super::day;
use super::error::DatasetError;
use super::place::{Place, WritablePlace};
use super::trace::{Ingested, Refusal, TraceOptions, ingest};
use crate::workers::{Collector, Failure, InOrder, run_parts, worker_count};

/// The largest number of traces that are read at once: each may take memory for its rows.
const MAX_WORKERS: usize = 8;

/// A request to add traces.
#[derive(Debug, Clone, Copy)]
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

/// Adds traces to a dataset. A trace that the dataset has is left as it is. Files that cannot be taken are
/// reported to `report`, and named in the table `rejected`. At the end small parts are combined.
///
/// # Errors
/// [`DatasetError`] where the dataset cannot be written. What was published until then stays.
pub fn add(
    request: &AddRequest<'_>,
    report: &mut (dyn FnMut(AddedEvent<'_>) + Send),
) -> Result<AddSummary, DatasetError> {
    let writable = WritablePlace::lock(request.dataset, &mut || report(AddedEvent::Waits))?;
    let mut known = writable.place.ids()?;
    let mut adopted = AddSummary::default();
    for dataset in request.datasets {
        adopt(&Place::open(dataset)?, &writable.place, &mut known, &mut adopted, report)?;
    }
    let known = Mutex::new(known);
    let results = InOrder::new(Writer {
        known: &known,
        batches: Batches::new(&writable.place),
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
            let result = ingest(paths, &request.options, writable.place.dir(), &is_known);
            // Not so far ahead of the next one to write that too many would be held in memory.
            let goes_on = results.wait_for_turn(number, workers)
                && results.deliver(number, IngestedTrace { paths, result });
            if !goes_on {
                return;
            }
        }
    };
    run_parts(&vec![(); workers], work);
    let mut writer = results.into_collector(request.traces.len()).map_err(|failure| match failure {
        Failure::Collector(error) => error,
        panicked @ Failure::Panicked => DatasetError::Input(panicked.to_string()),
    })?;
    writer.batches.finish()?;
    writer.summary.parts += writer.batches.parts;
    writer.summary.bytes += writer.batches.bytes;
    compact(&writable.place)?;
    Ok(writer.summary)
}

fn lock(known: &Mutex<HashSet<String>>) -> MutexGuard<'_, HashSet<String>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A trace whose rows are made, or why they are not.
struct IngestedTrace<'a> {
    paths: &'a [PathBuf],
    result: Result<Ingested, Refusal>,
}

/// Writes the traces in the order of the request, so that the same request always makes the same dataset.
struct Writer<'a> {
    /// The ids of the traces and of the rejected inputs.
    known: &'a Mutex<HashSet<String>>,
    batches: Batches<'a>,
    summary: AddSummary,
    report: &'a mut (dyn FnMut(AddedEvent<'_>) + Send),
}

impl<'a> Collector for Writer<'a> {
    type Item = IngestedTrace<'a>;
    type Error = DatasetError;

    fn take(&mut self, trace: IngestedTrace<'a>) -> Result<(), DatasetError> {
        match trace.result {
            Ok(Ingested::New(new)) if self.add_known(new.id.clone()) => {
                self.summary.added += 1;
                self.batches.add(*new)
            }
            // Another trace of this request may have the same contents.
            Ok(Ingested::New(_) | Ingested::Known(_)) => {
                self.summary.known += 1;
                Ok(())
            }
            Err(Refusal::Input(reason)) => {
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

    fn reject(&mut self, path: &Path, reason: &str) -> Result<(), DatasetError> {
        let bytes = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|meta| meta.len());
        let input = RejectedInput { path, bytes, reason };
        match self.add_known(input.id()) {
            true => self.batches.reject(&day::of_file(path), &input),
            false => Ok(()),
        }
    }
}
