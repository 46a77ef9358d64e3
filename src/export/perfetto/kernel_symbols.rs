//! Names of kernel functions in fields that hold an address.
//!
//! Perfetto's own recorder writes an interning id in place of the address, and the name under that id as
//! `InternedData.kernel_symbols` of the packet sequence. trace_processor looks the name up in the fields of
//! [`SYMBOL_FIELDS`] (src/trace_processor/importers/ftrace/ftrace_parser.cc, kKernelFunctionFields).

use std::collections::HashMap;
use std::sync::Arc;

use super::packet::packet;
use crate::formats::perfetto::fields::{interned_data, interned_string, sequence_flags, trace_packet};
use crate::formats::perfetto::wire::write::{message, string, uint};
use crate::ftrace::print_fmt::Symbolizer;

/// The names of fields in which texts have the name of a function.
const FUNCTION_FIELDS: &[&str] =
    &["function", "func", "caller", "call_site", "callsite", "callback", "ip", "parent_ip", "shrink"];

/// Whether a field of this name holds the address of a function.
pub(super) fn is_function_field(name: &str) -> bool {
    FUNCTION_FIELDS.contains(&name)
}

/// The symbols that have been interned.
#[derive(Default)]
pub(super) struct KernelSymbols {
    ids: HashMap<Vec<u8>, u64>,
    by_address: HashMap<u64, Option<u64>>,
    /// Symbols that no packet has announced yet.
    new: Vec<(u64, Vec<u8>)>,
    is_announced: bool,
    /// The kernel's own symbols, where the recording has them.
    pub(super) symbolizer: Option<Arc<Symbolizer>>,
}

impl KernelSymbols {
    /// The interning id of a symbol as a text has it: without the offset, the size and the module
    /// (`__fdget_pos+0x44/0x50 [fuse]`). `None` if `text` is not a symbol.
    pub(super) fn of_text(&mut self, text: &[u8]) -> Option<u64> {
        let end = text.iter().position(|b| matches!(b, b'+' | b' ' | b'\t')).unwrap_or(text.len());
        let name = &text[..end];
        let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$' | b':');
        if name.is_empty() || name[0].is_ascii_digit() || !name.iter().all(is_name) {
            return None;
        }
        if let Some(id) = self.ids.get(name) {
            return Some(*id);
        }
        // 0 is not a valid id.
        let id = self.ids.len() as u64 + 1;
        self.ids.insert(name.to_vec(), id);
        self.new.push((id, name.to_vec()));
        Some(id)
    }

    /// The interning id of the symbol at `address`, where the recording has the kernel's symbols.
    pub(super) fn of_address(&mut self, address: u64) -> Option<u64> {
        if let Some(known) = self.by_address.get(&address) {
            return *known;
        }
        let symbolizer = self.symbolizer.clone()?;
        let mut name = Vec::new();
        symbolizer.symbol(address, false, &mut name);
        let id = self.of_text(&name);
        self.by_address.insert(address, id);
        id
    }

    /// Appends a packet with the names of new symbols. It must come before the packets that refer to them.
    #[inline]
    pub(super) fn announce(&mut self, out: &mut Vec<u8>, sequence: u64) {
        if !self.new.is_empty() {
            self.announce_new(out, sequence);
        }
    }

    #[cold]
    fn announce_new(&mut self, out: &mut Vec<u8>, sequence: u64) {
        let flags = match std::mem::replace(&mut self.is_announced, true) {
            true => sequence_flags::NEEDS_INCREMENTAL_STATE,
            false => sequence_flags::INCREMENTAL_STATE_CLEARED,
        };
        packet(out, sequence, |out| {
            message(out, trace_packet::INTERNED_DATA, |out| {
                for (id, name) in self.new.drain(..) {
                    message(out, interned_data::KERNEL_SYMBOLS, |out| {
                        uint(out, interned_string::IID, id);
                        string(out, interned_string::STR, &name);
                    });
                }
            });
            uint(out, trace_packet::SEQUENCE_FLAGS, flags);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_is_interned_once_and_without_offset_and_module() {
        let mut symbols = KernelSymbols::default();
        let ids: Vec<Option<u64>> =
            ["devfreq_monitor", "__fdget_pos+0x44/0x50", "__fdget_pos", "fuse_do [fuse]"]
                .iter()
                .map(|text| symbols.of_text(text.as_bytes()))
                .collect();
        assert_eq!(ids, [Some(1), Some(2), Some(2), Some(3)]);
        for text in ["", "0xffffff8008", "12", "(null)", "a|b"] {
            assert_eq!(symbols.of_text(text.as_bytes()), None, "{text}");
        }
        let mut out = Vec::new();
        symbols.announce(&mut out, 1);
        assert!(!out.is_empty());
        let len = out.len();
        symbols.announce(&mut out, 1);
        assert_eq!(out.len(), len, "nothing is announced twice");
    }
}
