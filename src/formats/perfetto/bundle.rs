//! Decodes `FtraceEventBundle` (protos/perfetto/trace/ftrace/ftrace_event_bundle.proto).
//!
//! A bundle holds events of one CPU. Most events are `FtraceEvent` messages. The two most frequent types,
//! `sched_switch` and `sched_waking`, may lie in `CompactSched` instead: packed columns, whose timestamps are
//! deltas.
//!
//! [`WaitingEvents`] orders the events of all bundles by time, with no more of them in memory than overlap. A
//! recorder reads one CPU after the other, again and again, so that a bundle overlaps those that were read
//! shortly before and after it, and no others.

use super::fields::{
    compact_sched as compact, ftrace_clock, ftrace_event, ftrace_event_bundle as bundle_field,
};
use super::wire::read::{WireValue, fields, last_value};
use crate::clock::Clock;
use crate::formats::Damage;
use crate::varint;

/// One event of a bundle.
#[derive(Debug, Clone, Copy)]
pub(super) struct BundleEvent<'a> {
    /// ns, in the bundle's clock.
    pub(super) ts: u64,
    pub(super) cpu: u32,
    /// The index of the event's bundle in [`super::packets::PacketIndex::bundles`].
    pub(super) bundle: u32,
    pub(super) content: EventContent<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum EventContent<'a> {
    /// An encoded `FtraceEvent` message.
    Whole(&'a [u8]),
    /// `sched_switch` as a row of `CompactSched`. The row does not hold the previous thread. That thread is
    /// named by the `next_*` fields of the preceding switch on the same CPU.
    CompactSwitch { prev_state: i64, next_pid: i32, next_prio: i32, next_comm: &'a [u8] },
    /// `sched_waking` as a row of `CompactSched`.
    CompactWaking { pid: i32, target_cpu: i32, prio: i32, comm: &'a [u8], flags: u8 },
    /// The kernel lost events before the next event of this CPU.
    LostEvents,
}

impl BundleEvent<'_> {
    /// Whether the event is a marker.
    pub(super) fn is_marker(&self) -> bool {
        let EventContent::Whole(message) = self.content else { return false };
        fields(message).any(|(number, _)| number == ftrace_event::PRINT)
    }
}

/// The fields of a bundle that are not events.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BundleHead {
    pub(super) cpu: u32,
    /// A value of the enum `FtraceClock`; 0, also where the field is absent, is the boot clock.
    pub(super) clock: u64,
    /// Number of pages of the ring buffer that the recorder could not parse.
    pub(super) unparsed_pages: u32,
    /// A reading of the bundle's clock and one of the boot clock at the same moment, ns, where the bundle has
    /// them.
    ftrace_reading: Option<u64>,
    boot_reading: Option<u64>,
}

impl BundleHead {
    /// Reads a field, unless it is an event.
    #[inline]
    pub(super) fn field(&mut self, number: u32, value: WireValue<'_>) {
        match number {
            bundle_field::CPU => self.cpu = value.number() as u32,
            bundle_field::FTRACE_CLOCK => self.clock = value.number(),
            bundle_field::ERROR => self.unparsed_pages += 1,
            bundle_field::FTRACE_TIMESTAMP => self.ftrace_reading = Some(value.number()),
            bundle_field::BOOT_TIMESTAMP => self.boot_reading = Some(value.number()),
            _ => {}
        }
    }

    /// Readings of the bundle's clock and of the boot clock at the same moment, ns, where the bundle has
    /// them.
    pub(super) fn sync(&self) -> Option<(u64, u64)> {
        self.ftrace_reading.zip(self.boot_reading)
    }

    /// The clock of the bundle's events; `None` where the bundle names none, which means the boot clock.
    pub(super) fn clock(&self) -> Option<Clock> {
        match self.clock {
            ftrace_clock::UNSPECIFIED => None,
            ftrace_clock::GLOBAL => Some(Clock::TraceGlobal),
            ftrace_clock::LOCAL => Some(Clock::TraceLocal),
            ftrace_clock::MONO_RAW => Some(Clock::MonotonicRaw),
            _ => Some(Clock::Unknown),
        }
    }
}

/// Describes the damage of pages that the recorder could not parse.
pub(super) fn unparsed_pages(count: u64) -> String {
    format!("the recorder could not parse {count} pages of the kernel's ring buffer")
}

/// The damage of `count` bundles that end in bytes that are not a field.
pub(super) fn broken(count: u32) -> Option<Damage> {
    let what = format!("{count} bundles of events could be read in part only");
    (count > 0).then_some(Damage { offset: 0, what })
}

/// All that a bundle says beside its events.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outline {
    pub(super) head: BundleHead,
    /// Whether the kernel lost events before the bundle's first one.
    pub(super) is_after_loss: bool,
    /// Whether the bundle describes event types (`generic_event_descriptors`).
    pub(super) describes_types: bool,
}

/// A bundle of events, or a piece of a large one.
pub(super) struct IndexedBundle<'a> {
    pub(super) cpu: u32,
    /// The encoded `FtraceEventBundle`.
    pub(super) body: &'a [u8],
    /// Which kernel symbols its events refer to: the number of the entry in [`PacketIndex::symbols`].
    pub(super) symbols: u32,
    pub(super) extent: Extent,
    /// Whether the kernel lost events before its first one.
    pub(super) is_after_loss: bool,
    /// Whether it describes event types.
    pub(super) describes_types: bool,
}

/// When the events of a bundle begin, and how many they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// The earliest time, ns, in the bundle's clock.
    pub(super) first_ts: u64,
    pub(super) events: u64,
}

impl Extent {
    fn add(&mut self, ts: u64) {
        self.first_ts = if self.events == 0 { ts } else { self.first_ts.min(ts) };
        self.events += 1;
    }
}

/// A bundle of more events is read in pieces. A recorder's bundles are smaller: they are pages of the ring
/// buffer.
const PIECE_EVENTS: u64 = 32 << 10;

/// Reads the outline of a bundle. Calls `piece` with each piece of it and the extent of what [`events`]
/// appends of that piece, without decoding it.
pub(super) fn outline<'a>(bundle: &'a [u8], mut piece: impl FnMut(&'a [u8], Extent)) -> Outline {
    let mut head = BundleHead::default();
    let mut describes_types = false;
    let mut is_after_loss = false;
    let mut extent = Extent::default();
    let mut start = 0;
    let mut all = fields(bundle);
    while let Some((number, value)) = all.next() {
        match number {
            bundle_field::EVENT => {
                extent.add(first_number(value.bytes(), ftrace_event::TIMESTAMP).unwrap_or(0));
                let end = bundle.len() - all.rest().len();
                if extent.events >= PIECE_EVENTS && end < bundle.len() {
                    piece(&bundle[start..end], std::mem::take(&mut extent));
                    start = end;
                }
            }
            bundle_field::LOST_EVENTS => is_after_loss |= value.number() != 0,
            bundle_field::GENERIC_EVENT_DESCRIPTORS => describes_types = true,
            bundle_field::COMPACT_SCHED => {
                for column in [compact::SWITCH_TIMESTAMP, compact::WAKING_TIMESTAMP] {
                    let deltas = last_value(value.bytes(), column).map_or(&[][..], WireValue::bytes);
                    let mut ts = 0u64;
                    for delta in varint::all(deltas) {
                        ts = ts.wrapping_add(delta);
                        extent.add(ts);
                    }
                }
            }
            _ => head.field(number, value),
        }
    }
    piece(&bundle[start..], extent);
    Outline { head, is_after_loss, describes_types }
}

/// Appends the events of a bundle, the one with the index `number`, to `out`, sorted by time. Returns whether
/// the whole bundle could be read.
pub(super) fn events<'a>(bundle: &IndexedBundle<'a>, number: u32, out: &mut Vec<BundleEvent<'a>>) -> bool {
    let start = out.len();
    let IndexedBundle { cpu, body, is_after_loss, .. } = *bundle;
    let bundle = number;
    let mut all = fields(body);
    for (number, value) in all.by_ref() {
        match number {
            bundle_field::EVENT => {
                let event = value.bytes();
                let ts = first_number(event, ftrace_event::TIMESTAMP).unwrap_or(0);
                out.push(BundleEvent { ts, cpu, bundle, content: EventContent::Whole(event) });
            }
            bundle_field::COMPACT_SCHED => compact_events(value.bytes(), cpu, bundle, out),
            _ => {}
        }
    }
    if !out[start..].is_sorted_by_key(|e| e.ts) {
        out[start..].sort_by_key(|e| e.ts);
    }
    if is_after_loss {
        let ts = out.get(start).map_or(0, |e| e.ts);
        out.insert(start, BundleEvent { ts, cpu, bundle, content: EventContent::LostEvents });
    }
    !all.broken
}

/// The first value of field `number`. The timestamp is nearly always the first field of an event, so that the
/// rest of the event need not be read.
fn first_number(event: &[u8], number: u32) -> Option<u64> {
    fields(event).find(|(n, _)| *n == number).map(|(_, v)| v.number())
}

fn compact_events<'a>(sched: &'a [u8], cpu: u32, bundle: u32, out: &mut Vec<BundleEvent<'a>>) {
    let interned = fields(sched).filter(|(n, _)| *n == compact::INTERN_TABLE);
    let comms: Vec<&[u8]> = interned.map(|(_, v)| v.bytes()).collect();
    let comm = |index: u64| usize::try_from(index).ok().and_then(|i| comms.get(i)).copied().unwrap_or(b"");
    let column = |number| varint::all(last_value(sched, number).map_or(&[][..], WireValue::bytes));
    let mut ts = 0u64;
    let mut prev_state = column(compact::SWITCH_PREV_STATE);
    let mut next_pid = column(compact::SWITCH_NEXT_PID);
    let mut next_prio = column(compact::SWITCH_NEXT_PRIO);
    let mut next_comm = column(compact::SWITCH_NEXT_COMM_INDEX);
    for delta in column(compact::SWITCH_TIMESTAMP) {
        ts = ts.wrapping_add(delta);
        let content = EventContent::CompactSwitch {
            prev_state: prev_state.next().unwrap_or(0) as i64,
            next_pid: next_pid.next().unwrap_or(0) as i32,
            next_prio: next_prio.next().unwrap_or(0) as i32,
            next_comm: comm(next_comm.next().unwrap_or(u64::MAX)),
        };
        out.push(BundleEvent { ts, cpu, bundle, content });
    }
    ts = 0;
    let mut pid = column(compact::WAKING_PID);
    let mut target_cpu = column(compact::WAKING_TARGET_CPU);
    let mut prio = column(compact::WAKING_PRIO);
    let mut comm_index = column(compact::WAKING_COMM_INDEX);
    let mut flags = column(compact::WAKING_COMMON_FLAGS);
    for delta in column(compact::WAKING_TIMESTAMP) {
        ts = ts.wrapping_add(delta);
        let content = EventContent::CompactWaking {
            pid: pid.next().unwrap_or(0) as i32,
            target_cpu: target_cpu.next().unwrap_or(0) as i32,
            prio: prio.next().unwrap_or(0) as i32,
            comm: comm(comm_index.next().unwrap_or(u64::MAX)),
            flags: flags.next().unwrap_or(0) as u8,
        };
        out.push(BundleEvent { ts, cpu, bundle, content });
    }
}

/// Events are sorted when at least so many wait.
const MIN_SORTED: usize = 1 << 14;

/// Events that wait until all those before them are read.
#[derive(Default)]
pub(super) struct WaitingEvents<'a> {
    list: Vec<BundleEvent<'a>>,
    /// How many of them were there when they were sorted last.
    sorted: usize,
}

impl<'a> WaitingEvents<'a> {
    /// The list, to which events may be added.
    pub(super) fn list(&mut self) -> &mut Vec<BundleEvent<'a>> {
        &mut self.list
    }

    /// Whether so many are new that sorting the list is worth its time.
    pub(super) fn are_many(&self) -> bool {
        self.list.len() >= self.sorted * 2 + MIN_SORTED
    }

    /// Takes the events before `until`, ns, out of the list, or all events. They are in the order of time;
    /// events of one time by CPU, and then in the order of the file.
    pub(super) fn take_before(&mut self, until: Option<u64>) -> Vec<BundleEvent<'a>> {
        self.list.sort_by_key(|event| (event.ts, event.cpu, event.bundle));
        let end = until.map_or(self.list.len(), |until| self.list.partition_point(|event| event.ts < until));
        let rest = self.list.split_off(end);
        self.sorted = rest.len();
        std::mem::replace(&mut self.list, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::write::{bytes, message, uint};
    use super::*;

    fn event(bundle: &mut Vec<u8>, ts: u64) {
        message(bundle, bundle_field::EVENT, |event| {
            uint(event, ftrace_event::TIMESTAMP, ts);
            uint(event, ftrace_event::PID, 7);
            message(event, ftrace_event::PRINT, |_| {});
        });
    }

    fn indexed(body: &[u8]) -> IndexedBundle<'_> {
        let mut extent = Extent::default();
        let outline = outline(body, |_, piece| extent = piece);
        let Outline { is_after_loss, describes_types, .. } = outline;
        IndexedBundle { cpu: 3, body, symbols: 0, extent, is_after_loss, describes_types }
    }

    fn times(bundle: &[u8]) -> (Vec<u64>, bool) {
        let mut out = Vec::new();
        let is_whole = events(&indexed(bundle), 0, &mut out);
        assert!(out.iter().all(|event| event.cpu == 3));
        (out.iter().map(|event| event.ts).collect(), is_whole)
    }

    #[test]
    fn the_events_of_a_bundle_are_sorted_and_a_loss_comes_before_them() {
        let mut bundle = Vec::new();
        event(&mut bundle, 30);
        event(&mut bundle, 10);
        message(&mut bundle, bundle_field::COMPACT_SCHED, |columns| {
            bytes(columns, compact::SWITCH_TIMESTAMP, &[15, 5]);
            bytes(columns, compact::WAKING_TIMESTAMP, &[12]);
        });
        uint(&mut bundle, bundle_field::LOST_EVENTS, 1);
        assert_eq!(times(&bundle), (vec![10, 10, 12, 15, 20, 30], true));
        assert_eq!(indexed(&bundle).extent, Extent { first_ts: 10, events: 5 });
        let mut out = Vec::new();
        events(&indexed(&bundle), 0, &mut out);
        assert!(matches!(out[0].content, EventContent::LostEvents));
        let markers: Vec<u64> = out.iter().filter(|event| event.is_marker()).map(|event| event.ts).collect();
        assert_eq!(markers, [10, 30]);
    }

    #[test]
    fn a_cut_bundle_has_its_whole_events() {
        let mut bundle = Vec::new();
        event(&mut bundle, 10);
        let first = bundle.len();
        event(&mut bundle, 30);
        assert_eq!(times(&bundle[..bundle.len() - 1]), (vec![10], false));
        assert_eq!(times(&bundle[..first]), (vec![10], true));
    }

    #[test]
    fn the_head_names_the_clock_and_its_readings() {
        let mut bundle = Vec::new();
        uint(&mut bundle, bundle_field::CPU, 5);
        uint(&mut bundle, bundle_field::FTRACE_CLOCK, ftrace_clock::GLOBAL);
        uint(&mut bundle, bundle_field::FTRACE_TIMESTAMP, 8);
        uint(&mut bundle, bundle_field::BOOT_TIMESTAMP, 9);
        let found = outline(&bundle, |_, _| {}).head;
        assert_eq!((found.cpu, found.clock(), found.sync()), (5, Some(Clock::TraceGlobal), Some((8, 9))));
        let empty = outline(&[], |_, _| {}).head;
        assert_eq!((empty.clock(), empty.sync()), (None, None));
    }

    #[test]
    fn a_bundle_of_many_events_is_read_in_pieces() {
        let mut bundle = Vec::new();
        let count = 2 * PIECE_EVENTS + 5;
        (0..count).for_each(|n| event(&mut bundle, 1_000_000 - n));
        let mut pieces = Vec::new();
        outline(&bundle, |piece, extent| pieces.push((piece, extent)));
        let counts: Vec<u64> = pieces.iter().map(|(_, extent)| extent.events).collect();
        assert_eq!(counts, [PIECE_EVENTS, PIECE_EVENTS, 5]);
        assert_eq!(pieces.iter().map(|(piece, _)| *piece).collect::<Vec<_>>().concat(), bundle);
        for (piece, extent) in pieces {
            let (times, is_whole) = times(piece);
            assert_eq!((times.first().copied(), is_whole), (Some(extent.first_ts), true));
        }
    }
}
