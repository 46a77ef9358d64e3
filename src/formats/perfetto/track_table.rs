//! The tracks that `TrackDescriptor` messages describe, and what they belong to.

use std::collections::HashMap;

use super::counter_packets::CounterName;
use super::fields::{counter_descriptor, process_descriptor, thread_descriptor, track_descriptor};
use super::track_clocks::number;
use super::wire::read::{WireValue, fields};
use crate::formats::{Track, TrackId, TrackKind, TrackOwner};
use crate::ids::{Pid, Tid};

/// How many parents of a track are followed. Descriptors of a damaged file may form a circle.
const MAX_PARENTS: usize = 64;
/// The name of the tracks on which tracebridge writes method calls, and what precedes the thread's name where
/// the thread is not known.
pub(crate) const METHOD_TRACK: &str = "Java methods";
/// The name of the track on which tracebridge writes how it has aligned the inputs. The track was not
/// recorded, so it is not read: the next conversion writes it anew.
pub(crate) const INPUTS_TRACK: &str = "tracebridge: inputs and their clocks";

/// The names of the tracks of frames, which Perfetto's tools give them too.
const EXPECTED_FRAMES_TRACK: &[u8] = b"Expected Timeline";
const ACTUAL_FRAMES_TRACK: &[u8] = b"Actual Timeline";

/// A thread as a `ThreadDescriptor` describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct DescribedThread {
    pub(super) pid: Option<Pid>,
    pub(super) tid: Tid,
}

/// Reads a `ThreadDescriptor`.
pub(super) fn described_thread(descriptor: &[u8]) -> Option<DescribedThread> {
    let tid = Tid(number(descriptor, thread_descriptor::TID)? as i32);
    Some(DescribedThread { pid: number(descriptor, thread_descriptor::PID).map(|pid| Pid(pid as i32)), tid })
}

/// How the values of a counter are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CounterSpec {
    pub(super) multiplier: i64,
    /// Whether each value is the difference to the one before.
    pub(super) is_incremental: bool,
}

/// One described track.
#[derive(Debug, Clone, Copy, Default)]
struct DescribedTrack<'a> {
    name: &'a [u8],
    parent: u64,
    process: Option<(Pid, &'a [u8])>,
    thread: Option<(DescribedThread, &'a [u8])>,
    counter: Option<CounterSpec>,
}

impl DescribedTrack<'_> {
    /// Whether it stands for a thread or a process.
    fn has_owner(&self) -> bool {
        self.thread.is_some() || self.process.is_some()
    }
}

/// The key by which a track is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum PerfettoTrackKey<'a> {
    /// A uuid; 0 is the track of events that name none.
    Uuid(u64),
    /// A thread that a `ThreadDescriptor` of the packet sequence names.
    Thread(DescribedThread),
    /// An asynchronous slice of Chrome's old kind: its process, id and name.
    Async(Option<Pid>, u64, &'a [u8]),
    /// Frames of a process, and whether they are actual and not expected ones.
    Frames(Pid, bool),
    /// A counter that packets of its own poll.
    Counter(TrackOwner, CounterName<'a>),
}

/// A track with events.
pub(super) struct TableTrack<'a> {
    track: Track<'a>,
    /// The track's name, where that is no text of the trace.
    name: Option<String>,
}

impl TableTrack<'_> {
    pub(super) fn track(&self) -> Track<'_> {
        Track { name: self.name.as_ref().map_or(self.track.name, String::as_bytes), ..self.track }
    }
}

/// Everything about the tracks of a trace.
#[derive(Default)]
pub(super) struct TrackTable<'a> {
    described: HashMap<u64, DescribedTrack<'a>>,
    ids: HashMap<PerfettoTrackKey<'a>, TrackId>,
    /// The tracks with events, in the order of their ids.
    pub(super) tracks: Vec<TableTrack<'a>>,
    /// The number of tracks with events whose owner is not found among their first [`MAX_PARENTS`] parents.
    pub(super) too_deep: u64,
}

impl<'a> TrackTable<'a> {
    /// Reads a `TrackDescriptor`.
    pub(super) fn describe(&mut self, descriptor: &'a [u8]) {
        let uuid = number(descriptor, track_descriptor::UUID).unwrap_or(0);
        let track = self.described.entry(uuid).or_default();
        for (field, value) in fields(descriptor) {
            let body = value.bytes();
            match field {
                track_descriptor::NAME | track_descriptor::STATIC_NAME | track_descriptor::ATRACE_NAME => {
                    track.name = body;
                }
                track_descriptor::PARENT_UUID => track.parent = value.number(),
                track_descriptor::PROCESS => {
                    let pid = Pid(number(body, process_descriptor::PID).unwrap_or(0) as i32);
                    track.process = Some((pid, text(body, process_descriptor::PROCESS_NAME)));
                }
                track_descriptor::THREAD => {
                    let thread = described_thread(body);
                    track.thread = thread.map(|thread| (thread, text(body, thread_descriptor::THREAD_NAME)));
                }
                track_descriptor::COUNTER => {
                    let multiplier = number(body, counter_descriptor::UNIT_MULTIPLIER);
                    track.counter = Some(CounterSpec {
                        multiplier: multiplier.map_or(1, |m| m as i64),
                        is_incremental: number(body, counter_descriptor::IS_INCREMENTAL) == Some(1),
                    });
                }
                _ => {}
            }
        }
    }

    /// How the values of the counter track `uuid` are to be read.
    pub(super) fn counter(&self, uuid: u64) -> CounterSpec {
        let described = self.described.get(&uuid).and_then(|track| track.counter);
        described.unwrap_or(CounterSpec { multiplier: 1, is_incremental: false })
    }

    /// The track's number. A track gets one with its first event.
    pub(super) fn id(&mut self, key: PerfettoTrackKey<'a>, is_counter: bool) -> TrackId {
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let id = TrackId(self.tracks.len() as u32);
        if let PerfettoTrackKey::Uuid(uuid) = key {
            self.too_deep += u64::from(self.is_too_deep(uuid));
        }
        let mut track = self.resolve(key);
        track.id = id;
        if is_counter {
            track.kind = TrackKind::Counter;
        }
        let name = match key {
            PerfettoTrackKey::Counter(_, name) => Some(name.text()),
            _ => None,
        };
        self.tracks.push(TableTrack { track, name });
        self.ids.insert(key, id);
        id
    }

    /// The described track with this uuid, and those above it.
    fn line_of(&self, uuid: u64) -> impl Iterator<Item = &DescribedTrack<'a>> {
        let above =
            |track: &&DescribedTrack<'a>| self.described.get(&track.parent).filter(|_| track.parent != 0);
        std::iter::successors(self.described.get(&uuid), above)
    }

    /// Whether the owner of a track is not found because it has too many parents, or is its own.
    fn is_too_deep(&self, uuid: u64) -> bool {
        let line = || self.line_of(uuid).take(MAX_PARENTS + 1);
        line().count() > MAX_PARENTS && !line().take(MAX_PARENTS).any(DescribedTrack::has_owner)
    }

    fn resolve(&self, key: PerfettoTrackKey<'a>) -> Track<'a> {
        let mut track = Track {
            id: TrackId(0),
            name: b"",
            owner_name: b"",
            owner: TrackOwner::Machine,
            kind: TrackKind::Slices,
        };
        match key {
            PerfettoTrackKey::Thread(DescribedThread { pid, tid }) => {
                track.owner = TrackOwner::Thread { tid, tgid: pid }
            }
            PerfettoTrackKey::Async(pid, _, name) => {
                track.name = name;
                track.owner = pid.map_or(TrackOwner::Machine, TrackOwner::Process);
            }
            PerfettoTrackKey::Counter(owner, _) => track.owner = owner,
            PerfettoTrackKey::Frames(pid, is_actual) => {
                track.name = if is_actual { ACTUAL_FRAMES_TRACK } else { EXPECTED_FRAMES_TRACK };
                track.owner = TrackOwner::Process(pid);
                track.kind = TrackKind::Frames;
            }
            PerfettoTrackKey::Uuid(uuid) => {
                let own = self.described.get(&uuid);
                track.name = own.map_or(&b""[..], |own| own.name);
                let owner = self.line_of(uuid).take(MAX_PARENTS).find(|track| track.has_owner());
                if let Some((thread, name)) = owner.and_then(|owner| owner.thread) {
                    track.owner = TrackOwner::Thread { tid: thread.tid, tgid: thread.pid };
                    track.owner_name = name;
                } else if let Some((pid, name)) = owner.and_then(|owner| owner.process) {
                    track.owner = TrackOwner::Process(pid);
                    track.owner_name = name;
                }
                // The track that stands for a thread or process has that one's name.
                if own.is_some_and(DescribedTrack::has_owner) {
                    track.name = b"";
                }
                let rest = track.name.strip_prefix(METHOD_TRACK.as_bytes());
                if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b": ")) {
                    track.kind = TrackKind::Methods;
                }
            }
        }
        track
    }
}

fn text(message: &[u8], field: u32) -> &[u8] {
    super::wire::read::last_value(message, field).map_or(&[], WireValue::bytes)
}
