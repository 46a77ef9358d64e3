//! The device under test: shell commands, files, and the product's binaries on it, all through the real adb.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use support::{Child, Command, Printed, Ran, until};

use crate::settings::reset;

/// The directory on the device that holds all files of the tests.
pub const DIR: &str = "/data/local/tmp";

/// A shell command that runs thirty programs, one after another.
pub const PROGRAMS: &str = "i=0; while [ $i -lt 30 ]; do cat /proc/version >/dev/null; i=$((i + 1)); done";

/// The lock of each device, which one test at a time holds. The emulated devices share the processors of this
/// machine, so that a test that measures holds all of them.
pub struct Turn {
    _device: MutexGuard<'static, ()>,
    _machine: Result<RwLockReadGuard<'static, ()>, RwLockWriteGuard<'static, ()>>,
}

/// Whether a test measures something that other work on this machine would change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Measures {
    Nothing,
    Time,
}

/// Waits until no other test uses this device, and until nothing measures or is disturbed.
pub fn turn(device: &'static Mutex<()>, measures: Measures) -> Turn {
    static MACHINE: RwLock<()> = RwLock::new(());
    let _device = device.lock().unwrap_or_else(PoisonError::into_inner);
    let _machine = match measures {
        Measures::Nothing => Ok(MACHINE.read().unwrap_or_else(PoisonError::into_inner)),
        Measures::Time => Err(MACHINE.write().unwrap_or_else(PoisonError::into_inner)),
    };
    Turn { _device, _machine }
}

/// The device, which one test at a time holds. A test that panics while it holds the device leaves no program
/// running and no setting changed: dropping this ends the test's programs and puts the kernel's own settings
/// back.
pub struct Device {
    serial: String,
    /// `None` where something else holds the turn and cleans up: [`crate::locked::LockedPhone`].
    turn: Option<Turn>,
}

impl Device {
    /// The device that `TRACEBRIDGE_SERIAL` names. Without that variable the test is skipped, with a message:
    /// `None`.
    pub fn attached() -> Option<Device> {
        Device::attached_for(Measures::Nothing)
    }

    /// As [`Device::attached`], for a test that only a full run takes: `tests/tracefs` has one of its kind,
    /// or the test takes minutes.
    pub fn attached_in_full_run() -> Option<Device> {
        if support::skip_unless_full_run() { None } else { Device::attached() }
    }

    /// As [`Device::attached`], for a test that may measure.
    pub fn attached_for(measures: Measures) -> Option<Device> {
        let Ok(serial) = std::env::var("TRACEBRIDGE_SERIAL") else {
            support::skip("device", "no device: set TRACEBRIDGE_SERIAL (android/emulator/boot prints one)");
            return None;
        };
        static DEVICE: Mutex<()> = Mutex::new(());
        let turn = turn(&DEVICE, measures);
        static CONNECTED: OnceLock<()> = OnceLock::new();
        CONNECTED.get_or_init(|| connect(&serial));
        Some(Device { serial, turn: Some(turn) })
    }

    /// A connection that is used while something else holds the turn.
    pub fn connection(serial: String) -> Device {
        Device { serial, turn: None }
    }

    /// The device's name for adb's `-s`.
    pub fn serial(&self) -> &str {
        &self.serial
    }

    fn adb(&self) -> Command {
        let mut adb = Command::new("adb");
        adb.args(["-s", &self.serial]);
        adb
    }

    /// Runs a shell command on the device.
    pub fn shell(&self, command: &str) -> Ran {
        self.adb().args(["shell", command]).run()
    }

    /// The same for a command that prints more than text. Returns its exit status and what it printed.
    pub fn shell_bytes(&self, command: &str) -> Output {
        self.adb().args(["shell", command]).output().expect("adb runs")
    }

    /// Runs a shell command on the device, which must succeed. Returns what it printed.
    pub fn run(&self, command: &str) -> String {
        let output = self.shell(command);
        assert!(output.status.success(), "{command}: {}: {}", output.status, output.said());
        output.stdout
    }

    /// Starts a shell command on the device.
    pub fn start(&self, command: &str) -> Child {
        self.adb()
            .args(["shell", command])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("adb runs")
    }

    /// Copies a file to the device.
    pub fn push(&self, local: &Path, remote: &str) {
        self.push_all(&[local.to_owned()], remote);
    }

    /// Copies files to a path on the device: to a directory if they are several.
    pub fn push_all(&self, local: &[PathBuf], remote: &str) {
        let output = self.adb().arg("push").args(local).arg(remote).run();
        assert!(output.status.success(), "adb push {local:?}: {}", output.said());
    }

    /// Copies a file from the device.
    pub fn pull(&self, remote: &str, local: &Path) {
        let output = self.adb().args(["pull", remote]).arg(local).run();
        assert!(output.status.success(), "adb pull {remote}: {}", output.said());
    }

    /// Moves a file from the device into a directory here. Returns its path here.
    pub fn fetch(&self, remote: &str, dir: &Path) -> PathBuf {
        let local = dir.join(remote.rsplit('/').next().expect("a path has a name"));
        self.pull(remote, &local);
        self.run(&format!("rm {remote}"));
        local
    }

    /// The path on the device of `program` as built for `abi`. A test run pushes each program once.
    pub fn program(&self, abi: &str, program: &str) -> String {
        static PUSHED: OnceLock<Mutex<Vec<(String, String)>>> = OnceLock::new();
        let remote = format!("{DIR}/{program}-{abi}");
        let mut pushed = PUSHED.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        let entry = (self.serial.clone(), remote.clone());
        if !pushed.contains(&entry) {
            let local = built(abi, program);
            assert!(local.is_file(), "{}: not built: scripts/build-android --abi {abi}", local.display());
            self.push(&local, &remote);
            self.run(&format!("chmod 755 {remote}"));
            pushed.push(entry);
        }
        remote
    }

    /// The ABI of the binary that a user would push.
    pub fn abi(&self) -> &'static str {
        static ABI: OnceLock<&str> = OnceLock::new();
        ABI.get_or_init(|| match self.run("uname -m").trim() {
            "aarch64" => "arm64-v8a",
            "x86_64" => "x86_64",
            machine if machine.starts_with("arm") => "armeabi-v7a",
            _ => "x86",
        })
    }

    /// Waits until each of these files below tracefs begins with its value. The files are read in this order,
    /// again and again, by one shell on the device. Returns false if that did not happen within a second: the
    /// test may then look whether it still can.
    pub fn soon(&self, state: &[(&str, &str)]) -> bool {
        let tests: Vec<String> =
            state.iter().map(|(file, value)| format!("read -r v <{file} && [ $v = {value} ]")).collect();
        let tests = tests.join(" && ");
        self.shell(&format!(
            "cd /sys/kernel/tracing; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do \
             if {{ {tests}; }} 2>/dev/null; then exit 0; fi; sleep 0.05; done; exit 1"
        ))
        .status
        .success()
    }

    /// Waits until a shell command on the device succeeds.
    pub fn wait_until(&self, what: &str, condition: &str) {
        until(what, || {
            self.shell(&format!("for i in 1 2 3 4 5; do if {{ {condition}; }} 2>/dev/null; then exit 0; fi; sleep 0.1; done; exit 1")).status.success()
        });
    }

    /// Runs programs on the device: each is several events of the scheduler.
    pub fn run_programs(&self) {
        self.run(PROGRAMS);
    }

    /// Starts a recording of scheduler events, and waits until it has begun.
    pub fn record(&self, binary: &str, arguments: &str) -> Recording<'_> {
        self.record_until(binary, arguments, &RECORDING)
    }

    /// Starts a recording, and waits until these files below tracefs have these values.
    pub fn record_until(&self, binary: &str, arguments: &str, state: &[(&str, &str)]) -> Recording<'_> {
        let recording = self.start_signalled(&format!("{binary} record {arguments}"));
        recording.wait_for(state)
    }

    /// Starts a command on the device to which signals can be sent.
    pub fn start_signalled(&self, command: &str) -> Recording<'_> {
        let pid_file = format!("{DIR}/running.pid");
        let child = self.start(&format!("echo $$ >{pid_file}; exec {command}"));
        Recording { device: self, child: Some(child), pid_file, command: command.to_owned() }
    }
}

/// The state of tracefs once a recording of scheduler events has begun: the recorder switches the events on
/// first.
pub const RECORDING: [(&str, &str); 2] = [("events/sched/sched_switch/enable", "1"), ("tracing_on", "1")];

impl Device {
    /// Ends every program that a test started, and has a recorder that was killed put the settings back.
    pub fn end_programs(&self) {
        // Every process whose program lies in the tests' directory is one that a test started.
        let processes =
            format!("for e in /proc/[0-9]*/exe; do case $(readlink $e) in {DIR}/*) p=${{e%/exe}};");
        self.shell(&format!(
            "{processes} kill ${{p#/proc/}};; esac; done; sleep 3; {processes} kill -9 ${{p#/proc/}};; esac; done; \
             for b in {DIR}/tracebridge-*; do if [ -f $b ] && [ -x $b ]; then $b restore; $b restore --flight; fi; done"
        ));
    }

    /// Removes what a test that was cut short has left, as root.
    pub fn clear_away(&self) {
        self.shell(&format!(
            "cd /sys/kernel/tracing && echo nop >current_tracer; echo >set_ftrace_filter; echo >set_graph_function; \
             rmdir instances/ways; umount {DIR}/small"
        ));
        reset(self);
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if self.turn.is_some() && std::thread::panicking() {
            self.end_programs();
            self.clear_away();
        }
    }
}

/// A recorder at work on the device. Dropping this ends a recorder that still runs, and puts the settings
/// back.
pub struct Recording<'a> {
    device: &'a Device,
    child: Option<Child>,
    pid_file: String,
    command: String,
}

impl Recording<'_> {
    /// Waits until these files below tracefs have these values; panics if the recorder ends before.
    pub fn wait_for(mut self, state: &[(&str, &str)]) -> Self {
        let what = format!("{} to begin", self.command);
        let mut ended = false;
        until(&what, || {
            ended = self.has_ended();
            ended || self.device.soon(state)
        });
        if ended {
            panic!("the recorder ended at once: {}", self.finish().said());
        }
        self
    }

    /// Has a thread read what the recorder prints, for a test that waits for it.
    pub fn collect_stdout(&mut self) -> Printed {
        self.child.as_mut().expect("a recorder that was not waited for").collect_stdout()
    }

    /// Whether the recorder has ended.
    pub fn has_ended(&mut self) -> bool {
        let child = self.child.as_mut().expect("a recorder that was not waited for");
        child.try_wait().expect("it is our child").is_some()
    }

    /// Sends the recorder a signal, by the signal's name without `SIG`.
    pub fn signal(&self, name: &str) {
        self.device.run(&format!("kill -{name} $(cat {})", self.pid_file));
    }

    /// Waits until the recorder ends.
    pub fn finish(mut self) -> Ran {
        let child = self.child.take().expect("a recorder that was not waited for");
        child.finish()
    }

    /// Waits until the recorder ends. Its exit status must be one of a recording that was written.
    pub fn end(self) -> Ran {
        let output = self.finish();
        assert!(matches!(output.code(), Some(0 | 3)), "record: {}: {}", output.status, output.said());
        output
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        let ended: Option<ExitStatus> = child.try_wait().ok().flatten();
        if ended.is_none() {
            self.device.shell(&format!(
                "p=$(cat {}); kill -TERM $p; for i in 1 2 3 4 5 6 7 8 9 10; do kill -0 $p || exit; sleep 0.5; done; \
                 kill -KILL $p",
                self.pid_file
            ));
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The directory of the programs for devices, by ABI: as scripts/build-android makes them, or what
/// `TRACEBRIDGE_DEVICE_BINARIES` names.
pub fn binaries() -> PathBuf {
    std::env::var_os("TRACEBRIDGE_DEVICE_BINARIES")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("out/android"), PathBuf::from)
}

/// The path on this host of `program` as scripts/build-android builds it for `abi`.
pub fn built(abi: &str, program: &str) -> PathBuf {
    binaries().join(abi).join(program)
}

/// Makes the adb server connect to a serial that is a network address: it may have forgotten it since the
/// device was booted.
pub fn connect(serial: &str) {
    if serial.contains(':') {
        let said = Command::new("adb").args(["connect", serial]).run();
        let waited = Command::new("adb").args(["-s", serial, "wait-for-device"]).run();
        assert!(waited.status.success(), "{serial}: {}{}", said.said(), waited.said());
    }
}

/// A temporary directory on this host, removed on drop.
pub fn scratch() -> tempfile::TempDir {
    support::tempdir()
}

/// The Python that has the packages of scripts/requirements.txt. Without it the test is skipped, with a
/// message: `None`.
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
