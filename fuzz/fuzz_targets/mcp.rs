//! Any call of any tool of `mcp`, and any JSON as an answer: no panic, no hang, and no answer over its limit.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tracebridge::internals::RequestProbe;
use tracebridge_fuzz::InputFile;

/// A directory with one text of ftrace in it, and the server's side of a session there.
static PROBE: LazyLock<(InputFile, RequestProbe)> = LazyLock::new(|| {
    let text = b"# tracer: nop\n#\n app-7 [000] ...1 1.000001: tracing_mark_write: B|7|x\n\
        app-7 [000] ...1 1.000009: tracing_mark_write: E|7\n";
    let file = InputFile::new("mcp", text);
    let probe = RequestProbe::new(file.path.parent().expect("a directory"));
    (file, probe)
});

fuzz_target!(|data: &[u8]| {
    let (_, probe) = &*PROBE;
    let mut answers = vec![probe.cut(data)];
    let line = data.iter().position(|byte| *byte == b'\n');
    if let Some(end) = line
        && let Ok(tool) = std::str::from_utf8(&data[..end])
    {
        answers.push(probe.call(tool, &data[end + 1..]));
    } else {
        answers.extend(probe.tools().into_iter().map(|tool| probe.call(tool, data)));
    }
    for (limit, answer) in answers.into_iter().flatten() {
        assert!(answer.len() <= limit, "{} bytes", answer.len());
    }
});
