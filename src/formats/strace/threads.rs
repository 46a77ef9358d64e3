//! The first pass over a text: how its lines tell the time, their order, and what the calls say of threads:
//! which process each belongs to, and its name.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;

use super::line::{CallEnd, LineContent, StampKind, StraceLine};
use super::walk::{LineClock, LineCounts, WalkStep, walk};
use crate::clock::Timestamp;
use crate::formats::text_lines::FileMemory;
use crate::ids::{Pid, Tid};

/// The most threads that are told apart.
pub(super) const MAX_THREADS: usize = 1 << 18;
/// The kernel keeps so many bytes of a thread's name.
const COMM_BYTES: usize = 15;

/// The facts about a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StraceThread {
    /// Its process, where the calls tell it.
    pub(super) tgid: Option<Pid>,
    /// Its name.
    pub(super) comm: Option<Vec<u8>>,
    /// The program that it runs, where it is the main thread of a process.
    pub(super) program: Option<Vec<u8>>,
}

/// A line's place in the order of time.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedLine {
    pub(super) ts: Timestamp,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The findings of the first pass.
#[derive(Debug, Default)]
pub(super) struct StraceFacts {
    /// How the first line tells its time, and the others with it.
    pub(super) kind: Option<StampKind>,
    /// The most digits that a fraction of a second has.
    pub(super) decimals: u8,
    pub(super) threads: BTreeMap<Tid, StraceThread>,
    /// The thread of the lines that name none.
    pub(super) root: Option<Tid>,
    /// Whether lines name no thread.
    pub(super) has_threadless: bool,
    /// The lines in order of time, where the file has another order.
    pub(super) sorted: Option<Vec<PlacedLine>>,
    pub(super) counts: LineCounts,
    /// Lines that tell their time in another way than the first one.
    pub(super) other_clocks: u64,
}

/// Makes the first pass.
pub(super) fn read(text: &[u8], memory: FileMemory<'_>) -> io::Result<StraceFacts> {
    let mut collector = FactCollector::default();
    let mut clock = None;
    let mut last = Timestamp::MIN;
    let mut is_sorted = true;
    let counts = walk(text, memory, &mut |step| {
        match step {
            WalkStep::Attached(tid) => _ = collector.attached.insert(tid),
            WalkStep::Line(line, _) => {
                let kind = line.time.kind;
                let clock: &mut LineClock = clock.get_or_insert_with(|| LineClock::new(kind));
                collector.facts.kind.get_or_insert(kind);
                let Some(ts) = clock.next(line.time) else {
                    collector.facts.other_clocks += 1;
                    return Ok(());
                };
                is_sorted &= ts >= last;
                last = ts;
                collector.line(&line);
            }
        }
        Ok(())
    })?;
    let mut facts = collector.finish();
    facts.counts = counts;
    if let (false, Some(kind)) = (is_sorted, facts.kind) {
        facts.sorted = Some(sorted_lines(text, memory, LineClock::new(kind))?);
    }
    Ok(facts)
}

/// The lines in order of time; lines of one time stay in the order of the file.
fn sorted_lines(text: &[u8], memory: FileMemory<'_>, mut clock: LineClock) -> io::Result<Vec<PlacedLine>> {
    let mut lines = Vec::new();
    walk(text, memory, &mut |step| {
        if let WalkStep::Line(line, range) = step
            && let Some(ts) = clock.next(line.time)
        {
            lines.push(PlacedLine { ts, start: range.start, end: range.end });
        }
        Ok(())
    })?;
    lines.sort_by_key(|line| line.ts);
    Ok(lines)
}

/// A thread, while the pass goes on. `None` is the thread of the lines that name none.
#[derive(Debug, Default)]
struct SeenThread {
    comm: Option<Vec<u8>>,
    program: Option<Vec<u8>>,
    /// The arguments of the call that has begun and not ended.
    begun: Vec<u8>,
    /// Whether it is the main thread of its process.
    is_main: bool,
    /// The thread that made it, as a thread of its own process.
    sibling: Option<Option<Tid>>,
    /// The process that it has said that it belongs to.
    tgid: Option<Pid>,
    /// The id that it has said that it has.
    tid: Option<Tid>,
}

#[derive(Default)]
struct FactCollector {
    facts: StraceFacts,
    threads: HashMap<Option<Tid>, SeenThread>,
    /// The threads that strace has said it traces from then on.
    attached: BTreeSet<Tid>,
    /// The threads that calls have made.
    made: BTreeSet<Tid>,
}

/// A begun call's arguments are kept up to this length: `clone3` has its flags, and `execve` its program, at
/// their begin.
const MAX_BEGUN_BYTES: usize = 1 << 10;

impl FactCollector {
    fn line(&mut self, line: &StraceLine<'_>) {
        self.facts.decimals = self.facts.decimals.max(line.time.decimals);
        self.facts.has_threadless |= line.tid.is_none();
        if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&line.tid) {
            return;
        }
        let thread = self.threads.entry(line.tid).or_default();
        if let Some(comm) = line.comm {
            thread.comm = Some(comm.to_vec());
        }
        match line.content {
            LineContent::Begin { args, .. } | LineContent::EndAndBegin { args, .. } => {
                thread.begun = args[..args.len().min(MAX_BEGUN_BYTES)].to_vec();
            }
            LineContent::Call { name, args, end } => self.call(line.tid, name, args, end),
            LineContent::End { name, args, end } => {
                let begun = std::mem::take(&mut thread.begun);
                self.call(line.tid, name, &[&begun, &b" "[..], args].concat(), end);
            }
            LineContent::Signal { .. } | LineContent::Exit(_) => {}
        }
    }

    /// Learns from a call what it says of threads.
    fn call(&mut self, caller: Option<Tid>, name: &[u8], args: &[u8], end: CallEnd<'_>) {
        let result = || -> Option<Tid> {
            let digits = end.result.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let number = std::str::from_utf8(&end.result[..digits]).ok()?.parse().ok()?;
            Some(Tid(number)).filter(|tid| tid.is_thread())
        };
        let is_success = end.result == b"0";
        let Some(thread) = self.threads.get_mut(&caller) else { return };
        match name {
            b"execve" | b"execveat" if is_success => {
                if let Some(path) = quoted(args) {
                    let base = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
                    thread.comm = Some(base[..base.len().min(COMM_BYTES)].to_vec());
                    thread.program = Some(path.to_vec());
                }
                thread.is_main = true;
            }
            b"prctl" if is_success && args.starts_with(b"PR_SET_NAME") => {
                thread.comm = quoted(args).map(|name| name[..name.len().min(COMM_BYTES)].to_vec());
            }
            b"set_tid_address" => {
                thread.tid = result().or(thread.tid);
                thread.is_main = true;
            }
            b"gettid" => thread.tid = result().or(thread.tid),
            b"getpid" => thread.tgid = result().map(Pid::of_main_thread).or(thread.tgid),
            b"clone" | b"clone2" | b"clone3" | b"fork" | b"vfork" => {
                let Some(child) = result() else { return };
                let is_thread = memchr::memmem::find(args, b"CLONE_THREAD").is_some();
                let comm = thread.comm.clone();
                let program = thread.program.clone().filter(|_| !is_thread);
                self.made.insert(child);
                if self.threads.len() < MAX_THREADS {
                    let seen = self.threads.entry(Some(child)).or_default();
                    seen.comm = seen.comm.take().or(comm);
                    seen.program = seen.program.take().or(program);
                    seen.is_main |= !is_thread;
                    seen.sibling = is_thread.then_some(caller);
                }
            }
            _ => {}
        }
    }

    fn finish(mut self) -> StraceFacts {
        self.facts.root = self.root();
        let tids: Vec<Option<Tid>> = self.threads.keys().copied().collect();
        for key in tids {
            let Some(tid) = key.or(self.facts.root) else { continue };
            let tgid = self.process(key);
            let Some(seen) = self.threads.get(&key) else { continue };
            let is_main = tgid.is_some_and(|tgid| tid.is_main_of(tgid));
            let known = self.facts.threads.entry(tid).or_default();
            known.tgid = tgid.or(known.tgid);
            known.comm = seen.comm.clone().or(known.comm.take());
            known.program = seen.program.clone().filter(|_| is_main).or(known.program.take());
        }
        self.facts
    }

    /// The thread of the lines that name none: what its calls have returned, or the one of the other lines
    /// that neither strace nor a call has announced.
    fn root(&self) -> Option<Tid> {
        let threadless = self.threads.get(&None)?;
        let announced = |tid: &Tid| self.attached.contains(tid) || self.made.contains(tid);
        let mut first = self.threads.keys().flatten().filter(|tid| !announced(tid));
        let only = first.next().copied().filter(|_| first.next().is_none());
        threadless.tid.or(only).or(threadless.tgid.map(Pid::main_thread))
    }

    /// The process of a thread.
    fn process(&self, key: Option<Tid>) -> Option<Pid> {
        let mut at = key;
        // A chain of threads that made each other has no circle unless the file says so.
        for _ in 0..MAX_THREADS {
            let seen = self.threads.get(&at)?;
            if let Some(tgid) = seen.tgid {
                return Some(tgid);
            }
            if seen.is_main {
                return at.or(self.facts.root).map(Pid::of_main_thread);
            }
            at = seen.sibling?;
        }
        None
    }
}

/// The first text in quotes.
fn quoted(args: &[u8]) -> Option<&[u8]> {
    let open = memchr::memchr(b'"', args)? + 1;
    let len = memchr::memchr(b'"', &args[open..])?;
    Some(&args[open..open + len]).filter(|text| !text.is_empty())
}
