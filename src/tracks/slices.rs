//! Slices, instants and counters that markers describe, and the slices of methods.

use std::collections::BTreeMap;
use std::io;

use super::builder::{OpenSlices, TrackBuilder};
use super::open_async::AsyncPlace;
use super::sink::{AsyncEdge, CounterSample, CounterScope, MethodCall, OpenMethod, Span, TrackSink};
use crate::clock::Timestamp;
use crate::formats::Event;
use crate::ids::{Pid, Tid};
use crate::markers::Marker;
use crate::timeline::{Edge, EdgeKind};

impl<S: TrackSink> TrackBuilder<S> {
    /// Handles the text of a marker.
    pub(super) fn marker(&mut self, event: &Event<'_>, text: &[u8]) -> io::Result<()> {
        let ts = event.ts;
        let marker = Marker::parse(text);
        // A marker holds the id of the process that wrote the marker.
        if let Some(pid) = marker.as_ref().and_then(Marker::pid).filter(|pid| *pid > 0) {
            self.tasks.threads.learn_tgid_if_unknown(event.tid, Pid(pid));
        }
        let at = self.tasks.task(event.tid);
        match marker {
            Some(Marker::Begin { name, .. }) => {
                self.slices.entry(event.tid).or_default().begin(ts, name);
                self.sink.begin(at, ts, name)
            }
            Some(Marker::End { .. }) => {
                let open = self.slices.get_mut(&event.tid);
                let Some((open, (start, from))) = open.and_then(|open| {
                    let innermost = open.slices.pop()?;
                    Some((open, innermost))
                }) else {
                    // The slice began before the recording.
                    self.unmatched_ends += 1;
                    return Ok(());
                };
                let span = Span { start, end: ts, open: false };
                let ended = self.sink.end(&self.tasks, at, span, &open.names[from..]);
                open.names.truncate(from);
                ended
            }
            Some(Marker::AsyncBegin { pid, name, cookie }) => {
                self.async_begin(&AsyncPlace::of_name(Pid(pid), name, cookie), name, ts)
            }
            Some(Marker::AsyncEnd { pid, name, cookie }) => {
                self.async_end(&AsyncPlace::of_name(Pid(pid), name, cookie), name, ts)
            }
            Some(Marker::TrackBegin { pid, track, name, cookie }) => {
                self.async_begin(&AsyncPlace::of_track(Pid(pid), track, cookie), name, ts)
            }
            Some(Marker::TrackEnd { pid, track, name, cookie }) => {
                self.async_end(&AsyncPlace::of_track(Pid(pid), track, cookie), name.unwrap_or(track), ts)
            }
            Some(Marker::TrackInstant { pid, track, name }) => {
                let place = AsyncPlace::of_track(Pid(pid), track, 0);
                self.sink.async_edge(&self.tasks, Pid(pid), &place.slice(0, name, ts, AsyncEdge::Instant))
            }
            Some(Marker::Instant { name, .. }) => self.sink.instant(&self.tasks, at, ts, name),
            Some(Marker::Counter { pid, name, value, .. }) => {
                let name = String::from_utf8_lossy(name);
                let counter = CounterSample { name: &name, ts, value };
                self.sink.counter(&self.tasks, CounterScope::Process(Pid(pid)), counter)
            }
            Some(Marker::ClockSync(_)) | None => {
                self.sink.instant(&self.tasks, at, ts, text.trim_ascii_end())
            }
        }
    }

    /// Handles method entries and exits of the thread with the index `thread`.
    pub(super) fn method_edges(&mut self, thread: u32, edges: &[Edge]) -> io::Result<()> {
        let Some((at, stack)) = self.method_threads.get_mut(&thread) else { return Ok(()) };
        for edge in edges {
            self.last_ts = self.last_ts.max(edge.ts);
            self.sink.stack(at, stack, &self.methods, edge.ts)?;
            match edge.kind {
                EdgeKind::Enter => {
                    let open = OpenMethod { begun: edge.ts, cpu: edge.cpu, method: edge.method };
                    stack.push(open);
                    let Some(method) = self.methods.get(edge.method.0 as usize) else { continue };
                    self.sink.method_begin(at, method, &open)?;
                }
                EdgeKind::Exit => {
                    let Some(open) = stack.pop() else { continue };
                    let Some(method) = self.methods.get(open.method.0 as usize) else { continue };
                    let span = Span { start: open.begun, end: edge.ts, open: false };
                    let call =
                        MethodCall { at, method, span, cpu: open.cpu.zip(edge.cpu), depth: stack.len() };
                    self.sink.method(&self.tasks, &call)?;
                }
            }
        }
        Ok(())
    }

    /// Ends at `end` the slices that no marker ended. The order is that of the thread ids, so that the same
    /// input always gives the same output.
    pub(super) fn close_slices(&mut self, end: Timestamp) -> io::Result<()> {
        let open_slices: BTreeMap<Tid, _> = std::mem::take(&mut self.slices).into_iter().collect();
        open_slices.into_iter().try_for_each(|(tid, open)| self.end_slices(tid, open, end))
    }

    /// Ends the open slices of a thread at `end`.
    pub(super) fn end_slices(&mut self, tid: Tid, open: OpenSlices, end: Timestamp) -> io::Result<()> {
        let mut name_end = open.names.len();
        for (start, from) in open.slices.into_iter().rev() {
            let span = Span { start, end, open: true };
            let name = &open.names[from..name_end];
            self.sink.end(&self.tasks, self.tasks.task(tid), span, name)?;
            name_end = from;
        }
        Ok(())
    }
}
