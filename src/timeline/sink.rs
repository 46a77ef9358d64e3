//! What an exporter takes: kernel events through [`Sink`], and method slices on the kernel's threads, all in one clock.
//!
//! The order of calls: [`Sink::head`] once; then, as they come, `kind`, `thread`, `process`, `event`, `lost`,
//! [`TimelineSink::method`], [`TimelineSink::method_thread`] and [`TimelineSink::edges`]; at the end
//! [`TimelineSink::finish`] once. All times are ns in [`Head::clock`](crate::formats::Head::clock).

use std::io;

use super::MergeSummary;
use crate::formats::{Order, Sink};

/// Which method; dense, starting at 0, over all inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MethodId(pub u32);

/// A method's name as the trace has it (after `--mapping`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodName<'a> {
    /// `java.lang.String`; empty where the trace does not declare the method.
    pub class: &'a str,
    /// `valueOf`; for an undeclared method its number, `0x7f001234`.
    pub name: &'a str,
    /// `(I)Ljava/lang/String;`, or empty.
    pub signature: &'a str,
    /// The source file, or empty.
    pub file: &'a str,
}

/// A thread of a method trace, and which of the kernel's threads it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodThread {
    /// Dense, starting at 0, over all inputs: what [`TimelineSink::edges`] names.
    pub index: u32,
    /// The kernel's thread, where it was found.
    pub tid: Option<i32>,
    /// Its process, where known.
    pub tgid: Option<i32>,
    /// The full name as the method trace has it.
    pub name: String,
    /// The id in the method trace.
    pub trace_id: u32,
    /// Why `tid` is missing or not certain; `None` where it is certain.
    pub doubt: Option<String>,
}

/// Enter or exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeKind {
    /// A method begins.
    Enter,
    /// The innermost open method ends, by return or by exception.
    Exit,
}

/// A method begins or ends on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// When, ns in the timeline's clock.
    pub ts: u64,
    /// The thread's CPU time since its first record, ns; `None` where the trace has no such clock.
    pub cpu: Option<u64>,
    /// Which method.
    pub method: MethodId,
    /// Enter or exit.
    pub kind: EdgeKind,
}

/// Takes a whole timeline. Every exporter is one; an error ends the merge.
pub trait TimelineSink: Sink {
    /// In which order it wants what it gets. With [`Order::Time`] kernel events and edges come by time together, at
    /// the price of memory for the smaller inputs; with [`Order::Any`] each CPU and each thread is in order by
    /// itself, which is cheapest.
    fn order(&self) -> Order {
        Order::Any
    }
    /// Before the first edge of this method, once.
    fn method(&mut self, id: MethodId, name: &MethodName<'_>) -> io::Result<()> {
        let _ = (id, name);
        Ok(())
    }
    /// Before the first edge of this thread, once.
    fn method_thread(&mut self, thread: &MethodThread) -> io::Result<()> {
        let _ = thread;
        Ok(())
    }
    /// Edges of one thread, in order of time. Every exit ends the last enter that is open, and none stays open.
    fn edges(&mut self, thread: u32, edges: &[Edge]) -> io::Result<()> {
        let _ = (thread, edges);
        Ok(())
    }
    /// The end: losses, verdicts. Writes what is left and flushes; only after this the output is whole.
    fn finish(&mut self, outcome: &MergeSummary) -> io::Result<()>;
    /// After [`TimelineSink::finish`]: what the output does not hold as the inputs have it, one sentence each, for the
    /// summary.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}
