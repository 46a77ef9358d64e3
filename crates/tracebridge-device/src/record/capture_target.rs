//! Where a recording goes.

use std::path::{Path, PathBuf};

/// Where a recording goes, and what it includes beside the events.
#[derive(Debug, Clone)]
pub(crate) struct CaptureTarget {
    /// The capture's path; `-` is a stream of frames on stdout.
    pub(crate) path: PathBuf,
    /// Ends the recording when the capture holds this many bytes of events.
    pub(crate) max_bytes: Option<u64>,
    /// Whether the capture includes `/proc/kallsyms` (several MiB).
    pub(crate) kallsyms: bool,
    /// Whether every user may read the capture, rather than its owner alone.
    pub(crate) readable: bool,
    /// Whether the capture is compressed at the end. A stream is never compressed here: the receiver can do
    /// that.
    pub(crate) compress: bool,
}

impl CaptureTarget {
    /// Whether the recording is a stream on stdout rather than a file.
    pub(crate) fn is_stream(&self) -> bool {
        self.path == Path::new("-")
    }
}
