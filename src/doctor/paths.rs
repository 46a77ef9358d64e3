//! The files that recording uses, what each is for, and which kernel option gives it.

use std::fs;
use std::path::Path;

use serde::Serialize;

use super::access::{self, Access, Obstacle};
use super::system::{Identity, Who};

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Nothing is recorded without it.
    Needed,
    /// Something is missing or dearer without it.
    Useful,
    /// Only what is named with it needs it.
    Special,
}

use Purpose::{Needed, Special, Useful};

struct Wanted {
    /// Below tracefs; with `cpu0` in it, for each CPU. Absolute: elsewhere.
    path: &'static str,
    read: bool,
    write: bool,
    purpose: Purpose,
    what_for: &'static str,
    /// What has to be in the kernel, or in the system, for it.
    kernel: &'static str,
}

const fn want(
    path: &'static str,
    access: &str,
    purpose: Purpose,
    what_for: &'static str,
    kernel: &'static str,
) -> Wanted {
    let access = access.as_bytes();
    Wanted { path, read: access[0] == b'r', write: access[1] == b'w', purpose, what_for, kernel }
}

#[rustfmt::skip] // a table
const WANTED: &[Wanted] = &[
    want("tracing_on", "rw", Needed, "starts and stops the recording", "CONFIG_TRACING"),
    want("per_cpu/cpu0/trace_pipe_raw", "r-", Needed, "the recording itself", "CONFIG_TRACING"),
    want("events/header_page", "r-", Needed, "the layout of the recording", "CONFIG_EVENT_TRACING"),
    want("events/sched/sched_switch/enable", "rw", Useful, "which thread runs", "CONFIG_EVENT_TRACING"),
    want("events/sched/sched_switch/format", "r-", Useful, "which thread runs", "CONFIG_EVENT_TRACING"),
    want("events/ftrace/print/format", "r-", Useful, "reading markers", "CONFIG_EVENT_TRACING"),
    want("trace_marker", "-w", Useful, "markers", "CONFIG_TRACING"),
    want("trace_clock", "rw", Useful, "a clock that others share", "CONFIG_TRACING"),
    want("buffer_size_kb", "rw", Useful, "room for bursts", "CONFIG_TRACING"),
    want("buffer_percent", "rw", Useful, "fewer wake-ups", "Linux 5.0"),
    want("events/header_event", "r-", Useful, "what trace-cmd wants of a capture", "CONFIG_EVENT_TRACING"),
    want("printk_formats", "r-", Useful, "text of events that hold its address only", "CONFIG_TRACING"),
    want("per_cpu/cpu0/stats", "r-", Useful, "counts of lost events", "CONFIG_TRACING"),
    want("options/overwrite", "rw", Useful, "ring or stop-when-full", "CONFIG_TRACING"),
    want("options/record-tgid", "rw", Useful, "the process of each thread", "Linux 4.13; before, Android had options/print-tgid"),
    want("options/record-cmd", "rw", Useful, "names of threads that end", "CONFIG_TRACING"),
    want("saved_cmdlines", "r-", Useful, "thread names", "CONFIG_TRACING"),
    want("saved_cmdlines_size", "rw", Useful, "more thread names", "CONFIG_TRACING"),
    want("saved_tgids", "r-", Useful, "the process of each thread", "Linux 4.13"),
    want("/system/bin/getprop", "r-", Useful, "userspace tags", "Android"),
    want("/system/bin/setprop", "r-", Useful, "userspace tags", "Android"),
    want("/dev/socket/property_service", "-w", Useful, "userspace tags, without a process for each", "Android"),
    want("trace", "rw", Special, "atrace", "CONFIG_TRACING"),
    want("trace_pipe", "r-", Special, "atrace --stream", "CONFIG_TRACING"),
    want("set_event", "rw", Special, "seeing at once which events are on", "CONFIG_EVENT_TRACING"),
    want("set_event_notrace_pid", "rw", Special, "--exclude-self", "Linux 5.7"),
    want("instances", "rw", Special, "--instance", "CONFIG_TRACING"),
    want("options/copy_trace_marker", "rw", Special, "markers inside of an --instance", "Linux 6.14"),
    want("current_tracer", "rw", Special, "-k", "CONFIG_TRACING"),
    want("set_ftrace_filter", "rw", Special, "-k", "CONFIG_DYNAMIC_FTRACE"),
    want("set_graph_function", "rw", Special, "-k --graph", "CONFIG_FUNCTION_GRAPH_TRACER"),
    want("available_filter_functions", "r-", Special, "-k", "CONFIG_DYNAMIC_FTRACE"),
    want("/proc/kallsyms", "r-", Special, "names of kernel functions", "CONFIG_KALLSYMS"),
    want("options/funcgraph-abstime", "rw", Special, "-k", "CONFIG_FUNCTION_GRAPH_TRACER"),
    want("/system/bin/am", "r-", Special, "launch", "Android"),
    want("/system/bin/service", "r-", Special, "telling running services of new tags, Android 10 and older", "Android"),
];

/// One file and what was found out about it.
#[derive(Debug, Clone, Serialize)]
pub struct PathReport {
    /// Relative to tracefs, where it is in there.
    pub path: String,
    /// How much depends on it.
    pub purpose: Purpose,
    /// What depends on it.
    pub what_for: &'static str,
    /// What was found.
    #[serde(flatten)]
    pub access: Access,
    /// Why it can't be used and what would change that; absent where it can.
    pub reason: Option<String>,
}

impl PathReport {
    /// Whether it can be used as wanted.
    pub fn works(&self) -> bool {
        self.access.obstacle.is_none()
    }
}

/// Looks at every file: those below `root`, those of the system, and the directory of saved settings.
pub fn examine(root: &Path, state_dir: &Path, who: &Identity) -> Vec<PathReport> {
    let cpus = fs::read_dir(root.join("per_cpu")).map_or(1, |dir| dir.count().max(1));
    let mut out = Vec::new();
    for wanted in WANTED {
        if wanted.path.contains("/cpu0/") {
            out.extend(
                (0..cpus).map(|n| look(root, &wanted.path.replace("cpu0", &format!("cpu{n}")), wanted, who)),
            );
        } else {
            out.push(look(root, wanted.path, wanted, who));
        }
    }
    let kept =
        want("", "-w", Needed, "the settings to put back", "the directory made, or another --state-dir");
    out.push(look(root, &state_dir.display().to_string(), &kept, who));
    out
}

fn look(root: &Path, path: &str, wanted: &Wanted, who: &Identity) -> PathReport {
    // Opening a pipe is noticed by whoever reads it; a socket cannot be opened.
    let try_open = !path.contains("trace_pipe") && !path.contains("/socket/");
    let access = access::look(&root.join(path), who, wanted.read, wanted.write, try_open);
    let reason = access.obstacle.map(|o| reason(o, wanted.kernel, &access, who));
    PathReport { path: path.to_owned(), purpose: wanted.purpose, what_for: wanted.what_for, access, reason }
}

/// What stands in the way and what would change that; `kernel` is what gives the file, where it is not there.
pub fn reason(obstacle: Obstacle, kernel: &str, access: &Access, who: &Identity) -> String {
    let root = match who.who {
        Who::App => "only the shell user and root may: use adb shell",
        Who::Shell => "needs root: `adb root` on a userdebug build or an emulator, `su` on a rooted phone",
        _ => "needs root",
    };
    match obstacle {
        Obstacle::Kernel => format!("not there: needs {kernel}"),
        Obstacle::Mode => format!("owner and mode ({} {}): {root}", access.owner, access.mode),
        Obstacle::Selinux => {
            let domain = who.domain.as_deref().unwrap_or("this domain");
            let label = access.label.as_deref().unwrap_or("an unknown label");
            format!("SELinux: {domain} may not use {label}: {root}")
        }
        Obstacle::Other => {
            "refused although owner and mode allow it: a container or a locked-down kernel".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(obstacle: Obstacle, who: Who) -> String {
        let domain = Some("u:r:shell:s0".to_owned());
        let identity = Identity { uid: 1, groups: Vec::new(), who, domain, selinux_enforcing: true };
        let access = Access {
            exists: true,
            owner: "root:readtracefs".to_owned(),
            mode: "0640".to_owned(),
            label: Some("u:object_r:debugfs_tracing_debug:s0".to_owned()),
            read: false,
            write: false,
            obstacle: Some(obstacle),
        };
        reason(obstacle, "CONFIG_TRACING", &access, &identity)
    }

    #[test]
    fn a_refusal_names_who_refuses_and_the_cure() {
        assert_eq!(
            told(Obstacle::Selinux, Who::Shell),
            "SELinux: u:r:shell:s0 may not use u:object_r:debugfs_tracing_debug:s0: needs root: `adb root` on a userdebug \
             build or an emulator, `su` on a rooted phone"
        );
        assert_eq!(
            told(Obstacle::Mode, Who::App),
            "owner and mode (root:readtracefs 0640): only the shell user and root may: use adb shell"
        );
        assert_eq!(told(Obstacle::Mode, Who::User), "owner and mode (root:readtracefs 0640): needs root");
        assert_eq!(told(Obstacle::Kernel, Who::Root), "not there: needs CONFIG_TRACING");
        assert!(told(Obstacle::Other, Who::Root).contains("a container or a locked-down kernel"));
    }
}
