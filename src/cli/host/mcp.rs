//! `mcp`: serves an assistant.

use std::path::PathBuf;

use clap::Parser;

use crate::cli::Exit;
use crate::mcp::{ServerOptions, serve};

/// Serve an assistant: a Model Context Protocol server on standard input and output
///
/// An assistant that speaks the protocol asks what a trace holds, why a launch or a frame took as long as it
/// did, and what changed between builds, and gets short answers in JSON that add up. It is started by the
/// assistant's program, of which docs/agents.md has the configuration:
///
///   tracebridge mcp --root .
///
/// Files are read, and pages written, only below the directories named here. It uses no network and no shell.
/// Devices are listed and recorded only with --allow-devices.
///
/// Exit status: 0 the client is done, 1 failed, 2 usage.
#[derive(Parser)]
pub struct McpArgs {
    /// A directory that may be used; relative paths begin at the first one
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: Vec<PathBuf>,
    /// Let the assistant list, examine and record attached devices
    #[arg(long)]
    allow_devices: bool,
}

/// Runs `mcp`.
pub fn run(args: McpArgs) -> anyhow::Result<Exit> {
    serve(&ServerOptions { roots: args.root, allows_devices: args.allow_devices })?;
    Ok(Exit::Complete)
}
