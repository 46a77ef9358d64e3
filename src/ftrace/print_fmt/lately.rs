//! What was printed lately for the numbers that are dear to print: addresses, whose symbol is searched for, and flags,
//! whose names are. Events come from few places in the kernel and have few combinations of flags.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use super::ready::Ready;

/// Texts kept by each thread.
const KEPT_BITS: u32 = 11;

/// Of which context and of which of its ways to print a number (an [`id`] each, or for the latter 0 or 1 for symbols),
/// and the number.
pub(super) type Key = (u64, u64, u64);

/// An id that no other caller in this process gets; more than 1.
pub(super) fn id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(2);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

thread_local! {
    static LATELY: RefCell<Vec<(Key, Ready<40>)>> = const { RefCell::new(Vec::new()) };
}

/// Appends the text that `make` appends for `key`, which is asked only if it is not known.
#[inline]
pub(super) fn push(key: Key, out: &mut Vec<u8>, make: impl FnOnce(&mut Vec<u8>) -> Option<()>) -> Option<()> {
    let mixed = (key.1 ^ key.2.rotate_left(8)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let slot = (mixed >> (u64::BITS - KEPT_BITS)) as usize;
    LATELY.with_borrow_mut(|lately| {
        if lately.is_empty() {
            lately.resize_with(1 << KEPT_BITS, Default::default);
        }
        let (kept, text) = &mut lately[slot];
        // No key begins with 0, as those of the empty slots do.
        if *kept != key {
            let start = out.len();
            make(out)?;
            text.set(&out[start..]);
            *kept = key;
            return Some(());
        }
        text.push(out);
        Some(())
    })
}
