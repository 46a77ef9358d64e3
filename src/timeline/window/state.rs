//! The state of a machine at a moment, as the events that set it: what every thread does, which slices and
//! interrupts are open, and the last value of each counter.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::formats::{Event, EventType, OwnedEvent};
use crate::markers::Marker;
use crate::timeline::event_role::EventRole;

/// Names a part of the state. All parts but open slices and interrupts have one event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum StateKey {
    Cpu(u32),
    Thread(i32),
    Slices(i32),
    Irqs(u32),
    Async { pid: i32, track: bool, name: Vec<u8>, cookie: i64 },
    Counter { pid: i32, name: Vec<u8> },
    CpuValue { kind: u32, cpu: i64 },
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
pub(super) struct WindowState {
    parts: BTreeMap<StateKey, Vec<NumberedEvent>>,
    events: u64,
}

impl WindowState {
    /// Follows an event, whose type has this role.
    pub fn follow(&mut self, event: &Event<'_>, kind: &EventType, role: EventRole) {
        let tid =
            |field| event.int(kind, field).filter(|tid| *tid > 0).map(|tid| StateKey::Thread(tid as i32));
        match role {
            EventRole::Switch { prev: [_, prev, _], next: [_, next, _] } => {
                let owned = self.own(event);
                self.set(StateKey::Cpu(event.cpu), &owned);
                [prev, next].into_iter().filter_map(tid).for_each(|thread| self.set(thread, &owned));
            }
            EventRole::Waking { pid, .. } => {
                if let Some(thread) = tid(pid) {
                    let owned = self.own(event);
                    self.set(thread, &owned);
                }
            }
            EventRole::Print { buf } => {
                if let Some(marker) = event.text(kind, buf).and_then(Marker::parse) {
                    self.follow_marker(event, &marker);
                }
            }
            EventRole::CpuCounter { cpu, .. } => {
                let cpu = event.int(kind, cpu).unwrap_or(event.cpu.into());
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
        let slice = |pid: i32, track, name: &[u8], cookie| StateKey::Async {
            pid,
            track,
            name: name.to_vec(),
            cookie,
        };
        match *marker {
            Marker::Begin { .. } => self.begin(StateKey::Slices(event.tid), event),
            Marker::End { .. } => self.end(&StateKey::Slices(event.tid)),
            Marker::AsyncBegin { pid, name, cookie } => self.begin(slice(pid, false, name, cookie), event),
            Marker::AsyncEnd { pid, name, cookie } => self.end(&slice(pid, false, name, cookie)),
            Marker::TrackBegin { pid, track, cookie, .. } => {
                self.begin(slice(pid, true, track, cookie), event)
            }
            Marker::TrackEnd { pid, track, cookie, .. } => self.end(&slice(pid, true, track, cookie)),
            Marker::Counter { pid, name, .. } => {
                let owned = self.own(event);
                self.set(StateKey::Counter { pid, name: name.to_vec() }, &owned);
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
