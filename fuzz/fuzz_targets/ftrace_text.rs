//! Any bytes into the reader, in both orders: no panic, no hang, no memory beyond reason.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::formats::{Order, ftrace_text};
use tracebridge_fuzz::Render;

fuzz_target!(|data: &[u8]| {
    for order in [Order::Any, Order::Time] {
        let _ = ftrace_text::read(data, order, &mut Render::default());
    }
});
