//! A part of a timeline: what overlaps the part is passed on, and what began before it begins with it. So the
//! state of the machine at the part's begin is kept.

mod filter;

use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use serde::Serialize;

use super::align::placement::MergeOptions;
use super::merge::merge;
use super::merge_error::MergeError;
use super::sink::TimelineSink;
use super::summary::{MergeSummary, Window};
use crate::clock::Timestamp;
use crate::formats::input::Input;
use crate::formats::{Event, EventType, OwnedEvent, Sink};
use crate::ids::{Cpu, Pid, Tid};
use crate::markers::Marker;
use crate::timeline::event_role::EventRole;
pub use filter::WindowFilter;

/// The part of a timeline that a user asks for, in ns from the timeline's begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WindowRequest {
    /// Where the part begins; `None` is the timeline's begin.
    pub from_ns: Option<u64>,
    /// Where the part ends; `None` is the timeline's end.
    pub to_ns: Option<u64>,
}

/// Why there is no such part of the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// The part would end before it begins.
    #[error("--to {to:.6} s is not behind --from {from:.6} s", to = seconds(*.to_ns), from = seconds(*.from_ns))]
    Empty {
        /// The requested begin, ns.
        from_ns: u64,
        /// The requested end, ns.
        to_ns: u64,
    },
    /// The part would begin behind the timeline's end.
    #[error(
        "--from {from:.6} s: the trace ends {length:.6} s after its begin",
        from = seconds(*.from_ns),
        length = seconds(*.length_ns)
    )]
    BehindEnd {
        /// The requested begin, ns.
        from_ns: u64,
        /// The length of the timeline, ns.
        length_ns: u64,
    },
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl WindowRequest {
    /// Whether this is the whole timeline.
    pub fn is_whole(&self) -> bool {
        *self == WindowRequest::default()
    }

    /// The part that is asked for, of a timeline that reaches from `first` to `last` of its clock.
    ///
    /// # Errors
    /// [`WindowError`] where there is no such part.
    pub fn of_timeline(&self, first: Timestamp, last: Timestamp) -> Result<Window, WindowError> {
        let from_ns = self.from_ns.unwrap_or(0);
        if let Some(to_ns) = self.to_ns.filter(|to_ns| *to_ns <= from_ns) {
            return Err(WindowError::Empty { from_ns, to_ns });
        }
        let length_ns = last.since(first);
        if from_ns > length_ns {
            return Err(WindowError::BehindEnd { from_ns, length_ns });
        }
        let to = self.to_ns.map_or(last, |to_ns| first.saturating_add(to_ns).min(last));
        Ok(Window { start: first, from: first + from_ns, to })
    }
}

/// Reads all `inputs`, and returns the first and the last time of their timeline, in its clock; both are 0
/// where it is empty.
///
/// # Errors
/// [`MergeError`].
pub fn extent(inputs: &[Input], options: &MergeOptions) -> Result<(Timestamp, Timestamp), MergeError> {
    let report = merge(inputs, &mut NullSink, options)?.report;
    Ok(report.first_ts.zip(report.last_ts).unwrap_or_default())
}

/// Ignores everything.
pub(super) struct NullSink;

impl Sink for NullSink {
    fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
        Ok(())
    }
}

impl TimelineSink for NullSink {
    fn finish(&mut self, _: &MergeSummary) -> io::Result<()> {
        Ok(())
    }
}

/// A [`Window`] in ns from the begin of the whole timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RelativeWindow {
    /// Where the part begins.
    pub from_ns: u64,
    /// Where the part ends.
    pub to_ns: u64,
}

impl Window {
    /// The part in times from the begin of the whole timeline.
    pub fn in_trace(self) -> RelativeWindow {
        let since_start = |ts: Timestamp| ts.since(self.start);
        RelativeWindow { from_ns: since_start(self.from), to_ns: since_start(self.to) }
    }
}

// The state of a machine at a moment, as the events that set it: what every thread does, which slices and
// interrupts are open, and the last value of each counter.

/// Names a part of the state. All parts but open slices and interrupts have one event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum StateKey {
    Cpu(Cpu),
    Thread(Tid),
    Slices(Tid),
    Irqs(Cpu),
    Async { pid: Pid, track: bool, name: Vec<u8>, cookie: i64 },
    Counter { pid: Pid, name: Vec<u8> },
    CpuValue { kind: u32, cpu: Cpu },
    NamedValue { kind: u32, name: Vec<u8> },
}

/// An event with its place in the order of events.
#[derive(Clone)]
struct NumberedEvent {
    number: u64,
    event: Rc<OwnedEvent>,
}

/// The events that set the state.
#[derive(Default)]
struct WindowState {
    parts: BTreeMap<StateKey, Vec<NumberedEvent>>,
    events: u64,
}

impl WindowState {
    /// Follows an event, whose type has this role.
    pub fn follow(&mut self, event: &Event<'_>, kind: &EventType, role: EventRole) {
        let thread = |field| event.tid_at(kind, field).filter(|tid| tid.is_thread()).map(StateKey::Thread);
        match role {
            EventRole::Switch { prev: [_, prev, _], next: [_, next, _] } => {
                let owned = self.own(event);
                self.set(StateKey::Cpu(event.cpu), &owned);
                [prev, next].into_iter().filter_map(thread).for_each(|part| self.set(part, &owned));
            }
            EventRole::Waking { pid, .. } => {
                if let Some(part) = thread(pid) {
                    let owned = self.own(event);
                    self.set(part, &owned);
                }
            }
            EventRole::TaskBegin { pid, .. } | EventRole::TaskEnd { pid, .. } => {
                if let Some(tid) = event.tid_at(kind, pid).filter(|tid| tid.is_thread()) {
                    self.parts.remove(&StateKey::Slices(tid));
                    let is_gone = !matches!(role, EventRole::TaskEnd { is_freed: false, .. });
                    if is_gone {
                        self.parts.remove(&StateKey::Thread(tid));
                    }
                }
            }
            EventRole::Print { buf } => {
                if let Some(marker) = event.text(kind, buf).and_then(Marker::parse) {
                    self.follow_marker(event, &marker);
                }
            }
            EventRole::CpuCounter { cpu, .. } => {
                let cpu = event.cpu_at(kind, cpu).unwrap_or(event.cpu);
                let owned = self.own(event);
                self.set(StateKey::CpuValue { kind: event.kind.0, cpu }, &owned);
            }
            EventRole::Clock { name, .. } => {
                let name = event.text(kind, name).unwrap_or_default().to_vec();
                let owned = self.own(event);
                self.set(StateKey::NamedValue { kind: event.kind.0, name }, &owned);
            }
            EventRole::IrqEntry { .. } | EventRole::SoftirqEntry { .. } => {
                self.begin(StateKey::Irqs(event.cpu), event);
            }
            EventRole::IrqExit => self.end(&StateKey::Irqs(event.cpu)),
            EventRole::BlockedReason { .. }
            | EventRole::BinderSend { .. }
            | EventRole::BinderReceive { .. }
            | EventRole::Other => {}
        }
    }

    fn follow_marker(&mut self, event: &Event<'_>, marker: &Marker<'_>) {
        let slice = |pid, track, name: &[u8], cookie| StateKey::Async {
            pid: Pid(pid),
            track,
            name: name.to_vec(),
            cookie,
        };
        match *marker {
            Marker::Begin { .. } => self.begin(StateKey::Slices(event.tid), event),
            Marker::End { .. } => self.end(&StateKey::Slices(event.tid)),
            Marker::AsyncBegin { pid, name, cookie } => {
                // These slices do not nest: a begin while one is open changes nothing.
                let key = slice(pid, false, name, cookie);
                if !self.parts.contains_key(&key) {
                    self.begin(key, event);
                }
            }
            Marker::AsyncEnd { pid, name, cookie } => self.end(&slice(pid, false, name, cookie)),
            Marker::TrackBegin { pid, track, cookie, .. } => {
                self.begin(slice(pid, true, track, cookie), event);
            }
            Marker::TrackEnd { pid, track, cookie, .. } => self.end(&slice(pid, true, track, cookie)),
            Marker::Counter { pid, name, .. } => {
                let owned = self.own(event);
                self.set(StateKey::Counter { pid: Pid(pid), name: name.to_vec() }, &owned);
            }
            Marker::Instant { .. } | Marker::TrackInstant { .. } | Marker::ClockSync(_) => {}
        }
    }

    fn own(&mut self, event: &Event<'_>) -> NumberedEvent {
        self.events += 1;
        NumberedEvent { number: self.events, event: Rc::new(OwnedEvent::new(event)) }
    }

    fn set(&mut self, part: StateKey, owned: &NumberedEvent) {
        let events = self.parts.entry(part).or_default();
        events.clear();
        events.push(owned.clone());
    }

    fn begin(&mut self, part: StateKey, event: &Event<'_>) {
        let owned = self.own(event);
        self.parts.entry(part).or_default().push(owned);
    }

    fn end(&mut self, part: &StateKey) {
        let Some(open) = self.parts.get_mut(part) else { return };
        open.pop();
        if open.is_empty() {
            self.parts.remove(part);
        }
    }

    /// The events that set the state, in their order; each comes once.
    pub fn take(&mut self) -> Vec<Rc<OwnedEvent>> {
        let mut events: Vec<_> = std::mem::take(&mut self.parts).into_values().flatten().collect();
        events.sort_by_key(|event| event.number);
        events.dedup_by_key(|event| event.number);
        events.into_iter().map(|numbered| numbered.event).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_lies_inside_of_the_timeline_or_there_is_none() {
        let part =
            |from_ns, to_ns| WindowRequest { from_ns, to_ns }.of_timeline(Timestamp(1_000), Timestamp(3_000));
        let at = |from, to| Ok(Window { start: Timestamp(1_000), from: Timestamp(from), to: Timestamp(to) });
        assert_eq!(part(None, None), at(1_000, 3_000));
        assert_eq!(part(Some(500), Some(700)), at(1_500, 1_700));
        assert_eq!(part(Some(500), Some(9_000)), at(1_500, 3_000));
        assert_eq!(part(Some(700), Some(700)), Err(WindowError::Empty { from_ns: 700, to_ns: 700 }));
        assert_eq!(part(Some(2_001), None), Err(WindowError::BehindEnd { from_ns: 2_001, length_ns: 2_000 }));
    }
}
