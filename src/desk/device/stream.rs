//! A command's output as it comes, without a file on the device.

use std::io::Write;
use std::time::{Duration, Instant};

use super::error::DeviceError;
use super::privilege::Privilege;
use super::shell_words::command_line;
use super::{COMMAND_TIMEOUT, Device};
use crate::adb::{AdbError, Pace, RawStream, Shell, ShellEvent, ShellOutput};

/// How often the wait for output is interrupted to see whether the user wants the end.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// After this time of silence the device is asked whether it is still there; sooner where the user has less
/// patience than usual.
const PROBE_INTERVAL: Duration = Duration::from_secs(60);

/// A command that was told to end may send nothing for so many times as long as the device may be silent.
const MAX_TIMEOUTS_TO_END: u32 = 4;

/// The longest line of standard error that is looked at before its end has come, bytes.
const MAX_LINE_BYTES: usize = 64 << 10;

/// A talk with a command while it runs: lines for its standard input, and answers on its standard error.
pub trait StreamTalk {
    /// The next text for standard input, if there is one.
    fn next_input(&self) -> Option<String>;

    /// Takes a line of standard error that is an answer. Returns whether it is one: others are for the log.
    fn take_answer(&self, line: &str) -> bool;
}

/// The end of a stream.
#[derive(Debug)]
pub struct StreamEnd {
    /// The command's exit status; `None` where the device does not tell it, or the connection was lost.
    pub status: Option<u8>,
    /// The command's standard error, where the device tells it apart.
    pub log: String,
    /// The error that cut the stream.
    pub lost: Option<AdbError>,
}

impl Device {
    /// Runs a command, and writes its standard output to `out` byte by byte. When `is_ending` becomes true,
    /// it gets SIGINT. `pace` watches an output that has an end, such as a file's. `talk` needs a device that
    /// tells the streams of a command apart.
    ///
    /// # Errors
    /// [`DeviceError`]; a connection that is lost in the middle is no error: [`StreamEnd::lost`] says so.
    pub fn stream(
        &self,
        args: &[String],
        privilege: Privilege,
        out: &mut dyn Write,
        is_ending: &dyn Fn() -> bool,
        mut pace: Option<Pace>,
        talk: Option<&dyn StreamTalk>,
    ) -> Result<StreamEnd, DeviceError> {
        let packets = self.transport().tells_streams_apart();
        // The first line of standard error is the process's id, with which it is ended.
        let discard = if packets { "" } else { " 2>/dev/null" };
        let script = privilege.command(&format!("echo $$ >&2; exec {}{discard}", command_line(args)));
        let mut output = if packets && talk.is_some() {
            CommandOutput::Packets(self.transport().start_with_input(&script)?)
        } else if packets {
            CommandOutput::Packets(self.transport().start(&script)?)
        } else {
            CommandOutput::Raw(self.transport().stream(&format!("{script}{discard}"))?)
        };
        let local_error = |source| DeviceError::LocalFile { path: "the stream's file".to_owned(), source };
        let mut log = StreamLog { kept: ShellOutput::default(), line: Vec::new(), talk };
        let mut has_been_told = false;
        let probe_interval = PROBE_INTERVAL.min(self.transport().server().timeout() * 2);
        let mut last_sign = Instant::now();
        let mut last_bytes = Instant::now();
        let mut ending_since = None;
        let patience = self.transport().server().timeout() * MAX_TIMEOUTS_TO_END;
        loop {
            let is_late = |since: Instant| since.max(last_bytes).elapsed() > patience;
            if is_ending() && is_late(*ending_since.get_or_insert_with(Instant::now)) {
                let action = format!("waiting for the end of the stream of {}", self.serial());
                let lost = Some(AdbError::NoEnd { action, seconds: patience.as_secs() });
                return Ok(StreamEnd { status: None, log: log.text(), lost });
            }
            // What is said before the command has begun would be for the shell that starts it.
            while let Some(input) = talk.filter(|_| log.pid().is_some()).and_then(StreamTalk::next_input) {
                match output.write_input(input.as_bytes()) {
                    Err(error) if error.is_lost_connection() => {
                        return Ok(StreamEnd { status: None, log: log.text(), lost: Some(error) });
                    }
                    written => written?,
                }
            }
            let next = match output.next() {
                Ok(None) if is_ending() && !has_been_told => match log.pid() {
                    Some(pid) => {
                        has_been_told = true;
                        self.run_script(&format!("kill -INT {pid}"), privilege, COMMAND_TIMEOUT).map(|_| None)
                    }
                    // Without its id, the end of the connection ends it.
                    None if !packets => {
                        return Ok(StreamEnd { status: None, log: String::new(), lost: None });
                    }
                    None => Ok(None),
                },
                Ok(None) if last_sign.elapsed() > probe_interval => {
                    last_sign = Instant::now();
                    self.run_script(":", Privilege::Shell, COMMAND_TIMEOUT).map(|_| None)
                }
                next => next,
            };
            if let (Some(pace), Ok(event)) = (&mut pace, &next) {
                let bytes = match event {
                    Some(ShellEvent::Stdout(bytes)) => bytes.len() as u64,
                    _ => 0,
                };
                pace.add(bytes, &format!("reading a file from {}", self.serial()))?;
            }
            match next {
                Ok(None) => continue,
                Ok(Some(ShellEvent::Stdout(bytes))) => {
                    out.write_all(&bytes).map_err(local_error)?;
                    last_bytes = Instant::now();
                }
                Ok(Some(ShellEvent::Stderr(bytes))) => {
                    log.add(&bytes);
                }
                Ok(Some(ShellEvent::Exit(status))) => {
                    return Ok(StreamEnd { status: Some(status), log: log.text(), lost: None });
                }
                // The end of a raw stream looks the same whatever ended it.
                Err(AdbError::ConnectionLost { .. }) if !packets => {
                    return Ok(StreamEnd { status: None, log: String::new(), lost: None });
                }
                Err(error) if error.is_lost_connection() => {
                    return Ok(StreamEnd { status: None, log: log.text(), lost: Some(error) });
                }
                Err(error) => return Err(error.into()),
            }
            last_sign = Instant::now();
        }
    }
}

/// The standard error of a command, without the answers among it.
struct StreamLog<'a> {
    kept: ShellOutput,
    /// The begin of a line that may be an answer.
    line: Vec<u8>,
    talk: Option<&'a dyn StreamTalk>,
}

impl StreamLog<'_> {
    fn add(&mut self, bytes: &[u8]) {
        let Some(talk) = self.talk else { return self.keep(bytes.to_vec()) };
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            let is_whole = piece.ends_with(b"\n");
            if is_whole && talk.take_answer(String::from_utf8_lossy(&self.line).trim_end()) {
                self.line.clear();
            } else if is_whole || self.line.len() > MAX_LINE_BYTES {
                let line = std::mem::take(&mut self.line);
                self.keep(line);
            }
        }
    }

    fn keep(&mut self, bytes: Vec<u8>) {
        // A device that logs without end is not waited for without end: the stream has limits of its own.
        let _ = self.kept.add(ShellEvent::Stderr(bytes));
    }

    /// The number on the first line.
    fn pid(&self) -> Option<u32> {
        let log = &self.kept.stderr;
        let end = log.iter().position(|byte| *byte == b'\n')?;
        std::str::from_utf8(&log[..end]).ok()?.trim().parse().ok()
    }

    /// The text that a command has logged behind its process's id, which stands on the first line.
    fn text(&mut self) -> String {
        let line = std::mem::take(&mut self.line);
        self.keep(line);
        let text = String::from_utf8_lossy(&self.kept.stderr);
        let text = text.split_once('\n').map_or("", |(_, rest)| rest.trim());
        match self.kept.left_out {
            0 => text.to_owned(),
            left_out => format!("{text}\n({left_out} more bytes are left out)"),
        }
    }
}

/// A command's output, with or without packets.
enum CommandOutput {
    Packets(Shell),
    Raw(RawStream),
}

impl CommandOutput {
    fn next(&mut self) -> Result<Option<ShellEvent>, AdbError> {
        match self {
            CommandOutput::Packets(shell) => shell.next(POLL_INTERVAL),
            CommandOutput::Raw(raw) => raw.next(POLL_INTERVAL),
        }
    }

    fn write_input(&mut self, bytes: &[u8]) -> Result<(), AdbError> {
        match self {
            CommandOutput::Packets(shell) => shell.write_input(bytes),
            CommandOutput::Raw(_) => Ok(()),
        }
    }
}
