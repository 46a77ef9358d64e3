//! The output of a child, while it runs.

use std::fmt;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::wait::{WAIT_LIMIT, holds_within};

/// The bytes of a pipe, which a thread reads as they come.
pub struct Printed {
    /// The command, for messages.
    what: String,
    bytes: Arc<Mutex<Vec<u8>>>,
    end: Receiver<()>,
}

impl Printed {
    pub(crate) fn read(what: &str, pipe: Option<impl Read + Send + 'static>) -> Printed {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (at_end, end) = channel();
        if let Some(mut pipe) = pipe {
            let shared = Arc::clone(&bytes);
            thread::spawn(move || {
                // Dropped at the end of the pipe, which tells the receiver.
                let _at_end: std::sync::mpsc::Sender<()> = at_end;
                let mut piece = vec![0; 1 << 16];
                loop {
                    match pipe.read(&mut piece) {
                        Ok(0) => break,
                        Ok(len) => lock(&shared).extend_from_slice(&piece[..len]),
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(_) => break,
                    }
                }
            });
        }
        Printed { what: what.to_owned(), bytes, end }
    }

    /// All that was printed until now.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&lock(&self.bytes)).into_owned()
    }

    /// Waits for a line that contains `words`, and returns the first one without its end.
    ///
    /// # Panics
    /// If the output ends without such a line, or none comes within [`WAIT_LIMIT`]. The message has what was
    /// printed.
    #[track_caller]
    pub fn line_with(&self, words: &str) -> String {
        let find = |text: &str| {
            let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
            whole.lines().find(|line| line.contains(words)).map(str::to_owned)
        };
        let mut ended = false;
        let found = holds_within(WAIT_LIMIT, || {
            // In this order: what is printed before the end is there when the end is.
            ended = self.is_complete_by(Instant::now());
            ended || find(&self.text()).is_some()
        });
        let text = self.text();
        match find(&text) {
            Some(line) => line,
            None if found => panic!("{} printed no line with \"{words}\": {text}", self.what),
            None => {
                let seconds = WAIT_LIMIT.as_secs();
                panic!("waited {seconds} s for {} to print \"{words}\". It printed: {text}", self.what)
            }
        }
    }

    /// Waits for the end of the output, and returns all of it.
    ///
    /// # Panics
    /// If it does not end within [`WAIT_LIMIT`].
    #[track_caller]
    pub fn to_end(&self) -> String {
        let seconds = WAIT_LIMIT.as_secs();
        let is_complete = self.is_complete_by(Instant::now() + WAIT_LIMIT);
        assert!(is_complete, "waited {seconds} s for the end of what {} prints: {self}", self.what);
        self.text()
    }

    pub(crate) fn is_complete_by(&self, end: Instant) -> bool {
        let left: Duration = end.saturating_duration_since(Instant::now());
        self.end.recv_timeout(left) == Err(RecvTimeoutError::Disconnected)
    }

    pub(crate) fn take_bytes(self) -> Vec<u8> {
        std::mem::take(&mut lock(&self.bytes))
    }
}

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

fn lock(bytes: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    bytes.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Stdio;

    use crate::Command;

    #[test]
    fn a_line_is_there_as_soon_as_it_is_printed_and_the_end_of_the_output_ends_the_wait() {
        let mut child = Command::new("sh")
            .args(["-c", "echo one; read go; echo two"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let printed = child.collect_stdout();
        assert_eq!(printed.line_with("on"), "one");
        drop(child.stdin.take());
        assert_eq!(printed.line_with("two"), "two");
        assert_eq!(printed.to_end(), "one\ntwo\n");
        let panic = std::thread::spawn(move || printed.line_with("three")).join().unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap();
        assert!(message.contains("printed no line with \"three\": one\ntwo\n"), "{message}");
    }
}
