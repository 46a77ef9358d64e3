//! Caches the texts of numbers that cost much to print: addresses, whose symbols are searched for, and flags
//! with names.
//!
//! Events come from few places in the kernel and have few combinations of flags, so most texts are printed
//! again soon.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use super::pieces::InlineBytes;

/// log2 of the number of texts that each thread keeps.
const CACHE_BITS: u32 = 11;

/// The key of a cached text: the [`id`] of the source of names, the way of printing, and the number. The way
/// of printing is an [`id`] too, or 0 or 1 for symbols without and with their offset.
pub(crate) type RenderKey = (u64, u64, u64);

/// Returns an id that no other caller in this process gets. Ids are larger than 1.
pub(crate) fn id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(2);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

thread_local! {
    static CACHE: RefCell<Vec<(RenderKey, InlineBytes<40>)>> = const { RefCell::new(Vec::new()) };
}

/// Calls `with` with the text of `key`. Where the cache does not have the text, `make` appends it to an empty
/// one. `None` where `make` fails.
#[inline]
pub(crate) fn with(
    key: RenderKey,
    make: impl FnOnce(&mut Vec<u8>) -> Option<()>,
    with: impl FnOnce(&InlineBytes<40>),
) -> Option<()> {
    let mixed = (key.1 ^ key.2.rotate_left(8)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let slot = (mixed >> (u64::BITS - CACHE_BITS)) as usize;
    CACHE.with_borrow_mut(|cache| {
        if cache.is_empty() {
            cache.resize_with(1 << CACHE_BITS, Default::default);
        }
        let (cached_key, text) = &mut cache[slot];
        // The keys of empty slots are all 0. No other key is: no id is 0.
        if *cached_key != key {
            let mut made = Vec::new();
            make(&mut made)?;
            text.set(&made);
            *cached_key = key;
        }
        with(text);
        Some(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_made_once_and_a_failure_is_not_cached() {
        let key = (id(), id(), 7);
        let mut out = Vec::new();
        assert_eq!(with(key, |_| None, |_| unreachable!()), None);
        for round in 0..2 {
            let mut made = 0;
            let make = |text: &mut Vec<u8>| {
                made += 1;
                text.extend_from_slice(b"seven ");
                Some(())
            };
            with(key, make, |text| text.push(&mut out));
            assert_eq!(made, usize::from(round == 0));
        }
        assert_eq!(out, b"seven seven ");
        let make = |text: &mut Vec<u8>| {
            text.extend_from_slice(b"eight");
            Some(())
        };
        with((key.0, key.1, 8), make, |text| text.push(&mut out));
        assert_eq!(out, b"seven seven eight");
    }
}
