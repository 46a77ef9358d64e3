//! The numbers by which a machine knows its threads, processes and CPUs. Each has a type of its own, so that
//! one cannot stand where another is meant.

use std::fmt;
use std::num::{ParseIntError, TryFromIntError};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The kernel's id of a thread (gettid(2)). The kernel itself and its events call it `pid`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Tid(pub i32);

/// The kernel's id of a process (getpid(2)), which the kernel calls the id of the thread group, `tgid`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Pid(pub i32);

/// The number of a CPU. The kernel counts from 0, and may leave numbers out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Cpu(pub u32);

impl Tid {
    /// The idle task, of which each CPU has one.
    pub const IDLE: Tid = Tid(0);
    /// Stands where it is not known which thread it was.
    pub const UNKNOWN: Tid = Tid(-1);

    /// Whether it is a thread's: the idle task is none, and no thread has a number below 0.
    #[inline]
    pub fn is_thread(self) -> bool {
        self > Tid::IDLE
    }

    /// Whether the main thread of `process` has this id.
    #[inline]
    pub fn is_main_of(self, process: Pid) -> bool {
        self == process.main_thread()
    }
}

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

impl Cpu {
    /// How many CPUs there are where this is the last one, and no number is left out.
    #[inline]
    pub fn count_if_last(self) -> u32 {
        self.0.saturating_add(1)
    }

    /// The CPU's place in a list that has a place for every number.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Numbers are read and printed as such, and widen to `i64`.
macro_rules! number {
    ($($id:ident),*) => {$(
        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $id {
            type Err = ParseIntError;

            fn from_str(text: &str) -> Result<$id, ParseIntError> {
                text.parse().map($id)
            }
        }

        impl TryFrom<i64> for $id {
            type Error = TryFromIntError;

            fn try_from(number: i64) -> Result<$id, TryFromIntError> {
                number.try_into().map($id)
            }
        }

        impl From<$id> for i64 {
            fn from(id: $id) -> i64 {
                id.0.into()
            }
        }
    )*};
}

number!(Tid, Pid, Cpu);
