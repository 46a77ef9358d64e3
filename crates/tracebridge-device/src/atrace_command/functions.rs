//! `-k`: traces kernel functions with the function-graph tracer, with the filter of AOSP's atrace.

use crate::console::complain;
use crate::record::{RecordError, SettingsGuard};

/// The options that make the tracer print time, CPU and process beside each function.
const COLUMN_OPTIONS: [&str; 3] =
    ["options/funcgraph-abstime", "options/funcgraph-cpu", "options/funcgraph-proc"];

/// Switches the tracer on for `names`, which may contain `*`.
///
/// # Errors
/// A name that the kernel does not know, or a setting that cannot be written.
pub fn trace_functions(settings: &mut SettingsGuard, names: &[&str]) -> Result<(), RecordError> {
    let tracefs = settings.tracefs().clone();
    // The kernel takes many names at once and does not say which of them it does not know.
    let known = tracefs.read("available_filter_functions").unwrap_or_default();
    let is_known = |name: &str| known.lines().any(|l| l.split_whitespace().next() == Some(name));
    let unknown: Vec<&str> =
        names.iter().copied().filter(|n| !n.contains('*') && !known.is_empty() && !is_known(n)).collect();
    for name in &unknown {
        complain(format_args!("error: \"{name}\" is not a valid kernel function to trace."));
    }
    if !unknown.is_empty() {
        // An empty filter would trace every function.
        return Err(RecordError::NothingAvailable(format!(
            "no such kernel function: {}",
            unknown.join(", ")
        )));
    }
    settings.set("set_ftrace_filter", &names.join(" "))?;
    settings.set("current_tracer", "function_graph")?;
    COLUMN_OPTIONS.into_iter().filter(|c| tracefs.has(c)).try_for_each(|c| settings.set(c, "1").map(drop))
}
