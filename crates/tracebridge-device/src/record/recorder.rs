//! A recording from start to end, in four steps: [`PreparedRecording::arm`] configures the kernel and opens
//! the output, [`Recording::record`] switches tracing on and moves pages until something ends the recording,
//! [`Recording::stop`] switches tracing off and moves the rest, and [`Recording::report`] puts the settings
//! back and completes the output and the summary.
//!
//! The recorder owns time and the reasons to end; the [session](super::session) owns what is read and
//! written.

use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::cpu_reader::ReadLimit;
use super::events::switchable_events;
use super::interruptible_writer::{EndTimeout, WriteTimeout};
use super::live_categories::LiveCategories;
use super::other_programs::{SettingsWatch, other_readers};
use super::request::{BufferNotice, RecordingRequest};
use super::scheduling::Priority;
use super::session::RecordingSession;
use super::signals::ReceivedSignal;
use super::tracefs_config::{self, TracefsConfig, WhenFull};
use super::{CaptureTarget, RecordError, SettingsGuard, Signals, Tracefs};
use crate::step_log::{Phase, print_step};
use crate::trace_dat::recording_summary::{BufferTakeover, RecordingEndReason, RecordingSummary};

/// Where a recording goes, when its pages are read, and when it ends.
#[derive(Debug, Clone)]
pub(crate) struct RecordingPlan {
    pub(crate) target: CaptureTarget,
    /// How long the recording lasts; without it the recording ends on a signal.
    pub(crate) duration: Option<Duration>,
    pub(crate) mode: RecordingMode,
    /// The recorder's nice value; `None` asks for the best scheduling that there is.
    pub(crate) nice: Option<i32>,
}

/// When pages are moved out of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordingMode {
    /// While the buffers fill.
    Stream,
    /// In rounds over all CPUs that follow each other every [`LIVE_INTERVAL`], whatever the buffers hold,
    /// for a reader that shows the events while they come. It is told when each round began.
    Live,
    /// At the end. The capture holds the last events that fit into the kernel's buffers.
    Ring,
    /// At the end, which comes when the first CPU's buffer is full. The capture holds the first events.
    Fill,
}

impl RecordingMode {
    fn when_full(self) -> WhenFull {
        match self {
            RecordingMode::Stream | RecordingMode::Live | RecordingMode::Ring => WhenFull::Overwrite,
            RecordingMode::Fill => WhenFull::Stop,
        }
    }

    /// Whether pages are moved while events come.
    fn is_streaming(self) -> bool {
        matches!(self, RecordingMode::Stream | RecordingMode::Live)
    }
}

/// The longest time between two rounds of reading the buffers. A SIGKILL loses at most the events of this
/// time and what is in the kernel's buffers.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// The longest time between two rounds of a recording that somebody watches.
const LIVE_INTERVAL: Duration = Duration::from_millis(100);
/// A live round that moves a larger part of a buffer than this is followed by a look at the watermarks.
const QUIET_PART: u64 = 16;
/// Time between two checks whether a buffer is full.
const FULL_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two clock snapshots.
const SNAPSHOT_INTERVAL: Duration = Duration::from_secs(5);
/// After this many wake-ups in a row that found a nearly empty buffer, the kernel is taken not to support
/// watermarks for raw pipes (before 6.1, and some 5.x), and the buffers are read at fixed intervals instead.
const MAX_FALSE_WAKEUPS: u32 = 16;
/// How long the reader of a stream may take nothing of its head, at least.
const MIN_HEAD_STALL: Duration = Duration::from_secs(1);
/// The rate at which a CPU is assumed to fill its buffer where the buffers are read at fixed intervals.
const MAX_BYTES_PER_SECOND: u64 = 200_000_000;

/// Records until the plan's end or a signal. Whatever happens, the kernel's settings are as before when this
/// returns.
pub(crate) fn record(
    request: &RecordingRequest,
    plan: &RecordingPlan,
    notify: &mut dyn FnMut(BufferNotice),
) -> Result<RecordingSummary, RecordError> {
    PreparedRecording::prepare(request, plan, notify)?.run(Box::new(|| ()), Box::new(|_| ()))
}

/// A recording whose trace buffer is locked and whose request is resolved. The kernel's settings are still
/// unchanged.
pub(super) struct PreparedRecording<'a> {
    plan: &'a RecordingPlan,
    config: TracefsConfig,
    /// A note for each thing that was requested and that this device does not have.
    notes: Vec<String>,
    settings: SettingsGuard,
    signals: Signals,
    /// The categories of a live recording, where they can be switched.
    categories: Option<LiveCategories>,
}

impl<'a> PreparedRecording<'a> {
    /// Locks the trace buffer, and resolves the request for this kernel.
    pub(super) fn prepare(
        request: &RecordingRequest,
        plan: &'a RecordingPlan,
        notify: &mut dyn FnMut(BufferNotice),
    ) -> Result<PreparedRecording<'a>, RecordError> {
        PreparedRecording::lock_and_resolve(request, plan, notify).map_err(RecordError::fatal)
    }

    fn lock_and_resolve(
        request: &RecordingRequest,
        plan: &'a RecordingPlan,
        notify: &mut dyn FnMut(BufferNotice),
    ) -> Result<PreparedRecording<'a>, RecordError> {
        // The signals are blocked before anything is changed, and before an instance is created: from here on
        // a signal ends the recording in order.
        let _phase = Phase::begin("prepare");
        let signals = Signals::block().map_err(RecordError::Signals)?;
        let (tracefs, created) = request.buffer.open_or_create()?;
        let settings = request.buffer.lock(&tracefs, created, notify)?;
        let (mut config, notes) = request.resolve(&tracefs, plan.mode.when_full())?;
        let is_live = plan.mode == RecordingMode::Live;
        let mut categories = is_live.then(|| LiveCategories::begin(request)).flatten();
        if let Some(categories) = &mut categories {
            categories.prepare(&mut config);
        }
        Ok(PreparedRecording { plan, config, notes, settings, signals, categories })
    }

    pub(super) fn tracefs(&self) -> &Tracefs {
        self.settings.tracefs()
    }

    /// Records, and calls `on_start` once tracing is on. If tracing never comes on, both closures are
    /// dropped. Calls `on_end` when tracing is off again, before the settings are put back, with the signal
    /// that ended the recording. The closures are boxed so that the binary holds this function once, not once
    /// per caller.
    pub(super) fn run(
        self,
        on_start: Box<dyn FnOnce() + '_>,
        on_end: Box<dyn FnOnce(Option<ReceivedSignal>) + '_>,
    ) -> Result<RecordingSummary, RecordError> {
        let phase = Phase::begin("arm");
        let mut recording = self.arm()?;
        drop(phase);
        let phase = Phase::begin("record");
        let loop_result = recording.record(on_start)?;
        drop(phase);
        let phase = Phase::begin("stop");
        let end = recording.stop(loop_result);
        drop(phase);
        let _phase = Phase::begin("report");
        recording.report(end, on_end)
    }

    /// Configures the trace buffer, and begins the output with its head. Tracing is still off.
    fn arm(self) -> Result<Recording<'a>, RecordError> {
        let PreparedRecording { plan, config, mut notes, mut settings, signals, categories } = self;
        let mut applied = tracefs_config::apply(&mut settings, &config).map_err(RecordError::fatal)?;
        if categories.is_some() {
            let mut later = switchable_events(settings.tracefs());
            later.retain(|event| !applied.events.contains(event));
            applied.events.append(&mut later);
        }
        let timeout = Rc::new(WriteTimeout::until_signal(&signals));
        // The reader of a stream must take the head before tracing begins. The time in which it takes nothing
        // counts, not the time that collecting the head takes.
        if let Some(duration) = plan.duration {
            timeout.set_max_stall(duration.max(MIN_HEAD_STALL));
        }
        let mut session = RecordingSession::open(&settings, &applied, &plan.target, &timeout)?;
        session.measure_event_cost();
        if plan.mode == RecordingMode::Live {
            session.begin_live();
        }
        if !plan.target.is_stream() {
            settings.set_capture(&plan.target.path)?;
        }
        if !applied.restricted {
            notes.extend(other_readers(settings.tracefs()).iter().map(|reader| {
                format!("{reader} reads this trace buffer too, and takes a part of its events: record with --instance")
            }));
        }
        notes.append(&mut applied.notes);
        session.snapshot();
        let summary = RecordingSummary {
            clock: applied.clock.name().to_owned(),
            notes,
            streaming: plan.mode.is_streaming(),
            ..RecordingSummary::default()
        };
        let has_watermark = applied.watermark.is_some();
        let buffer_kb = config.buffer_kb;
        Ok(Recording {
            plan,
            session,
            settings,
            signals,
            timeout,
            buffer_kb,
            has_watermark,
            categories,
            summary,
        })
    }
}

/// A recording whose trace buffer is configured and whose output has its head.
struct Recording<'a> {
    plan: &'a RecordingPlan,
    /// It stands before the settings because an instance can be removed only while nobody has its files open.
    session: RecordingSession,
    settings: SettingsGuard,
    signals: Signals,
    timeout: Rc<WriteTimeout>,
    /// The size of each CPU's buffer, KiB.
    buffer_kb: u64,
    /// Whether a CPU's pipe becomes readable when its buffer is filled to the watermark.
    has_watermark: bool,
    categories: Option<LiveCategories>,
    summary: RecordingSummary,
}

/// The result of the loop of a recording.
struct LoopResult {
    end: Result<LoopEnd, RecordError>,
    /// Settings that another program has changed.
    changes: Vec<String>,
    seconds: f64,
    /// The priority for as long as pages are moved.
    priority: Priority,
}

/// How a recording ended whose pages are all moved.
struct EndedRecording {
    signal: Option<ReceivedSignal>,
    /// The time that the reader of a stream has for the rest.
    timeout: EndTimeout,
}

impl Recording<'_> {
    /// Switches tracing on, and moves pages until something ends the recording. An error means that tracing
    /// did not come on.
    fn record(&mut self, on_start: Box<dyn FnOnce() + '_>) -> Result<LoopResult, RecordError> {
        tracefs_config::start(&mut self.settings)?;
        self.session.begin_rings();
        on_start();
        let priority = Priority::raise(self.plan.nice);
        print_step(format_args!("scheduling: {}", priority.class()));
        let started = Instant::now();
        self.timeout.set_deadline(self.plan.duration.map(|duration| started + duration));
        let tracefs = self.settings.tracefs().clone();
        let watch = SettingsWatch::begin(&tracefs);
        let mut recording_loop = RecordingLoop {
            plan: self.plan,
            buffer_kb: self.buffer_kb,
            signals: &self.signals,
            session: &mut self.session,
            settings: &mut self.settings,
            watch: &watch,
            priority,
            has_watermark: self.has_watermark,
            looks_at_watermarks: self.has_watermark && self.plan.mode == RecordingMode::Stream,
            categories: self.categories.take(),
            false_wakeups: 0,
        };
        let mut end = recording_loop.run(started);
        let priority = recording_loop.priority;
        let seconds = started.elapsed().as_secs_f64();
        let changes = match &mut end {
            Ok(LoopEnd::TakenOver(changes)) => std::mem::take(changes),
            // The changes of the last second: the loop looks for them once a second.
            _ => watch.changes(&tracefs),
        };
        Ok(LoopResult { end, changes, seconds, priority })
    }

    /// Switches tracing off and moves the rest of the buffers to the output, partial pages included.
    fn stop(&mut self, result: LoopResult) -> EndedRecording {
        let LoopResult { mut end, changes, seconds, priority } = result;
        self.summary.seconds = seconds;
        // A reader that takes nothing, or little, must not keep the kernel's settings from being put back.
        let timeout = match &end {
            Ok(LoopEnd::Planned(_)) => EndTimeout::PLANNED,
            Ok(LoopEnd::Signal(_) | LoopEnd::TakenOver(_)) | Err(_) => EndTimeout::SIGNALLED,
        };
        self.timeout.begin_end(match self.plan.mode {
            RecordingMode::Stream | RecordingMode::Live => timeout,
            // All that was recorded is still to be read.
            RecordingMode::Ring | RecordingMode::Fill => EndTimeout { at_most: None, ..timeout },
        });
        self.session.release_rings();
        let mut stopped = Ok(());
        if changes.is_empty() {
            stopped = tracefs_config::stop(&self.settings);
        } else {
            self.settings.give_up_foreign();
            self.summary.taken_over = Some(BufferTakeover { seconds, changes });
        }
        self.session.snapshot();
        // After an error the output may take no more pages.
        if end.is_ok() {
            match self.move_rest(stopped.is_ok()) {
                // Pages that the reader of a stream did not take are counted as unsent.
                Ok(()) | Err(RecordError::Stalled) => {}
                Err(error) => end = Err(error),
            }
        }
        let (scheduling, too_busy) = priority.describe();
        drop(priority);
        self.summary.scheduling = scheduling;
        self.summary.notes.extend(too_busy);
        let signal = match &end {
            Ok(LoopEnd::Signal(signal)) => Some(*signal),
            _ => None,
        };
        self.summary.ended_by = match end {
            Ok(LoopEnd::TakenOver(_)) => RecordingEndReason::TakenOver,
            Ok(LoopEnd::Planned(reason)) => reason,
            Ok(LoopEnd::Signal(signal)) => signal.end_reason(),
            Err(error) => {
                self.summary.error = Some(error.to_string());
                RecordingEndReason::Error
            }
        };
        if let Err(error) = stopped {
            self.summary.notes.push(error.to_string());
        }
        EndedRecording { signal, timeout }
    }

    /// Moves what the buffers still hold. The events of a program that has taken the buffer over are not
    /// ours: then only the rings are emptied.
    fn move_rest(&mut self, is_tracing_off: bool) -> Result<(), RecordError> {
        if self.summary.taken_over.is_some() {
            return self.session.finish_rings();
        }
        // While tracing is on, reading makes events of its own, and would not end.
        if !is_tracing_off {
            return self.session.drain(ReadLimit::Bytes(self.buffer_kb * 1024));
        }
        self.session.drain(ReadLimit::Empty)?;
        self.session.drain_late_events()
    }

    /// Puts the kernel's settings back, completes the output, and returns the summary.
    fn report(
        self,
        end: EndedRecording,
        on_end: Box<dyn FnOnce(Option<ReceivedSignal>) + '_>,
    ) -> Result<RecordingSummary, RecordError> {
        let Recording { session, mut settings, signals, timeout, mut summary, .. } = self;
        let session = session.close();
        // An instance can be removed only while nobody has its files open.
        on_end(end.signal);
        // The settings are put back before the file is finished: the kernel is in its old state soon,
        // whatever happens to the file. The file of saved settings stays, so that after a SIGKILL it names
        // the unfinished capture.
        let put_back = settings.put_back();
        summary
            .notes
            .extend(put_back.failures().map(|failure| format!("a setting is not put back: {failure}")));
        if !put_back.foreign.is_empty() {
            let files = put_back.foreign.join(", ");
            summary.notes.push(format!("left as the other program has set them: {files}"));
        }
        timeout.begin_end(end.timeout);
        session.finish(&mut summary, &|| signals.take().is_some())?;
        if put_back.refused.is_empty() {
            settings.restore();
        } else {
            settings.leave();
        }
        Ok(summary)
    }
}

/// Why the loop of a recording ended.
enum LoopEnd {
    /// The plan's end.
    Planned(RecordingEndReason),
    Signal(ReceivedSignal),
    /// Another program has changed the settings named.
    TakenOver(Vec<String>),
}

/// The reason for which a wait of the loop has ended.
#[derive(Default)]
struct Woken {
    /// The indices of the readers with enough pages, none when the time is over.
    ready: Vec<usize>,
    has_signal: bool,
    has_command: bool,
}

/// The loop that moves pages while tracing is on.
struct RecordingLoop<'a> {
    plan: &'a RecordingPlan,
    /// The size of each CPU's buffer, KiB.
    buffer_kb: u64,
    signals: &'a Signals,
    session: &'a mut RecordingSession,
    settings: &'a mut SettingsGuard,
    watch: &'a SettingsWatch,
    priority: Priority,
    /// Whether a CPU's pipe becomes readable when its buffer is filled to the watermark.
    has_watermark: bool,
    /// Whether the loop waits for that too. A live recording reads the buffers long before, unless events
    /// come very fast.
    looks_at_watermarks: bool,
    categories: Option<LiveCategories>,
    false_wakeups: u32,
}

impl RecordingLoop<'_> {
    /// Moves pages until something ends the recording. Returns the reason for the end.
    fn run(&mut self, started: Instant) -> Result<LoopEnd, RecordError> {
        use LoopEnd::{Planned, Signal, TakenOver};
        let mut next_check = Instant::now() + MAX_WAIT;
        let mut next_snapshot = Instant::now() + SNAPSHOT_INTERVAL;
        // The time in which half of a buffer fills at the highest rate.
        let interval_ms = self.buffer_kb.saturating_mul(1024 * 500) / MAX_BYTES_PER_SECOND;
        let interval = Duration::from_millis(interval_ms.clamp(5, 250));
        let deadline = self.plan.duration.map(|d| started + d);
        let mut last_read = Instant::now();
        loop {
            let max_wait = match self.plan.mode {
                RecordingMode::Stream if !self.has_watermark => interval,
                RecordingMode::Live => LIVE_INTERVAL,
                RecordingMode::Stream | RecordingMode::Ring => MAX_WAIT,
                RecordingMode::Fill => FULL_CHECK_INTERVAL,
            };
            let left = deadline.map_or(max_wait, |d| d.saturating_duration_since(Instant::now()));
            let left = left.min((last_read + max_wait).saturating_duration_since(Instant::now()));
            let Woken { mut ready, has_signal, has_command } = self.wait(left.min(self.session.rings_wait()));
            if has_signal && let Some(signal) = self.signals.take() {
                return Ok(Signal(signal));
            }
            if has_command {
                self.categories.take_if(|categories| !categories.obey(self.settings));
            }
            // Rings are read more often. Reading the kernel's buffers as often would cost a page for a few
            // events.
            let now = Instant::now();
            // While the buffer of one CPU fills again and again, the others are read all the same.
            if now >= last_read + max_wait || ready.is_empty() && deadline.is_some_and(|d| now >= d) {
                ready = (0..self.session.cpu_count()).collect();
            }
            if ready.len() == self.session.cpu_count()
                || self.plan.mode == RecordingMode::Live && !ready.is_empty()
            {
                last_read = now;
            }
            match self.session.read_rings() {
                Ok(()) | Err(RecordError::Stalled) => {}
                Err(error) => return Err(error),
            }
            match self.plan.mode {
                RecordingMode::Stream if ready.is_empty() => {}
                RecordingMode::Stream => match self.read_cpus(&ready) {
                    // The next round notices why the wait for the reader has ended.
                    Err(RecordError::Stalled) => {}
                    read => read?,
                },
                RecordingMode::Live if ready.is_empty() => {}
                RecordingMode::Live => match self.live_round(&ready) {
                    Err(RecordError::Stalled) => {}
                    read => read?,
                },
                RecordingMode::Fill if self.session.has_dropped()? => {
                    return Ok(Planned(RecordingEndReason::Full));
                }
                RecordingMode::Fill | RecordingMode::Ring => {}
            }
            if self.plan.target.max_bytes.is_some_and(|max| self.session.data_bytes() >= max) {
                return Ok(Planned(RecordingEndReason::Size));
            }
            let now = Instant::now();
            if deadline.is_some_and(|d| now >= d) {
                return Ok(Planned(RecordingEndReason::Time));
            }
            if now >= next_check {
                next_check = now + MAX_WAIT;
                self.priority.check_share();
                let changes = self.watch.changes(self.settings.tracefs());
                if !changes.is_empty() {
                    return Ok(TakenOver(changes));
                }
            }
            if now >= next_snapshot {
                next_snapshot = now + SNAPSHOT_INTERVAL;
                self.session.snapshot();
                match self.session.put_snapshots() {
                    Ok(()) | Err(RecordError::Stalled) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// Sleeps until a buffer is filled to its watermark, a signal or a command comes, or `max_wait` is over.
    fn wait(&self, max_wait: Duration) -> Woken {
        let mut fds = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        fds.extend(self.categories.iter().map(|commands| PollFd::new(commands.input(), PollFlags::POLLIN)));
        let others = fds.len();
        if self.looks_at_watermarks {
            fds.extend(self.session.pipes().map(|pipe| PollFd::new(pipe, PollFlags::POLLIN)));
        }
        // Rounded up to whole milliseconds: a timeout of 0 would make the loop spin during the last
        // millisecond.
        let timeout =
            PollTimeout::try_from(max_wait + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX);
        match poll(&mut fds, timeout) {
            Ok(0) | Err(_) => Woken::default(),
            Ok(_) => {
                let is_ready = |n: usize| fds[n].any() == Some(true);
                let ready = (others..fds.len()).filter(|n| is_ready(*n)).map(|n| n - others).collect();
                Woken { ready, has_signal: is_ready(0), has_command: (1..others).any(is_ready) }
            }
        }
    }

    fn read_cpus(&mut self, ready: &[usize]) -> Result<(), RecordError> {
        // A whole buffer at most: a CPU that fills its buffer as fast as it is read comes again in the next
        // round, after the others whose buffers are filled to the watermark.
        let limit = ReadLimit::HalfFullPage { max_bytes: self.buffer_kb * 1024 };
        let moved = self.session.read_cpus(ready, limit)?;
        if ready.len() < self.session.cpu_count() {
            self.check_wakeup(moved);
        }
        Ok(())
    }

    /// Reads all CPUs, whichever of them are `ready`: none of them has the others' events of a round missing.
    fn live_round(&mut self, ready: &[usize]) -> Result<(), RecordError> {
        let moved = self.session.live_round()?;
        if ready.len() < self.session.cpu_count() {
            self.check_wakeup(moved);
        }
        self.looks_at_watermarks = self.has_watermark && moved > self.buffer_kb * 1024 / QUIET_PART;
        Ok(())
    }

    /// Notices whether the kernel wakes this process too early: at the watermark a good part of a buffer is
    /// filled.
    fn check_wakeup(&mut self, moved_bytes: u64) {
        let is_false = moved_bytes < self.buffer_kb * 1024 / 8;
        self.false_wakeups = if self.has_watermark && is_false { self.false_wakeups + 1 } else { 0 };
        self.has_watermark &= self.false_wakeups < MAX_FALSE_WAKEUPS;
        self.looks_at_watermarks &= self.has_watermark;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_events_are_kept_by_stopping_at_a_full_buffer() {
        use RecordingMode::{Fill, Live, Ring, Stream};
        let stops = |mode: RecordingMode| mode.when_full() == WhenFull::Stop;
        assert_eq!([Stream, Live, Ring, Fill].map(stops), [false, false, false, true]);
        assert_eq!([Stream, Live, Ring, Fill].map(RecordingMode::is_streaming), [true, true, false, false]);
    }
}
