//! One TCP connection to the adb server: requests with their length in front, answers that begin with `OKAY`
//! or `FAIL`, and raw bytes after that. Described in AOSP, packages/modules/adb, `OVERVIEW.TXT` and
//! `SERVICES.TXT`.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::slice::EscapeAscii;
use std::time::{Duration, Instant};

use super::error::AdbError;

/// How long a server may take to accept a connection. It runs on this machine, or near it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Size of the buffer for received bytes. A larger one saves system calls where files are pulled.
const BUFFER_BYTES: usize = 256 << 10;

/// A text of the server is cut after this many bytes. The lengths in the protocol are not believed.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// Of each text, this many bytes go into the log.
const MAX_LOGGED_BYTES: usize = 1000;

/// A connection to the server, and through it to a service of the server or of a device.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
    /// The action that errors of the connection name (`reading from emulator-5554`).
    action: String,
    /// How long the other side may be silent while something is due, and how long it may take no bytes.
    timeout: Duration,
}

impl Connection {
    /// Connects to the server at this host and port. From then on the other side may be silent for `timeout`
    /// while something is due.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn open(host: &str, port: u16, timeout: Duration) -> io::Result<Connection> {
        let mut error = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(stream) => {
                    // Requests are small and are waited for.
                    let _ = stream.set_nodelay(true);
                    stream.set_read_timeout(Some(timeout))?;
                    stream.set_write_timeout(Some(timeout))?;
                    let stream = BufReader::with_capacity(BUFFER_BYTES, stream);
                    let action = "asking the adb server".to_owned();
                    return Ok(Connection { stream, action, timeout });
                }
                Err(refused) => error = refused,
            }
        }
        Err(error)
    }

    /// Sets the action that errors of this connection name from now on.
    pub(super) fn set_action(&mut self, action: String) {
        self.action = action;
    }

    /// The action that errors of this connection name.
    pub(super) fn action(&self) -> &str {
        &self.action
    }

    /// Sends a request, and waits until the server accepts it.
    ///
    /// # Errors
    /// [`AdbError::Refused`] with the server's words, or an error of the connection.
    pub(super) fn request(&mut self, service: &str) -> Result<(), AdbError> {
        if service.len() > 0xffff {
            return Err(AdbError::Refused {
                action: self.action.clone(),
                text: format!("a command of {} bytes is too long (65535 at most)", service.len()),
            });
        }
        log::debug!("adb: {}: request {service}", self.action);
        self.write(format!("{:04x}{service}", service.len()).as_bytes())?;
        self.read_status()
    }

    /// Reads `OKAY`, or `FAIL` and the reason.
    fn read_status(&mut self) -> Result<(), AdbError> {
        let mut status = [0; 4];
        self.read_exact(&mut status)?;
        match &status {
            b"OKAY" => Ok(()),
            b"FAIL" => {
                let text = self.read_text()?;
                log::debug!("adb: {}: refused: {text}", self.action);
                Err(AdbError::Refused { action: self.action.clone(), text })
            }
            other => Err(self.protocol_error(format!("the answer begins with {}", other.escape_ascii()))),
        }
    }

    /// Reads a text with its length in four hexadecimal digits in front.
    pub(super) fn read_text(&mut self) -> Result<String, AdbError> {
        let mut digits = [0; 4];
        self.read_exact(&mut digits)?;
        let length = std::str::from_utf8(&digits)
            .ok()
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| usize::from_str_radix(digits, 16).ok());
        let Some(length) = length else {
            return Err(self.protocol_error(format!("the length {} is no number", digits.escape_ascii())));
        };
        let mut text = vec![0; length];
        self.read_exact(&mut text)?;
        log::debug!("adb: {}: answer {}", self.action, excerpt(&text));
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Reads everything up to the end of the connection, as text. It must not take longer than the other side
    /// may be silent.
    pub(super) fn read_rest(&mut self) -> Result<String, AdbError> {
        let deadline = Instant::now() + self.timeout;
        let mut text = vec![0; MAX_TEXT_BYTES];
        let mut length = 0;
        while length < text.len() {
            match self.read_some(&mut text[length..])? {
                0 => break,
                more => length += more,
            }
            self.check_deadline(deadline)?;
        }
        Ok(String::from_utf8_lossy(&text[..length]).into_owned())
    }

    /// Waits until bytes have arrived or the other side has closed the connection, for at most this time.
    /// Returns whether that happened.
    pub(super) fn wait(&mut self, timeout: Duration) -> Result<bool, AdbError> {
        if !self.stream.buffer().is_empty() {
            return Ok(true);
        }
        // No time at all would mean to wait for ever.
        let timeout = timeout.max(Duration::from_millis(1));
        let arrived = self.stream.get_ref().set_read_timeout(Some(timeout));
        let arrived = arrived.and_then(|()| {
            loop {
                match self.stream.fill_buf() {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if is_timeout(&error) => break Ok(false),
                    filled => break filled.map(|_| true),
                }
            }
        });
        let restored = self.stream.get_ref().set_read_timeout(Some(self.timeout));
        arrived.and_then(|arrived| restored.map(|()| arrived)).map_err(|error| self.lost(error))
    }

    /// Reads some bytes that have arrived; none at the end of the connection.
    pub(super) fn read_some(&mut self, bytes: &mut [u8]) -> Result<usize, AdbError> {
        loop {
            match self.stream.read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read.map_err(|error| self.lost(error)),
            }
        }
    }

    /// Fills `bytes`. They must not take longer than the other side may be silent: one that sends a byte
    /// now and then would keep the caller waiting for days.
    pub(super) fn read_exact(&mut self, bytes: &mut [u8]) -> Result<(), AdbError> {
        let mut filled = 0;
        let mut deadline = None;
        while filled < bytes.len() {
            match self.read_some(&mut bytes[filled..])? {
                0 => return Err(AdbError::ConnectionLost { action: self.action.clone() }),
                length => filled += length,
            }
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + self.timeout);
            if filled < bytes.len() {
                self.check_deadline(deadline)?;
            }
        }
        Ok(())
    }

    /// Writes all of `bytes`, a piece at most. The other side must not take longer for it than it may be
    /// silent.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), AdbError> {
        let deadline = Instant::now() + self.timeout;
        let mut left = bytes;
        while !left.is_empty() {
            match self.stream.get_mut().write(left) {
                Ok(0) => return Err(AdbError::ConnectionLost { action: self.action.clone() }),
                Ok(length) => left = &left[length..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.lost(error)),
            }
            if !left.is_empty() {
                self.check_deadline(deadline)?;
            }
        }
        Ok(())
    }

    /// How long the other side may be silent while something is due.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    fn check_deadline(&self, deadline: Instant) -> Result<(), AdbError> {
        if Instant::now() <= deadline {
            return Ok(());
        }
        Err(AdbError::Stalled { action: self.action.clone(), seconds: self.timeout.as_secs() })
    }

    /// The error for bytes that are not adb's protocol.
    pub(super) fn protocol_error(&self, reason: String) -> AdbError {
        AdbError::Protocol { action: self.action.clone(), reason }
    }

    fn lost(&self, error: io::Error) -> AdbError {
        log::debug!("adb: {}: {error}", self.action);
        let action = self.action.clone();
        if is_timeout(&error) {
            AdbError::Stalled { action, seconds: self.timeout.as_secs() }
        } else {
            AdbError::ConnectionLost { action }
        }
    }
}

/// The first bytes of a text for the log, with control characters escaped.
pub(super) fn excerpt(bytes: &[u8]) -> EscapeAscii<'_> {
    bytes[..bytes.len().min(MAX_LOGGED_BYTES)].escape_ascii()
}

/// Whether a read or write has waited for as long as it may. Systems differ in the name of that error.
fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
