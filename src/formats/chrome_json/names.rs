//! The processes and threads of a trace.

/// A thread by the numbers of its process and itself. A text in their place has a number that no kernel
/// gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadKey {
    /// The process.
    pub pid: i64,
    /// The thread.
    pub tid: i64,
}

/// What the file says about a thread.
#[derive(Debug, Clone, Default)]
pub struct Thread {
    /// Its name.
    pub name: Option<Vec<u8>>,
    /// Where viewers show it among the threads of its process (`thread_sort_index`).
    pub sort_index: Option<i64>,
    /// Whether threads of several processes have this number.
    pub is_ambiguous: bool,
}

/// What the file says about a process.
#[derive(Debug, Clone, Default)]
pub struct Process {
    /// Its name.
    pub name: Option<Vec<u8>>,
    /// Where viewers show it among the processes (`process_sort_index`).
    pub sort_index: Option<i64>,
    /// Its labels.
    pub labels: Vec<Vec<u8>>,
}
