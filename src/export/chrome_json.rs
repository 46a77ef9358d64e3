//! Chrome's JSON trace format ("Trace Event Format"): what chrome://tracing, Perfetto and Speedscope open.
//!
//! Markers are `B`/`E` on their threads, `b`/`e`/`n` where they are asynchronous, `C` for counters and `i` for
//! moments; methods are `X` on a track of their own beside their thread; CPUs are threads of a process of their own
//! with an `X` for each time a thread had them; a thread's states are `b`/`e` in its process. Times are µs with all
//! three decimals, and integers that a double cannot hold are strings, so that no number is rounded.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::Out;
use super::background::Background;
use super::story::{AsyncEdge, AsyncSlice, Method, Owner, Span, Story, Task, Tasks, Teller};
use crate::formats::{Event, EventType, Value};
use crate::timeline::{MergeSummary, MethodThread, TimelineSink};

/// The process that stands for the CPUs: above any pid of a kernel (PID_MAX_LIMIT is 2^22).
const CPUS: i32 = 1 << 23;
/// Added to a CPU's number, or to a thread's id, for the second track beside its own.
const SECOND: i64 = 1 << 24;
/// Integers up to here are exact in a double.
const EXACT: i64 = 1 << 53;

/// The writer onto `out`.
pub(super) fn create(out: Out) -> Box<dyn TimelineSink> {
    let json = ChromeJson {
        background: Background::new(out),
        out: b"{\"traceEvents\":[".to_vec(),
        tracks: BTreeMap::new(),
        first: true,
    };
    Box::new(Teller::new(json))
}

struct ChromeJson {
    background: Background,
    out: Vec<u8>,
    /// Names of the tracks that are no threads of the kernel, by process and track.
    tracks: BTreeMap<(i64, i64), String>,
    first: bool,
}

/// Appends `text` as a JSON string; what is no UTF-8 is replaced.
pub(super) fn json_string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().bytes() {
            match c {
                b'"' | b'\\' => out.extend([b'\\', c]),
                b'\n' => out.extend(b"\\n"),
                b'\r' => out.extend(b"\\r"),
                b'\t' => out.extend(b"\\t"),
                0..0x20 => {
                    let _ = write!(out, "\\u{c:04x}");
                }
                // A page may hold this text inside a script.
                b'<' => out.extend(b"\\u003c"),
                c => out.push(c),
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend("\u{fffd}".as_bytes());
        }
    }
    out.push(b'"');
}

/// An integer as JSON; as a string where a double would round it.
fn json_int(out: &mut Vec<u8>, value: i64) {
    let _ =
        if (-EXACT..=EXACT).contains(&value) { write!(out, "{value}") } else { write!(out, "\"{value}\"") };
}

impl ChromeJson {
    /// One event: what all have, then what `more` adds.
    fn event(
        &mut self,
        phase: u8,
        place: (i64, i64),
        ts: u64,
        name: &[u8],
        cat: &str,
        more: impl FnOnce(&mut Vec<u8>),
    ) -> io::Result<()> {
        let out = &mut self.out;
        out.extend(if std::mem::take(&mut self.first) { &b"\n{"[..] } else { b",\n{" });
        write!(out, "\"ph\":\"{}\",\"pid\":{},\"tid\":{},", char::from(phase), place.0, place.1)?;
        write!(out, "\"ts\":{}.{:03}", ts / 1000, ts % 1000)?;
        out.extend(b",\"name\":");
        json_string(out, name);
        if !cat.is_empty() {
            write!(out, ",\"cat\":\"{cat}\"")?;
        }
        more(out);
        out.push(b'}');
        self.background.offer(&mut self.out)
    }

    fn complete(
        &mut self,
        place: (i64, i64),
        span: Span,
        name: &[u8],
        cat: &str,
        args: &[(&str, i64)],
    ) -> io::Result<()> {
        self.event(b'X', place, span.start, name, cat, |out| {
            let dur = span.end.saturating_sub(span.start);
            let _ = write!(out, ",\"dur\":{}.{:03}", dur / 1000, dur % 1000);
            if !args.is_empty() || span.open {
                out.extend(b",\"args\":{");
                for (i, (name, value)) in args.iter().enumerate() {
                    let _ = write!(out, "{}\"{name}\":{value}", if i > 0 { "," } else { "" });
                }
                if span.open {
                    let _ = write!(out, "{}\"open\":1", if args.is_empty() { "" } else { "," });
                }
                out.push(b'}');
            }
        })
    }

    fn track(&mut self, pid: i64, tid: i64, name: impl FnOnce() -> String) {
        self.tracks.entry((pid, tid)).or_insert_with(name);
    }

    fn metadata(&mut self, what: &str, place: (i64, i64), name: &str) -> io::Result<()> {
        self.event(b'M', place, 0, what.as_bytes(), "", |out| {
            out.extend(b",\"args\":{\"name\":");
            json_string(out, name.as_bytes());
            out.push(b'}');
        })
    }
}

/// The process and thread of a task; a thread whose process nobody knows stands alone.
fn place(at: Task) -> (i64, i64) {
    (at.tgid.unwrap_or(at.tid).into(), at.tid.into())
}

impl Story for ChromeJson {
    fn begin(&mut self, at: Task, ts: u64, name: &[u8]) -> io::Result<()> {
        self.event(b'B', place(at), ts, name, "atrace", |_| ())
    }

    fn end(&mut self, at: Task, span: Span, name: &[u8]) -> io::Result<()> {
        self.event(b'E', place(at), span.end, name, "atrace", |_| ())
    }

    fn async_edge(&mut self, pid: i32, slice: &AsyncSlice<'_>) -> io::Result<()> {
        let phase = match slice.edge {
            AsyncEdge::Begin => b'b',
            AsyncEdge::End(_) => b'e',
            AsyncEdge::Instant => b'n',
        };
        let pid = i64::from(pid);
        self.event(phase, (pid, pid), slice.ts, slice.name, "atrace", |out| {
            // Slices of one track and cookie belong together.
            out.extend(b",\"id2\":{\"local\":");
            let track = slice.track.unwrap_or(slice.name);
            json_string(out, &[track, format!("/{}", slice.cookie).as_bytes()].concat());
            out.push(b'}');
            if let Some(track) = slice.track {
                out.extend(b",\"args\":{\"track\":");
                json_string(out, track);
                out.push(b'}');
            }
        })
    }

    fn instant(&mut self, at: Task, ts: u64, name: &[u8]) -> io::Result<()> {
        self.event(b'i', place(at), ts, name, "atrace", |out| out.extend(b",\"s\":\"t\""))
    }

    fn counter(&mut self, owner: Owner, ts: u64, name: &str, value: i64) -> io::Result<()> {
        let (pid, name) = match owner {
            Owner::Process(pid) => (pid, name.to_owned()),
            Owner::Cpu(cpu) => (CPUS, format!("cpu{cpu} {name}")),
            Owner::System => (CPUS, name.to_owned()),
        };
        self.event(b'C', (pid.into(), 0), ts, name.as_bytes(), "", |out| {
            out.extend(b",\"args\":{\"value\":");
            json_int(out, value);
            out.push(b'}');
        })
    }

    fn on_cpu(&mut self, cpu: u32, at: Task, name: &str, span: Span, prio: i64) -> io::Result<()> {
        self.track(CPUS.into(), cpu.into(), || format!("CPU {cpu}"));
        let args = [("tid", i64::from(at.tid)), ("prio", prio)];
        self.complete((CPUS.into(), cpu.into()), span, name.as_bytes(), "sched", &args)
    }

    fn state(&mut self, at: Task, state: &'static str, span: Span) -> io::Result<()> {
        let id = |out: &mut Vec<u8>| {
            let _ = write!(out, ",\"id2\":{{\"local\":\"state of {}\"}}", at.tid);
        };
        self.event(b'b', place(at), span.start, state.as_bytes(), "thread_state", id)?;
        self.event(b'e', place(at), span.end, state.as_bytes(), "thread_state", id)
    }

    fn irq(&mut self, cpu: u32, name: &str, span: Span) -> io::Result<()> {
        let tid = SECOND + i64::from(cpu);
        self.track(CPUS.into(), tid, || format!("CPU {cpu} interrupts"));
        self.complete((CPUS.into(), tid), span, name.as_bytes(), "irq", &[])
    }

    fn method(&mut self, at: &MethodThread, method: &Method, span: Span, _: usize) -> io::Result<()> {
        let (pid, tid) = match (at.tid, at.tgid) {
            (Some(tid), tgid) => (i64::from(tgid.unwrap_or(tid)), SECOND + i64::from(tid)),
            (None, tgid) => (tgid.unwrap_or(0).into(), 2 * SECOND + i64::from(at.index)),
        };
        self.track(pid, tid, || format!("{} methods", at.name));
        self.complete((pid, tid), span, method.full.as_bytes(), "method", &[])
    }

    fn other(&mut self, at: Task, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
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
                        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
                        json_string(out, hex.as_bytes());
                    }
                }
            }
            out.push(b'}');
        })
    }

    fn finish(&mut self, tasks: &Tasks, outcome: &MergeSummary) -> io::Result<()> {
        if !self.tracks.is_empty() {
            self.metadata("process_name", (CPUS.into(), 0), "CPUs")?;
        }
        for (track, name) in std::mem::take(&mut self.tracks) {
            self.metadata("thread_name", track, &name)?;
        }
        let mut processes: Vec<i32> = tasks.processes.keys().copied().collect();
        for (tid, thread) in tasks.threads.sorted() {
            let at = place(Task { tid, tgid: thread.tgid });
            processes.push(at.0 as i32);
            if let Some(name) = thread.name_text() {
                self.metadata("thread_name", at, &name)?;
            }
        }
        processes.sort_unstable();
        processes.dedup();
        for pid in processes {
            let name = tasks.process_name(pid);
            if !name.is_empty() {
                self.metadata("process_name", (pid.into(), pid.into()), &name)?;
            }
        }
        self.out.extend(b"\n],\n\"displayTimeUnit\":\"ns\",\n\"metadata\":{\"tracebridge\":");
        serde_json::to_writer(&mut self.out, outcome)?;
        self.out.extend(b"}}\n");
        self.background.write(&mut self.out)?;
        self.background.finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::super::story::tests::{TEXT, export};

    fn events() -> Vec<Json> {
        let all: Json = serde_json::from_str(&export(super::create, TEXT)).unwrap();
        all["traceEvents"].as_array().unwrap().clone()
    }

    /// Phase, name, track and time of each event of a category.
    fn of(cat: &str) -> Vec<(String, String, i64, f64)> {
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
    fn markers_are_slices_moments_and_asynchronous_slices() {
        let want = [
            row("B", "draw \"x\"", 7, 1_000_010.0),
            row("b", "load", 7, 1_000_021.0),
            row("i", "moment", 7, 1_000_022.0),
            row("e", "load", 7, 1_000_055.0),
            row("E", "draw \"x\"", 7, 1_000_060.0),
            row("B", "open", 7, 1_000_080.0),
            row("E", "open", 7, 1_000_080.0),
        ];
        assert_eq!(of("atrace"), want);
    }

    #[test]
    fn switches_are_times_on_a_cpu_and_states_of_threads() {
        let on_cpu = of("sched");
        assert_eq!(on_cpu, [row("X", "worker", 1, 1_000_050.0), row("X", "main", 0, 1_000_000.0)]);
        let states: Vec<_> = of("thread_state").into_iter().filter(|e| e.2 == 8).collect();
        let want = ["Runnable", "Runnable", "Running", "Running", "Sleeping", "Sleeping"];
        assert_eq!(states.iter().map(|e| &e.1[..]).collect::<Vec<_>>(), want);
    }

    #[test]
    fn no_number_is_rounded() {
        let text = export(super::create, TEXT);
        assert!(text.contains("\"value\":\"9007199254740993\""), "{text}");
        assert!(text.contains("\"ts\":1000012.345") && text.contains("\"dur\":42.655"), "{text}");
        assert_eq!(of("method").len(), 1);
        assert_eq!(of("irq"), [row("X", "touch", 1 << 24, 1_000_030.0)]);
        assert_eq!(of("ftrace"), [row("i", "foo", 8, 1_000_057.0)]);
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
}
