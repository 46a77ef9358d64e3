//! Any bytes into the reader of strace's output: no panic, no hang, no memory beyond
//! reason; the events of a track come in order of time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::formats::{Order, strace};
use tracebridge_fuzz::TrackOrder;

fuzz_target!(|data: &[u8]| {
    let _ = strace::read(data, Order::Time, &mut TrackOrder::default());
});
