//! Shows on a terminal how far a long command is.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressDrawTarget, ProgressStyle};

use crate::progress;

/// A command that is done sooner shows no bar.
const DELAY: Duration = Duration::from_millis(100);

/// The time between two looks at the progress.
const INTERVAL: Duration = Duration::from_millis(50);

/// A bar on standard error while a command reads its inputs, if standard error is a terminal: the inputs,
/// what is done with them, the share that is done, bytes per second, and the remaining time. It goes away
/// when this is dropped.
pub(super) struct ProgressBar {
    bar: indicatif::ProgressBar,
    /// Dropping it ends the thread.
    end: Option<Sender<()>>,
    drawing: Option<JoinHandle<()>>,
}

impl ProgressBar {
    /// Begins to show the progress of a command with these inputs.
    pub(super) fn of(inputs: &[PathBuf]) -> ProgressBar {
        let is_shown = !ProgressDrawTarget::stderr().is_hidden();
        let bar = indicatif::ProgressBar::hidden();
        let name = match inputs {
            [input] => crate::console::printable(&input.display().to_string()).into_owned(),
            inputs => format!("{} files", inputs.len()),
        };
        bar.set_prefix(name);
        let template = "{prefix}: {msg} {percent:>3} % {bar:20} {decimal_bytes_per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let (end, has_ended) = mpsc::channel();
        let drawn = bar.clone();
        let draw = move || {
            let mut shown = None;
            let mut wait = DELAY;
            while has_ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                wait = INTERVAL;
                let Some((pass, done)) = progress::current() else { continue };
                if shown != Some(pass.number) {
                    drawn.set_message(pass.what);
                    drawn.set_length(pass.total);
                    drawn.set_position(done);
                    // The rate is that from here on.
                    drawn.reset_eta();
                    if shown.is_none() {
                        drawn.set_draw_target(ProgressDrawTarget::stderr());
                    }
                    shown = Some(pass.number);
                }
                drawn.set_position(done);
                drawn.tick();
            }
        };
        // Without a thread for it the command runs all the same.
        let drawing = is_shown.then(|| Builder::new().spawn(draw).ok()).flatten();
        ProgressBar { bar, end: Some(end), drawing }
    }

    /// A writer to `out`, from whose lines the bar keeps away.
    pub(super) fn beside<W: Write>(&self, out: W) -> BesideBar<W> {
        BesideBar { bar: self.bar.clone(), out }
    }

    /// Runs something that prints while the bar is away.
    pub(super) fn beside_message<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        self.end = None;
        self.drawing.take().map(JoinHandle::join);
        self.bar.finish_and_clear();
    }
}

/// See [`ProgressBar::beside`].
pub(super) struct BesideBar<W> {
    bar: indicatif::ProgressBar,
    out: W,
}

impl<W: Write> Write for BesideBar<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bar.suspend(|| self.out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.bar.suspend(|| self.out.flush())
    }
}
