//! The limit on what one input file may unpack to, over all of its layers and sections together: a file of
//! some kilobytes can hold gigabytes of zeros.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Without a limit of the user's, a file may unpack to this many times its size. Traces unpack to 5 to 40
/// times their size; a bomb of gzip to 1,000 times and one of zstd to more than 10,000 times.
const DEFAULT_RATIO: u64 = 64;
/// Without a limit of the user's, every file may unpack to this many bytes.
const DEFAULT_LEAST_BYTES: u64 = 256 << 20;

/// The bytes that are unpacked at a time.
const PART_BYTES: usize = 64 << 10;

/// The option that sets another limit.
const LIMIT_FLAG: &str = "--max-memory";

/// The user's limit on what one file may unpack to, bytes: the option `--max-memory`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnpackLimit(pub Option<u64>);

impl UnpackLimit {
    /// The budget of a file or a pipe with `size` bytes.
    pub fn budget(self, size: u64) -> UnpackBudget {
        let default = size.saturating_mul(DEFAULT_RATIO).max(DEFAULT_LEAST_BYTES);
        let limit = self.0.unwrap_or(default);
        UnpackBudget { limit, used: Arc::new(AtomicU64::new(0)) }
    }
}

/// How many bytes one file may still unpack to. Clones share the budget.
#[derive(Debug, Clone)]
pub struct UnpackBudget {
    limit: u64,
    used: Arc<AtomicU64>,
}

/// A part of a budget, which is given back when this is dropped.
#[derive(Debug)]
pub struct BudgetShare {
    budget: UnpackBudget,
    bytes: u64,
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        let less = |used: u64| Some(used.saturating_sub(self.bytes));
        let _ = self.budget.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// A file unpacks to more than its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unpacks to more than {limit} bytes, the limit for this file: {LIMIT_FLAG} BYTES sets another limit")]
pub struct OverUnpackLimit {
    /// The limit, bytes.
    pub limit: u64,
}

impl UnpackBudget {
    /// The bytes that are left.
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    /// The whole budget again, for another pass over the same file.
    pub fn afresh(&self) -> UnpackBudget {
        UnpackLimit(Some(self.limit)).budget(0)
    }

    /// Calls `open`, and returns its result with the share of the budget that it has taken. The share is
    /// given back when it is dropped: a file may be opened again for another pass, and each byte counts once.
    pub fn share_of<T>(&self, open: impl FnOnce() -> T) -> (T, BudgetShare) {
        let before = self.used.load(Ordering::Relaxed);
        let opened = open();
        let bytes = self.used.load(Ordering::Relaxed).saturating_sub(before);
        (opened, BudgetShare { budget: self.clone(), bytes })
    }

    /// The error for a file that exceeds this budget.
    pub fn error(&self) -> OverUnpackLimit {
        OverUnpackLimit { limit: self.limit }
    }

    /// Takes `bytes` out of the budget.
    ///
    /// # Errors
    /// [`OverUnpackLimit`] where fewer are left. Nothing is left then.
    pub fn take(&self, bytes: u64) -> Result<(), OverUnpackLimit> {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed);
        match used.checked_add(bytes) {
            Some(used) if used <= self.limit => Ok(()),
            _ => {
                self.used.store(self.limit, Ordering::Relaxed);
                Err(self.error())
            }
        }
    }

    /// Appends what `from` unpacks to, at most as many bytes as are left, and takes them out of the budget.
    ///
    /// # Errors
    /// The errors of `from` and of `out`, and [`OverUnpackLimit`] in [`io::Error::other`] where `from` has
    /// more bytes than are left. `out` has the bytes before the error.
    pub fn read_to_end(&self, mut from: impl Read, out: &mut impl Write) -> io::Result<()> {
        let left = self.left();
        let mut part = vec![0; PART_BYTES];
        let mut read = 0;
        let result = loop {
            let count = match from.read(&mut part) {
                Ok(0) => break Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => break Err(error),
            };
            let room = (left - read).min(count as u64);
            out.write_all(&part[..room as usize])?;
            read += room;
            if room < count as u64 {
                self.take(read.saturating_add(1)).map_err(io::Error::other)?;
            }
        };
        self.take(read).map_err(io::Error::other)?;
        result
    }
}

/// Whether a sentence about damage is one about the limit.
pub fn names_limit(what: &str) -> bool {
    what.contains(LIMIT_FLAG)
}

/// Whether an error of [`UnpackBudget::read_to_end`] is that of the limit.
pub fn is_over_limit(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<OverUnpackLimit>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_clones_share_one_budget() {
        let budget = UnpackLimit(Some(10)).budget(1);
        let section = budget.clone();
        assert_eq!(section.take(6), Ok(()));
        assert_eq!(budget.left(), 4);
        assert_eq!(budget.take(5), Err(OverUnpackLimit { limit: 10 }));
        assert_eq!((section.left(), section.take(1).is_err()), (0, true));
    }

    #[test]
    fn what_opening_a_file_took_is_given_back_for_the_next_pass() {
        let budget = UnpackLimit(Some(10)).budget(1);
        budget.take(2).unwrap();
        for _ in 0..3 {
            let (taken, share) = budget.share_of(|| budget.take(7));
            assert!(taken.is_ok() && budget.left() == 1);
            drop(share);
            let (taken, _share) = budget.share_of(|| budget.take(9));
            assert!(taken.is_err() && budget.left() == 0);
        }
        assert_eq!(budget.left(), 8);
    }

    #[test]
    fn a_reader_gives_the_bytes_before_the_limit() {
        let budget = UnpackLimit(Some(4)).budget(1);
        let mut out = Vec::new();
        assert!(budget.read_to_end(&b"abcd"[..], &mut out).is_ok());
        let error = budget.read_to_end(&b"e"[..], &mut out).unwrap_err();
        assert!(is_over_limit(&error) && error.to_string().contains("--max-memory"), "{error}");
        assert_eq!(out, b"abcd");
    }

    #[test]
    fn the_default_follows_the_size_of_the_file() {
        assert_eq!(UnpackLimit::default().budget(1_000).left(), DEFAULT_LEAST_BYTES);
        assert_eq!(UnpackLimit::default().budget(1 << 30).left(), DEFAULT_RATIO << 30);
    }
}
