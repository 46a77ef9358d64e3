//! One recording that is running: its stream comes in, batches and messages go out.

use std::sync::Arc;
use std::time::Duration;

use super::kept::Kept;
use super::trigger::{Occurrence, Trigger};
use crate::trace_dat::recorder_stream::StreamError;

/// What is wanted of a recording that is followed.
#[derive(Debug, Clone)]
pub struct LiveOptions {
    /// How long pages are kept.
    pub keep: Duration,
    /// The package of the app whose numbers are wanted; without one they are those of all apps.
    pub app: Option<String>,
    /// What is watched for.
    pub triggers: Vec<Trigger>,
    /// The name of the recording, for people.
    pub title: String,
}

/// Something that a recording has to tell.
#[derive(Debug, Clone)]
pub enum LiveMessage {
    /// A batch of tracks (docs/live-format.md).
    Batch(Arc<[u8]>),
    /// A JSON object.
    Text(String),
    /// A trigger's condition was met.
    Triggered(Occurrence),
}

/// Why the rest of a stream cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The bytes are none of a recorder's stream.
    #[error("the recorder's stream, {0}")]
    Stream(#[from] StreamError),
}

/// One recording that is running.
pub struct Live {
    options: LiveOptions,
}

impl Live {
    /// A recording of which nothing has come yet.
    pub fn new(options: LiveOptions) -> Live {
        Live { options }
    }

    /// Takes bytes of the recorder's stream, in any pieces.
    ///
    /// # Errors
    /// [`LiveError`] for bytes that are none of a stream. What came before them stays.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), LiveError> {
        let _ = bytes;
        Ok(())
    }

    /// The stream broke off: the next bytes are the begin of a new stream of the same device.
    pub fn connection_lost(&mut self, text: &str) {
        let _ = text;
    }

    /// What has become complete since the last call. With `is_last` the stream has ended, and everything that
    /// is open ends.
    pub fn batch(&mut self, is_last: bool) -> Vec<LiveMessage> {
        let _ = (is_last, &self.options);
        Vec::new()
    }

    /// The name of the clock whose times the recording has; `None` before its head has come.
    pub fn clock(&self) -> Option<&'static str> {
        None
    }

    /// The session's start, ns of the recording's clock; `None` before the first event.
    pub fn start_ns(&self) -> Option<u64> {
        None
    }

    /// Whether the stream has said that it is complete.
    pub fn is_ended(&self) -> bool {
        false
    }

    /// The pages that are kept. The call copies none of them.
    pub fn kept(&self) -> Kept {
        Kept::default()
    }
}
