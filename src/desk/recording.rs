//! Recordings on devices, from the host: a recorder's run, and its files: fetched, converted, summarised.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::delivery::{self, DeliveredOutput, check_output};
use super::device::{
    BINARY_PATH, Device, MAX_VIDEO_SECONDS, Recorder, RecorderJob, Session, SessionEnd, is_video,
};
use super::device_json::DeviceJson;
use super::error::DeskError;
use super::host_hints::host_hints;
use super::outcome::{Completeness, DeviceOutcome, DeviceResult, LineKind, OutcomeText};
use super::recorder_choice::{ChosenRecorder, RecorderChoice, TraceSelection};
use super::targets::{TargetDevice, Targets};
use super::user_interface::UserInterface;
use crate::formats::perfetto::trace_config::TraceConfig;
use crate::trace_dat::recording_summary::RecordingSummary;

/// The first SDK version whose SurfaceFlinger has FrameTimeline: that of Android 12.
const FRAME_TIMELINE_SDK: u32 = 31;

/// After its time a recording may take so many times as long as the device may be silent: buffers are
/// emptied, and a capture is compressed.
const MAX_TIMEOUTS_TO_END: u32 = 8;

/// A recording that is asked for.
#[derive(Debug, Clone)]
pub struct RecordingRequest {
    /// The recorder.
    pub recorder: RecorderChoice,
    /// Whether the events are sent while they are recorded, which tracebridge's own recorder does alone.
    pub is_stream: bool,
    /// Whether the device's `screenrecord` makes a video of the screen beside the recording.
    pub has_video: bool,
    /// The arguments of tracebridge's own `record`: flags, and names behind them.
    pub args: Vec<String>,
    /// The same for recorders of the device.
    pub selection: TraceSelection,
}

/// Records on devices, and makes the outputs on the host.
///
/// # Errors
/// [`DeskError`] if the output cannot be one, or the devices cannot be found.
pub fn record(
    request: &RecordingRequest,
    output: &Path,
    targets: &Targets,
    ui: &dyn UserInterface,
) -> Result<Vec<DeviceResult>, DeskError> {
    check_output(output)?;
    let args = [&["record".to_owned()], request.args.as_slice()].concat();
    targets.on_each(ui, |mut target| {
        let output = target.name.output(output);
        check_output(&output)?;
        if request.has_video {
            check_video(&target, request.selection.duration)?;
        }
        if request.is_stream {
            target.device.ensure_binary(None)?;
            return receive_stream(&target, &request.args, request.selection.duration, &output);
        }
        let recorder = request.recorder.on(&target.device)?;
        if recorder == ChosenRecorder::Tracebridge {
            target.device.ensure_binary(None)?;
        }
        let is_automatic = request.recorder == RecorderChoice::Auto;
        let run = RecorderRun {
            recorder,
            is_automatic,
            args: &args,
            selection: &request.selection,
            launched: None,
            has_video: request.has_video,
        };
        run_recorder(&run, &target, &output).map(|(outcome, _)| outcome)
    })
}

/// Fetches the events that the flight recorder of devices holds with this command (`dump` or `stop`) and its
/// arguments.
///
/// # Errors
/// [`DeskError`] if the output cannot be one, or the devices cannot be found.
pub fn fetch_flight(
    command: &str,
    args: &[String],
    output: &Path,
    targets: &Targets,
    ui: &dyn UserInterface,
) -> Result<Vec<DeviceResult>, DeskError> {
    check_output(output)?;
    let args = [&[command.to_owned()], args].concat();
    targets.on_each(ui, |mut target| {
        target.device.ensure_binary(None)?;
        let output = target.name.output(output);
        let job = RecorderJob::new(Recorder::Own(&args));
        record_session(&target, &job, Some(Duration::ZERO), &output).map(|(outcome, _)| outcome)
    })
}

/// A recorder's run on one device.
pub(super) struct RecorderRun<'a> {
    pub(super) recorder: ChosenRecorder,
    /// Whether the recorder was chosen for the user.
    pub(super) is_automatic: bool,
    /// The arguments of tracebridge's binary. Their first is the command, `record` or `launch`.
    pub(super) args: &'a [String],
    /// The same for recorders of the device.
    pub(super) selection: &'a TraceSelection,
    /// The package of the app that `args` launch. tracebridge launches it also where another recorder
    /// records.
    pub(super) launched: Option<&'a str>,
    /// Whether a video of the screen is made beside it.
    pub(super) has_video: bool,
}

/// Runs a recorder, and makes the output of its files.
pub(super) fn run_recorder(
    run: &RecorderRun<'_>,
    target: &TargetDevice<'_>,
    output: &Path,
) -> Result<(DeviceOutcome, DeliveredOutput), DeskError> {
    let config;
    let atrace_args;
    let recorder = match run.recorder {
        ChosenRecorder::Tracebridge => Recorder::Own(run.args),
        ChosenRecorder::Perfetto => {
            let has_frame_timeline = run.launched.is_some() && has_frame_timeline(&target.device);
            let selected = run.selection.trace_config(run.launched)?;
            config = TraceConfig { has_frame_timeline, ..selected }.encode();
            Recorder::Perfetto(&config)
        }
        ChosenRecorder::Atrace => {
            atrace_args = run.selection.atrace_args(run.launched)?;
            let seconds = run.selection.duration.map(|duration| duration.as_secs().max(1));
            Recorder::Atrace(&atrace_args, seconds)
        }
    };
    let video_seconds = run.has_video.then(|| video_seconds(run.selection.duration));
    let Some(program) = run.recorder.program() else {
        let job = RecorderJob { recorder, launch_args: None, app: run.launched, video_seconds };
        return record_session(target, &job, run.selection.duration, output);
    };
    if !run.is_automatic && !run.recorder.is_on(&target.device) {
        return Err(DeskError::NoRecorder { serial: target.device.serial().to_owned(), program });
    }
    let launch_args = run.launched.map(|_| without_recording(run.args));
    let job = RecorderJob { recorder, launch_args: launch_args.as_deref(), app: run.launched, video_seconds };
    let (mut outcome, delivered) = record_session(target, &job, run.selection.duration, output)?;
    let reason = if run.is_automatic { ": tracefs is closed to adb's user" } else { "" };
    outcome.text.put_before(&format!("recorded by the device's own {program}{reason}"));
    outcome.json.via = Some(program);
    Ok((outcome, delivered))
}

/// The longest video of a recording that takes so long, s.
fn video_seconds(duration: Option<Duration>) -> u64 {
    // The video begins before the recording.
    let needed = duration.map(|duration| duration.as_secs().saturating_add(3));
    needed.map_or(MAX_VIDEO_SECONDS, |needed| needed.min(MAX_VIDEO_SECONDS))
}

/// Fails where the device makes no videos, and says that a video may be shorter than the recording.
pub(super) fn check_video(target: &TargetDevice<'_>, duration: Option<Duration>) -> Result<(), DeskError> {
    let serial = target.device.serial();
    if !target.device.has_screenrecord()? {
        return Err(DeskError::NoScreenrecord { serial: serial.to_owned() });
    }
    if duration.is_none_or(|duration| duration.as_secs() > MAX_VIDEO_SECONDS) {
        target.ui.show_message(&format!(
            "{serial}: the video ends after {MAX_VIDEO_SECONDS} s, the longest that screenrecord makes; the recording \
             goes on"
        ));
    }
    Ok(())
}

/// Says what it costs where SurfaceFlinger's FrameTimeline, which the device has, was not recorded.
pub(super) fn say_without_frame_timeline(
    outcome: &mut DeviceOutcome,
    recorder: ChosenRecorder,
    device: &Device,
) {
    if recorder != ChosenRecorder::Perfetto && has_frame_timeline(device) {
        let note = "  FrameTimeline was not recorded: the deadlines of frames come from VSYNC's period, and nothing says \
                    whose fault a late one was (--via perfetto records it, in place of tracebridge's recorder)";
        outcome.text.push(LineKind::Note, note);
        outcome.json.frame_timeline = Some(false);
    }
}

/// Whether the device's SurfaceFlinger has FrameTimeline.
fn has_frame_timeline(device: &Device) -> bool {
    device.facts.sdk.parse().is_ok_and(|sdk: u32| sdk >= FRAME_TIMELINE_SDK)
}

/// The arguments of `launch` with the flag that leaves the recording to another program.
fn without_recording(args: &[String]) -> Vec<String> {
    let mut args = args.to_owned();
    args.insert(1, "--no-record".to_owned());
    args
}

/// Runs a job on a device, up to its end or the user's signal, and fetches the recording. A job of which it
/// is known how long it takes is told to end when it takes much longer.
fn record_session(
    target: &TargetDevice<'_>,
    job: &RecorderJob<'_>,
    duration: Option<Duration>,
    output: &Path,
) -> Result<(DeviceOutcome, DeliveredOutput), DeskError> {
    let device = &target.device;
    target.ui.show_recording(device.serial());
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    let is_ending = ends_after(target, duration);
    let (session, end) = Session::run(device, device.privilege(), job, &name, &is_ending)?;
    let mut fetched = fetch(target, &session, end, output)?;
    if job.video_seconds.is_some() && fetched.1.video().is_none() {
        let missing = "screenrecord made no video: the recording is complete without";
        fetched.0.text.push(LineKind::Loss, missing);
        fetched.0.completeness = fetched.0.completeness.with_loss(true);
    }
    session.remove()?;
    Ok(fetched)
}

/// Returns whether a recording of this duration is to end: the user wants it, or it should have ended long
/// ago.
fn ends_after(target: &TargetDevice<'_>, duration: Option<Duration>) -> impl Fn() -> bool {
    let timeout = target.device.transport().server().timeout() * MAX_TIMEOUTS_TO_END;
    let limit = duration.and_then(|duration| duration.checked_add(timeout));
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    move || target.wants_end() || deadline.is_some_and(|deadline| Instant::now() > deadline)
}

/// Fetches the files of a recording that has ended. They stay on the device.
pub(super) fn fetch(
    target: &TargetDevice<'_>,
    session: &Session,
    end: SessionEnd,
    output: &Path,
) -> Result<(DeviceOutcome, DeliveredOutput), DeskError> {
    let serial = target.device.serial();
    let files = end.captures(session);
    let has_recording = files.iter().any(|file| !is_video(file));
    let completeness = match end.status {
        Some(0) => Completeness::Complete,
        Some(3) => Completeness::Lossy,
        // The part that it had written until then can be read.
        None if has_recording => Completeness::Lossy,
        None => return Err(DeskError::RecorderKilled { serial: serial.to_owned(), dir: session.dir() }),
        // A launch that failed has left a capture of its failure.
        Some(1) if has_recording => Completeness::Failed,
        status => {
            session.remove()?;
            return Err(recorder_error(serial, status, &end.log));
        }
    };
    let delivered = delivery::deliver(target, &files, output)?;
    let mut outcome = recording_outcome(completeness, &end.summary, &end.log, &delivered);
    if end.status.is_none() {
        let killed = "the recorder was killed: this is what it had written. `tracebridge adb clean` puts the device's \
                      settings back";
        outcome.text.push(LineKind::Loss, killed);
    }
    Ok((outcome, delivered))
}

/// Records without a file on the device, with these arguments of `record`.
fn receive_stream(
    target: &TargetDevice<'_>,
    args: &[String],
    duration: Option<Duration>,
    output: &Path,
) -> Result<DeviceOutcome, DeskError> {
    let device = &target.device;
    target.ui.show_recording(device.serial());
    let record = [BINARY_PATH, "record", "-o", "-", "--json"].map(str::to_owned);
    let command = [&record, args].concat();
    let is_ending = ends_after(target, duration);
    let (delivered, end) = delivery::deliver_stream(target, output, &mut |file| {
        let end = device.stream(&command, device.privilege(), file, &is_ending, None, None)?;
        if !matches!(end.status, Some(0 | 3) | None) {
            return Err(recorder_error(device.serial(), end.status, &end.log));
        }
        Ok(end)
    })?;
    // The summary goes to standard error, where the events take standard output.
    let (summary, messages): (Vec<&str>, Vec<&str>) = end.log.lines().partition(|line| line.starts_with('{'));
    let mut log = messages.join("\n");
    if let Some(lost) = &end.lost {
        log += &format!("{lost}: the output holds what came until then");
    }
    let completeness = Completeness::Complete.with_loss(end.lost.is_some() || end.status == Some(3));
    Ok(recording_outcome(completeness, &summary.concat(), &log, &delivered))
}

/// The error of a recorder that has failed, in its own words.
pub(super) fn recorder_error(serial: &str, status: Option<u8>, log: &str) -> DeskError {
    let lines: Vec<_> = log.lines().map(|line| line.trim_start_matches("tracebridge: ")).collect();
    let message = match (lines.is_empty(), status) {
        (true, Some(status)) => format!("the recorder ended with status {status}"),
        (true, None) => "the recorder was killed".to_owned(),
        _ => host_hints(&lines.join("; ")),
    };
    let serial = serial.to_owned();
    match status {
        Some(2) => DeskError::CommandUsage { serial, message },
        _ => DeskError::CommandFailed { serial, message },
    }
}

/// The outcome of a recording whose recorder has ended with `completeness`: the recorder's own messages, the
/// output, and the recorder's summary.
fn recording_outcome(
    completeness: Completeness,
    summary: &str,
    log: &str,
    delivered: &DeliveredOutput,
) -> DeviceOutcome {
    let printed: PrintedSummary = serde_json::from_str(summary).unwrap_or_default();
    let mut text = OutcomeText::from(host_hints(log));
    text.push(LineKind::Output, &delivered.text());
    printed.push_to(&mut text);
    let json = DeviceJson {
        printed: serde_json::from_str(summary).unwrap_or_default(),
        delivered: Some(delivered.json()),
        ..DeviceJson::default()
    };
    let completeness = completeness.with_loss(delivered.is_lossy || printed.recording.is_lossy());
    DeviceOutcome { completeness, text, json }
}

/// The JSON that a recorder on a device prints, as far as the host's text needs it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PrintedSummary {
    #[serde(flatten)]
    pub(super) recording: RecordingSummary,
    /// The start of an app that `launch` has observed.
    app_start: Option<PrintedAppStart>,
}

/// The start of an app, as `launch` prints it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PrintedAppStart {
    /// Lines of `am start`.
    times: Vec<String>,
}

impl PrintedSummary {
    /// Adds the summary in lines for people.
    pub(super) fn push_to(&self, text: &mut OutcomeText) {
        for time in self.app_start.iter().flat_map(|start| &start.times) {
            text.push(LineKind::Figures, &format!("  {time}"));
        }
        // Without a CPU another program has recorded.
        if !self.recording.cpus.is_empty() {
            text.push(LineKind::Figures, &self.recording.events_text());
            text.push(LineKind::Loss, &self.recording.losses_text());
            text.push(LineKind::Note, &self.recording.incidents_text());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Cpu, Pid};
    use crate::trace_dat::recording_summary::{CpuSummary, ProgramSummary, RecordingEndReason, RingsSummary};

    fn text_of(printed: &PrintedSummary) -> OutcomeText {
        let mut text = OutcomeText::default();
        printed.push_to(&mut text);
        text
    }

    fn as_the_host_reads_it(summary: &RecordingSummary) -> PrintedSummary {
        serde_json::from_str(&serde_json::to_string(summary).unwrap()).unwrap()
    }

    #[test]
    fn a_summary_from_a_device_comes_here_whole() {
        let cpu = CpuSummary { cpu: Cpu(3), events: 9, taken: 1, gaps: 2, left: 4, ..CpuSummary::default() };
        let program =
            ProgramSummary { pid: Pid(7), name: "app".into(), dropped: 2, ..ProgramSummary::default() };
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
        assert_eq!(as_the_host_reads_it(&summary).recording, summary);
    }

    #[test]
    fn a_gap_without_a_number_is_a_lost_event_on_the_device_and_here() {
        let cpu = CpuSummary { events: 10, gaps: 1, ..CpuSummary::default() };
        let summary = RecordingSummary { streaming: true, cpus: vec![cpu], ..RecordingSummary::default() };
        assert!(summary.text().contains(" 10 events, 1 lost"), "{}", summary.text());
        let read = as_the_host_reads_it(&summary);
        assert_eq!(text_of(&read).lines_of(LineKind::Loss).collect::<Vec<_>>(), ["  1 events lost"]);
        assert_eq!(read.recording.lost(), summary.lost());
        assert_eq!(Completeness::Complete.with_loss(read.recording.is_lossy()), Completeness::Lossy);
        assert_eq!(Completeness::Failed.with_loss(read.recording.is_lossy()), Completeness::Failed);
    }

    #[test]
    fn the_times_of_a_launch_that_another_program_recorded_stand_alone() {
        let read: PrintedSummary =
            serde_json::from_str(r#"{"app_start":{"times":["TotalTime: 512"]}}"#).unwrap();
        assert_eq!(text_of(&read).to_string(), "  TotalTime: 512\n");
    }

    #[test]
    fn a_recorders_failure_is_told_in_its_own_words_with_the_hosts_commands() {
        let log =
            "tracebridge: a flight recorder is on: end it with `tracebridge stop`\ntracebridge: no more";
        let error = recorder_error("S1", Some(1), log);
        assert_eq!(
            error.to_string(),
            "S1: a flight recorder is on: end it with `tracebridge adb stop`; no more"
        );
        assert!(!error.is_usage() && recorder_error("S1", Some(2), "x").is_usage());
        assert_eq!(recorder_error("S1", Some(9), "").to_string(), "S1: the recorder ended with status 9");
        assert_eq!(recorder_error("S1", None, "").to_string(), "S1: the recorder was killed");
    }
}
