//! Switches that a trace lacks, found by what follows on the same CPU.
//!
//! Two switches that follow each other on a CPU agree where the thread that the first one brings is the one
//! that the second one takes away. An event of another thread between two switches that agree is disbelieved.
//! Where they disagree, switches between them are missing. A kernel (seen on Linux 6.18) leaves out every
//! switch from the idle task of one CPU, or from one busy thread.

use crate::clock::Timestamp;
use crate::ids::Tid;

/// The last that is known of a CPU.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LastOnCpu {
    /// The thread that the last switch brought; `None` before the first one.
    pub switched_to: Option<Tid>,
    /// The last event of that thread on the CPU, or the last switch.
    pub ts: Timestamp,
    /// Another thread that has had an event on the CPU since, and from when on it must have been there.
    pub supposed: Option<(Tid, Timestamp)>,
    /// Events of the CPU were lost since the last switch, or switches before the first one are missing.
    pub has_lost: bool,
}

impl LastOnCpu {
    /// A switch has brought `entered`.
    pub fn switched(ts: Timestamp, entered: Tid) -> LastOnCpu {
        LastOnCpu { switched_to: Some(entered), ts, supposed: None, has_lost: false }
    }

    /// An event of `tid` came on the CPU.
    pub fn saw(&mut self, ts: Timestamp, tid: Tid) {
        match self.supposed {
            _ if self.switched_to == Some(tid) => *self = LastOnCpu { ts, supposed: None, ..*self },
            Some((supposed, _)) if supposed == tid => {}
            // The time of a text trace is rounded: an event at the time of a switch may come before it.
            None if self.switched_to.is_some() && ts <= self.ts => {}
            // Whoever was not there yet came after the last event of the idle task.
            None if self.switched_to == Some(Tid::IDLE) => self.supposed = Some((tid, self.ts)),
            supposed => {
                self.has_lost |= supposed.is_some();
                self.supposed = Some((tid, ts));
            }
        }
    }

    /// Whether the last switch and one that takes `left` away have none between them.
    pub fn agrees_with(&self, left: Tid) -> bool {
        match self.switched_to {
            Some(tid) => tid == left,
            None => self.supposed.is_none(),
        }
    }
}
