//! Python, with the packages that tests compare with.

use std::path::Path;

use crate::{Command, skip};

/// The module with Perfetto's own classes.
pub const PERFETTO: &str = "perfetto.protos.perfetto.trace.perfetto_trace_pb2";

/// The name of the interpreter: `TRACEBRIDGE_PYTHON`, or else `python3`.
pub fn python() -> String {
    std::env::var("TRACEBRIDGE_PYTHON").unwrap_or_else(|_| "python3".into())
}

/// Whether the interpreter finds these modules, which commas divide.
pub fn has_modules(modules: &str) -> bool {
    let import = Command::new(python()).args(["-c", &format!("import {modules}")]).output();
    import.is_ok_and(|done| done.status.success())
}

/// The name of the interpreter, if it finds this module. Otherwise this function reports a skipped test and
/// returns `None`.
pub fn python_with(module: &str) -> Option<String> {
    let python = python();
    if has_modules(module) {
        return Some(python);
    }
    let package = module.split('.').next().expect("a name has a first part");
    let hint = "run scripts/setup, or set TRACEBRIDGE_PYTHON";
    skip("python", &format!("{python} has no package {package}: {hint}"));
    None
}

/// Runs `scripts/query` in this directory, which must succeed.
#[track_caller]
pub fn query(dir: &Path, args: &[&str]) -> crate::Ran {
    query_of(dir, args).exited(0)
}

/// Runs `scripts/query` in this directory.
#[track_caller]
pub fn query_of(dir: &Path, args: &[&str]) -> crate::Ran {
    let mut command = Command::new(crate::project_dir().join("scripts/query"));
    command.env("TRACEBRIDGE_PYTHON", python()).env("TRACEBRIDGE_HOST_BINARY", crate::binary());
    command.current_dir(dir).args(args).run()
}
