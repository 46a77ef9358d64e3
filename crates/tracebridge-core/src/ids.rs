//! The numbers by which a machine knows its threads and processes. Each has a type of its own, so that one
//! cannot stand where another is meant.

use std::fmt;
use std::num::{ParseIntError, TryFromIntError};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The kernel's id of a thread (gettid(2)). The kernel itself and its events call it `pid`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tid(pub i32);

impl Tid {
    /// The idle task, of which each CPU has one.
    pub const IDLE: Tid = Tid(0);

    /// No thread: it stands where the kernel's id is missing.
    pub const NONE: Tid = Tid(-1);

    /// Whether a thread can have this id: the idle task and numbers below zero are none.
    #[inline]
    pub fn is_thread(self) -> bool {
        self > Tid::IDLE
    }

    /// Whether this is the main thread of `process`.
    #[inline]
    pub fn is_main_of(self, process: Pid) -> bool {
        self == process.main_thread()
    }
}

/// The kernel's id of a process (getpid(2)), which the kernel calls the id of the thread group, `tgid`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pid(pub i32);

impl Pid {
    /// The process whose main thread is `thread`.
    #[inline]
    pub fn of_main_thread(thread: Tid) -> Pid {
        Pid(thread.0)
    }

    /// The process's main thread, which has the same number.
    #[inline]
    pub fn main_thread(self) -> Tid {
        Tid(self.0)
    }
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Tid {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Tid, ParseIntError> {
        text.parse().map(Tid)
    }
}

impl TryFrom<i64> for Tid {
    type Error = TryFromIntError;

    fn try_from(number: i64) -> Result<Tid, TryFromIntError> {
        number.try_into().map(Tid)
    }
}

impl From<Tid> for i64 {
    fn from(id: Tid) -> i64 {
        id.0.into()
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Pid {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Pid, ParseIntError> {
        text.parse().map(Pid)
    }
}

impl TryFrom<i64> for Pid {
    type Error = TryFromIntError;

    fn try_from(number: i64) -> Result<Pid, TryFromIntError> {
        number.try_into().map(Pid)
    }
}

impl From<Pid> for i64 {
    fn from(id: Pid) -> i64 {
        id.0.into()
    }
}
