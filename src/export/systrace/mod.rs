//! Writes systrace text: the format of tracefs' `trace` file with the TGID column.

mod formatter;
mod line;

use std::io;
use std::sync::Arc;

pub use line::{EventPrinter, LineColumns};

use self::formatter::{LineFormatter, Printers};
use self::line::HEADER;
use super::Out;
use super::thread_names::ThreadNames;
use crate::formats::{Event, EventType, EventTypeId, Head, Order, Payload, Sink, ThreadInfo};
use crate::ftrace::print_fmt::Symbolizer;
use crate::timeline::{MergeSummary, TimelineSink};

/// Writes a timeline as systrace text.
pub struct SystraceWriter {
    out: LineFormatter,
    threads: Arc<ThreadNames>,
    printers: Printers,
    context: Arc<Symbolizer>,
    /// Prints the columns of events whose values do not outlive the call. Such events are printed at once,
    /// not in a batch.
    columns: LineColumns,
}

impl SystraceWriter {
    /// A writer that writes to `out`.
    pub fn new(out: Out) -> SystraceWriter {
        SystraceWriter {
            out: LineFormatter::new(out),
            threads: Arc::default(),
            printers: Arc::default(),
            context: Arc::default(),
            columns: LineColumns::default(),
        }
    }

    fn flush_if_full(&mut self) -> io::Result<()> {
        if self.out.batch.is_full() { self.out.flush(&self.printers, &self.threads) } else { Ok(()) }
    }
}

impl Sink for SystraceWriter {
    fn head(&mut self, _: &Head) -> io::Result<()> {
        self.out.batch.complete_line(|line| line.extend_from_slice(HEADER.as_bytes()));
        Ok(())
    }

    fn kernel(&mut self, context: &Arc<Symbolizer>) -> io::Result<()> {
        self.context = context.clone();
        Ok(())
    }

    fn event_type(&mut self, _: EventTypeId, kind: &EventType) -> io::Result<()> {
        let printer = EventPrinter::new(kind, &self.context);
        Arc::make_mut(&mut self.printers).push(Arc::new((printer, kind.clone())));
        Ok(())
    }

    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        Arc::make_mut(&mut self.threads).learn(thread.tid, thread.tgid, thread.name);
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
                self.out.batch.complete_line(|line| {
                    self.columns.push(event, line);
                    printer.0.push(event, kind, line);
                    line.push(b'\n');
                });
            }
        }
        self.flush_if_full()
    }

    fn lost(&mut self, cpu: u32, count: Option<u64>) -> io::Result<()> {
        // The wording is that of the kernel's trace_pipe.
        let line = match count {
            Some(count) => format!("CPU:{cpu} [LOST {count} EVENTS]\n"),
            None => format!("CPU:{cpu} [LOST EVENTS]\n"),
        };
        self.out.batch.complete_line(|out| out.extend_from_slice(line.as_bytes()));
        Ok(())
    }
}

impl TimelineSink for SystraceWriter {
    fn order(&mut self) -> Order {
        Order::Time
    }

    fn finish(&mut self, _: &MergeSummary) -> io::Result<()> {
        self.out.flush(&self.printers, &self.threads)?;
        self.out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::track_builder::tests::export;
    use super::SystraceWriter;

    #[test]
    fn a_text_keeps_its_flags_when_it_is_written_again() {
        let columns =
            ["dLh1.", "dBs2.", "db.3.", "Xl...", "X..1.", "D.H.1", "bnz..", ".NZf.", ".p.1.", "....."];
        let lines = columns.iter().enumerate().map(|(i, column)| {
            format!(
                "              sh-7       (      7) [001] {column}     1.00000{i}: tracing_mark_write: E|7\n"
            )
        });
        let lines: String = lines.collect();
        let written = export(|out| Box::new(SystraceWriter::new(out)), &lines);
        assert!(written.ends_with(&lines), "{written}\n{lines}");
    }
}
