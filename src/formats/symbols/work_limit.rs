//! The limit on the work for the symbols of one file. Tables of a file may refer to the same bytes again and
//! again, so that its size does not bound the time.

use thiserror::Error;

/// The steps for one file: bytes that are compared, ranges, entries. They take some seconds.
const MAX_STEPS: u64 = 1 << 30;
/// The bytes of names that one file may give to a recording.
const MAX_NAME_BYTES: u64 = 32 << 20;
/// The longest name of a function, bytes. The rest of a longer one is cut off.
const MAX_FUNCTION_BYTES: usize = 64 << 10;

/// The symbols of a file would take too much work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("has more symbols than are read: functions lack their names, or those that were inlined into them")]
pub(crate) struct OverWorkLimit;

/// The work that is left.
#[derive(Debug)]
pub(super) struct WorkLimit {
    steps: u64,
    name_bytes: u64,
    /// Whether a limit was reached.
    pub(super) is_over: bool,
}

impl Default for WorkLimit {
    fn default() -> WorkLimit {
        WorkLimit { steps: MAX_STEPS, name_bytes: MAX_NAME_BYTES, is_over: false }
    }
}

impl WorkLimit {
    /// # Errors
    /// [`OverWorkLimit`] if fewer steps are left.
    pub(super) fn spend(&mut self, steps: u64) -> Result<(), OverWorkLimit> {
        let left = self.steps.checked_sub(steps);
        self.is_over |= left.is_none();
        self.steps = left.unwrap_or(0);
        left.map(drop).ok_or(OverWorkLimit)
    }

    /// A copy of a name.
    ///
    /// # Errors
    /// [`OverWorkLimit`] if all names together are too long.
    pub(super) fn name(&mut self, name: &[u8]) -> Result<String, OverWorkLimit> {
        let name = &name[..name.len().min(MAX_FUNCTION_BYTES)];
        let left = self.name_bytes.checked_sub(name.len() as u64);
        self.is_over |= left.is_none();
        self.name_bytes = left.ok_or(OverWorkLimit)?;
        Ok(String::from_utf8_lossy(name).into_owned())
    }
}
