//! Any bytes into the reader, in both orders: no panic, no hang, no memory beyond reason.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::formats::{Event, EventKind, Order, Sink, known, ftrace_text};

struct Render(Vec<u8>);

impl Sink for Render {
    fn event(&mut self, event: &Event<'_>, kind: &EventKind) -> std::io::Result<()> {
        self.0.clear();
        known::render(event, kind, &mut self.0);
        Ok(())
    }
}

fuzz_target!(|data: &[u8]| {
    for order in [Order::Any, Order::Time] {
        let _ = ftrace_text::read(data, order, &mut Render(Vec::new()));
    }
});
