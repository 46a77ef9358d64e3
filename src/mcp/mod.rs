//! A server of the Model Context Protocol on standard input and output, for assistants that work with traces.
//!
//! Each tool is a command of this program, started as a child, or a question about a trace that is read once
//! and kept. An answer is the JSON of the command's `--json`, cut to a small size: `docs/agents.md` describes
//! it. Files are read and written only below the directories that were named at the start, no shell and no
//! network is used, and devices are touched only where the start has permitted it.

mod answer;
mod arguments;
mod commands;
mod error;
mod limit;
mod resources;
mod server;
mod tools;
mod traces;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::file_access::{Roots, confine};

pub(crate) use self::error::McpError;

/// The things that a client may do.
#[derive(Debug, Clone)]
pub(crate) struct ServerOptions {
    /// The directories below which files are read and written.
    pub roots: Vec<PathBuf>,
    /// Whether devices may be recorded.
    pub allows_devices: bool,
}

/// Serves one client on standard input and output, until it closes them.
///
/// # Errors
/// [`McpError`].
pub(crate) fn serve(options: &ServerOptions) -> Result<(), McpError> {
    let roots = Roots::new(&options.roots)?;
    confine(roots.clone());
    let server = server::TraceServer::new(roots, options.allows_devices)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let served = runtime.block_on(server::serve(server));
    // A trace that is still being read does not keep the program alive.
    runtime.shutdown_background();
    served
}

/// Answers requests as the server does, in an empty directory and without the commands of the program: for
/// fuzzing.
pub struct RequestProbe {
    work: tools::Workplace,
}

impl RequestProbe {
    /// A probe that may read below `root`.
    ///
    /// # Panics
    /// If that is no directory.
    pub fn new(root: &Path) -> RequestProbe {
        let roots = Roots::new(&[root.to_owned()]).expect("a directory");
        let traces = traces::ReadTraces::default();
        let work =
            tools::Workplace { roots, traces, allows_devices: true, program: PathBuf::new(), duckdb: None };
        RequestProbe { work }
    }

    /// Answers a call of a tool, of which the arguments are JSON. Returns the largest size that the answer
    /// may have and the answer; `None` where there is an error in its place.
    pub fn call(&self, tool: &str, arguments: &[u8]) -> Option<(usize, Vec<u8>)> {
        let Ok(Value::Object(mut arguments)) = serde_json::from_slice(arguments) else { return None };
        let common = arguments::AnswerArguments::take(&mut arguments).ok()?;
        let until = Instant::now() + Duration::from_secs(1);
        let limit = limit::CallLimit { is_cancelled: AtomicBool::new(false), until };
        let answer = tools::call(&self.work, tool, arguments, &common, &limit).ok()?;
        Some((answer::MOST_BYTES, serde_json::to_vec(&answer).unwrap_or_default()))
    }

    /// Cuts any JSON to an answer's size. Returns the size and the answer.
    pub fn cut(&self, json: &[u8]) -> Option<(usize, Vec<u8>)> {
        let value: Value = serde_json::from_slice(json).ok()?;
        let answer = answer::fitted(value, answer::USUAL_BYTES, &Value::Null);
        Some((answer::USUAL_BYTES, serde_json::to_vec(&answer).unwrap_or_default()))
    }

    /// The names of all tools.
    pub fn tools(&self) -> Vec<&'static str> {
        tools::TOOLS.iter().map(|tool| tool.name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests that are right, of which the test changes bytes.
    const REQUESTS: [(&str, &str); 8] = [
        ("info", r#"{"files":["a.txt"],"max_bytes":1000}"#),
        ("why", r#"{"files":["a.txt"],"slice":"x"}"#),
        ("why", r#"{"files":["a.txt"],"thread":"app","from":"1ms","to":"9ms"}"#),
        ("why_against", r#"{"new":["a.txt"],"old":["a.txt"],"slice":"x"}"#),
        ("slices", r#"{"files":["a.txt"],"name":"x","process":"app"}"#),
        ("thread_states", r#"{"files":["a.txt"],"thread":"7"}"#),
        ("gate", r#"{"baseline":["a.txt"],"candidate":["a.txt"],"fail_if":["launch.total > +3%"]}"#),
        ("record", r#"{"time":"1s","output":"b.dat","categories":["sched"]}"#),
    ];

    #[test]
    fn changed_requests_are_answered_or_refused() {
        let dir = tempfile::tempdir().unwrap();
        let text = "# tracer: nop\n#\n app-7 [000] ...1 1.000001: tracing_mark_write: B|7|x\n \
                    app-7 [000] ...1 1.000009: tracing_mark_write: E|7\n";
        std::fs::write(dir.path().join("a.txt"), text).unwrap();
        let probe = RequestProbe::new(dir.path());
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        let mut answered = 0;
        for round in 0..10_000 {
            let (tool, request) = REQUESTS[round % REQUESTS.len()];
            let mut bytes = request.as_bytes().to_vec();
            for _ in 0..random(4) {
                let at = random(bytes.len());
                match random(3) {
                    0 => bytes[at] = random(256) as u8,
                    1 => bytes.insert(at, b"\"{}[],:0-/.\\"[random(12)]),
                    _ => drop(bytes.remove(at)),
                }
            }
            if let Some((limit, answer)) = probe.call(tool, &bytes) {
                assert!(answer.len() <= limit);
                answered += 1;
            }
        }
        // Of the requests that stay as they are, five of eight need no command.
        assert!(answered > 500, "{answered}");
    }
}
