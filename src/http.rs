//! The request that a browser makes of a server of this program, which listens on this machine alone.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The longest head of a request that is read, bytes.
const MAX_REQUEST_BYTES: u64 = 16 << 10;

/// The head of a browser's request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HttpRequest {
    /// The first line: `GET /x.pftrace HTTP/1.1`.
    pub line: String,
    /// The names of the fields behind it, in small letters, with their values.
    fields: Vec<(String, String)>,
}

impl HttpRequest {
    /// Reads a request up to the empty line behind its fields, and nothing behind that line.
    ///
    /// # Errors
    /// The errors of reading. `InvalidData`: the head is longer than 16 KiB. `UnexpectedEof`: it has no end.
    pub fn read(from: &mut impl BufRead) -> io::Result<HttpRequest> {
        let mut from = from.take(MAX_REQUEST_BYTES);
        let mut request = HttpRequest::default();
        from.read_line(&mut request.line)?;
        loop {
            let mut line = String::new();
            from.read_line(&mut line)?;
            if !line.ends_with('\n') {
                let is_long = from.limit() == 0;
                let kind = if is_long { io::ErrorKind::InvalidData } else { io::ErrorKind::UnexpectedEof };
                return Err(kind.into());
            }
            if line.trim().is_empty() {
                return Ok(request);
            }
            if let Some((field, value)) = line.split_once(':') {
                request.fields.push((field.to_ascii_lowercase(), value.trim().to_owned()));
            }
        }
    }

    /// The value of a field, whose name is in small letters. `None` where it is missing, or is there twice:
    /// two readers could take different ones for the value.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.fields.iter().filter(|(field, _)| field == name);
        let (_, value) = values.next()?;
        values.next().is_none().then_some(value)
    }

    /// Whether a field of this name is there, whatever its value.
    pub fn has_field(&self, name: &str) -> bool {
        self.fields.iter().any(|(field, _)| field == name)
    }

    /// The path that a GET asks for; `None` for another method, or for no request.
    pub fn get_path(&self) -> Option<&str> {
        let words: Vec<&str> = self.line.split_whitespace().collect();
        match words[..] {
            ["GET", path, version] if version.starts_with("HTTP/1.") => Some(path),
            _ => None,
        }
    }

    /// Whether the browser calls this machine by a name of its own. Any other name could be one that a
    /// stranger's page has given it, so that the page may read the answer.
    pub fn is_to_this_machine(&self, port: u16) -> bool {
        self.field("host").is_some_and(|host| own_names(port).iter().any(|own| own == host))
    }

    /// Whether a page of this server makes the request. Without a field `Origin` it is `if_missing`: browsers
    /// leave it out where somebody opens a page.
    pub fn is_from_this_machine(&self, port: u16, if_missing: bool) -> bool {
        if !self.has_field("origin") {
            return if_missing;
        }
        let origin = self.field("origin").and_then(|origin| origin.strip_prefix("http://"));
        origin.is_some_and(|origin| own_names(port).iter().any(|own| own == origin))
    }
}

/// The names by which this machine calls its own port.
fn own_names(port: u16) -> [String; 2] {
    [format!("127.0.0.1:{port}"), format!("localhost:{port}")]
}

/// A random number of 128 bits in an address, without which a server answers nothing.
#[derive(Debug)]
pub struct SecretNumber(String);

impl SecretNumber {
    /// A new number.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn new() -> io::Result<SecretNumber> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        Ok(SecretNumber(data_encoding::HEXLOWER.encode(&random)))
    }

    /// Whether a text is the number. The time that this takes tells nothing of where they differ.
    pub fn is(&self, given: &str) -> bool {
        let bytes = given.bytes().zip(self.0.bytes());
        given.len() == self.0.len() && bytes.fold(0, |all, (a, b)| all | (a ^ b)) == 0
    }
}

impl fmt::Display for SecretNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// So many connections may be open that have made no request.
const MAX_PENDING: usize = 16;

/// Connections that have not shown the secret number yet. Any user of the machine can make some. Where there
/// are too many, the oldest is closed: nobody who says nothing keeps a browser away.
#[derive(Debug, Default)]
pub struct PendingConnections(Mutex<PendingList>);

#[derive(Debug, Default)]
struct PendingList {
    last: u64,
    connections: VecDeque<(u64, TcpStream)>,
}

/// The place of one connection, until this is dropped.
#[derive(Debug)]
pub struct PendingPlace<'a> {
    all: &'a PendingConnections,
    number: u64,
}

impl PendingConnections {
    fn lock(&self) -> MutexGuard<'_, PendingList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a connection a place.
    ///
    /// # Errors
    /// The system's.
    pub fn add(&self, stream: &TcpStream) -> io::Result<PendingPlace<'_>> {
        let stream = stream.try_clone()?;
        let mut list = self.lock();
        if list.connections.len() >= MAX_PENDING
            && let Some((_, oldest)) = list.connections.pop_front()
        {
            let _ = oldest.shutdown(Shutdown::Both);
        }
        list.last += 1;
        let number = list.last;
        list.connections.push_back((number, stream));
        Ok(PendingPlace { all: self, number })
    }

    /// Closes all connections that have a place.
    pub fn close_all(&self) {
        self.lock().connections.iter().for_each(|(_, stream)| drop(stream.shutdown(Shutdown::Both)));
    }
}

impl Drop for PendingPlace<'_> {
    fn drop(&mut self) {
        self.all.lock().connections.retain(|(number, _)| *number != self.number);
    }
}

/// A connection that is read until a moment, however little comes at a time.
pub struct ReadUntil<'a> {
    stream: &'a TcpStream,
    end: Instant,
}

impl<'a> ReadUntil<'a> {
    /// Reads for this time from now on.
    pub fn new(stream: &'a TcpStream, time: Duration) -> ReadUntil<'a> {
        ReadUntil { stream, end: Instant::now() + time }
    }
}

impl Read for ReadUntil<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> HttpRequest {
        HttpRequest::read(&mut text.as_bytes()).unwrap_or_else(|error| panic!("{text:?}: {error}"))
    }

    #[test]
    fn a_request_is_read_up_to_its_empty_line() {
        let mut bytes = "GET /x.dat HTTP/1.1\r\nhOST:  localhost:9001 \r\nX: y\r\n\r\nbody".as_bytes();
        let whole = HttpRequest::read(&mut bytes).unwrap();
        assert_eq!((whole.get_path(), whole.field("host")), (Some("/x.dat"), Some("localhost:9001")));
        assert_eq!(bytes, b"body");
        assert_eq!(request("POST /x HTTP/1.1\r\n\r\n").get_path(), None);
        assert_eq!(request("GET /x y HTTP/1.1\r\n\r\n").get_path(), None);
    }

    #[test]
    fn a_request_is_for_this_machines_own_name_alone() {
        let is_ours =
            |fields: &str, port| request(&format!("GET / HTTP/1.1\r\n{fields}\r\n")).is_to_this_machine(port);
        assert!(is_ours("Host: 127.0.0.1:9001\r\n", 9001) && is_ours("Host: localhost:9001\r\n", 9001));
        assert!(!is_ours("Host: localhost:9001\r\n", 9002) && !is_ours("", 9001));
        assert!(!is_ours("Host: evil.example:9001\r\n", 9001) && !is_ours("Host: localhost\r\n", 9001));
        assert!(!is_ours("Host: localhost:1\r\nHost: evil.example\r\n", 1), "twice");
    }

    #[test]
    fn a_request_comes_from_a_page_of_this_server_alone() {
        let is_ours = |origin: &str| {
            let request = request(&format!("GET / HTTP/1.1\r\nOrigin: {origin}\r\n\r\n"));
            request.is_from_this_machine(80, true)
        };
        assert!(is_ours("http://127.0.0.1:80") && is_ours("http://localhost:80"));
        for other in
            ["null", "", "https://127.0.0.1:80", "http://127.0.0.1:81", "http://127.0.0.1:80.evil.example"]
        {
            assert!(!is_ours(other), "{other}");
        }
        let without = request("GET / HTTP/1.1\r\n\r\n");
        assert!(without.is_from_this_machine(80, true) && !without.is_from_this_machine(80, false));
    }

    #[test]
    fn a_request_that_is_cut_or_too_long_is_an_error() {
        let kind = |text: &str| HttpRequest::read(&mut text.as_bytes()).unwrap_err().kind();
        for cut in ["", "GET", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: x"] {
            assert_eq!(kind(cut), io::ErrorKind::UnexpectedEof, "{cut:?}");
        }
        assert_eq!(kind(&"x".repeat(1 << 20)), io::ErrorKind::InvalidData);
        assert_eq!(
            kind(&format!("GET / HTTP/1.1\r\n{}", "A: b\r\n".repeat(9000))),
            io::ErrorKind::InvalidData
        );
    }
}
