//! Turns the flags that all recording commands share into what the recorder is asked for.

use std::path::Path;

use crate::cli::recording_flags::{ModeArg, RecordSelection, TraceBufferArgs};
use crate::record::CaptureTarget;
use crate::record::recorder::RecordingMode;
use crate::record::request::{BufferRequest, RecordingRequest};
use crate::record::tracefs_config::FunctionTracing;

impl From<ModeArg> for RecordingMode {
    fn from(mode: ModeArg) -> RecordingMode {
        match mode {
            ModeArg::Stream => RecordingMode::Stream,
            ModeArg::Ring => RecordingMode::Ring,
            ModeArg::Fill => RecordingMode::Fill,
        }
    }
}

/// The trace buffer that the flags name.
pub fn buffer_request(flags: &TraceBufferArgs, force: bool) -> BufferRequest {
    BufferRequest {
        tracefs: flags.tracefs.clone(),
        instance: flags.instance.clone(),
        state_dir: flags.state_dir.clone(),
        force,
    }
}

/// The recording that the flags ask for. `default_names` are recorded if the flags name nothing.
pub fn recording_request(
    flags: &RecordSelection,
    default_names: &[&str],
) -> anyhow::Result<RecordingRequest> {
    let mut names = flags.all_names()?;
    if flags.names.is_empty() && flags.files.is_empty() && flags.functions.is_empty() {
        names = default_names.iter().map(|n| (*n).to_owned()).collect();
    }
    let functions = (!flags.functions.is_empty())
        .then(|| FunctionTracing { names: flags.functions.clone(), graph: flags.graph });
    Ok(RecordingRequest {
        buffer: buffer_request(&flags.buffer_args, flags.force),
        names,
        apps: flags.apps.clone(),
        functions,
        clock: flags.clock.clone(),
        buffer_kb: flags.buffer,
        exclude_self: flags.exclude_self,
    })
}

/// A capture at `path`, uncompressed, that includes kernel symbols if kernel functions are traced.
pub fn capture_target(flags: &RecordSelection, path: &Path) -> CaptureTarget {
    CaptureTarget {
        path: path.to_owned(),
        max_bytes: None,
        kallsyms: !flags.functions.is_empty(),
        readable: false,
        compress: false,
    }
}
