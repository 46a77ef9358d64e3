//! Serves a recording that runs to browsers on this machine: the page, the WebSocket with its batches, and
//! what is kept as a report page (docs/live.md).
//!
//! Other programs' pages run in the same browser, and other users on the same machine. So the server listens
//! on 127.0.0.1 alone, and answers only requests whose path begins with a random number of 128 bits, that
//! call this machine by its own name (a stranger's name for it would let the stranger's page read the answer:
//! DNS rebinding), and that no other origin has made. No answer permits another origin to read it.

mod client;
mod command;
mod host;

use std::collections::VecDeque;
use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tungstenite::handshake::derive_accept_key;

use self::client::{ClientQueue, Outgoing};
use crate::http::{HttpRequest, PendingConnections, ReadUntil, SecretNumber};

pub use self::command::{LiveCommand, SavedFormat};
pub use self::host::LiveHost;

/// The most browsers that follow a recording at the same time.
const MAX_CLIENTS: usize = 8;
/// The most connections at the same time that have shown the number, those of browsers that follow the
/// recording among them.
const MAX_CONNECTIONS: usize = 24;
/// How long a browser may take for its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a browser may take for each part of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause between two looks for a connection.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The most bytes of batches that are kept for browsers that come late. It is less than what may wait for
/// one of them.
const MAX_HISTORY_BYTES: usize = 12 << 20;

/// A server that browsers follow a recording with. It ends when it is dropped.
pub struct LiveServer {
    shared: Arc<SharedServer>,
    accepting: Option<std::thread::JoinHandle<()>>,
}

struct SharedServer {
    port: u16,
    token: SecretNumber,
    keep: Duration,
    is_over: AtomicBool,
    /// The connections that have shown the number.
    connections: AtomicUsize,
    pending: PendingConnections,
    state: Mutex<ServerState>,
}

#[derive(Default)]
struct ServerState {
    clients: Vec<Arc<ClientQueue>>,
    /// The newest message of each kind of which only the newest counts, in the order of the kinds.
    newest: Vec<(String, Arc<str>)>,
    /// The messages that browsers that come late have missed, the oldest first.
    history: VecDeque<(Instant, Outgoing)>,
    history_bytes: usize,
}

/// The kinds of messages that a browser needs, however late it comes, and of which only the newest counts.
const LASTING_KINDS: [&str; 2] = ["hello", "state"];
/// The kinds of messages that nobody needs later.
const PASSING_KINDS: [&str; 4] = ["numbers", "saved", "error", "categories"];

impl SharedServer {
    fn lock(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

impl LiveServer {
    /// Begins to listen at a port of this machine; 0 takes any that is free. Browsers that come late get what
    /// was sent in the last `keep`.
    ///
    /// # Errors
    /// The system's.
    pub fn start(port: u16, keep: Duration, host: Arc<dyn LiveHost>) -> io::Result<LiveServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let shared = Arc::new(SharedServer {
            port: listener.local_addr()?.port(),
            token: SecretNumber::new()?,
            keep,
            is_over: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            pending: PendingConnections::default(),
            state: Mutex::default(),
        });
        let accepting = {
            let shared = shared.clone();
            std::thread::Builder::new()
                .name("live-server".to_owned())
                .spawn(move || accept(&listener, &shared, &host))?
        };
        Ok(LiveServer { shared, accepting: Some(accepting) })
    }

    /// The address of the page.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.shared.port, self.shared.token)
    }

    /// Sends a batch to all browsers.
    pub fn send_batch(&self, batch: Arc<[u8]>) {
        self.send(Outgoing::Batch(batch), true);
    }

    /// Sends a JSON object with a `kind` to all browsers.
    pub fn send_text(&self, text: &str) {
        let kind = serde_json::from_str::<serde_json::Value>(text).ok();
        let kind = kind.and_then(|value| Some(value.get("kind")?.as_str()?.to_owned())).unwrap_or_default();
        let text: Arc<str> = text.into();
        if LASTING_KINDS.contains(&kind.as_str()) {
            let mut state = self.shared.lock();
            state.newest.retain(|(other, _)| *other != kind);
            state.newest.push((kind.clone(), text.clone()));
            state.newest.sort();
        }
        let is_later_needed =
            !LASTING_KINDS.contains(&kind.as_str()) && !PASSING_KINDS.contains(&kind.as_str());
        self.send(Outgoing::Text(text), is_later_needed);
    }

    fn send(&self, message: Outgoing, is_later_needed: bool) {
        let mut state = self.shared.lock();
        state.clients.iter().for_each(|client| client.push(message.clone()));
        if !is_later_needed {
            return;
        }
        let now = Instant::now();
        state.history_bytes += message.len();
        state.history.push_back((now, message));
        while let Some((sent, oldest)) = state.history.front()
            && (state.history_bytes > MAX_HISTORY_BYTES || now.duration_since(*sent) > self.shared.keep)
        {
            state.history_bytes -= oldest.len();
            state.history.pop_front();
        }
    }

    /// The number of browsers that follow the recording.
    pub fn clients(&self) -> usize {
        self.shared.lock().clients.len()
    }

    /// Ends the server when the browsers have got what waits for them, or after `timeout`.
    pub fn finish(self, timeout: Duration) {
        self.shared.lock().clients.iter().for_each(|client| client.close());
        let deadline = Instant::now() + timeout;
        while self.clients() > 0 && Instant::now() < deadline {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for LiveServer {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

/// Takes connections until the server is over, a thread for each.
fn accept(listener: &TcpListener, shared: &Arc<SharedServer>, host: &Arc<dyn LiveHost>) {
    while !shared.is_over() {
        let Ok((stream, _)) = listener.accept() else {
            std::thread::sleep(POLL_INTERVAL);
            continue;
        };
        let shared = shared.clone();
        let host = host.clone();
        // Where no thread can be started, the connection is closed.
        let _ = std::thread::Builder::new().name("live-client".to_owned()).spawn(move || {
            if let Err(error) = serve_one(stream, &shared, host.as_ref()) {
                log::debug!("browser: {error}");
            }
        });
    }
}

/// The place of a connection that has shown the number.
struct ConnectionPlace<'a>(&'a AtomicUsize);

impl<'a> ConnectionPlace<'a> {
    /// `None` where all places are taken.
    fn take(connections: &'a AtomicUsize) -> Option<ConnectionPlace<'a>> {
        let place = ConnectionPlace(connections);
        (connections.fetch_add(1, Ordering::Relaxed) < MAX_CONNECTIONS).then_some(place)
    }
}

impl Drop for ConnectionPlace<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The page as `web/` builds it.
const PAGE: &str = include_str!("live.html");

/// The page, which connects to the server at `port` of this machine, and to nothing else.
fn page(port: u16) -> String {
    let policy =
        format!("default-src 'none'; connect-src 'self' ws://127.0.0.1:{port} ws://localhost:{port};");
    PAGE.replacen("default-src 'none';", &policy, 1)
}

/// The use of an address below the number.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Page,
    Live,
    Kept { from_ns: Option<u64>, to_ns: Option<u64> },
}

/// Reads the part of a path behind the number.
fn asked(path: &str) -> Option<Asked> {
    match path {
        "" => return Some(Asked::Page),
        "live" => return Some(Asked::Live),
        _ => {}
    }
    let query = path.strip_prefix("kept")?;
    let mut kept = (None, None);
    if let Some(query) = query.strip_prefix('?') {
        for part in query.split('&') {
            let (name, value) = part.split_once('=')?;
            match name {
                "from" => kept.0 = Some(value.parse().ok()?),
                "to" => kept.1 = Some(value.parse().ok()?),
                _ => return None,
            }
        }
    } else if !query.is_empty() {
        return None;
    }
    Some(Asked::Kept { from_ns: kept.0, to_ns: kept.1 })
}

/// Answers the request of one connection.
fn serve_one(
    stream: TcpStream,
    shared: &SharedServer,
    host: &dyn LiveHost,
) -> Result<(), tungstenite::Error> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    let pending = shared.pending.add(&stream)?;
    let text = |status, text: &str| answer(&stream, status, "text/plain; charset=utf-8", text.as_bytes());
    // A browser sends nothing behind its request before it has the answer.
    let request = match HttpRequest::read(&mut BufReader::new(ReadUntil::new(&stream, REQUEST_TIMEOUT))) {
        Ok(request) => request,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Ok(text("431 Request Header Fields Too Large", "the request is too long\n")?);
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock) => {
            return Ok(text("408 Request Timeout", "the request did not come to its end\n")?);
        }
        Err(error) => return Err(error.into()),
    };
    if !request.is_to_this_machine(shared.port) {
        return Ok(text("403 Forbidden", "this server answers to 127.0.0.1 and localhost alone\n")?);
    }
    if !request.is_from_this_machine(shared.port, true) {
        return Ok(text("403 Forbidden", "another page has made this request\n")?);
    }
    let Some(path) = request.get_path() else {
        return Ok(text("405 Method Not Allowed", "this server answers GET alone\n")?);
    };
    let below = path.strip_prefix('/').and_then(|path| path.split_once('/'));
    let below = below.filter(|(token, _)| shared.token.is(token));
    let Some(asked) = below.and_then(|(_, below)| asked(below)) else {
        return Ok(text("404 Not Found", "nothing is here\n")?);
    };
    drop(pending);
    let Some(_place) = ConnectionPlace::take(&shared.connections) else {
        return Ok(text("503 Service Unavailable", "too many connections\n")?);
    };
    // Only the page may be opened from elsewhere, with the number that nobody else knows.
    let site = request.field("sec-fetch-site").unwrap_or("same-origin");
    if asked != Asked::Page && !matches!(site, "same-origin" | "none") {
        return Ok(text("403 Forbidden", "another page has made this request\n")?);
    }
    match asked {
        Asked::Page => {
            let page = page(shared.port);
            Ok(answer(&stream, "200 OK", "text/html; charset=utf-8", page.as_bytes())?)
        }
        Asked::Kept { from_ns, to_ns } => match host.kept_page(from_ns, to_ns) {
            Ok(page) => Ok(answer(&stream, "200 OK", "text/html; charset=utf-8", &page)?),
            Err(error) => Ok(text("503 Service Unavailable", &format!("{error}\n"))?),
        },
        Asked::Live => upgrade(stream, &request, shared, host),
    }
}

/// Makes a connection a WebSocket, and serves it.
fn upgrade(
    stream: TcpStream,
    request: &HttpRequest,
    shared: &SharedServer,
    host: &dyn LiveHost,
) -> Result<(), tungstenite::Error> {
    let text = |status, text: &str| answer(&stream, status, "text/plain; charset=utf-8", text.as_bytes());
    let has_word = |name: &str, word: &str| {
        let words = request.field(name).unwrap_or_default().split(',');
        words.map(str::trim).any(|other| other.eq_ignore_ascii_case(word))
    };
    // Browsers send the origin of every WebSocket.
    if !request.is_from_this_machine(shared.port, false) {
        return Ok(text("403 Forbidden", "this connection is for the page of this server alone\n")?);
    }
    let is_socket = has_word("upgrade", "websocket") && has_word("connection", "upgrade");
    let key = request.field("sec-websocket-key").filter(|key| key.len() == 24);
    let (true, Some(key), Some("13")) = (is_socket, key, request.field("sec-websocket-version")) else {
        return Ok(text("400 Bad Request", "this address is for a WebSocket of version 13\n")?);
    };
    let queue = Arc::new(ClientQueue::default());
    {
        let mut state = shared.lock();
        if state.clients.len() >= MAX_CLIENTS {
            drop(state);
            let full = format!("{MAX_CLIENTS} browsers follow the recording already\n");
            return Ok(text("503 Service Unavailable", &full)?);
        }
        state.newest.iter().for_each(|(_, text)| queue.push(Outgoing::Text(text.clone())));
        state.history.iter().for_each(|(_, message)| queue.push(message.clone()));
        state.clients.push(queue.clone());
    }
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\n\r\n",
        derive_accept_key(key.as_bytes())
    );
    let sent = (&stream).write_all(head.as_bytes());
    let served = sent
        .map_err(tungstenite::Error::from)
        .and_then(|()| client::serve(stream, &queue, host, &|| shared.is_over()));
    shared.lock().clients.retain(|client| !Arc::ptr_eq(client, &queue));
    served
}

/// Sends an answer that no other origin may read, nobody stores, and whose address nobody is told.
fn answer(mut stream: &TcpStream, status: &str, kind: &str, body: &[u8]) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n\
         X-Frame-Options: DENY\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    stream.flush()
}

#[cfg(test)]
mod tests;
