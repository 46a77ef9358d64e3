//! Counts the contents of a trace without decoding its events: for copies of whole packets, which are written
//! as fast as they can be read.

use std::collections::HashSet;

use super::bundle::{self, BundleHead};
use super::counter_packets::is_counters;
use super::fields::{
    compact_sched as compact, ftrace_event, ftrace_event_bundle as bundle_field, print_ftrace_event,
    trace_packet,
};
use super::packet_types::{self, PacketTypes};
use super::packets::{CountedLosses, method_trace_payload};
use super::perf_samples::is_dropped;
use super::sequence_packet::SequencePacket;
use super::trace_packets::packets;
use super::trace_streams::{damage_inside, decompress, unpack_damage};
use super::wire::read::{WireValue, fields, last_value};
use super::wire::{LENGTH_DELIMITED, VARINT, tag};
use crate::clock::{Clock, Timestamp};
use crate::formats::unpack_budget::{UnpackBudget, UnpackLimit};
use crate::formats::{Damage, LossKind, LossPlace, ReadReport, ThreadIds};
use crate::ids::Tid;
use crate::markers::Marker;
use crate::varint;

/// The tags in front of the time, the thread id and the text of a marker in an event.
const TIMESTAMP_TAG: u8 = tag(ftrace_event::TIMESTAMP, VARINT) as u8;
const PID_TAG: u8 = tag(ftrace_event::PID, VARINT) as u8;
const PRINT_TAG: u8 = tag(ftrace_event::PRINT, LENGTH_DELIMITED) as u8;
const COMMON_FLAGS_TAG: u8 = tag(ftrace_event::COMMON_FLAGS, VARINT) as u8;

/// The counts of a trace, packet by packet.
pub(crate) struct TraceScan {
    report: ReadReport,
    types: PacketTypes,
    losses: CountedLosses,
    /// Markers of atrace among the events.
    pub(crate) markers: u64,
    /// The threads with an event.
    tids: ThreadIds,
    /// The sequences whose state is known.
    known_sequences: HashSet<u64>,
    /// Packets with events that need the state of a sequence of which packets are lost.
    stateless: u64,
    /// Samples that the profiler dropped.
    dropped_samples: u64,
    unparsed_pages: u64,
    unread_names: u64,
    broken_bundles: u32,
    clock: Option<Clock>,
    budget: UnpackBudget,
    is_over_budget: bool,
}

impl TraceScan {
    /// A scan that has seen nothing yet, and unpacks compressed packets within `budget`.
    pub(crate) fn new(budget: UnpackBudget) -> TraceScan {
        TraceScan {
            report: ReadReport::default(),
            types: PacketTypes::default(),
            losses: CountedLosses::default(),
            markers: 0,
            tids: ThreadIds::default(),
            known_sequences: HashSet::new(),
            stateless: 0,
            dropped_samples: 0,
            unparsed_pages: 0,
            unread_names: 0,
            broken_bundles: 0,
            clock: None,
            budget,
            is_over_budget: false,
        }
    }

    /// Adds damage that the caller has found.
    pub(crate) fn add_damage(&mut self, damage: Vec<Damage>) {
        self.report.damage.extend(damage);
    }

    /// The clock of the kernel's events.
    pub(crate) fn clock(&self) -> Clock {
        self.clock.unwrap_or(Clock::Boottime)
    }

    /// Counts a packet, which begins at byte `offset` of the trace.
    pub(crate) fn packet(&mut self, packet: &[u8], offset: u64) {
        // The contents of a packet exclude each other (`oneof data`).
        let content = fields(packet).find(|(number, _)| packet_types::is_content(*number));
        let mut kind = content.map(|(number, _)| number);
        if let Some((number, value)) = content {
            match number {
                trace_packet::FTRACE_EVENTS => self.bundle(value.bytes()),
                trace_packet::FTRACE_STATS => self.losses.add_stats(value.bytes()),
                trace_packet::TRACE_STATS => self.losses.recorder.add_trace_stats(value.bytes()),
                trace_packet::TRACE_ATTRIBUTES => self.losses.recorder.add_attributes(value.bytes()),
                trace_packet::COMPRESSED_PACKETS | trace_packet::ZSTD_COMPRESSED_PACKETS => {
                    self.compressed(number, value.bytes(), offset);
                }
                trace_packet::TRACK_EVENT => {}
                trace_packet::PERF_SAMPLE => {
                    self.dropped_samples += u64::from(is_dropped(value.bytes()));
                }
                // Its method trace is read; the number of its field is another packet's.
                _ if method_trace_payload(value.bytes()).is_some() => kind = None,
                _ => {}
            }
        }
        if kind != Some(trace_packet::FTRACE_EVENTS) {
            self.follow_sequence(packet, kind);
        }
        self.types.count_content(kind);
    }

    /// Follows whether the state of the packet's sequence is known, as [`super::track_events`] does.
    fn follow_sequence(&mut self, packet: &[u8], kind: Option<u32>) {
        let head = SequencePacket::read(packet, |_, _| {});
        if head.is_cleared {
            self.known_sequences.insert(head.sequence);
        } else if head.is_after_loss {
            self.known_sequences.remove(&head.sequence);
        }
        let has_events = kind.is_some_and(|kind| {
            matches!(kind, trace_packet::TRACK_EVENT | trace_packet::FRAME_TIMELINE_EVENT)
                || is_counters(kind)
        });
        let is_known = || self.known_sequences.contains(&head.sequence);
        self.stateless += u64::from(has_events && head.needs_state() && !is_known());
    }

    fn compressed(&mut self, number: u32, body: &[u8], offset: u64) {
        let mut unpacked = Vec::new();
        let result = decompress(number, body, &self.budget, &mut unpacked);
        match result {
            Some(Err(error)) => {
                self.report.damage.extend(unpack_damage(&error, offset, &mut self.is_over_budget));
            }
            _ => self.report.damage.extend(damage_inside(&unpacked, offset)),
        }
        // Compressed packets inside of compressed packets are not read by anybody.
        for packet in packets(&unpacked) {
            let nested =
                |n| matches!(n, trace_packet::COMPRESSED_PACKETS | trace_packet::ZSTD_COMPRESSED_PACKETS);
            if !fields(packet.body).any(|(n, _)| nested(n)) {
                self.packet(packet.body, offset);
            }
        }
    }

    fn bundle(&mut self, bundle: &[u8]) {
        let mut head = BundleHead::default();
        let mut events = 0;
        let mut lost = 0;
        let mut first = Timestamp::MAX;
        let mut last = Timestamp::MIN;
        let mut all = fields(bundle);
        for (number, value) in all.by_ref() {
            match number {
                bundle_field::EVENT => {
                    let ts = self.event(value.bytes());
                    first = first.min(ts);
                    last = last.max(ts);
                    events += 1;
                }
                bundle_field::LOST_EVENTS => lost = u64::from(value.number() != 0),
                bundle_field::COMPACT_SCHED => {
                    self.unread_names += bundle::names_left_out(value.bytes());
                    for column in [compact::SWITCH_TIMESTAMP, compact::WAKING_TIMESTAMP] {
                        let mut ts = Timestamp::MIN;
                        let deltas = last_value(value.bytes(), column).map_or(&[][..], WireValue::bytes);
                        for delta in varint::all(deltas) {
                            ts = ts.wrapping_add(delta);
                            first = first.min(ts);
                            last = last.max(ts);
                            events += 1;
                        }
                    }
                    let pids = last_value(value.bytes(), compact::SWITCH_NEXT_PID);
                    varint::all(pids.map_or(&[][..], WireValue::bytes))
                        .for_each(|pid| self.tids.add(Tid(pid as i32)));
                }
                _ => head.field(number, value),
            }
        }
        self.broken_bundles += u32::from(all.broken);
        self.unparsed_pages += u64::from(head.unparsed_pages);
        self.clock = head.clock().or(self.clock);
        let cpu = self.report.cpus.entry(head.cpu).or_default();
        cpu.events += events;
        cpu.gaps += lost;
        if events > 0 {
            self.report.cover_range(Some(first), Some(last));
        }
    }

    /// Counts a marker and its thread. Returns the time of the event.
    #[inline]
    fn event(&mut self, event: &[u8]) -> Timestamp {
        // Perfetto's recorder and tracebridge begin an event with its time and its thread id, and its own
        // message or the flags follow.
        if let Some((ts, pid, rest)) = leading_fields(event)
            && !matches!(rest.first(), Some(&(PRINT_TAG | COMMON_FLAGS_TAG | TIMESTAMP_TAG | PID_TAG)))
        {
            self.tids.add(Tid(pid as i32));
            return Timestamp(ts);
        }
        let mut ts = Timestamp::MIN;
        for (number, value) in fields(event) {
            match number {
                ftrace_event::TIMESTAMP => ts = Timestamp(value.number()),
                ftrace_event::PID => self.tids.add(Tid(value.int32())),
                ftrace_event::PRINT => {
                    let text = last_value(value.bytes(), print_ftrace_event::BUF).map(WireValue::bytes);
                    self.markers += u64::from(text.is_some_and(|text| Marker::parse(text).is_some()));
                }
                // The event's own message comes last.
                ftrace_event::COMMON_FLAGS => {}
                _ => break,
            }
        }
        ts
    }

    /// The number of packets that hold a track event.
    pub(crate) fn track_events(&self) -> u64 {
        self.types.count_of(trace_packet::TRACK_EVENT)
    }

    /// The number of threads with an event.
    pub(crate) fn threads(&self) -> u64 {
        self.tids.count()
    }

    /// The report of the whole trace.
    pub(crate) fn finish(mut self) -> ReadReport {
        self.losses.report(&mut self.report);
        let losses = &mut self.report.losses;
        losses.add(LossKind::TrackEventsOfLostPackets, LossPlace::Recording, self.stateless);
        losses.add(LossKind::Samples, LossPlace::Recording, self.dropped_samples);
        self.report.damage.extend(bundle::broken(self.broken_bundles));
        if self.unparsed_pages > 0 {
            let what = bundle::unparsed_pages(self.unparsed_pages);
            self.report.damage.push(Damage { offset: 0, what });
        }
        self.report.damage.extend(bundle::unread_names(self.unread_names));
        self.report.unread = self.types.unread();
        self.report
    }
}

/// Counts the contents of a whole trace.
pub fn count(data: &[u8]) -> ReadReport {
    let mut scan = TraceScan::new(UnpackLimit::default().budget(data.len() as u64));
    let mut all = packets(data);
    all.by_ref().for_each(|packet| scan.packet(packet.body, packet.range.start as u64));
    scan.add_damage(all.damage());
    scan.finish()
}

/// The time and the thread id with which an event begins, and what follows.
#[inline]
fn leading_fields(event: &[u8]) -> Option<(u64, u64, &[u8])> {
    let [TIMESTAMP_TAG, rest @ ..] = event else { return None };
    let (ts, rest) = varint::read(rest)?;
    let [PID_TAG, rest @ ..] = rest else { return None };
    let (pid, rest) = varint::read(rest)?;
    Some((ts, pid, rest))
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use super::super::fields::{ftrace_cpu_stats, ftrace_stats, ftrace_stats_phase, trace};
    use super::super::read::read;
    use super::super::wire::write::{bytes, message, string, uint};
    use super::*;
    use crate::art::ALWAYS_ON_MAGIC;
    use crate::formats::{Event, EventType, Order, Sink};
    use crate::ids::Cpu;

    struct Nothing;

    impl Sink for Nothing {
        fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
            Ok(())
        }
    }

    fn packet(out: &mut Vec<u8>, field: u32, fill: impl FnOnce(&mut Vec<u8>)) {
        message(out, trace::PACKET, |packet| message(packet, field, fill));
    }

    /// A packet with a marker of thread 7 on `cpu`, before which events were lost.
    fn marker(out: &mut Vec<u8>, cpu: u64, ts: u64) {
        packet(out, trace_packet::FTRACE_EVENTS, |bundle| {
            uint(bundle, bundle_field::CPU, cpu);
            uint(bundle, bundle_field::LOST_EVENTS, 1);
            message(bundle, bundle_field::EVENT, |event| {
                uint(event, ftrace_event::TIMESTAMP, ts);
                uint(event, ftrace_event::PID, 7);
                message(event, ftrace_event::PRINT, |print| string(print, print_ftrace_event::BUF, b"B|7|x"));
            });
        });
    }

    /// A packet with two rows of `CompactSched` on CPU 2.
    fn switches(out: &mut Vec<u8>) {
        packet(out, trace_packet::FTRACE_EVENTS, |bundle| {
            uint(bundle, bundle_field::CPU, 2);
            message(bundle, bundle_field::COMPACT_SCHED, |columns| {
                bytes(columns, compact::SWITCH_TIMESTAMP, &[20, 5]);
                bytes(columns, compact::SWITCH_NEXT_PID, &[5, 6]);
            });
        });
    }

    /// The kernel's counts of the events that CPU 2 has lost.
    fn losses(out: &mut Vec<u8>, phase: u64, lost: u64) {
        packet(out, trace_packet::FTRACE_STATS, |stats| {
            uint(stats, ftrace_stats::PHASE, phase);
            message(stats, ftrace_stats::CPU_STATS, |cpu| {
                uint(cpu, ftrace_cpu_stats::CPU, 2);
                uint(cpu, ftrace_cpu_stats::OVERRUN, lost);
            });
        });
    }

    #[test]
    fn a_scan_counts_as_reading_does() {
        let mut data = Vec::new();
        marker(&mut data, 2, 9);
        switches(&mut data);
        losses(&mut data, ftrace_stats_phase::START_OF_TRACE, 3);
        losses(&mut data, ftrace_stats_phase::END_OF_TRACE, 8);
        let perf_sample = 66;
        packet(&mut data, perf_sample, |sample| uint(sample, 1, 1));
        // A draft's number of the packet that holds a method trace.
        let long_running = 123;
        packet(&mut data, long_running, |trace| bytes(trace, 1, &[&ALWAYS_ON_MAGIC[..], &[0; 32]].concat()));
        let mut inside = Vec::new();
        marker(&mut inside, 1, 40);
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        zlib.write_all(&inside).unwrap();
        let packed = zlib.finish().unwrap();
        message(&mut data, trace::PACKET, |packet| bytes(packet, trace_packet::COMPRESSED_PACKETS, &packed));

        let scanned = count(&data);
        let expected = read(&data, Order::Any, &mut Nothing).unwrap();
        assert_eq!(scanned.cpus, expected.cpus);
        assert_eq!((scanned.events(), scanned.lost(), scanned.cpus[&Cpu(2)].gaps), (4, 5, 1));
        assert_eq!((scanned.first_ts, scanned.last_ts), (expected.first_ts, expected.last_ts));
        assert_eq!(scanned.unread, expected.unread);
        assert_eq!(scanned.unread.into_iter().collect::<Vec<_>>(), [("perf_sample".to_owned(), 1)]);
        assert_eq!(scanned.damage, expected.damage);
    }

    #[test]
    fn markers_and_threads_are_counted() {
        let mut data = Vec::new();
        marker(&mut data, 0, 1);
        marker(&mut data, 0, 2);
        switches(&mut data);
        let mut scan = TraceScan::new(UnpackLimit::default().budget(0));
        packets(&data).for_each(|packet| scan.packet(packet.body, 0));
        assert_eq!((scan.markers, scan.threads()), (2, 3));
        assert_eq!((scan.track_events(), scan.clock()), (0, Clock::Boottime));
    }
}
