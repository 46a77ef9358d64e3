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
mod roots;
mod server;
mod tools;
mod traces;

use std::path::PathBuf;

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
    let server = server::TraceServer::new(options)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let served = runtime.block_on(server::serve(server));
    // A trace that is still being read does not keep the program alive.
    runtime.shutdown_background();
    served
}
