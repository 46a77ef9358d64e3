//! Any text as an event's `format` file, and a record of zeroes and of ones printed by it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::ftrace::print_fmt::{PrintFmt, Symbolizer};
use tracebridge::ftrace::{Endian, EventFormat};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let Ok(format) = EventFormat::parse("fuzz", &text) else { return };
    let context = Symbolizer::default();
    for program in
        [PrintFmt::compile(&format.kind, 8), Ok(PrintFmt::pairs(&format.kind))].into_iter().flatten()
    {
        for byte in [0, 1, 0xff] {
            let mut out = Vec::new();
            let _ = program.print(&[byte; 256], Endian::Little, &context, &mut out);
            let _ = program.print(&[byte; 16], Endian::Big, &context, &mut out);
        }
    }
});
