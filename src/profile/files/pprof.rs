//! Files for pprof: the message `Profile` packed with gzip (github.com/google/pprof, proto/profile.proto).
//!
//! Each path of the call tree that has a figure of its own is one sample, with the functions of the path from
//! the innermost outwards, and the thread's name as its label.

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::formats::wire::write::{bytes, message, uint};
use crate::profile::count::tree::{CallTree, ROOT};
use crate::profile::profile_run::ProfileRun;

/// Field numbers of `Profile`.
mod profile {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const MAPPING: u32 = 3;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING_TABLE: u32 = 6;
    pub(super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

/// The most functions of one path: those further out are left out.
const MAX_DEPTH: usize = 2_000;

/// The strings of a file; the first is empty.
struct PprofStrings {
    all: Vec<String>,
    ids: HashMap<String, u64>,
}

impl PprofStrings {
    fn id(&mut self, text: &str) -> u64 {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = self.all.len() as u64;
        self.all.push(text.to_owned());
        self.ids.insert(text.to_owned(), id);
        id
    }
}

/// Writes the tree of a profile.
pub(super) fn write(run: &ProfileRun<'_, '_>, tree: &CallTree, out: &mut dyn Write) -> io::Result<()> {
    let mut out = GzEncoder::new(out, Compression::default());
    let mut strings = PprofStrings { all: vec![String::new()], ids: HashMap::from([(String::new(), 0)]) };
    let columns = run.trace.columns();
    let tick_ns = run.trace.tick_ns();
    let mut clocks: Vec<(usize, &str)> = columns.named().collect();
    if clocks.is_empty() {
        clocks.push((run.clock, "calls"));
    }
    let mut part = Vec::new();
    // Programs that show one figure show the last.
    clocks.sort_by_key(|(clock, _)| *clock == run.clock);
    for (clock, name) in &clocks {
        let unit = if columns.is_time(*clock) && columns.has(*clock) { "nanoseconds" } else { "count" };
        let name =
            if columns.is_sampled && *clock == run.clock { run.tick_unit() } else { (*name).to_owned() };
        let kind = if name == "ns" { strings.id("time") } else { strings.id(&name) };
        let unit = strings.id(unit);
        message(&mut part, profile::SAMPLE_TYPE, |value_type| {
            uint(value_type, 1, kind);
            uint(value_type, 2, unit);
        });
        if *clock == run.clock {
            uint(&mut part, profile::DEFAULT_SAMPLE_TYPE, kind);
        }
    }
    let thread_key = strings.id("thread");
    let threads: Vec<u64> =
        (0..run.trace.threads().len() as u32).map(|thread| strings.id(&run.names.thread(thread))).collect();
    let mut is_used = vec![false; run.trace.methods().len()];
    for node in tree.nodes.iter().filter(|node| node.own != [0; 2]) {
        let mut path = Vec::new();
        let mut at = *node;
        while at.method != ROOT && path.len() < MAX_DEPTH {
            path.push(u64::from(at.method) + 1);
            is_used[at.method as usize] = true;
            at = tree.nodes[at.parent as usize];
        }
        message(&mut part, profile::SAMPLE, |sample| {
            for location in path {
                uint(sample, 1, location);
            }
            for (clock, _) in &clocks {
                uint(sample, 2, node.own[*clock].saturating_mul(tick_ns));
            }
            let label = threads.get(node.thread as usize).copied().unwrap_or(0);
            message(sample, 3, |pair| {
                uint(pair, 1, thread_key);
                uint(pair, 2, label);
            });
        });
        if part.len() > 1 << 18 {
            out.write_all(&part)?;
            part.clear();
        }
    }
    let mut mappings: HashMap<String, u64> = HashMap::new();
    for method in (0..is_used.len()).filter(|method| is_used[*method]) {
        let id = method as u64 + 1;
        let method = method as u32;
        let (file, line) = run.names.source(method);
        let name = strings.id(&run.names.long(method));
        let file = file.unwrap_or("");
        let file_id = strings.id(file);
        let next = mappings.len() as u64 + 1;
        let mapping = *mappings.entry(file.to_owned()).or_insert(next);
        if mapping == next {
            message(&mut part, profile::MAPPING, |message| {
                uint(message, 1, mapping);
                uint(message, 5, file_id);
                uint(message, 7, 1);
            });
        }
        message(&mut part, profile::LOCATION, |location| {
            uint(location, 1, id);
            uint(location, 2, mapping);
            message(location, 4, |place| {
                uint(place, 1, id);
                uint(place, 2, line.and_then(|line| u64::try_from(line).ok()).unwrap_or(0));
            });
        });
        message(&mut part, profile::FUNCTION, |function| {
            uint(function, 1, id);
            uint(function, 2, name);
            uint(function, 3, name);
            uint(function, 4, file_id);
        });
    }
    for text in &strings.all {
        bytes(&mut part, profile::STRING_TABLE, text.as_bytes());
    }
    out.write_all(&part)?;
    out.finish()?.flush()
}
