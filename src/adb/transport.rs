//! The connection to one device: its serial, and the features of its adbd.

use std::time::Duration;

use super::connection::Connection;
use super::error::AdbError;
use super::server::Server;
use super::shell::{RawStream, Shell, ShellOutput};
use super::sync::Sync;

/// Where the user has less patience than usual, a command may be silent for so many times as long.
const SILENT_TIMEOUTS: u32 = 4;

/// A device as the server reaches it. Each command and each transfer has a connection of its own.
#[derive(Debug, Clone)]
pub struct Transport {
    server: Server,
    serial: String,
    /// Whether a command's streams and its exit status come apart.
    shell_v2: bool,
    /// Whether lengths of files are exact.
    stat_v2: bool,
}

impl Transport {
    /// Asks the device for its features.
    ///
    /// # Errors
    /// [`AdbError`] of the server or of the device's state.
    pub fn open(server: &Server, serial: &str) -> Result<Transport, AdbError> {
        let features = server.features(serial)?;
        let has = |name: &str| features.iter().any(|feature| feature == name);
        Ok(Transport {
            server: server.clone(),
            serial: serial.to_owned(),
            shell_v2: has("shell_v2"),
            stat_v2: has("stat_v2"),
        })
    }

    /// The device's name.
    pub fn serial(&self) -> &str {
        &self.serial
    }

    /// The server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Whether a command's standard output, standard error and exit status come apart.
    pub fn tells_streams_apart(&self) -> bool {
        self.shell_v2
    }

    /// Starts a command in the device's shell, without input.
    ///
    /// # Errors
    /// [`AdbError`].
    pub fn start(&self, script: &str) -> Result<Shell, AdbError> {
        Shell::start(&self.server, &self.serial, script, self.shell_v2)
    }

    /// Starts a command with standard input, on a device that tells streams apart.
    ///
    /// # Errors
    /// [`AdbError`].
    pub fn start_with_input(&self, script: &str) -> Result<Shell, AdbError> {
        Shell::start_with_input(&self.server, &self.serial, script)
    }

    /// Runs a command in the device's shell. It may be silent for at most `timeout`, and for no longer than
    /// four times the server's timeout.
    ///
    /// # Errors
    /// [`AdbError`]. A command that fails is no error: [`ShellOutput::status`] says so.
    pub fn run(&self, script: &str, timeout: Duration) -> Result<ShellOutput, AdbError> {
        self.run_into(script, timeout, ShellOutput::default())
    }

    /// The same, for a command whose output goes into `output`.
    ///
    /// # Errors
    /// [`AdbError`].
    pub fn run_into(
        &self,
        script: &str,
        timeout: Duration,
        mut output: ShellOutput,
    ) -> Result<ShellOutput, AdbError> {
        let timeout = timeout.min(self.server.timeout() * SILENT_TIMEOUTS);
        self.start(script)?.finish(timeout, &mut output)?;
        Ok(output)
    }

    /// Starts a command whose standard output comes as it is.
    ///
    /// # Errors
    /// [`AdbError`].
    pub fn stream(&self, script: &str) -> Result<RawStream, AdbError> {
        RawStream::start(&self.server, &self.serial, script)
    }

    /// Connects to the device's files.
    ///
    /// # Errors
    /// [`AdbError`].
    pub fn sync(&self) -> Result<Sync, AdbError> {
        Sync::open(&self.server, &self.serial, self.stat_v2)
    }

    /// Asks adbd to start anew as root. Returns its own words (`restarting adbd as root`). The device is away
    /// for a moment afterwards.
    ///
    /// # Errors
    /// [`AdbError`].
    pub fn restart_as_root(&self) -> Result<String, AdbError> {
        let action = format!("asking {} for root", self.serial);
        let mut connection: Connection = self.server.open(&self.serial, "root:", action)?;
        Ok(connection.read_rest()?.trim().to_owned())
    }
}
