//! The second pass: pushes a text's calls, signals and exits to a sink, in order of time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;

use super::line::{CallEnd, LineContent, StraceLine};
use super::threads::{MAX_THREADS, StraceFacts};
use super::walk::{LineClock, WalkStep, walk};
use crate::clock::Timestamp;
use crate::formats::text_lines::FileMemory;
use crate::formats::{
    Damage, ProcessInfo, ReadReport, Sink, ThreadInfo, Track, TrackArg, TrackEvent, TrackEventKind, TrackId,
    TrackKind, TrackOwner,
};
use crate::ids::{Pid, Tid};

/// The name of the track of calls whose thread the file does not name.
const CALLS: &[u8] = b"system calls";
/// The name of the tracks of signals and exits. They are not on the threads' own tracks, which have the calls
/// alone, as Perfetto's importer has them.
const SIGNALS: &[u8] = b"signals and exits";
/// An argument is kept up to this length, bytes. strace itself cuts texts at 32 characters unless `-s` is
/// given.
const MAX_ARGUMENT_BYTES: usize = 4 << 10;

/// Pushes names, calls, signals and exits. `report` has what is known of the file so far.
pub(super) fn push(
    text: &[u8],
    memory: FileMemory<'_>,
    facts: &StraceFacts,
    report: ReadReport,
    sink: &mut dyn Sink,
) -> io::Result<ReadReport> {
    let mut pusher = CallPusher {
        sink,
        facts,
        report,
        next_track: 0,
        threads: HashMap::new(),
        signal_tracks: HashMap::new(),
        ends: BinaryHeap::new(),
        counts: PushCounts::default(),
    };
    pusher.names()?;
    match (&facts.sorted, facts.kind) {
        (Some(places), _) => {
            for place in places {
                let line = &text[place.start..place.end];
                walk(line, FileMemory::of_bytes(line.len()), &mut |step| match step {
                    WalkStep::Line(line, _) => pusher.line(place.ts, &line),
                    WalkStep::Attached(_) => Ok(()),
                })?;
            }
        }
        (None, Some(kind)) => {
            let mut clock = LineClock::new(kind);
            walk(text, memory, &mut |step| match step {
                WalkStep::Line(line, _) => match clock.next(line.time) {
                    Some(ts) => pusher.line(ts, &line),
                    None => Ok(()),
                },
                WalkStep::Attached(_) => Ok(()),
            })?;
        }
        (None, None) => {}
    }
    pusher.end_until(Timestamp::MAX)?;
    Ok(pusher.finish())
}

/// The call that is open on a thread.
enum OpenStraceCall {
    None,
    /// Its line tells its end.
    Until(Timestamp),
    /// Its end comes on a later line: its name.
    Begun(Vec<u8>),
}

struct CallRow {
    track: TrackId,
    open: OpenStraceCall,
}

#[derive(Default)]
struct PushCounts {
    /// Calls whose length is not known.
    without_length: u64,
    /// Calls whose length is known.
    with_length: u64,
    /// Calls that end at the next line of their thread, before the end that their line tells.
    shortened: u64,
    /// Calls that begin and do not end, before other lines of their thread.
    unended: u64,
    /// Ends of calls that did not begin.
    unbegun: u64,
    /// Threads that strace left in a call.
    detached: u64,
    cut_arguments: u64,
    /// Lines of threads beyond the limit.
    beyond: u64,
}

struct CallPusher<'s, 'f> {
    sink: &'s mut dyn Sink,
    facts: &'f StraceFacts,
    report: ReadReport,
    next_track: u32,
    threads: HashMap<Option<Tid>, CallRow>,
    signal_tracks: HashMap<Option<Pid>, TrackId>,
    /// The ends that calls' lines tell, the earliest first. One whose call has ended already is passed over.
    ends: BinaryHeap<Reverse<(Timestamp, Option<Tid>)>>,
    counts: PushCounts,
}

impl CallPusher<'_, '_> {
    fn names(&mut self) -> io::Result<()> {
        for (tid, thread) in &self.facts.threads {
            if let (Some(pid), Some(name)) = (thread.tgid, thread.program.as_deref()) {
                self.sink.process(&ProcessInfo { pid, ppid: None, name: Some(name), package: None })?;
            }
            let name = thread.comm.as_deref();
            self.sink.thread(&ThreadInfo { tid: *tid, tgid: thread.tgid, name })?;
        }
        Ok(())
    }

    /// Pushes what a line says.
    fn line(&mut self, ts: Timestamp, line: &StraceLine<'_>) -> io::Result<()> {
        self.end_until(ts)?;
        let tid = line.tid.or(self.facts.root);
        match line.content {
            LineContent::Call { name, args, end } => {
                let Some(track) = self.leave(tid, ts)? else { return Ok(()) };
                let args = self.arguments(args, Some(end.result));
                match end.took_ns {
                    Some(took_ns) => {
                        self.counts.with_length += 1;
                        let end = ts.saturating_add(took_ns);
                        self.push(ts, track, TrackEventKind::Begin { name }, &args)?;
                        self.set_open(tid, OpenStraceCall::Until(end));
                        self.ends.push(Reverse((end, tid)));
                        Ok(())
                    }
                    None => {
                        self.counts.without_length += 1;
                        self.push(ts, track, TrackEventKind::Instant { name }, &args)
                    }
                }
            }
            LineContent::Begin { name, args, is_detached } => {
                self.counts.detached += u64::from(is_detached);
                self.begin(tid, ts, name, args)
            }
            LineContent::End { name, args, end } => self.end(tid, ts, name, args, Some(end)),
            LineContent::EndAndBegin { name, args } => {
                self.end(tid, ts, name, args, None)?;
                self.begin(tid, ts, name, args)
            }
            LineContent::Signal { name, info } => self.signal(tid, ts, name, info),
            LineContent::Exit(text) => {
                self.leave(tid, ts)?;
                self.signal(tid, ts, text, b"")
            }
        }
    }

    fn begin(&mut self, tid: Option<Tid>, ts: Timestamp, name: &[u8], args: &[u8]) -> io::Result<()> {
        let Some(track) = self.leave(tid, ts)? else { return Ok(()) };
        let args = self.arguments(args, None);
        self.push(ts, track, TrackEventKind::Begin { name }, &args)?;
        self.set_open(tid, OpenStraceCall::Begun(name.to_vec()));
        Ok(())
    }

    /// Ends the call `name` that has begun on the thread. Without an `end` the call goes on.
    fn end(
        &mut self,
        tid: Option<Tid>,
        ts: Timestamp,
        name: &[u8],
        args: &[u8],
        end: Option<CallEnd<'_>>,
    ) -> io::Result<()> {
        let is_begun =
            |row: &&mut CallRow| matches!(&row.open, OpenStraceCall::Begun(begun) if begun == name);
        let Some(row) = self.threads.get_mut(&tid).filter(is_begun) else {
            self.counts.unbegun += 1;
            return Ok(());
        };
        row.open = OpenStraceCall::None;
        let track = row.track;
        let args = match end {
            Some(end) => self.arguments(args, Some(end.result)),
            None => Vec::new(),
        };
        self.push(ts, track, TrackEventKind::End, &args)
    }

    /// Ends at `ts` the call that is open on a thread, whose next line has this time. Returns the thread's
    /// track.
    fn leave(&mut self, tid: Option<Tid>, ts: Timestamp) -> io::Result<Option<TrackId>> {
        let Some(row) = self.row(tid)? else { return Ok(None) };
        let track = row.track;
        match std::mem::replace(&mut row.open, OpenStraceCall::None) {
            OpenStraceCall::None => {}
            OpenStraceCall::Until(end) => {
                self.counts.shortened += u64::from(end > ts);
                self.push(ts, track, TrackEventKind::End, &[])?;
            }
            OpenStraceCall::Begun(_) => {
                self.counts.unended += 1;
                self.push(ts, track, TrackEventKind::End, &[])?;
            }
        }
        Ok(Some(track))
    }

    /// Pushes the ends that lines have told, up to `ts`.
    fn end_until(&mut self, ts: Timestamp) -> io::Result<()> {
        while let Some(Reverse((end, tid))) = self.ends.peek().copied().filter(|Reverse((end, _))| *end <= ts)
        {
            self.ends.pop();
            let Some(row) = self.threads.get_mut(&tid) else { continue };
            if matches!(row.open, OpenStraceCall::Until(until) if until == end) {
                row.open = OpenStraceCall::None;
                let track = row.track;
                self.push(end, track, TrackEventKind::End, &[])?;
            }
        }
        Ok(())
    }

    fn set_open(&mut self, tid: Option<Tid>, open: OpenStraceCall) {
        if let Some(row) = self.threads.get_mut(&tid) {
            row.open = open;
        }
    }

    /// Pushes an instant on the track of signals of the thread's process.
    fn signal(&mut self, tid: Option<Tid>, ts: Timestamp, name: &[u8], info: &[u8]) -> io::Result<()> {
        let pid = tid.and_then(|tid| self.facts.threads.get(&tid)?.tgid);
        let track = match self.signal_tracks.get(&pid) {
            Some(track) => *track,
            None if self.signal_tracks.len() >= MAX_THREADS => {
                self.counts.beyond += 1;
                return Ok(());
            }
            None => {
                let owner = pid.map_or(TrackOwner::Machine, TrackOwner::Process);
                let track = self.announce(SIGNALS, owner, b"")?;
                self.signal_tracks.insert(pid, track);
                track
            }
        };
        let number = tid.map(|tid| tid.to_string());
        let mut args = self.arguments(info, None);
        if let Some(arg) = args.first_mut() {
            arg.name = "info";
        }
        args.extend(number.as_ref().map(|number| TrackArg { name: "tid", value: number.as_bytes() }));
        self.push(ts, track, TrackEventKind::Instant { name }, &args)
    }

    /// The arguments of a call's event. Where there is no text, there is no argument.
    fn arguments<'t>(&mut self, args: &'t [u8], result: Option<&'t [u8]>) -> Vec<TrackArg<'t>> {
        let named = [("args", args), ("ret", result.unwrap_or_default())];
        let mut list = Vec::new();
        for (name, value) in named.into_iter().filter(|(_, value)| !value.is_empty()) {
            self.counts.cut_arguments += u64::from(value.len() > MAX_ARGUMENT_BYTES);
            list.push(TrackArg { name, value: &value[..value.len().min(MAX_ARGUMENT_BYTES)] });
        }
        list
    }

    /// The row of a thread's calls.
    fn row(&mut self, tid: Option<Tid>) -> io::Result<Option<&mut CallRow>> {
        if !self.threads.contains_key(&tid) {
            if self.threads.len() >= MAX_THREADS {
                self.counts.beyond += 1;
                return Ok(None);
            }
            let track = match tid {
                Some(tid) => {
                    let thread = self.facts.threads.get(&tid).cloned().unwrap_or_default();
                    let owner = TrackOwner::Thread { tid, tgid: thread.tgid };
                    self.announce(b"", owner, &thread.comm.unwrap_or_default())?
                }
                None => self.announce(CALLS, TrackOwner::Machine, b"")?,
            };
            self.threads.insert(tid, CallRow { track, open: OpenStraceCall::None });
        }
        Ok(self.threads.get_mut(&tid))
    }

    fn announce(&mut self, name: &[u8], owner: TrackOwner, owner_name: &[u8]) -> io::Result<TrackId> {
        let id = TrackId(self.next_track);
        self.next_track += 1;
        self.sink.track(&Track { id, name, owner_name, owner, kind: TrackKind::Slices })?;
        Ok(id)
    }

    fn push(
        &mut self,
        ts: Timestamp,
        track: TrackId,
        kind: TrackEventKind<'_>,
        args: &[TrackArg<'_>],
    ) -> io::Result<()> {
        self.report.cover(ts);
        match kind {
            TrackEventKind::Begin { .. } => self.report.track_events.slices += 1,
            TrackEventKind::Instant { .. } => self.report.track_events.instants += 1,
            _ => {}
        }
        self.sink.track_event(&TrackEvent { ts, track, kind, thread_ns: None, flows: &[], args })
    }

    fn finish(self) -> ReadReport {
        let mut report = self.report;
        let counts = self.counts;
        if counts.without_length > 0 && counts.with_length == 0 {
            let what = "calls are instants at their begin: only `strace -T` tells how long a call took";
            report.notes.push(format!("{} {what}", counts.without_length));
        }
        if counts.detached > 0 {
            report.notes.push(format!("strace left {} threads while they were in a call", counts.detached));
        }
        for (count, what) in [
            (counts.shortened, "calls end at the next line of their thread, which is earlier than they say"),
            (counts.unended, "calls have no end of their own: they end at the next line of their thread"),
            (counts.unbegun, "ends of calls are left out: the file does not have their begin"),
        ] {
            if count > 0 {
                report.irregular.push(format!("{count} {what}"));
            }
        }
        if counts.cut_arguments > 0 {
            let what = format!("arguments are cut to {MAX_ARGUMENT_BYTES} bytes");
            report.irregular.push(format!("{} {what}", counts.cut_arguments));
        }
        if counts.beyond > 0 {
            let what = format!(
                "{} lines are left out: they are of threads beyond the first {MAX_THREADS}",
                counts.beyond
            );
            report.damage.push(Damage { offset: 0, what });
        }
        report
    }
}
