//! The index of a trace on a page: its processes, threads and tracks, its launches and frames, and the
//! summary.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use serde_json::{Value, json};

use super::blocks::BlockPlace;
use super::collector::PageCollector;
use super::columns::ColumnName;
use super::tracks::{Owner, PageThreadId, PageTrack, TrackColumns};
use crate::clock::Timestamp;
use crate::ids::{Cpu, Pid, Tid};
use crate::measure::{Cut, Launch, LaunchType, Measured, Rule, Stage, summarize};
use crate::text::file_name;

/// A process of the page.
#[derive(Serialize)]
pub(super) struct PageProcess {
    pid: Pid,
    name: String,
}

/// A thread of the page.
#[derive(Serialize)]
pub(super) struct PageThread {
    /// The kernel's thread id; `None` where it is not known.
    tid: Option<Tid>,
    /// Index of the process.
    process: Option<usize>,
    name: String,
    /// Whether it is its process's first thread.
    main: bool,
    busy_ns: u64,
    /// The reason why it is not certain which of the kernel's threads this is.
    doubt: Option<String>,
}

/// The processes and threads of a page in their order, and the index of each one.
pub(super) struct People {
    pub processes: Vec<PageProcess>,
    pub threads: Vec<PageThread>,
    process_index: HashMap<Pid, usize>,
    thread_index: HashMap<PageThreadId, usize>,
}

impl People {
    pub fn thread(&self, thread: PageThreadId) -> Option<usize> {
        self.thread_index.get(&thread).copied()
    }

    pub fn kernel_thread(&self, tid: Tid) -> Option<usize> {
        self.thread(PageThreadId::Kernel(tid))
    }

    pub fn process(&self, pid: Pid) -> Option<usize> {
        self.process_index.get(&pid).copied()
    }

    /// All processes and threads that the collector has met, the busiest first.
    pub fn new(page: &PageCollector) -> People {
        let mut threads = found_threads(page);
        let are_all = threads.len().max(page.tasks.processes.len()) <= MAX_PEOPLE;
        if !are_all {
            let owns_track: HashSet<PageThreadId> =
                page.tracks.list.iter().filter_map(|track| track.owner.thread_id()).collect();
            threads.retain(|id, _| owns_track.contains(id));
        }
        let mut busy: BTreeMap<Pid, u64> = threads.values().filter_map(|t| Some((t.pid?, 0))).collect();
        busy.extend(page.tasks.processes.keys().filter(|_| are_all).map(|pid| (*pid, 0)));
        let owners = page.tracks.list.iter().map(|track| track.owner);
        busy.extend(owners.filter_map(|owner| match owner {
            Owner::Process(pid) => Some((pid, 0)),
            _ => None,
        }));
        for thread in threads.values() {
            if let Some(sum) = thread.pid.and_then(|pid| busy.get_mut(&pid)) {
                *sum += thread.busy_ns;
            }
        }
        let mut pids: Vec<(Pid, u64)> = busy.into_iter().collect();
        pids.sort_by_key(|(pid, busy)| (Reverse(*busy), *pid));
        let process_index: HashMap<Pid, usize> = pids.iter().enumerate().map(|(at, p)| (p.0, at)).collect();
        let process = |(pid, _): &(Pid, u64)| PageProcess { pid: *pid, name: page.process_name(*pid) };
        let mut order: Vec<(PageThreadId, FoundThread)> = threads.into_iter().collect();
        order.sort_by_key(|(id, thread)| {
            let process = thread.pid.map_or(usize::MAX, |pid| process_index[&pid]);
            (process, Reverse(thread.busy_ns), id.kernel().is_none(), *id)
        });
        let thread_index = order.iter().enumerate().map(|(at, (id, _))| (*id, at)).collect();
        let thread = |(id, found): (PageThreadId, FoundThread)| PageThread {
            tid: id.kernel(),
            process: found.pid.map(|pid| process_index[&pid]),
            main: match id.kernel() {
                Some(tid) => found.pid.is_some_and(|pid| tid.is_main_of(pid)),
                None => found.name == "main",
            },
            name: found.name,
            busy_ns: found.busy_ns,
            doubt: found.doubt,
        };
        let processes = pids.iter().map(process).collect();
        let threads = order.into_iter().map(thread).collect();
        People { processes, threads, process_index, thread_index }
    }
}

/// Of more threads or processes, the page lists those with a track.
const MAX_PEOPLE: usize = 100_000;

/// A thread as it is found, before threads have their order.
#[derive(Default)]
struct FoundThread {
    pid: Option<Pid>,
    name: String,
    busy_ns: u64,
    doubt: Option<String>,
}

/// Every thread with a name, an event or a track.
fn found_threads(page: &PageCollector) -> BTreeMap<PageThreadId, FoundThread> {
    let mut threads: BTreeMap<PageThreadId, FoundThread> = BTreeMap::new();
    for (tid, known) in page.tasks.threads.sorted().into_iter().filter(|(tid, _)| tid.is_thread()) {
        let name = known.name_text().unwrap_or_default().into_owned();
        threads.insert(
            PageThreadId::Kernel(tid),
            FoundThread { pid: known.tgid, name, ..FoundThread::default() },
        );
    }
    for tid in page.tids.iter().filter(|tid| tid.is_thread()) {
        threads.entry(PageThreadId::Kernel(*tid)).or_default();
    }
    for (id, pid, name, busy_ns) in &page.ended_threads {
        let ended =
            FoundThread { pid: *pid, name: name.clone(), busy_ns: *busy_ns, ..FoundThread::default() };
        threads.insert(*id, ended);
    }
    for (thread, _) in page.method_threads.iter().flatten() {
        let found = threads.entry(PageThreadId::of_methods(thread)).or_default();
        found.pid = found.pid.or(thread.tgid);
        // The kernel keeps 15 characters of a name.
        found.name.clone_from(&thread.name);
        found.doubt = thread.doubt.as_ref().map(ToString::to_string);
    }
    let has_switches = !page.on_cpu_ns.is_empty();
    for track in &page.tracks.list {
        let Owner::Thread(id) = track.owner else { continue };
        let found = threads.entry(id).or_default();
        if id == PageThreadId::Kernel(Tid::IDLE) {
            found.name = "idle".to_owned();
        }
        if !has_switches {
            found.busy_ns = found.busy_ns.max(track.columns.outermost_ns());
        }
    }
    for (tid, ns) in &page.on_cpu_ns {
        threads.entry(PageThreadId::Kernel(*tid)).or_default().busy_ns = *ns;
    }
    threads
}

/// A track in the index.
#[derive(Serialize)]
pub(super) struct TrackEntry<'a> {
    kind: &'static str,
    role: &'static str,
    name: &'a str,
    thread: Option<usize>,
    process: Option<usize>,
    cpu: Option<Cpu>,
    unit: &'static str,
    depth: usize,
    count: usize,
    block: usize,
    offset: usize,
    columns: Vec<ColumnName>,
}

impl<'a> TrackEntry<'a> {
    pub fn new(track: &'a PageTrack, people: &People, place: BlockPlace) -> TrackEntry<'a> {
        let mut thread = None;
        let mut process = None;
        let mut cpu = None;
        match track.owner {
            Owner::Machine => {}
            Owner::Cpu(number) => cpu = Some(number),
            Owner::Process(pid) => process = people.process(pid),
            Owner::Thread(id) => {
                thread = people.thread(id);
                process = thread.and_then(|at| people.threads[at].process);
            }
        }
        let columns = track.columns.columns();
        TrackEntry {
            kind: track.columns.kind(),
            role: track.role.name(),
            name: &track.name,
            thread,
            process,
            cpu,
            unit: track.role.unit(),
            depth: columns.depth(),
            count: columns.count(),
            block: place.block,
            offset: place.offset,
            columns: columns.names(),
        }
    }
}

/// The order of the tracks on the page: by owner, as far as owners have an order, then by role and name.
pub(super) fn track_order(tracks: &[PageTrack], people: &People) -> Vec<usize> {
    let owner = |track: &PageTrack| match track.owner {
        Owner::Cpu(cpu) => (0, cpu.index()),
        Owner::Machine => (1, 0),
        Owner::Process(pid) => (2, people.process_index.get(&pid).copied().unwrap_or(usize::MAX)),
        Owner::Thread(id) => (3, people.thread(id).unwrap_or(usize::MAX)),
    };
    let mut order: Vec<usize> = (0..tracks.len()).collect();
    order.sort_by(|a, b| {
        let a = &tracks[*a];
        let b = &tracks[*b];
        let is_arrows = |track: &PageTrack| matches!(track.columns, TrackColumns::Arrows(_));
        let key = |track| (is_arrows(track), owner(track), track.role);
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
    order
}

/// Takes the directories of inputs out of all texts of a summary that begin with the name of an input.
pub(super) fn without_directories(value: &mut Value, inputs: &[String]) {
    match value {
        Value::String(text) => {
            if let Some(path) = inputs.iter().find(|path| text.starts_with(path.as_str())) {
                *text = format!("{}{}", file_name(path), &text[path.len()..]);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| without_directories(item, inputs)),
        Value::Object(members) => members.values_mut().for_each(|item| without_directories(item, inputs)),
        _ => {}
    }
}

/// Launches as the index has them. `start` is the trace's start.
pub(super) fn launches(measured: &Measured, people: &People, start: Timestamp) -> Vec<Value> {
    measured.launches.iter().map(|launch| launch_json(launch, people, start)).collect()
}

fn launch_json(launch: &Launch, people: &People, start: Timestamp) -> Value {
    let since_start = |ts: Timestamp| ts.since(start);
    let thread = |tid: Option<Tid>| tid.and_then(|tid| people.kernel_thread(tid));
    let stage = |stage: &Stage| {
        let [from, to] = [stage.span.start, stage.span.end].map(since_start);
        json!({ "name": stage.name, "start_ns": from, "end_ns": to })
    };
    let stages: Vec<Value> = launch.stages.iter().map(stage).collect();
    json!({
        "package": launch.package,
        "type": launch.launch_type.map(LaunchType::name),
        "rule": Rule::sentence(launch.rule),
        "process": launch.pid.and_then(|pid| people.process(pid)),
        "thread": thread(launch.main_tid),
        "render_thread": thread(launch.render_tid),
        "begin_ns": since_start(launch.begin),
        "end_ns": since_start(launch.end),
        "cut": launch.cut.map(Cut::name),
        "ttid_ns": launch.ttid,
        "ttfd_ns": launch.ttfd,
        "overlapped": launch.is_overlapped,
        "stages": stages,
    })
}

/// The frames of each app and layer in numbers, as the index has them: as `info --json` prints them.
pub(super) fn frame_summaries(measured: &Measured) -> Value {
    json!(summarize(&measured.frames))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::MethodThread;
    use crate::tracks::{Task, Tasks, TrackSink};

    #[test]
    fn an_event_of_a_thread_that_is_not_known_is_on_no_thread_of_a_method_trace() {
        let mut page = PageCollector::default();
        let thread = MethodThread {
            index: 0,
            tid: None,
            tgid: None,
            name: "pool".into(),
            trace_id: 1,
            doubt: None,
            edge_cost_ns: 0,
        };
        page.method_thread(&thread, String::new());
        let unknown = Task { tid: Tid::UNKNOWN, tgid: None };
        page.instant(&Tasks::default(), unknown, Timestamp(5), b"instant").unwrap();
        let people = People::new(&page);
        let threads: Vec<_> = people.threads.iter().map(|thread| (thread.tid, &*thread.name)).collect();
        assert_eq!(threads, [(None, ""), (None, "pool")]);
        assert_ne!(people.kernel_thread(Tid::UNKNOWN), people.thread(PageThreadId::of_methods(&thread)));
    }
}
