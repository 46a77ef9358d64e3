//! The whole report that `doctor` prints.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::categories::{self, CategoryReport};
use super::paths::{self, FilePurpose, PathReport};
use super::system::{MachineInfo, UserIdentity};
use crate::android::system::{Properties, atrace_properties};
use crate::android::tags;
use crate::markers::TRACEFS_PLACES;
use crate::record::parse_choices;
use crate::record::saved_settings::{SettingsFileReport, list_settings_files};
use crate::record::tracefs_config::choose_clock;

/// What this device or host permits. Its JSON form is part of the command line's interface.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct DoctorReport {
    pub(crate) identity: UserIdentity,
    pub(crate) machine: MachineInfo,
    /// The directory of tracefs, if one was found.
    pub(crate) tracefs: Option<PathBuf>,
    /// The directories where tracefs was looked for.
    pub(crate) looked_in: Vec<PathBuf>,
    /// A directory among these that this user may not enter, if no tracefs was found.
    pub(crate) closed: Option<PathBuf>,
    /// The trace clocks that the kernel offers.
    pub(crate) clocks: Vec<String>,
    /// The trace clock that `record` uses by default; `None` if the kernel's clocks are unknown.
    pub(crate) clock: Option<String>,
    /// The tracers that the kernel offers (`function_graph` …).
    pub(crate) tracers: Vec<String>,
    /// Whether tracing is on; `None` if that is unknown.
    pub(crate) tracing_on: Option<bool>,
    /// Whether there are Android properties. They switch userspace tags on.
    pub(crate) properties: bool,
    /// The names of the userspace tags that are on now.
    pub(crate) tags_on: Vec<&'static str>,
    /// Every file that a recording uses.
    pub(crate) paths: Vec<PathReport>,
    /// Every category.
    pub(crate) categories: Vec<CategoryReport>,
    /// The saved settings of recorders that are running or were killed.
    pub(crate) records: Vec<SettingsFileReport>,
}

impl DoctorReport {
    /// Whether anything can be recorded here.
    pub(crate) fn can_record(&self) -> bool {
        self.tracefs.is_some()
            && self.paths.iter().all(|p| p.works() || p.purpose != FilePurpose::Needed)
            && self.categories.iter().any(|c| c.works)
    }
}

/// Examines this device. `tracefs` is the directory of tracefs; without it the usual mount points are tried.
/// `state_dir` is the directory where recorders keep saved settings.
pub(crate) fn examine(tracefs: Option<&Path>, state_dir: &Path) -> DoctorReport {
    let properties = Properties::here();
    let identity = UserIdentity::here();
    let looked_in: Vec<PathBuf> =
        tracefs.map_or_else(|| TRACEFS_PLACES.map(PathBuf::from).to_vec(), |dir| vec![dir.to_owned()]);
    // AOSP's atrace recognises a tracefs by its trace_marker, which every user may write. tracing_on may be
    // hidden.
    let found =
        looked_in.iter().find(|p| p.join("trace_marker").exists() || p.join("tracing_on").exists()).cloned();
    let closed = looked_in.iter().find(|p| p.is_dir() && fs::read_dir(p).is_err()).cloned();
    let read = |name: &str| {
        found.as_ref().and_then(|root| fs::read_to_string(root.join(name)).ok()).unwrap_or_default()
    };
    let (clocks, current_clock) = parse_choices(&read("trace_clock"));
    let clock = (!clocks.is_empty()).then(|| choose_clock(&clocks, current_clock.as_deref()).to_owned());
    let on = properties.as_ref().and_then(|p| atrace_properties::tags_on(p, b"").ok()).unwrap_or(0);
    DoctorReport {
        machine: MachineInfo::here(properties.as_ref()),
        paths: found.as_ref().map_or_else(Vec::new, |root| paths::examine(root, state_dir, &identity)),
        categories: found
            .as_ref()
            .map_or_else(Vec::new, |root| categories::examine(root, &identity, properties.as_ref())),
        tracing_on: read("tracing_on").trim().parse::<u8>().ok().map(|on| on != 0),
        tracers: parse_choices(&read("available_tracers")).0,
        properties: properties.is_some(),
        records: list_settings_files(state_dir),
        tags_on: tags::TAGS.iter().filter(|t| on & t.mask() != 0).map(|t| t.name).collect(),
        identity,
        closed: closed.filter(|_| found.is_none()),
        tracefs: found,
        looked_in,
        clocks,
        clock,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Tracefs;
    use crate::record::saved_settings::SettingsGuard;
    use crate::record::tracefs_config::{self, TracefsConfig, WhenFull};

    /// The clock that a recording in `dir` uses if none is asked for.
    fn recorded_clock(dir: &Path) -> String {
        let tracefs = Tracefs::find(Some(dir)).unwrap();
        let (mut settings, _) = SettingsGuard::begin(&tracefs, dir, false).unwrap();
        let config = TracefsConfig {
            events: Vec::new(),
            userspace: None,
            functions: None,
            clock: None,
            buffer_kb: 64,
            when_full: WhenFull::Overwrite,
            exclude_self: false,
        };
        tracefs_config::apply(&mut settings, &config).unwrap().clock.name().to_owned()
    }

    #[test]
    fn the_clock_in_the_report_is_the_clock_that_is_recorded() {
        for (offered, expected) in [
            ("[local] global counter boot mono\n", "boot"),
            ("local [global] uptime mono\n", "mono"),
            ("local [uptime] x86-tsc\n", "uptime"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            for (name, text) in [
                ("tracing_on", "1\n"),
                ("trace", ""),
                ("trace_clock", offered),
                ("buffer_size_kb", "7\n"),
                ("set_event", ""),
                ("options/overwrite", "1\n"),
            ] {
                let path = dir.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            let report = examine(Some(dir.path()), dir.path());
            assert_eq!(report.clock.as_deref(), Some(expected), "{offered}");
            assert_eq!(recorded_clock(dir.path()), expected, "{offered}");
        }
    }

    #[test]
    fn without_a_readable_trace_clock_no_clock_is_recommended() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("trace_marker"), "").unwrap();
        let report = examine(Some(dir.path()), dir.path());
        assert_eq!((report.tracefs.as_deref(), report.clock), (Some(dir.path()), None));
    }
}
