//! The names of threads and processes, and the processes of threads, which become known one after the other
//! as events of a timeline are read.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::ids::{Pid, Tid};
use crate::timeline::MethodThread;

/// Added to a thread's id, this gives the id of the track beside the thread. No kernel thread has such an id:
/// PID_MAX_LIMIT is 2^22.
pub(crate) const SECOND_TRACK: i32 = 1 << 24;

/// The id of the track that holds the methods of a thread, in formats that know tracks by thread ids only.
pub(crate) fn method_track_id(thread: &MethodThread) -> Tid {
    Tid(match thread.tid {
        Some(tid) => SECOND_TRACK + tid.0,
        None => (2 * SECOND_TRACK).saturating_add_unsigned(thread.index),
    })
}

/// The process that the methods of a thread are shown in, as far as anything tells it; see [`Task::process`].
pub(crate) fn method_process(thread: &MethodThread) -> Option<Pid> {
    thread.tgid.or(thread.tid.map(Pid::of_main_thread))
}

/// The latest name and process of one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NamedThread {
    /// The kernel's `comm`, or the name from a method trace. The bytes need not be UTF-8.
    pub name: Option<Vec<u8>>,
    /// The id of the process that the thread belongs to.
    pub tgid: Option<Pid>,
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
    threads: FxHashMap<Tid, NamedThread>,
}

impl ThreadNames {
    /// Notes the process and the name of a thread. A value replaces the earlier value; `None` keeps the
    /// earlier value.
    pub fn learn(&mut self, tid: Tid, tgid: Option<Pid>, name: Option<&[u8]>) {
        let thread = self.threads.entry(tid).or_default();
        thread.tgid = tgid.or(thread.tgid);
        if let Some(name) = name
            && thread.name.as_deref() != Some(name)
        {
            thread.name = Some(name.to_vec());
        }
    }

    /// Notes the process of a thread, unless a process is noted already.
    pub fn learn_tgid_if_unknown(&mut self, tid: Tid, tgid: Pid) {
        self.threads.entry(tid).or_default().tgid.get_or_insert(tgid);
    }

    /// The name and the process of the thread, as far as they have been noted.
    #[inline]
    pub fn get(&self, tid: Tid) -> Option<&NamedThread> {
        self.threads.get(&tid)
    }

    /// The id of the thread's process, where one has been noted.
    #[inline]
    pub fn tgid(&self, tid: Tid) -> Option<Pid> {
        self.get(tid)?.tgid
    }

    /// Keeps only the threads that `is_needed` says, once there are more than `most`.
    pub fn keep(&mut self, most: usize, is_needed: impl Fn(Tid) -> bool) {
        if self.threads.len() > most {
            self.threads.retain(|tid, _| is_needed(*tid));
            self.threads.shrink_to_fit();
        }
    }

    /// All threads in the order of their ids.
    pub fn sorted(&self) -> Vec<(Tid, &NamedThread)> {
        let mut threads: Vec<_> = self.threads.iter().map(|(tid, thread)| (*tid, thread)).collect();
        threads.sort_unstable_by_key(|(tid, _)| *tid);
        threads
    }
}

/// A thread of the kernel, and its process where the timeline names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Task {
    pub tid: Tid,
    pub tgid: Option<Pid>,
}

impl Task {
    /// The thread's process. A thread whose process is not known counts as the main thread of its own.
    pub fn process(self) -> Pid {
        self.tgid.unwrap_or(Pid::of_main_thread(self.tid))
    }
}

/// The names of threads and processes. The names are complete only at the end of the timeline.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks {
    pub threads: ThreadNames,
    pub processes: BTreeMap<Pid, String>,
    /// The packages of processes, where the timeline has the device's list of packages.
    pub packages: BTreeMap<Pid, AppPackage>,
}

/// The package that a process runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AppPackage {
    pub name: String,
    /// Whether it is debuggable.
    pub is_debuggable: bool,
}

impl Tasks {
    pub fn task(&self, tid: Tid) -> Task {
        Task { tid, tgid: self.threads.tgid(tid) }
    }

    pub fn thread_name(&self, tid: Tid) -> Cow<'_, str> {
        self.threads.get(tid).and_then(NamedThread::name_text).unwrap_or_default()
    }

    /// Forgets the names of a thread that has ended, and of its process if it was the main thread.
    pub(super) fn forget(&mut self, tid: Tid) {
        self.threads.threads.remove(&tid);
        self.processes.remove(&Pid::of_main_thread(tid));
        self.packages.remove(&Pid::of_main_thread(tid));
    }

    /// The process's own name, or the name of its main thread.
    pub fn process_name(&self, pid: Pid) -> Cow<'_, str> {
        self.processes
            .get(&pid)
            .map_or_else(|| self.thread_name(pid.main_thread()), |name| name.as_str().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_value_replaces_an_earlier_one_and_a_missing_value_does_not() {
        let mut names = ThreadNames::default();
        names.learn(Tid(7), None, Some(b"app_process"));
        names.learn(Tid(7), Some(Pid(5)), None);
        names.learn(Tid(7), None, Some(b"worker\xff"));
        names.learn_tgid_if_unknown(Tid(7), Pid(9));
        names.learn_tgid_if_unknown(Tid(3), Pid(3));
        let worker = names.get(Tid(7)).unwrap();
        assert_eq!((worker.name.as_deref(), worker.tgid), (Some(&b"worker\xff"[..]), Some(Pid(5))));
        assert_eq!(worker.name_text().unwrap(), "worker\u{fffd}");
        assert_eq!((names.tgid(Tid(3)), names.tgid(Tid(4))), (Some(Pid(3)), None));
        assert_eq!(names.sorted().iter().map(|(tid, _)| *tid).collect::<Vec<_>>(), [Tid(3), Tid(7)]);
    }
}
