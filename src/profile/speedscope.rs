//! Files for speedscope.app, in its evented format:
//! <https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources>.

use std::io::{self, Write};

use serde_json::json;

use super::call_events::ThreadCallEvents;
use super::names::TraceNames;

/// Writes the calls of all threads; times in µs. Without times (`tick_ns` is `None`) they are numbers of
/// calls.
pub(super) fn write(
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
        let (name, first, last) =
            (json!(names.thread(thread.thread)), micros(thread.first), micros(thread.last));
        write!(out, r#"{}{{"type":"evented","name":{name},"unit":"{unit}","#, if n > 0 { "," } else { "" })?;
        write!(out, r#""startValue":{first},"endValue":{last},"events":["#)?;
        for (n, event) in thread.events.iter().enumerate() {
            let kind = if event.begins { 'O' } else { 'C' };
            let (comma, frame, at) = (if n > 0 { "," } else { "" }, event.method, micros(event.at));
            write!(out, r#"{comma}{{"type":"{kind}","frame":{frame},"at":{at}}}"#)?;
        }
        write!(out, "]}}")?;
    }
    writeln!(out, "]}}")
}
