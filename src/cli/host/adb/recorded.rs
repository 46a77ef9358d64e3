//! A recorder's run on a device, and what it leaves: fetched, converted, and told.

use std::io::{self, IsTerminal};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::finish::{self, Delivered};
use super::outcome::Outcome;
use crate::cli::Exit;
use crate::cli::exit::UsageError;
use crate::cli::host::interrupt;
use crate::console::complain;
use crate::remote::{Device, Ended, Job, Session};
use crate::trace_dat::recording_summary::RecordingSummary;

/// Runs a job on a device, up to its end or the user's signal, and fetches what was recorded.
pub(super) fn record_session(
    device: &Device,
    job: &Job<'_>,
    output: &Path,
    shows_bar: bool,
) -> anyhow::Result<(Outcome, Delivered)> {
    announce(device);
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    let (session, ended) = Session::run(device, device.privilege(), job, &name, &interrupt::has_come)?;
    let fetched = fetch(device, &session, ended, output, shows_bar)?;
    session.remove()?;
    Ok(fetched)
}

/// Fetches what a recording that has ended has left on the device. Its files there are kept.
pub(super) fn fetch(
    device: &Device,
    session: &Session,
    ended: Ended,
    output: &Path,
    shows_bar: bool,
) -> anyhow::Result<(Outcome, Delivered)> {
    let files = ended.captures(session);
    let recorder = match ended.status {
        Some(0) => Exit::Complete,
        Some(3) => Exit::Lossy,
        // What it had written until then can be read.
        None if !files.is_empty() => Exit::Lossy,
        None => anyhow::bail!(
            "{}: the recorder was killed, and left nothing to fetch. `tracebridge adb clean --force` puts the device's settings back and removes what is \
             left of the recording in {}",
            device.serial(),
            session.dir()
        ),
        // A launch that failed has left a capture of what happened.
        Some(1) if !files.is_empty() => Exit::Failed,
        status => {
            session.remove()?;
            return Err(failure(device, status, &ended.log));
        }
    };
    let delivered = finish::deliver(device, &files, output, shows_bar)?;
    let mut outcome = outcome_of(recorder, &ended.summary, ended.log, &delivered);
    if ended.status.is_none() {
        outcome.text += "the recorder was killed: this is what it had written. `tracebridge adb clean` puts the device's \
                         settings back\n";
    }
    Ok((outcome, delivered))
}

/// Says that something is recorded, to somebody at a terminal.
pub(super) fn announce(device: &Device) {
    if io::stderr().is_terminal() {
        complain(format_args!("recording on {}; Ctrl-C ends the recording", device.serial()));
    }
}

/// The recorder's own words about its failure.
pub(super) fn failure(device: &Device, status: Option<u8>, log: &str) -> anyhow::Error {
    let lines: Vec<_> = log.lines().map(|line| line.trim_start_matches("tracebridge: ")).collect();
    let words = match (lines.is_empty(), status) {
        (true, Some(status)) => format!("the recorder ended with status {status}"),
        (true, None) => "the recorder was killed".to_owned(),
        _ => lines.join("; "),
    };
    let text = format!("{}: {words}", device.serial());
    match status {
        Some(2) => UsageError(text.into()).into(),
        _ => anyhow::anyhow!("{text}"),
    }
}

/// The recording and its output here, for people and scripts: the recorder's own words, the output, and the
/// recorder's summary.
pub(super) fn outcome_of(recorder: Exit, summary: &str, log: String, delivered: &Delivered) -> Outcome {
    let printed: PrintedSummary = serde_json::from_str(summary).unwrap_or_default();
    let head = if log.is_empty() { log } else { log + "\n" };
    let text = format!("{head}{}\n{}", delivered.text(), printed.text());
    let mut fields: Map<String, Value> = serde_json::from_str(summary).unwrap_or_default();
    if let Value::Object(more) = delivered.json() {
        fields.extend(more);
    }
    let exit = exit_of(recorder, delivered.is_lossy || printed.recording.is_lossy());
    Outcome { exit, text, json: Value::Object(fields) }
}

/// The exit status where the recorder's own is `recorder`, and the events or the output lack something.
fn exit_of(recorder: Exit, is_lossy: bool) -> Exit {
    if is_lossy && recorder == Exit::Complete { Exit::Lossy } else { recorder }
}

/// The JSON that a recorder on a device prints, as far as its text needs it here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PrintedSummary {
    #[serde(flatten)]
    recording: RecordingSummary,
    /// The start of an app that `launch` has observed.
    app_start: Option<AppStart>,
}

/// The start of an app, as `launch` prints it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AppStart {
    /// Lines of `am start`.
    times: Vec<String>,
}

impl PrintedSummary {
    /// The summary in lines for people.
    fn text(&self) -> String {
        let times = self.app_start.iter().flat_map(|start| &start.times);
        let times: String = times.map(|line| format!("  {line}\n")).collect();
        if self.recording.cpus.is_empty() {
            // Another program has recorded.
            return times;
        }
        times + &self.recording.text_of_sums()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_dat::recording_summary::{CpuSummary, ProgramSummary, RecordingEndReason, RingsSummary};

    fn as_the_desk_reads_it(summary: &RecordingSummary) -> PrintedSummary {
        serde_json::from_str(&serde_json::to_string(summary).unwrap()).unwrap()
    }

    #[test]
    fn a_summary_from_a_device_comes_here_whole() {
        let cpu = CpuSummary { cpu: 3, events: 9, taken: 1, gaps: 2, left: 4, ..CpuSummary::default() };
        let program = ProgramSummary { pid: 7, name: "app".into(), dropped: 2, ..ProgramSummary::default() };
        let summary = RecordingSummary {
            streaming: true,
            seconds: 1.5,
            clock: "boot".into(),
            ended_by: RecordingEndReason::TakenOver,
            cpus: vec![cpu],
            rings: RingsSummary {
                markers: 5,
                dropped: 2,
                programs: vec![program],
                ..RingsSummary::default()
            },
            taken_over: Some(Default::default()),
            ..RecordingSummary::default()
        };
        assert_eq!(as_the_desk_reads_it(&summary).recording, summary);
    }

    #[test]
    fn a_gap_without_a_number_is_a_lost_event_on_the_device_and_here() {
        let cpu = CpuSummary { events: 10, gaps: 1, ..CpuSummary::default() };
        let summary = RecordingSummary { streaming: true, cpus: vec![cpu], ..RecordingSummary::default() };
        assert!(summary.text().contains(" 10 events, 1 lost"), "{}", summary.text());
        let here = as_the_desk_reads_it(&summary);
        assert!(here.text().contains("\n  1 events lost\n"), "{}", here.text());
        assert_eq!(here.recording.lost(), summary.lost());
        assert_eq!(exit_of(Exit::Complete, here.recording.is_lossy()), Exit::Lossy);
        assert_eq!(exit_of(Exit::Failed, here.recording.is_lossy()), Exit::Failed);
    }

    #[test]
    fn the_times_of_a_launch_that_another_program_recorded_stand_alone() {
        let here: PrintedSummary =
            serde_json::from_str(r#"{"app_start":{"times":["TotalTime: 512"]}}"#).unwrap();
        assert_eq!(here.text(), "  TotalTime: 512\n");
    }
}
