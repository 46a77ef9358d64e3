//! A recorder's run on a device, and what it leaves: fetched, converted, and told.

use std::io::{self, IsTerminal};
use std::path::Path;

use serde_json::{Map, Value};

use super::finish::{self, Delivered};
use super::outcome::Outcome;
use super::recorder_summary::RecorderSummary;
use crate::cli::Exit;
use crate::cli::exit::UsageError;
use crate::cli::host::interrupt;
use crate::console::complain;
use crate::remote::{Device, Ended, Job, Session};

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
        None => anyhow::bail!(
            "{}: the recorder was killed. `tracebridge adb clean` puts the device's settings back and removes what is \
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
    Ok((outcome_of(recorder, &ended.summary, ended.log, &delivered), delivered))
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
    let counts = serde_json::from_str::<RecorderSummary>(summary).map(|summary| summary.text());
    let head = if log.is_empty() { log } else { log + "\n" };
    let text = format!("{head}{}\n{}", delivered.text(), counts.unwrap_or_default());
    let mut fields: Map<String, Value> = serde_json::from_str(summary).unwrap_or_default();
    if let Value::Object(more) = delivered.json() {
        fields.extend(more);
    }
    let is_lossy = delivered.is_lossy && recorder == Exit::Complete;
    Outcome { exit: if is_lossy { Exit::Lossy } else { recorder }, text, json: Value::Object(fields) }
}
