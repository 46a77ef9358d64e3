//! What happens while traces are added to a dataset, and what that has done.

/// What was added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AddSummary {
    /// Traces that are new.
    pub added: usize,
    /// Traces that the dataset had already.
    pub known: usize,
    /// Traces whose files were rejected.
    pub rejected: usize,
    /// Parts that were published.
    pub parts: usize,
    /// Size of their files, bytes.
    pub bytes: u64,
}

/// What happens while traces are added, in the order of the traces.
#[derive(Debug)]
pub enum AddedEvent<'a> {
    /// Another process writes to the dataset; this one waits.
    Waits,
    /// The files of a trace are rejected for this reason, which names them.
    Rejected(&'a str),
}
