//! Thread ids that one thread after another had: which records are whose.

use std::collections::HashMap;

use super::body::{FixedBody, decode};
use super::ids::IdMap;
use super::scan::Scan;
use super::{Method, TracedThread};

/// The threads that took an id over, in the list's order, by id.
type Heirs = HashMap<u32, Vec<u32>>;

/// Parts the records of ids that several threads had, and adds threads that no list names. Returns how many ids the list
/// gives to several threads whose records nothing tells apart.
///
/// Two things prove that another thread goes on under an id: its CPU clock starts over (`scan` has found where), or,
/// for ids that the list gives to several threads, all calls have ended and `Thread.run` is entered once more.
pub fn part(
    bytes: &[u8],
    body: &mut FixedBody,
    scan: &Scan,
    threads: &mut Vec<TracedThread<'_>>,
    methods: &[Method<'_>],
    ids: &IdMap,
) -> u64 {
    let mut heirs = Heirs::new();
    for (n, thread) in threads.iter().enumerate().filter(|(_, thread)| thread.reused_id) {
        heirs.entry(thread.id).or_default().push(n as u32);
    }
    let mut binds = Vec::new();
    let mut together = 0;
    for (index, found) in scan.by_thread.iter().enumerate() {
        let Some(id) = threads.get(index).map(|thread| thread.id).and_then(|id| u16::try_from(id).ok())
        else {
            continue;
        };
        // Each has its records already where a streaming file declares threads as they come.
        let listed = heirs.remove(&u32::from(id)).unwrap_or_default();
        let waiting =
            listed.iter().filter(|n| scan.by_thread.get(**n as usize).is_none_or(|t| t.records == 0));
        let mut waiting: Vec<u32> = waiting.copied().collect();
        let mut offsets = found.restarts.clone();
        if offsets.is_empty() && !waiting.is_empty() && found.records > 0 {
            offsets = runs(bytes, body, id, methods, ids);
            if offsets.len() != waiting.len() {
                together += 1;
                continue;
            }
        }
        waiting.reverse();
        for offset in offsets {
            let next = waiting.pop().unwrap_or_else(|| {
                let (id, name) = (u32::from(id), "".into());
                threads.push(TracedThread { id, name, declared: false, reused_id: true, records: 0 });
                threads.len() as u32 - 1
            });
            binds.push((offset, id, next));
        }
    }
    body.bind_all(binds);
    together
}

/// Where a thread of this id enters `Thread.run` with no call open, but for the first time.
fn runs(bytes: &[u8], body: &FixedBody, id: u16, methods: &[Method<'_>], ids: &IdMap) -> Vec<usize> {
    let is_run = |word: u32| {
        let method = methods.get(ids.get(u64::from(word)) as usize);
        method.is_some_and(|m| m.name == "run" && m.class_name() == "java.lang.Thread")
    };
    let mut offsets = Vec::new();
    let mut depth = 0u64;
    let mut seen = false;
    for segment in &body.segments {
        for (n, record) in decode(bytes, &segment.range, body.layout).enumerate() {
            if record.thread != id || record.word & 3 == 3 {
                continue;
            }
            if record.word & 3 != 0 {
                depth = depth.saturating_sub(1);
                continue;
            }
            if depth == 0 && is_run(record.word) && std::mem::replace(&mut seen, true) {
                offsets.push(segment.range.start + n * body.layout.size());
            }
            depth += 1;
        }
    }
    offsets
}
