//! Writing to a pipe, a terminal or a socket whose reader may stall, so that a signal or a deadline ends the
//! wait.
//!
//! A pipe or a terminal is opened once more, through `/proc/self/fd`, because the flag O_NONBLOCK of the
//! descriptor that was inherited would hold for all processes that share it. A socket, which cannot be opened
//! again, is told for each write not to wait. Where a pipe cannot be opened again (another user's) at most
//! [`PIPE_BUF`] bytes are written after each poll that finds room: that much never waits, as long as no other
//! process writes to the same pipe.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, send};

use super::Signals;

/// The most that is written at once where a write may wait, bytes: Linux's PIPE_BUF.
pub(crate) const PIPE_BUF: usize = 4096;
/// The longest wait between two checks of the deadline.
const MAX_POLL: Duration = Duration::from_secs(1);
/// Time between two attempts to open a FIFO that has no reader yet.
const OPEN_INTERVAL: Duration = Duration::from_millis(50);

/// How long writers wait for a reader that takes nothing. The writers of a recording share one value.
#[derive(Debug, Default)]
pub(crate) struct WriteTimeout {
    signals: Option<Signals>,
    /// Whether a signal that has arrived ends a wait. The signal stays to be taken.
    until_signal: Cell<bool>,
    deadline: Cell<Option<Instant>>,
    max_stall: Cell<Option<Duration>>,
}

/// How long a reader has for what is left when a recording has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndTimeout {
    /// The longest time in which the reader may take nothing.
    pub(crate) max_stall: Duration,
    /// The longest time for all of it; `None` as long as it takes.
    pub(crate) at_most: Option<Duration>,
    /// Whether a signal ends the wait.
    pub(crate) until_signal: bool,
}

impl EndTimeout {
    /// After a planned end. Nobody waits for the recorder in a hurry, and a busy machine or a slow cable may
    /// keep a sound reader from taking anything for a while. Whoever wants it to end sends a signal.
    pub(crate) const PLANNED: EndTimeout = EndTimeout {
        max_stall: Duration::from_secs(3),
        at_most: Some(Duration::from_secs(20)),
        until_signal: true,
    };
    /// After a signal. More than one may come at once, so that a second one says nothing.
    pub(crate) const SIGNALLED: EndTimeout = EndTimeout {
        max_stall: Duration::from_secs(1),
        at_most: Some(Duration::from_secs(4)),
        until_signal: false,
    };
}

impl WriteTimeout {
    /// Waits until a signal arrives.
    pub(crate) fn until_signal(signals: &Signals) -> WriteTimeout {
        WriteTimeout {
            signals: Some(signals.clone()),
            until_signal: Cell::new(true),
            ..WriteTimeout::default()
        }
    }

    /// Waits until `deadline`.
    pub(crate) fn until(deadline: Instant) -> WriteTimeout {
        WriteTimeout { deadline: Cell::new(Some(deadline)), ..WriteTimeout::default() }
    }

    /// Waits until `deadline`, however little the reader takes; without a deadline for ever.
    pub(crate) fn set_deadline(&self, deadline: Option<Instant>) {
        self.max_stall.set(None);
        self.deadline.set(deadline);
    }

    /// Waits for what is left when a recording has ended, as long as the reader takes something in each
    /// interval of [`EndTimeout::max_stall`].
    pub(crate) fn begin_end(&self, end: EndTimeout) {
        self.until_signal.set(end.until_signal);
        self.max_stall.set(Some(end.max_stall));
        self.deadline.set(end.at_most.map(|time| Instant::now() + time));
    }

    /// Waits as long as the reader takes something in each interval of this length.
    pub(crate) fn set_max_stall(&self, max_stall: Duration) {
        self.deadline.set(None);
        self.max_stall.set(Some(max_stall));
    }

    /// Waits until `file` has room. `Err(TimedOut)`: the timeout is over.
    fn wait_for_room(&self, file: &File) -> io::Result<()> {
        let stall_end = self.max_stall.get().map(|stall| Instant::now() + stall);
        loop {
            let mut fds = vec![PollFd::new(file.as_fd(), PollFlags::POLLOUT)];
            if let Some(signals) = self.signals.as_ref().filter(|_| self.until_signal.get()) {
                fds.push(PollFd::new(signals.as_fd(), PollFlags::POLLIN));
            }
            let now = Instant::now();
            let end = [self.deadline.get(), stall_end].into_iter().flatten().min();
            let left = end.map_or(MAX_POLL, |end| end.saturating_duration_since(now).min(MAX_POLL));
            // Rounded up, so that the last millisecond is not spent in a loop.
            let timeout =
                PollTimeout::try_from(left + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX);
            match poll(&mut fds, timeout) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            if fds.get(1).is_some_and(|signal| signal.any() == Some(true)) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if fds[0].any() == Some(true) {
                return Ok(());
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
}

/// Writes to a file until the timeout is over; then a write fails with [`io::ErrorKind::TimedOut`].
#[derive(Debug)]
pub(crate) struct InterruptibleWriter {
    file: File,
    /// The most that one write may take without waiting, bytes.
    max_bytes: usize,
    /// Whether it is a socket, which can be told for each write not to wait.
    is_socket: bool,
    timeout: Rc<WriteTimeout>,
}

impl InterruptibleWriter {
    /// Writes to `file`, which others may share.
    pub(crate) fn new(file: &impl AsFd, timeout: Rc<WriteTimeout>) -> io::Result<InterruptibleWriter> {
        let shared = File::from(file.as_fd().try_clone_to_owned()?);
        let kind = shared.metadata()?.file_type();
        let may_wait = kind.is_fifo() || kind.is_char_device() || kind.is_socket();
        let own = (kind.is_fifo() || kind.is_char_device()).then(|| {
            let path = format!("/proc/self/fd/{}", shared.as_raw_fd());
            OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
        });
        let is_socket = kind.is_socket();
        let max_bytes = if may_wait && !is_socket { PIPE_BUF } else { usize::MAX };
        Ok(match own {
            Some(Ok(own)) => InterruptibleWriter { file: own, max_bytes: usize::MAX, is_socket, timeout },
            _ => InterruptibleWriter { file: shared, max_bytes, is_socket, timeout },
        })
    }

    /// Opens a FIFO, and waits for its reader.
    pub(crate) fn open_fifo(path: &Path, timeout: Rc<WriteTimeout>) -> io::Result<InterruptibleWriter> {
        loop {
            match OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path) {
                Ok(file) => {
                    return Ok(InterruptibleWriter {
                        file,
                        max_bytes: usize::MAX,
                        is_socket: false,
                        timeout,
                    });
                }
                Err(e) if e.raw_os_error() == Some(libc::ENXIO) => timeout.sleep(OPEN_INTERVAL)?,
                Err(e) => return Err(e),
            }
        }
    }
}

impl WriteTimeout {
    /// Sleeps. `Err(TimedOut)`: the timeout is over.
    fn sleep(&self, time: Duration) -> io::Result<()> {
        match self.signals.as_ref().filter(|_| self.until_signal.get()) {
            Some(signals) if signals.arrive_within(time) => return Err(io::ErrorKind::TimedOut.into()),
            Some(_) => {}
            None => std::thread::sleep(time),
        }
        Ok(())
    }
}

impl InterruptibleWriter {
    /// Writes as much as there is room for.
    fn write_now(&mut self, piece: &[u8]) -> io::Result<usize> {
        if !self.is_socket {
            return self.file.write(piece);
        }
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        Ok(send(self.file.as_raw_fd(), piece, flags)?)
    }
}

impl Write for InterruptibleWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(self.max_bytes)];
        // Where a write never waits, it finds out by itself whether there is room, as there mostly is.
        let mut is_asked = self.max_bytes == usize::MAX;
        loop {
            if !std::mem::take(&mut is_asked) {
                self.timeout.wait_for_room(&self.file)?;
            }
            match self.write_now(piece) {
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_write_ends_at_the_deadline_and_what_was_taken_arrives() {
        let (mut reader, writer) = io::pipe().unwrap();
        let timeout = Rc::new(WriteTimeout::until(Instant::now() + Duration::from_millis(100)));
        let mut out = InterruptibleWriter::new(&writer, timeout.clone()).unwrap();
        let bytes: Vec<u8> = (0..1_000_000u32).map(|n| n as u8).collect();
        let begun = Instant::now();
        let mut sent = 0;
        let error = loop {
            match out.write(&bytes[sent..]) {
                Ok(n) => sent += n,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() < Duration::from_secs(5) && (1..bytes.len()).contains(&sent));
        // A reader that goes on gets everything.
        timeout.set_deadline(None);
        let all = bytes.clone();
        let reading = std::thread::spawn(move || {
            let mut got = Vec::new();
            reader.read_to_end(&mut got).unwrap();
            assert!(got == all);
        });
        out.write_all(&bytes[sent..]).unwrap();
        drop((out, writer));
        reading.join().unwrap();
    }

    #[test]
    fn a_socket_is_not_waited_for_either() {
        let (_reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
        let timeout = Rc::new(WriteTimeout::until(Instant::now() + Duration::from_millis(100)));
        let mut out = InterruptibleWriter::new(&writer, timeout).unwrap();
        let begun = Instant::now();
        assert_eq!(out.write_all(&vec![1; 8 << 20]).unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}
