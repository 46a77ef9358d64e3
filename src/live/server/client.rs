//! One browser that follows a recording: the messages that wait for it, and the thread that sends them.

use std::collections::VecDeque;
use std::io;
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Error, Message, Utf8Bytes, WebSocket};

use super::command::LiveCommand;
use super::host::LiveHost;

/// The most bytes of messages that wait for one browser. Those that come while it is full are dropped.
const MAX_WAITING_BYTES: usize = 16 << 20;
/// The longest message that is taken of a browser, bytes. One that is longer than a command is answered with
/// an error; one that is longer than this ends the connection.
const MAX_RECEIVED_BYTES: usize = 64 << 10;
/// How long the thread waits for a command before it looks for messages to send.
const READ_WAIT: Duration = Duration::from_millis(10);
/// How long one write may wait for a browser that reads nothing, before the thread looks for the end.
const WRITE_WAIT: Duration = Duration::from_millis(200);

/// A message to browsers.
#[derive(Debug, Clone)]
pub(super) enum Outgoing {
    /// A batch of tracks.
    Batch(Arc<[u8]>),
    /// A JSON object.
    Text(Arc<str>),
}

impl Outgoing {
    /// The length of what is sent, bytes.
    pub(super) fn len(&self) -> usize {
        match self {
            Outgoing::Batch(bytes) => bytes.len(),
            Outgoing::Text(text) => text.len(),
        }
    }
}

/// The messages that wait for one browser.
#[derive(Debug, Default)]
pub(super) struct ClientQueue(Mutex<WaitingMessages>);

#[derive(Debug, Default)]
struct WaitingMessages {
    messages: VecDeque<Outgoing>,
    bytes: usize,
    /// Batches that were dropped since the browser was told of some.
    skipped: u64,
    is_closed: bool,
}

impl ClientQueue {
    fn lock(&self) -> std::sync::MutexGuard<'_, WaitingMessages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message, or drops it where too much waits.
    pub(super) fn push(&self, message: Outgoing) {
        let mut waiting = self.lock();
        if waiting.bytes + message.len() > MAX_WAITING_BYTES {
            waiting.skipped += u64::from(matches!(message, Outgoing::Batch(_)));
            return;
        }
        waiting.bytes += message.len();
        waiting.messages.push_back(message);
    }

    /// Has the thread end when everything is sent that waits.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
    }

    /// The next message. Before the first one behind a gap comes the number of batches that are missing.
    fn pop(&self) -> Option<Outgoing> {
        let mut waiting = self.lock();
        if waiting.messages.is_empty() && waiting.skipped > 0 {
            let batches = std::mem::take(&mut waiting.skipped);
            let text = serde_json::json!({ "kind": "skipped", "batches": batches }).to_string();
            return Some(Outgoing::Text(text.into()));
        }
        let message = waiting.messages.pop_front()?;
        waiting.bytes -= message.len();
        Some(message)
    }

    fn is_closed(&self) -> bool {
        let waiting = self.lock();
        waiting.is_closed && waiting.messages.is_empty()
    }
}

/// Sends what waits in `queue`, and hands the commands of the browser on, until either side ends. A browser
/// that reads nothing is held until `is_over`.
pub(super) fn serve(
    stream: TcpStream,
    queue: &ClientQueue,
    host: &dyn LiveHost,
    is_over: &dyn Fn() -> bool,
) -> Result<(), Error> {
    stream.set_read_timeout(Some(READ_WAIT))?;
    stream.set_write_timeout(Some(WRITE_WAIT))?;
    stream.set_nodelay(true)?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_RECEIVED_BYTES))
        .max_frame_size(Some(MAX_RECEIVED_BYTES))
        .read_buffer_size(8 << 10)
        .write_buffer_size(0);
    let mut socket = WebSocket::from_raw_socket(stream, Role::Server, Some(config));
    let mut has_rest = false;
    loop {
        if is_over() {
            return Ok(());
        }
        if has_rest {
            has_rest = waits(socket.flush())?;
        }
        while !has_rest {
            let message = match queue.pop() {
                Some(Outgoing::Batch(bytes)) => Message::Binary(tungstenite::Bytes::from_owner(bytes)),
                Some(Outgoing::Text(text)) => Message::Text(Utf8Bytes::from(&*text)),
                None => break,
            };
            // A message that is taken in part is sent to its end by `flush`.
            has_rest = waits(socket.write(message))? || waits(socket.flush())?;
        }
        if queue.is_closed() && !has_rest {
            let _ = socket.close(None);
            let _ = socket.flush();
            return Ok(());
        }
        match socket.read() {
            Ok(Message::Text(text)) => match LiveCommand::parse(&text) {
                Ok(command) => host.command(command),
                Err(error) => {
                    let text = serde_json::json!({ "kind": "error", "text": error.to_string() });
                    queue.push(Outgoing::Text(text.to_string().into()));
                }
            },
            Ok(Message::Close(_)) => {
                let _ = socket.flush();
                return Ok(());
            }
            Ok(_) => {}
            Err(Error::ConnectionClosed | Error::AlreadyClosed) => return Ok(()),
            Err(error) => {
                waits(Err(error))?;
            }
        }
    }
}

/// Whether the browser, or its network, is to be waited for.
fn waits(done: Result<(), Error>) -> Result<bool, Error> {
    match done {
        Ok(()) => Ok(false),
        Err(Error::Io(error))
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
        {
            Ok(true)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_a_browser_is_bounded_and_what_is_dropped_is_told() {
        let queue = ClientQueue::default();
        let batch: Arc<[u8]> = vec![0; 5 << 20].into();
        for _ in 0..10 {
            queue.push(Outgoing::Batch(batch.clone()));
        }
        assert!(queue.lock().bytes <= MAX_WAITING_BYTES);
        for _ in 0..3 {
            assert!(matches!(queue.pop(), Some(Outgoing::Batch(_))));
        }
        let Some(Outgoing::Text(text)) = queue.pop() else { panic!("{queue:?}") };
        assert_eq!(&*text, r#"{"batches":7,"kind":"skipped"}"#);
        assert!(queue.pop().is_none() && queue.lock().bytes == 0);
        queue.push(Outgoing::Batch(batch));
        assert!(matches!(queue.pop(), Some(Outgoing::Batch(_))), "it goes on");
    }
}
