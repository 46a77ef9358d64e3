//! `--via` of `adb record` and `adb launch`: what records on the device. Where tracefs is closed to adb's
//! user, Perfetto's daemons can still read it, on releases from 9 on, and before those `atrace`.

use std::path::Path;

use clap::ValueEnum;

use super::devices::tracing;
use super::finish::Delivered;
use super::outcome::Outcome;
use super::recorded::record_session;
use crate::cli::exit::UsageError;
use crate::cli::recording_flags::{ContentArgs, EndArgs, ModeArg, RecordSelection, SchedulingArgs};
use crate::formats::perfetto::trace_config::{Kept, TraceConfig};
use crate::remote::{COMMAND_TIME, Device, Job, Privilege, Recorder};

/// What records on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ViaArg {
    /// tracebridge's own recorder; where tracefs is closed to it, the device's perfetto or atrace
    Auto,
    /// tracebridge's own recorder
    Tracebridge,
    /// The device's own perfetto (Android 9 and newer)
    Perfetto,
    /// The device's own atrace
    Atrace,
}

impl ViaArg {
    /// What records on this device: never [`ViaArg::Auto`].
    pub(super) fn on(self, device: &Device) -> anyhow::Result<ViaArg> {
        match self {
            ViaArg::Auto if device.privilege() == Privilege::Shell && tracing(device)? == "no" => {
                let others = [ViaArg::Perfetto, ViaArg::Atrace];
                // Without one of them: tracebridge's own words about what is missing are the best that there
                // are.
                Ok(others.into_iter().find(|via| via.is_there(device)).unwrap_or(ViaArg::Tracebridge))
            }
            ViaArg::Auto => Ok(ViaArg::Tracebridge),
            asked_for => Ok(asked_for),
        }
    }

    /// The device's own program that records.
    fn program(self) -> Option<&'static str> {
        match self {
            ViaArg::Auto | ViaArg::Tracebridge => None,
            ViaArg::Perfetto => Some("perfetto"),
            ViaArg::Atrace => Some("atrace"),
        }
    }

    fn is_there(self, device: &Device) -> bool {
        self.program().is_none_or(|program| {
            let found = device.run_script(&format!("command -v {program}"), Privilege::Shell, COMMAND_TIME);
            found.is_ok_and(|output| output.status == 0)
        })
    }
}

/// What the command line asks for.
pub(super) struct Request<'a> {
    /// What records: never [`ViaArg::Auto`].
    pub(super) via: ViaArg,
    /// Whether that was not asked for.
    pub(super) is_auto: bool,
    /// The command for tracebridge's own recorder.
    pub(super) words: &'a [String],
    pub(super) selection: &'a RecordSelection,
    /// What another recorder records, in place of what the selection names.
    pub(super) names: Vec<String>,
    /// The app that is launched meanwhile, if one is: another recorder records its markers beside those of
    /// the selection's apps.
    pub(super) launched: Option<&'a str>,
    pub(super) end: &'a EndArgs,
    pub(super) scheduling: &'a SchedulingArgs,
    pub(super) contents: &'a ContentArgs,
}

impl Request<'_> {
    /// The apps that write their markers.
    fn apps(&self) -> Vec<String> {
        let apps = &self.selection.apps;
        let launched = self.launched.map(str::to_owned).filter(|app| !apps.contains(app));
        apps.iter().cloned().chain(launched).collect()
    }
}

/// Records as the request asks for. A launch that another recorder records is still tracebridge's own.
pub(super) fn record(
    request: &Request<'_>,
    device: &Device,
    output: &Path,
    shows_bar: bool,
) -> anyhow::Result<(Outcome, Delivered)> {
    let (config, atrace_words);
    let recorder = match request.via {
        ViaArg::Auto | ViaArg::Tracebridge => Recorder::Own(request.words),
        ViaArg::Perfetto => {
            let has_frame_timeline = request.launched.is_some() && has_frame_timeline(device);
            config = TraceConfig { has_frame_timeline, ..trace_config(request)? }.encode();
            Recorder::Perfetto(&config)
        }
        ViaArg::Atrace => {
            atrace_words = for_atrace(request)?;
            Recorder::Atrace(&atrace_words, request.end.time.map(|time| time.as_secs().max(1)))
        }
    };
    let program = request.via.program();
    if let Some(program) = program
        && !request.is_auto
        && !request.via.is_there(device)
    {
        anyhow::bail!("{}: there is no {program} on the device", device.serial());
    }
    let launch = program.and(request.launched).map(|_| without_recording(request.words));
    let job = Job { recorder, meanwhile: launch.as_deref(), app: request.launched };
    let (mut outcome, delivered) = record_session(device, &job, output, shows_bar)?;
    if let Some(program) = program {
        let why = if request.is_auto { ": tracefs is closed to adb's user" } else { "" };
        outcome.text = format!("recorded by the device's own {program}{why}\n{}", outcome.text);
        outcome.json["via"] = program.into();
    }
    Ok((outcome, delivered))
}

/// The first SDK version whose SurfaceFlinger has FrameTimeline: that of Android 12.
const FRAME_TIMELINE_SDK: u32 = 31;

fn has_frame_timeline(device: &Device) -> bool {
    device.facts.sdk.parse().is_ok_and(|sdk: u32| sdk >= FRAME_TIMELINE_SDK)
}

/// The words of `launch` with the flag that leaves the recording to another program.
fn without_recording(words: &[String]) -> Vec<String> {
    let mut words = words.to_owned();
    words.insert(1, "--no-record".to_owned());
    words
}

/// Fails for flags that only tracebridge's own recorder knows.
fn check_flags(request: &Request<'_>, program: &str) -> Result<(), UsageError> {
    let RecordSelection { functions, clock, exclude_self, force, buffer_args, .. } = request.selection;
    let SchedulingArgs { nice } = *request.scheduling;
    let ContentArgs { kallsyms, compress } = *request.contents;
    let given = [
        ("--functions", !functions.is_empty()),
        ("--clock", clock.is_some()),
        ("--exclude-self", *exclude_self),
        ("--force", *force),
        ("--tracefs", buffer_args.tracefs.is_some()),
        ("--instance", buffer_args.instance.is_some()),
        ("--state-dir", buffer_args.state_dir.is_some()),
        ("--nice", nice.is_some()),
        ("--kallsyms", kallsyms),
        ("--compress", compress),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(UsageError::from(format!(
            "{flag} is for tracebridge's own recorder: {program} does not know it"
        ))),
        None => Ok(()),
    }
}

fn trace_config(request: &Request<'_>) -> anyhow::Result<TraceConfig> {
    check_flags(request, "perfetto")?;
    let EndArgs { time, max_size, mode } = *request.end;
    let mut config = TraceConfig {
        apps: request.apps(),
        cpu_buffer_kb: request.selection.buffer,
        duration_ms: time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)),
        max_bytes: max_size,
        kept: match mode {
            ModeArg::Stream => Kept::All,
            ModeArg::Ring => Kept::Last,
            ModeArg::Fill => Kept::First,
        },
        ..TraceConfig::default()
    };
    config
        .select(request.names.iter().map(String::as_str))
        .map_err(|error| UsageError::from(error.to_string()))?;
    Ok(config)
}

/// The words for `atrace`, which records categories alone.
fn for_atrace(request: &Request<'_>) -> anyhow::Result<Vec<String>> {
    check_flags(request, "atrace")?;
    if request.end.max_size.is_some() {
        return Err(UsageError::from(
            "--max-size is for tracebridge's own recorder: atrace does not know it",
        )
        .into());
    }
    if let Some(event) = request.names.iter().find(|name| name.contains('/')) {
        return Err(UsageError::from(format!("{event}: atrace records categories alone")).into());
    }
    let mut words = vec!["-b".to_owned(), request.selection.buffer.to_string()];
    if request.end.mode != ModeArg::Fill {
        words.push("-c".to_owned());
    }
    let apps = request.apps();
    if !apps.is_empty() {
        words.extend(["-a".to_owned(), apps.join(",")]);
    }
    words.extend_from_slice(&request.names);
    Ok(words)
}
