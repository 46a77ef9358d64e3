//! Any bytes into the reader of Chrome's JSON, and through the writer of packets: no panic, no hang, no
//! memory beyond reason; the events of a track come in order of time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::formats::{Order, chrome_json};
use tracebridge_fuzz::TrackOrder;

fuzz_target!(|data: &[u8]| {
    let _ = chrome_json::read(data, Order::Time, &mut TrackOrder::default());
});
