//! Recording around something: what `wrap` and `launch` share.

use std::sync::mpsc;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::record::recorder::{self, Config};
use crate::record::{Error, Settings, Signals, Summary};

/// Records while `work` runs, which starts when tracing is on and ends the recording with its own end. `None` for
/// what it comes to: the recording did not start, and so neither did the work.
pub fn record_around<T: Send>(
    config: &Config,
    settings: Settings,
    signals: &Signals,
    work: impl FnOnce() -> T + Send,
) -> (Result<Summary, Error>, Option<T>) {
    let (started, wait_for_start) = mpsc::channel();
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            wait_for_start.recv().ok()?;
            let done = work();
            // Read by the recorder's loop, as all signals that end a recording are.
            let _ = kill(Pid::this(), Signal::SIGTERM);
            Some(done)
        });
        let on_start = move || {
            let _ = started.send(());
        };
        let summary = recorder::record_from(config, settings, signals, on_start);
        // A panic in the work goes on here.
        let done = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (summary, done)
    })
}
