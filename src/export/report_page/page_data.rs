//! The data of a page as it is written: the blocks of one or several traces, and the directory.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::blocks::BlockWriter;
use super::page_trace::PageTrace;
use crate::export::comparison::Comparison;
use crate::formats::REPORT_DIRECTORY_ID;
use crate::timeline::MergeSummary;

/// What a trace is on its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::export) enum TraceRole {
    /// The page's only trace.
    Only,
    /// The later one of two that are compared.
    New,
    /// The earlier one.
    Old,
}

impl TraceRole {
    fn name(self) -> &'static str {
        match self {
            TraceRole::Only => "trace",
            TraceRole::New => "new",
            TraceRole::Old => "old",
        }
    }
}

/// Writes the data of a page to `W`.
pub(in crate::export) struct PageData<W: Write + Send + 'static> {
    blocks: BlockWriter<W>,
    /// The entries of the directory.
    traces: Vec<Value>,
}

impl<W: Write + Send + 'static> PageData<W> {
    pub fn new(out: W) -> PageData<W> {
        PageData { blocks: BlockWriter::new(out), traces: Vec::new() }
    }

    /// Adds a trace that has been collected whole. The page shows the first one first.
    pub fn add(&mut self, role: TraceRole, trace: &mut PageTrace, summary: &MergeSummary) -> io::Result<()> {
        let index = trace.write(summary, &mut self.blocks)?;
        self.traces.push(json!({ "role": role.name(), "index": index }));
        Ok(())
    }

    /// Writes the comparison of the traces, if there is one, and the directory. Returns the output.
    pub fn finish(mut self, comparison: Option<&Comparison>) -> io::Result<W> {
        let comparison = comparison.map(|comparison| self.blocks.json(comparison)).transpose()?;
        let directory = json!({
            "format": "tracebridge-report",
            "version": 6,
            "generator": concat!("tracebridge ", env!("CARGO_PKG_VERSION")),
            "traces": self.traces,
            "comparison": comparison,
        });
        let mut out = self.blocks.finish()?;
        write!(out, "<script type=\"application/json\" id=\"{REPORT_DIRECTORY_ID}\">")?;
        out.write_all(directory.to_string().replace('<', "\\u003c").as_bytes())?;
        out.write_all(b"</script>\n")?;
        Ok(out)
    }
}
