//! Recordings of this machine's kernel while the runtime runs a program, whose markers go into the same
//! trace buffer.

use std::path::{Path, PathBuf};

use support::{Command, remove_instance_at_end, run_id, skip, tracebridge};

/// The directory of trace instances. Mounts tracefs where it is not; `None`, with a message, where there is
/// none.
fn instances() -> Option<PathBuf> {
    let root = Path::new("/sys/kernel/tracing");
    if !root.join("instances").exists() {
        let _ = Command::new("mount").args(["-t", "tracefs", "tracefs"]).arg(root).run();
    }
    let instances = root.join("instances");
    if instances.exists() && nix::unistd::geteuid().is_root() {
        return Some(instances);
    }
    skip("tracefs", "no tracefs to be had: needs root and a kernel with it");
    None
}

/// Records the command into `recording`, in an instance `name` and with this kernel clock. Returns the output
/// of the command; `None` where nothing can be recorded.
pub fn recorded(name: &str, clock: &str, command: &[String], recording: &Path) -> Option<String> {
    let name = format!("{}-{name}", run_id());
    let instance = instances()?.join(&name);
    remove_instance_at_end(&instance);
    let mut wrap = tracebridge();
    wrap.args(["wrap", "sched", "irq", "--clock", clock, "--instance", &name]);
    wrap.arg("--state-dir").arg(recording.parent().unwrap()).arg("-o").arg(recording).arg("--");
    wrap.env("ART_TRACE_MARKER", instance.join("trace_marker"));
    Some(wrap.args(command).run().exited(0).stdout)
}
