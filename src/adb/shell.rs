//! Commands in the device's shell.
//!
//! adbd offers three services for it. `shell,v2,raw:` (Android 7 and newer) sends standard output, standard
//! error and the exit status in packets of their own: AOSP, packages/modules/adb, `shell_protocol.h`.
//! `shell:` is a terminal: standard error is among standard output, there is no exit status, and older
//! releases end lines with CR LF. `exec:` is a raw stream.

use std::time::{Duration, Instant};

use super::connection::Connection;
use super::error::AdbError;
use super::server::Server;

/// The largest packet that is read at once, bytes. Longer ones, whatever their length says, come in parts.
const PART_BYTES: usize = 64 << 10;

/// The most that a command may print, bytes: twenty times the names of all threads of a large device.
const MAX_OUTPUT_BYTES: usize = 16 << 20;

/// After this many packets without a byte in a row, the other side does not speak the protocol.
const MAX_EMPTY_PACKETS: u32 = 1000;

/// A command may take this many times as long as it may be silent.
const SILENCES: u32 = 4;

/// What stands before the exit status where the service does not tell it.
const STATUS_MARK: &str = "tracebridge-exit-status=";

/// The kinds of packets of `shell,v2`.
mod packet {
    pub const STDOUT: u8 = 1;
    pub const STDERR: u8 = 2;
    pub const EXIT: u8 = 3;
    pub const STDIN: u8 = 0;
    /// The whole packet that ends the command's standard input.
    pub const CLOSE_STDIN: [u8; 5] = [4, 0, 0, 0, 0];
}

/// A piece of what a command does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellEvent {
    /// Bytes of standard output.
    Stdout(Vec<u8>),
    /// Bytes of standard error.
    Stderr(Vec<u8>),
    /// The command has ended with this status. Nothing comes after it.
    Exit(u8),
}

/// The result of a command that has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellOutput {
    /// The exit status.
    pub status: u8,
    /// Standard output; where the device does not tell them apart, standard error too.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

impl ShellOutput {
    /// Adds a piece. Returns whether there was room: a device may print without end.
    #[must_use]
    pub fn add(&mut self, event: ShellEvent) -> bool {
        let (to, bytes) = match event {
            ShellEvent::Stdout(bytes) => (&mut self.stdout, bytes),
            ShellEvent::Stderr(bytes) => (&mut self.stderr, bytes),
            ShellEvent::Exit(status) => {
                self.status = status;
                return true;
            }
        };
        let room = MAX_OUTPUT_BYTES.saturating_sub(to.len());
        to.extend_from_slice(&bytes[..bytes.len().min(room)]);
        bytes.len() <= room
    }

    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// What the command said, on standard error or else on standard output, on one line.
    pub fn words(&self) -> String {
        let said = if self.stderr.trim_ascii().is_empty() { &self.stdout } else { &self.stderr };
        let said = String::from_utf8_lossy(said);
        said.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
    }
}

/// A command at work on a device. Dropping it closes the connection, and with it the command's standard
/// streams.
#[derive(Debug)]
pub struct Shell {
    connection: Connection,
    form: Form,
    /// Whether the command's exit status has come.
    has_ended: bool,
    /// How many packets without a byte have come in a row.
    empty_packets: u32,
}

#[derive(Debug)]
enum Form {
    Packets {
        /// The kind of the packet that is being read, and how many of its bytes are still to come.
        open: (u8, usize),
    },
    /// All of a terminal's output is read before it is looked at.
    Terminal,
}

impl Shell {
    /// Starts `script` in the shell of a device, without standard input. `packets` says whether the device
    /// offers `shell_v2`.
    ///
    /// # Errors
    /// [`AdbError`].
    pub(super) fn start(
        server: &Server,
        serial: &str,
        script: &str,
        packets: bool,
    ) -> Result<Shell, AdbError> {
        let what = format!("running a command on {serial}");
        let (service, form) = match packets {
            true => (format!("shell,v2,raw:{script}"), Form::Packets { open: (0, 0) }),
            // A line feed, not a semicolon: the script may end in a comment. In parentheses: it may `exit`.
            false => (format!("shell:({script}\n) </dev/null; echo \"{STATUS_MARK}$?\""), Form::Terminal),
        };
        let connection = server.open(serial, &service, what)?;
        let mut shell = Shell { connection, form, has_ended: false, empty_packets: 0 };
        if packets {
            shell.end_input()?;
        }
        Ok(shell)
    }

    /// Starts `script` with standard input, in the shell of a device that offers `shell_v2`.
    ///
    /// # Errors
    /// [`AdbError`].
    pub(super) fn start_with_input(server: &Server, serial: &str, script: &str) -> Result<Shell, AdbError> {
        let what = format!("running a command on {serial}");
        let connection = server.open(serial, &format!("shell,v2,raw:{script}"), what)?;
        Ok(Shell { connection, form: Form::Packets { open: (0, 0) }, has_ended: false, empty_packets: 0 })
    }

    /// Sends bytes to the command's standard input.
    ///
    /// # Errors
    /// [`AdbError`], also where the command takes none for as long as the server's stall time.
    pub fn write_input(&mut self, bytes: &[u8]) -> Result<(), AdbError> {
        for part in bytes.chunks(PART_BYTES) {
            let head = [&[packet::STDIN][..], &(part.len() as u32).to_le_bytes()].concat();
            self.connection.write(&[&head, part].concat())?;
        }
        Ok(())
    }

    /// Ends the command's standard input.
    ///
    /// # Errors
    /// [`AdbError`].
    pub fn end_input(&mut self) -> Result<(), AdbError> {
        self.connection.write(&packet::CLOSE_STDIN)
    }

    /// Whether the command's exit status has come.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Takes the next piece that has arrived. Returns whether there was one.
    ///
    /// # Errors
    /// As [`Shell::next`].
    pub fn has_said(&mut self, output: &mut ShellOutput) -> Result<bool, AdbError> {
        let event = self.next(Duration::ZERO)?;
        event.map(|event| self.take(event, output)).transpose().map(|taken| taken.is_some())
    }

    fn take(&mut self, event: ShellEvent, output: &mut ShellOutput) -> Result<(), AdbError> {
        self.has_ended |= matches!(event, ShellEvent::Exit(_));
        if output.add(event) { Ok(()) } else { Err(self.endless()) }
    }

    /// The error where a command prints more than any should.
    pub fn endless(&self) -> AdbError {
        self.connection.nonsense(format!("the command prints more than {} MiB", MAX_OUTPUT_BYTES >> 20))
    }

    /// The next piece, if one comes within this time; the end of the packets is [`ShellEvent::Exit`].
    ///
    /// # Errors
    /// [`AdbError`]; a connection that ends before the command is lost.
    pub fn next(&mut self, within: Duration) -> Result<Option<ShellEvent>, AdbError> {
        match &mut self.form {
            Form::Packets { open } => {
                if open.1 == 0 {
                    if !self.connection.wait(within)? {
                        return Ok(None);
                    }
                    let mut head = [0; 5];
                    self.connection.read_exact(&mut head)?;
                    let [kind, length @ ..] = head;
                    *open = (kind, u32::from_le_bytes(length) as usize);
                }
                let mut bytes = vec![0; open.1.min(PART_BYTES)];
                self.connection.read_exact(&mut bytes)?;
                open.1 -= bytes.len();
                self.empty_packets = if bytes.is_empty() { self.empty_packets + 1 } else { 0 };
                if self.empty_packets > MAX_EMPTY_PACKETS {
                    return Err(self
                        .connection
                        .nonsense("packets without a byte, one after the other".to_owned()));
                }
                match open.0 {
                    packet::STDOUT => Ok(Some(ShellEvent::Stdout(bytes))),
                    packet::STDERR => Ok(Some(ShellEvent::Stderr(bytes))),
                    packet::EXIT if bytes.len() == 1 => Ok(Some(ShellEvent::Exit(bytes[0]))),
                    kind => {
                        let why = format!("a packet of kind {kind} with {} bytes", bytes.len());
                        Err(self.connection.nonsense(why))
                    }
                }
            }
            Form::Terminal => some_output(&mut self.connection, within),
        }
    }

    /// Reads up to the end of the command, which may be silent for at most `patience`, and take four times as
    /// long in all. What it has printed until then is in `output`, also after an error.
    ///
    /// # Errors
    /// [`AdbError`].
    pub fn finish(&mut self, patience: Duration, output: &mut ShellOutput) -> Result<(), AdbError> {
        let deadline = Instant::now() + patience * SILENCES;
        loop {
            let event = match self.next(patience) {
                // The end of a terminal's connection is the end of the command, if the mark is there.
                Err(AdbError::ConnectionLost { .. })
                    if matches!(self.form, Form::Terminal) && take_status(output) =>
                {
                    return Ok(());
                }
                event => event?,
            };
            let what = || self.connection.what().to_owned();
            let event =
                event.ok_or_else(|| AdbError::Stalled { what: what(), seconds: patience.as_secs() })?;
            self.take(event, output)?;
            if self.has_ended {
                return Ok(());
            }
            if Instant::now() > deadline {
                let seconds = (patience * SILENCES).as_secs();
                return Err(AdbError::NoEnd { what: self.connection.what().to_owned(), seconds });
            }
        }
    }
}

/// The bytes that have arrived, if any come within this time. The end of the connection is an error.
fn some_output(connection: &mut Connection, within: Duration) -> Result<Option<ShellEvent>, AdbError> {
    if !connection.wait(within)? {
        return Ok(None);
    }
    let mut bytes = vec![0; PART_BYTES];
    let length = connection.read_some(&mut bytes)?;
    bytes.truncate(length);
    match length {
        0 => Err(AdbError::ConnectionLost { what: connection.what().to_owned() }),
        _ => Ok(Some(ShellEvent::Stdout(bytes))),
    }
}

/// Takes the exit status from the end of a terminal's output, and its CR LF for LF. Returns whether there is
/// one.
fn take_status(output: &mut ShellOutput) -> bool {
    let text = String::from_utf8_lossy(&output.stdout);
    let Some((before, status)) = text.rsplit_once(STATUS_MARK) else { return false };
    let Ok(status) = status.trim().parse() else { return false };
    // Some releases double the CR.
    let before = before.replace("\r\r\n", "\n").replace("\r\n", "\n");
    (output.status, output.stdout) = (status, before.into_bytes());
    true
}

/// A raw stream from a command: its standard output, byte by byte.
#[derive(Debug)]
pub struct RawStream {
    connection: Connection,
}

impl RawStream {
    pub(super) fn start(server: &Server, serial: &str, script: &str) -> Result<RawStream, AdbError> {
        let what = format!("reading a stream from {serial}");
        Ok(RawStream { connection: server.open(serial, &format!("exec:{script}"), what)? })
    }

    /// The next bytes of standard output, if any come within this time.
    ///
    /// # Errors
    /// [`AdbError::ConnectionLost`] at the end, whatever ended the stream, or another error of the
    /// connection.
    pub fn next(&mut self, within: Duration) -> Result<Option<ShellEvent>, AdbError> {
        some_output(&mut self.connection, within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminals_output_is_freed_of_its_line_ends_and_its_status() {
        let of = |stdout: &str| {
            let mut output = ShellOutput { stdout: stdout.into(), ..ShellOutput::default() };
            take_status(&mut output).then(|| (output.status, output.text()))
        };
        let own = |status, text: &str| Some((status, text.to_owned()));
        assert_eq!(of("a\r\nb\r\r\ntracebridge-exit-status=7\r\n"), own(7, "a\nb\n"));
        assert_eq!(of("no line endtracebridge-exit-status=0\n"), own(0, "no line end"));
        assert_eq!(of("tracebridge-exit-status=1\ntracebridge-exit-status=2\n").unwrap().0, 2);
        assert_eq!(of("cut in the middle tracebridge-exit-sta"), None);
        assert_eq!(of("tracebridge-exit-status=999\n"), None);
    }

    #[test]
    fn what_a_command_said_is_one_line() {
        let output = ShellOutput { status: 1, stdout: b"out\n".to_vec(), stderr: b" a\n\nb\r\n".to_vec() };
        assert_eq!(output.words(), "a; b");
        assert_eq!(ShellOutput { stderr: Vec::new(), ..output }.words(), "out");
    }
}
