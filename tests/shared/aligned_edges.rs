//! Collects the time that the alignment gave each enter and exit of each thread.

use std::collections::HashMap;
use std::io;

use tracebridge::formats::{Event, EventType, Sink};
use tracebridge::timeline::{Edge, MergeSummary, MethodThread, TimelineSink};

/// The threads of method traces, and the times of their edges in their order, by the thread's number.
#[derive(Default)]
pub struct AlignedEdges {
    pub threads: HashMap<u32, MethodThread>,
    pub edges: HashMap<u32, Vec<u64>>,
}

impl Sink for AlignedEdges {
    fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
        Ok(())
    }
}

impl TimelineSink for AlignedEdges {
    fn method_thread(&mut self, thread: &MethodThread) -> io::Result<()> {
        self.threads.insert(thread.index, thread.clone());
        Ok(())
    }
    fn edges(&mut self, thread: u32, edges: &[Edge]) -> io::Result<()> {
        self.edges.entry(thread).or_default().extend(edges.iter().map(|e| e.ts));
        Ok(())
    }
    fn finish(&mut self, _: &MergeSummary) -> io::Result<()> {
        Ok(())
    }
}
