//! A recording that is shown in browsers while it runs: its stream comes in, batches go out, and the commands
//! of the pages are carried out.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::occurrences::{capture_of_occurrence, write_occurrence};
use super::request::LiveRequest;
use crate::desk::error::DeskError;
use crate::desk::output_names::numbered;
use crate::live::{
    KeptError, Live, LiveCommand, LiveHost, LiveMessage, LiveOptions, LiveServer, Occurrence, SavedFormat,
};

/// Time between two batches.
const BATCH_INTERVAL: Duration = Duration::from_millis(100);
/// A recorder that sends nothing for so long is told to be gone, until it sends again.
const SILENT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long browsers have at the end to take what they were sent.
const LAST_MESSAGES_TIMEOUT: Duration = Duration::from_secs(2);
/// Time between two looks for the end while no command comes.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The acts of a page on the recording.
pub(super) trait LiveControls: Sync {
    /// The categories that can be switched: objects with `name`, `description` and `on`.
    fn categories(&self) -> Vec<Value> {
        Vec::new()
    }

    /// The names of the commands that work here.
    fn can(&self) -> Vec<&'static str>;

    /// Writes a marker into the recording.
    fn mark(&self, name: &str) -> Result<(), DeskError>;

    /// Switches categories.
    fn switch(&self, on: &[String], off: &[String]) -> Result<(), DeskError>;
}

/// A recording and its server.
pub(super) struct LiveView<'r> {
    request: &'r LiveRequest,
    /// The path of saved files, without the number that makes it free.
    output: PathBuf,
    serial: String,
    live: Arc<Mutex<Live>>,
    server: LiveServer,
    commands: Mutex<Receiver<LiveCommand>>,
    /// The time of the last bytes, and whether the pages were told of a silence since then.
    arrival: Mutex<Arrival>,
    occurrences: Mutex<Vec<Occurrence>>,
    written: Mutex<Vec<PathBuf>>,
    gaps: Mutex<u64>,
    wants_end: AtomicBool,
    is_over: AtomicBool,
}

struct Arrival {
    last: Instant,
    state: &'static str,
    clock: Option<&'static str>,
}

/// The server's way to the recording.
struct ViewHost {
    live: Arc<Mutex<Live>>,
    commands: Mutex<Sender<LiveCommand>>,
    pages: SharedPages,
}

/// For so long after a page was begun, whoever asks for the same one gets it.
const SHARED_FOR: Duration = Duration::from_secs(2);

/// The pages of the kept part. One is made at a time, and those who ask for the same part meanwhile share it.
#[derive(Default)]
struct SharedPages(Mutex<Option<SharedPage>>);

/// Times of the session between which the kept part is shown, ns; without one, from its begin or to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
struct KeptPart {
    from_ns: Option<u64>,
    to_ns: Option<u64>,
}

/// The page that was made last.
struct SharedPage {
    part: KeptPart,
    begun: Instant,
    page: Vec<u8>,
}

impl SharedPages {
    fn get(
        &self,
        part: KeptPart,
        make: impl FnOnce() -> Result<Vec<u8>, KeptError>,
    ) -> Result<Vec<u8>, KeptError> {
        let asked = Instant::now();
        let mut last = lock(&self.0);
        let is_fresh = |last: &SharedPage| last.part == part && last.begun + SHARED_FOR >= asked;
        if let Some(last) = last.as_ref().filter(|last| is_fresh(last)) {
            return Ok(last.page.clone());
        }
        *last = None;
        let begun = Instant::now();
        let page = make()?;
        *last = Some(SharedPage { part, begun, page: page.clone() });
        Ok(page)
    }
}

impl ViewHost {
    fn make_page(&self, from_ns: Option<u64>, to_ns: Option<u64>) -> Result<Vec<u8>, KeptError> {
        let kept = lock(&self.live).kept();
        let kept = match (from_ns, to_ns) {
            (None, None) => kept,
            (from, to) => kept.between(from.unwrap_or(0), to.unwrap_or(u64::MAX)),
        };
        kept.page()
    }
}

impl LiveHost for ViewHost {
    fn kept_page(&self, from_ns: Option<u64>, to_ns: Option<u64>) -> Result<Vec<u8>, KeptError> {
        self.pages.get(KeptPart { from_ns, to_ns }, || self.make_page(from_ns, to_ns))
    }

    fn command(&self, command: LiveCommand) {
        let _ = lock(&self.commands).send(command);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'r> LiveView<'r> {
    /// Begins to serve a recording of which nothing has come yet.
    pub(super) fn start(
        request: &'r LiveRequest,
        output: &Path,
        serial: &str,
    ) -> Result<LiveView<'r>, DeskError> {
        let live = Live::new(LiveOptions {
            keep: request.keep,
            app: request.app.clone(),
            triggers: request.triggers.clone(),
            title: serial.to_owned(),
        });
        let live = Arc::new(Mutex::new(live));
        let (sender, commands) = channel();
        let host = Arc::new(ViewHost {
            live: live.clone(),
            commands: Mutex::new(sender),
            pages: SharedPages::default(),
        });
        let server = LiveServer::start(request.port, request.keep, host).map_err(|source| {
            DeskError::LocalFile { path: format!("port {} of this machine", request.port), source }
        })?;
        let arrival = Arrival { last: Instant::now(), state: "waiting", clock: None };
        let view = LiveView {
            request,
            output: request.output_dir.join(output),
            serial: serial.to_owned(),
            live,
            server,
            commands: Mutex::new(commands),
            arrival: Mutex::new(arrival),
            occurrences: Mutex::default(),
            written: Mutex::default(),
            gaps: Mutex::default(),
            wants_end: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        };
        view.tell_state("waiting", "the recording begins");
        Ok(view)
    }

    /// The address of the page.
    pub(super) fn address(&self) -> String {
        self.server.address()
    }

    /// Whether a page or a condition has ended the recording.
    pub(super) fn wants_end(&self) -> bool {
        self.wants_end.load(Ordering::Relaxed)
    }

    /// The files that were written.
    pub(super) fn written(&self) -> Vec<PathBuf> {
        lock(&self.written).clone()
    }

    /// Whether the stream has said that it is complete.
    pub(super) fn has_ended(&self) -> bool {
        lock(&self.live).is_ended()
    }

    /// How often the connection was lost.
    pub(super) fn gaps(&self) -> u64 {
        *lock(&self.gaps)
    }

    /// Tells that the connection is lost. The next bytes are the begin of a new stream.
    pub(super) fn lose_connection(&self, text: &str) {
        *lock(&self.gaps) += 1;
        lock(&self.live).connection_lost(text);
        self.tell_state("no-connection", text);
    }

    /// Has `source` write the bytes of the stream, and serves them until it returns.
    pub(super) fn run<T>(&self, controls: &dyn LiveControls, source: impl FnOnce(&mut dyn Write) -> T) -> T {
        self.hello(controls.can(), Vec::new());
        let result = std::thread::scope(|scope| {
            let _end = EndOnDrop(&self.is_over);
            let batches = Builder::new().spawn_scoped(scope, || self.send_batches(controls));
            let commands = Builder::new().spawn_scoped(scope, || {
                self.hello(controls.can(), controls.categories());
                self.carry_out_commands(controls);
            });
            for error in [batches.err(), commands.err()].into_iter().flatten() {
                self.tell_error(&format!("the system gives no thread: {error}"));
            }
            source(&mut Feed(self))
        });
        let messages = lock(&self.live).batch(true);
        self.send(messages);
        self.write_occurrences(true);
        result
    }

    /// Tells the pages that nothing more comes, and lets them take what they were sent.
    pub(super) fn finish(self, text: &str) {
        self.tell_state("ended", text);
        self.server.finish(LAST_MESSAGES_TIMEOUT);
    }

    fn hello(&self, can: Vec<&str>, categories: Vec<Value>) {
        let clock = lock(&self.live).clock();
        lock(&self.arrival).clock = clock;
        let hello = json!({
            "kind": "hello",
            "title": self.request.title.as_deref().unwrap_or(&self.serial),
            "serial": self.serial,
            "app": self.request.app,
            "keep_s": self.request.keep.as_secs(),
            "clock": clock.unwrap_or("boot"),
            "categories": categories,
            "can": can,
        });
        self.server.send_text(&hello.to_string());
    }

    fn tell(&self, message: &Value) {
        self.server.send_text(&message.to_string());
    }

    fn tell_error(&self, text: &str) {
        self.tell(&json!({ "kind": "error", "text": text }));
    }

    fn tell_state(&self, state: &'static str, text: &str) {
        lock(&self.arrival).state = state;
        self.tell(&json!({ "kind": "state", "state": state, "text": text }));
    }

    fn send_batches(&self, controls: &dyn LiveControls) {
        let mut next = Instant::now();
        while !self.is_over.load(Ordering::Relaxed) {
            next += BATCH_INTERVAL;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            next = next.max(Instant::now().checked_sub(BATCH_INTERVAL).unwrap_or(next));
            let messages = lock(&self.live).batch(false);
            self.send(messages);
            let (is_silent, state) = {
                let arrival = lock(&self.arrival);
                (arrival.last.elapsed() > SILENT_TIMEOUT, arrival.state)
            };
            if is_silent && state == "recording" && controls.can().contains(&"mark") {
                self.tell_state("no-connection", "the recorder sends nothing");
            }
        }
    }

    fn send(&self, messages: Vec<LiveMessage>) {
        for message in messages {
            match message {
                LiveMessage::Batch(batch) => self.server.send_batch(batch),
                LiveMessage::Text(text) => self.server.send_text(&text),
                LiveMessage::Triggered(occurrence) => lock(&self.occurrences).push(occurrence),
            }
        }
    }

    /// Carries the commands of the pages out, and writes the files of conditions that were met.
    fn carry_out_commands(&self, controls: &dyn LiveControls) {
        let commands = lock(&self.commands);
        while !self.is_over.load(Ordering::Relaxed) {
            match commands.recv_timeout(POLL_INTERVAL) {
                Ok(LiveCommand::Mark { name }) => self.mark(&name, controls),
                Ok(LiveCommand::Save { format }) => match self.save(format) {
                    Ok(path) => {
                        self.tell(&json!({ "kind": "saved", "path": path.display().to_string() }));
                        lock(&self.written).push(path);
                    }
                    Err(error) => self.tell_error(&error.to_string()),
                },
                Ok(LiveCommand::Categories { on, off }) => {
                    if let Err(error) = controls.switch(&on, &off) {
                        self.tell_error(&error.to_string());
                    }
                    // Also after a refusal: a page may show already what it has asked for.
                    let categories = controls.categories();
                    self.tell(&json!({ "kind": "categories", "categories": categories }));
                    self.hello(controls.can(), categories);
                }
                Ok(LiveCommand::Stop {}) => self.wants_end.store(true, Ordering::Relaxed),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.write_occurrences(false);
            if lock(&self.arrival).clock.is_none() && lock(&self.live).clock().is_some() {
                self.hello(controls.can(), controls.categories());
            }
        }
    }

    /// Has a marker be written. It is told when it has come back.
    fn mark(&self, name: &str, controls: &dyn LiveControls) {
        lock(&self.live).await_mark(name);
        if let Err(error) = controls.mark(name) {
            lock(&self.live).forget_mark(name);
            self.tell_error(&error.to_string());
        }
    }

    /// Writes what is kept into a file whose name is still free.
    fn save(&self, format: SavedFormat) -> Result<PathBuf, DeskError> {
        let kept = lock(&self.live).kept();
        let path = free(&self.output.with_extension(format.ending()));
        kept.write(&path, None)?;
        Ok(path)
    }

    /// Writes a file for each condition that was met, once the time behind it has been recorded.
    fn write_occurrences(&self, is_last: bool) {
        let end = lock(&self.live).end_ns();
        let after = self.request.after.as_nanos() as u64;
        let is_due = |one: &Occurrence| is_last || one.at_ns.saturating_add(after) <= end;
        let due: Vec<Occurrence> = {
            let mut waiting = lock(&self.occurrences);
            let (due, rest) = std::mem::take(&mut *waiting).into_iter().partition(is_due);
            *waiting = rest;
            due
        };
        // It is called ten times a second, and the list of what is kept may be long.
        if due.is_empty() {
            return;
        }
        let kept = lock(&self.live).kept();
        for one in due {
            let path = free(&capture_of_occurrence(&self.output, &one));
            let part = kept.between(
                one.at_ns.saturating_sub(self.request.before.as_nanos() as u64),
                one.at_ns.saturating_add(after),
            );
            match write_occurrence(&part, &one, &path) {
                Ok(()) => {
                    self.tell(&json!({
                        "kind": "triggered", "path": path.display().to_string(), "text": one.text, "at_ns": one.at_ns
                    }));
                    lock(&self.written).push(path);
                }
                Err(error) => self.tell_error(&error.to_string()),
            }
            if self.request.stops {
                self.wants_end.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// The path, or the path with a number, that no file has.
fn free(path: &Path) -> PathBuf {
    numbered(path, 2).find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| path.to_owned())
}

/// Ends the threads of a view, however its source ends.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Hands the bytes of a stream to a view.
struct Feed<'v, 'r>(&'v LiveView<'r>);

impl Write for Feed<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fed = lock(&self.0.live).feed(bytes);
        fed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        let mut arrival = lock(&self.0.arrival);
        arrival.last = Instant::now();
        let is_back = arrival.state != "recording";
        drop(arrival);
        if is_back {
            self.0.tell_state("recording", "");
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::thread;

    use super::*;

    #[test]
    fn pages_are_made_one_at_a_time_and_shared_by_whoever_asks() {
        let pages = SharedPages::default();
        let at_once = AtomicU64::new(0);
        let made = AtomicU64::new(0);
        let make = || {
            assert_eq!(at_once.fetch_add(1, Ordering::SeqCst), 0, "two pages are made at once");
            thread::sleep(Duration::from_millis(5));
            at_once.fetch_sub(1, Ordering::SeqCst);
            made.fetch_add(1, Ordering::SeqCst);
            Ok(b"page".to_vec())
        };
        thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    assert_eq!(pages.get(KeptPart { from_ns: None, to_ns: Some(1) }, make).unwrap(), b"page");
                });
            }
        });
        assert_eq!(made.load(Ordering::SeqCst), 1);
        pages.get(KeptPart { from_ns: None, to_ns: None }, make).unwrap();
        assert_eq!(made.load(Ordering::SeqCst), 2, "another part is another page");
    }
}
