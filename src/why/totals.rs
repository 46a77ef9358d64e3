//! Tables of a model: how long the slices of each name took, and the states that each thread was in.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::model::{Model, SchedState, ThreadHistory};
use super::names::NameId;
use super::spans::NothingAsked;
use crate::clock::Timestamp;
use crate::ids::Tid;

/// The slices of one name on one thread, or its calls of one method.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub(crate) struct SliceTotal {
    pub name: String,
    pub thread: String,
    pub tid: Tid,
    /// Empty where it is not known.
    pub process: String,
    pub count: u64,
    /// The sum of their lengths; a slice within one of the same name counts again.
    pub total_ns: u64,
    pub longest_ns: u64,
    /// When the longest one began, after the begin of the trace.
    pub longest_from_ns: u64,
}

/// How long a thread was in each state. What is not there was not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub(crate) struct StateTotal {
    pub thread: String,
    pub tid: Tid,
    /// Empty where it is not known.
    pub process: String,
    pub states_ns: BTreeMap<&'static str, u64>,
}

/// The slices and states that a table is about.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableQuestion {
    /// A part of the slices' names.
    pub name: String,
    /// A thread's name or number.
    pub thread: Option<String>,
    /// A process's name, or a part of it.
    pub process: Option<String>,
    /// Where the time of the table begins, ns after the begin of the trace.
    pub from_ns: Option<u64>,
    /// Where it ends, ns after the begin of the trace.
    pub to_ns: Option<u64>,
    /// Whether calls of methods are meant in place of slices.
    pub methods: bool,
}

impl SchedState {
    /// The state's name, as comparisons and the gate have it.
    fn name(self) -> Option<&'static str> {
        Some(match self {
            SchedState::Running => "running",
            SchedState::Runnable | SchedState::Preempted => "runnable",
            SchedState::Interruptible => "sleeping",
            SchedState::Uninterruptible => "uninterruptible sleep",
            SchedState::Stopped => "stopped",
            SchedState::Gone | SchedState::Unknown => return None,
        })
    }
}

impl Model {
    /// The slices that overlap the asked time, by name and thread, those with the largest total first. Of a
    /// slice that overlaps it, its part within that time counts.
    ///
    /// # Errors [`NothingAsked::Time`] where the time ends before it begins, [`NothingAsked::Thread`] where
    /// there is no such thread.
    pub(crate) fn slice_totals(&self, asked: &TableQuestion) -> Result<Vec<SliceTotal>, NothingAsked> {
        let (from, to) = self.time_of(asked)?;
        let mut totals = Vec::new();
        for (tid, thread) in self.threads_of(asked)? {
            let slices = if asked.methods { [&thread.calls.list[..], &[]] } else { thread.all_slices() };
            let mut of_names: BTreeMap<NameId, SliceTotal> = BTreeMap::new();
            for slice in slices.into_iter().flatten() {
                let name = self.names.text(slice.name);
                let begin = slice.start.max(from);
                let end = slice.end.min(to);
                if begin >= end || !name.contains(&asked.name) {
                    continue;
                }
                let total = of_names.entry(slice.name).or_insert_with(|| SliceTotal {
                    name: name.to_owned(),
                    thread: self.tasks.thread_name(tid).into_owned(),
                    tid,
                    process: self.process_name(tid),
                    count: 0,
                    total_ns: 0,
                    longest_ns: 0,
                    longest_from_ns: 0,
                });
                let ns = end - begin;
                total.count += 1;
                total.total_ns += ns;
                if ns > total.longest_ns {
                    total.longest_ns = ns;
                    total.longest_from_ns = begin - self.extent.0;
                }
            }
            totals.extend(of_names.into_values());
        }
        totals.sort_by(|a, b| {
            (Reverse(a.total_ns), a.tid, &a.name).cmp(&(Reverse(b.total_ns), b.tid, &b.name))
        });
        Ok(totals)
    }

    /// The states of threads in the asked time, those that ran longest first.
    ///
    /// # Errors
    /// As [`Model::slice_totals`].
    pub(crate) fn state_totals(&self, asked: &TableQuestion) -> Result<Vec<StateTotal>, NothingAsked> {
        let (from, to) = self.time_of(asked)?;
        let mut totals = Vec::new();
        for (tid, thread) in self.threads_of(asked)? {
            let mut states_ns = BTreeMap::new();
            for (at, change) in thread.changes.iter().enumerate() {
                let until = thread.changes.get(at + 1).map_or(self.extent.1, |next| next.since);
                let begin = change.since.max(from);
                let end = until.min(to);
                if let Some(name) = change.state.name().filter(|_| begin < end) {
                    *states_ns.entry(name).or_default() += end - begin;
                }
            }
            if !states_ns.is_empty() {
                let thread = self.tasks.thread_name(tid).into_owned();
                totals.push(StateTotal { thread, tid, process: self.process_name(tid), states_ns });
            }
        }
        let running = |total: &StateTotal| total.states_ns.get("running").copied().unwrap_or(0);
        totals.sort_by_key(|total| (Reverse(running(total)), total.tid));
        Ok(totals)
    }

    fn time_of(&self, asked: &TableQuestion) -> Result<(Timestamp, Timestamp), NothingAsked> {
        self.time_between(asked.from_ns, asked.to_ns)
    }

    fn threads_of(&self, asked: &TableQuestion) -> Result<Vec<(Tid, &ThreadHistory)>, NothingAsked> {
        let by_number = asked.thread.as_deref().and_then(|text| text.parse::<Tid>().ok());
        let is_thread = |tid: Tid| match (&asked.thread, by_number) {
            (Some(_), Some(number)) if self.threads.contains_key(&number) => tid == number,
            (Some(name), _) => self.tasks.thread_name(tid) == name.as_str(),
            (None, _) => true,
        };
        let is_process =
            |tid: Tid| asked.process.as_ref().is_none_or(|part| self.process_name(tid).contains(part));
        let found: Vec<(Tid, &ThreadHistory)> = self
            .threads
            .iter()
            .map(|(tid, thread)| (*tid, thread))
            .filter(|(tid, _)| *tid != Tid::IDLE && is_thread(*tid) && is_process(*tid))
            .collect();
        match (found.is_empty(), &asked.thread) {
            (true, Some(name)) => Err(NothingAsked::Thread(name.clone())),
            _ => Ok(found),
        }
    }
}
