//! Recording around something: what `wrap` and `launch` share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::record::recorder::{self, Config};
use crate::record::{Error, Settings, Signals, Summary};

/// Whether the recording is over although the work is not: its time is up, a signal came, or it failed.
#[derive(Debug, Default)]
pub struct Over(AtomicBool);

impl Over {
    /// Whether it is.
    pub fn is(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Records while `work` runs, which starts when tracing is on and ends the recording with its own end; the summary then
/// says `end`. `None` for what the work comes to: the recording did not start, and so neither did the work.
pub fn record_around<T: Send>(
    config: &Config,
    settings: Settings,
    signals: &Signals,
    end: &str,
    work: impl FnOnce(&Over) -> T + Send,
) -> (Result<Summary, Error>, Option<T>) {
    let (started, wait_for_start) = mpsc::channel();
    let (over, work_ended) = (Over::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (over, work_ended) = (&over, &work_ended);
        let worker = scope.spawn(move || {
            wait_for_start.recv().ok()?;
            let done = work(over);
            if !over.is() {
                work_ended.store(true, Ordering::Relaxed);
                // Read by the recorder's loop, as all signals that end a recording are.
                let _ = kill(Pid::this(), Signal::SIGTERM);
            }
            Some(done)
        });
        let on_start = move || {
            let _ = started.send(());
        };
        let mut summary = recorder::record_from(config, settings, signals, on_start);
        over.0.store(true, Ordering::Relaxed);
        if let Ok(summary) = &mut summary
            && work_ended.load(Ordering::Relaxed)
            && summary.ended_by == "signal SIGTERM"
        {
            summary.ended_by = end.to_owned();
        }
        // A panic in the work goes on here.
        let done = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (summary, done)
    })
}
