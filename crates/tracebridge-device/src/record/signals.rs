//! SIGINT, SIGTERM, SIGHUP and SIGQUIT as a file descriptor to poll. A recording that receives one of these
//! signals ends in order: it finishes the capture and puts the kernel's settings back.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::time::Duration;

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::ignored_signals::is_ignored;
use crate::trace_dat::recording_summary::{EndSignal, RecordingEndReason};

/// How long a program that a command has started may take to end after a signal. Then it is left to itself.
pub(crate) const AFTER_SIGNAL_TIMEOUT: Duration = Duration::from_millis(500);

/// The signals that end a recording: blocked, and readable from this value instead.
#[derive(Debug, Clone)]
pub(crate) struct Signals(Rc<SignalFd>);

/// A signal that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReceivedSignal {
    pub(crate) signal: Signal,
    /// Whether the terminal sent it (Ctrl-C), and so sent it to the children of this process too.
    pub(crate) from_terminal: bool,
}

impl ReceivedSignal {
    /// The reason of a recording that this signal has ended.
    pub(crate) fn end_reason(self) -> RecordingEndReason {
        let signal = match self.signal {
            Signal::SIGHUP => EndSignal::HangUp,
            Signal::SIGINT => EndSignal::Interrupt,
            Signal::SIGQUIT => EndSignal::Quit,
            Signal::SIGTERM => EndSignal::Terminate,
            // The descriptor gives no other.
            other => return RecordingEndReason::Other(format!("signal {other}")),
        };
        RecordingEndReason::Signal(signal)
    }
}

impl fmt::Display for ReceivedSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.signal.fmt(f)
    }
}

impl Signals {
    /// Blocks the signals for this thread and for the threads that it will start. The processes that it
    /// starts block none ([`crate::child`]).
    ///
    /// Under `nohup`, SIGHUP does not end the recording. SIGINT and SIGQUIT do even where they are ignored: a
    /// shell starts every background job so, and scripts end recordings with `kill -INT`.
    pub(crate) fn block() -> io::Result<Signals> {
        let mut set = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGQUIT] {
            set.add(signal);
        }
        if !is_ignored(Signal::SIGHUP as i32) {
            set.add(Signal::SIGHUP);
        }
        // Where a limit of file sizes ends a write, the write fails, and the recorder is not killed.
        let mut blocked = set;
        blocked.add(Signal::SIGXFSZ);
        blocked.thread_block()?;
        let fd = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Signals(Rc::new(fd)))
    }

    /// Waits for a signal, at most this long. Returns whether one has arrived; it stays to be taken.
    pub(crate) fn arrive_within(&self, time: Duration) -> bool {
        let mut fds = [PollFd::new(self.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX)).is_ok_and(|ready| ready > 0)
    }

    /// Takes one signal that has arrived, if there is one.
    pub(crate) fn take(&self) -> Option<ReceivedSignal> {
        let info = self.0.read_signal().ok()??;
        let signal = Signal::try_from(info.ssi_signo as i32).ok()?;
        Some(ReceivedSignal { signal, from_terminal: info.ssi_code == libc::SI_KERNEL })
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
