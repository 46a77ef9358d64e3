//! The user of a long command, as the rooms below the command line reach him.

use std::any::Any;
use std::path::PathBuf;

/// Shows messages and progress while a command works on devices, and passes on the user's wish to end it.
pub trait UserInterface: Sync {
    /// Whether the user has asked for the end of the recording.
    fn wants_end(&self) -> bool;

    /// Shows a message at once.
    fn show_message(&self, text: &str);

    /// Shows that the device with this serial records, and how the recording is ended.
    fn show_recording(&self, serial: &str);

    /// Shows the progress of the work on these files, until the returned value is dropped.
    fn show_progress(&self, files: &[PathBuf]) -> Box<dyn Any>;
}
