//! The flags of the host that say what is recorded, as arguments for the recorder on a device.

use clap::ValueEnum;

use super::forwarded::{Forwarded, GivenFlag};
use crate::cli::recording_flags::{ModeArg, RecordSelection};
use crate::desk::{RecorderChoice, TraceSelection};
use crate::formats::perfetto::trace_config::KeptEvents;

/// The flag whose value is a file of the host. Its names are handed on in its place.
const FILES: &str = "files";

/// The flags of recordings that every recorder understands.
const PORTABLE_FLAGS: [&str; 6] = ["apps", "buffer", "lenient", "time", "max_size", "mode"];

/// The recorder on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RecorderArg {
    /// tracebridge's own recorder; where tracefs is closed to it, the device's perfetto or atrace
    Auto,
    /// tracebridge's own recorder
    Tracebridge,
    /// The device's own perfetto (Android 9 and newer)
    Perfetto,
    /// The device's own atrace
    Atrace,
}

impl From<RecorderArg> for RecorderChoice {
    fn from(recorder: RecorderArg) -> RecorderChoice {
        match recorder {
            RecorderArg::Auto => RecorderChoice::Auto,
            RecorderArg::Tracebridge => RecorderChoice::Tracebridge,
            RecorderArg::Perfetto => RecorderChoice::Perfetto,
            RecorderArg::Atrace => RecorderChoice::Atrace,
        }
    }
}

/// The events that a recorder of the device keeps in this mode.
pub(super) fn kept(mode: ModeArg) -> KeptEvents {
    match mode {
        ModeArg::Stream => KeptEvents::All,
        ModeArg::Ring => KeptEvents::Last,
        ModeArg::Fill => KeptEvents::First,
    }
}

/// The arguments for a device of these flags.
pub(super) fn device_args<'f>(given: impl Iterator<Item = &'f GivenFlag>) -> Vec<String> {
    given.filter(|flag| flag.id != FILES).map(ToString::to_string).collect()
}

/// The names as arguments behind all flags, where there are any.
pub(super) fn name_args(names: &[String]) -> Vec<String> {
    if names.is_empty() { Vec::new() } else { [&["--".to_owned()], names].concat() }
}

/// The selection for recorders of the device. `others` are the other flags that are given of the recording.
pub(super) fn trace_selection<'f>(
    selection: &'f Forwarded<RecordSelection>,
    names: Vec<String>,
    others: impl Iterator<Item = &'f GivenFlag>,
) -> TraceSelection {
    let is_portable = |flag: &GivenFlag| flag.id == FILES || PORTABLE_FLAGS.iter().any(|id| flag.id == *id);
    let given = selection.given().chain(others);
    TraceSelection {
        names,
        apps: selection.flags.apps.clone(),
        buffer_kb: selection.flags.buffer,
        tracebridge_flags: given.filter(|flag| !is_portable(flag)).map(|flag| flag.name.clone()).collect(),
        ..TraceSelection::default()
    }
}
