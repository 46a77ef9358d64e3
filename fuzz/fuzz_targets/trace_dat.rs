//! Any bytes as a trace.dat, read in both orders and printed: no panic, no hang, no memory beyond reason.
#![no_main]

use std::io;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tracebridge::export::systrace::{EventPrinter, LineColumns};
use tracebridge::formats::trace_dat::TraceDat;
use tracebridge::formats::{Event, EventType, EventTypeId, Order, Sink};
use tracebridge::ftrace::print_fmt::Symbolizer;

#[derive(Default)]
struct Print {
    context: Arc<Symbolizer>,
    printers: Vec<EventPrinter>,
    columns: LineColumns,
    line: Vec<u8>,
}

impl Sink for Print {
    fn kernel(&mut self, context: &Arc<Symbolizer>) -> io::Result<()> {
        self.context = context.clone();
        Ok(())
    }
    fn event_type(&mut self, _: EventTypeId, kind: &EventType) -> io::Result<()> {
        self.printers.push(EventPrinter::new(kind, &self.context));
        Ok(())
    }
    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        self.line.clear();
        self.columns.push(event, &mut self.line);
        self.printers[event.kind.0 as usize].push(event, kind, &mut self.line);
        Ok(())
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(dat) = TraceDat::open(data) else { return };
    for order in [Order::Any, Order::Time] {
        let _ = dat.read(order, &mut Print::default());
    }
});
