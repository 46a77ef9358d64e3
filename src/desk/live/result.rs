//! The result of a recording that was shown.

use std::path::PathBuf;

use crate::desk::device::StreamEnd;
use crate::desk::device_json::DeviceJson;
use crate::desk::host_hints::host_hints;
use crate::desk::outcome::{Completeness, DeviceOutcome, LineKind, OutcomeText};
use crate::desk::recording::PrintedSummary;

/// The outcome of a recording that was shown: the recorder's own counts, and the files.
pub(super) fn outcome(end: &StreamEnd, gaps: u64, written: &[PathBuf]) -> DeviceOutcome {
    let (summary, messages): (Vec<&str>, Vec<&str>) = end.log.lines().partition(|line| line.starts_with('{'));
    let summary = summary.concat();
    let printed: PrintedSummary = serde_json::from_str(&summary).unwrap_or_default();
    let mut text = OutcomeText::from(host_hints(&messages.join("\n")));
    written.iter().for_each(|path| text.push(LineKind::Output, &path.display().to_string()));
    printed.push_to(&mut text);
    if gaps > 0 {
        text.push(
            LineKind::Loss,
            &format!("  the connection was lost {gaps} times; the counts are of the last part"),
        );
    }
    let json = DeviceJson {
        printed: serde_json::from_str(&summary).unwrap_or_default(),
        saved: Some(written.iter().map(|path| path.display().to_string()).collect()),
        connection_losses: Some(gaps),
        ..DeviceJson::default()
    };
    let is_lossy = gaps > 0 || end.status == Some(3) || printed.recording.is_lossy();
    let completeness = Completeness::Complete.with_loss(is_lossy);
    DeviceOutcome { completeness, text, json }
}
