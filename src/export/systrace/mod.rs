//! systrace's text: tracefs' `trace` file with the TGID column.

mod formatter;
mod line;

use std::io;
use std::sync::Arc;

pub use line::{Columns, HEADER, Printer, Threads};

use self::formatter::{Formatter, Printers};
use super::Out;
use crate::formats::{Event, EventType, EventTypeId, Head, Order, Payload, Sink, ThreadInfo};
use crate::ftrace::print_fmt::Symbolizer;
use crate::timeline::{MergeSummary, TimelineSink};

/// Writes a timeline as systrace text.
pub struct SystraceWriter {
    out: Formatter,
    threads: Arc<Threads>,
    printers: Printers,
    context: Arc<Symbolizer>,
    /// For events that do not outlive the call.
    columns: Columns,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl SystraceWriter {
    /// Writes onto `out`.
    pub fn new(out: Out) -> SystraceWriter {
        SystraceWriter::framed(out, Vec::new(), Vec::new())
    }

    /// Writes onto `out`, with `before` before the first line and `after` behind the last: an HTML page's rest.
    pub fn framed(out: Out, before: Vec<u8>, after: Vec<u8>) -> SystraceWriter {
        SystraceWriter {
            out: Formatter::new(out),
            threads: Arc::default(),
            printers: Arc::default(),
            context: Arc::default(),
            columns: Columns::default(),
            before,
            after,
        }
    }

    fn flush_if_full(&mut self) -> io::Result<()> {
        if self.out.batch.is_full() { self.out.flush(&self.printers, &self.threads) } else { Ok(()) }
    }
}

impl Sink for SystraceWriter {
    fn head(&mut self, _: &Head) -> io::Result<()> {
        let before = std::mem::take(&mut self.before);
        self.out.batch.ready(|line| {
            line.extend_from_slice(&before);
            line.extend_from_slice(HEADER.as_bytes());
        });
        Ok(())
    }

    fn kernel(&mut self, context: &Arc<Symbolizer>) -> io::Result<()> {
        self.context = context.clone();
        Ok(())
    }

    fn event_type(&mut self, _: EventTypeId, kind: &EventType) -> io::Result<()> {
        let printer = Printer::new(kind, &self.context);
        Arc::make_mut(&mut self.printers).push(Arc::new((printer, kind.clone())));
        Ok(())
    }

    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        Arc::make_mut(&mut self.threads).learn(thread);
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        match event.payload {
            Payload::Raw { data, endian } if event.comm.is_none() && event.tgid.is_none() => {
                self.out.batch.record(event, data, endian);
            }
            _ => {
                let Some(printer) = self.printers.get(event.kind.0 as usize) else { return Ok(()) };
                self.columns.set_threads(&self.threads);
                self.out.batch.ready(|line| {
                    self.columns.push(event, line);
                    printer.0.push(event, kind, line);
                    line.push(b'\n');
                });
            }
        }
        self.flush_if_full()
    }

    fn lost(&mut self, cpu: u32, count: Option<u64>) -> io::Result<()> {
        // As the kernel's trace_pipe says it.
        let line = match count {
            Some(count) => format!("CPU:{cpu} [LOST {count} EVENTS]\n"),
            None => format!("CPU:{cpu} [LOST EVENTS]\n"),
        };
        self.out.batch.ready(|out| out.extend_from_slice(line.as_bytes()));
        Ok(())
    }
}

impl TimelineSink for SystraceWriter {
    fn order(&self) -> Order {
        Order::Time
    }

    fn finish(&mut self, _: &MergeSummary) -> io::Result<()> {
        let after = std::mem::take(&mut self.after);
        self.out.batch.ready(|line| line.extend_from_slice(&after));
        self.out.flush(&self.printers, &self.threads)?;
        self.out.finish()
    }
}
