//! The terminal of the user, as the rooms that work on devices speak with it.

use std::any::Any;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use super::interrupt;
use super::progress_bar::ProgressBar;
use crate::console::complain;
use crate::desk::UserInterface;

/// Messages on standard error, progress bars if that is a terminal, and Ctrl-C or a signal as the wish to
/// end.
pub(super) const TERMINAL: Terminal = Terminal;

/// See [`TERMINAL`].
pub(super) struct Terminal;

impl UserInterface for Terminal {
    fn wants_end(&self) -> bool {
        interrupt::has_come()
    }

    fn show_message(&self, text: &str) {
        complain(format_args!("{text}"));
    }

    fn show_recording(&self, serial: &str) {
        if io::stderr().is_terminal() {
            complain(format_args!("recording on {serial}; Ctrl-C ends the recording"));
        }
    }

    fn show_progress(&self, files: &[PathBuf]) -> Box<dyn Any> {
        Box::new(ProgressBar::of(files))
    }
}
