//! Prints a record as the kernel would. The `print fmt:` line of the record's event type is compiled to a
//! program once. A [`Symbolizer`] has the facts of the recording machine that a record's text needs.

mod byte_text;
mod eval;
mod expr;
mod lex;
mod parse;
#[cfg(test)]
mod parse_tests;
mod program;
mod spec;

use std::collections::HashMap;
use std::sync::OnceLock;

use thiserror::Error;

use crate::ftrace::{Symbols, parse_printk_formats};
use crate::text::digits;
use crate::text::pieces::{InlineBytes, render_id, with_rendered};
pub use program::PrintFmt;

/// Why a print format cannot be followed. The event's fields can be printed all the same.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PrintFmtError {
    /// The format is not C, or uses parts of C that no print format of the kernel uses.
    #[error("not understood: {0}")]
    Syntax(String),
    /// An argument of the format has more operators, or deeper brackets, than are evaluated.
    #[error("has {0}")]
    TooComplex(String),
    /// The format uses something that only the kernel has.
    #[error("uses {0}")]
    Unsupported(String),
}

/// Facts of the recording machine that a record's text needs. The texts are loaded when they are first
/// needed.
pub struct Symbolizer {
    /// Size of the kernel's `long`, bytes: 4 or 8.
    pub long_size: u8,
    /// An id that no other symbolizer of this process has. It is not 0.
    id: u64,
    kallsyms: Loader,
    printk_formats: Loader,
    symbols: OnceLock<Symbols>,
    texts: OnceLock<HashMap<u64, Vec<u8>>>,
}

/// Loads a text, which may have to be decompressed.
pub type Loader = Box<dyn Fn() -> Vec<u8> + Send + Sync>;

impl std::fmt::Debug for Symbolizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Symbolizer").field("long_size", &self.long_size).finish_non_exhaustive()
    }
}

impl Default for Symbolizer {
    fn default() -> Symbolizer {
        Symbolizer::new(8, Box::new(Vec::new), Box::new(Vec::new))
    }
}

impl Symbolizer {
    /// A symbolizer for a kernel whose `long` has `long_size` bytes. The loaders return the texts of
    /// `/proc/kallsyms` and of tracefs' file `printk_formats`.
    pub fn new(long_size: u8, kallsyms: Loader, printk_formats: Loader) -> Symbolizer {
        Symbolizer {
            long_size,
            id: render_id(),
            kallsyms,
            printk_formats,
            symbols: OnceLock::new(),
            texts: OnceLock::new(),
        }
    }

    /// The kernel's symbols. The list is empty if they were not recorded.
    pub fn symbols(&self) -> &Symbols {
        self.symbols.get_or_init(|| Symbols::parse((self.kallsyms)()))
    }

    /// The text at an address in the kernel, where printk_formats has it.
    fn kernel_text(&self, address: u64) -> Option<&[u8]> {
        let texts = self.texts.get_or_init(|| parse_printk_formats(&(self.printk_formats)()));
        texts.get(&address).map(Vec::as_slice)
    }

    /// Appends the name of the function at `address`, and with `with_offset` the offset in the function.
    /// Appends the address itself where no symbol has it.
    pub fn symbol(&self, address: u64, with_offset: bool, out: &mut Vec<u8>) {
        self.with_symbol(address, with_offset, |text| text.push(out));
    }

    /// Calls `with` with what [`Symbolizer::symbol`] appends.
    #[inline]
    fn with_symbol(&self, address: u64, with_offset: bool, with: impl FnOnce(&InlineBytes<40>)) {
        let make = |out: &mut Vec<u8>| {
            self.find_symbol(address, with_offset, out);
            Some(())
        };
        let _ = with_rendered((self.id, u64::from(with_offset), address), make, with);
    }

    fn find_symbol(&self, address: u64, with_offset: bool, out: &mut Vec<u8>) {
        let Some(symbol) = self.symbols().find(address) else {
            out.extend_from_slice(b"0x");
            return digits::push_hex(out, address);
        };
        let (name, module) = match symbol.name.iter().position(|b| *b == b'\t') {
            Some(tab) => (&symbol.name[..tab], &symbol.name[tab + 1..]),
            None => (symbol.name, &b""[..]),
        };
        out.extend_from_slice(name);
        if with_offset {
            out.extend_from_slice(b"+0x");
            digits::push_hex(out, symbol.offset);
            out.extend_from_slice(b"/0x");
            digits::push_hex(out, symbol.size);
        }
        if !module.is_empty() {
            out.push(b' ');
            out.extend_from_slice(module);
        }
    }
}
