//! The limit on what the inputs of one command may unpack to, over all of their layers and sections together:
//! a file of some kilobytes can hold gigabytes of zeros.
//!
//! All decoders of the crate are in `unpack.rs`, and take an [`UnpackBudget`].

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Without a limit of the user's, a file may unpack to this many times its size. Traces unpack to 5 to 40
/// times their size; a bomb of gzip to 1,000 times and one of zstd to more than 10,000 times.
const DEFAULT_RATIO: u64 = 64;
/// Without a limit of the user's, all files of a command together may unpack to this many bytes beyond that.
const DEFAULT_SHARED_BYTES: u64 = 256 << 20;

/// The bytes that are unpacked at a time.
const PART_BYTES: usize = 64 << 10;

/// The option that sets another limit.
const LIMIT_FLAG: &str = "--max-memory";

/// The user's limit on what the files of a command may unpack to, bytes: the option `--max-memory`. Clones
/// share the account of the command.
#[derive(Debug, Clone, Default)]
pub struct UnpackLimit {
    max: Option<u64>,
    /// The bytes that files have unpacked to beyond what each may by its size.
    shared: Arc<AtomicU64>,
}

impl UnpackLimit {
    /// The limit of a new command, for which the user has set `max` bytes or nothing.
    pub fn new(max: Option<u64>) -> UnpackLimit {
        UnpackLimit { max, shared: Arc::default() }
    }

    /// The user's own limit, bytes.
    pub fn max(&self) -> Option<u64> {
        self.max
    }

    /// The same limit with an account of its own.
    #[must_use]
    pub fn afresh(&self) -> UnpackLimit {
        UnpackLimit::new(self.max)
    }

    /// The budget of a file or a pipe with `size` bytes.
    pub fn budget(&self, size: u64) -> UnpackBudget {
        let own = if self.max.is_some() { 0 } else { size.saturating_mul(DEFAULT_RATIO) };
        UnpackBudget { file: Arc::new(FileBudget { limit: self.clone(), own, used: Mutex::new(0) }) }
    }

    fn max_shared(&self) -> u64 {
        self.max.unwrap_or(DEFAULT_SHARED_BYTES)
    }

    /// Takes up to `bytes` of those that all files share. Returns how many there were.
    fn take_shared(&self, bytes: u64) -> u64 {
        let max = self.max_shared();
        let taken = |used: u64| Some(used.saturating_add(bytes).min(max));
        let used = self.shared.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken);
        max.saturating_sub(used.unwrap_or(max)).min(bytes)
    }

    fn give_back_shared(&self, bytes: u64) {
        self.shared.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// How many bytes one file may still unpack to: some by its size, and some that it shares with all files of
/// the command. Clones share the budget. Its bytes are given back when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct UnpackBudget {
    file: Arc<FileBudget>,
}

#[derive(Debug)]
struct FileBudget {
    limit: UnpackLimit,
    /// The bytes that the file may unpack to by its size.
    own: u64,
    used: Mutex<u64>,
}

impl FileBudget {
    /// Changes the bytes that are used by `change`, which has the bytes before.
    fn with_used<T>(&self, change: impl FnOnce(&mut u64) -> T) -> T {
        change(&mut self.used.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes up to `bytes`. Returns how many there were.
    fn take_up_to(&self, bytes: u64) -> u64 {
        self.with_used(|used| {
            let own = self.own.saturating_sub(*used).min(bytes);
            let taken = own + self.limit.take_shared(bytes - own);
            *used += taken;
            taken
        })
    }

    fn give_back(&self, bytes: u64) {
        self.with_used(|used| {
            let shared = used.saturating_sub(self.own);
            *used = used.saturating_sub(bytes);
            self.limit.give_back_shared(shared - used.saturating_sub(self.own));
        });
    }
}

impl Drop for FileBudget {
    fn drop(&mut self) {
        self.give_back(u64::MAX);
    }
}

/// A part of a budget, which is given back when this is dropped.
#[derive(Debug)]
pub struct BudgetShare {
    budget: UnpackBudget,
    bytes: u64,
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.budget.file.give_back(self.bytes);
    }
}

/// A file, or all files of a command, unpack to more than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "unpacks to more than {limit} bytes, the limit for all that one command reads: {LIMIT_FLAG} BYTES sets another \
     limit"
)]
pub struct OverUnpackLimit {
    /// The limit, bytes.
    pub limit: u64,
}

impl UnpackBudget {
    /// The bytes that are left.
    pub fn left(&self) -> u64 {
        let FileBudget { limit, own, .. } = &*self.file;
        let shared = limit.max_shared().saturating_sub(limit.shared.load(Ordering::Relaxed));
        own.saturating_sub(self.file.with_used(|used| *used)).saturating_add(shared)
    }

    /// The whole budget again, for another pass over the same file.
    pub fn afresh(&self) -> UnpackBudget {
        let FileBudget { limit, own, .. } = &*self.file;
        UnpackBudget { file: Arc::new(FileBudget { limit: limit.afresh(), own: *own, used: Mutex::new(0) }) }
    }

    /// Calls `open`, and returns its result with the share of the budget that it has taken. The share is
    /// given back when it is dropped: a file may be opened again for another pass, and each byte counts once.
    pub fn share_of<T>(&self, open: impl FnOnce() -> T) -> (T, BudgetShare) {
        let used = || self.file.with_used(|used| *used);
        let before = used();
        let opened = open();
        let bytes = used().saturating_sub(before);
        (opened, BudgetShare { budget: self.clone(), bytes })
    }

    /// The error for a file that exceeds this budget.
    pub fn error(&self) -> OverUnpackLimit {
        OverUnpackLimit { limit: self.file.own.saturating_add(self.file.limit.max_shared()) }
    }

    /// Takes `bytes` out of the budget.
    ///
    /// # Errors
    /// [`OverUnpackLimit`] where fewer are left. Nothing is left then.
    pub fn take(&self, bytes: u64) -> Result<(), OverUnpackLimit> {
        if self.file.take_up_to(bytes) < bytes { Err(self.error()) } else { Ok(()) }
    }

    /// Appends what `from` unpacks to, at most as many bytes as are left, and takes them out of the budget.
    ///
    /// # Errors
    /// The errors of `from` and of `out`, and [`OverUnpackLimit`] in [`io::Error::other`] where `from` has
    /// more bytes than are left. `out` has the bytes before the error.
    pub fn read_to_end(&self, mut from: impl Read, out: &mut impl Write) -> io::Result<()> {
        let mut part = vec![0; PART_BYTES];
        loop {
            let count = match from.read(&mut part) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let taken = self.file.take_up_to(count as u64) as usize;
            out.write_all(&part[..taken])?;
            if taken < count {
                return Err(io::Error::other(self.error()));
            }
        }
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
        let budget = UnpackLimit::new(Some(10)).budget(1);
        let section = budget.clone();
        assert_eq!(section.take(6), Ok(()));
        assert_eq!(budget.left(), 4);
        assert_eq!(budget.take(5), Err(OverUnpackLimit { limit: 10 }));
        assert_eq!((section.left(), section.take(1).is_err()), (0, true));
    }

    #[test]
    fn what_opening_a_file_took_is_given_back_for_the_next_pass() {
        let budget = UnpackLimit::new(Some(10)).budget(1);
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
        let budget = UnpackLimit::new(Some(4)).budget(1);
        let mut out = Vec::new();
        assert!(budget.read_to_end(&b"abcd"[..], &mut out).is_ok());
        let error = budget.read_to_end(&b"e"[..], &mut out).unwrap_err();
        assert!(is_over_limit(&error) && error.to_string().contains("--max-memory"), "{error}");
        assert_eq!(out, b"abcd");
    }

    #[test]
    fn the_files_of_a_command_share_one_budget_and_give_it_back() {
        let limit = UnpackLimit::new(Some(10));
        let first = limit.budget(1_000);
        let second = limit.clone().budget(1_000);
        assert_eq!(first.take(7), Ok(()));
        assert_eq!(second.take(4), Err(OverUnpackLimit { limit: 10 }));
        assert_eq!((first.left(), limit.afresh().budget(0).left()), (0, 10));
        drop(second);
        assert_eq!(first.left(), 3);
        drop(first);
        assert_eq!(limit.budget(0).left(), 10);
    }

    #[test]
    fn the_default_follows_the_size_of_the_file() {
        let limit = UnpackLimit::default();
        let bomb = limit.budget(1_000);
        assert_eq!(bomb.left(), DEFAULT_SHARED_BYTES + DEFAULT_RATIO * 1_000);
        assert!(bomb.take(1 << 40).is_err());
        let honest = limit.budget(1 << 30);
        assert_eq!(honest.left(), DEFAULT_RATIO << 30, "another file keeps what it may by its size");
    }
}
