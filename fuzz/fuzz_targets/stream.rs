//! A stream of `record -o -`: whatever the bytes are, there is an error or a capture.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::formats::trace_dat::TraceDat;
use tracebridge::internals::RecorderStream;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(stream) = RecorderStream::parse(bytes) {
        let mut dat = Vec::new();
        stream.write_dat(&mut dat).expect("writing to memory");
        let _ = TraceDat::open(&dat);
    }
});
