//! The result of a command on one device, and the results of several.

use serde_json::Value;

use super::error::DeskError;

/// Whether a result is there and whole. Of several results the greatest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Completeness {
    /// Everything was done, and nothing was lost.
    Complete,
    /// The result is there, but events were lost, or the output has no place for some of the data.
    Lossy,
    /// The command failed. Files of it may be there all the same.
    Failed,
}

impl Completeness {
    /// The completeness of a result that is `self` before, and of which something is missing if `is_lossy`.
    pub fn with_loss(self, is_lossy: bool) -> Completeness {
        if is_lossy { self.max(Completeness::Lossy) } else { self }
    }
}

/// The result of a command on one device: a text for people, an object for scripts.
#[derive(Debug, Clone)]
pub struct DeviceOutcome {
    /// Whether the result is whole.
    pub completeness: Completeness,
    /// Lines for people; empty if there is nothing to print.
    pub text: String,
    /// An object.
    pub json: Value,
}

impl DeviceOutcome {
    /// The outcome of a command that has done everything.
    pub fn complete(text: String, json: Value) -> DeviceOutcome {
        DeviceOutcome { completeness: Completeness::Complete, text, json }
    }
}

/// The result of a command on the device with this serial.
#[derive(Debug)]
pub struct DeviceResult<T = DeviceOutcome> {
    /// The device.
    pub serial: String,
    /// The result.
    pub result: Result<T, DeskError>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_makes_a_complete_result_lossy_and_leaves_a_failure() {
        assert_eq!(Completeness::Complete.with_loss(false), Completeness::Complete);
        assert_eq!(Completeness::Complete.with_loss(true), Completeness::Lossy);
        assert_eq!(Completeness::Failed.with_loss(true), Completeness::Failed);
        let all = [Completeness::Complete, Completeness::Failed, Completeness::Lossy];
        assert_eq!(all.into_iter().max(), Some(Completeness::Failed));
    }
}
