//! The flight recorder: the kernel keeps the latest events in its ring buffer without any process of ours,
//! and a later command takes them out.

use std::rc::Rc;

use super::cpu_reader::ReadLimit;
use super::events::enabled_events;
use super::interruptible_writer::{EndTimeout, WriteTimeout};
use super::request::{BufferNotice, BufferRequest, RecordingRequest};
use super::saved_settings::StateDir;
use super::session::{ClosedSession, RecordingSession};
use super::tracefs_config::{self, AppliedConfig, WhenFull};
use super::{CaptureTarget, ReceivedSignal, RecordError, SettingsGuard, Signals, clocks};
use crate::clock::Clock;
use crate::step_log::Phase;
use crate::trace_dat::recording_summary::{RecordingEndReason, RecordingSummary};

/// The most that a dump reads per CPU where the size of the buffer is unknown, bytes.
const DEFAULT_DUMP_BYTES: u64 = 1 << 20;
/// The most that is read between two checks whether a signal has come, bytes.
const DUMP_STEP_BYTES: u64 = 4 << 20;

/// Starts a flight recorder: configures the buffer as a ring and leaves tracing on. The file of saved
/// settings stays for [`stop`].
pub(crate) fn start(
    request: &RecordingRequest,
    notify: &mut dyn FnMut(BufferNotice),
) -> Result<AppliedConfig, RecordError> {
    let _phase = Phase::begin("start");
    let (tracefs, created) = request.buffer.open_or_create().map_err(RecordError::fatal)?;
    let mut settings = request.buffer.lock(&tracefs, created, notify)?;
    let (config, mut notes) = request.resolve(&tracefs, WhenFull::Overwrite)?;
    let mut applied = tracefs_config::apply(&mut settings, &config).map_err(RecordError::fatal)?;
    let mut snapshots = clocks::begin(applied.clock);
    clocks::push(&mut snapshots, clocks::snapshot(settings.tracefs()));
    tracefs_config::start(&mut settings)?;
    settings.leave_on(snapshots)?;
    notes.append(&mut applied.notes);
    Ok(AppliedConfig { notes, ..applied })
}

/// Takes out what the ring holds now, and leaves the flight recorder running. These events are no longer in
/// the ring afterwards: the next dump begins where this one ended.
pub(crate) fn dump(buffer: &BufferRequest, target: &CaptureTarget) -> Result<RecordingSummary, RecordError> {
    let signals = Signals::block().map_err(RecordError::Signals)?;
    let settings = resume(buffer)?;
    let dumped = UnfinishedDump::take(&settings, target, &signals).and_then(UnfinishedDump::finish);
    settings.leave();
    dumped
}

/// Stops the flight recorder: turns tracing off, takes out what the ring holds if there is a `target`, and
/// puts every setting back.
pub(crate) fn stop(
    buffer: &BufferRequest,
    target: Option<&CaptureTarget>,
    notify: &mut dyn FnMut(BufferNotice),
) -> Result<Option<RecordingSummary>, RecordError> {
    // From here on a signal ends the command in order, with the settings put back.
    let signals = Signals::block().map_err(RecordError::Signals)?;
    let settings = resume(buffer)?;
    let phase = Phase::begin("stop");
    tracefs_config::stop(&settings)?;
    let dump = target.map(|target| UnfinishedDump::take(&settings, target, &signals)).transpose();
    // As at the end of a recording, the settings are put back before the file is finished.
    settings.restore().failures().for_each(|failure| notify(BufferNotice::NotPutBack { failure }));
    drop(phase);
    dump?.map(UnfinishedDump::finish).transpose()
}

/// Takes over the settings of the flight recorder that is running on this trace buffer.
fn resume(buffer: &BufferRequest) -> Result<SettingsGuard, RecordError> {
    let tracefs = match buffer.open() {
        Err(error) if buffer.instance.is_some() => {
            return Err(RecordError::FlightInstance(Box::new(error)));
        }
        tracefs => tracefs.map_err(RecordError::fatal)?,
    };
    match SettingsGuard::resume(&tracefs, StateDir::find(buffer.state_dir.as_deref())?)? {
        Some(settings) if settings.flight().is_some() => Ok(settings),
        Some(settings) => {
            settings.leave();
            Err(RecordError::NoFlightRecorder)
        }
        None => Err(RecordError::NoFlightRecorder),
    }
}

/// The content of the ring in a capture whose head is not complete yet.
struct UnfinishedDump {
    session: ClosedSession,
    summary: RecordingSummary,
    timeout: Rc<WriteTimeout>,
}

impl UnfinishedDump {
    /// Takes the events out of the ring, until a signal comes.
    fn take(
        settings: &SettingsGuard,
        target: &CaptureTarget,
        signals: &Signals,
    ) -> Result<UnfinishedDump, RecordError> {
        let _phase = Phase::begin("dump");
        let applied = current_config(settings)?;
        let timeout = Rc::new(WriteTimeout::until_signal(signals));
        let mut session = RecordingSession::open(settings, &applied, target, &timeout)?;
        if let Some(started) = settings.flight() {
            session.resume_snapshots(started.clone());
        }
        session.snapshot();
        let buffer_kb = settings.tracefs().read("buffer_size_kb")?;
        // New events arrive while the ring is read, so the dump ends after as many bytes as a buffer holds.
        let limit = buffer_kb.parse::<u64>().map_or(DEFAULT_DUMP_BYTES, |kb| kb.saturating_mul(1024));
        let mut signal = None;
        'cpus: for cpu in 0..session.cpu_count() {
            let mut left = limit;
            while left > 0 {
                let step = ReadLimit::Bytes(left.min(DUMP_STEP_BYTES));
                let moved = match session.read_cpus(&[cpu], step) {
                    Err(RecordError::Stalled) => 0,
                    moved => moved?,
                };
                signal = signals.take();
                if signal.is_some() {
                    break 'cpus;
                }
                left = left.saturating_sub(moved);
                if moved < DUMP_STEP_BYTES.min(left) {
                    break;
                }
            }
        }
        session.snapshot();
        let summary = RecordingSummary {
            clock: applied.clock.name().to_owned(),
            ended_by: signal.map_or(RecordingEndReason::Dump, ReceivedSignal::end_reason),
            error: signal.map(|signal| format!("signal {signal} came: events are left in the kernel")),
            notes: applied.notes,
            ..RecordingSummary::default()
        };
        Ok(UnfinishedDump { session: session.close(), summary, timeout })
    }

    fn finish(mut self) -> Result<RecordingSummary, RecordError> {
        let _phase = Phase::begin("report");
        if self.summary.error.is_some() {
            self.timeout.begin_end(EndTimeout::SIGNALLED);
        }
        self.session.finish(&mut self.summary, &|| false)?;
        Ok(self.summary)
    }
}

/// Reads the configuration of a running flight recorder back from the kernel.
fn current_config(settings: &SettingsGuard) -> Result<AppliedConfig, RecordError> {
    let tracefs = settings.tracefs();
    let (_, clock) = tracefs.choices("trace_clock")?;
    Ok(AppliedConfig {
        clock: Clock::from_trace_clock(&clock.unwrap_or_default()),
        events: enabled_events(tracefs)?,
        // What was asked for is known to the command alone that has started the flight recorder.
        asked: Vec::new(),
        restricted: !tracefs.has_names(),
        notes: Vec::new(),
        watermark: None,
    })
}
