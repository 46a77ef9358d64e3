//! The files that a recording uses, what each of them is for, and which kernel option provides it.

use std::fs;
use std::path::Path;

use nix::unistd::{AccessFlags, access};
use serde::Serialize;

use crate::android::{UserIdentity, UserKind};
use crate::record::file_access::{self, FileAccess, Obstacle, RequiredAccess};
use crate::record::is_option_on;

/// How much a recording depends on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum FilePurpose {
    /// Nothing can be recorded without the file.
    Needed,
    /// Without the file something is missing from a recording, or recording costs more.
    Useful,
    /// Only one option or command needs the file; [`PathReport::what_for`] names it.
    Special,
}

use FilePurpose::{Needed, Special, Useful};

/// A file that a recording uses.
struct UsedFile {
    /// The path relative to tracefs, or an absolute path. A path with `cpu0` stands for the files of all
    /// CPUs.
    path: &'static str,
    /// Whether the recording reads the file.
    read: bool,
    /// Whether the recording writes the file.
    write: bool,
    purpose: FilePurpose,
    what_for: &'static str,
    /// The kernel option, kernel version or system that provides the file.
    provided_by: &'static str,
    /// The file without which this one is of no use, and which stands above it in the table. If that file
    /// cannot be used, this one is not examined: on a locked phone each refusal adds a line to the device's
    /// log.
    only_with: Option<&'static str>,
}

impl UsedFile {
    const fn only_with(self, path: &'static str) -> UsedFile {
        UsedFile { only_with: Some(path), ..self }
    }
}

const fn uses(
    path: &'static str,
    access: &str,
    purpose: FilePurpose,
    what_for: &'static str,
    provided_by: &'static str,
) -> UsedFile {
    let access = access.as_bytes();
    UsedFile {
        path,
        read: access[0] == b'r',
        write: access[1] == b'w',
        purpose,
        what_for,
        provided_by,
        only_with: None,
    }
}

/// The option that makes the kernel remember the names of threads.
const RECORD_CMD: &str = "options/record-cmd";
const RECORD_CMD_USE: &str = "names of threads that end";

#[rustfmt::skip] // a table
const USED_FILES: &[UsedFile] = &[
    uses("tracing_on", "rw", Needed, "starts and stops the recording", "CONFIG_TRACING"),
    uses("per_cpu/cpu0/trace_pipe_raw", "r-", Needed, "the recording itself", "CONFIG_TRACING"),
    uses("events/header_page", "r-", Needed, "the layout of the recording", "CONFIG_EVENT_TRACING"),
    uses("events/sched/sched_switch/enable", "rw", Useful, "which thread runs", "CONFIG_EVENT_TRACING"),
    uses("events/sched/sched_switch/format", "r-", Useful, "which thread runs", "CONFIG_EVENT_TRACING"),
    uses("events/ftrace/print/format", "r-", Useful, "reading markers", "CONFIG_EVENT_TRACING"),
    uses("trace_marker", "-w", Useful, "markers", "CONFIG_TRACING"),
    uses("trace_clock", "rw", Useful, "a clock that other traces share", "CONFIG_TRACING"),
    uses("buffer_size_kb", "rw", Useful, "room for bursts", "CONFIG_TRACING"),
    uses("buffer_percent", "rw", Useful, "fewer wake-ups", "Linux 5.0"),
    uses("events/header_event", "r-", Useful, "what trace-cmd requires in a capture", "CONFIG_EVENT_TRACING"),
    uses("printk_formats", "r-", Useful, "texts that events refer to by address", "CONFIG_TRACING"),
    uses("per_cpu/cpu0/stats", "r-", Useful, "counts of lost events", "CONFIG_TRACING"),
    uses("options/overwrite", "rw", Useful, "ring or stop-when-full", "CONFIG_TRACING"),
    uses("options/record-tgid", "rw", Useful, "the process of each thread in the text of atrace", "Linux 4.13; before, Android had options/print-tgid"),
    uses(RECORD_CMD, "rw", Useful, RECORD_CMD_USE, "CONFIG_TRACING"),
    uses("saved_cmdlines", "r-", Useful, "thread names", "CONFIG_TRACING"),
    uses("saved_cmdlines_size", "rw", Useful, "more thread names", "CONFIG_TRACING"),
    uses("/system/bin/getprop", "r-", Useful, "userspace tags", "Android"),
    uses("/system/bin/setprop", "r-", Useful, "userspace tags", "Android"),
    uses("/dev/socket/property_service", "-w", Useful, "userspace tags, without a process for each", "Android"),
    uses("trace", "rw", Special, "atrace", "CONFIG_TRACING"),
    uses("trace_pipe", "r-", Special, "atrace --stream", "CONFIG_TRACING"),
    uses("set_event", "r-", Special, "listing the enabled events with one read", "CONFIG_EVENT_TRACING"),
    uses("set_event_notrace_pid", "rw", Special, "--exclude-self", "Linux 5.7"),
    uses("instances", "rw", Special, "--instance", "CONFIG_TRACING"),
    uses("options/copy_trace_marker", "rw", Special, "markers inside of an --instance", "Linux 6.14").only_with("instances"),
    uses("current_tracer", "rw", Special, "-k", "CONFIG_TRACING"),
    uses("set_ftrace_filter", "rw", Special, "-k", "CONFIG_DYNAMIC_FTRACE").only_with("current_tracer"),
    uses("set_graph_function", "rw", Special, "-k --graph", "CONFIG_FUNCTION_GRAPH_TRACER").only_with("current_tracer"),
    uses("available_filter_functions", "r-", Special, "-k", "CONFIG_DYNAMIC_FTRACE").only_with("current_tracer"),
    uses("/proc/kallsyms", "r-", Special, "names of kernel functions", "CONFIG_KALLSYMS").only_with("current_tracer"),
    uses("options/funcgraph-abstime", "rw", Special, "-k", "CONFIG_FUNCTION_GRAPH_TRACER").only_with("current_tracer"),
    uses("/system/bin/am", "r-", Special, "launch", "Android"),
    uses("/system/bin/service", "r-", Special, "making running services read new tags, Android 10 and older", "Android"),
];

/// A file that a recording uses, and what this user may do with it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PathReport {
    /// The path: relative to tracefs for a file of tracefs, otherwise absolute.
    pub(crate) path: String,
    pub(crate) purpose: FilePurpose,
    /// The use of the file.
    pub(crate) what_for: &'static str,
    #[serde(flatten)]
    pub(crate) access: FileAccess,
    /// Why the file cannot be used and what would change that; `None` if it can be used.
    pub(crate) reason: Option<String>,
}

impl PathReport {
    /// Whether a recording can use the file.
    pub(crate) fn works(&self) -> bool {
        self.reason.is_none()
    }
}

/// Inspects every file that a recording uses: the files of the tracefs at `root`, those of the system, and
/// `state_dir`.
pub(super) fn examine(root: &Path, state_dir: &Path, user: &UserIdentity) -> Vec<PathReport> {
    let cpus = fs::read_dir(root.join("per_cpu")).map_or(1, |dir| dir.count().max(1));
    let mut out: Vec<PathReport> = Vec::new();
    for file in USED_FILES {
        let gate = file.only_with.and_then(|path| out.iter().find(|p| p.path == path && !p.works()));
        if let Some(gate) = gate
            && let Some(report) = not_examined(root, file, gate)
        {
            out.push(report);
        } else if file.path.contains("/cpu0/") {
            let path = |cpu| file.path.replace("cpu0", &format!("cpu{cpu}"));
            out.extend((0..cpus).map(|cpu| inspect(root, &path(cpu), file, user)));
        } else if file.path == RECORD_CMD
            && access(&root.join(RECORD_CMD), AccessFlags::W_OK).is_err()
            && names_are_recorded(root)
        {
            // Only its value matters, and that is as it should be.
            out.push(PathReport {
                path: file.path.to_owned(),
                purpose: file.purpose,
                what_for: "names of threads that end: it is on",
                access: FileAccess { exists: true, ..FileAccess::default() },
                reason: None,
            });
        } else {
            out.push(inspect(root, file.path, file, user));
        }
    }
    let state =
        uses("", "-w", Needed, "the settings to put back", "the directory made, or another --state-dir");
    out.push(inspect(root, &state_dir.display().to_string(), &state, user));
    out
}

/// The only file of tracefs that apps may use.
pub(super) fn examine_marker(root: &Path, user: &UserIdentity) -> PathReport {
    let marker = uses("trace_marker", "-w", Needed, "markers", "CONFIG_TRACING");
    inspect(root, marker.path, &marker, user)
}

fn names_are_recorded(root: &Path) -> bool {
    fs::read_to_string(root.join("trace_options"))
        .is_ok_and(|options| is_option_on(&options, "record-cmd") == Some(true))
}

fn inspect(root: &Path, path: &str, file: &UsedFile, user: &UserIdentity) -> PathReport {
    // Opening a trace pipe would disturb its reader, and a socket cannot be opened.
    let try_open = !path.contains("trace_pipe") && !path.contains("/socket/");
    let wanted = RequiredAccess { read: file.read, write: file.write, try_open };
    let access = file_access::inspect(&root.join(path), user, wanted);
    let reason = reason(file.provided_by, &access, user);
    PathReport { path: path.to_owned(), purpose: file.purpose, what_for: file.what_for, access, reason }
}

/// The report of a file that is of no use without the one of `gate`, which cannot be used. `None` if there is
/// no such file.
fn not_examined(root: &Path, file: &UsedFile, gate: &PathReport) -> Option<PathReport> {
    access(&root.join(file.path), AccessFlags::F_OK).ok()?;
    let access = FileAccess { exists: true, ..FileAccess::default() };
    let reason = Some(format!("not examined: of no use without {}", gate.path));
    Some(PathReport {
        path: file.path.to_owned(),
        purpose: file.purpose,
        what_for: file.what_for,
        access,
        reason,
    })
}

/// Why a file cannot be used and what would change that. `provided_by` names the provider of a file
/// that does not exist.
pub(super) fn reason(provided_by: &str, access: &FileAccess, user: &UserIdentity) -> Option<String> {
    let hint = match user.kind {
        UserKind::App => "apps may only write markers; the shell user may record: use adb shell",
        UserKind::Shell => {
            "needs root: `adb root` on a userdebug build or an emulator, `su` on a rooted phone"
        }
        UserKind::Root | UserKind::User => "needs root",
    };
    let refused_by = access.refused_by(user)?;
    Some(match access.obstacle? {
        Obstacle::Kernel => format!("not there: needs {provided_by}"),
        Obstacle::Mode | Obstacle::Selinux => format!("{refused_by}: {hint}"),
        Obstacle::Other => refused_by,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason_for(obstacle: Obstacle, kind: UserKind) -> String {
        let domain = Some("u:r:shell:s0".to_owned());
        let user = UserIdentity { uid: 1, groups: Vec::new(), kind, domain, selinux_enforcing: true };
        let access = FileAccess {
            exists: true,
            hidden: false,
            owner: "root:readtracefs".to_owned(),
            mode: "0640".to_owned(),
            label: Some("u:object_r:debugfs_tracing_debug:s0".to_owned()),
            read: false,
            write: false,
            obstacle: Some(obstacle),
        };
        reason("CONFIG_TRACING", &access, &user).unwrap()
    }

    #[test]
    fn a_refusal_names_the_obstacle_and_the_hint() {
        assert_eq!(
            reason_for(Obstacle::Selinux, UserKind::Shell),
            "SELinux (u:r:shell:s0 may not use u:object_r:debugfs_tracing_debug:s0): needs root: `adb root` on a userdebug \
             build or an emulator, `su` on a rooted phone"
        );
        assert_eq!(
            reason_for(Obstacle::Mode, UserKind::App),
            "owner and mode (root:readtracefs 0640): apps may only write markers; the shell user may record: use adb shell"
        );
        assert_eq!(
            reason_for(Obstacle::Mode, UserKind::User),
            "owner and mode (root:readtracefs 0640): needs root"
        );
        assert_eq!(reason_for(Obstacle::Kernel, UserKind::Root), "not there: needs CONFIG_TRACING");
        assert!(reason_for(Obstacle::Other, UserKind::Root).contains("a container or a locked-down kernel"));
    }
}
