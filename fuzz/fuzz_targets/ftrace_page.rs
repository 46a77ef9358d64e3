//! Any bytes as a page of the ring buffer, in both byte orders and word sizes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::ftrace::{Endian, PageLayout};

fuzz_target!(|data: &[u8]| {
    for endian in [Endian::Little, Endian::Big] {
        for long in [4, 8] {
            let layout = PageLayout::usual(endian, long, 4096);
            let Ok(page) = layout.page(data) else { continue };
            let mut records = page.records();
            let bytes: usize = records.by_ref().map(|r| r.data.len()).sum();
            assert!(bytes <= data.len());
            let _ = records.fault();
        }
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = PageLayout::parse(text, Endian::Little);
    }
});
