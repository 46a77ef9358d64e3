//! Examines what this device or host permits: where its tracefs is, which files this user may use for a
//! recording, what refuses access to the other files, and what would change that. Examining changes nothing.
//! [`DoctorReport`] is the whole report that `doctor` prints.

mod categories;
mod paths;

use std::fs;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use serde::Serialize;

use crate::android::{Properties, UserIdentity, UserKind, atrace_properties, tags};
use crate::markers::TRACEFS_PLACES;
use crate::record::saved_settings::{SettingsFileReport, StateDir, list_settings_files};
use crate::record::tracefs_config::choose_clock;
use crate::record::{Tracefs, parse_choices};

pub(crate) use categories::{CategoryReport, CauseReport};
pub(crate) use paths::{FilePurpose, PathReport};

/// The report of what this device or host permits. Its JSON form is part of the command line's interface.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// The tracers that the kernel offers (`function_graph` …); empty if this user may not see them.
    pub(crate) tracers: Vec<String>,
    /// The tracer that is on; `None` if that is unknown.
    pub(crate) tracer: Option<String>,
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
    /// The causes that the host's `why` can tell of a recording made here.
    pub(crate) causes: Vec<CauseReport>,
    /// The saved settings of recorders that are running or were killed.
    pub(crate) records: Vec<SettingsFileReport>,
}

impl DoctorReport {
    /// Whether the process is an Android app, which may write markers and nothing else.
    pub(crate) fn is_app(&self) -> bool {
        self.identity.kind == UserKind::App
    }

    /// Whether anything can be recorded here.
    pub(crate) fn can_record(&self) -> bool {
        self.tracefs.is_some()
            && self.paths.iter().all(|p| p.works() || p.purpose != FilePurpose::Needed)
            && self.categories.iter().any(|c| c.works)
    }
}

/// The machine that this process runs on.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct MachineInfo {
    /// The kernel's release (`6.6.30-android15`).
    pub(crate) kernel: String,
    /// The kernel's architecture (`aarch64`).
    pub(crate) arch: String,
    /// Android's name of the ABI that this binary was built for.
    pub(crate) abi: &'static str,
    /// The number of CPUs that this process may use.
    pub(crate) cpus: usize,
    /// The size of a memory page, bytes.
    pub(crate) page_size: usize,
    /// Android's release, SDK level and build type (`15 (SDK 35), userdebug`); `None` on other systems.
    pub(crate) android: Option<String>,
}

impl MachineInfo {
    /// Describes this machine.
    pub(crate) fn examine(properties: Option<&Properties>) -> MachineInfo {
        let uname = nix::sys::utsname::uname().ok();
        let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let android = properties.and_then(|p| {
            let get = |name| p.get(name).ok().filter(|v| !v.is_empty());
            let release = get("ro.build.version.release")?;
            let sdk = get("ro.build.version.sdk")?;
            Some(format!("{release} (SDK {sdk}), {}", get("ro.build.type").unwrap_or_default()))
        });
        MachineInfo {
            kernel: text(uname.as_ref().map(|u| u.release())),
            arch: text(uname.as_ref().map(|u| u.machine())),
            abi: android_abi(),
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            page_size: nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)
                .ok()
                .flatten()
                .map_or(0, |n| n as usize),
            android,
        }
    }
}

fn android_abi() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "arm64-v8a",
        "arm" => "armeabi-v7a",
        other => other,
    }
}

/// How much is examined. On a locked phone each file that is refused adds a line to the device's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everything.
    All,
    /// The categories, and what they need.
    Categories,
}

/// Examines this device. `tracefs` is the directory of tracefs; without it the usual mount points are tried.
/// `state_dir` is the directory where recorders keep saved settings; without it, this user's own.
pub(crate) fn examine(tracefs: Option<&Path>, state_dir: Option<&Path>, scope: Scope) -> DoctorReport {
    let properties = Properties::find();
    let identity = UserIdentity::current();
    let looked_in: Vec<PathBuf> =
        tracefs.map_or_else(|| TRACEFS_PLACES.map(PathBuf::from).to_vec(), |dir| vec![dir.to_owned()]);
    // AOSP's atrace recognises a tracefs by its trace_marker, which every user may write. `access(2)` finds
    // it where SELinux refuses `stat(2)`.
    let has = |dir: &Path, name: &str| access(&dir.join(name), AccessFlags::F_OK).is_ok();
    let found = looked_in.iter().find(|dir| has(dir, "trace_marker") || has(dir, "tracing_on")).cloned();
    let closed = looked_in.iter().find(|dir| dir.is_dir() && fs::read_dir(dir).is_err()).cloned();
    // What apps may not read they need not ask for: each refusal adds a line to the device's log.
    let is_app = identity.kind == UserKind::App;
    let readable = found.as_ref().filter(|_| !is_app);
    let tracefs = readable.and_then(|root| Tracefs::find(Some(root)).ok());
    let may_see_tracers =
        tracefs.as_ref().is_some_and(|t| !identity.selinux_enforcing || t.may_write("current_tracer"));
    let read =
        |name: &str| readable.and_then(|root| fs::read_to_string(root.join(name)).ok()).unwrap_or_default();
    let (clocks, current_clock) = parse_choices(&read("trace_clock"));
    let clock = (!clocks.is_empty()).then(|| choose_clock(&clocks, current_clock.as_deref()).to_owned());
    let categories =
        readable.map_or_else(Vec::new, |root| categories::examine(root, &identity, properties.as_ref()));
    let on = properties.as_ref().and_then(|p| atrace_properties::tags_on(p, b"").ok()).unwrap_or(0);
    DoctorReport {
        machine: MachineInfo::examine(properties.as_ref()),
        paths: match &found {
            Some(_) if scope == Scope::Categories => Vec::new(),
            Some(root) if is_app => vec![paths::examine_marker(root, &identity)],
            Some(root) => paths::examine(root, &StateDir::likely_path(state_dir), &identity),
            None => Vec::new(),
        },
        causes: categories::told_causes(&categories),
        categories,
        tracing_on: read("tracing_on").trim().parse::<u8>().ok().map(|on| on != 0),
        tracers: if may_see_tracers { parse_choices(&read("available_tracers")).0 } else { Vec::new() },
        tracer: tracefs.as_ref().and_then(Tracefs::tracer_of_trace),
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
    use crate::record::saved_settings::SettingsGuard;
    use crate::record::tracefs_config::{self, TracefsConfig, WhenFull};

    /// The clock that a recording in `dir` uses if none is asked for.
    fn recorded_clock(dir: &Path) -> String {
        let tracefs = Tracefs::find(Some(dir)).unwrap();
        let (mut settings, _) = SettingsGuard::begin(&tracefs, StateDir::for_tests(dir), false).unwrap();
        let config = TracefsConfig {
            events: Vec::new(),
            asked: Vec::new(),
            userspace: None,
            functions: None,
            clock: None,
            buffer_kb: 64,
            when_full: WhenFull::Overwrite,
            exclude_self: false,
            process_in_text: false,
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
            let report = examine(Some(dir.path()), Some(dir.path()), Scope::All);
            assert_eq!(report.clock.as_deref(), Some(expected), "{offered}");
            assert_eq!(recorded_clock(dir.path()), expected, "{offered}");
        }
    }

    #[test]
    fn without_a_readable_trace_clock_no_clock_is_recommended() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("trace_marker"), "").unwrap();
        let report = examine(Some(dir.path()), Some(dir.path()), Scope::All);
        assert_eq!((report.tracefs.as_deref(), report.clock), (Some(dir.path()), None));
    }
}
