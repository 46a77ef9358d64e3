//! Decodes `FtraceEventBundle` (protos/perfetto/trace/ftrace/ftrace_event_bundle.proto).
//!
//! A bundle holds events of one CPU. Most events are `FtraceEvent` messages. The two most frequent types,
//! `sched_switch` and `sched_waking`, may lie in `CompactSched` instead: packed columns, whose timestamps are
//! deltas.

use super::fields::{
    compact_sched as compact, ftrace_clock, ftrace_event, ftrace_event_bundle as bundle_field, trace_packet,
};
use super::trace_packets::packets;
use super::wire::read::{WireValue, fields};
use crate::clock::{Clock, Timestamp};
use crate::formats::Damage;
use crate::ids::{Cpu, Tid};
use crate::varint;

/// One event of a bundle.
#[derive(Debug, Clone, Copy)]
pub(super) struct BundleEvent<'a> {
    /// Time of the event, in the bundle's clock.
    pub(super) ts: Timestamp,
    pub(super) cpu: Cpu,
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
    CompactSwitch { prev_state: i64, next_tid: Tid, next_prio: i32, next_comm: &'a [u8] },
    /// `sched_waking` as a row of `CompactSched`.
    CompactWaking { tid: Tid, target_cpu: i32, prio: i32, comm: &'a [u8], flags: u8 },
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
    pub(super) cpu: Cpu,
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
            bundle_field::CPU => self.cpu = Cpu(value.number() as u32),
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

/// The damage of names of threads that bundles have beyond the first [`MAX_NAMES`] fields.
pub(super) fn unread_names(count: u64) -> Option<Damage> {
    let what = format!(
        "{count} names of threads are left out, which a bundle of events has behind its first {MAX_NAMES} fields: \
         the rows with these names have none"
    );
    (count > 0).then_some(Damage { offset: 0, what })
}

/// All that a bundle says beside its events.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outline {
    pub(super) head: BundleHead,
    /// The number of names of threads that are not read: see [`unread_names`].
    pub(super) unread_names: u64,
    /// Whether the kernel lost events before the bundle's first one.
    pub(super) is_after_loss: bool,
    /// Whether the bundle describes event types (`generic_event_descriptors`).
    pub(super) describes_types: bool,
}

/// A bundle of events, or a piece of a large one.
pub(super) struct IndexedBundle<'a> {
    pub(super) cpu: Cpu,
    pub(super) content: PieceContent<'a>,
    /// Which kernel symbols its events refer to: the number of the entry in [`PacketIndex::symbols`].
    pub(super) symbols: u32,
    pub(super) extent: Extent,
    /// Whether the kernel lost events before its first one.
    pub(super) is_after_loss: bool,
    /// The whole `FtraceEventBundle`, if it describes event types. The first piece of a bundle has it.
    pub(super) describing: Option<&'a [u8]>,
}

/// Where the events of a piece of a bundle are.
pub(super) enum PieceContent<'a> {
    /// Fields of an `FtraceEventBundle`.
    Fields(&'a [u8]),
    /// Packets with small bundles. A group of them is one piece, so that there are not as many pieces as
    /// events.
    Packets(&'a [u8]),
    /// Rows of a large `CompactSched`.
    Rows(Box<RowsPiece<'a>>),
}

/// So many rows of a `CompactSched`.
pub(super) struct RowsPiece<'a> {
    rows: CompactRows<'a>,
    count: u64,
    /// The bytes of its columns.
    bytes: usize,
}

impl PieceContent<'_> {
    /// The number of bytes of the trace that hold these events.
    pub(super) fn byte_len(&self) -> usize {
        match self {
            PieceContent::Fields(bytes) | PieceContent::Packets(bytes) => bytes.len(),
            PieceContent::Rows(piece) => piece.bytes,
        }
    }
}

/// When the events of a bundle begin, and how many they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// The earliest time, in the bundle's clock.
    pub(super) first_ts: Timestamp,
    pub(super) events: u64,
}

impl Extent {
    /// The extent of both.
    fn joined(self, other: Extent) -> Extent {
        if other.events == 0 {
            return self;
        }
        let first_ts = if self.events == 0 { other.first_ts } else { self.first_ts.min(other.first_ts) };
        Extent { first_ts, events: self.events + other.events }
    }

    fn add(&mut self, ts: Timestamp) {
        self.first_ts = if self.events == 0 { ts } else { self.first_ts.min(ts) };
        self.events += 1;
    }
}

/// A bundle of more events is read in pieces. A recorder's bundles are smaller: they are pages of the ring
/// buffer.
const PIECE_EVENTS: u64 = 32 << 10;

/// A packet whose only bundle has no more events is a small one.
const SMALL_EVENTS: u64 = 8;

impl<'a> IndexedBundle<'a> {
    /// Whether it may be one of a group.
    pub(super) fn is_small(&self) -> bool {
        self.extent.events <= SMALL_EVENTS && self.describing.is_none()
    }

    /// Makes this small bundle, or group of them, and the next one a group, which lies in `packets`. Returns
    /// whether they can be one.
    pub(super) fn join(&mut self, next: &IndexedBundle<'a>, packets: &'a [u8]) -> bool {
        if self.symbols != next.symbols || self.extent.events >= PIECE_EVENTS {
            return false;
        }
        self.content = PieceContent::Packets(packets);
        self.cpu = self.cpu.max(next.cpu);
        self.extent = self.extent.joined(next.extent);
        // Each bundle of a group says it of itself.
        self.is_after_loss = false;
        true
    }
}

/// Reads the outline of a bundle. Calls `piece` with each piece of it and the extent of what [`events`]
/// appends of that piece, without decoding it.
pub(super) fn outline<'a>(bundle: &'a [u8], mut piece: impl FnMut(PieceContent<'a>, Extent)) -> Outline {
    let mut head = BundleHead::default();
    let mut describes_types = false;
    let mut is_after_loss = false;
    let mut unread_names = 0;
    let mut extent = Extent::default();
    let mut start = 0;
    let mut all = fields(bundle);
    let mut at = 0;
    while let Some((number, value)) = all.next() {
        let end = bundle.len() - all.rest().len();
        match number {
            bundle_field::EVENT => {
                extent.add(time_of(value.bytes()));
            }
            bundle_field::LOST_EVENTS => is_after_loss |= value.number() != 0,
            bundle_field::GENERIC_EVENT_DESCRIPTORS => describes_types = true,
            bundle_field::COMPACT_SCHED => {
                unread_names += names_left_out(value.bytes());
                let rows = CompactRows::new(value.bytes());
                if rows.may_be_many() {
                    if start < at {
                        piece(PieceContent::Fields(&bundle[start..at]), std::mem::take(&mut extent));
                    }
                    rows.pieces(&mut piece);
                    start = end;
                } else {
                    rows.times().for_each(|ts| extent.add(ts));
                }
            }
            _ => head.field(number, value),
        }
        at = end;
        if extent.events >= PIECE_EVENTS && at < bundle.len() {
            piece(PieceContent::Fields(&bundle[start..at]), std::mem::take(&mut extent));
            start = at;
        }
    }
    piece(PieceContent::Fields(&bundle[start..]), extent);
    Outline { head, unread_names, is_after_loss, describes_types }
}

/// Appends the events of a bundle, the one with the index `number`, to `out`, sorted by time. Returns how
/// many bundles could be read in part only.
pub(super) fn events<'a>(bundle: &IndexedBundle<'a>, number: u32, out: &mut Vec<BundleEvent<'a>>) -> u32 {
    let start = out.len();
    let IndexedBundle { cpu, is_after_loss, .. } = *bundle;
    match &bundle.content {
        PieceContent::Fields(body) => events_of_fields(body, cpu, is_after_loss, number, out),
        PieceContent::Packets(group) => {
            let mut broken = 0;
            for packet in packets(group) {
                let bundles = fields(packet.body).filter(|(n, _)| *n == trace_packet::FTRACE_EVENTS);
                for (_, body) in bundles {
                    let Outline { head, is_after_loss, .. } = outline(body.bytes(), |_, _| {});
                    broken += events_of_fields(body.bytes(), head.cpu, is_after_loss, number, out);
                }
            }
            if !out[start..].is_sorted_by_key(|e| e.ts) {
                out[start..].sort_by_key(|e| e.ts);
            }
            broken
        }
        PieceContent::Rows(piece) => {
            piece.rows.append(piece.count, cpu, number, out);
            sort_events(start, cpu, is_after_loss, number, out);
            0
        }
    }
}

/// Appends the events of these fields of a bundle. Returns how many bundles could be read in part only: this
/// one, or none.
fn events_of_fields<'a>(
    body: &'a [u8],
    cpu: Cpu,
    is_after_loss: bool,
    bundle: u32,
    out: &mut Vec<BundleEvent<'a>>,
) -> u32 {
    let start = out.len();
    let mut all = fields(body);
    for (number, value) in all.by_ref() {
        match number {
            bundle_field::EVENT => {
                let event = value.bytes();
                let ts = time_of(event);
                out.push(BundleEvent { ts, cpu, bundle, content: EventContent::Whole(event) });
            }
            bundle_field::COMPACT_SCHED => {
                CompactRows::new(value.bytes()).append(u64::MAX, cpu, bundle, out);
            }
            _ => {}
        }
    }
    sort_events(start, cpu, is_after_loss, bundle, out);
    u32::from(all.broken)
}

/// Sorts the events of a bundle, which begin at `start`, and puts a loss in front of them.
fn sort_events(start: usize, cpu: Cpu, is_after_loss: bool, bundle: u32, out: &mut Vec<BundleEvent<'_>>) {
    if !out[start..].is_sorted_by_key(|e| e.ts) {
        out[start..].sort_by_key(|e| e.ts);
    }
    if is_after_loss {
        let ts = out.get(start).map_or(Timestamp::MIN, |e| e.ts);
        out.insert(start, BundleEvent { ts, cpu, bundle, content: EventContent::LostEvents });
    }
}

/// The time of a `FtraceEvent`.
fn time_of(event: &[u8]) -> Timestamp {
    Timestamp(first_number(event, ftrace_event::TIMESTAMP).unwrap_or(0))
}

/// The first value of field `number`. The timestamp is nearly always the first field of an event, so that the
/// rest of the event need not be read.
fn first_number(event: &[u8], number: u32) -> Option<u64> {
    fields(event).find(|(n, _)| *n == number).map(|(_, v)| v.number())
}

/// More names than a recorder interns in a bundle, which has each name for a row of it. Each piece of a large
/// `CompactSched` reads its names again.
const MAX_NAMES: usize = 64 << 10;

/// The number of names in a `CompactSched` that are not read: those behind the first [`MAX_NAMES`] fields.
pub(super) fn names_left_out(sched: &[u8]) -> u64 {
    let is_name = |field: &(u32, WireValue<'_>)| field.0 == compact::INTERN_TABLE;
    // A field has two bytes at least.
    if sched.len() <= 2 * MAX_NAMES {
        return 0;
    }
    let from_first = fields(sched).skip_while(|field| !is_name(field));
    from_first.skip(MAX_NAMES).filter(is_name).count() as u64
}

/// The rows of a `CompactSched`, or those from one of them on: switches and wakings, which are both in the
/// order of time.
#[derive(Clone, Copy)]
struct CompactRows<'a> {
    /// The fields from the first name on.
    names: &'a [u8],
    switches: Columns<'a>,
    wakings: Columns<'a>,
}

impl<'a> CompactRows<'a> {
    fn new(sched: &'a [u8]) -> CompactRows<'a> {
        let mut rows = CompactRows { names: &[], switches: Columns::default(), wakings: Columns::default() };
        let CompactRows { names, switches, wakings } = &mut rows;
        let mut at = sched;
        let mut all = fields(sched);
        while let Some((number, value)) = all.next() {
            let column = match number {
                compact::INTERN_TABLE => {
                    if names.is_empty() {
                        *names = at;
                    }
                    None
                }
                compact::SWITCH_TIMESTAMP => Some(&mut switches.deltas),
                compact::SWITCH_PREV_STATE => Some(&mut switches.values[0]),
                compact::SWITCH_NEXT_PID => Some(&mut switches.values[1]),
                compact::SWITCH_NEXT_PRIO => Some(&mut switches.values[2]),
                compact::SWITCH_NEXT_COMM_INDEX => Some(&mut switches.values[3]),
                compact::WAKING_TIMESTAMP => Some(&mut wakings.deltas),
                compact::WAKING_PID => Some(&mut wakings.values[0]),
                compact::WAKING_TARGET_CPU => Some(&mut wakings.values[1]),
                compact::WAKING_PRIO => Some(&mut wakings.values[2]),
                compact::WAKING_COMM_INDEX => Some(&mut wakings.values[3]),
                compact::WAKING_COMMON_FLAGS => Some(&mut wakings.values[4]),
                _ => None,
            };
            if let Some(column) = column {
                *column = value.bytes();
            }
            at = all.rest();
        }
        switches.take_delta(Timestamp::MIN);
        wakings.take_delta(Timestamp::MIN);
        rows
    }

    /// Whether the rows may be more than those of a piece.
    fn may_be_many(&self) -> bool {
        self.switches.max_rows() + self.wakings.max_rows() > PIECE_EVENTS
    }

    /// The times of all rows, in no order.
    fn times(self) -> impl Iterator<Item = Timestamp> {
        self.switches.times().chain(self.wakings.times())
    }

    /// The number of bytes of the columns.
    fn byte_len(&self) -> usize {
        self.switches.byte_len() + self.wakings.byte_len()
    }

    /// Takes the columns of which the next row is the earlier one. Of one time, switches come first.
    fn next_columns(&mut self) -> Option<(&mut Columns<'a>, bool)> {
        let is_switch = match (self.switches.next_ts, self.wakings.next_ts) {
            (Some(switch), Some(waking)) => switch <= waking,
            (switch, None) => switch.map(|_| true)?,
            (None, Some(_)) => false,
        };
        Some((if is_switch { &mut self.switches } else { &mut self.wakings }, is_switch))
    }

    /// Calls `piece` with pieces of the rows.
    fn pieces(mut self, piece: &mut impl FnMut(PieceContent<'a>, Extent)) {
        loop {
            let rows = self;
            let mut extent = Extent::default();
            while extent.events < PIECE_EVENTS
                && let Some((columns, _)) = self.next_columns()
                && let Some(row) = columns.take_row()
            {
                extent.add(row.ts);
            }
            if extent.events == 0 {
                return;
            }
            let bytes = rows.byte_len() - self.byte_len();
            piece(PieceContent::Rows(Box::new(RowsPiece { rows, count: extent.events, bytes })), extent);
        }
    }

    /// Appends up to `count` rows as events, in the order of time.
    fn append(mut self, count: u64, cpu: Cpu, bundle: u32, out: &mut Vec<BundleEvent<'a>>) {
        let interned = fields(self.names).take(MAX_NAMES).filter(|(n, _)| *n == compact::INTERN_TABLE);
        let comms: Vec<&[u8]> = interned.map(|(_, v)| v.bytes()).collect();
        let comm = |index: Option<u64>| {
            let index = index.and_then(|index| usize::try_from(index).ok());
            index.and_then(|i| comms.get(i)).copied().unwrap_or(b"")
        };
        let mut left = count;
        while left > 0
            && let Some((columns, is_switch)) = self.next_columns()
            && let Some(row) = columns.take_row()
        {
            left -= 1;
            let value = |at: usize| row.values[at].unwrap_or(0);
            let content = if is_switch {
                EventContent::CompactSwitch {
                    prev_state: value(0) as i64,
                    next_tid: Tid(value(1) as i32),
                    next_prio: value(2) as i32,
                    next_comm: comm(row.values[3]),
                }
            } else {
                EventContent::CompactWaking {
                    tid: Tid(value(0) as i32),
                    target_cpu: value(1) as i32,
                    prio: value(2) as i32,
                    comm: comm(row.values[3]),
                    flags: value(4) as u8,
                }
            };
            out.push(BundleEvent { ts: row.ts, cpu, bundle, content });
        }
    }
}

/// Packed columns of a `CompactSched`, from a row on.
#[derive(Clone, Copy, Default)]
struct Columns<'a> {
    /// The time of the next row, if there is one.
    next_ts: Option<Timestamp>,
    /// The column of times behind it, each as the distance from the one before.
    deltas: &'a [u8],
    /// The columns of values. One that ends before the others has no more.
    values: [&'a [u8]; 5],
}

/// A row of [`Columns`].
struct Row {
    ts: Timestamp,
    values: [Option<u64>; 5],
}

impl<'a> Columns<'a> {
    /// Reads the time of the row behind the one at `ts`; of the first row, behind 0.
    #[inline]
    fn take_delta(&mut self, ts: Timestamp) {
        let read = varint::read(self.deltas);
        self.next_ts = read.map(|(delta, _)| ts.wrapping_add(delta));
        self.deltas = read.map_or(&[], |(_, rest)| rest);
    }

    /// The times of all rows.
    fn times(self) -> impl Iterator<Item = Timestamp> {
        let behind = varint::all(self.deltas).scan(self.next_ts.unwrap_or_default(), |ts, delta| {
            *ts = ts.wrapping_add(delta);
            Some(*ts)
        });
        self.next_ts.into_iter().chain(behind)
    }

    /// The most rows that there can be. Each has a byte at least in the column of times.
    fn max_rows(&self) -> u64 {
        u64::from(self.next_ts.is_some()) + self.deltas.len() as u64
    }

    #[inline]
    fn take_row(&mut self) -> Option<Row> {
        let ts = self.next_ts?;
        self.take_delta(ts);
        let mut values = [None; 5];
        for (value, column) in values.iter_mut().zip(&mut self.values) {
            if let Some((number, rest)) = varint::read(column) {
                *value = Some(number);
                *column = rest;
            }
        }
        Some(Row { ts, values })
    }

    fn byte_len(&self) -> usize {
        self.deltas.len() + self.values.iter().map(|column| column.len()).sum::<usize>()
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
        let is_after_loss = outline(body, |_, whole| extent = whole).is_after_loss;
        piece(PieceContent::Fields(body), extent, is_after_loss)
    }

    fn piece(content: PieceContent<'_>, extent: Extent, is_after_loss: bool) -> IndexedBundle<'_> {
        IndexedBundle { cpu: Cpu(3), content, symbols: 0, extent, is_after_loss, describing: None }
    }

    fn times(bundle: &[u8]) -> (Vec<u64>, bool) {
        times_of(&indexed(bundle))
    }

    fn times_of(bundle: &IndexedBundle<'_>) -> (Vec<u64>, bool) {
        let mut out = Vec::new();
        let broken = events(bundle, 0, &mut out);
        assert!(out.iter().all(|event| event.cpu == Cpu(3)));
        (out.iter().map(|event| event.ts.0).collect(), broken == 0)
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
        assert_eq!(indexed(&bundle).extent, Extent { first_ts: Timestamp(10), events: 5 });
        let mut out = Vec::new();
        events(&indexed(&bundle), 0, &mut out);
        assert!(matches!(out[0].content, EventContent::LostEvents));
        let markers: Vec<u64> =
            out.iter().filter(|event| event.is_marker()).map(|event| event.ts.0).collect();
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
        assert_eq!(
            (found.cpu, found.clock(), found.sync()),
            (Cpu(5), Some(Clock::TraceGlobal), Some((8, 9)))
        );
        let empty = outline(&[], |_, _| {}).head;
        assert_eq!((empty.clock(), empty.sync()), (None, None));
    }

    #[test]
    fn a_bundle_of_many_events_is_read_in_pieces() {
        let mut bundle = Vec::new();
        let count = 2 * PIECE_EVENTS + 5;
        (0..count).for_each(|n| event(&mut bundle, 1_000_000 - n));
        let pieces = pieces(&bundle);
        let counts: Vec<u64> = pieces.iter().map(|piece| piece.extent.events).collect();
        assert_eq!(counts, [PIECE_EVENTS, PIECE_EVENTS, 5]);
        let bytes = pieces.iter().map(|piece| match piece.content {
            PieceContent::Fields(fields) => fields,
            _ => panic!("all are fields"),
        });
        assert_eq!(bytes.collect::<Vec<_>>().concat(), bundle);
        for piece in pieces {
            let (times, is_whole) = times_of(&piece);
            assert_eq!((times.first().copied(), is_whole), (Some(piece.extent.first_ts.0), true));
        }
    }

    fn pieces(bundle: &[u8]) -> Vec<IndexedBundle<'_>> {
        let mut pieces = Vec::new();
        outline(bundle, |content, extent| pieces.push(piece(content, extent, false)));
        pieces
    }

    /// A row of a `CompactSched` as text.
    fn row(event: &BundleEvent<'_>) -> String {
        format!("{} {:?}", event.ts, event.content)
    }

    #[test]
    fn the_rows_of_a_large_compact_sched_are_read_in_pieces_between_the_events() {
        let count = PIECE_EVENTS;
        let column = |value: &dyn Fn(u64) -> u64| {
            let mut out = Vec::new();
            (0..count).for_each(|n| varint::push(&mut out, value(n)));
            out
        };
        let mut sched = Vec::new();
        message(&mut sched, compact::INTERN_TABLE, |name| name.extend_from_slice(b"even"));
        message(&mut sched, compact::INTERN_TABLE, |name| name.extend_from_slice(b"odd"));
        // A switch each 10 ns, and a waking 3 ns behind each.
        bytes(&mut sched, compact::SWITCH_TIMESTAMP, &column(&|_| 10));
        bytes(&mut sched, compact::SWITCH_NEXT_PID, &column(&|n| n));
        bytes(&mut sched, compact::SWITCH_NEXT_COMM_INDEX, &column(&|n| n % 2));
        bytes(&mut sched, compact::WAKING_TIMESTAMP, &column(&|n| if n == 0 { 13 } else { 10 }));
        bytes(&mut sched, compact::WAKING_PID, &column(&|n| n + 1));
        let mut bundle = Vec::new();
        event(&mut bundle, 5);
        bytes(&mut bundle, bundle_field::COMPACT_SCHED, &sched);
        event(&mut bundle, 7);
        let pieces = pieces(&bundle);
        let counts: Vec<u64> = pieces.iter().map(|piece| piece.extent.events).collect();
        assert_eq!(counts, [1, PIECE_EVENTS, PIECE_EVENTS, 1]);
        let mut out = Vec::new();
        for piece in &pieces {
            let first = out.len();
            assert_eq!(events(piece, 0, &mut out), 0);
            assert_eq!(
                (out[first].ts, (out.len() - first) as u64),
                (piece.extent.first_ts, piece.extent.events)
            );
        }
        let comm = |n: u64| if n.is_multiple_of(2) { &b"even"[..] } else { b"odd" };
        let expected = (0..count).flat_map(|n| {
            let switch = EventContent::CompactSwitch {
                prev_state: 0,
                next_tid: Tid(n as i32),
                next_prio: 0,
                next_comm: comm(n),
            };
            let waking = EventContent::CompactWaking {
                tid: Tid(n as i32 + 1),
                target_cpu: 0,
                prio: 0,
                comm: b"",
                flags: 0,
            };
            [(10 * n + 10, switch), (10 * n + 13, waking)]
        });
        let expected = expected
            .map(|(ts, content)| row(&BundleEvent { ts: Timestamp(ts), cpu: Cpu(3), bundle: 0, content }));
        let rows = out[1..out.len() - 1].iter().map(row);
        assert!(rows.eq(expected));
        assert_eq!((out[0].ts.0, out[out.len() - 1].ts.0), (5, 7));
        let bytes: usize = pieces.iter().map(|piece| piece.content.byte_len()).sum();
        assert!((bundle.len() - 100..=bundle.len()).contains(&bytes), "{bytes} of {}", bundle.len());
    }
}
