//! The second pass: pushes a trace's events to a sink, in order of time, as events of tracks.

use std::hash::Hasher;
use std::io;

use rustc_hash::{FxHashMap, FxHasher};

use super::document::ChromeJsonTrace;
use super::event::{IdScope, InstantScope, JsonEvent, ThreadKey};
use super::slices::{AsyncSlices, FlowBinding, JsonSliceRow, OpenJsonSlices, SliceEnd, flow_of};
use crate::clock::Timestamp;
use crate::formats::json::{JsonText, Value, float, integer, members};
use crate::formats::{
    CounterValue, Damage, Flow, Head, LossKind, LossPlace, Order, ProcessInfo, ReadReport, Recording, Sink,
    ThreadInfo, Track, TrackEvent, TrackEventKind, TrackId, TrackKind, TrackOwner,
};
use crate::ids::{Pid, Tid};

/// A file has so many tracks at most.
const MAX_TRACKS: usize = 1 << 18;
/// The name of the track with the instants that belong to no process.
const GLOBAL_INSTANTS: &[u8] = b"Global instants";
/// The name of the tracks with whole slices that overlap others of their thread.
const OVERLAPPING: &[u8] = b"overlapping slices";
/// The name of a counter's value that is the counter itself, in files of tracebridge and others.
const ONLY_VALUE: &[u8] = b"value";

impl Recording for ChromeJsonTrace<'_> {
    fn head(&self) -> &Head {
        self.facts()
    }

    fn read(&self, _: Order, sink: &mut dyn Sink) -> io::Result<ReadReport> {
        sink.head(self.facts())?;
        push(self, sink)
    }
}

/// Pushes names and events of `json` to `sink`.
fn push(json: &ChromeJsonTrace<'_>, sink: &mut dyn Sink) -> io::Result<ReadReport> {
    let mut pusher = TrackPusher {
        json,
        sink,
        report: json.report(),
        tracks: FxHashMap::default(),
        next_track: 0,
        async_tracks: Vec::new(),
        slices: OpenJsonSlices::default(),
        asyncs: AsyncSlices::default(),
        ends: Vec::new(),
        arguments: 0,
        bad_counters: 0,
        homeless: 0,
        too_many_tracks: 0,
    };
    pusher.names()?;
    json.for_each_group(&mut |group, order| pusher.group(group, order))?;
    pusher.end_slices(Timestamp::MAX)?;
    Ok(pusher.finish())
}

/// The hash of some texts.
pub(super) fn hash(parts: &[&[u8]]) -> u64 {
    let mut hasher = FxHasher::default();
    for part in parts {
        hasher.write(part);
        hasher.write_u8(0xff);
    }
    hasher.finish()
}

/// The contents of a track, by which it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum JsonTrackKey {
    Slices(JsonSliceRow),
    ProcessInstants(i64),
    GlobalInstants,
    /// By the hash of its process and its name.
    Counter(u64),
}

struct TrackPusher<'j, 's, 'a> {
    json: &'j ChromeJsonTrace<'a>,
    sink: &'s mut dyn Sink,
    report: ReadReport,
    tracks: FxHashMap<JsonTrackKey, TrackId>,
    next_track: u32,
    /// The tracks of the rows of asynchronous slices.
    async_tracks: Vec<TrackId>,
    slices: OpenJsonSlices,
    asyncs: AsyncSlices,
    ends: Vec<SliceEnd>,
    arguments: u64,
    bad_counters: u64,
    /// Asynchronous events without an id, and instants of an unknown scope.
    homeless: u64,
    too_many_tracks: u64,
}

impl<'a> TrackPusher<'_, '_, 'a> {
    fn names(&mut self) -> io::Result<()> {
        for (pid, process) in self.json.processes() {
            let (Ok(pid), Some(name)) = (Pid::try_from(*pid), &process.name) else { continue };
            self.sink.process(&ProcessInfo { pid, ppid: None, name: Some(name), package: None })?;
        }
        for (key, thread) in self.json.threads() {
            let (Ok(tid), Ok(tgid)) = (Tid::try_from(key.tid), Pid::try_from(key.pid)) else { continue };
            if !thread.is_ambiguous {
                let name = thread.name.as_deref();
                self.sink.thread(&ThreadInfo { tid, tgid: Some(tgid), name })?;
            }
        }
        Ok(())
    }

    /// Pushes events of one time. Ends of slices that began earlier come first.
    fn group(&mut self, group: &[JsonEvent<'a>], order: &[usize]) -> io::Result<()> {
        let Some(ts) = group.first().and_then(JsonEvent::time) else { return Ok(()) };
        self.end_slices(ts)?;
        let flows = match group {
            [only] if only.bind_id.is_none() => FlowBinding::default(),
            _ => FlowBinding::new(group, |event| self.json.thread_of(event), hash),
        };
        for &number in order {
            let event = &group[number];
            let bound = flows.by_event.get(&number).map_or(&[][..], Vec::as_slice);
            let is_flow = matches!(event.phase, b's' | b't' | b'f');
            let is_bound = is_flow && flow_of(event, hash).is_some_and(|flow| holds(&flows, flow));
            self.event(ts, event, bound, is_bound)?;
        }
        Ok(())
    }

    /// Ends the whole slices that end at `ts` or earlier.
    fn end_slices(&mut self, ts: Timestamp) -> io::Result<()> {
        self.slices.ends_until(ts, &mut self.ends);
        self.push_ends()
    }

    fn push_ends(&mut self) -> io::Result<()> {
        for number in 0..self.ends.len() {
            let SliceEnd { row, ts, thread_ns } = self.ends[number];
            let Some(track) = self.track_of_row(row)? else { continue };
            self.push(ts, track, TrackEventKind::End, thread_ns, &[])?;
        }
        self.ends.clear();
        Ok(())
    }

    fn push(
        &mut self,
        ts: Timestamp,
        track: TrackId,
        kind: TrackEventKind<'_>,
        thread_ns: Option<u64>,
        flows: &[Flow],
    ) -> io::Result<()> {
        self.report.cover(ts);
        let counts = &mut self.report.track_events;
        match kind {
            TrackEventKind::Begin { .. } => counts.slices += 1,
            TrackEventKind::Instant { .. } => counts.instants += 1,
            TrackEventKind::Counter(_) => counts.counter_values += 1,
            _ => {}
        }
        self.sink.track_event(&TrackEvent { ts, track, kind, thread_ns, flows, args: &[] })
    }

    /// Pushes an event. `is_bound` says that the flow of a flow's event belongs to another event of this
    /// time.
    fn event(
        &mut self,
        ts: Timestamp,
        event: &JsonEvent<'a>,
        flows: &[Flow],
        is_bound: bool,
    ) -> io::Result<()> {
        let thread = self.json.thread_of(event);
        let name = event.name.unwrap_or_default().bytes();
        let thread_ns = event.tts.and_then(|ns| u64::try_from(ns).ok());
        self.arguments += u64::from(event.args.is_some_and(|args| args.len() > 2) && event.phase != b'C');
        match event.phase {
            b'B' => {
                let row = self.slices.begin(thread, hash(&[&name]));
                let Some(track) = self.track_of_row(row)? else { return Ok(()) };
                self.push(ts, track, TrackEventKind::Begin { name: &name }, thread_ns, flows)
            }
            b'E' => {
                let name = (!name.is_empty()).then(|| hash(&[&name]));
                self.slices.end(thread, name, ts, thread_ns, &mut self.ends);
                self.push_ends()
            }
            b'X' => {
                let Some(dur) = event.dur.and_then(|dur| u64::try_from(dur).ok()) else {
                    self.homeless += 1;
                    return Ok(());
                };
                let thread_dur = event.tdur.and_then(|ns| u64::try_from(ns).ok());
                let thread_end = thread_ns.zip(thread_dur).map(|(ns, dur)| ns.saturating_add(dur));
                let end = ts.saturating_add(dur);
                let row = self.slices.whole(thread, hash(&[&name]), end, thread_end);
                let Some(track) = self.track_of_row(row)? else { return Ok(()) };
                self.push(ts, track, TrackEventKind::Begin { name: &name }, thread_ns, flows)?;
                // Nothing lies inside of a slice without length.
                if dur == 0 { self.end_slices(ts) } else { Ok(()) }
            }
            b'i' | b'I' | b'R' => {
                let Some(track) = self.instant_track(thread, event)? else { return Ok(()) };
                self.push(ts, track, TrackEventKind::Instant { name: &name }, thread_ns, flows)
            }
            b'b' | b'e' | b'n' | b'S' | b'T' | b'p' | b'F' => {
                self.async_event(ts, event, &name, thread.pid, flows)
            }
            b'C' => self.counters(ts, event, &name, thread.pid),
            b's' | b't' | b'f' if !is_bound => {
                let Some(flow) = flow_of(event, hash) else {
                    self.homeless += 1;
                    return Ok(());
                };
                let Some(track) = self.track_of_row((thread, 0))? else { return Ok(()) };
                let name = if name.is_empty() { b"flow" } else { name.as_ref() };
                self.push(ts, track, TrackEventKind::Instant { name }, None, &[flow])
            }
            _ => Ok(()),
        }
    }

    fn async_event(
        &mut self,
        ts: Timestamp,
        event: &JsonEvent<'a>,
        name: &[u8],
        pid: i64,
        flows: &[Flow],
    ) -> io::Result<()> {
        let Some((scope, id)) = event.id else {
            self.homeless += 1;
            return Ok(());
        };
        let (kind, number, text) = id.parts();
        let process = if scope == IdScope::Local { pid } else { 0 };
        let cat = event.cat.unwrap_or_default().raw();
        let head = [scope as u8, kind];
        let id = hash(&[&head, &process.to_le_bytes(), &number.to_le_bytes(), text, cat, name]);
        let group = hash(&[&pid.to_le_bytes(), name]);
        match event.phase {
            b'b' | b'S' => {
                let Some((row, is_new)) = self.asyncs.begin(id, group) else { return Ok(()) };
                let Some(track) = self.async_track(row, is_new, pid, name)? else { return Ok(()) };
                self.push(ts, track, TrackEventKind::Begin { name }, None, flows)
            }
            b'e' | b'F' => {
                let Some(row) = self.asyncs.end(id, group) else { return Ok(()) };
                let Some(track) = self.async_track(row, false, pid, name)? else { return Ok(()) };
                self.push(ts, track, TrackEventKind::End, None, &[])
            }
            _ => {
                let (row, is_new) = self.asyncs.instant(id, group);
                let Some(track) = self.async_track(row, is_new, pid, name)? else { return Ok(()) };
                self.push(ts, track, TrackEventKind::Instant { name }, None, flows)
            }
        }
    }

    fn counters(&mut self, ts: Timestamp, event: &JsonEvent<'a>, name: &[u8], pid: i64) -> io::Result<()> {
        let Some(args) = event.args else {
            self.bad_counters += 1;
            return Ok(());
        };
        for (series, value) in members(args) {
            let number = match value {
                Value::Number(number) => Some(number),
                Value::Text(text) => Some(text.raw()),
                _ => None,
            };
            let int = number.and_then(integer).and_then(|int| i64::try_from(int).ok()).map(CounterValue::Int);
            let value = int.or_else(|| number.and_then(float).map(CounterValue::Double));
            let Some(value) = value else {
                self.bad_counters += 1;
                continue;
            };
            let label = counter_name(event, name, series);
            let key = JsonTrackKey::Counter(hash(&[&pid.to_le_bytes(), &label]));
            let Some(track) = self.track(key, process_owner(pid), &label, b"", TrackKind::Counter)? else {
                continue;
            };
            self.push(ts, track, TrackEventKind::Counter(value), None, &[])?;
        }
        Ok(())
    }

    fn instant_track(&mut self, thread: ThreadKey, event: &JsonEvent<'a>) -> io::Result<Option<TrackId>> {
        match event.instant {
            Some(InstantScope::Thread) => self.track_of_row((thread, 0)),
            Some(InstantScope::Process) => {
                let key = JsonTrackKey::ProcessInstants(thread.pid);
                let name = self.json.processes().get(&thread.pid).and_then(|process| process.name.clone());
                let owner_name = name.unwrap_or_default();
                self.track(key, process_owner(thread.pid), b"", &owner_name, TrackKind::Slices)
            }
            Some(InstantScope::Global) => {
                let key = JsonTrackKey::GlobalInstants;
                self.track(key, TrackOwner::Machine, GLOBAL_INSTANTS, b"", TrackKind::Slices)
            }
            None => {
                self.homeless += 1;
                Ok(None)
            }
        }
    }

    /// The track of a row of a thread's slices. A thread becomes a track of its process if its number is no
    /// thread id of the kernel, or if another thread has the same number.
    fn track_of_row(&mut self, row: JsonSliceRow) -> io::Result<Option<TrackId>> {
        if let Some(track) = self.tracks.get(&JsonTrackKey::Slices(row)) {
            return Ok(Some(*track));
        }
        let (key, number) = row;
        let thread = self.json.threads().get(&key);
        let name = thread.and_then(|thread| thread.name.clone());
        let is_ambiguous = thread.is_none_or(|thread| thread.is_ambiguous);
        let of_kernel =
            (Tid::try_from(key.tid).ok().filter(|tid| *tid >= Tid::IDLE), Pid::try_from(key.pid).ok());
        let (owner, track_name, owner_name) = match of_kernel {
            (Some(tid), Some(tgid)) if !is_ambiguous => {
                let own = if number == 0 { b"" } else { OVERLAPPING };
                (TrackOwner::Thread { tid, tgid: Some(tgid) }, own.to_vec(), name.unwrap_or_default())
            }
            _ => {
                let name = name.unwrap_or_else(|| format!("thread {}", key.tid).into_bytes());
                (process_owner(key.pid), name, Vec::new())
            }
        };
        self.track(JsonTrackKey::Slices(row), owner, &track_name, &owner_name, TrackKind::Slices)
    }

    fn async_track(&mut self, row: u32, is_new: bool, pid: i64, name: &[u8]) -> io::Result<Option<TrackId>> {
        if !is_new {
            return Ok(self.async_tracks.get(row as usize).copied());
        }
        let Some(track) = self.announce(process_owner(pid), name, b"", TrackKind::Slices)? else {
            return Ok(None);
        };
        self.async_tracks.push(track);
        Ok(Some(track))
    }

    fn track(
        &mut self,
        key: JsonTrackKey,
        owner: TrackOwner,
        name: &[u8],
        owner_name: &[u8],
        kind: TrackKind,
    ) -> io::Result<Option<TrackId>> {
        if let Some(track) = self.tracks.get(&key) {
            return Ok(Some(*track));
        }
        let track = self.announce(owner, name, owner_name, kind)?;
        if let Some(track) = track {
            self.tracks.insert(key, track);
        }
        Ok(track)
    }

    /// Announces a new track; `None` where there are too many.
    fn announce(
        &mut self,
        owner: TrackOwner,
        name: &[u8],
        owner_name: &[u8],
        kind: TrackKind,
    ) -> io::Result<Option<TrackId>> {
        if self.next_track as usize >= MAX_TRACKS {
            self.too_many_tracks += 1;
            return Ok(None);
        }
        let id = TrackId(self.next_track);
        self.next_track += 1;
        self.sink.track(&Track { id, name, owner_name, owner, kind })?;
        Ok(Some(id))
    }

    fn finish(self) -> ReadReport {
        let mut report = self.report;
        let mut irregular = |count: u64, what: &str| {
            if count > 0 {
                report.irregular.push(format!("{count} {what}"));
            }
        };
        irregular(
            self.slices.unmatched + self.asyncs.unmatched,
            "ends are left out: no slice is open that they could end",
        );
        irregular(
            self.slices.overlapping,
            "slices overlap others of their thread without lying inside of them: they are on tracks of their own",
        );
        irregular(self.slices.shortened, "slices end with the slice around them, earlier than they say");
        report.losses.add(LossKind::HomelessEvents, LossPlace::Recording, self.homeless);
        report.losses.add(LossKind::CounterValues, LossPlace::Recording, self.bad_counters);
        if self.arguments > 0 {
            let what = "events have arguments, which only a copy to a Perfetto trace keeps";
            report.notes.push(format!("{} {what}", self.arguments));
        }
        for (count, what) in [
            (self.asyncs.too_many, "asynchronous slices are left out: too many are open at a time"),
            (self.too_many_tracks, "events are left out: the file has too many tracks"),
        ] {
            if count > 0 {
                report.damage.push(Damage { offset: 0, what: format!("{count} {what}") });
            }
        }
        report
    }
}

/// Whether a flow belongs to another event of the same time.
fn holds(binding: &FlowBinding, flow: Flow) -> bool {
    binding.by_event.values().any(|flows| flows.contains(&flow))
}

fn process_owner(pid: i64) -> TrackOwner {
    Pid::try_from(pid).map_or(TrackOwner::Machine, TrackOwner::Process)
}

/// The name of a series of a counter.
fn counter_name(event: &JsonEvent<'_>, name: &[u8], series: JsonText<'_>) -> Vec<u8> {
    let mut label = name.to_vec();
    if let Some((_, id)) = event.id {
        let (kind, number, text) = id.parts();
        label.extend_from_slice(b" id: ");
        match kind {
            0 => label.extend_from_slice(number.to_string().as_bytes()),
            _ => label.extend_from_slice(text),
        }
    }
    if series.raw() != ONLY_VALUE {
        label.push(b' ');
        label.extend_from_slice(&series.bytes());
    }
    label
}
