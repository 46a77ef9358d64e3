//! Files for viewers of calls in time order: profiler.firefox.com and speedscope.app.
//!
//! The former has its processed format (github.com/firefox-devtools/profiler,
//! docs-developer/processed-profile-format.md). A sample of the format has a stack and a weight. Here one
//! sample stands for the stack between two call events, and its weight is the time between them. So nothing
//! is resampled, and the order of time is kept.
//!
//! It is written by hand because the weights are fractions of a millisecond: those of the crate
//! `fxprof-processed-profile` 0.8, which writes the timelines, are whole numbers (`Profile::add_sample`
//! takes an `i32`, also with `WeightType::TracingMs`).

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Value, json};

use crate::profile::count::call_events::ThreadCallEvents;
use crate::profile::names::TraceNames;

/// The version of the format that is written; every version of the viewer upgrades it.
const PROCESSED_VERSION: u32 = 49;

/// Writes the calls of all threads.
pub(super) fn write_firefox(
    threads: &[ThreadCallEvents],
    names: &TraceNames<'_, '_>,
    title: &str,
    pid: i32,
    tick_ns: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    let meta = json!({
        "interval": 0.001, "startTime": 0, "processType": 0, "stackwalk": 0, "debug": false, "gcpoison": false,
        "asyncstack": false, "version": 24, "preprocessedProfileVersion": PROCESSED_VERSION, "product": title,
        "importedFrom": "tracebridge", "symbolicated": true, "usesOnlyOneStackType": true, "markerSchema": [],
        "sourceCodeIsNotOnSearchfox": true, "doesNotUseFrameImplementation": true,
        "categories": [{ "name": "Java", "color": "blue", "subcategories": ["Other"] }],
        "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns" },
    });
    write!(out, r#"{{"meta":{meta},"libs":[],"pages":[],"counters":[],"threads":["#)?;
    for (n, thread) in threads.iter().enumerate() {
        if n > 0 {
            write!(out, ",")?;
        }
        serde_json::to_writer(&mut *out, &thread_json(thread, names, pid, tick_ns))?;
    }
    writeln!(out, "]}}")
}

/// The tables of one thread, which its samples refer to by index.
#[derive(Default)]
struct FirefoxTables {
    strings: Vec<String>,
    files: Vec<Option<usize>>,
    lines: Vec<Option<i64>>,
    funcs: HashMap<u32, usize>,
    stacks: HashMap<(Option<usize>, usize), usize>,
    frame_of_stack: Vec<usize>,
    prefix_of_stack: Vec<Option<usize>>,
    func_names: Vec<usize>,
}

impl FirefoxTables {
    fn string(&mut self, text: &str) -> usize {
        self.strings.push(text.to_owned());
        self.strings.len() - 1
    }

    /// The index of the method's function, and of its frame.
    fn func(&mut self, names: &TraceNames<'_, '_>, method: u32) -> usize {
        if let Some(func) = self.funcs.get(&method) {
            return *func;
        }
        let name = self.string(&names.full(method));
        let (file, line) = names.source(method);
        let file = file.map(|file| self.string(file));
        self.func_names.push(name);
        self.files.push(file);
        self.lines.push(line);
        self.funcs.insert(method, self.func_names.len() - 1);
        self.func_names.len() - 1
    }

    fn stack(&mut self, prefix: Option<usize>, frame: usize) -> usize {
        let next = self.frame_of_stack.len();
        let stack = *self.stacks.entry((prefix, frame)).or_insert(next);
        if stack == next {
            self.frame_of_stack.push(frame);
            self.prefix_of_stack.push(prefix);
        }
        stack
    }
}

fn thread_json(thread: &ThreadCallEvents, names: &TraceNames<'_, '_>, pid: i32, tick_ns: u64) -> Value {
    let millis = |ticks: u64| ticks as f64 * tick_ns as f64 / 1e6;
    let mut tables = FirefoxTables::default();
    let mut open: Vec<usize> = Vec::new();
    let mut stacks = Vec::new();
    let mut times = Vec::new();
    let mut weights = Vec::new();
    for (n, event) in thread.events.iter().enumerate() {
        if event.begins {
            let func = tables.func(names, event.method);
            let stack = tables.stack(open.last().copied(), func);
            open.push(stack);
        } else {
            open.pop();
        }
        let until = thread.events.get(n + 1).map_or(thread.last, |next| next.at);
        if until > event.at {
            stacks.push(open.last().copied());
            times.push(millis(event.at));
            weights.push(millis(until - event.at));
        }
    }
    let funcs = tables.func_names.len();
    let samples = stacks.len();
    let all = tables.frame_of_stack.len();
    let fill = |value: Value, n: usize| Value::Array(vec![value; n]);
    let name = names.thread(thread.thread);
    json!({
        "name": name, "isMainThread": name == "main", "pid": pid.to_string(), "tid": thread.thread, "processType": "default",
        "processStartupTime": 0, "processShutdownTime": null, "registerTime": millis(thread.first),
        "unregisterTime": millis(thread.last), "pausedRanges": [],
        "samples": {
            "length": samples, "stack": stacks, "time": times, "weight": weights, "weightType": "tracing-ms",
        },
        "markers": {
            "length": 0, "data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": [],
        },
        "stackTable": {
            "length": all, "frame": tables.frame_of_stack, "prefix": tables.prefix_of_stack,
            "category": fill(json!(0), all), "subcategory": fill(json!(0), all),
        },
        "frameTable": {
            "length": funcs, "func": (0..funcs).collect::<Vec<_>>(), "address": fill(json!(-1), funcs),
            "inlineDepth": fill(json!(0), funcs), "category": fill(json!(0), funcs),
            "subcategory": fill(json!(0), funcs), "nativeSymbol": fill(Value::Null, funcs),
            "innerWindowID": fill(json!(0), funcs), "implementation": fill(Value::Null, funcs),
            "line": tables.lines, "column": fill(Value::Null, funcs),
        },
        "funcTable": {
            "length": funcs, "name": tables.func_names, "isJS": fill(json!(false), funcs),
            "relevantForJS": fill(json!(false), funcs), "resource": fill(json!(-1), funcs),
            "fileName": tables.files, "lineNumber": tables.lines, "columnNumber": fill(Value::Null, funcs),
        },
        "resourceTable": { "length": 0, "lib": [], "name": [], "host": [], "type": [] },
        "nativeSymbols": { "length": 0, "libIndex": [], "address": [], "name": [], "functionSize": [] },
        "stringArray": tables.strings,
    })
}

/// Writes the calls of all threads; times in µs. Without times (`tick_ns` is `None`) they are numbers of
/// calls.
pub(super) fn write_speedscope(
    threads: &[ThreadCallEvents],
    names: &TraceNames<'_, '_>,
    methods: usize,
    title: &str,
    tick_ns: Option<u64>,
    out: &mut impl Write,
) -> io::Result<()> {
    let micros = |ticks: u64| match tick_ns {
        Some(tick_ns) => ticks as f64 * tick_ns as f64 / 1_000.0,
        None => ticks as f64,
    };
    let unit = if tick_ns.is_some() { "microseconds" } else { "none" };
    write!(
        out,
        r#"{{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"tracebridge","#
    )?;
    write!(out, r#""name":{},"activeProfileIndex":0,"shared":{{"frames":["#, json!(title))?;
    for method in 0..methods as u32 {
        let mut frame = json!({ "name": names.full(method) });
        let (file, line) = names.source(method);
        if let Some(file) = file {
            frame["file"] = json!(file);
        }
        if let Some(line) = line {
            frame["line"] = json!(line);
        }
        write!(out, "{}{frame}", if method > 0 { "," } else { "" })?;
    }
    write!(out, r#"]}},"profiles":["#)?;
    for (n, thread) in threads.iter().enumerate() {
        let comma = if n > 0 { "," } else { "" };
        let name = json!(names.thread(thread.thread));
        let first = micros(thread.first);
        let last = micros(thread.last);
        write!(out, r#"{comma}{{"type":"evented","name":{name},"unit":"{unit}","#)?;
        write!(out, r#""startValue":{first},"endValue":{last},"events":["#)?;
        for (n, event) in thread.events.iter().enumerate() {
            let kind = if event.begins { 'O' } else { 'C' };
            let comma = if n > 0 { "," } else { "" };
            let frame = event.method;
            let at = micros(event.at);
            write!(out, r#"{comma}{{"type":"{kind}","frame":{frame},"at":{at}}}"#)?;
        }
        write!(out, "]}}")?;
    }
    writeln!(out, "]}}")
}
