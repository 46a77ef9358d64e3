//! Files for other profilers: profiler.firefox.com and speedscope.app, which show calls in time order, and
//! pprof.
//!
//! profiler.firefox.com has its processed format (github.com/firefox-devtools/profiler,
//! docs-developer/processed-profile-format.md). A sample of the format has a stack and a weight. Here one
//! sample stands for the stack between two call events, and its weight is the time between them. So nothing
//! is resampled, and the order of time is kept.
//!
//! It is written by hand because the weights are fractions of a millisecond: those of the crate
//! `fxprof-processed-profile` 0.8, which writes the timelines, are whole numbers (`Profile::add_sample` takes
//! an `i32`, also with `WeightType::TracingMs`).
//!
//! A file for pprof is the message `Profile` packed with gzip (github.com/google/pprof, proto/profile.proto).
//! Each path of the call tree that has a figure of its own is one sample, with the functions of the path from
//! the innermost outwards, and the thread's name as its label.

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::formats::wire::write::{bytes, message, uint};
use crate::ids::Pid;
use crate::profile::count::call_stacks::ThreadCallEvents;
use crate::profile::count::tree::{CallTree, ROOT};
use crate::profile::names::TraceNames;
use crate::profile::profile_run::ProfileRun;

/// The version of the format that is written; every version of the viewer upgrades it.
const PROCESSED_VERSION: u32 = 49;

/// The unit of the calls' begins and ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum FirefoxUnit {
    /// Ticks of a clock.
    Times {
        /// ns in a tick.
        tick_ns: u64,
    },
    /// Numbers of samples or of events, whose sum stands in the place of time.
    Counts,
}

impl FirefoxUnit {
    /// The time of a begin or an end, ms.
    fn millis(self, at: u64) -> f64 {
        let tick_ns = match self {
            FirefoxUnit::Times { tick_ns } => tick_ns,
            FirefoxUnit::Counts => 1,
        };
        at as f64 * tick_ns as f64 / 1e6
    }

    /// The weight of a sample, in the type of [`FirefoxUnit::weight_type`].
    fn weight(self, figure: u64) -> Value {
        match self {
            FirefoxUnit::Times { .. } => json!(self.millis(figure)),
            FirefoxUnit::Counts => json!(figure),
        }
    }

    fn weight_type(self) -> &'static str {
        match self {
            FirefoxUnit::Times { .. } => "tracing-ms",
            FirefoxUnit::Counts => "samples",
        }
    }
}

/// Writes the calls of all threads.
pub(super) fn write_firefox(
    threads: &[ThreadCallEvents],
    names: &TraceNames<'_, '_>,
    title: &str,
    pid: Pid,
    unit: FirefoxUnit,
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
        serde_json::to_writer(&mut *out, &thread_json(thread, names, pid, unit))?;
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

fn thread_json(thread: &ThreadCallEvents, names: &TraceNames<'_, '_>, pid: Pid, unit: FirefoxUnit) -> Value {
    let millis = |at: u64| unit.millis(at);
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
            weights.push(unit.weight(until - event.at));
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
            "length": samples, "stack": stacks, "time": times, "weight": weights, "weightType": unit.weight_type(),
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

/// Field numbers of `Profile`.
mod profile {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const MAPPING: u32 = 3;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING_TABLE: u32 = 6;
    pub(super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

/// The most functions of one path: those further out are left out.
pub(super) const MAX_DEPTH: usize = 2_000;

/// The strings of a file; the first is empty.
struct PprofStrings {
    all: Vec<String>,
    ids: HashMap<String, u64>,
}

impl PprofStrings {
    fn id(&mut self, text: &str) -> u64 {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = self.all.len() as u64;
        self.all.push(text.to_owned());
        self.ids.insert(text.to_owned(), id);
        id
    }
}

/// Writes the tree of a profile. Returns how many paths lack their outer functions.
pub(super) fn write(run: &ProfileRun<'_, '_>, tree: &CallTree, out: &mut dyn Write) -> io::Result<u64> {
    let mut out = GzEncoder::new(out, Compression::default());
    let mut strings = PprofStrings { all: vec![String::new()], ids: HashMap::from([(String::new(), 0)]) };
    let columns = run.trace.columns();
    let tick_ns = run.trace.tick_ns();
    let mut clocks: Vec<(usize, &str)> = columns.named().collect();
    if clocks.is_empty() {
        clocks.push((run.clock, "calls"));
    }
    let mut part = Vec::new();
    // Programs that show one figure show the last.
    clocks.sort_by_key(|(clock, _)| *clock == run.clock);
    for (clock, name) in &clocks {
        let unit = if columns.is_time(*clock) && columns.has(*clock) { "nanoseconds" } else { "count" };
        let name =
            if columns.is_sampled && *clock == run.clock { run.tick_unit() } else { (*name).to_owned() };
        let kind = if name == "ns" { strings.id("time") } else { strings.id(&name) };
        let unit = strings.id(unit);
        message(&mut part, profile::SAMPLE_TYPE, |value_type| {
            uint(value_type, 1, kind);
            uint(value_type, 2, unit);
        });
        if *clock == run.clock {
            uint(&mut part, profile::DEFAULT_SAMPLE_TYPE, kind);
        }
    }
    let thread_key = strings.id("thread");
    let threads: Vec<u64> =
        (0..run.trace.threads().len() as u32).map(|thread| strings.id(&run.names.thread(thread))).collect();
    let mut is_used = vec![false; run.trace.methods().len()];
    let mut cut = 0;
    for node in tree.nodes.iter().filter(|node| node.own != [0; 2]) {
        let mut path = Vec::new();
        let mut at = *node;
        while at.method != ROOT && path.len() < MAX_DEPTH {
            path.push(u64::from(at.method) + 1);
            is_used[at.method as usize] = true;
            at = tree.nodes[at.parent as usize];
        }
        cut += u64::from(at.method != ROOT);
        message(&mut part, profile::SAMPLE, |sample| {
            for location in path {
                uint(sample, 1, location);
            }
            for (clock, _) in &clocks {
                uint(sample, 2, node.own[*clock].saturating_mul(tick_ns));
            }
            let label = threads.get(node.thread as usize).copied().unwrap_or(0);
            message(sample, 3, |pair| {
                uint(pair, 1, thread_key);
                uint(pair, 2, label);
            });
        });
        if part.len() > 1 << 18 {
            out.write_all(&part)?;
            part.clear();
        }
    }
    let mut mappings: HashMap<String, u64> = HashMap::new();
    for method in (0..is_used.len()).filter(|method| is_used[*method]) {
        let id = method as u64 + 1;
        let method = method as u32;
        let (file, line) = run.names.source(method);
        let name = strings.id(&run.names.long(method));
        let file = file.unwrap_or("");
        let file_id = strings.id(file);
        let next = mappings.len() as u64 + 1;
        let mapping = *mappings.entry(file.to_owned()).or_insert(next);
        if mapping == next {
            message(&mut part, profile::MAPPING, |message| {
                uint(message, 1, mapping);
                uint(message, 5, file_id);
                uint(message, 7, 1);
            });
        }
        message(&mut part, profile::LOCATION, |location| {
            uint(location, 1, id);
            uint(location, 2, mapping);
            message(location, 4, |place| {
                uint(place, 1, id);
                uint(place, 2, line.and_then(|line| u64::try_from(line).ok()).unwrap_or(0));
            });
        });
        message(&mut part, profile::FUNCTION, |function| {
            uint(function, 1, id);
            uint(function, 2, name);
            uint(function, 3, name);
            uint(function, 4, file_id);
        });
    }
    for text in &strings.all {
        bytes(&mut part, profile::STRING_TABLE, text.as_bytes());
    }
    out.write_all(&part)?;
    out.finish()?.flush()?;
    Ok(cut)
}
