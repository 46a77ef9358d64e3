//! The names of threads and processes, and the processes of threads, which become known one after the other
//! as events of a timeline are read.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::timeline::MethodThread;

/// Added to a thread's id, this gives the id of the track beside the thread. No kernel thread has such an id:
/// PID_MAX_LIMIT is 2^22.
pub(crate) const SECOND_TRACK: i32 = 1 << 24;

/// The id of the track that holds the methods of a thread, in formats that know tracks by thread ids only.
pub(crate) fn method_track_id(thread: &MethodThread) -> i32 {
    match thread.tid {
        Some(tid) => SECOND_TRACK + tid,
        None => (2 * SECOND_TRACK).saturating_add_unsigned(thread.index),
    }
}

/// The latest name and process of one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NamedThread {
    /// The kernel's `comm`, or the name from a method trace. The bytes need not be UTF-8.
    pub name: Option<Vec<u8>>,
    /// The id of the process that the thread belongs to.
    pub tgid: Option<i32>,
}

impl NamedThread {
    /// The name as text; bytes that are not UTF-8 are replaced.
    pub fn name_text(&self) -> Option<Cow<'_, str>> {
        self.name.as_deref().map(String::from_utf8_lossy)
    }
}

/// The names and the processes of all threads of a timeline, by the kernel's thread id.
#[derive(Debug, Clone, Default)]
pub(crate) struct ThreadNames {
    threads: FxHashMap<i32, NamedThread>,
}

impl ThreadNames {
    /// Notes the process and the name of a thread. A value replaces the earlier value; `None` keeps the
    /// earlier value.
    pub fn learn(&mut self, tid: i32, tgid: Option<i32>, name: Option<&[u8]>) {
        let thread = self.threads.entry(tid).or_default();
        thread.tgid = tgid.or(thread.tgid);
        if let Some(name) = name
            && thread.name.as_deref() != Some(name)
        {
            thread.name = Some(name.to_vec());
        }
    }

    /// Notes the process of a thread, unless a process is noted already.
    pub fn learn_tgid_if_unknown(&mut self, tid: i32, tgid: i32) {
        self.threads.entry(tid).or_default().tgid.get_or_insert(tgid);
    }

    /// The name and the process of the thread, as far as they have been noted.
    #[inline]
    pub fn get(&self, tid: i32) -> Option<&NamedThread> {
        self.threads.get(&tid)
    }

    /// The id of the thread's process, where one has been noted.
    #[inline]
    pub fn tgid(&self, tid: i32) -> Option<i32> {
        self.get(tid)?.tgid
    }

    /// All threads in the order of their ids.
    pub fn sorted(&self) -> Vec<(i32, &NamedThread)> {
        let mut threads: Vec<_> = self.threads.iter().map(|(tid, thread)| (*tid, thread)).collect();
        threads.sort_unstable_by_key(|(tid, _)| *tid);
        threads
    }
}

/// A thread of the kernel, and its process where the timeline names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Task {
    pub tid: i32,
    pub tgid: Option<i32>,
}

/// The names of threads and processes. The names are complete only at the end of the timeline.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks {
    pub threads: ThreadNames,
    pub processes: BTreeMap<i32, String>,
    /// The packages of processes, where the timeline has the device's list of packages.
    pub packages: BTreeMap<i32, AppPackage>,
}

/// The package that a process runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AppPackage {
    pub name: String,
    /// Whether it is debuggable.
    pub is_debuggable: bool,
}

impl Tasks {
    pub fn task(&self, tid: i32) -> Task {
        Task { tid, tgid: self.threads.tgid(tid) }
    }

    pub fn thread_name(&self, tid: i32) -> Cow<'_, str> {
        self.threads.get(tid).and_then(NamedThread::name_text).unwrap_or_default()
    }

    /// The process's own name, or the name of its main thread.
    pub fn process_name(&self, pid: i32) -> Cow<'_, str> {
        self.processes.get(&pid).map_or_else(|| self.thread_name(pid), |name| name.as_str().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_value_replaces_an_earlier_one_and_a_missing_value_does_not() {
        let mut names = ThreadNames::default();
        names.learn(7, None, Some(b"app_process"));
        names.learn(7, Some(5), None);
        names.learn(7, None, Some(b"worker\xff"));
        names.learn_tgid_if_unknown(7, 9);
        names.learn_tgid_if_unknown(3, 3);
        let worker = names.get(7).unwrap();
        assert_eq!((worker.name.as_deref(), worker.tgid), (Some(&b"worker\xff"[..]), Some(5)));
        assert_eq!(worker.name_text().unwrap(), "worker\u{fffd}");
        assert_eq!((names.tgid(3), names.tgid(4)), (Some(3), None));
        assert_eq!(names.sorted().iter().map(|(tid, _)| *tid).collect::<Vec<_>>(), [3, 7]);
    }
}
