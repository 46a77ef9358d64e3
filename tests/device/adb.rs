//! The device: commands, files and the product's binaries on it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::support;

/// Where everything goes on a device.
pub const DIR: &str = "/data/local/tmp";

/// The device, for one test at a time.
pub struct Device {
    serial: String,
    _turn: MutexGuard<'static, ()>,
}

impl Device {
    /// The device that `TRACEBRIDGE_SERIAL` names; `None`, and said, without one.
    pub fn attached() -> Option<Device> {
        static TURN: Mutex<()> = Mutex::new(());
        let Ok(serial) = std::env::var("TRACEBRIDGE_SERIAL") else {
            support::skip("device", "no device: set TRACEBRIDGE_SERIAL (android/emulator/boot prints one)");
            return None;
        };
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        if serial.contains(':') {
            // An address may have been forgotten by the adb server since.
            let _ = Command::new("adb").args(["connect", &serial]).output();
        }
        Some(Device { serial, _turn: turn })
    }

    /// Its name for adb's `-s`.
    pub fn serial(&self) -> &str {
        &self.serial
    }

    fn adb(&self) -> Command {
        let mut adb = Command::new("adb");
        adb.args(["-s", &self.serial]).stdin(Stdio::null());
        adb
    }

    /// Runs a shell command there.
    pub fn shell(&self, command: &str) -> Output {
        self.adb().args(["shell", command]).output().expect("adb runs")
    }

    /// Runs a shell command there that must succeed; what it printed.
    pub fn run(&self, command: &str) -> String {
        let output = self.shell(command);
        assert!(output.status.success(), "{command}: {}: {}", output.status, text(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Starts a shell command there.
    pub fn start(&self, command: &str) -> Child {
        self.adb()
            .args(["shell", command])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("adb runs")
    }

    /// Copies a file there.
    pub fn push(&self, local: &Path, remote: &str) {
        let output = self.adb().arg("push").args([local, Path::new(remote)]).output().expect("adb runs");
        assert!(output.status.success(), "adb push {}: {}", local.display(), text(&output));
    }

    /// Copies a file from there.
    pub fn pull(&self, remote: &str, local: &Path) {
        let output = self.adb().args(["pull", remote]).arg(local).output().expect("adb runs");
        assert!(output.status.success(), "adb pull {remote}: {}", text(&output));
    }

    /// The path there of `program` built for `abi` (once a test run pushed).
    pub fn program(&self, abi: &str, program: &str) -> String {
        static PUSHED: OnceLock<Mutex<Vec<String>>> = OnceLock::new();
        let remote = format!("{DIR}/{program}-{abi}");
        let mut pushed = PUSHED.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        if !pushed.contains(&remote) {
            let local = Path::new(env!("CARGO_MANIFEST_DIR")).join("out/android").join(abi).join(program);
            assert!(local.is_file(), "{}: not built: scripts/build-android --abi {abi}", local.display());
            self.push(&local, &remote);
            self.run(&format!("chmod 755 {remote}"));
            pushed.push(remote.clone());
        }
        remote
    }

    /// The ABI of the binary that a user would push.
    pub fn abi(&self) -> &'static str {
        match self.run("uname -m").trim() {
            "aarch64" => "arm64-v8a",
            "x86_64" => "x86_64",
            machine if machine.starts_with("arm") => "armeabi-v7a",
            _ => "x86",
        }
    }

    /// Starts a recording, and waits until it has begun: its events are on, and then tracing is.
    pub fn record(&self, binary: &str, arguments: &str) -> Recording<'_> {
        let pid_file = format!("{DIR}/recording.pid");
        let state = "cd /sys/kernel/tracing && cat events/sched/sched_switch/enable tracing_on";
        let child = self.start(&format!("echo $$ >{pid_file}; exec {binary} record {arguments}"));
        let mut recording = Recording { device: self, child, pid_file };
        for _ in 0..100 {
            if self.run(state) == "1\n1\n" {
                return recording;
            }
            if let Some(status) = recording.child.try_wait().expect("it is our child") {
                let output = recording.child.wait_with_output().expect("it is our child");
                panic!("record {arguments} ended at once: {status}: {}", text(&output));
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("record {arguments}: not begun after 10 s");
    }
}

/// A recorder at work.
pub struct Recording<'a> {
    device: &'a Device,
    child: Child,
    pid_file: String,
}

impl Recording<'_> {
    /// Sends it a signal, by its name without `SIG`.
    pub fn signal(&self, name: &str) {
        self.device.run(&format!("kill -{name} $(cat {})", self.pid_file));
    }

    /// Waits for its end; its exit status must be one of a recording that was written.
    pub fn end(self) -> Output {
        let output = self.child.wait_with_output().expect("it is our child");
        assert!(matches!(output.status.code(), Some(0 | 3)), "record: {}: {}", output.status, text(&output));
        output
    }
}

/// What a program printed, for a message.
pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A directory that goes when it is dropped.
pub fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// The Python that has the packages of scripts/requirements.txt; `None`, and said, without it.
pub fn python() -> Option<PathBuf> {
    let python = std::env::var_os("TRACEBRIDGE_PYTHON")
        .map(PathBuf::from)
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(".cache/venv/bin/python"));
    if python.is_file() {
        return Some(python);
    }
    support::skip("python", &format!("no {}: scripts/setup makes it", python.display()));
    None
}
