//! The order of a thread's slices that begin at one time.
//!
//! A whole slice (`X`) says when it ends; of a slice that ends with an event of its own (`B`) only that event
//! says it. The one that ends later is the parent, so the ends have to be known before the begins are pushed.

use std::cmp::Reverse;
use std::io;

use rustc_hash::FxHashMap;

use super::document::ChromeJsonTrace;
use super::event::{JsonEvent, ThreadKey};
use super::push::hash;
use crate::clock::Timestamp;

/// The ends of the `B` slices that begin at the time of an `X` of their thread.
#[derive(Debug, Default)]
pub(super) struct BeginEnds {
    /// By the thread, and the number of the `B` on it.
    ends: FxHashMap<(ThreadKey, u64), Timestamp>,
    /// How many `B` of each thread have been ordered.
    ordered: FxHashMap<ThreadKey, u64>,
}

/// A `B` whose end has not come.
struct OpenBegin {
    name: u64,
    number: u64,
    has_whole_beside: bool,
}

/// A thread during the search for ends.
#[derive(Default)]
struct SearchedThread {
    open: Vec<OpenBegin>,
    begins: u64,
    last_whole: Option<i64>,
}

impl BeginEnds {
    /// Reads all events if a thread has such slices.
    pub fn find(json: &ChromeJsonTrace<'_>) -> io::Result<BeginEnds> {
        let mut found = BeginEnds::default();
        let shared = json.threads_with_shared_times();
        if shared.is_empty() {
            return Ok(found);
        }
        let mut threads: FxHashMap<ThreadKey, SearchedThread> = FxHashMap::default();
        json.for_each(&mut |event| {
            let key = json.thread_of(event);
            if !matches!(event.phase, b'B' | b'E' | b'X') || !shared.contains(&key) {
                return Ok(());
            }
            let name = event.name.unwrap_or_default().bytes();
            let thread = threads.entry(key).or_default();
            match event.phase {
                b'B' => {
                    let has_whole_beside = thread.last_whole == event.ts;
                    let begin = OpenBegin { name: hash(&[&name]), number: thread.begins, has_whole_beside };
                    thread.open.push(begin);
                    thread.begins += 1;
                }
                b'E' => {
                    let is_meant = |open: &OpenBegin| name.is_empty() || open.name == hash(&[&name]);
                    let at = thread.open.iter().rposition(is_meant).unwrap_or(thread.open.len());
                    let ended = thread.open.drain(at..).filter(|open| open.has_whole_beside);
                    let ts = event.time().unwrap_or_default();
                    found.ends.extend(ended.map(|open| ((key, open.number), ts)));
                }
                _ if event.dur.is_some_and(|dur| dur > 0) => thread.last_whole = event.ts,
                _ => {}
            }
            Ok(())
        })?;
        for (key, thread) in threads {
            let open = thread.open.into_iter().filter(|open| open.has_whole_beside);
            found.ends.extend(open.map(|open| ((key, open.number), Timestamp::MAX)));
        }
        Ok(found)
    }

    /// Orders the events of one time: the ends of slices that began earlier come first, and of the begins
    /// that of the slice that ends last. `order` has the numbers of the events.
    fn sort(
        &mut self,
        group: &[JsonEvent<'_>],
        thread_of: impl Fn(&JsonEvent<'_>) -> ThreadKey,
        order: &mut [usize],
    ) {
        if group.len() < 2 && self.ends.is_empty() {
            return;
        }
        let mut begun: Vec<ThreadKey> = Vec::new();
        let ranks: Vec<(bool, Reverse<Option<Timestamp>>)> = group
            .iter()
            .map(|event| {
                let ts = event.time().unwrap_or_default();
                let mut ends_earlier = false;
                let end = match event.phase {
                    b'B' => {
                        let thread = thread_of(event);
                        begun.push(thread);
                        self.end_of_next(thread).filter(|end| *end > ts)
                    }
                    b'E' => {
                        ends_earlier = !begun.contains(&thread_of(event));
                        None
                    }
                    b'X' if !self.ends.is_empty() => {
                        let dur = event.dur.filter(|dur| *dur > 0);
                        dur.map(|dur| ts.saturating_add(dur.unsigned_abs()))
                    }
                    _ => None,
                };
                (!ends_earlier, Reverse(end))
            })
            .collect();
        order.sort_by_key(|number| ranks[*number]);
    }

    /// The end of the thread's next `B`, if it begins at the time of an `X`.
    fn end_of_next(&mut self, thread: ThreadKey) -> Option<Timestamp> {
        if self.ends.is_empty() {
            return None;
        }
        let number = self.ordered.entry(thread).or_default();
        *number += 1;
        self.ends.get(&(thread, *number - 1)).copied()
    }
}

/// Events of one time are ordered together, so many at most.
const MAX_GROUP_EVENTS: usize = 4 << 10;

/// Receives the events of one time, and the order of their numbers in which the slices nest.
pub(crate) type UseGroup<'f, 'a> = dyn FnMut(&[JsonEvent<'a>], &[usize]) -> io::Result<()> + 'f;

impl<'a> ChromeJsonTrace<'a> {
    /// Calls `use_group` with the events of each time, and with the order of their numbers in which the
    /// slices nest.
    ///
    /// # Errors
    /// Those of `use_group`, and of the temporary file.
    pub(crate) fn for_each_group(&self, use_group: &mut UseGroup<'_, 'a>) -> io::Result<()> {
        let mut begin_ends = BeginEnds::find(self)?;
        let mut order: Vec<usize> = Vec::new();
        let mut use_ordered = |group: &[JsonEvent<'a>]| {
            order.clear();
            order.extend(0..group.len());
            begin_ends.sort(group, |event| self.thread_of(event), &mut order);
            use_group(group, &order)
        };
        let mut group: Vec<JsonEvent<'a>> = Vec::new();
        self.for_each(&mut |event| {
            if group.len() >= MAX_GROUP_EVENTS || group.first().is_some_and(|first| first.ts != event.ts) {
                use_ordered(&group)?;
                group.clear();
            }
            group.push(*event);
            Ok(())
        })?;
        use_ordered(&group)
    }
}
