//! Reads the kernel events of a Perfetto trace, its processes and threads, clocks and losses.
//!
//! What a trace holds beside these (track events, counters, other data sources) is counted in the notes, not read.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};

use super::bundle::{self, Item, What};
use super::kinds::{Kinds, Values};
use super::wire::{fields, find, varint};
use crate::clock::{Clock, Snapshot, Snapshots};
use crate::formats::input::Input;
use crate::formats::{
    Damage, Event, EventTypeId, FormatError, Head, OpenedInput, Order, Payload, ProcessInfo, ReadReport,
    Recording, Sink, ThreadInfo, Value,
};

/// The most that all compressed packets may come to, bytes.
const MAX_INFLATED: u64 = 4 << 30;

/// `Trace.packet`, and inside a packet:
const PACKET: u32 = 1;
const FTRACE_EVENTS: u32 = 1;
const PROCESS_TREE: u32 = 2;
const CLOCK_SNAPSHOT: u32 = 6;
const TRACK_EVENT: u32 = 11;
const FTRACE_STATS: u32 = 34;
const COMPRESSED_PACKETS: u32 = 50;
const TRACK_DESCRIPTOR: u32 = 60;

/// A Perfetto trace whose head is read.
pub struct PerfettoRecording<'a> {
    streams: Vec<Cow<'a, [u8]>>,
    head: Head,
    /// What went wrong when the compressed packets were unpacked.
    unpacked: ReadReport,
}

/// Opens `input` as a Perfetto trace.
pub(in crate::formats) fn open(input: &Input) -> Result<OpenedInput<'_>, FormatError> {
    Ok(OpenedInput::Recording(Box::new(PerfettoRecording::open(input))))
}

/// Opens a Perfetto trace and pushes all of it to `sink`.
///
/// # Errors
/// As [`Recording::read`].
pub fn read(data: &[u8], order: Order, sink: &mut dyn Sink) -> io::Result<ReadReport> {
    PerfettoRecording::open(data).read(order, sink)
}

impl<'a> PerfettoRecording<'a> {
    /// Unpacks the compressed packets and goes over all packets once, without taking events apart. Any bytes open: what
    /// is wrong with them is in the report of each reading.
    pub fn open(data: &'a [u8]) -> PerfettoRecording<'a> {
        let mut unpacked = ReadReport::default();
        let streams = unpack(data, &mut unpacked);
        let survey = Survey::of(&streams, &mut ReadReport::default());
        let head = Head {
            format: "Perfetto trace".into(),
            // A bundle of events names its clock only where the clock is not BOOTTIME.
            clock: survey.clock.unwrap_or(Clock::Boottime),
            precision: 9,
            cpus: survey.bundles.iter().map(|(cpu, _)| cpu.saturating_add(1)).max(),
            snapshots: survey.snapshots,
            machine: None,
        };
        PerfettoRecording { streams, head, unpacked }
    }
}

impl Recording for PerfettoRecording<'_> {
    fn head(&self) -> &Head {
        &self.head
    }

    fn read(&self, order: Order, sink: &mut dyn Sink) -> io::Result<ReadReport> {
        sink.head(&self.head)?;
        let mut report = self.unpacked.clone();
        let survey = Survey::of(&self.streams, &mut report);
        let mut reader =
            Reader { sink, report, kinds: Kinds::default(), running: HashMap::new(), guessed: 0 };
        for packet in &survey.tasks {
            tasks(packet, reader.sink)?;
        }
        reader.bundles(&survey, order)?;
        Ok(reader.finish(&survey))
    }
}

/// The file, and each of its compressed packets as a further file.
fn unpack<'a>(data: &'a [u8], report: &mut ReadReport) -> Vec<Cow<'a, [u8]>> {
    let mut left = MAX_INFLATED;
    let mut out: Vec<Cow<'a, [u8]>> = vec![Cow::Borrowed(data)];
    let mut packets = fields(data);
    while let Some((number, packet)) = packets.next() {
        let at = (data.len() - packets.rest().len()) as u64;
        if number != PACKET {
            continue;
        }
        let compressed = fields(packet.bytes()).filter(|(n, _)| *n == COMPRESSED_PACKETS);
        for (_, zlib) in compressed {
            let mut bytes = Vec::new();
            let result = flate2::read::ZlibDecoder::new(zlib.bytes()).take(left).read_to_end(&mut bytes);
            left -= bytes.len() as u64;
            if let Err(error) = result {
                let what = format!("compressed packets that can't be unpacked wholly: {error}");
                report.damage.push(Damage { offset: at, what });
            }
            out.push(Cow::Owned(bytes));
        }
    }
    if left == 0 {
        let what = format!("the compressed packets come to over {MAX_INFLATED} bytes; the rest is left out");
        report.damage.push(Damage { offset: 0, what });
    }
    if packets.broken {
        // Where the last sound packet ends: read again, for the offset only.
        let mut packets = fields(data);
        let mut sound = 0;
        while packets.next().is_some() {
            sound = data.len() - packets.rest().len();
        }
        let missing = varint(data.get(sound + 1..).unwrap_or(&[])).map_or(String::new(), |(len, rest)| {
            format!(": the next one has {len} bytes, {} are here", rest.len())
        });
        report.damage.push(Damage { offset: sound as u64, what: format!("cut inside a packet{missing}") });
    }
    out
}

/// What has to be known before the first event.
#[derive(Default)]
struct Survey<'a> {
    clock: Option<Clock>,
    snapshots: Snapshots,
    bundles: Vec<(u32, &'a [u8])>,
    /// Packets that tell of processes and threads.
    tasks: Vec<&'a [u8]>,
    /// Overrun and dropped events of each CPU, at the start and at the end.
    overrun: BTreeMap<u32, (Option<u64>, u64)>,
    track_events: u64,
    tracks: u64,
}

impl<'a> Survey<'a> {
    fn of(streams: &'a [Cow<'_, [u8]>], report: &mut ReadReport) -> Survey<'a> {
        let mut out = Survey::default();
        let packets = streams.iter().flat_map(|s| fields(s)).filter(|(n, _)| *n == PACKET);
        let mut errors = 0;
        for (_, packet) in packets {
            for (number, value) in fields(packet.bytes()) {
                let body = value.bytes();
                match number {
                    FTRACE_EVENTS => {
                        let head = bundle::head(body);
                        errors += head.errors;
                        out.clock = match head.clock {
                            0 => out.clock,
                            2 => Some(Clock::TraceGlobal),
                            3 => Some(Clock::TraceLocal),
                            4 => Some(Clock::MonotonicRaw),
                            _ => Some(Clock::Unknown),
                        };
                        out.bundles.push((head.cpu, body));
                    }
                    PROCESS_TREE => out.tasks.push(packet.bytes()),
                    TRACK_DESCRIPTOR => {
                        out.tracks += 1;
                        out.tasks.push(packet.bytes());
                    }
                    TRACK_EVENT => out.track_events += 1,
                    CLOCK_SNAPSHOT => out.snapshots.list.extend(snapshot(body)),
                    FTRACE_STATS => out.stats(body),
                    _ => {}
                }
            }
        }
        if errors > 0 {
            let what = format!("the recorder could not read {errors} pages of the kernel's buffer");
            report.damage.push(Damage { offset: 0, what });
        }
        out
    }

    /// `FtraceStats`: phase 1 (1 start, 2 end), cpu_stats 2 {cpu 1, overrun 3, dropped_events 8}.
    fn stats(&mut self, body: &[u8]) {
        let at_start = find(body, 1).map(|v| v.number()) == Some(1);
        for (_, cpu) in fields(body).filter(|(n, _)| *n == 2) {
            let number = |n| find(cpu.bytes(), n).map_or(0, |v| v.number());
            let lost = number(3).saturating_add(number(8));
            let entry = self.overrun.entry(number(1) as u32).or_default();
            match at_start {
                true => entry.0 = Some(lost),
                false => entry.1 = lost,
            }
        }
    }
}

/// `ClockSnapshot`; only one that has all four clocks of the kernel.
fn snapshot(body: &[u8]) -> Option<Snapshot> {
    let clocks: HashMap<u64, u64> = fields(body)
        .filter(|(n, _)| *n == 1)
        .filter_map(|(_, c)| Some((find(c.bytes(), 1)?.number(), find(c.bytes(), 2)?.number())))
        .collect();
    Some(Snapshot {
        realtime: *clocks.get(&1)?,
        monotonic: *clocks.get(&3)?,
        monotonic_raw: *clocks.get(&5)?,
        boottime: *clocks.get(&6)?,
        counter: clocks.get(&9).copied(),
        ftrace: None,
        took: 0,
    })
}

/// Processes and threads of a `ProcessTree` or a `TrackDescriptor`.
fn tasks(packet: &[u8], sink: &mut dyn Sink) -> io::Result<()> {
    for (number, body) in fields(packet) {
        let body = body.bytes();
        match number {
            PROCESS_TREE => {
                for (number, task) in fields(body) {
                    let task = task.bytes();
                    let int = |n| find(task, n).map(|v| v.int32());
                    match number {
                        1 => {
                            let name = fields(task).find(|(n, _)| *n == 3).map(|(_, v)| v.bytes());
                            sink.process(&ProcessInfo { pid: int(1).unwrap_or(0), ppid: int(2), name })?;
                        }
                        2 => {
                            let name = find(task, 2).map(|v| v.bytes());
                            sink.thread(&ThreadInfo { tid: int(1).unwrap_or(0), tgid: int(3), name })?;
                        }
                        _ => {}
                    }
                }
            }
            TRACK_DESCRIPTOR => {
                if let Some(process) = find(body, 3).map(|v| v.bytes())
                    && let Some(pid) = find(process, 1)
                {
                    let name = find(process, 6).or_else(|| find(process, 2)).map(|v| v.bytes());
                    sink.process(&ProcessInfo { pid: pid.int32(), ppid: None, name })?;
                }
                if let Some(thread) = find(body, 4).map(|v| v.bytes())
                    && let Some(tid) = find(thread, 2)
                {
                    let name = find(thread, 5).map(|v| v.bytes());
                    let tgid = find(thread, 1).map(|v| v.int32());
                    sink.thread(&ThreadInfo { tid: tid.int32(), tgid, name })?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Who runs on a CPU.
#[derive(Clone, Copy)]
struct Running<'a> {
    tid: i32,
    comm: &'a [u8],
    prio: i32,
}

struct Reader<'s, 'a> {
    sink: &'s mut dyn Sink,
    report: ReadReport,
    kinds: Kinds,
    running: HashMap<u32, Running<'a>>,
    /// Switches whose leaving thread the file does not tell.
    guessed: u64,
}

impl<'a> Reader<'_, 'a> {
    fn bundles(&mut self, survey: &Survey<'a>, order: Order) -> io::Result<()> {
        let mut items: Vec<Item<'a>> = Vec::new();
        let mut broken = 0;
        for (cpu, body) in &survey.bundles {
            self.kinds.describe(body, self.sink)?;
            broken += u32::from(!bundle::items(body, *cpu, &mut items));
            if order == Order::Any {
                self.emit(&items)?;
                items.clear();
            }
        }
        if broken > 0 {
            let what = format!("{broken} bundles of events could be read in part only");
            self.report.damage.push(Damage { offset: 0, what });
        }
        items.sort_by_key(|i| (i.ts, i.cpu));
        self.emit(&items)
    }

    fn emit(&mut self, items: &[Item<'a>]) -> io::Result<()> {
        let mut values = Values::new();
        for item in items {
            match item.what {
                What::Lost => {
                    self.report.cpus.entry(item.cpu).or_default().gaps += 1;
                    self.sink.lost(item.cpu, None)?;
                }
                What::Event(message) => self.event(item, message, &mut values)?,
                What::Switch { prev_state, next_pid, next_prio, next_comm } => {
                    let kind = self.kinds.switch(self.sink)?;
                    let next = Running { tid: next_pid, comm: next_comm, prio: next_prio };
                    let prev = self.running.insert(item.cpu, next);
                    self.guessed += u64::from(prev.is_none());
                    let prev = prev.unwrap_or(Running { tid: -1, comm: b"<...>", prio: 0 });
                    let list = [
                        Value::Str(prev.comm),
                        Value::Int(prev.tid.into()),
                        Value::Int(prev.prio.into()),
                        Value::Int(prev_state),
                        Value::Str(next_comm),
                        Value::Int(next_pid.into()),
                        Value::Int(next_prio.into()),
                    ];
                    self.push(item, kind, prev.tid, 0, &list)?;
                }
                What::Waking { pid, target_cpu, prio, comm, flags } => {
                    let kind = self.kinds.waking(self.sink)?;
                    let tid = self.running.get(&item.cpu).map_or(-1, |r| r.tid);
                    // sched_waking in Perfetto's table: comm, pid, prio, success, target_cpu.
                    let list = [
                        Value::Str(comm),
                        Value::Int(pid.into()),
                        Value::Int(prio.into()),
                        Value::Int(1),
                        Value::Int(target_cpu.into()),
                    ];
                    self.push(item, kind, tid, flags, &list)?;
                }
            }
        }
        Ok(())
    }

    /// `FtraceEvent`: timestamp 1, pid 2, common_flags 5, and one message that is the event.
    fn event(&mut self, item: &Item<'a>, message: &'a [u8], values: &mut Values<'a>) -> io::Result<()> {
        let (mut tid, mut flags, mut body) = (0, 0, None);
        for (number, value) in fields(message) {
            match number {
                1 => {}
                2 => tid = value.int32(),
                5 => flags = value.number() as u8,
                number => body = Some((number, value.bytes())),
            }
        }
        let Some((number, body)) = body else {
            self.report.notes.push("an event without its message was left out".into());
            self.report.notes.dedup();
            return Ok(());
        };
        let kind = self.kinds.decode(number, body, values, self.sink)?;
        if number == 4 {
            let int = |at: usize| match values.list[at] {
                Value::Int(v) => v as i32,
                _ => 0,
            };
            let Value::Str(comm) = values.list[4] else { return Ok(()) };
            self.running.insert(item.cpu, Running { tid: int(5), comm, prio: int(6) });
        } else {
            self.running.entry(item.cpu).or_insert(Running { tid, comm: b"<...>", prio: 0 });
        }
        if let Some(at) = values.array_field {
            let array = values.array;
            let mut list = values.list;
            list[at] = Value::Bytes(&array[..values.array_len]);
            return self.push(item, kind, tid, flags, &list[..values.len]);
        }
        self.push(item, kind, tid, flags, &values.list[..values.len])
    }

    fn push(
        &mut self,
        item: &Item<'_>,
        kind: EventTypeId,
        tid: i32,
        flags: u8,
        list: &[Value<'_>],
    ) -> io::Result<()> {
        self.report.count(item.cpu, item.ts);
        // A switch names the thread that leaves; any other event is of the thread that runs.
        let comm = match list {
            [Value::Str(prev), Value::Int(pid), .., Value::Int(_), Value::Int(_)]
                if *pid == i64::from(tid) =>
            {
                Some(*prev)
            }
            _ => self.running.get(&item.cpu).filter(|r| r.tid == tid).map(|r| r.comm),
        };
        let comm = comm.filter(|comm| tid > 0 && *comm != b"<...>");
        let event = Event {
            ts: item.ts,
            cpu: item.cpu,
            tid,
            kind,
            flags: flags.into(),
            preempt_count: 0,
            comm,
            tgid: None,
            payload: Payload::Values { values: list, text: None },
        };
        self.sink.event(&event, self.kinds.get(kind))
    }

    fn finish(mut self, survey: &Survey<'_>) -> ReadReport {
        for (cpu, (start, end)) in &survey.overrun {
            // Without a count from the start the kernel's number may be from before this recording.
            if let Some(start) = start {
                self.report.cpus.entry(*cpu).or_default().lost += end.saturating_sub(*start);
            }
        }
        let mut note = |count: u64, what: &str| {
            if count > 0 {
                self.report.notes.push(format!("{count} {what}"));
            }
        };
        note(survey.track_events, "track events (slices, counters) that are not kernel events");
        note(survey.tracks, "track descriptors");
        note(
            self.guessed,
            "first switches of a CPU do not tell which thread left (compact sched leaves it out)",
        );
        if !self.kinds.unknown.is_empty() {
            let what = format!("kinds of events that this version does not know: {:?}", self.kinds.unknown);
            self.report.notes.push(what);
        }
        self.report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::EventType;

    #[derive(Default)]
    struct Log(Vec<String>);

    impl Sink for Log {
        fn process(&mut self, p: &ProcessInfo<'_>) -> io::Result<()> {
            self.0.push(format!("process {} {}", p.pid, String::from_utf8_lossy(p.name.unwrap_or(b""))));
            Ok(())
        }
        fn event(&mut self, e: &Event<'_>, kind: &EventType) -> io::Result<()> {
            let mut line = format!("{} cpu{} {}:", e.ts, e.cpu, e.tid).into_bytes();
            line.extend_from_slice(kind.name.as_bytes());
            line.push(b' ');
            crate::formats::event_catalog::render(e, kind, &mut line);
            self.0.push(String::from_utf8_lossy(&line).into_owned());
            Ok(())
        }
        fn lost(&mut self, cpu: u32, count: Option<u64>) -> io::Result<()> {
            self.0.push(format!("lost {count:?} on {cpu}"));
            Ok(())
        }
    }

    fn message(number: u8, body: &[u8]) -> Vec<u8> {
        let mut out = vec![];
        let mut tag = u32::from(number) << 3 | 2;
        while tag > 0x7f {
            out.push(tag as u8 | 0x80);
            tag >>= 7;
        }
        out.push(tag as u8);
        out.push(body.len() as u8);
        out.extend_from_slice(body);
        out
    }

    fn packet(number: u8, body: &[u8]) -> Vec<u8> {
        message(1, &message(number, body))
    }

    /// CPU 2: a print at 9 by thread 7, a switch to 5 at 10 and one back to 0 at 12, the waking of 5 at 11; lost before.
    fn bundle_of_all() -> Vec<u8> {
        let print = [&[8, 9, 16, 7][..], &message(3, &message(2, b"B|7|x"))].concat();
        let compact = [
            message(5, b"sh"),
            message(5, b"swapper"),
            message(1, &[10, 2]),
            message(2, &[1, 2]),
            message(3, &[5, 0]),
            message(4, &[120, 120]),
            message(6, &[0, 1]),
            message(7, &[11]),
            message(8, &[5]),
            message(9, &[2]),
            message(10, &[120]),
            message(11, &[0]),
        ]
        .concat();
        [&[8, 2, 24, 1][..], &message(4, &compact), &message(2, &print)].concat()
    }

    const ALL: [&str; 5] = [
        "lost None on 2",
        "9 cpu2 7:print ip=0 buf=B|7|x",
        "10 cpu2 7:sched_switch prev_comm=<...> prev_pid=7 prev_prio=0 prev_state=S ==> next_comm=sh next_pid=5 next_prio=120",
        "11 cpu2 5:sched_waking comm=sh pid=5 prio=120 target_cpu=002",
        "12 cpu2 5:sched_switch prev_comm=sh prev_pid=5 prev_prio=120 prev_state=D ==> next_comm=swapper next_pid=0 next_prio=120",
    ];

    fn read_log(data: &[u8]) -> (Vec<String>, ReadReport) {
        let mut log = Log::default();
        let report = read(data, Order::Any, &mut log).unwrap();
        (log.0, report)
    }

    #[test]
    fn compact_and_whole_events_come_in_one_order() {
        let (log, report) = read_log(&packet(1, &bundle_of_all()));
        assert_eq!(log, ALL);
        assert_eq!((report.events(), report.cpus[&2].gaps), (4, 1));
    }

    #[test]
    fn compressed_packets_are_read_like_others() {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        io::Write::write_all(&mut zlib, &packet(1, &bundle_of_all())).unwrap();
        let (log, report) = read_log(&packet(50, &zlib.finish().unwrap()));
        assert_eq!(log, ALL);
        assert!(report.damage.is_empty());
    }

    #[test]
    fn a_trace_cut_anywhere_gives_what_is_whole_and_says_what_is_missing() {
        let tree = packet(2, &message(1, &[&[8, 7][..], &message(3, b"app")].concat()));
        let data = [packet(1, &bundle_of_all()), tree.clone()].concat();
        let (log, _) = read_log(&data);
        assert_eq!(log[0], "process 7 app");
        for cut in 1..data.len() {
            let (log, report) = read_log(&data[..cut]);
            if cut >= data.len() - tree.len() {
                assert_eq!(log, ALL);
            }
            assert_eq!(report.damage.is_empty(), cut == data.len() - tree.len(), "cut at {cut}: {report:?}");
        }
    }

    #[test]
    fn events_without_a_message_of_their_own_keep_their_names() {
        let f = |name: &[u8], value: &[u8]| message(2, &[message(1, name), value.to_vec()].concat());
        let body = [message(1, b"x/y"), f(b"a", &[32, 5]), f(b"s", &message(3, b"t"))].concat();
        // 327 << 3 | 2 as a varint.
        let event = [&[8, 9, 16, 7, 0xba, 0x14, body.len() as u8][..], &body].concat();
        let (log, _) = read_log(&packet(1, &message(2, &event)));
        assert_eq!(log, ["9 cpu0 7:y a=5 s=t"]);
    }
}
