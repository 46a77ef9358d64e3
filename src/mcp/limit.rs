//! When a call is to end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::error::ToolError;

/// When a call is to end.
#[derive(Debug)]
pub(super) struct CallLimit {
    /// Set by the client's cancellation.
    pub is_cancelled: AtomicBool,
    pub until: Instant,
}

impl CallLimit {
    /// The reason why the call is to end now.
    pub(super) fn reached(&self) -> Option<ToolError> {
        if self.is_cancelled.load(Ordering::Relaxed) {
            return Some(ToolError::Cancelled);
        }
        (Instant::now() >= self.until).then_some(ToolError::TimedOut)
    }
}
