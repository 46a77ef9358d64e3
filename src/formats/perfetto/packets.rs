//! The first pass over a trace: decompresses packets and collects the clocks and names that the events depend
//! on.
//!
//! Packets may come in any order. So the clock, the clock snapshots and the names of threads must be known
//! before the first event is pushed.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};

use super::bundle;
use super::fields::{
    builtin_clock, clock_snapshot, clock_snapshot_clock, ftrace_clock, ftrace_cpu_stats, ftrace_stats,
    ftrace_stats_phase, process_descriptor, process_tree, process_tree_process, process_tree_thread,
    thread_descriptor, trace, trace_packet, track_descriptor,
};
use super::wire::read::{WireValue, fields, last_value, varint};
use crate::clock::{Clock, Snapshot, Snapshots};
use crate::formats::{Damage, ProcessInfo, ReadReport, Sink, ThreadInfo};

/// The largest total size of all decompressed packets of a file, bytes.
const MAX_INFLATED_BYTES: u64 = 4 << 30;

/// Returns the file and, for each compressed packet, the unpacked packets.
pub(super) fn unpack<'a>(data: &'a [u8], report: &mut ReadReport) -> Vec<Cow<'a, [u8]>> {
    let mut left = MAX_INFLATED_BYTES;
    let mut out: Vec<Cow<'a, [u8]>> = vec![Cow::Borrowed(data)];
    let mut packets = fields(data);
    while let Some((number, packet)) = packets.next() {
        let at = (data.len() - packets.rest().len()) as u64;
        if number != trace::PACKET {
            continue;
        }
        let compressed = fields(packet.bytes()).filter(|(n, _)| *n == trace_packet::COMPRESSED_PACKETS);
        for (_, zlib) in compressed {
            let mut bytes = Vec::new();
            let result = flate2::read::ZlibDecoder::new(zlib.bytes()).take(left).read_to_end(&mut bytes);
            left -= bytes.len() as u64;
            if let Err(error) = result {
                let what = format!("the compressed packets can be unpacked in part only: {error}");
                report.damage.push(Damage { offset: at, what });
            }
            out.push(Cow::Owned(bytes));
        }
    }
    if left == 0 {
        let what = format!(
            "the compressed packets unpack to more than {MAX_INFLATED_BYTES} bytes; the rest is not read"
        );
        report.damage.push(Damage { offset: 0, what });
    }
    if packets.broken {
        report.damage.push(cut_packet(data));
    }
    out
}

/// Describes the damage of a file whose last packet is cut. The file is read again to find the offset.
fn cut_packet(data: &[u8]) -> Damage {
    let mut packets = fields(data);
    let mut sound = 0;
    while packets.next().is_some() {
        sound = data.len() - packets.rest().len();
    }
    // The tag of `Trace.packet` takes one byte.
    let missing = varint(data.get(sound + 1..).unwrap_or(&[])).map_or(String::new(), |(len, rest)| {
        format!(": the packet has {len} bytes, but the file holds only {} of them", rest.len())
    });
    Damage { offset: sound as u64, what: format!("the file is cut inside a packet{missing}") }
}

/// The data that the first pass collects.
#[derive(Default)]
pub(super) struct PacketIndex<'a> {
    pub(super) clock: Option<Clock>,
    pub(super) snapshots: Snapshots,
    /// The CPU and the encoded `FtraceEventBundle`, in the order of the file.
    pub(super) bundles: Vec<(u32, &'a [u8])>,
    /// Packets that name processes and threads.
    naming_packets: Vec<&'a [u8]>,
    lost: BTreeMap<u32, LostEventCount>,
    pub(super) track_events: u64,
    pub(super) tracks: u64,
}

/// Lost events of one CPU as the kernel counts them: overrun and dropped events since the ring buffer was
/// allocated.
#[derive(Default)]
struct LostEventCount {
    at_start: Option<u64>,
    at_end: u64,
}

impl<'a> PacketIndex<'a> {
    pub(super) fn of(streams: &'a [Cow<'_, [u8]>], report: &mut ReadReport) -> PacketIndex<'a> {
        let mut out = PacketIndex::default();
        let packets = streams.iter().flat_map(|s| fields(s)).filter(|(n, _)| *n == trace::PACKET);
        let mut unparsed = 0;
        for (_, packet) in packets {
            for (number, value) in fields(packet.bytes()) {
                let body = value.bytes();
                match number {
                    trace_packet::FTRACE_EVENTS => {
                        let head = bundle::head(body);
                        unparsed += head.unparsed_pages;
                        out.clock = match head.clock {
                            ftrace_clock::UNSPECIFIED => out.clock,
                            ftrace_clock::GLOBAL => Some(Clock::TraceGlobal),
                            ftrace_clock::LOCAL => Some(Clock::TraceLocal),
                            ftrace_clock::MONO_RAW => Some(Clock::MonotonicRaw),
                            _ => Some(Clock::Unknown),
                        };
                        out.bundles.push((head.cpu, body));
                    }
                    trace_packet::PROCESS_TREE => out.naming_packets.push(packet.bytes()),
                    trace_packet::TRACK_DESCRIPTOR => {
                        out.tracks += 1;
                        out.naming_packets.push(packet.bytes());
                    }
                    trace_packet::TRACK_EVENT => out.track_events += 1,
                    trace_packet::CLOCK_SNAPSHOT => out.snapshots.list.extend(snapshot(body)),
                    trace_packet::FTRACE_STATS => out.add_stats(body),
                    _ => {}
                }
            }
        }
        if unparsed > 0 {
            let what = format!("the recorder could not parse {unparsed} pages of the kernel's ring buffer");
            report.damage.push(Damage { offset: 0, what });
        }
        out
    }

    /// Reads an `FtraceStats` message.
    fn add_stats(&mut self, body: &[u8]) {
        let phase = last_value(body, ftrace_stats::PHASE).map(WireValue::number);
        for (_, cpu) in fields(body).filter(|(n, _)| *n == ftrace_stats::CPU_STATS) {
            let number = |n| last_value(cpu.bytes(), n).map_or(0, |v| v.number());
            let overrun = number(ftrace_cpu_stats::OVERRUN);
            let lost = overrun.saturating_add(number(ftrace_cpu_stats::DROPPED_EVENTS));
            let count = self.lost.entry(number(ftrace_cpu_stats::CPU) as u32).or_default();
            match phase {
                Some(ftrace_stats_phase::START_OF_TRACE) => count.at_start = Some(lost),
                _ => count.at_end = lost,
            }
        }
    }

    /// The CPUs and the number of events that each of them lost during the recording. CPUs without a count
    /// from the start of the recording are left out: the kernel's count may include losses from before the
    /// recording.
    pub(super) fn lost_events(&self) -> impl Iterator<Item = (u32, u64)> + use<'_> {
        let lost = |c: &LostEventCount| c.at_start.map(|start| c.at_end.saturating_sub(start));
        self.lost.iter().filter_map(move |(cpu, count)| Some((*cpu, lost(count)?)))
    }

    /// Pushes the processes and threads that `ProcessTree` and `TrackDescriptor` messages name.
    pub(super) fn send_names(&self, sink: &mut dyn Sink) -> io::Result<()> {
        for packet in &self.naming_packets {
            for (number, body) in fields(packet) {
                match number {
                    trace_packet::PROCESS_TREE => send_process_tree(body.bytes(), sink)?,
                    trace_packet::TRACK_DESCRIPTOR => send_track_owner(body.bytes(), sink)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// Reads a `ClockSnapshot`. Returns `None` unless the message has all four clocks of the kernel.
fn snapshot(body: &[u8]) -> Option<Snapshot> {
    let clock = |message| {
        let id = last_value(message, clock_snapshot_clock::CLOCK_ID)?.number();
        Some((id, last_value(message, clock_snapshot_clock::TIMESTAMP)?.number()))
    };
    let clocks: HashMap<u64, u64> = fields(body)
        .filter(|(n, _)| *n == clock_snapshot::CLOCKS)
        .filter_map(|(_, message)| clock(message.bytes()))
        .collect();
    Some(Snapshot {
        realtime: *clocks.get(&builtin_clock::REALTIME)?,
        monotonic: *clocks.get(&builtin_clock::MONOTONIC)?,
        monotonic_raw: *clocks.get(&builtin_clock::MONOTONIC_RAW)?,
        boottime: *clocks.get(&builtin_clock::BOOTTIME)?,
        counter: clocks.get(&builtin_clock::TSC).copied(),
        ftrace: None,
        took: 0,
    })
}

fn send_process_tree(tree: &[u8], sink: &mut dyn Sink) -> io::Result<()> {
    for (number, message) in fields(tree) {
        let message = message.bytes();
        let int = |n| last_value(message, n).map(WireValue::int32);
        match number {
            process_tree::PROCESSES => {
                // The first of the repeated strings is the program; its arguments follow.
                let mut cmdline = fields(message).filter(|(n, _)| *n == process_tree_process::CMDLINE);
                sink.process(&ProcessInfo {
                    pid: int(process_tree_process::PID).unwrap_or(0),
                    ppid: int(process_tree_process::PPID),
                    name: cmdline.next().map(|(_, v)| v.bytes()),
                })?;
            }
            process_tree::THREADS => sink.thread(&ThreadInfo {
                tid: int(process_tree_thread::TID).unwrap_or(0),
                tgid: int(process_tree_thread::TGID),
                name: last_value(message, process_tree_thread::NAME).map(WireValue::bytes),
            })?,
            _ => {}
        }
    }
    Ok(())
}

/// Pushes the process or thread that a `TrackDescriptor` belongs to.
fn send_track_owner(track: &[u8], sink: &mut dyn Sink) -> io::Result<()> {
    if let Some(process) = last_value(track, track_descriptor::PROCESS).map(WireValue::bytes)
        && let Some(pid) = last_value(process, process_descriptor::PID)
    {
        let name = last_value(process, process_descriptor::PROCESS_NAME)
            .or_else(|| last_value(process, process_descriptor::CMDLINE))
            .map(WireValue::bytes);
        sink.process(&ProcessInfo { pid: pid.int32(), ppid: None, name })?;
    }
    if let Some(thread) = last_value(track, track_descriptor::THREAD).map(WireValue::bytes)
        && let Some(tid) = last_value(thread, thread_descriptor::TID)
    {
        let name = last_value(thread, thread_descriptor::THREAD_NAME).map(WireValue::bytes);
        let tgid = last_value(thread, thread_descriptor::PID).map(WireValue::int32);
        sink.thread(&ThreadInfo { tid: tid.int32(), tgid, name })?;
    }
    Ok(())
}
