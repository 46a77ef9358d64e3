//! The machine that recorded, as far as printing a record needs it: symbols, and texts that stay in the kernel.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::{lately, number};
use crate::ftrace::{Symbols, parse_printk_formats};

/// What is known of the machine that recorded, beyond the record. Its texts are read when first needed.
pub struct Symbolizer {
    /// Bytes of the kernel's long: 4 or 8.
    pub long_size: u8,
    /// Of all contexts of this process; not 0.
    pub(super) id: u64,
    kallsyms: Loader,
    printk_formats: Loader,
    symbols: OnceLock<Symbols>,
    texts: OnceLock<HashMap<u64, Vec<u8>>>,
}

/// Brings a text that may have to be unpacked.
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
    /// Of a kernel whose long has `long_size` bytes, and whose `kallsyms` and `printk_formats` these bring.
    pub fn new(long_size: u8, kallsyms: Loader, printk_formats: Loader) -> Symbolizer {
        Symbolizer {
            long_size,
            id: lately::id(),
            kallsyms,
            printk_formats,
            symbols: OnceLock::new(),
            texts: OnceLock::new(),
        }
    }

    /// The kernel's symbols; none if they were not recorded.
    pub fn symbols(&self) -> &Symbols {
        self.symbols.get_or_init(|| Symbols::parse((self.kallsyms)()))
    }

    pub(super) fn kernel_text(&self, address: u64) -> Option<&[u8]> {
        let texts = self.texts.get_or_init(|| parse_printk_formats(&(self.printk_formats)()));
        texts.get(&address).map(Vec::as_slice)
    }

    /// Appends the name of the function at `address`, with the place in it if `whole`; the number if there is none.
    pub fn symbol(&self, address: u64, whole: bool, out: &mut Vec<u8>) {
        let _ = lately::push((self.id, u64::from(whole), address), out, |out| {
            self.find_symbol(address, whole, out);
            Some(())
        });
    }

    fn find_symbol(&self, address: u64, whole: bool, out: &mut Vec<u8>) {
        let Some(symbol) = self.symbols().find(address) else {
            out.extend_from_slice(b"0x");
            return number::push_hex(out, address);
        };
        let (name, module) = match symbol.name.iter().position(|b| *b == b'\t') {
            Some(tab) => (&symbol.name[..tab], &symbol.name[tab + 1..]),
            None => (symbol.name, &b""[..]),
        };
        out.extend_from_slice(name);
        if whole {
            out.extend_from_slice(b"+0x");
            number::push_hex(out, symbol.offset);
            out.extend_from_slice(b"/0x");
            number::push_hex(out, symbol.size);
        }
        if !module.is_empty() {
            out.push(b' ');
            out.extend_from_slice(module);
        }
    }
}
