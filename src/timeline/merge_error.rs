//! The errors of a merge.

use std::io;

use super::align::AlignError;
use crate::formats::OpenError;

/// Why a merge was not done.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// An input cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A method trace or samples could not be placed.
    #[error(transparent)]
    Align(#[from] AlignError),
    /// A recording of another boot, whose packets are copied with their times.
    #[error(
        "{name}: it was recorded in another boot than the other recordings, {seconds} s by CLOCK_REALTIME, and its \
         packets would keep their times; write another format (.html, .json, .csv) or use --only-ftrace: they place \
         it by CLOCK_REALTIME"
    )]
    OtherBoot {
        /// The recording's path as given.
        name: String,
        /// The time between both boots, s.
        seconds: i64,
    },
    /// The manifest of an archive relates no clock of a trace that has several.
    #[error(
        "{name}: the archive's manifest relates the trace without naming one of its clocks, and the trace has \
         snapshots of several: name one as clocks.clock"
    )]
    PinnedClock {
        /// The recording's path as given.
        name: String,
    },
    /// The exporter failed, or an input brings more event types than memory should hold.
    #[error("{0}")]
    Io(#[from] io::Error),
}
