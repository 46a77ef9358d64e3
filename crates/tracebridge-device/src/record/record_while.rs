//! A recording around a piece of work: tracing starts before the work and ends with it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::Builder;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::recorder::{PreparedRecording, RecordingPlan};
use super::request::{BufferNotice, RecordingRequest};
use super::signals::{ReceivedSignal, Signals};
use super::{RecordError, Tracefs};
use crate::trace_dat::recording_summary::{EndSignal, RecordingEndReason, RecordingSummary};

/// The interval between two checks whether work without a recording has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Shows the work whether the recording has ended already: because its time was up, because a signal came, or
/// because it failed.
#[derive(Debug, Default)]
pub(crate) struct RecordingEnd {
    has_come: AtomicBool,
    signal: OnceLock<ReceivedSignal>,
}

impl RecordingEnd {
    /// Whether the recording has ended.
    pub(crate) fn has_come(&self) -> bool {
        self.has_come.load(Ordering::Acquire)
    }

    /// The signal that has ended the recording; `None` if it goes on or something else has ended it.
    pub(crate) fn signal(&self) -> Option<ReceivedSignal> {
        self.signal.get().copied()
    }

    fn set(&self, signal: Option<ReceivedSignal>) {
        if let Some(signal) = signal {
            let _ = self.signal.set(signal);
        }
        self.has_come.store(true, Ordering::Release);
    }
}

/// The result of [`record_while`].
#[derive(Debug)]
pub(crate) struct RecordedWork<T> {
    pub(crate) summary: Result<RecordingSummary, RecordError>,
    /// The result of the work; `None` if tracing did not start, in which case the work was not started
    /// either.
    pub(crate) result: Option<T>,
}

/// Records while `work` runs. The work starts on a thread of its own when tracing is on, and the recording
/// ends when the work ends. The summary then gives `end_reason` as the reason. `release` is called when the
/// recording has ended, before the settings are put back: the work must not keep a file of the buffer open,
/// or an instance cannot be removed.
///
/// An error means that the recording could not be prepared, and nothing was started.
pub(crate) fn record_while<T: Send>(
    request: &RecordingRequest,
    plan: &RecordingPlan,
    end_reason: RecordingEndReason,
    notify: &mut dyn FnMut(BufferNotice),
    release: impl FnOnce(),
    work: impl FnOnce(&Tracefs, &RecordingEnd) -> T + Send,
) -> Result<RecordedWork<T>, RecordError> {
    let prepared = PreparedRecording::prepare(request, plan, notify)?;
    let tracefs = prepared.tracefs().clone();
    let (started, wait_for_start) = mpsc::channel();
    let end = RecordingEnd::default();
    let work_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let end = &end;
        let work_ended = &work_ended;
        let worker = Builder::new().spawn_scoped(scope, move || {
            wait_for_start.recv().ok()?;
            let result = work(&tracefs, end);
            if !end.has_come() {
                work_ended.store(true, Ordering::Relaxed);
                // The recording loop receives this signal as it receives every signal that ends a recording.
                let _ = kill(Pid::this(), Signal::SIGTERM);
            }
            Some(result)
        });
        let worker = worker.map_err(RecordError::Thread)?;
        let on_start = move || {
            let _ = started.send(());
        };
        let on_end = |signal| {
            end.set(signal);
            release();
        };
        let mut summary = prepared.run(Box::new(on_start), Box::new(on_end));
        end.set(None);
        if let Ok(summary) = &mut summary
            && work_ended.load(Ordering::Relaxed)
            && summary.ended_by == RecordingEndReason::Signal(EndSignal::Terminate)
        {
            summary.ended_by = end_reason;
        }
        // A panic in the work goes on in this thread.
        let result = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(RecordedWork { summary, result })
    })
}

/// Runs `work` while another program records. A signal, or the end of `time`, is to the work the end of the
/// recording. Returns the result, and what came first, as [`RecordingSummary::ended_by`] names it.
pub(crate) fn work_unrecorded<T: Send>(
    time: Duration,
    work: impl FnOnce(&RecordingEnd) -> T + Send,
) -> Result<(T, RecordingEndReason), RecordError> {
    let signals = Signals::block().map_err(RecordError::Signals)?;
    let give_up = Instant::now() + time;
    let end = RecordingEnd::default();
    std::thread::scope(|scope| {
        let worker = Builder::new().spawn_scoped(scope, || work(&end)).map_err(RecordError::Thread)?;
        let mut ended_by = RecordingEndReason::LaunchEnded;
        while !worker.is_finished() && !end.has_come() {
            if signals.arrive_within(POLL_INTERVAL)
                && let Some(signal) = signals.take()
            {
                ended_by = signal.end_reason();
                end.set(Some(signal));
            } else if Instant::now() > give_up {
                ended_by = RecordingEndReason::Time;
                end.set(None);
            }
        }
        let result = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((result, ended_by))
    })
}
