//! The Firefox Profiler's processed format (github.com/firefox-devtools/profiler, docs-developer/processed-profile-format.md).
//!
//! Its samples carry a stack and a weight: here each is the stack between two events, weighted with the time between
//! them, so that nothing is resampled and time order is kept.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::names::Names;
use super::timeline::Lane;

/// A version that every profiler front end upgrades from.
const PROCESSED_VERSION: u32 = 49;

/// Writes all threads; `start_ms` is the trace's start in ms since 1970 where that is known, else 0.
pub fn write(
    lanes: &[Lane],
    names: &Names<'_, '_>,
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
    for (n, lane) in lanes.iter().enumerate() {
        if n > 0 {
            write!(out, ",")?;
        }
        serde_json::to_writer(&mut *out, &thread(lane, names, pid, tick_ns))?;
    }
    writeln!(out, "]}}")
}

/// A thread's own tables; index 0 of the strings is its first method.
#[derive(Default)]
struct Tables {
    strings: Vec<String>,
    files: Vec<Option<usize>>,
    lines: Vec<Option<i64>>,
    funcs: HashMap<u32, usize>,
    stacks: HashMap<(Option<usize>, usize), usize>,
    frame_of_stack: Vec<usize>,
    prefix_of_stack: Vec<Option<usize>>,
    func_names: Vec<usize>,
}

impl Tables {
    fn string(&mut self, text: &str) -> usize {
        self.strings.push(text.to_owned());
        self.strings.len() - 1
    }

    /// The function of a method; its frame has the same index.
    fn func(&mut self, names: &Names<'_, '_>, method: u32) -> usize {
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

fn thread(lane: &Lane, names: &Names<'_, '_>, pid: i32, tick_ns: u64) -> Value {
    let millis = |ticks: u64| ticks as f64 * tick_ns as f64 / 1e6;
    let mut tables = Tables::default();
    let mut open: Vec<usize> = Vec::new();
    let (mut stacks, mut times, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for (n, change) in lane.changes.iter().enumerate() {
        if change.open {
            let func = tables.func(names, change.method);
            let stack = tables.stack(open.last().copied(), func);
            open.push(stack);
        } else {
            open.pop();
        }
        let until = lane.changes.get(n + 1).map_or(lane.last, |next| next.at);
        if until > change.at {
            stacks.push(open.last().copied());
            times.push(millis(change.at));
            weights.push(millis(until - change.at));
        }
    }
    let (funcs, samples, all) = (tables.func_names.len(), stacks.len(), tables.frame_of_stack.len());
    let fill = |value: Value, n: usize| Value::Array(vec![value; n]);
    let name = names.thread(lane.thread);
    json!({
        "name": name, "isMainThread": name == "main", "pid": pid.to_string(), "tid": lane.thread, "processType": "default",
        "processStartupTime": 0, "processShutdownTime": null, "registerTime": millis(lane.first),
        "unregisterTime": millis(lane.last), "pausedRanges": [],
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
