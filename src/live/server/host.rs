//! The questions of a server to the recording that it serves.

use super::command::LiveCommand;
use crate::live::kept::KeptError;

/// The recording behind a server.
pub trait LiveHost: Send + Sync {
    /// A report page of what is kept between two times of the session, ns.
    ///
    /// # Errors
    /// [`KeptError`].
    fn kept_page(&self, from_ns: Option<u64>, to_ns: Option<u64>) -> Result<Vec<u8>, KeptError>;

    /// Takes a command of a page. It answers with messages.
    fn command(&self, command: LiveCommand);
}
