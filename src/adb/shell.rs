//! Commands in the device's shell.
//!
//! adbd offers three services for it. `shell,v2,raw:` (Android 7 and newer) sends standard output, standard
//! error and the exit status in packets of their own: AOSP, packages/modules/adb, `shell_protocol.h`.
//! `shell:` is a terminal: standard error is among standard output, there is no exit status, and older
//! releases end lines with CR LF. `exec:` is a raw stream.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use super::connection::{Connection, excerpt};
use super::error::AdbError;
use super::server::Server;

/// The largest packet that is read at once, bytes. Longer ones, whatever their length says, come in parts.
const PART_BYTES: usize = 64 << 10;

/// The most that a command may print, bytes. A device that prints more is given up.
const MAX_OUTPUT_BYTES: usize = 16 << 20;

/// The most of a command's output that is kept, and of a device's text that is shown to people, bytes.
const MAX_SHOWN_BYTES: usize = 64 << 10;

/// Of an output that is too long for what is kept, so many bytes of its end are kept: a command says there
/// how it has ended.
const KEPT_END_BYTES: usize = 16 << 10;

/// Room for the note about what is left out, bytes. A text that is longer by less than that is shown whole,
/// and so is one that has been cut before.
const NOTE_BYTES: usize = 40;

/// A device that sends more packets without a byte in a row does not speak the protocol.
const MAX_EMPTY_PACKETS: u32 = 1000;

/// A command may take this many times as long as it may be silent.
const MAX_TIMEOUTS: u32 = 4;

/// The text before the exit status, where the service does not tell it and a shell has to print it.
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

/// A piece of a command's output, or its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellEvent {
    /// Bytes of standard output.
    Stdout(Vec<u8>),
    /// Bytes of standard error.
    Stderr(Vec<u8>),
    /// The command has ended with this status. Nothing comes after it.
    Exit(u8),
}

/// The result of a command that has ended. Of a long output the middle is left out, and counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellOutput {
    /// The exit status.
    pub status: u8,
    /// Standard output; where the device does not tell them apart, standard error too.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// The most bytes that are kept of each.
    pub max_kept: usize,
    /// The number of bytes that are left out.
    pub left_out: usize,
}

impl Default for ShellOutput {
    fn default() -> ShellOutput {
        ShellOutput::within(MAX_SHOWN_BYTES)
    }
}

impl ShellOutput {
    /// An output of which up to `max_kept` bytes are kept.
    pub fn within(max_kept: usize) -> ShellOutput {
        ShellOutput { status: 0, stdout: Vec::new(), stderr: Vec::new(), max_kept, left_out: 0 }
    }

    /// For an answer that is read to its end, such as a list of files or a report as JSON: all of it is kept.
    pub fn of_long_answer() -> ShellOutput {
        ShellOutput::within(MAX_OUTPUT_BYTES)
    }

    /// Adds a piece. Returns whether there may be more: a device may print without end.
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
        to.extend_from_slice(&bytes);
        let excess = to.len().saturating_sub(self.max_kept);
        let end = self.max_kept.saturating_sub(KEPT_END_BYTES);
        if excess > 0 {
            to.drain(end..end + excess);
            self.left_out += excess;
        }
        self.left_out <= MAX_OUTPUT_BYTES.saturating_sub(self.max_kept)
    }

    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The command's message on one line: its standard error, or its standard output if that is empty.
    pub fn message(&self) -> String {
        let bytes = if self.stderr.trim_ascii().is_empty() { &self.stdout } else { &self.stderr };
        let text = String::from_utf8_lossy(bytes);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let lines = lines.collect::<Vec<_>>().join("; ");
        match self.left_out {
            0 => shown(&lines).into_owned(),
            left_out => {
                // What is kept of an answer that may be long is too long for people.
                let begin = begin_of(&lines, 2 * MAX_SHOWN_BYTES);
                format!("{begin}… ({} more bytes)", left_out + lines.len() - begin.len())
            }
        }
    }
}

/// A text of a device as it is shown to people: its first 64 KiB, and how many bytes are left out.
pub fn shown(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_SHOWN_BYTES + NOTE_BYTES {
        return Cow::Borrowed(text);
    }
    let begin = begin_of(text, MAX_SHOWN_BYTES);
    Cow::Owned(format!("{begin}… ({} more bytes)", text.len() - begin.len()))
}

/// The begin of a text: at most so many bytes, cut between two characters.
fn begin_of(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// A command at work on a device. Dropping it closes the connection, and with it the command's standard
/// streams.
#[derive(Debug)]
pub struct Shell {
    connection: Connection,
    service: ShellService,
    /// Whether the command's exit status has come.
    has_ended: bool,
    /// How many packets without a byte have come in a row.
    empty_packets: u32,
}

#[derive(Debug)]
enum ShellService {
    /// `shell,v2`, with the packet that is being read.
    Packets(ShellPacket),
    /// `shell:`. All of a terminal's output is read before it is parsed.
    Terminal,
}

/// A packet of which the head has been read.
#[derive(Debug, Default)]
struct ShellPacket {
    kind: u8,
    /// Number of bytes that have not been read yet.
    remaining: usize,
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
        if packets {
            let mut shell = Shell::start_with_input(server, serial, script)?;
            shell.end_input()?;
            return Ok(shell);
        }
        // A line feed, not a semicolon: the script may end in a comment. In parentheses: it may `exit`.
        let request = format!("shell:({script}\n) </dev/null; echo \"{STATUS_MARK}$?\"");
        let connection = server.open(serial, &request, format!("running a command on {serial}"))?;
        Ok(Shell { connection, service: ShellService::Terminal, has_ended: false, empty_packets: 0 })
    }

    /// Starts `script` with standard input, in the shell of a device that offers `shell_v2`.
    ///
    /// # Errors
    /// [`AdbError`].
    pub(super) fn start_with_input(server: &Server, serial: &str, script: &str) -> Result<Shell, AdbError> {
        let request = format!("shell,v2,raw:{script}");
        let connection = server.open(serial, &request, format!("running a command on {serial}"))?;
        let service = ShellService::Packets(ShellPacket::default());
        Ok(Shell { connection, service, has_ended: false, empty_packets: 0 })
    }

    /// Sends bytes to the command's standard input.
    ///
    /// # Errors
    /// [`AdbError`], also where the command takes none for as long as the server's timeout.
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
    pub fn take_next(&mut self, output: &mut ShellOutput) -> Result<bool, AdbError> {
        let Some(event) = self.next(Duration::ZERO)? else { return Ok(false) };
        self.take(event, output)?;
        Ok(true)
    }

    fn take(&mut self, event: ShellEvent, output: &mut ShellOutput) -> Result<(), AdbError> {
        self.has_ended |= matches!(event, ShellEvent::Exit(_));
        if output.add(event) { Ok(()) } else { Err(self.too_much_output()) }
    }

    /// The error for a command that prints more than a command may.
    pub fn too_much_output(&self) -> AdbError {
        self.connection.protocol_error(format!("the command prints more than {} MiB", MAX_OUTPUT_BYTES >> 20))
    }

    /// The next piece, if one comes within this time; the end of the packets is [`ShellEvent::Exit`].
    ///
    /// # Errors
    /// [`AdbError`]; a connection that ends before the command is lost.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<ShellEvent>, AdbError> {
        match &mut self.service {
            ShellService::Packets(packet) => {
                if packet.remaining == 0 {
                    if !self.connection.wait(timeout)? {
                        return Ok(None);
                    }
                    let mut head = [0; 5];
                    self.connection.read_exact(&mut head)?;
                    let [kind, length @ ..] = head;
                    *packet = ShellPacket { kind, remaining: u32::from_le_bytes(length) as usize };
                }
                let mut bytes = vec![0; packet.remaining.min(PART_BYTES)];
                self.connection.read_exact(&mut bytes)?;
                packet.remaining -= bytes.len();
                self.empty_packets = if bytes.is_empty() { self.empty_packets + 1 } else { 0 };
                if self.empty_packets > MAX_EMPTY_PACKETS {
                    let reason = "packets without a byte, one after the other".to_owned();
                    return Err(self.connection.protocol_error(reason));
                }
                match packet.kind {
                    packet::STDOUT => Ok(Some(ShellEvent::Stdout(bytes))),
                    packet::STDERR => Ok(Some(ShellEvent::Stderr(bytes))),
                    packet::EXIT if bytes.len() == 1 => Ok(Some(ShellEvent::Exit(bytes[0]))),
                    kind => {
                        let reason = format!("a packet of kind {kind} with {} bytes", bytes.len());
                        Err(self.connection.protocol_error(reason))
                    }
                }
            }
            ShellService::Terminal => next_bytes(&mut self.connection, timeout),
        }
    }

    /// Reads up to the end of the command, which may be silent for at most `timeout`, and take four times as
    /// long in all. Its output until then is in `output`, also after an error.
    ///
    /// # Errors
    /// [`AdbError`].
    pub fn finish(&mut self, timeout: Duration, output: &mut ShellOutput) -> Result<(), AdbError> {
        let result = self.read_to_end(timeout, output);
        log::debug!(
            "adb: {}: status {}, standard output \"{}\", standard error \"{}\"",
            self.connection.action(),
            output.status,
            excerpt(&output.stdout),
            excerpt(&output.stderr)
        );
        result
    }

    fn read_to_end(&mut self, timeout: Duration, output: &mut ShellOutput) -> Result<(), AdbError> {
        let deadline = Instant::now() + timeout * MAX_TIMEOUTS;
        loop {
            let event = match self.next(timeout) {
                // The end of a terminal's connection is the end of the command, if the mark is there.
                Err(AdbError::ConnectionLost { .. })
                    if matches!(self.service, ShellService::Terminal) && take_status(output) =>
                {
                    return Ok(());
                }
                event => event?,
            };
            let Some(event) = event else {
                let action = self.connection.action().to_owned();
                return Err(AdbError::Stalled { action, seconds: timeout.as_secs() });
            };
            self.take(event, output)?;
            if self.has_ended {
                return Ok(());
            }
            if Instant::now() > deadline {
                let action = self.connection.action().to_owned();
                return Err(AdbError::NoEnd { action, seconds: (timeout * MAX_TIMEOUTS).as_secs() });
            }
        }
    }
}

/// The bytes that have arrived, if any come within this time. The end of the connection is an error.
fn next_bytes(connection: &mut Connection, timeout: Duration) -> Result<Option<ShellEvent>, AdbError> {
    if !connection.wait(timeout)? {
        return Ok(None);
    }
    let mut bytes = vec![0; PART_BYTES];
    let length = connection.read_some(&mut bytes)?;
    bytes.truncate(length);
    if length == 0 {
        return Err(AdbError::ConnectionLost { action: connection.action().to_owned() });
    }
    Ok(Some(ShellEvent::Stdout(bytes)))
}

/// Takes the exit status from the end of a terminal's output, and its CR LF for LF. Returns whether there is
/// one.
fn take_status(output: &mut ShellOutput) -> bool {
    let text = String::from_utf8_lossy(&output.stdout);
    let Some((before, status)) = text.rsplit_once(STATUS_MARK) else { return false };
    let Ok(status) = status.trim().parse() else { return false };
    // Some releases double the CR.
    let before = before.replace("\r\r\n", "\n").replace("\r\n", "\n");
    output.status = status;
    output.stdout = before.into_bytes();
    true
}

/// A raw stream from a command: its standard output, byte by byte.
#[derive(Debug)]
pub struct RawStream {
    connection: Connection,
}

impl RawStream {
    pub(super) fn start(server: &Server, serial: &str, script: &str) -> Result<RawStream, AdbError> {
        let action = format!("reading a stream from {serial}");
        Ok(RawStream { connection: server.open(serial, &format!("exec:{script}"), action)? })
    }

    /// The next bytes of standard output, if any come within this time.
    ///
    /// # Errors
    /// [`AdbError::ConnectionLost`] at the end, whatever ended the stream, or another error of the
    /// connection.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<ShellEvent>, AdbError> {
        next_bytes(&mut self.connection, timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminals_output_is_freed_of_its_line_ends_and_its_status() {
        let taken = |stdout: &str| {
            let mut output = ShellOutput { stdout: stdout.into(), ..ShellOutput::default() };
            take_status(&mut output).then(|| (output.status, output.text()))
        };
        let expected = |status, text: &str| Some((status, text.to_owned()));
        assert_eq!(taken("a\r\nb\r\r\ntracebridge-exit-status=7\r\n"), expected(7, "a\nb\n"));
        assert_eq!(taken("no line endtracebridge-exit-status=0\n"), expected(0, "no line end"));
        assert_eq!(taken("tracebridge-exit-status=1\ntracebridge-exit-status=2\n").unwrap().0, 2);
        assert_eq!(taken("cut in the middle tracebridge-exit-sta"), None);
        assert_eq!(taken("tracebridge-exit-status=999\n"), None);
    }

    #[test]
    fn the_message_of_a_command_is_one_line() {
        let stderr = b" a\n\nb\r\n".to_vec();
        let output = ShellOutput { status: 1, stdout: b"out\n".to_vec(), stderr, ..ShellOutput::default() };
        assert_eq!(output.message(), "a; b");
        assert_eq!(ShellOutput { stderr: Vec::new(), ..output }.message(), "out");
    }

    #[test]
    fn of_a_long_output_the_begin_and_the_end_are_kept_and_the_rest_is_counted() {
        let piece = |n: usize| ShellEvent::Stdout(format!("{n:09}\n").repeat(1_000).into_bytes());
        let mut output = ShellOutput::default();
        assert!((0..100).all(|n| output.add(piece(n))));
        assert_eq!((output.stdout.len(), output.left_out), (64 << 10, 1_000_000 - (64 << 10)));
        assert!(output.stdout.starts_with(b"000000000\n") && output.stdout.ends_with(b"000000099\n"));
        assert!(output.message().ends_with("000000099… (934464 more bytes)"));
        let given_up = (0..).position(|n| !output.add(piece(n))).unwrap();
        assert!((1_500..1_700).contains(&given_up) && output.stdout.len() == 64 << 10, "{given_up}");
        let mut result = ShellOutput::within(1 << 20);
        assert!((0..200).all(|n| result.add(piece(n))));
        let shown_bytes = 2 * MAX_SHOWN_BYTES + "… (1234567 more bytes)".len();
        assert_eq!(result.message().len(), shown_bytes, "not all that is kept");
        let mut long = ShellOutput::of_long_answer();
        assert!((0..100).all(|n| long.add(piece(n))));
        assert_eq!((long.stdout.len(), long.left_out), (1_000_000, 0));
    }

    #[test]
    fn a_text_without_end_is_cut_between_two_characters() {
        assert_eq!(shown("short"), "short");
        let text = "é".repeat(100_000);
        let cut = shown(&text);
        assert!(cut.ends_with("é… (134464 more bytes)"), "{}", &cut[cut.len() - 40..]);
        assert!(cut.len() < (64 << 10) + 40);
        assert_eq!(shown(&cut), cut, "the number of bytes is told once");
    }
}
