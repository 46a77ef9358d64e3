//! Watches the tracks of a running recording for the numbers of its last seconds, and for what triggers wait
//! for.

use std::collections::HashMap;
use std::io;

use super::launches::ToldLaunch;
use super::trigger::{Met, Trigger, plain_name};
use super::window::WindowSum;
use crate::clock::Timestamp;
use crate::ftrace::task_state::TaskState;
use crate::ids::{Cpu, Pid};
use crate::measure::is_cut;
use crate::timeline::MergeSummary;
use crate::tracks::{AsyncSlice, Span, Task, Tasks, ThreadState, TrackSink};

/// The most occurrences that wait to be handed out.
const MAX_OCCURRENCES: usize = 100;
/// The most markers of pages that are awaited.
const MAX_AWAITED: usize = 100;
/// A marker that has not come for so long, ns of the recording's clock, is not awaited any more.
const AWAITED_NS: u64 = 10_000_000_000;
/// The most processes of which it is remembered whether they are the app's.
const MAX_PROCESSES: usize = 1 << 16;

/// Watches the tracks.
#[derive(Default)]
pub(super) struct LiveWatch {
    pub app: Option<String>,
    pub triggers: Vec<Trigger>,
    /// Whether a process is the app's, as its name was when it was asked for.
    is_app: HashMap<Pid, bool>,
    /// The times that the app's threads had a CPU, and waited for one, ns.
    pub running: WindowSum,
    pub runnable: WindowSum,
    /// Conditions that have been met since the last call. Times are those of the recording's clock.
    pub occurrences: Vec<Met>,
    /// The markers that pages have written, each with the first time that was known afterwards.
    awaited: Vec<(String, Option<Timestamp>)>,
    /// Those of them that have come, each with its time.
    pub marks: Vec<(String, Timestamp)>,
    /// Occurrences that were left out, because nobody took those before them.
    pub left_out: u64,
}

impl LiveWatch {
    /// Watches for the app with this package, and for what meets the triggers.
    pub fn new(app: Option<String>, triggers: Vec<Trigger>) -> LiveWatch {
        LiveWatch { app, triggers, ..LiveWatch::default() }
    }

    /// Waits for an instant of this name.
    pub fn await_mark(&mut self, name: &str) {
        self.awaited.drain(..(self.awaited.len() + 1).saturating_sub(MAX_AWAITED));
        self.awaited.push((name.to_owned(), None));
    }

    /// Does not wait for it any more.
    pub fn forget_mark(&mut self, name: &str) {
        if let Some(at) = self.awaited.iter().rposition(|(awaited, _)| awaited == name) {
            self.awaited.remove(at);
        }
    }

    /// Gives up the markers that should have come before the time `now`, and returns their names.
    pub fn give_up_marks(&mut self, now: Timestamp) -> Vec<String> {
        let is_late = |(_, since): &mut (String, Option<Timestamp>)| {
            since.get_or_insert(now).saturating_add(AWAITED_NS) < now
        };
        self.awaited.extract_if(.., is_late).map(|(name, _)| name).collect()
    }

    /// Notes a launch, if a trigger waits for one.
    pub fn met_launch(&mut self, launch: &ToldLaunch) {
        let met = self.triggers.iter().find(|trigger| trigger.is_met_by_launch());
        let Some(trigger) = met.map(|trigger| trigger.text().to_owned()) else { return };
        if self.app.as_deref().is_some_and(|app| app != launch.package) {
            return;
        }
        let what = format!("launch-{}", plain_name(&launch.package));
        self.met(Met { ts: launch.end, trigger, what, text: launch.text() });
    }

    /// Whether a process is the app's: its name is the package's, alone or with a part behind a colon, or
    /// what the kernel has left of it.
    fn is_of_app(&mut self, names: &Tasks, pid: Pid) -> bool {
        let Some(app) = &self.app else { return false };
        if self.is_app.len() >= MAX_PROCESSES {
            self.is_app.clear();
        }
        *self.is_app.entry(pid).or_insert_with(|| is_process_of(app, &names.process_name(pid)))
    }

    /// Forgets which processes are the app's: a process may have got another name.
    pub fn forget_names(&mut self) {
        self.is_app.clear();
    }

    /// Notes that something was met.
    pub fn met(&mut self, met: Met) {
        if self.occurrences.len() < MAX_OCCURRENCES {
            self.occurrences.push(met);
        } else {
            self.left_out += 1;
        }
    }

    fn slice(&mut self, place: &dyn Fn() -> String, span: Span, name: &[u8]) {
        let ns = span.end.since(span.start);
        let met = self.triggers.iter().filter(|trigger| trigger.is_met_by_slice(ns, name));
        let met: Vec<String> = met.map(|trigger| trigger.text().to_owned()).collect();
        for trigger in met {
            let name = String::from_utf8_lossy(name);
            let text = format!("{name} took {:.1} ms on {}", ns as f64 / 1e6, place());
            let what = format!("slice-{}", plain_name(&name));
            self.met(Met { ts: span.end, trigger, what, text });
        }
    }
}

/// Whether a process of this name is one of the app.
pub(super) fn is_process_of(app: &str, name: &str) -> bool {
    let rest = name.strip_prefix(app);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':')) || is_cut(app, name)
}

impl TrackSink for LiveWatch {
    fn end(&mut self, names: &Tasks, at: Task, span: Span, name: &[u8]) -> io::Result<()> {
        if !self.triggers.is_empty() && !span.open {
            let place = || format!("{} ({})", names.thread_name(at.tid), at.tid);
            self.slice(&place, span, name);
        }
        Ok(())
    }

    fn async_edge(&mut self, names: &Tasks, pid: Pid, slice: &AsyncSlice<'_>) -> io::Result<()> {
        if let (false, Some(span)) = (self.triggers.is_empty(), slice.ended().filter(|span| !span.open)) {
            let place = || format!("{} ({pid})", names.process_name(pid));
            self.slice(&place, span, slice.name);
        }
        Ok(())
    }

    fn instant(&mut self, _: &Tasks, _: Task, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        let at = self.awaited.iter().position(|(awaited, _)| awaited.as_bytes() == name);
        self.marks.extend(at.map(|at| (self.awaited.remove(at).0, ts)));
        Ok(())
    }

    fn on_cpu(&mut self, names: &Tasks, _: Cpu, at: Task, span: Span, _: i64) -> io::Result<()> {
        if self.is_of_app(names, at.process()) {
            self.running.add_time(span.start, span.end);
        }
        Ok(())
    }

    fn state(&mut self, names: &Tasks, at: Task, state: &ThreadState) -> io::Result<()> {
        let waits = matches!(state.state, TaskState::Runnable | TaskState::Preempted);
        if waits && self.is_of_app(names, at.process()) {
            self.runnable.add_time(state.span.start, state.span.end);
        }
        Ok(())
    }

    fn finish(&mut self, _: &Tasks, _: &MergeSummary) -> io::Result<()> {
        Ok(())
    }
}
