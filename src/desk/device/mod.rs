//! A device at the other end of adb: what it is, how root is had on it, the tracebridge binary on it,
//! recordings that go on there without a connection, and files that are pulled and verified.

mod app_rights;
mod app_traces;
mod binary;
mod error;
mod facts;
mod free_space;
mod privilege;
mod pull;
mod recorder;
mod session;
mod shell_words;
mod stream;
mod video;

use std::time::{Duration, Instant};

pub use app_rights::AppRights;
pub use app_traces::{APP_TRACE_DIRS, data_dir};
pub use binary::{EmbeddedBinary, PushedBinary, embedded_binaries, file_sha256, has_embedded_binaries};
pub use error::DeviceError;
pub use facts::{BINARY_PATH, DeviceFacts, printable_text};
pub use free_space::RoomKeeper;
pub use privilege::Privilege;
pub use pull::{PulledFile, Verification};
pub use recorder::{Recorder, RecorderJob};
pub use session::{SESSIONS_DIR, Session, SessionEnd, SessionState, abandon_all};
pub use shell_words::{command_line, quoted};
pub use stream::{StreamEnd, StreamTalk};
pub use video::{MAX_VIDEO_SECONDS, is_video};

use crate::adb::{AdbError, Server, Shell, ShellOutput, Transport};

/// How long a short command may be silent.
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// How long `su` may take, which may ask somebody at the device.
const SU_TIMEOUT: Duration = Duration::from_secs(10);

/// How long adbd may take to come back as root.
const ROOT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a device may take to say whether it can be traced.
const TRACING_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause between two attempts to reach a device that is away.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// A device with the facts that it has told about itself.
#[derive(Debug, Clone)]
pub struct Device {
    transport: Transport,
    /// The device's answers to the questions of [`DeviceFacts`].
    pub facts: DeviceFacts,
}

/// The part of a device's trace buffer that a command may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracingAccess {
    /// All of it.
    Full,
    /// Switching it on and off, and the events that SELinux leaves to the user shell.
    Part,
    /// Nothing.
    No,
}

impl TracingAccess {
    /// The word in tables and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            TracingAccess::Full => "yes",
            TracingAccess::Part => "part",
            TracingAccess::No => "no",
        }
    }
}

/// Fails unless the server knows a device of this serial. A network address that it has forgotten is
/// connected.
pub fn check_attached(server: &Server, serial: &str) -> Result<(), AdbError> {
    let find = || server.devices().map(|all| (all.iter().find(|d| d.serial == serial).cloned(), all));
    let (mut found, mut all) = find()?;
    if found.as_ref().is_none_or(|device| device.state == "offline") && serial.contains(':') {
        let _ = server.reconnect(serial);
        (found, all) = find()?;
    }
    match found {
        Some(_) => Ok(()),
        None => {
            let attached = all.into_iter().map(|device| device.serial).collect();
            Err(AdbError::NoSuchDevice { serial: serial.to_owned(), attached })
        }
    }
}

impl Device {
    /// Reaches a device and asks it for its facts.
    ///
    /// # Errors
    /// [`AdbError`]: also the device's state, if it cannot be used.
    pub fn open(server: &Server, serial: &str) -> Result<Device, AdbError> {
        check_attached(server, serial)?;
        if let Some(device) = server.devices()?.iter().find(|device| device.serial == serial) {
            device.check()?;
        }
        let transport = Transport::open(server, serial)?;
        let facts = ask_facts(&transport)?;
        Ok(Device { transport, facts })
    }

    /// The device's name.
    pub fn serial(&self) -> &str {
        self.transport.serial()
    }

    /// The connection to the device's adbd.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// The most rights that commands can have.
    pub fn privilege(&self) -> Privilege {
        match (self.facts.uid, self.facts.su) {
            (Some(0), _) => Privilege::AdbdRoot,
            (_, Some(dialect)) => Privilege::Su(dialect),
            _ => Privilege::Shell,
        }
    }

    /// Runs a shell script with these rights. It may be silent for at most `timeout`.
    ///
    /// # Errors
    /// [`AdbError`]. A script that fails is no error.
    pub fn run_script(
        &self,
        script: &str,
        privilege: Privilege,
        timeout: Duration,
    ) -> Result<ShellOutput, AdbError> {
        self.transport.run(&privilege.command(script), timeout)
    }

    /// Runs a shell script whose answer may be long, such as a list of files.
    ///
    /// # Errors
    /// [`AdbError`]. A script that fails is no error.
    pub fn ask(
        &self,
        script: &str,
        privilege: Privilege,
        timeout: Duration,
    ) -> Result<ShellOutput, AdbError> {
        self.transport.run_into(&privilege.command(script), timeout, ShellOutput::of_long_answer())
    }

    /// Runs a command, each of whose arguments arrives as it is. Its answer may be long: a report as JSON, or
    /// the list of all events.
    ///
    /// # Errors
    /// [`AdbError`]. A command that fails is no error.
    pub fn run<S: AsRef<str>>(
        &self,
        args: &[S],
        privilege: Privilege,
        timeout: Duration,
    ) -> Result<ShellOutput, AdbError> {
        self.ask(&command_line(args), privilege, timeout)
    }

    /// Starts a command with standard input, each of whose arguments arrives as it is, with all the rights
    /// that are to be had. The device must tell the streams of a command apart.
    ///
    /// # Errors
    /// [`AdbError`].
    pub fn start_with_input<S: AsRef<str>>(&self, args: &[S]) -> Result<Shell, AdbError> {
        self.transport.start_with_input(&self.privilege().command(&command_line(args)))
    }

    /// Asks how much of the device's trace buffer can be used.
    ///
    /// # Errors
    /// [`AdbError`].
    pub fn tracing_access(&self) -> Result<TracingAccess, AdbError> {
        let script = "for d in /sys/kernel/tracing /sys/kernel/debug/tracing; do if [ -w $d/tracing_on ]; then \
                      if [ -w $d/set_event ]; then echo yes; else echo part; fi; exit; fi; done; echo no";
        let answer = self.run_script(script, self.privilege(), TRACING_TIMEOUT)?.text();
        let given = [TracingAccess::Full, TracingAccess::Part];
        let given = given.into_iter().find(|access| access.name() == answer.trim());
        Ok(given.unwrap_or(TracingAccess::No))
    }

    /// Waits until the device answers again, for at most `timeout`. `is_cancelled` ends the waiting early.
    ///
    /// # Errors
    /// The last error.
    pub fn wait_until_back(
        &self,
        timeout: Duration,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<(), AdbError> {
        let deadline = Instant::now() + timeout;
        loop {
            let error = match self.ping() {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if Instant::now() > deadline || is_cancelled() {
                return Err(error);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn ping(&self) -> Result<(), AdbError> {
        let server = self.transport.server();
        server.ensure_running()?;
        check_attached(server, self.serial())?;
        self.transport.run(":", SU_TIMEOUT).map(drop)
    }

    /// Has adbd start anew as root, where the build permits it, and asks the device anew for its facts.
    ///
    /// # Errors
    /// [`DeviceError::Failed`] with adbd's words if it does not become root.
    pub fn become_root(&mut self) -> Result<(), DeviceError> {
        if self.facts.uid == Some(0) {
            return Ok(());
        }
        let answer = self.transport.restart_as_root()?;
        // adbd goes away a moment after its answer.
        std::thread::sleep(POLL_INTERVAL);
        self.wait_until_back(ROOT_TIMEOUT, &|| false)?;
        self.facts = ask_facts(&self.transport)?;
        match self.facts.uid {
            Some(0) => Ok(()),
            _ => Err(DeviceError::Failed {
                serial: self.serial().to_owned(),
                action: "adb root".to_owned(),
                reason: if answer.is_empty() { "adbd is not root afterwards".to_owned() } else { answer },
            }),
        }
    }
}

/// Asks a device for its facts. A `su` that does not answer in time counts as one that refuses.
fn ask_facts(transport: &Transport) -> Result<DeviceFacts, AdbError> {
    let mut output = ShellOutput::of_long_answer();
    let timeout = SU_TIMEOUT.min(transport.server().timeout());
    match transport.start(&DeviceFacts::script())?.finish(timeout, &mut output) {
        Err(AdbError::Stalled { .. }) if DeviceFacts::are_complete_without_su(&output.text()) => {}
        ended => ended?,
    }
    Ok(DeviceFacts::parse(&output.text()))
}
