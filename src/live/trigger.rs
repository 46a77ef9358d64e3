//! The conditions that a running recording is watched for.

use std::str::FromStr;

/// A condition that a running recording is watched for: `frame.overrun > 50ms`, `slice inflate > 100ms` or
/// `launch`.
#[derive(Debug, Clone, PartialEq)]
pub struct Trigger {
    text: String,
}

/// Why a text is no condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no condition: they are 'frame.overrun > 50ms', 'slice NAME > 100ms' and 'launch'")]
pub struct TriggerError(String);

impl FromStr for Trigger {
    type Err = TriggerError;

    fn from_str(text: &str) -> Result<Trigger, TriggerError> {
        if text.is_empty() { Err(TriggerError(text.to_owned())) } else { Ok(Trigger { text: text.to_owned() }) }
    }
}

impl Trigger {
    /// The condition as the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A condition was met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// The time at which it was met, ns of the session: the end of the slice or the frame.
    pub at_ns: u64,
    /// The condition as the user wrote it.
    pub trigger: String,
    /// What met it, in a word or two, which a file's name may have: `frame-1234`.
    pub what: String,
    /// A sentence for people.
    pub text: String,
}
