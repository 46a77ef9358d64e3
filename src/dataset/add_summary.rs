//! What an addition to a dataset has done.

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
