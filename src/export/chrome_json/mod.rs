//! Writes Chrome's JSON trace format ("Trace Event Format"), which chrome://tracing, Perfetto and Speedscope
//! open.
//!
//! Markers become `B` and `E` events on their threads. Asynchronous markers become `b`, `e` and `n` events,
//! counters `C` events, and instants `i` events. Methods become `B` and `E` events on a track of their own
//! beside the track of their thread, with the thread's CPU time in `tts`. CPUs become threads of a process of
//! their own, with a slice for each time that a thread had the CPU. The states of a thread and the frames of
//! FrameTimeline become `b` and `e` events in their process. Samples become `P` events, whose `sf` names a
//! stack among the `stackFrames` at the end. Integers that a double cannot hold become strings.
//!
//! Times are µs with three decimals, which is exact. But most viewers read numbers as doubles, add `dur` to
//! `ts`, and get a sum that may be greater than the `ts` of the next event. Slices of threads, methods and
//! CPUs are therefore written as `B` and `E` events, which have no duration. Interrupts are `X` events, and
//! [`Duration`] writes their `dur` so that the sum is not greater.
//!
//! Speedscope sorts the ends before the begins of the same time, but a begin before an end of the same name.
//! [`SliceTrack`] writes an end 1 ns later if a slice has begun at its time, and a begin 1 ns later if a
//! slice of the same name has ended at its time, so that every viewer nests the slices alike.

mod json_text;
mod stack_frames;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};
use std::sync::Arc;

use data_encoding::HEXLOWER;

use self::json_text::{
    Duration, FRAME_CATEGORY, JsonPlace, LATE_COLOR, Micros, SliceTrack, frame_args, json_int, json_string,
};
use self::stack_frames::StackFrames;
use super::Out;
use super::writer_thread::WriterThread;
use crate::clock::Timestamp;
use crate::formats::samples::SampleTables;
use crate::formats::{CounterValue, Event, EventType, Flow, TimelineFrame, Value};
use crate::ids::{Cpu, Pid, Tid};
use crate::timeline::{MergeSummary, MethodThread, TimelineSink};
use crate::tracks::thread_names::{SECOND_TRACK, method_process, method_track_id};
use crate::tracks::{
    AsyncEdge, AsyncSlice, CounterSample, CounterScope, MethodCall, MethodLabel, OpenMethod, OwnTrack, Span,
    TakenSample, Task, Tasks, ThreadState, TrackBuilder, TrackSink, counter_number,
};

/// The process that stands for the CPUs. No kernel has this pid: PID_MAX_LIMIT is 2^22.
const CPU_PROCESS: Pid = Pid(1 << 23);
/// The process of tracks that belong to no process.
const TRACK_PROCESS: Pid = Pid(CPU_PROCESS.0 + 1);
/// The first thread id of the tracks that programs write themselves. Tracks of whole threads have the ids of
/// their threads. Perfetto reads 32 bits of a thread id, and no kernel uses the last one: PID_MAX_LIMIT is
/// 2^22.
const OWN_TRACKS: i64 = 1 << 31;

/// Makes the writer, which writes to `out`.
pub(super) fn create(out: Out) -> Box<dyn TimelineSink> {
    let json = ChromeJsonWriter {
        writer: WriterThread::new(out),
        out: b"{\"traceEvents\":[".to_vec(),
        slices: HashMap::new(),
        cpu_slices: HashMap::new(),
        tracks: BTreeMap::new(),
        flows: HashSet::new(),
        frames: 0,
        stacks: StackFrames::default(),
        first: true,
    };
    Box::new(TrackBuilder::new(json))
}

struct ChromeJsonWriter {
    writer: WriterThread,
    out: Vec<u8>,
    /// The slices of markers, by thread id, and of methods, by [`method_track_id`].
    slices: HashMap<Tid, SliceTrack>,
    /// The times of threads on each CPU.
    cpu_slices: HashMap<Cpu, SliceTrack>,
    /// The names of the tracks that are not kernel threads, by process id and track id.
    tracks: BTreeMap<JsonPlace, String>,
    /// Flows that have begun.
    flows: HashSet<u64>,
    /// The number of frames so far.
    frames: u64,
    stacks: StackFrames,
    first: bool,
}

impl ChromeJsonWriter {
    /// Writes an event: the members that all events have, then the members that `more` appends.
    fn event(
        &mut self,
        phase: u8,
        place: JsonPlace,
        ts: Timestamp,
        name: &[u8],
        cat: &str,
        more: impl FnOnce(&mut Vec<u8>),
    ) -> io::Result<()> {
        let out = &mut self.out;
        out.extend(if std::mem::take(&mut self.first) { &b"\n{"[..] } else { b",\n{" });
        write!(out, "\"ph\":\"{}\",\"pid\":{},\"tid\":{},", char::from(phase), place.pid, place.tid)?;
        write!(out, "\"ts\":{}", Micros(ts.0))?;
        out.extend(b",\"name\":");
        json_string(out, name);
        if !cat.is_empty() {
            write!(out, ",\"cat\":\"{cat}\"")?;
        }
        more(out);
        out.push(b'}');
        self.writer.write_if_full(&mut self.out)
    }

    /// Writes a whole slice as an `X` event.
    fn complete(
        &mut self,
        place: JsonPlace,
        span: Span,
        name: &[u8],
        cat: &str,
        args: &[(&'static str, Vec<u8>)],
    ) -> io::Result<()> {
        self.event(b'X', place, span.start, name, cat, |out| {
            let _ = write!(out, ",\"dur\":{}", Duration::new(span));
            json_args(out, args, span.open);
        })
    }

    /// The process id and thread id for the events of a track. The track of a thread itself is that thread;
    /// any other track gets a thread id that no kernel thread has.
    fn own_place(&mut self, track: &OwnTrack) -> JsonPlace {
        match (track.name.as_str(), track.place()) {
            ("", (tgid, Some(tid))) => place(Task { tid, tgid }),
            (_, (pid, tid)) => {
                let process = pid.or(tid.map(Pid::of_main_thread)).unwrap_or(TRACK_PROCESS);
                let place = JsonPlace { pid: process.into(), tid: OWN_TRACKS + i64::from(track.id.0) };
                self.name_track(place, || track.label());
                place
            }
        }
    }

    fn name_track(&mut self, place: JsonPlace, name: impl FnOnce() -> String) {
        self.tracks.entry(place).or_insert_with(name);
    }

    fn metadata(&mut self, kind: &str, place: JsonPlace, name: &str) -> io::Result<()> {
        self.event(b'M', place, Timestamp::MIN, kind.as_bytes(), "", |out| {
            out.extend(b",\"args\":{\"name\":");
            json_string(out, name.as_bytes());
            out.push(b'}');
        })
    }
}

/// Appends the member for the thread's CPU time, ns.
fn thread_time(out: &mut Vec<u8>, cpu: Option<u64>) {
    if let Some(cpu) = cpu {
        let _ = write!(out, ",\"tts\":{}", Micros(cpu));
    }
}

/// Appends the arguments of an event of a track. `open` says that the slice's end is not known.
fn json_args(out: &mut Vec<u8>, args: &[(&'static str, Vec<u8>)], open: bool) {
    if args.is_empty() && !open {
        return;
    }
    let mut begin: &[u8] = b",\"args\":{";
    for (name, value) in args {
        out.extend_from_slice(begin);
        json_string(out, name.as_bytes());
        out.push(b':');
        json_string(out, value);
        begin = b",";
    }
    if open {
        out.extend_from_slice(begin);
        out.extend_from_slice(b"\"open\":1");
    }
    out.push(b'}');
}

/// The place of a task's events.
fn place(at: Task) -> JsonPlace {
    JsonPlace { pid: at.process().into(), tid: at.tid.into() }
}

/// The place of events of a whole process: its main thread.
fn process_place(pid: Pid) -> JsonPlace {
    JsonPlace { pid: pid.into(), tid: pid.main_thread().into() }
}

/// The place of a counter's values, which viewers show by process.
fn counter_place(pid: Pid) -> JsonPlace {
    JsonPlace { pid: pid.into(), tid: 0 }
}

/// The place of the events of a CPU.
fn cpu_place(cpu: Cpu) -> JsonPlace {
    JsonPlace { pid: CPU_PROCESS.into(), tid: cpu.into() }
}

impl TrackSink for ChromeJsonWriter {
    fn begin(&mut self, at: Task, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        let ts = self.slices.entry(at.tid).or_default().begin(ts, place(at), name);
        self.event(b'B', place(at), ts, name, "atrace", |_| ())
    }

    fn end(&mut self, _: &Tasks, at: Task, span: Span, name: &[u8]) -> io::Result<()> {
        let track = self.slices.entry(at.tid).or_default();
        let Some((ts, place)) = track.end(span.end, name) else { return Ok(()) };
        self.event(b'E', place, ts, name, "atrace", |_| ())
    }

    fn async_edge(&mut self, _: &Tasks, pid: Pid, slice: &AsyncSlice<'_>) -> io::Result<()> {
        let phase = match slice.edge {
            AsyncEdge::Begin => b'b',
            AsyncEdge::End { .. } => b'e',
            AsyncEdge::EndWithoutBegin => return Ok(()),
            AsyncEdge::Instant => b'n',
        };
        self.event(phase, process_place(pid), slice.ts, slice.name, "atrace", |out| {
            // Viewers match the begin and the end of a slice by this id. A track may have the name of slices
            // without a track.
            out.extend(b",\"id2\":{\"local\":");
            let cookie = format!("/{}", slice.cookie);
            let id = match slice.track {
                Some(track) => [b"track ", track, cookie.as_bytes()].concat(),
                None => [slice.name, cookie.as_bytes()].concat(),
            };
            json_string(out, &id);
            out.push(b'}');
            let track: Vec<_> = slice.track.map(|track| ("track", track.to_vec())).into_iter().collect();
            json_args(out, &track, slice.ended().is_some_and(|span| span.open));
        })
    }

    fn thread_ended(&mut self, names: &Tasks, at: Task) -> io::Result<()> {
        let name = names.thread_name(at.tid);
        if !name.is_empty() {
            self.metadata("thread_name", place(at), &name)?;
        }
        let process = names.process_name(at.process());
        if at.tid.is_main_of(at.process()) && !process.is_empty() {
            self.metadata("process_name", place(at), &process)?;
        }
        Ok(())
    }

    fn instant(&mut self, _: &Tasks, at: Task, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        self.event(b'i', place(at), ts, name, "atrace", |out| out.extend(b",\"s\":\"t\""))
    }

    fn counter(&mut self, _: &Tasks, scope: CounterScope, counter: CounterSample<'_>) -> io::Result<()> {
        let CounterSample { name, ts, value } = counter;
        let (pid, name) = match scope {
            CounterScope::Process(pid) => (pid, name.to_owned()),
            CounterScope::Cpu(cpu) => (CPU_PROCESS, format!("cpu{cpu} {name}")),
            CounterScope::System => (CPU_PROCESS, name.to_owned()),
        };
        self.event(b'C', counter_place(pid), ts, name.as_bytes(), "", |out| {
            out.extend(b",\"args\":{\"value\":");
            json_int(out, value);
            out.push(b'}');
        })
    }

    fn on_cpu(&mut self, names: &Tasks, cpu: Cpu, at: Task, span: Span, prio: i64) -> io::Result<()> {
        let name = names.thread_name(at.tid);
        let place = cpu_place(cpu);
        self.name_track(place, || format!("CPU {cpu}"));
        let args = |out: &mut Vec<u8>| {
            let open = if span.open { ",\"open\":1" } else { "" };
            let _ = write!(out, ",\"args\":{{\"tid\":{},\"prio\":{prio}{open}}}", at.tid);
        };
        // Speedscope takes a begin and an end for one slice if they have the same name and arguments.
        let key = [name.as_bytes(), &at.tid.0.to_le_bytes()].concat();
        let track = self.cpu_slices.entry(cpu).or_default();
        let begin = track.begin(span.start, place, &key);
        let end = track.end(span.end, &key).map_or(begin, |(end, _)| end);
        self.event(b'B', place, begin, name.as_bytes(), "sched", args)?;
        self.event(b'E', place, end, name.as_bytes(), "sched", args)
    }

    fn state(&mut self, _: &Tasks, at: Task, state: &ThreadState) -> io::Result<()> {
        let span = state.span;
        let state = state.state.name();
        let id = |out: &mut Vec<u8>| {
            let _ = write!(out, ",\"id2\":{{\"local\":\"state of {}\"}}", at.tid);
        };
        self.event(b'b', place(at), span.start, state.as_bytes(), "thread_state", id)?;
        self.event(b'e', place(at), span.end, state.as_bytes(), "thread_state", id)
    }

    fn irq(&mut self, cpu: Cpu, name: &str, span: Span) -> io::Result<()> {
        let tid = i64::from(SECOND_TRACK) + i64::from(cpu);
        let place = JsonPlace { pid: CPU_PROCESS.into(), tid };
        self.name_track(place, || format!("CPU {cpu} interrupts"));
        self.complete(place, span, name.as_bytes(), "irq", &[])
    }

    fn method_begin(&mut self, at: &MethodThread, method: &MethodLabel, open: &OpenMethod) -> io::Result<()> {
        let id = method_track_id(at);
        let name = method.full.as_bytes();
        let place = JsonPlace { pid: method_process(at).unwrap_or_default().into(), tid: id.into() };
        self.name_track(place, || format!("{} methods", at.name));
        let ts = self.slices.entry(id).or_default().begin(open.begun, place, name);
        self.event(b'B', place, ts, name, "method", |out| thread_time(out, open.cpu))
    }

    fn method(&mut self, _: &Tasks, call: &MethodCall<'_>) -> io::Result<()> {
        let track = self.slices.entry(method_track_id(call.at)).or_default();
        let name = call.method.full.as_bytes();
        let Some((ts, place)) = track.end(call.span.end, name) else { return Ok(()) };
        self.event(b'E', place, ts, name, "method", |out| thread_time(out, call.cpu.map(|(_, end)| end)))
    }

    fn sample_set(&mut self, _: u32, tables: &Arc<SampleTables>) {
        self.stacks.add_set(tables);
    }

    fn sample(&mut self, _: &Tasks, taken: &TakenSample<'_>) -> io::Result<()> {
        let TakenSample { set, tables, at, sample } = *taken;
        let stack = self.stacks.use_stack(set, sample.stack);
        let event = &tables.events[sample.event as usize];
        self.event(b'P', place(at), sample.time, event.name.as_bytes(), "sample", |out| {
            if let Some(id) = stack {
                let _ = write!(out, ",\"sf\":\"{id}\"");
            }
            let _ = write!(out, ",\"args\":{{\"weight\":");
            json_int(out, i64::try_from(sample.period).unwrap_or(i64::MAX));
            if let Some(cpu) = sample.cpu {
                let _ = write!(out, ",\"cpu\":{cpu}");
            }
            out.push(b'}');
        })
    }

    fn track_slice(&mut self, track: &OwnTrack, span: Span, name: &[u8], _: usize) -> io::Result<()> {
        let place = self.own_place(track);
        self.complete(place, span, name, "track_event", track.args())
    }

    fn track_instant(&mut self, track: &OwnTrack, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        let place = self.own_place(track);
        self.event(b'i', place, ts, name, "track_event", |out| {
            out.extend(b",\"s\":\"t\"");
            json_args(out, track.args(), false);
        })
    }

    fn track_counter(&mut self, track: &OwnTrack, ts: Timestamp, value: CounterValue) -> io::Result<()> {
        let pid = track.place().0.unwrap_or(TRACK_PROCESS);
        self.event(b'C', counter_place(pid), ts, track.label().as_bytes(), "", |out| {
            out.extend(b",\"args\":{\"value\":");
            match counter_number(value) {
                Ok(value) => json_int(out, value),
                Err(value) if value.is_finite() => {
                    let _ = write!(out, "{value}");
                }
                Err(value) => json_string(out, value.to_string().as_bytes()),
            }
            out.push(b'}');
        })
    }

    /// All frames of a row have the row's name and an id of their own: so viewers show them in one row,
    /// though they overlap.
    fn frame(
        &mut self,
        _: &Tasks,
        track: &OwnTrack,
        span: Span,
        frame: &TimelineFrame<'_>,
    ) -> io::Result<()> {
        let place = process_place(frame.pid);
        let name = track.name.as_bytes();
        self.frames += 1;
        let id = format!(",\"id2\":{{\"local\":\"frame {}\"}}", self.frames);
        self.event(b'b', place, span.start, name, FRAME_CATEGORY, |out| {
            out.extend(id.as_bytes());
            if frame.is_late() {
                out.extend(LATE_COLOR);
            }
            frame_args(out, frame, span.open);
        })?;
        self.event(b'e', place, span.end, name, FRAME_CATEGORY, |out| out.extend(id.as_bytes()))
    }

    fn track_flow(&mut self, track: &OwnTrack, ts: Timestamp, flow: Flow) -> io::Result<()> {
        let phase = match (self.flows.insert(flow.id), flow.ends) {
            (_, true) => {
                self.flows.remove(&flow.id);
                b'f'
            }
            (true, false) => b's',
            (false, false) => b't',
        };
        let place = self.own_place(track);
        self.event(phase, place, ts, b"flow", "track_event", |out| {
            let _ = write!(out, ",\"id\":\"{:#x}\",\"bp\":\"e\"", flow.id);
        })
    }

    fn other(&mut self, _: &Tasks, at: Task, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        let cat = if kind.system.is_empty() { "ftrace" } else { &kind.system };
        self.event(b'i', place(at), event.ts, kind.name.as_bytes(), cat, |out| {
            let _ = write!(out, ",\"s\":\"t\",\"args\":{{\"cpu\":{}", event.cpu);
            for (i, field) in kind.fields.iter().enumerate() {
                let Some(value) = event.value(kind, i) else { continue };
                out.push(b',');
                json_string(out, field.name.as_bytes());
                out.push(b':');
                match value {
                    Value::Int(v) => json_int(out, v),
                    Value::Uint(v) => match i64::try_from(v) {
                        Ok(v) => json_int(out, v),
                        Err(_) => {
                            let _ = write!(out, "\"{v}\"");
                        }
                    },
                    Value::Str(s) => json_string(out, s),
                    Value::Bytes(bytes) => {
                        json_string(out, HEXLOWER.encode(bytes).as_bytes());
                    }
                }
            }
            out.push(b'}');
        })
    }

    fn lost(&mut self, cpu: Cpu, ts: Timestamp, count: Option<u64>) -> io::Result<()> {
        let place = cpu_place(cpu);
        self.name_track(place, || format!("CPU {cpu}"));
        self.event(b'i', place, ts, b"events lost", "ftrace", |out| {
            out.extend(b",\"s\":\"t\"");
            if let Some(count) = count {
                let _ = write!(out, ",\"args\":{{\"count\":{count}}}");
            }
        })
    }

    fn finish(&mut self, tasks: &Tasks, summary: &MergeSummary) -> io::Result<()> {
        if !self.tracks.is_empty() {
            self.metadata("process_name", cpu_place(Cpu(0)), "CPUs")?;
        }
        for (track, name) in std::mem::take(&mut self.tracks) {
            self.metadata("thread_name", track, &name)?;
        }
        let mut processes: Vec<Pid> = tasks.processes.keys().copied().collect();
        for (tid, thread) in tasks.threads.sorted() {
            let at = Task { tid, tgid: thread.tgid };
            processes.push(at.process());
            if let Some(name) = thread.name_text() {
                self.metadata("thread_name", place(at), &name)?;
            }
        }
        processes.sort_unstable();
        processes.dedup();
        for pid in processes {
            let name = tasks.process_name(pid);
            if !name.is_empty() {
                self.metadata("process_name", process_place(pid), &name)?;
            }
        }
        self.out.extend(b"\n],\n");
        self.stacks.write(&mut self.writer, &mut self.out)?;
        self.out.extend(b"\"displayTimeUnit\":\"ns\",\n\"metadata\":{\"tracebridge\":");
        serde_json::to_writer(&mut self.out, summary)?;
        self.out.extend(b"}}\n");
        self.writer.write(&mut self.out)?;
        self.writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::json_text::as_double;
    use super::{Duration, JsonPlace, Micros, SliceTrack, Span};
    use crate::clock::Timestamp;
    use crate::tracks::tests::{TEXT, export};

    fn events() -> Vec<Json> {
        let all: Json = serde_json::from_str(&export(super::create, TEXT)).unwrap();
        all["traceEvents"].as_array().unwrap().clone()
    }

    /// Phase, name, track and time of each event of a category.
    fn of_category(cat: &str) -> Vec<(String, String, i64, f64)> {
        let text = |e: &Json, key: &str| e[key].as_str().unwrap_or("").to_owned();
        events()
            .iter()
            .filter(|e| text(e, "cat") == cat)
            .map(|e| (text(e, "ph"), text(e, "name"), e["tid"].as_i64().unwrap(), e["ts"].as_f64().unwrap()))
            .collect()
    }

    fn row(ph: &str, name: &str, tid: i64, ts: f64) -> (String, String, i64, f64) {
        (ph.into(), name.into(), tid, ts)
    }

    #[test]
    fn markers_become_slices_instants_and_asynchronous_slices() {
        let want = [
            row("B", "draw \"x\"", 7, 1_000_010.0),
            row("b", "load", 7, 1_000_021.0),
            row("i", "moment", 7, 1_000_022.0),
            row("e", "load", 7, 1_000_055.0),
            row("E", "draw \"x\"", 7, 1_000_060.0),
            row("B", "open", 7, 1_000_080.0),
            row("E", "open", 7, 1_000_080.001),
        ];
        assert_eq!(of_category("atrace"), want);
    }

    #[test]
    fn switches_become_times_on_a_cpu_and_states_of_threads() {
        let on_cpu = of_category("sched");
        let want = [
            row("B", "worker", 1, 1_000_050.0),
            row("E", "worker", 1, 1_000_070.0),
            row("B", "main", 0, 1_000_000.0),
            row("E", "main", 0, 1_000_080.0),
        ];
        assert_eq!(on_cpu, want);
        let states: Vec<_> = of_category("thread_state").into_iter().filter(|e| e.2 == 8).collect();
        let want = ["Runnable", "Runnable", "Running", "Running", "Sleeping", "Sleeping"];
        assert_eq!(states.iter().map(|e| &e.1[..]).collect::<Vec<_>>(), want);
    }

    #[test]
    fn no_number_is_rounded() {
        let text = export(super::create, TEXT);
        assert!(text.contains("\"value\":\"9007199254740993\""), "{text}");
        assert!(text.contains("\"ts\":1000012.345") && text.contains("\"ts\":1000055.000"), "{text}");
        assert_eq!(of_category("method").len(), 2);
        assert_eq!(of_category("irq"), [row("X", "touch", 1 << 24, 1_000_030.0)]);
        assert_eq!(of_category("ftrace"), [row("i", "foo", 8, 1_000_057.0)]);
    }

    #[test]
    fn threads_and_processes_have_their_names() {
        let names: Vec<_> = events()
            .iter()
            .filter(|e| e["ph"] == "M" && e["name"] == "thread_name")
            .map(|e| e["args"]["name"].as_str().unwrap().to_owned())
            .collect();
        for name in ["main", "worker", "CPU 0", "CPU 1", "main methods", "CPU 0 interrupts"] {
            assert!(names.iter().any(|n| n == name), "{name} in {names:?}");
        }
    }

    #[test]
    fn begins_and_ends_of_one_time_have_different_times_in_the_numbers_that_viewers_read() {
        for start in [0, 1_000_000, 1_000_000_001, 662_173_680_208_000, 1_374_704_182_329_782_000] {
            let mut track = SliceTrack::default();
            let place = JsonPlace { pid: 1, tid: 1 };
            let mut written = Vec::new();
            // Two slices inside each other and one behind them, all at one time; then the end of the caller.
            written.push((true, track.begin(Timestamp(start), place, b"caller")));
            for (is_begin, ts) in [
                (true, 500),
                (true, 500),
                (false, 500),
                (false, 500),
                (true, 500),
                (false, 500),
                (false, 2_000),
            ] {
                let ts = Timestamp(start + ts);
                let written_ts =
                    if is_begin { track.begin(ts, place, b"x") } else { track.end(ts, b"x").unwrap().0 };
                assert!(written_ts >= ts && written_ts < ts + 1_000, "{start} {ts} {written_ts}");
                written.push((is_begin, written_ts));
            }
            for pair in written.windows(2) {
                let [a, b] = [pair[0].1, pair[1].1].map(|ts| as_double(ts.0));
                assert!(a <= b, "{written:?}");
                // All slices but the caller have one name.
                assert!(pair[0].0 == pair[1].0 || a < b, "{written:?}");
            }
            assert_eq!(track.end(Timestamp(start + 3_000), b"x"), None, "no slice is open");
        }
    }

    /// Start and end as a viewer computes them: it reads `ts` and `dur` as doubles, subtracts the time of the
    /// first event, and adds.
    fn viewers_span(start: u64, end: u64, first: f64) -> (f64, f64) {
        let span = Span { start: Timestamp(start), end: Timestamp(end), open: false };
        let ts: f64 = Micros(start).to_string().parse().unwrap();
        let dur: f64 = Duration::new(span).to_string().parse().unwrap();
        (ts - first, ts - first + dur)
    }

    #[test]
    fn a_viewer_sees_two_events_overlap_exactly_where_their_times_overlap() {
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = |limit: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % limit
        };
        let mut fitted = 0;
        for uptime_ns in [1_000, 1_000_000_000, 86_400_000_000_000, 30 * 86_400_000_000_000] {
            for _ in 0..20_000 {
                let start = next(uptime_ns);
                let limit = [100, 100_000, 1_000_000_000][next(3) as usize];
                let end = start + 1 + next(limit);
                // A recording is short against the uptime, except right after the boot.
                let is_late = start > 2 * limit;
                let firsts = [0.0, as_double(start / 2), as_double(start)];
                for first in firsts.into_iter().take(if is_late { 3 } else { 1 }) {
                    let (_, sum) = viewers_span(start, end, first);
                    for successor in [end - 1, end, end + 1] {
                        let (successor_ts, _) = viewers_span(successor, successor + 1, first);
                        assert_eq!(sum <= successor_ts, end <= successor, "{start} {end} {successor}");
                    }
                }
                let exact = Duration::new(Span { start: Timestamp(start), end: Timestamp(end), open: false });
                fitted += u32::from(matches!(exact, Duration::Fitted(_)));
            }
        }
        assert!(fitted > 1000, "the exact duration sufficed but for {fitted} events");
    }
}
