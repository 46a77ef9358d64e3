//! The state of a machine at a moment, as the events that set it: what every thread does, which slices and
//! interrupts are open, and the last value of each counter.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::held_event::HeldEvent;
use crate::formats::{Event, EventType};
use crate::markers::Marker;

/// What an event of a type sets, with the fields that say of what.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sets {
    Running { prev: usize, next: usize },
    Runnable { pid: usize },
    ByMarker { buf: usize },
    CpuValue { cpu: usize },
    NamedValue { name: usize },
    BeginOfIrq,
    EndOfIrq,
    Nothing,
}

impl Sets {
    pub fn of(kind: &EventType) -> Sets {
        let field = |name: &str| kind.field(name);
        let found = match kind.name.as_str() {
            "sched_switch" => {
                field("prev_pid").zip(field("next_pid")).map(|(prev, next)| Sets::Running { prev, next })
            }
            "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => {
                field("pid").map(|pid| Sets::Runnable { pid })
            }
            "print" => field("buf").map(|buf| Sets::ByMarker { buf }),
            "cpu_frequency" | "cpu_idle" => field("cpu_id").map(|cpu| Sets::CpuValue { cpu }),
            "clock_set_rate" | "clock_enable" | "clock_disable" | "clk_set_rate" => {
                field("name").map(|name| Sets::NamedValue { name })
            }
            "irq_handler_entry" | "softirq_entry" => Some(Sets::BeginOfIrq),
            "irq_handler_exit" | "softirq_exit" => Some(Sets::EndOfIrq),
            _ => None,
        };
        found.unwrap_or(Sets::Nothing)
    }
}

/// A part of the state. All parts but open slices and interrupts have one event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Cpu(u32),
    Thread(i32),
    Slices(i32),
    Irqs(u32),
    Async { pid: i32, track: bool, name: Vec<u8>, cookie: i64 },
    Counter { pid: i32, name: Vec<u8> },
    CpuValue { kind: u32, cpu: i64 },
    NamedValue { kind: u32, name: Vec<u8> },
}

/// The events that set the state, each with its place in the order of events.
#[derive(Default)]
pub(super) struct State {
    parts: BTreeMap<Part, Vec<(u64, Rc<HeldEvent>)>>,
    events: u64,
}

impl State {
    /// Follows an event, whose type sets `sets`.
    pub fn follow(&mut self, event: &Event<'_>, kind: &EventType, sets: Sets) {
        match sets {
            Sets::Running { prev, next } => {
                let held = self.hold(event);
                self.set(Part::Cpu(event.cpu), &held);
                for field in [prev, next] {
                    if let Some(tid) = event.int(kind, field).filter(|tid| *tid > 0) {
                        self.set(Part::Thread(tid as i32), &held);
                    }
                }
            }
            Sets::Runnable { pid } => {
                if let Some(tid) = event.int(kind, pid).filter(|tid| *tid > 0) {
                    let held = self.hold(event);
                    self.set(Part::Thread(tid as i32), &held);
                }
            }
            Sets::ByMarker { buf } => {
                if let Some(marker) = event.text(kind, buf).and_then(Marker::parse) {
                    self.follow_marker(event, &marker);
                }
            }
            Sets::CpuValue { cpu } => {
                let cpu = event.int(kind, cpu).unwrap_or(event.cpu.into());
                let held = self.hold(event);
                self.set(Part::CpuValue { kind: event.kind.0, cpu }, &held);
            }
            Sets::NamedValue { name } => {
                let name = event.text(kind, name).unwrap_or_default().to_vec();
                let held = self.hold(event);
                self.set(Part::NamedValue { kind: event.kind.0, name }, &held);
            }
            Sets::BeginOfIrq => self.begin(Part::Irqs(event.cpu), event),
            Sets::EndOfIrq => self.end(&Part::Irqs(event.cpu)),
            Sets::Nothing => {}
        }
    }

    fn follow_marker(&mut self, event: &Event<'_>, marker: &Marker<'_>) {
        let slice =
            |pid: i32, track, name: &[u8], cookie| Part::Async { pid, track, name: name.to_vec(), cookie };
        match *marker {
            Marker::Begin { .. } => self.begin(Part::Slices(event.tid), event),
            Marker::End { .. } => self.end(&Part::Slices(event.tid)),
            Marker::AsyncBegin { pid, name, cookie } => self.begin(slice(pid, false, name, cookie), event),
            Marker::AsyncEnd { pid, name, cookie } => self.end(&slice(pid, false, name, cookie)),
            Marker::TrackBegin { pid, track, cookie, .. } => {
                self.begin(slice(pid, true, track, cookie), event)
            }
            Marker::TrackEnd { pid, track, cookie, .. } => self.end(&slice(pid, true, track, cookie)),
            Marker::Counter { pid, name, .. } => {
                let held = self.hold(event);
                self.set(Part::Counter { pid, name: name.to_vec() }, &held);
            }
            Marker::Instant { .. } | Marker::TrackInstant { .. } | Marker::ClockSync(_) => {}
        }
    }

    fn hold(&mut self, event: &Event<'_>) -> (u64, Rc<HeldEvent>) {
        self.events += 1;
        (self.events, Rc::new(HeldEvent::new(event)))
    }

    fn set(&mut self, part: Part, held: &(u64, Rc<HeldEvent>)) {
        let events = self.parts.entry(part).or_default();
        events.clear();
        events.push(held.clone());
    }

    fn begin(&mut self, part: Part, event: &Event<'_>) {
        let held = self.hold(event);
        self.parts.entry(part).or_default().push(held);
    }

    fn end(&mut self, part: &Part) {
        let Some(open) = self.parts.get_mut(part) else { return };
        open.pop();
        if open.is_empty() {
            self.parts.remove(part);
        }
    }

    /// The events that set the state, in their order; each comes once.
    pub fn take(&mut self) -> Vec<Rc<HeldEvent>> {
        let mut events: Vec<_> = std::mem::take(&mut self.parts).into_values().flatten().collect();
        events.sort_by_key(|(number, _)| *number);
        events.dedup_by_key(|(number, _)| *number);
        events.into_iter().map(|(_, event)| event).collect()
    }
}
