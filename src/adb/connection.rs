//! One TCP connection to the adb server: requests with their length in front, answers that begin with `OKAY`
//! or `FAIL`, and raw bytes after that. Described in AOSP, packages/modules/adb, `OVERVIEW.TXT` and
//! `SERVICES.TXT`.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::error::AdbError;

/// How long a server may take to accept a connection. It runs on this machine, or near it.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Room for received bytes. A larger one saves system calls where files are pulled.
const BUFFER_BYTES: usize = 256 << 10;

/// The longest text of a server's answer that is kept, bytes. The lengths in the protocol are not believed.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// A connection to the server, and through it to a service of the server or of a device.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
    /// What errors say is going on.
    what: String,
    /// How long the other side may be silent while something is due, and how long it may take no bytes.
    stall: Duration,
}

impl Connection {
    /// Connects to the server at this host and port. From then on the other side may be silent for `stall`
    /// while something is due.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn open(host: &str, port: u16, stall: Duration) -> io::Result<Connection> {
        let mut error = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_TIME) {
                Ok(stream) => {
                    // Requests are small and are waited for.
                    let _ = stream.set_nodelay(true);
                    stream.set_read_timeout(Some(stall))?;
                    stream.set_write_timeout(Some(stall))?;
                    let stream = BufReader::with_capacity(BUFFER_BYTES, stream);
                    return Ok(Connection { stream, what: "asking the adb server".to_owned(), stall });
                }
                Err(refused) => error = refused,
            }
        }
        Err(error)
    }

    /// What errors of this connection say is going on from now on.
    pub(super) fn doing(&mut self, what: String) {
        self.what = what;
    }

    /// What is going on.
    pub(super) fn what(&self) -> &str {
        &self.what
    }

    /// Sends a request, and waits until the server accepts it.
    ///
    /// # Errors
    /// [`AdbError::Refused`] with the server's words, or an error of the connection.
    pub(super) fn request(&mut self, service: &str) -> Result<(), AdbError> {
        if service.len() > 0xffff {
            return Err(AdbError::Refused {
                what: self.what.clone(),
                text: format!("a command of {} bytes is too long (65535 at most)", service.len()),
            });
        }
        self.write(format!("{:04x}{service}", service.len()).as_bytes())?;
        self.accepted()
    }

    /// Reads `OKAY`, or `FAIL` and the reason.
    pub(super) fn accepted(&mut self) -> Result<(), AdbError> {
        let mut status = [0; 4];
        self.read_exact(&mut status)?;
        match &status {
            b"OKAY" => Ok(()),
            b"FAIL" => {
                let text = self.text()?;
                Err(AdbError::Refused { what: self.what.clone(), text })
            }
            other => Err(self.nonsense(format!("the answer begins with {}", other.escape_ascii()))),
        }
    }

    /// Reads a text with its length in four hexadecimal digits in front.
    pub(super) fn text(&mut self) -> Result<String, AdbError> {
        let mut digits = [0; 4];
        self.read_exact(&mut digits)?;
        let length = std::str::from_utf8(&digits)
            .ok()
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| usize::from_str_radix(digits, 16).ok());
        let Some(length) = length else {
            return Err(self.nonsense(format!("the length {} is no number", digits.escape_ascii())));
        };
        let mut text = vec![0; length];
        self.read_exact(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Reads everything up to the end of the connection, as text.
    pub(super) fn rest(&mut self) -> Result<String, AdbError> {
        let mut bytes = Vec::new();
        match (&mut self.stream).take(MAX_TEXT_BYTES as u64).read_to_end(&mut bytes) {
            Ok(_) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Waits until bytes have arrived or the other side has closed the connection, for at most this time.
    /// Returns whether that happened.
    pub(super) fn wait(&mut self, time: Duration) -> Result<bool, AdbError> {
        if !self.stream.buffer().is_empty() {
            return Ok(true);
        }
        // No time at all would mean to wait for ever.
        let time = time.max(Duration::from_millis(1));
        let arrived = self.stream.get_ref().set_read_timeout(Some(time));
        let arrived = arrived.and_then(|()| {
            loop {
                match self.stream.fill_buf() {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if is_timeout(&error) => break Ok(false),
                    filled => break filled.map(|_| true),
                }
            }
        });
        let restored = self.stream.get_ref().set_read_timeout(Some(self.stall));
        arrived.and_then(|arrived| restored.map(|()| arrived)).map_err(|error| self.failed(error))
    }

    /// Reads some bytes that have arrived; none at the end of the connection.
    pub(super) fn read_some(&mut self, bytes: &mut [u8]) -> Result<usize, AdbError> {
        loop {
            match self.stream.read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read.map_err(|error| self.failed(error)),
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
                0 => return Err(AdbError::ConnectionLost { what: self.what.clone() }),
                length => filled += length,
            }
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + self.stall);
            if filled < bytes.len() && Instant::now() > deadline {
                return Err(AdbError::Stalled { what: self.what.clone(), seconds: self.stall.as_secs() });
            }
        }
        Ok(())
    }

    /// Writes all of `bytes`.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), AdbError> {
        self.stream.get_mut().write_all(bytes).map_err(|error| self.failed(error))
    }

    /// An error that says that what has arrived makes no sense.
    pub(super) fn nonsense(&self, why: String) -> AdbError {
        AdbError::Protocol { what: self.what.clone(), why }
    }

    fn failed(&self, error: io::Error) -> AdbError {
        let what = self.what.clone();
        match error.kind() {
            _ if is_timeout(&error) => AdbError::Stalled { what, seconds: self.stall.as_secs() },
            _ => AdbError::ConnectionLost { what },
        }
    }
}

/// Whether a read or write has waited for as long as it may. Systems differ in the name of that error.
fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
