//! Any text as the texts of tracefs and /proc that a recording stores: symbols, printk formats, names.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::ftrace::{Symbols, parse_printk_formats};

fuzz_target!(|data: &[u8]| {
    let symbols = Symbols::parse(data.to_vec());
    for address in [0, 1, 0xffff_ffff_8100_0000, u64::MAX] {
        if let Some(symbol) = symbols.find(address) {
            assert!(symbol.offset <= address);
            let start = address - symbol.offset;
            assert_eq!(symbols.find(start).map(|found| (found.name, found.offset)), Some((symbol.name, 0)));
        }
    }
    let _ = parse_printk_formats(data);
});
