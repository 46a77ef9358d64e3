//! An address whose function is asked for, and the answer.

/// An address of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SymbolAddress {
    pub(crate) address: u64,
    /// Whether the address is an offset in the file, and no virtual address.
    pub(crate) is_offset: bool,
}

/// The functions of an address: one, or before it those into which it was inlined. The outermost comes first.
pub(crate) type FunctionNames = Vec<String>;
