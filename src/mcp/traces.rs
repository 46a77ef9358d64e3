//! Traces that are read once, and kept for the next questions.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::export::convert::ConvertRequest;
use crate::export::explain::{ExplainError, Explained, ReadTrace, explain_each};
use crate::file_access::{self, FileState};
use crate::formats::files_of;
use crate::why::Question;

/// So many traces are kept. One of five million events takes some 300 MB.
const MAX_TRACES: usize = 3;

/// A trace's files, as they were when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TraceKey {
    files: Vec<PathBuf>,
    states: Vec<Option<FileState>>,
}

impl TraceKey {
    fn of(files: &[PathBuf]) -> TraceKey {
        let states = files_of(files).iter().map(|file| file_access::state(file).ok()).collect();
        TraceKey { files: files.to_vec(), states }
    }
}

/// The traces that were asked about last.
#[derive(Default)]
pub(super) struct ReadTraces {
    kept: Mutex<Vec<(TraceKey, Arc<ReadTrace>)>>,
    /// One trace is read at a time.
    reading: Mutex<()>,
}

impl ReadTraces {
    /// The trace in `files`, which is read where it is not kept, or has changed.
    pub(super) fn read(&self, files: &[PathBuf]) -> Result<Arc<ReadTrace>, ExplainError> {
        let _turn = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let key = TraceKey::of(files);
        if let Some(trace) = self.kept_trace(&key) {
            return Ok(trace);
        }
        // The memory of the oldest is needed now.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).truncate(MAX_TRACES - 1);
        let trace = Arc::new(ReadTrace::whole(ConvertRequest::to_read(files))?);
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(0, (key, Arc::clone(&trace)));
        Ok(trace)
    }

    fn kept_trace(&self, key: &TraceKey) -> Option<Arc<ReadTrace>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| known == key)?;
        let found = kept.remove(at);
        let trace = Arc::clone(&found.1);
        kept.insert(0, found);
        Some(trace)
    }

    /// Explains what `question` is about in each run among `files`.
    pub(super) fn explain_runs(
        &self,
        files: &[PathBuf],
        question: &Question,
    ) -> Result<Explained, ExplainError> {
        explain_each(files, |run| self.read(run)?.explain(question))
    }
}
