//! The number of a thread in the tables.

use crate::timeline::MethodThread;

/// The thread's number in all tables: the kernel's id, or a negative number that stands for a thread of a
/// method trace which no kernel thread is known to be.
pub fn utid(thread: &MethodThread) -> i64 {
    thread.tid.map_or(-1 - i64::from(thread.index), i64::from)
}
