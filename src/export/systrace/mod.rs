//! systrace's text: tracefs' `trace` file with the TGID column.

mod line;

use std::io;
use std::sync::Arc;

pub use line::{Columns, HEADER, Printer};

use super::Out;
use super::background::Background;
use crate::formats::{Event, EventKind, Head, KindId, Order, Sink, Thread};
use crate::ftrace::print_fmt::Context;
use crate::timeline::{Outcome, TimelineSink};

/// Writes a timeline as systrace text.
pub struct SystraceWriter {
    out: Background,
    piece: Vec<u8>,
    columns: Columns,
    printers: Vec<Printer>,
    context: Arc<Context>,
}

impl SystraceWriter {
    /// Writes onto `out`.
    pub fn new(out: Out) -> SystraceWriter {
        SystraceWriter {
            out: Background::new(out),
            piece: Vec::new(),
            columns: Columns::default(),
            printers: Vec::new(),
            context: Arc::default(),
        }
    }
}

impl Sink for SystraceWriter {
    fn head(&mut self, _: &Head) -> io::Result<()> {
        self.piece.extend_from_slice(HEADER.as_bytes());
        Ok(())
    }

    fn kernel(&mut self, context: &Arc<Context>) -> io::Result<()> {
        self.context = context.clone();
        Ok(())
    }

    fn kind(&mut self, _: KindId, kind: &EventKind) -> io::Result<()> {
        self.printers.push(Printer::new(kind, &self.context));
        Ok(())
    }

    fn thread(&mut self, thread: &Thread<'_>) -> io::Result<()> {
        self.columns.thread(thread);
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>, kind: &EventKind) -> io::Result<()> {
        let Some(printer) = self.printers.get(event.kind.0 as usize) else { return Ok(()) };
        self.columns.push(event, &mut self.piece);
        printer.push(event, kind, &mut self.piece);
        self.piece.push(b'\n');
        self.out.offer(&mut self.piece)
    }

    fn lost(&mut self, cpu: u32, count: Option<u64>) -> io::Result<()> {
        // As the kernel's trace_pipe says it.
        let line = match count {
            Some(count) => format!("CPU:{cpu} [LOST {count} EVENTS]\n"),
            None => format!("CPU:{cpu} [LOST EVENTS]\n"),
        };
        self.piece.extend_from_slice(line.as_bytes());
        Ok(())
    }
}

impl TimelineSink for SystraceWriter {
    fn order(&self) -> Order {
        Order::Time
    }

    fn finish(&mut self, _: &Outcome) -> io::Result<()> {
        self.out.write(&mut self.piece)?;
        self.out.finish()
    }
}
