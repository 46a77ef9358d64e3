//! A recording from start to end: settings, output, the loop that moves pages, the final counts.

use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::drain::Upto;
use super::session::{Session, Target};
use super::setup::{self, Applied, Setup};
use super::signals::Signals;
use super::summary::Summary;
use super::{Error, Settings, stats};
use crate::trace_dat::RecorderInfo;

/// What to record, and until when.
#[derive(Debug, Clone)]
pub struct Config {
    /// What the kernel is to be set to.
    pub setup: Setup,
    /// Where it goes.
    pub target: Target,
    /// Ends after this long; otherwise on a signal.
    pub duration: Option<Duration>,
    /// When pages are moved.
    pub mode: Mode,
}

/// When pages are moved out of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// While they fill.
    Stream,
    /// At the end: the last events that the kernel's buffers hold.
    Ring,
    /// At the end, which is when the first CPU's buffer is full: the first events.
    Fill,
}

/// The longest time between two looks at the buffers: what a SIGKILL loses at most, beside what is in the kernel.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Time between two looks at whether a buffer is full.
const FULL_CHECK: Duration = Duration::from_millis(100);
/// Time between two clock snapshots.
const SNAPSHOT_EVERY: Duration = Duration::from_secs(5);
/// Wake-ups in a row that found a nearly empty buffer: then this kernel does not know watermarks for raw pipes
/// (before 6.1 and some 5.x), and the clock decides.
const FALSE_WAKEUPS: u32 = 16;
/// What a CPU is taken to write at most when only the clock decides when to look, bytes a second.
const FASTEST: u64 = 200_000_000;

/// Records as `config` says. `settings` is the guard of the trace buffer; it is used up: whatever happens, the
/// kernel is as it was before when this returns.
pub fn record(config: &Config, settings: Settings, signals: &Signals) -> Result<Summary, Error> {
    record_from(config, settings, signals, || ())
}

/// The same, and calls `on_start` once tracing is on; where it never comes to that, it is dropped.
pub fn record_from(
    config: &Config,
    mut settings: Settings,
    signals: &Signals,
    on_start: impl FnOnce(),
) -> Result<Summary, Error> {
    let applied = setup::apply(&mut settings, &config.setup)?;
    let mut session = Session::open(&settings, &applied, &config.target)?;
    if config.target.path != Path::new("-") {
        settings.set_capture(&config.target.path)?;
    }
    session.snapshot();
    setup::start(&settings)?;
    on_start();
    let started = Instant::now();
    let mut run = Run {
        config,
        signals,
        session: &mut session,
        watermark: applied.watermark.is_some(),
        false_wakeups: 0,
    };
    let mut ended = run.until_the_end(started);
    let stopped = setup::stop(&settings);
    let mut summary = summary(&applied, config.mode, started.elapsed());
    session.snapshot();
    // What is still in the kernel, partial pages too; not where the output takes no more.
    if ended.is_ok()
        && let Err(error) = session.drain_all()
    {
        ended = Err(error);
    }
    match ended {
        Ok(reason) => summary.ended_by = reason,
        Err(error) => {
            summary.ended_by = "an error".into();
            summary.error = Some(error.to_string());
        }
    }
    if let Err(error) = stopped {
        summary.notes.push(error.to_string());
    }
    let finish = session.count();
    // Before the file is finished: the kernel is back in its state soon, and whatever happens to the file.
    // The record stays until then: after a SIGKILL it says which capture is unfinished.
    let back = settings.put_back();
    if let Err(error) = &back {
        summary.notes.push(format!("{error}; try `tracebridge restore`"));
    }
    finish.into_summary(&mut summary, &|| signals.take().is_some())?;
    match back {
        Ok(_) => drop(settings.restore()?),
        Err(_) => settings.let_go(),
    }
    Ok(summary)
}

fn summary(applied: &Applied, mode: Mode, time: Duration) -> Summary {
    Summary {
        clock: applied.clock.name().to_owned(),
        notes: applied.notes.clone(),
        seconds: time.as_secs_f64(),
        streaming: mode == Mode::Stream,
        ..Summary::default()
    }
}

struct Run<'a> {
    config: &'a Config,
    signals: &'a Signals,
    session: &'a mut Session,
    watermark: bool,
    false_wakeups: u32,
}

impl Run<'_> {
    /// Moves pages until something ends the recording; says what did.
    fn until_the_end(&mut self, started: Instant) -> Result<String, Error> {
        let mut next_snapshot = Instant::now() + SNAPSHOT_EVERY;
        let by_clock = self.config.setup.buffer_kb.saturating_mul(1024 * 500) / FASTEST;
        let by_clock = Duration::from_millis(by_clock.clamp(5, 250));
        let deadline = self.config.duration.map(|d| started + d);
        loop {
            let longest = match self.config.mode {
                Mode::Stream if !self.watermark => by_clock,
                Mode::Stream | Mode::Ring => LONGEST_WAIT,
                Mode::Fill => FULL_CHECK,
            };
            let left = deadline.map_or(longest, |d| d.saturating_duration_since(Instant::now()));
            let ready = self.wait(left.min(longest));
            if let Some(signal) = self.signals.take() {
                return Ok(format!("signal {signal}"));
            }
            match self.config.mode {
                Mode::Stream => self.drain(&ready)?,
                Mode::Fill if self.is_full()? => return Ok("full".into()),
                Mode::Fill | Mode::Ring => {}
            }
            if self.config.target.max_bytes.is_some_and(|max| self.session.data_bytes() >= max) {
                return Ok("size".into());
            }
            let now = Instant::now();
            if deadline.is_some_and(|d| now >= d) {
                return Ok("time".into());
            }
            if now >= next_snapshot {
                next_snapshot = now + SNAPSHOT_EVERY;
                self.session.snapshot();
                self.session.put_snapshots()?;
            }
        }
    }

    /// Sleeps until a buffer is filled to its watermark, a signal comes or `longest` is over. Returns the lanes to
    /// look at: those that are ready, or all when the time is over.
    fn wait(&self, longest: Duration) -> Vec<usize> {
        let lanes = &self.session.drain.lanes;
        let mut fds = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        if self.watermark && self.config.mode == Mode::Stream {
            fds.extend(lanes.iter().map(|l| PollFd::new(l.pipe.as_fd(), PollFlags::POLLIN)));
        }
        // Rounded up, or the last millisecond would be spent asking again and again.
        let timeout = PollTimeout::try_from(longest + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX);
        match poll(&mut fds, timeout) {
            Ok(0) | Err(_) => (0..lanes.len()).collect(),
            Ok(_) => (0..fds.len() - 1).filter(|n| fds[n + 1].any() == Some(true)).collect(),
        }
    }

    fn drain(&mut self, ready: &[usize]) -> Result<(), Error> {
        let Session { drain, output, .. } = &mut *self.session;
        let all = ready.len() == drain.lanes.len();
        let mut moved = 0;
        for lane in ready {
            moved += drain.lane(*lane, Upto::HalfFullPage, output.as_mut())?;
        }
        if self.watermark && !all {
            // A true wake-up finds a good part of a buffer.
            let little = moved < self.config.setup.buffer_kb * 1024 / 8;
            self.false_wakeups = if little { self.false_wakeups + 1 } else { 0 };
            self.watermark = self.false_wakeups < FALSE_WAKEUPS;
        }
        Ok(())
    }

    fn is_full(&self) -> Result<bool, Error> {
        let session = &self.session;
        for lane in &session.drain.lanes {
            if stats::read(&session.tracefs, lane.count.cpu)?.dropped > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Session {
    fn put_snapshots(&mut self) -> Result<(), Error> {
        let extra = RecorderInfo { snapshots: self.snapshots.clone(), ..RecorderInfo::default() };
        self.output.put_extra(&extra)
    }

    fn data_bytes(&self) -> u64 {
        self.output.data_bytes()
    }
}
