//! The first pass over the packets of a trace: collects the clocks and names that the events depend on.
//!
//! Packets may come in any order. So the clock, the clock snapshots and the names of threads must be known
//! before the first event is pushed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;

use super::bundle::{self, IndexedBundle, Outline};
use super::clock_snapshots::read_clock_snapshot;
use super::counter_packets::is_counters;
use super::fields::{
    ftrace_cpu_stats, ftrace_stats, ftrace_stats_phase, interned_data, interned_string, package_info,
    packages_list, process_descriptor, process_tree, process_tree_process, process_tree_thread,
    sequence_flags, system_info, thread_descriptor, trace_packet, trace_packet_defaults, track_descriptor,
};
use super::packet_types::{self, PacketTypes};
use super::recorder_losses::RecorderLosses;
use super::trace_packets::PlacedPacket;
use super::trace_streams::{StreamPlace, TraceStreams};
use super::track_clocks::{FIRST_CUSTOM_CLOCK, machine_clock};
use super::wire::read::{WireValue, fields, last_value};
use super::wire::{LENGTH_DELIMITED, tag};
use crate::art::ALWAYS_ON_MAGIC;
use crate::clock::{Clock, Snapshot, Snapshots};
use crate::formats::spill::RELEASE_BYTES;
use crate::formats::{Damage, Package, ProcessInfo, ReadReport, Sink, ThreadInfo};
use crate::ids::{Cpu, Pid, Tid};
use crate::progress::{self, Pass};

/// A packet with this field is of threads or CPUs of the packet's machine.
fn names_threads(field: u32) -> bool {
    matches!(
        field,
        trace_packet::FTRACE_EVENTS
            | trace_packet::PROCESS_TREE
            | trace_packet::TRACK_DESCRIPTOR
            | trace_packet::PROCESS_DESCRIPTOR
            | trace_packet::THREAD_DESCRIPTOR
            | trace_packet::TRACK_EVENT
    )
}

/// The field of `ArtMethodTraceLongRunning` with the method trace.
const PAYLOAD: u32 = 1;

/// The method trace of the always-on tracer in a packet's content, which is an `ArtMethodTraceLongRunning`.
/// The message is recognized by its contents: no release of Perfetto has its field number yet, and the
/// numbers of its drafts (123 and 129) mean other messages now.
pub(super) fn method_trace_payload(content: &[u8]) -> Option<&[u8]> {
    const PAYLOAD_TAG: u8 = tag(PAYLOAD, LENGTH_DELIMITED) as u8;
    let payload = || last_value(content, PAYLOAD).map(WireValue::bytes);
    content
        .starts_with(&[PAYLOAD_TAG])
        .then(payload)?
        .filter(|bytes| bytes.len() >= 32 && bytes.starts_with(ALWAYS_ON_MAGIC))
}

/// The data that the first pass collects.
#[derive(Default)]
pub(super) struct PacketIndex<'a> {
    pub(super) clock: Option<Clock>,
    pub(super) snapshots: Snapshots,
    /// In the order of the file.
    pub(super) bundles: Vec<IndexedBundle<'a>>,
    /// The kernel symbols that packet sequences have interned, by id. A sequence that clears its state begins
    /// another entry. Entry 0 is empty.
    pub(super) symbols: Vec<HashMap<u64, &'a [u8]>>,
    /// The current entry of each packet sequence in `symbols`.
    current_symbols: HashMap<u64, u32>,
    /// The machines whose threads the trace has; 0 is the host.
    machines: BTreeSet<u64>,
    /// Packets that name processes and threads.
    naming_packets: Vec<&'a [u8]>,
    /// The packages of each app, by the number that Android gave it.
    packages: HashMap<u32, Vec<Package<'a>>>,
    /// Losses as the kernel and the recorder counted them.
    pub(super) losses: CountedLosses,
    /// How many packets of each type there are.
    pub(super) types: PacketTypes,
    /// Whether there are packets whose events lie on tracks.
    pub(super) has_tracks: bool,
    /// The SDK version of the recording device's Android.
    pub(super) android_sdk: Option<u32>,
    /// Packets with a method trace.
    pub(super) method_traces: Vec<&'a [u8]>,
    /// The clocks of the machine that packets or defaults name for their timestamps.
    named_clocks: BTreeSet<u64>,
}

/// Where the packets lie whose small bundles are one piece.
#[derive(Default)]
struct SmallPackets {
    /// The place of the first packet.
    start: StreamPlace,
    /// The offset behind the last one; `None` where the last piece is not of small bundles.
    end: Option<usize>,
}

impl SmallPackets {
    /// Adds a packet, whose pieces are those from number `first` on. If it has one small bundle, and what
    /// comes before it has small ones, that piece becomes a part of the one before.
    fn add<'a>(
        &mut self,
        bundles: &mut Vec<IndexedBundle<'a>>,
        first: usize,
        packet: &PlacedPacket<'a>,
        streams: &'a TraceStreams<'_>,
    ) {
        let Some(body) = streams.place_of(packet.body) else { return };
        let end = body.offset + packet.body.len();
        let start = StreamPlace { offset: end - packet.range.len(), ..body };
        let follows = self.end == Some(start.offset) && self.start.stream == start.stream;
        if bundles.len() == first {
            self.end = if follows { Some(end) } else { self.end };
            return;
        }
        let is_small = bundles.len() == first + 1 && bundles[first].is_small();
        if !is_small {
            self.end = None;
            return;
        }
        self.end = Some(end);
        if follows && let Some([group, next]) = bundles.get_mut(first.wrapping_sub(1)..) {
            let packets = streams.stream(start.stream).get(self.start.offset..end).unwrap_or(&[]);
            if group.join(next, packets) {
                bundles.pop();
                return;
            }
        }
        self.start = start;
    }
}

impl<'a> PacketIndex<'a> {
    pub(super) fn new(streams: &'a TraceStreams<'_>, report: &mut ReadReport) -> PacketIndex<'a> {
        let mut out = PacketIndex { symbols: vec![HashMap::new()], ..PacketIndex::default() };
        let mut unparsed = 0u64;
        let mut unread_names = 0;
        let _pass = Pass::begin("reading packets", streams.byte_len());
        let mut group = SmallPackets::default();
        for placed in streams.packets() {
            let PlacedPacket { body: packet, .. } = placed;
            progress::advance(packet.len() as u64);
            let first_bundle = out.bundles.len();
            let mut content = None;
            let mut is_method_trace = false;
            let mut sequence = 0;
            let mut machine = 0;
            let mut is_cleared = false;
            let mut interned = None;
            for (number, value) in fields(packet) {
                let body = value.bytes();
                if packet_types::is_content(number) {
                    content.get_or_insert(number);
                }
                match number {
                    trace_packet::FTRACE_EVENTS => {
                        let first = out.bundles.len();
                        let mut read = 0;
                        let outline = bundle::outline(body, |content, extent| {
                            read += content.byte_len();
                            if read >= RELEASE_BYTES {
                                read = 0;
                                streams.release();
                            }
                            out.bundles.push(IndexedBundle {
                                cpu: Cpu(0),
                                content,
                                symbols: 0,
                                extent,
                                is_after_loss: false,
                                describing: None,
                            });
                        });
                        let head = outline.head;
                        out.end_bundle(first, body, &outline);
                        unparsed += u64::from(head.unparsed_pages);
                        unread_names += outline.unread_names;
                        out.clock = head.clock().or(out.clock);
                        if let (Some(clock), Some((ftrace, boottime))) = (head.clock(), head.sync()) {
                            out.snapshots.ftrace_clock = Some(clock);
                            let pair = Snapshot { ftrace: Some(ftrace), boottime, ..Snapshot::default() };
                            if out.snapshots.list.last().and_then(|s| s.ftrace) != pair.ftrace {
                                out.snapshots.list.push(pair);
                            }
                        }
                    }
                    trace_packet::PROCESS_TREE => out.naming_packets.push(packet),
                    trace_packet::PACKAGES_LIST => out.learn_packages(body),
                    trace_packet::TRACK_DESCRIPTOR
                    | trace_packet::PROCESS_DESCRIPTOR
                    | trace_packet::THREAD_DESCRIPTOR => out.naming_packets.push(packet),
                    trace_packet::TIMESTAMP_CLOCK_ID => {
                        out.named_clocks.insert(value.number());
                    }
                    trace_packet::TRACE_PACKET_DEFAULTS => {
                        let clock = last_value(body, trace_packet_defaults::TIMESTAMP_CLOCK_ID);
                        out.named_clocks.extend(clock.map(WireValue::number));
                    }
                    trace_packet::TRACK_EVENT | trace_packet::FRAME_TIMELINE_EVENT => out.has_tracks = true,
                    _ if is_counters(number) => out.has_tracks = true,
                    trace_packet::TRUSTED_PACKET_SEQUENCE_ID => sequence = value.number(),
                    trace_packet::MACHINE_ID => machine = value.number(),
                    trace_packet::SEQUENCE_FLAGS => {
                        is_cleared |= value.number() & sequence_flags::INCREMENTAL_STATE_CLEARED != 0;
                    }
                    trace_packet::INCREMENTAL_STATE_CLEARED => is_cleared |= value.number() != 0,
                    trace_packet::INTERNED_DATA => interned = Some(body),
                    trace_packet::CLOCK_SNAPSHOT => out.snapshots.list.extend(read_clock_snapshot(body)),
                    trace_packet::SYSTEM_INFO => {
                        let sdk = last_value(body, system_info::ANDROID_SDK_VERSION).map(WireValue::number);
                        out.android_sdk = sdk.and_then(|sdk| sdk.try_into().ok()).or(out.android_sdk);
                    }
                    trace_packet::FTRACE_STATS => out.losses.add_stats(body),
                    trace_packet::TRACE_STATS => out.losses.recorder.add_trace_stats(body),
                    trace_packet::TRACE_ATTRIBUTES => out.losses.recorder.add_attributes(body),
                    _ if method_trace_payload(body).is_some() => {
                        out.method_traces.push(packet);
                        is_method_trace = true;
                    }
                    _ => {}
                }
            }
            // Its method trace is read; the number of its field is another packet's.
            out.machines.extend(content.filter(|field| names_threads(*field)).map(|_| machine));
            out.types.count_content(content.filter(|_| !is_method_trace));
            if is_cleared {
                out.current_symbols.remove(&sequence);
            }
            if let Some(interned) = interned {
                out.learn_symbols(sequence, interned);
            }
            if let Some(symbols) = out.current_symbols.get(&sequence) {
                out.bundles[first_bundle..].iter_mut().for_each(|bundle| bundle.symbols = *symbols);
            }
            group.add(&mut out.bundles, first_bundle, &placed, streams);
        }
        if unparsed > 0 {
            let what = bundle::unparsed_pages(unparsed);
            report.damage.push(Damage { offset: 0, what });
        }
        report.damage.extend(bundle::unread_names(unread_names));
        report.damage.extend(out.several_machines());
        out
    }

    /// The damage of a trace in which several machines have the same ids of threads and CPUs.
    fn several_machines(&self) -> Option<Damage> {
        let name = |id: &u64| if *id == 0 { "the host".to_owned() } else { format!("machine {id}") };
        let names: Vec<String> = self.machines.iter().map(name).collect();
        let what = format!(
            "the trace is of several machines, {}: their CPUs, processes and threads are not kept apart, and those \
             of one id are shown as one",
            names.join(", ")
        );
        (names.len() > 1).then_some(Damage { offset: 0, what })
    }

    /// Gives the pieces of a bundle, of which the first has the number `first`, what the whole bundle says.
    fn end_bundle(&mut self, first: usize, body: &'a [u8], outline: &Outline) {
        let pieces = &mut self.bundles[first..];
        pieces.iter_mut().for_each(|piece| piece.cpu = outline.head.cpu);
        if let Some(piece) = pieces.first_mut() {
            piece.is_after_loss = outline.is_after_loss;
            piece.describing = outline.describes_types.then_some(body);
        }
    }

    /// Reads the kernel symbols of an `InternedData`.
    fn learn_symbols(&mut self, sequence: u64, interned: &'a [u8]) {
        for (_, symbol) in fields(interned).filter(|(n, _)| *n == interned_data::KERNEL_SYMBOLS) {
            let id = last_value(symbol.bytes(), interned_string::IID).map_or(0, WireValue::number);
            let name = last_value(symbol.bytes(), interned_string::STR).map_or(&[][..], WireValue::bytes);
            let next = self.symbols.len() as u32;
            let entry = *self.current_symbols.entry(sequence).or_insert(next);
            if entry == next {
                self.symbols.push(HashMap::new());
            }
            if let Some(symbols) = self.symbols.get_mut(entry as usize) {
                symbols.insert(id, name);
            }
        }
    }

    /// Reads a `PackagesList`.
    fn learn_packages(&mut self, list: &'a [u8]) {
        for (_, message) in fields(list).filter(|(n, _)| *n == packages_list::PACKAGES) {
            let number = |field| last_value(message.bytes(), field).map_or(0, WireValue::number);
            let name = last_value(message.bytes(), package_info::NAME).map_or(&[][..], WireValue::bytes);
            let package = Package { name, is_debuggable: number(package_info::DEBUGGABLE) != 0 };
            let of_app = self.packages.entry(app_of_user(number(package_info::UID))).or_default();
            if !name.is_empty() && !of_app.contains(&package) {
                of_app.push(package);
            }
        }
    }

    /// The package of a process: the only one of the process's user, or the one of several that begins the
    /// process's name. So Perfetto's `stdlib/android/process_metadata.sql` has it.
    fn package(&self, uid: u64, process_name: &[u8]) -> Option<Package<'a>> {
        match self.packages.get(&app_of_user(uid))?.as_slice() {
            [only] => Some(*only),
            several => several.iter().find(|package| process_name.starts_with(package.name)).copied(),
        }
    }

    /// The clock of the recording. It is the clock of the kernel's events. In a trace without such events it
    /// is the trace's only clock, if no snapshot relates that clock to BOOTTIME.
    pub(super) fn head_clock(&self) -> Clock {
        // A bundle names its clock only if that clock is not the boot clock.
        let mut named = self.named_clocks.iter().filter(|id| **id < FIRST_CUSTOM_CLOCK);
        match (named.next(), named.next()) {
            (Some(only), None) if self.bundles.is_empty() && self.snapshots.list.is_empty() => {
                machine_clock(*only).unwrap_or(Clock::Boottime)
            }
            _ => self.clock.unwrap_or(Clock::Boottime),
        }
    }

    /// Every `TrackDescriptor`.
    pub(super) fn track_descriptors(&self) -> impl Iterator<Item = &'a [u8]> + use<'_, 'a> {
        let all = self.naming_packets.iter().flat_map(|packet| fields(packet));
        all.filter(|(n, _)| *n == trace_packet::TRACK_DESCRIPTOR).map(|(_, value)| value.bytes())
    }

    /// Pushes the processes and threads that `ProcessTree` and `TrackDescriptor` messages name.
    pub(super) fn send_names(&self, sink: &mut dyn Sink) -> io::Result<()> {
        for packet in &self.naming_packets {
            for (number, body) in fields(packet) {
                match number {
                    trace_packet::PROCESS_TREE => self.send_process_tree(body.bytes(), sink)?,
                    trace_packet::TRACK_DESCRIPTOR => send_track_owner(body.bytes(), sink)?,
                    trace_packet::PROCESS_DESCRIPTOR => send_process(body.bytes(), sink)?,
                    trace_packet::THREAD_DESCRIPTOR => send_thread(body.bytes(), sink)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Pushes the processes and threads of a `ProcessTree`.
    fn send_process_tree(&self, tree: &[u8], sink: &mut dyn Sink) -> io::Result<()> {
        for (number, message) in fields(tree) {
            let message = message.bytes();
            let int = |n| last_value(message, n).map(WireValue::int32);
            match number {
                process_tree::PROCESSES => {
                    // The first of the repeated strings is the program; its arguments follow.
                    let mut cmdline = fields(message).filter(|(n, _)| *n == process_tree_process::CMDLINE);
                    let name = cmdline.next().map(|(_, v)| v.bytes());
                    let uid = last_value(message, process_tree_process::UID).map(WireValue::number);
                    sink.process(&ProcessInfo {
                        pid: Pid(int(process_tree_process::PID).unwrap_or(0)),
                        ppid: int(process_tree_process::PPID).map(Pid),
                        name,
                        package: uid.and_then(|uid| self.package(uid, name.unwrap_or(b""))),
                    })?;
                }
                process_tree::THREADS => sink.thread(&ThreadInfo {
                    tid: Tid(int(process_tree_thread::TID).unwrap_or(0)),
                    tgid: int(process_tree_thread::TGID).map(Pid),
                    name: last_value(message, process_tree_thread::NAME).map(WireValue::bytes),
                })?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Android gives each user of the device 100,000 numbers, of which an app has the same one for every user
/// (`AID_USER_OFFSET` in `android_filesystem_config.h`).
const NUMBERS_OF_USER: u64 = 100_000;

/// The number of the app that runs under a user id.
fn app_of_user(uid: u64) -> u32 {
    (uid % NUMBERS_OF_USER) as u32
}

/// Pushes the process or thread that a `TrackDescriptor` belongs to.
fn send_track_owner(track: &[u8], sink: &mut dyn Sink) -> io::Result<()> {
    if let Some(process) = last_value(track, track_descriptor::PROCESS) {
        send_process(process.bytes(), sink)?;
    }
    match last_value(track, track_descriptor::THREAD) {
        Some(thread) => send_thread(thread.bytes(), sink),
        None => Ok(()),
    }
}

/// Pushes the process of a `ProcessDescriptor`.
fn send_process(process: &[u8], sink: &mut dyn Sink) -> io::Result<()> {
    let Some(pid) = last_value(process, process_descriptor::PID) else { return Ok(()) };
    let name = last_value(process, process_descriptor::PROCESS_NAME)
        .or_else(|| last_value(process, process_descriptor::CMDLINE))
        .map(WireValue::bytes);
    sink.process(&ProcessInfo { pid: Pid(pid.int32()), ppid: None, name, package: None })
}

/// Pushes the thread of a `ThreadDescriptor`.
fn send_thread(thread: &[u8], sink: &mut dyn Sink) -> io::Result<()> {
    let Some(tid) = last_value(thread, thread_descriptor::TID) else { return Ok(()) };
    let name = last_value(thread, thread_descriptor::THREAD_NAME).map(WireValue::bytes);
    let tgid = last_value(thread, thread_descriptor::PID).map(|pid| Pid(pid.int32()));
    sink.thread(&ThreadInfo { tid: Tid(tid.int32()), tgid, name })
}

/// Lost events of one CPU as the kernel counts them: overrun and dropped events since the ring buffer was
/// allocated.
#[derive(Default)]
struct LostEventCount {
    at_start: Option<u64>,
    at_end: u64,
}

/// The losses that the kernel and Perfetto's recorder count.
#[derive(Default)]
pub(super) struct CountedLosses {
    cpus: BTreeMap<Cpu, LostEventCount>,
    pub(super) recorder: RecorderLosses,
}

impl CountedLosses {
    /// Reads an `FtraceStats` message.
    pub(super) fn add_stats(&mut self, body: &[u8]) {
        self.recorder.add_ftrace_stats(body);
        let phase = last_value(body, ftrace_stats::PHASE).map(WireValue::number);
        for (_, cpu) in fields(body).filter(|(n, _)| *n == ftrace_stats::CPU_STATS) {
            let number = |n| last_value(cpu.bytes(), n).map_or(0, |v| v.number());
            let overrun = number(ftrace_cpu_stats::OVERRUN);
            let lost = overrun.saturating_add(number(ftrace_cpu_stats::DROPPED_EVENTS));
            let count = self.cpus.entry(Cpu(number(ftrace_cpu_stats::CPU) as u32)).or_default();
            match phase {
                Some(ftrace_stats_phase::START_OF_TRACE) => count.at_start = Some(lost),
                _ => count.at_end = lost,
            }
        }
    }

    /// Adds the losses to a report. CPUs without a count from the start of the recording are left out: the
    /// kernel's count may include losses from before the recording.
    pub(super) fn report(&self, report: &mut ReadReport) {
        for (cpu, LostEventCount { at_start, at_end }) in &self.cpus {
            if let Some(start) = at_start {
                report.cpus.entry(*cpu).or_default().add_loss(Some(at_end.saturating_sub(*start)));
            }
        }
        self.recorder.report(report);
    }
}

#[cfg(test)]
mod tests {
    use super::super::bundle::{EventContent, Extent};
    use super::super::fields::{builtin_clock, ftrace_event, ftrace_event_bundle, trace};
    use super::super::wire::write::{bytes, message, string, uint};
    use super::*;
    use crate::clock::Timestamp;

    /// A trace of one packet.
    fn packet(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        message(&mut out, trace::PACKET, fill);
        out
    }

    fn stats(phase: u64, lost: u64) -> Vec<u8> {
        let mut out = Vec::new();
        uint(&mut out, ftrace_stats::PHASE, phase);
        message(&mut out, ftrace_stats::CPU_STATS, |cpu| {
            uint(cpu, ftrace_cpu_stats::CPU, 3);
            uint(cpu, ftrace_cpu_stats::OVERRUN, lost);
            uint(cpu, ftrace_cpu_stats::DROPPED_EVENTS, 1);
        });
        out
    }

    #[test]
    fn lost_events_count_from_the_start_of_the_recording() {
        let mut losses = CountedLosses::default();
        let lost = |losses: &CountedLosses| {
            let mut report = ReadReport::default();
            losses.report(&mut report);
            report.cpus.iter().map(|(cpu, count)| (*cpu, count.lost)).collect::<Vec<_>>()
        };
        losses.add_stats(&stats(ftrace_stats_phase::END_OF_TRACE, 30));
        assert_eq!(lost(&losses), [], "the count at the start is missing");
        losses.add_stats(&stats(ftrace_stats_phase::START_OF_TRACE, 10));
        assert_eq!(lost(&losses), [(Cpu(3), 20)]);
    }

    /// A packet of a sequence with one bundle of events, that interns the symbol `name` as number 1.
    fn interning_packet(sequence: u64, flags: u64, name: &str) -> Vec<u8> {
        packet(|packet| {
            uint(packet, trace_packet::TRUSTED_PACKET_SEQUENCE_ID, sequence);
            uint(packet, trace_packet::SEQUENCE_FLAGS, flags);
            message(packet, trace_packet::INTERNED_DATA, |data| {
                message(data, interned_data::KERNEL_SYMBOLS, |symbol| {
                    uint(symbol, interned_string::IID, 1);
                    string(symbol, interned_string::STR, name.as_bytes());
                });
            });
            message(packet, trace_packet::FTRACE_EVENTS, |bundle| uint(bundle, ftrace_event_bundle::CPU, 0));
        })
    }

    #[test]
    fn symbols_belong_to_their_sequence_until_it_clears_its_state() {
        let cleared = sequence_flags::INCREMENTAL_STATE_CLEARED;
        let data = [
            interning_packet(1, cleared, "first"),
            interning_packet(2, cleared, "other"),
            interning_packet(1, cleared, "second"),
        ]
        .concat();
        let streams = TraceStreams::of_file(&data);
        let index = PacketIndex::new(&streams, &mut ReadReport::default());
        let names = index.bundles.iter().map(|bundle| index.symbols[bundle.symbols as usize][&1]);
        assert_eq!(names.collect::<Vec<_>>(), [&b"first"[..], b"other", b"second"]);
    }

    /// A packet with a bundle of so many events, each 1 ns after the one before.
    fn bundle_packet(cpu: u64, first_ts: u64, events: u64, is_after_loss: bool) -> Vec<u8> {
        packet(|packet| {
            message(packet, trace_packet::FTRACE_EVENTS, |bundle| {
                uint(bundle, ftrace_event_bundle::CPU, cpu);
                uint(bundle, ftrace_event_bundle::LOST_EVENTS, is_after_loss.into());
                for n in 0..events {
                    message(bundle, ftrace_event_bundle::EVENT, |event| {
                        uint(event, ftrace_event::TIMESTAMP, first_ts + n);
                        message(event, ftrace_event::PRINT, |_| {});
                    });
                }
            });
        })
    }

    #[test]
    fn small_bundles_in_a_row_are_one_piece_and_are_read_as_each_alone() {
        let small = |n: u64| bundle_packet(n % 3, 1_000 - n, 1, n == 7);
        let mut data: Vec<u8> = (0..20).flat_map(small).collect();
        data.extend(packet(|packet| message(packet, trace_packet::PROCESS_TREE, |_| {})));
        data.extend((20..40).flat_map(small));
        data.extend(bundle_packet(5, 2_000, 9, false));
        data.extend((40..42).flat_map(small));
        let streams = TraceStreams::of_file(&data);
        let index = PacketIndex::new(&streams, &mut ReadReport::default());
        let extents: Vec<Extent> = index.bundles.iter().map(|bundle| bundle.extent).collect();
        let extent = |first_ts, events| Extent { first_ts, events };
        assert_eq!(
            extents,
            [extent(Timestamp(961), 40), extent(Timestamp(2_000), 9), extent(Timestamp(959), 2)]
        );
        assert_eq!(index.bundles.iter().map(|bundle| bundle.cpu).collect::<Vec<_>>(), [2, 5, 2].map(Cpu));
        let mut events = Vec::new();
        for (number, bundle) in index.bundles.iter().enumerate() {
            assert_eq!(bundle::events(bundle, number as u32, &mut events), 0);
        }
        let read: Vec<(u64, Cpu, bool)> = events
            .iter()
            .map(|event| (event.ts.0, event.cpu, matches!(event.content, EventContent::LostEvents)))
            .collect();
        let one = |n: u64| (1_000 - n, Cpu((n % 3) as u32), false);
        let mut expected: Vec<_> = (0..40).rev().map(one).collect();
        expected.insert(32, (993, Cpu(1), true));
        expected.extend((0..9).map(|n| (2_000 + n, Cpu(5), false)));
        expected.extend([one(41), one(40)]);
        assert_eq!(read, expected);
    }

    #[test]
    fn small_bundles_with_other_symbols_are_another_piece() {
        let cleared = sequence_flags::INCREMENTAL_STATE_CLEARED;
        let data: Vec<u8> = ["a", "b"].iter().flat_map(|name| interning_packet(1, cleared, name)).collect();
        let streams = TraceStreams::of_file(&data);
        assert_eq!(PacketIndex::new(&streams, &mut ReadReport::default()).bundles.len(), 2);
    }

    #[test]
    fn a_trace_without_events_of_the_kernel_has_the_only_clock_that_it_names() {
        let timestamp = |clock: u64| packet(|packet| uint(packet, trace_packet::TIMESTAMP_CLOCK_ID, clock));
        let clock_of = |data: &[u8]| {
            let streams = TraceStreams::of_file(data);
            PacketIndex::new(&streams, &mut ReadReport::default()).head_clock()
        };
        let monotonic = timestamp(builtin_clock::MONOTONIC);
        assert_eq!(clock_of(&monotonic), Clock::Monotonic);
        assert_eq!(clock_of(&timestamp(FIRST_CUSTOM_CLOCK)), Clock::Boottime);
        let two = [&monotonic[..], &timestamp(builtin_clock::REALTIME)].concat();
        assert_eq!(clock_of(&two), Clock::Boottime);
    }

    #[test]
    fn a_method_trace_is_known_by_its_contents() {
        let whole = [&ALWAYS_ON_MAGIC[..], &[0; 26]].concat();
        let content = |payload: &[u8]| {
            let mut out = Vec::new();
            bytes(&mut out, PAYLOAD, payload);
            out
        };
        assert_eq!(method_trace_payload(&content(&whole)), Some(&whole[..]));
        assert_eq!(method_trace_payload(&content(&whole[..31])), None, "shorter than a header");
        assert_eq!(method_trace_payload(&content(&[0; 40])), None);
    }

    /// Collects the packages of processes.
    #[derive(Default)]
    struct PackageLog(Vec<(Pid, Option<(String, bool)>)>);

    impl Sink for PackageLog {
        fn process(&mut self, process: &ProcessInfo<'_>) -> io::Result<()> {
            let package = process
                .package
                .map(|package| (String::from_utf8_lossy(package.name).into_owned(), package.is_debuggable));
            self.0.push((process.pid, package));
            Ok(())
        }

        fn event(&mut self, _: &crate::formats::Event<'_>, _: &crate::formats::EventType) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_process_is_of_the_package_of_its_user_wherever_the_list_stands() {
        let processes = [
            (20, 10_007, "com.app:remote"),
            (21, 1_010_007, "com.app"),
            (30, 10_008, "com.second.ui"),
            (31, 10_008, "android.process.acore"),
            (40, 10_009, "com.unlisted"),
        ];
        let mut data = packet(|p| {
            message(p, trace_packet::PROCESS_TREE, |tree| {
                for (pid, uid, name) in processes {
                    message(tree, process_tree::PROCESSES, |process| {
                        uint(process, process_tree_process::PID, pid);
                        string(process, process_tree_process::CMDLINE, name.as_bytes());
                        uint(process, process_tree_process::UID, uid);
                    });
                }
            });
        });
        data.extend(packet(|p| {
            message(p, trace_packet::PACKAGES_LIST, |list| {
                for (name, uid, is_debuggable) in
                    [("com.app", 10_007, 1), ("com.first", 10_008, 0), ("com.second", 10_008, 0)]
                {
                    message(list, packages_list::PACKAGES, |package| {
                        string(package, package_info::NAME, name.as_bytes());
                        uint(package, package_info::UID, uid);
                        uint(package, package_info::DEBUGGABLE, is_debuggable);
                    });
                }
            });
        }));
        let streams = TraceStreams::of_file(&data);
        let index = PacketIndex::new(&streams, &mut ReadReport::default());
        let mut log = PackageLog::default();
        index.send_names(&mut log).unwrap();
        let app = |name: &str, is_debuggable| Some((name.to_owned(), is_debuggable));
        let expected = [
            (Pid(20), app("com.app", true)),
            (Pid(21), app("com.app", true)),
            (Pid(30), app("com.second", false)),
            (Pid(31), None),
            (Pid(40), None),
        ];
        assert_eq!(log.0, expected);
    }
}
