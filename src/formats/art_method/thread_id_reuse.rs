//! Assigns records to threads where several threads had the same id one after another.

use std::collections::HashMap;

use super::body::{FixedBody, decode};
use super::ids::IdMap;
use super::prescan::Prescan;
use super::{Method, TracedThread};

/// The result of [`separate`].
#[derive(Debug, Default)]
pub(super) struct SeparatedThreads {
    /// Offset in the file, thread id, and the index of the thread that the id means from that offset on.
    pub binds: Vec<(usize, u16, u32)>,
    /// Number of ids that the thread list gives to several threads whose records cannot be separated.
    pub inseparable_ids: u64,
}

/// Separates the threads that had the same id one after another, and adds the threads that no list names.
///
/// Two signs prove that another thread has taken over an id: the CPU clock of the id starts over (the prescan
/// has found the places), or, for ids that the list gives to several threads, `Thread.run` is entered again
/// after all calls have ended.
pub(super) fn separate(
    bytes: &[u8],
    body: &FixedBody,
    scan: &Prescan,
    threads: &mut Vec<TracedThread<'_>>,
    methods: &[Method<'_>],
    ids: &IdMap,
) -> SeparatedThreads {
    let shared = shared_ids(threads, scan);
    let wanted = shared.iter().filter(|shared| shared.needs_thread_run(scan)).map(|shared| shared.id);
    let mut wanted: HashMap<u16, ThreadRuns> = wanted.map(|id| (id, ThreadRuns::default())).collect();
    find_thread_runs(bytes, body, &mut wanted, methods, ids);
    let mut separated = SeparatedThreads::default();
    for shared in shared {
        let offsets = if shared.needs_thread_run(scan) {
            let runs = wanted.remove(&shared.id).unwrap_or_default();
            if runs.offsets.len() != shared.successors.len() {
                separated.inseparable_ids += 1;
                continue;
            }
            runs.offsets
        } else {
            scan.by_thread[shared.first].restarts.clone()
        };
        let mut successors = shared.successors.into_iter();
        for offset in offsets {
            let next = successors.next().unwrap_or_else(|| {
                let (id, name) = (u32::from(shared.id), "".into());
                threads.push(TracedThread { id, name, declared: false, reused_id: true, records: 0 });
                threads.len() as u32 - 1
            });
            separated.binds.push((offset, shared.id, next));
        }
    }
    separated
}

/// An id whose records may belong to several threads.
struct SharedId {
    id: u16,
    /// Index of the thread to which the scan gave the records.
    first: usize,
    /// Indexes of the later threads with the same id that have no records yet, in the order of the list.
    successors: Vec<u32>,
}

impl SharedId {
    /// Whether only the entries of `Thread.run` can separate the threads, because the CPU clock does not
    /// start over.
    fn needs_thread_run(&self, scan: &Prescan) -> bool {
        let first = &scan.by_thread[self.first];
        first.restarts.is_empty() && !self.successors.is_empty() && first.records > 0
    }
}

fn shared_ids(threads: &[TracedThread<'_>], scan: &Prescan) -> Vec<SharedId> {
    let mut successors: HashMap<u32, Vec<u32>> = HashMap::new();
    for (index, thread) in threads.iter().enumerate().filter(|(_, thread)| thread.reused_id) {
        successors.entry(thread.id).or_default().push(index as u32);
    }
    let mut shared = Vec::new();
    for (first, thread) in threads.iter().enumerate().take(scan.by_thread.len()) {
        let Ok(id) = u16::try_from(thread.id) else { continue };
        let mut successors = successors.remove(&thread.id).unwrap_or_default();
        // A streaming file declares threads between the records: those threads have their records already.
        successors.retain(|index| scan.by_thread.get(*index as usize).is_none_or(|scan| scan.records == 0));
        shared.push(SharedId { id, first, successors });
    }
    shared
}

/// The places where the threads of one id enter `Thread.run`.
#[derive(Debug, Default)]
struct ThreadRuns {
    depth: u64,
    seen: bool,
    /// Offsets in the file of the records that enter `Thread.run` while no call is open, except the first.
    offsets: Vec<usize>,
}

/// Finds the entries of `Thread.run` for all wanted ids in one pass over the records.
fn find_thread_runs(
    bytes: &[u8],
    body: &FixedBody,
    wanted: &mut HashMap<u16, ThreadRuns>,
    methods: &[Method<'_>],
    ids: &IdMap,
) {
    if wanted.is_empty() {
        return;
    }
    let is_thread_run = |word: u32| {
        let method = methods.get(ids.get(u64::from(word)) as usize);
        method.is_some_and(|m| m.name == "run" && m.class_name() == "java.lang.Thread")
    };
    for segment in &body.segments {
        for (n, record) in decode(bytes, &segment.range, body.layout).enumerate() {
            let Some(runs) = wanted.get_mut(&record.thread) else { continue };
            match record.word & 3 {
                0 => {
                    let outermost = runs.depth == 0;
                    if outermost && is_thread_run(record.word) && std::mem::replace(&mut runs.seen, true) {
                        runs.offsets.push(segment.range.start + n * body.layout.size());
                    }
                    runs.depth += 1;
                }
                3 => {}
                _ => runs.depth = runs.depth.saturating_sub(1),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use crate::formats::art_method::MethodTrace;

    /// A trace of wall time whose list gives each of `ids` ids to two threads: each thread enters and leaves
    /// `Thread.run`, and between the two come `calls` calls of the first thread.
    fn trace_of_reused_ids(ids: u16, calls: u32) -> Vec<u8> {
        let mut text = String::from("*version\n2\nclock=wall\nelapsed-time-usec=1000000\n*threads\n");
        for thread in (1..=ids).chain(1..=ids) {
            let _ = writeln!(text, "{thread}\tthread {thread}");
        }
        text += "*methods\n0x4\tjava.lang.Thread\trun\t()V\tThread.java\n0x8\ta.B\tc\t()V\tB.java\n*end\n";
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(b"SLOW\x02\0\x20\0");
        bytes.extend_from_slice(&[0; 24]);
        let mut time_us = 0u32;
        let mut record = |thread: u16, word: u32| {
            time_us += 1;
            bytes.extend_from_slice(&thread.to_le_bytes());
            bytes.extend_from_slice(&word.to_le_bytes());
            bytes.extend_from_slice(&time_us.to_le_bytes());
        };
        for thread in 1..=ids {
            record(thread, 4);
            for _ in 0..calls {
                record(thread, 8);
                record(thread, 9);
            }
            record(thread, 5);
            record(thread, 4);
            record(thread, 5);
        }
        bytes
    }

    /// With one pass over the records for each id this test reads 2 billion records and takes minutes.
    #[test]
    fn three_thousand_reused_ids_are_separated_in_one_pass() {
        let bytes = trace_of_reused_ids(3_000, 100);
        let trace = MethodTrace::parse(&bytes).unwrap();
        assert_eq!(trace.counts().reused_threads, 3_000);
        let (first, second) = trace.threads().split_at(3_000);
        assert!(first.iter().all(|thread| thread.records == 202), "{:?}", first[0]);
        assert!(second.iter().all(|thread| thread.records == 2), "{:?}", second[0]);
    }
}
