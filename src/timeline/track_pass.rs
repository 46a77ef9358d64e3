//! The tracks of one recording on their way to the exporter: numbers them over all inputs, and turns tracks
//! of method calls into the methods that a method trace would have given.

use std::collections::HashMap;
use std::io;

use super::method_slices::NextIds;
use super::sink::{Edge, EdgeKind, MethodId, MethodName, MethodThread, TimelineSink, Unannounced};
use crate::clock::Timestamp;
use crate::formats::{Track, TrackEvent, TrackEventKind, TrackId, TrackKind, TrackOwner};

/// The next numbers of tracks, methods and method threads: all inputs share one numbering.
#[derive(Debug, Clone, Copy, Default)]
pub struct NextNumbers {
    /// The next method and method thread.
    pub methods: NextIds,
    /// The next [`TrackId`].
    pub track: u32,
}

/// The destination of the events of one track.
enum TrackTarget {
    /// The track's events stay events of a track.
    Track(TrackId),
    /// The track's events become edges of this method thread; `open` are its open methods.
    Methods { thread: u32, open: Vec<MethodId> },
}

/// The tracks of one recording.
#[derive(Default)]
pub struct TrackPass {
    /// By the track's number in its recording.
    targets: Vec<TrackTarget>,
    methods: HashMap<Vec<u8>, MethodId>,
    /// The time of the latest event, in the timeline's clock.
    last_ts: Timestamp,
    /// Method calls that have begun.
    pub method_calls: u64,
    /// Arguments of events that stay events of a track.
    pub arguments: u64,
}

/// An event of a track on its way to the exporter.
pub enum TrackOutput<'a> {
    /// An event of a track.
    Event(TrackEvent<'a>),
    /// An edge of the method thread with this index.
    Edge(u32, Edge),
    /// An end of a method whose begin is not recorded.
    Nothing,
}

impl TrackPass {
    /// Announces the next track of the recording to `out`; `None` if nothing is to be pushed.
    pub fn track(
        &mut self,
        track: &Track<'_>,
        next: &mut NextNumbers,
        out: Option<&mut (dyn TimelineSink + '_)>,
    ) -> io::Result<()> {
        if track.kind == TrackKind::Methods {
            let thread = method_thread(track, next.methods.thread);
            let index = thread.index;
            next.methods.thread += u32::from(out.is_some());
            self.targets.push(TrackTarget::Methods { thread: index, open: Vec::new() });
            return out.map_or(Ok(()), |out| out.method_thread(&thread));
        }
        let id = TrackId(next.track);
        next.track += u32::from(out.is_some());
        self.targets.push(TrackTarget::Track(id));
        out.map_or(Ok(()), |out| out.track(&Track { id, ..*track }))
    }

    /// Converts an event, whose time is in the timeline's clock. A method that is new is announced to `out`.
    pub fn event<'a>(
        &mut self,
        event: &TrackEvent<'a>,
        next: &mut NextNumbers,
        out: Option<&mut (dyn TimelineSink + '_)>,
    ) -> io::Result<TrackOutput<'a>> {
        self.last_ts = self.last_ts.max(event.ts);
        let (thread, open) = match self.targets.get_mut(event.track.0 as usize) {
            Some(TrackTarget::Track(id)) => {
                self.arguments += event.args.len() as u64;
                return Ok(TrackOutput::Event(TrackEvent { track: *id, ..*event }));
            }
            Some(TrackTarget::Methods { thread, open }) => (*thread, open),
            None => return Err(Unannounced::Track(event.track.0).into()),
        };
        let (method, kind) = match event.kind {
            TrackEventKind::Begin { name } => {
                let method = match self.methods.get(name) {
                    Some(method) => *method,
                    None => {
                        let method = MethodId(next.methods.method);
                        if let Some(out) = out {
                            next.methods.method += 1;
                            announce(method, name, out)?;
                        }
                        self.methods.insert(name.to_vec(), method);
                        method
                    }
                };
                open.push(method);
                self.method_calls += 1;
                (method, EdgeKind::Enter)
            }
            TrackEventKind::End => match open.pop() {
                Some(method) => (method, EdgeKind::Exit),
                None => return Ok(TrackOutput::Nothing),
            },
            _ => return Ok(TrackOutput::Nothing),
        };
        Ok(TrackOutput::Edge(thread, Edge { ts: event.ts, cpu: event.thread_ns, method, kind }))
    }

    /// The exits, at the time of the latest event, of the methods that are still open.
    pub fn exits_of_open_methods(&mut self) -> Vec<(u32, Edge)> {
        let mut exits = Vec::new();
        for target in &mut self.targets {
            let TrackTarget::Methods { thread, open } = target else { continue };
            for method in std::mem::take(open).into_iter().rev() {
                exits.push((*thread, Edge { ts: self.last_ts, cpu: None, method, kind: EdgeKind::Exit }));
            }
        }
        exits
    }
}

/// Announces a method by the name of its slice: `java.lang.String.valueOf`.
fn announce(id: MethodId, name: &[u8], out: &mut dyn TimelineSink) -> io::Result<()> {
    let name = String::from_utf8_lossy(name);
    let (class, name) = name.rsplit_once('.').unwrap_or(("", &name));
    out.method(id, &MethodName { class, name, signature: "", file: "", line: None })
}

/// The method thread of a track of method calls. Where the kernel's thread is not known, the track's name
/// holds the thread's name and its id in the method trace: `Java methods: main (id 1)`.
fn method_thread(track: &Track<'_>, index: u32) -> MethodThread {
    let own_name = String::from_utf8_lossy(track.name);
    let told = own_name.split_once(": ").map_or("", |(_, told)| told);
    let (told_name, told_id) = told
        .rsplit_once(" (id ")
        .and_then(|(name, id)| Some((name, id.strip_suffix(')')?.parse().ok()?)))
        .unwrap_or((told, 0));
    let owner_name = String::from_utf8_lossy(track.owner_name).into_owned();
    let (tid, tgid) = match track.owner {
        TrackOwner::Thread { tid, tgid } => (Some(tid), tgid),
        TrackOwner::Process(pid) => (None, Some(pid)),
        TrackOwner::Machine => (None, None),
    };
    MethodThread {
        index,
        tid,
        tgid,
        name: if tid.is_some() { owner_name } else { told_name.to_owned() },
        trace_id: tid.map_or(told_id, |tid| tid.0 as u32),
        doubt: None,
        edge_cost_ns: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Pid, Tid};

    #[test]
    fn the_name_of_a_method_track_tells_the_thread() {
        let track = |name: &'static str, owner| Track {
            id: TrackId(0),
            name: name.as_bytes(),
            owner_name: b"RenderThread",
            owner,
            kind: TrackKind::Methods,
        };
        let known =
            method_thread(&track("Java methods", TrackOwner::Thread { tid: Tid(9), tgid: Some(Pid(7)) }), 3);
        assert_eq!(
            (known.tid, known.tgid, known.name.as_str(), known.index),
            (Some(Tid(9)), Some(Pid(7)), "RenderThread", 3)
        );
        let unknown = method_thread(&track("Java methods: pool (a) (id 12)", TrackOwner::Process(Pid(7))), 0);
        assert_eq!((unknown.tid, unknown.trace_id, unknown.name.as_str()), (None, 12, "pool (a)"));
    }
}
