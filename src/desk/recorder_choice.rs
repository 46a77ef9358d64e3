//! The choice of the recorder on a device. Where tracefs is closed to adb's user, Perfetto's daemons can
//! still read it, on releases from 9 on, and before those `atrace`.

use std::time::Duration;

use super::device::{COMMAND_TIMEOUT, Device, Privilege, TracingAccess};
use super::error::DeskError;
use crate::formats::perfetto::trace_config::{KeptEvents, TraceConfig};

/// The user's choice of a recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecorderChoice {
    /// tracebridge's own recorder; where tracefs is closed to it, the device's perfetto or atrace.
    Auto,
    /// tracebridge's own recorder.
    Tracebridge,
    /// The device's own perfetto.
    Perfetto,
    /// The device's own atrace.
    Atrace,
}

/// The recorder of one recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChosenRecorder {
    Tracebridge,
    Perfetto,
    Atrace,
}

/// The part of a recording's request that every recorder understands, in the form for recorders of the
/// device.
#[derive(Debug, Clone, Default)]
pub struct TraceSelection {
    /// Names of categories and events, as for `record`.
    pub names: Vec<String>,
    /// The apps that write their markers.
    pub apps: Vec<String>,
    /// The size of the kernel's buffer, KiB for each CPU.
    pub buffer_kb: u64,
    /// The time after which the recorder ends by itself.
    pub duration: Option<Duration>,
    /// The output's size at which the recording ends, bytes.
    pub max_bytes: Option<u64>,
    /// Which events the output is to have.
    pub kept: KeptEvents,
    /// The given flags that only tracebridge's own recorder knows, such as `--nice`.
    pub tracebridge_flags: Vec<String>,
}

impl RecorderChoice {
    /// Chooses the recorder on this device.
    ///
    /// # Errors
    /// [`DeskError`].
    pub(super) fn on(self, device: &Device) -> Result<ChosenRecorder, DeskError> {
        match self {
            RecorderChoice::Auto => ChosenRecorder::automatic(device),
            RecorderChoice::Tracebridge => Ok(ChosenRecorder::Tracebridge),
            RecorderChoice::Perfetto => Ok(ChosenRecorder::Perfetto),
            RecorderChoice::Atrace => Ok(ChosenRecorder::Atrace),
        }
    }
}

impl ChosenRecorder {
    fn automatic(device: &Device) -> Result<ChosenRecorder, DeskError> {
        if device.privilege() != Privilege::Shell || device.tracing_access()? != TracingAccess::No {
            return Ok(ChosenRecorder::Tracebridge);
        }
        let others = [ChosenRecorder::Perfetto, ChosenRecorder::Atrace];
        let other = others.into_iter().find(|recorder| recorder.is_on(device));
        // Without one of them, the messages of tracebridge's own recorder say best what is missing.
        let chosen = other.unwrap_or(ChosenRecorder::Tracebridge);
        log::debug!("{}: tracefs is closed to adb's user: {chosen:?} records", device.serial());
        Ok(chosen)
    }

    /// The device's own program that records.
    pub(super) fn program(self) -> Option<&'static str> {
        match self {
            ChosenRecorder::Tracebridge => None,
            ChosenRecorder::Perfetto => Some("perfetto"),
            ChosenRecorder::Atrace => Some("atrace"),
        }
    }

    /// Whether the device has the recorder.
    pub(super) fn is_on(self, device: &Device) -> bool {
        self.program().is_none_or(|program| {
            let found =
                device.run_script(&format!("command -v {program}"), Privilege::Shell, COMMAND_TIMEOUT);
            found.is_ok_and(|output| output.status == 0)
        })
    }
}

impl TraceSelection {
    /// The apps that write their markers, with the one that is launched.
    fn apps_with(&self, launched: Option<&str>) -> Vec<String> {
        let launched = launched.map(str::to_owned).filter(|app| !self.apps.contains(app));
        self.apps.iter().cloned().chain(launched).collect()
    }

    /// Fails for flags that only tracebridge's own recorder knows.
    fn check_flags(&self, program: &str) -> Result<(), DeskError> {
        match self.tracebridge_flags.first() {
            Some(flag) => Err(unknown_flag(flag, program)),
            None => Ok(()),
        }
    }

    /// The configuration for the device's `perfetto`, which also records the markers of the app that is
    /// launched.
    ///
    /// # Errors
    /// [`DeskError::Request`] for a request that Perfetto does not understand.
    pub(super) fn trace_config(&self, launched: Option<&str>) -> Result<TraceConfig, DeskError> {
        self.check_flags("perfetto")?;
        let duration_ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).max(1);
        let mut config = TraceConfig {
            apps: self.apps_with(launched),
            cpu_buffer_kb: self.buffer_kb,
            duration_ms: self.duration.map(duration_ms),
            max_bytes: self.max_bytes,
            kept: self.kept,
            ..TraceConfig::default()
        };
        config
            .select(self.names.iter().map(String::as_str))
            .map_err(|error| DeskError::Request(error.to_string().into()))?;
        Ok(config)
    }

    /// The arguments of the device's `atrace`, which records categories alone, and the markers of the app
    /// that is launched.
    ///
    /// # Errors
    /// [`DeskError::Request`] for a request that atrace does not understand.
    pub(super) fn atrace_args(&self, launched: Option<&str>) -> Result<Vec<String>, DeskError> {
        self.check_flags("atrace")?;
        if self.max_bytes.is_some() {
            return Err(unknown_flag("--max-size", "atrace"));
        }
        if let Some(event) = self.names.iter().find(|name| name.contains('/')) {
            let reason = format!("{event}: atrace records categories alone");
            return Err(DeskError::Request(reason.into()));
        }
        let mut args = vec!["-b".to_owned(), self.buffer_kb.to_string()];
        if self.kept != KeptEvents::First {
            args.push("-c".to_owned());
        }
        let apps = self.apps_with(launched);
        if !apps.is_empty() {
            args.extend(["-a".to_owned(), apps.join(",")]);
        }
        args.extend_from_slice(&self.names);
        Ok(args)
    }
}

fn unknown_flag(flag: &str, program: &str) -> DeskError {
    let reason = format!("{flag} is for tracebridge's own recorder: {program} does not know it");
    DeskError::Request(reason.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(names: &[&str]) -> TraceSelection {
        TraceSelection {
            names: names.iter().map(ToString::to_string).collect(),
            apps: vec!["com.a".to_owned()],
            buffer_kb: 4096,
            ..TraceSelection::default()
        }
    }

    #[test]
    fn atrace_gets_categories_and_the_apps_with_the_one_that_is_launched() {
        let args = |selection: &TraceSelection, launched| selection.atrace_args(launched).unwrap().join(" ");
        assert_eq!(args(&selection(&["sched", "freq"]), None), "-b 4096 -c -a com.a sched freq");
        assert_eq!(args(&selection(&["sched"]), Some("com.b")), "-b 4096 -c -a com.a,com.b sched");
        assert_eq!(args(&selection(&["sched"]), Some("com.a")), "-b 4096 -c -a com.a sched");
        let filling = TraceSelection { kept: KeptEvents::First, apps: Vec::new(), ..selection(&["sched"]) };
        assert_eq!(args(&filling, None), "-b 4096 sched");
    }

    #[test]
    fn a_recorder_of_the_device_is_asked_for_nothing_that_it_does_not_know() {
        let refused = |selection: &TraceSelection| {
            let error = selection.atrace_args(None).unwrap_err();
            assert!(error.is_usage());
            error.to_string()
        };
        assert_eq!(refused(&selection(&["sched/x"])), "sched/x: atrace records categories alone");
        let sized = TraceSelection { max_bytes: Some(1), ..selection(&["sched"]) };
        assert_eq!(refused(&sized), "--max-size is for tracebridge's own recorder: atrace does not know it");
        assert_eq!(sized.trace_config(None).unwrap().max_bytes, Some(1));
        let nice = TraceSelection { tracebridge_flags: vec!["--nice".to_owned()], ..selection(&["sched"]) };
        assert!(refused(&nice).starts_with("--nice is for tracebridge's own recorder"));
        assert!(nice.trace_config(None).unwrap_err().to_string().ends_with("perfetto does not know it"));
        let filtered = selection(&["sched/sched_switch:prev_pid==1"]).trace_config(None).unwrap_err();
        assert!(filtered.is_usage() && filtered.to_string().contains("takes no filters"), "{filtered}");
    }

    #[test]
    fn perfetto_records_for_at_least_a_millisecond() {
        let short = TraceSelection { duration: Some(Duration::ZERO), ..selection(&["sched"]) };
        let config = short.trace_config(Some("com.b")).unwrap();
        assert_eq!(config.duration_ms, Some(1));
        assert_eq!(config.apps, ["com.a", "com.b"]);
    }
}
