//! What a user of `record` sees.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::machine::{Machine, expand, knobs, machine};
use crate::support::{has_program, skip, tracebridge};

/// `record` with this machine's tracefs and a state directory beside the capture.
pub fn record(machine: &Machine, dir: &Path, args: &[&str]) -> Command {
    let mut command = tracebridge();
    command.args(["record", "--json", "--tracefs"]).arg(&machine.root).arg("--state-dir").arg(dir);
    command.arg("-o").arg(dir.join("x.dat")).args(args);
    command
}

/// A process that makes scheduler events all the time; ended on drop.
pub struct Busy(std::process::Child);

impl Busy {
    pub fn start() -> Busy {
        let script = "while :; do /bin/true; done";
        Busy(Command::new("sh").args(["-c", script]).stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The summary that `--json` printed.
pub fn summary(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

/// Events in the summary, all CPUs.
pub fn events(summary: &serde_json::Value) -> u64 {
    summary["cpus"].as_array().unwrap().iter().map(|c| c["events"].as_u64().unwrap()).sum()
}

/// Lines that `trace-cmd report` prints for a capture; `None` where there is no trace-cmd.
pub fn reported(capture: &Path) -> Option<u64> {
    if !has_program("trace-cmd") {
        skip("trace-cmd", "not installed");
        return None;
    }
    let out = Command::new("trace-cmd").arg("report").arg(capture).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    assert_eq!(String::from_utf8_lossy(&out.stderr), "", "trace-cmd complains about the file");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    Some(text.lines().filter(|l| !l.starts_with("cpus=")).count() as u64)
}

#[test]
fn a_recording_reads_in_trace_cmd_and_leaves_every_knob_as_it_was() {
    let Some(machine) = machine() else { return };
    expand(&machine.root);
    let dir = tempfile::tempdir().unwrap();
    let before = knobs(&machine.root);
    let busy = Busy::start();
    let out = record(&machine, dir.path(), &["sched", "irq/*", "-t", "1"]).output().unwrap();
    drop(busy);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    assert_eq!(knobs(&machine.root), before);
    assert!(!dir.path().join("tracebridge-top.saved").exists());
    let summary = summary(&out);
    assert_eq!((summary["clock"].as_str(), summary["ended_by"].as_str()), (Some("boot"), Some("time")));
    assert!(events(&summary) > 1000, "{summary}");
    if let Some(lines) = reported(&dir.path().join("x.dat")) {
        assert_eq!(lines, events(&summary));
    }
}

#[test]
fn signals_end_a_recording_in_order() {
    let Some(machine) = machine() else { return };
    expand(&machine.root);
    let before = knobs(&machine.root);
    let _busy = Busy::start();
    for signal in ["INT", "TERM", "HUP"] {
        let dir = tempfile::tempdir().unwrap();
        let child = record(&machine, dir.path(), &["sched"]).stdout(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(700));
        assert!(
            Command::new("kill")
                .args([&format!("-{signal}"), &child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(0), "{out:?}");
        let summary = summary(&out);
        assert_eq!(summary["ended_by"].as_str(), Some(format!("signal SIG{signal}").as_str()));
        assert_eq!(knobs(&machine.root), before, "after SIG{signal}");
        if let Some(lines) = reported(&dir.path().join("x.dat")) {
            assert_eq!(lines, events(&summary));
        }
    }
}

#[test]
fn after_a_sigkill_the_capture_reads_and_restore_puts_every_knob_back() {
    let Some(machine) = machine() else { return };
    expand(&machine.root);
    let before = knobs(&machine.root);
    let _busy = Busy::start();
    let dir = tempfile::tempdir().unwrap();
    let mut child =
        record(&machine, dir.path(), &["sched", "-b", "512"]).stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_ne!(knobs(&machine.root), before, "nothing to restore");
    let restored = tracebridge().arg("restore").arg("--state-dir").arg(dir.path()).output().unwrap();
    assert_eq!(restored.status.code(), Some(0), "{restored:?}");
    assert_eq!(knobs(&machine.root), before);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only the capture is left");
    if let Some(lines) = reported(&dir.path().join("x.dat")) {
        assert!(lines > 100, "{lines} events");
    }
}

#[test]
fn a_second_recorder_is_refused_and_told_of_the_first() {
    let Some(machine) = machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut first =
        record(&machine, dir.path(), &["sched", "-t", "20"]).stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let second = record(&machine, dir.path(), &["sched", "-t", "1"]).output().unwrap();
    Command::new("kill").args(["-INT", &first.id().to_string()]).status().unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(0));
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains(&format!("pid {}", first.id())) && said.contains("--force"), "{said}");
}
