//! Serves an output to the Perfetto UI in the user's browser, which fetches it from this process, as it does
//! from Perfetto's own `record_android_trace`.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::http::{HttpRequest, PendingConnections, ReadUntil, SecretNumber};

/// The address that the Perfetto UI may fetch from, by its own policy.
const PORT: u16 = 9001;
const UI: &str = "https://ui.perfetto.dev";
/// How long the browser has until it fetches the file.
const FETCH_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a browser may take for its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a browser may be silent while it takes the file.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause between two checks for a connection.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Why an output was not served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another program listens at the port.
    #[error("--open: the Perfetto UI fetches from port {PORT} alone, which is taken: {0}")]
    PortTaken(#[source] io::Error),
    /// The output is gone.
    #[error("{path}: {source}")]
    File {
        /// The output.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// No browser came.
    #[error("no browser has fetched {path} within {seconds} s")]
    NotFetched {
        /// The output.
        path: String,
        /// The time that was waited, seconds.
        seconds: u64,
    },
    /// The system's error of the listening socket.
    #[error(transparent)]
    Socket(#[from] io::Error),
}

/// A server for one file, which is fetched once.
pub struct OutputServer {
    listener: TcpListener,
    file: PathBuf,
    /// The number that only the browser is given.
    number: SecretNumber,
    /// The file's name, with `_` in place of characters that have a meaning in addresses.
    name: String,
    /// Whether the file is being fetched, or was.
    is_fetched: AtomicBool,
    pending: PendingConnections,
}

impl OutputServer {
    /// Begins to listen at the port from which the Perfetto UI fetches.
    ///
    /// # Errors
    /// [`ServeError::PortTaken`].
    pub fn start(file: &Path) -> Result<OutputServer, ServeError> {
        OutputServer::start_at(PORT, file)
    }

    fn start_at(port: u16, file: &Path) -> Result<OutputServer, ServeError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(ServeError::PortTaken)?;
        let number = SecretNumber::new()?;
        Ok(OutputServer {
            listener,
            file: file.to_owned(),
            number,
            name: url_name(file),
            is_fetched: AtomicBool::new(false),
            pending: PendingConnections::default(),
        })
    }

    /// The address at which the Perfetto UI shows the file.
    pub fn address(&self) -> String {
        format!("{UI}/#!/?url=http://127.0.0.1:{PORT}/{}/{}", self.number, self.name)
    }

    /// Serves the file until it has been fetched once, or `is_cancelled` becomes true.
    ///
    /// # Errors
    /// [`ServeError`]. A browser that goes away in the middle is no error: it comes back, or the time is
    /// over.
    pub fn serve(&self, is_cancelled: &dyn Fn() -> bool) -> Result<(), ServeError> {
        self.serve_for(FETCH_TIMEOUT, is_cancelled)
    }

    fn serve_for(&self, timeout: Duration, is_cancelled: &dyn Fn() -> bool) -> Result<(), ServeError> {
        let path = || self.file.display().to_string();
        self.listener.set_nonblocking(true)?;
        let deadline = Instant::now() + timeout;
        // Each connection has a thread, so that none that says nothing is in the way of the browser's.
        std::thread::scope(|scope| {
            let (sender, answers) = mpsc::channel();
            let end = loop {
                if is_cancelled() {
                    break Ok(());
                }
                if Instant::now() >= deadline {
                    break Err(ServeError::NotFetched { path: path(), seconds: timeout.as_secs() });
                }
                match self.listener.accept() {
                    Ok((stream, _)) => {
                        let sender = sender.clone();
                        let answer = move || drop(sender.send(self.answer(&stream)));
                        let _ = std::thread::Builder::new().spawn_scoped(scope, answer);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => break Err(error.into()),
                }
                match answers.recv_timeout(POLL_INTERVAL) {
                    Ok(Ok(true)) => break Ok(()),
                    Ok(Err(source)) if source.kind() == io::ErrorKind::NotFound => {
                        break Err(ServeError::File { path: path(), source });
                    }
                    Ok(Err(error)) => log::debug!("browser: {error}"),
                    Ok(Ok(false)) | Err(_) => {}
                }
            };
            self.pending.close_all();
            end
        })
    }

    /// Answers one request. Returns whether it has fetched the whole file.
    fn answer(&self, mut stream: &TcpStream) -> io::Result<bool> {
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(CONNECTION_TIMEOUT))?;
        let pending = self.pending.add(stream)?;
        let request = HttpRequest::read(&mut BufReader::new(ReadUntil::new(stream, REQUEST_TIMEOUT)))?;
        let host = request.field("host").unwrap_or_default();
        log::debug!("browser: a request of {host}");
        if !self.is_asked_for(&request, stream.local_addr()?.port()) {
            stream.write_all(head("404 Not Found", 0).as_bytes())?;
            return Ok(false);
        }
        drop(pending);
        if self.is_fetched.swap(true, Ordering::Relaxed) {
            stream.write_all(head("410 Gone", 0).as_bytes())?;
            return Ok(false);
        }
        let sent = self.send(stream);
        // A browser that has gone away in the middle comes back.
        self.is_fetched.store(sent.is_ok(), Ordering::Relaxed);
        sent.map(|()| true)
    }

    fn send(&self, mut stream: &TcpStream) -> io::Result<()> {
        let mut file = File::open(&self.file)?;
        stream.write_all(head("200 OK", file.metadata()?.len()).as_bytes())?;
        io::copy(&mut file, &mut stream)?;
        stream.flush()
    }

    /// Whether this is a request for the file with its number at this port.
    fn is_asked_for(&self, request: &HttpRequest, port: u16) -> bool {
        let path = request.get_path().and_then(|path| path.strip_prefix('/')?.split_once('/'));
        request.is_to_this_machine(port)
            && path.is_some_and(|(number, name)| self.number.is(number) && name == self.name)
    }
}

/// The head of an answer with a body of this length, bytes.
fn head(status: &str, length: u64) -> String {
    format!(
        "HTTP/1.1 {status}\r\nAccess-Control-Allow-Origin: {UI}\r\nCache-Control: no-cache\r\n\
         Content-Type: application/octet-stream\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )
}

/// The file's name, with `_` in place of characters that have a meaning in addresses.
fn url_name(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn the_browser_gets_the_file_and_nobody_anything_else() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("it's a.pftrace");
        std::fs::write(&file, b"events").unwrap();
        let server = OutputServer::start_at(0, &file).unwrap();
        let name = format!("{}/it_s_a.pftrace", server.number);
        assert_eq!(server.address(), format!("https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/{name}"));
        // Connections that say nothing keep no place.
        let _idle: Vec<TcpStream> =
            (0..40).map(|_| TcpStream::connect(server.listener.local_addr().unwrap()).unwrap()).collect();
        let address = server.listener.local_addr().unwrap();
        let serving = std::thread::spawn(move || server.serve_for(Duration::from_secs(60), &|| false));
        let ask = |path: &str, host: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: {UI}\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        let host = address.to_string();
        assert!(ask("/etc/passwd", &host).starts_with("HTTP/1.1 404"));
        for guess in ["it_s_a.pftrace", "00000000000000000000000000000000/it_s_a.pftrace"] {
            assert!(ask(&format!("/{guess}"), &host).starts_with("HTTP/1.1 404"), "{guess}");
        }
        assert!(ask(&format!("/{name}"), "evil.example:80").starts_with("HTTP/1.1 404"));
        let answer = ask(&format!("/{name}"), &host);
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\nevents"), "{answer}");
        assert!(answer.contains(&format!("Access-Control-Allow-Origin: {UI}\r\n")), "{answer}");
        serving.join().unwrap().unwrap();
    }

    #[test]
    fn a_browser_that_never_comes_is_told() {
        let server = OutputServer::start_at(0, Path::new("x.pftrace")).unwrap();
        let error = server.serve_for(Duration::ZERO, &|| false).unwrap_err();
        assert_eq!(error.to_string(), "no browser has fetched x.pftrace within 0 s");
        server.serve_for(Duration::ZERO, &|| true).unwrap();
    }

    #[test]
    fn a_request_is_for_the_file_at_this_machines_own_name_alone() {
        let server = OutputServer::start_at(0, Path::new("x.dat")).unwrap();
        let number = server.number.to_string();
        let is_asked_for = |text: &str, port| {
            let text = text.replace("NUMBER", &number);
            server.is_asked_for(&HttpRequest::read(&mut text.as_bytes()).unwrap(), port)
        };
        let whole = "GET /NUMBER/x.dat HTTP/1.1\r\nhOST:  localhost:9001 \r\nX: y\r\n\r\nbody";
        assert!(is_asked_for(whole, 9001));
        assert!(!is_asked_for(whole, 9002) && !is_asked_for(&whole.replace("x.dat", "y.dat"), 9001));
        assert!(!is_asked_for(&whole.replace("NUMBER/", ""), 9001), "without the number");
        assert!(!is_asked_for("GET /NUMBER/x.dat HTTP/1.1\r\n\r\n", 9001), "without a host");
        assert!(!is_asked_for("POST /NUMBER/x.dat HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n", 1));
    }

    #[test]
    fn a_file_that_is_gone_ends_the_serving() {
        let server = OutputServer::start_at(0, Path::new("missing/x.pftrace")).unwrap();
        let address = server.listener.local_addr().unwrap();
        let number = server.number.to_string();
        let serving = std::thread::spawn(move || server.serve_for(Duration::from_secs(60), &|| false));
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET /{number}/x.pftrace HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
        let error = serving.join().unwrap().unwrap_err().to_string();
        assert!(error.starts_with("missing/x.pftrace: "), "{error}");
    }
}
