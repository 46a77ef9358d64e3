//! How far the passes over large inputs are, for whoever shows it.
//!
//! A reader begins a [`Pass`] over a number of bytes, and says from time to time how many more it has read.
//! Of passes inside each other the innermost is the current one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

static PASSES: Mutex<Vec<BegunPass>> = Mutex::new(Vec::new());

/// Bytes of the innermost pass that are read.
static DONE: AtomicU64 = AtomicU64::new(0);

/// The number of passes that were begun.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// A pass that has begun and not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BegunPass {
    /// Differs from that of every other pass.
    pub number: u64,
    /// The work of the pass, for people: `reading events`.
    pub what: &'static str,
    /// Bytes of the whole pass.
    pub total: u64,
    /// Bytes of the passes around it that are done.
    around: u64,
}

fn passes() -> MutexGuard<'static, Vec<BegunPass>> {
    PASSES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A pass over bytes of an input. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Pass(u64);

impl Pass {
    /// Begins a pass over `total` bytes.
    pub(crate) fn begin(what: &'static str, total: u64) -> Pass {
        let number = BEGUN.fetch_add(1, Ordering::Relaxed);
        let mut passes = passes();
        let around = DONE.swap(0, Ordering::Relaxed);
        passes.push(BegunPass { number, what, total, around });
        Pass(number)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut passes = passes();
        if let Some(at) = passes.iter().position(|pass| pass.number == self.0) {
            DONE.store(passes[at].around, Ordering::Relaxed);
            passes.remove(at);
        }
    }
}

/// Says that the current pass has read `bytes` more. Costs an atomic addition.
#[inline]
pub(crate) fn advance(bytes: u64) {
    DONE.fetch_add(bytes, Ordering::Relaxed);
}

/// The current pass, and how many of its bytes are read: at most all of them.
pub(crate) fn current() -> Option<(BegunPass, u64)> {
    let passes = passes();
    let pass = passes.last()?;
    Some((pass.clone(), DONE.load(Ordering::Relaxed).min(pass.total)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other tests read files at the same time, and so begin passes: only what holds whatever they do is
    /// asserted.
    #[test]
    fn a_pass_is_current_until_it_ends() {
        let outer = Pass::begin("outer", 100);
        let is_there = |pass: &Pass| passes().iter().any(|begun| begun.number == pass.0);
        assert!(is_there(&outer));
        let inner = Pass::begin("inner", 10);
        advance(5);
        assert!(is_there(&outer) && is_there(&inner));
        drop(inner);
        let (pass, done) = current().unwrap();
        assert!(done <= pass.total);
        let number = outer.0;
        drop(outer);
        assert!(passes().iter().all(|begun| begun.number != number));
    }
}
