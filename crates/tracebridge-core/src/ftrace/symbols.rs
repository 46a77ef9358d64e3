//! The kernel's symbols from the text of `/proc/kallsyms`, and the kernel's printk formats.

use std::collections::HashMap;

/// The symbols of a kernel, sorted by address.
#[derive(Debug, Default)]
pub struct Symbols {
    /// The address of each symbol, and where its name starts and ends in `text`. Sorted by address.
    list: Vec<(u64, u32, u32)>,
    text: Vec<u8>,
}

/// The symbol in which an address lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// The symbol's name. The name of a module's symbol has a tab and `[module]` behind it.
    pub name: &'a [u8],
    /// Offset of the address in the symbol, bytes.
    pub offset: u64,
    /// Bytes from the symbol to the next symbol; 0 for the last symbol.
    pub size: u64,
}

impl Symbols {
    /// Parses lines of `ADDRESS TYPE NAME [MODULE]`. Other lines are skipped, and so are symbols with address
    /// 0: a kernel that hides addresses gives 0 for all of them.
    pub fn parse(text: Vec<u8>) -> Symbols {
        let mut list = Vec::with_capacity(text.len() / 40);
        // Offsets in the text have 32 bits. A text of more than 4 GiB is not kallsyms and is skipped.
        let mut at = if text.len() < u32::MAX as usize { 0 } else { text.len() };
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let (address, digits) = leading_address(rest);
            let behind = &rest[digits..];
            let length = digits + behind.iter().position(|b| *b == b'\n').unwrap_or(behind.len());
            // Behind the digits are a blank, the type of the symbol, a blank and the name. ARM's mapping
            // symbols (`$x`) name no function.
            let name = digits + 3;
            if address != 0 && behind.first() == Some(&b' ') && name < length && rest[name] != b'$' {
                list.push((address, (at + name) as u32, (at + length) as u32));
            }
            at += length + 1;
        }
        if !list.is_sorted_by_key(|s| s.0) {
            list.sort_by_key(|s| s.0);
        }
        Symbols { list, text }
    }

    /// The symbol in which `address` lies.
    pub fn find(&self, address: u64) -> Option<Symbol<'_>> {
        let after = self.list.partition_point(|s| s.0 <= address);
        let (last_start, ..) = *self.list.get(after.checked_sub(1)?)?;
        // Where several symbols have one address, the kernel prints the first.
        let first = self.list.partition_point(|s| s.0 < last_start);
        let (start, from, to) = *self.list.get(first)?;
        let size = self.list.get(after).map_or(0, |next| next.0 - start);
        Some(Symbol { name: self.text.get(from as usize..to as usize)?, offset: address - start, size })
    }
}

/// The hexadecimal number that a text begins with, and the offset behind its digits.
fn leading_address(text: &[u8]) -> (u64, usize) {
    let prefix = if text.starts_with(b"0x") { 2 } else { 0 };
    let mut address: u64 = 0;
    for (at, byte) in text.iter().enumerate().skip(prefix) {
        // A table and not a match: a list has more than a hundred thousand addresses of 16 digits.
        match HEX_VALUES[usize::from(*byte)] {
            NO_DIGIT => return (address, at),
            value => address = address << 4 | u64::from(value),
        }
    }
    (address, text.len())
}

const NO_DIGIT: u8 = u8::MAX;

/// The value of each byte as a hexadecimal digit, or [`NO_DIGIT`].
static HEX_VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value] as usize] = value as u8;
        values[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// Parses the text of tracefs' file `printk_formats`: lines of `0xADDRESS : "text"`. The texts have escapes
/// of C.
pub fn parse_printk_formats(text: &[u8]) -> HashMap<u64, Vec<u8>> {
    let mut formats = HashMap::new();
    for line in text.split(|b| *b == b'\n') {
        let Some(colon) = line.iter().position(|b| *b == b':') else { continue };
        let address = std::str::from_utf8(&line[..colon]).unwrap_or_default().trim();
        let Ok(address) = u64::from_str_radix(address.trim_start_matches("0x"), 16) else { continue };
        let quoted = line[colon + 1..].trim_ascii();
        let Some(inner) = quoted.strip_prefix(b"\"").and_then(|q| q.strip_suffix(b"\"")) else { continue };
        let mut out = Vec::with_capacity(inner.len());
        let mut bytes = inner.iter();
        while let Some(b) = bytes.next() {
            out.push(match (b, if *b == b'\\' { bytes.next() } else { None }) {
                (_, Some(b'n')) => b'\n',
                (_, Some(b't')) => b'\t',
                (_, Some(other)) => *other,
                (plain, None) => *plain,
            });
        }
        formats.insert(address, out);
    }
    formats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_named_by_the_symbol_it_lies_in() {
        let text = b"ffff0010 T second\nffff0000 t first\nffff0000 t alias\nffff0008 t $x\n\
                     ffff0020 t third\t[module]\nnonsense\n0000 t hidden\n";
        let symbols = Symbols::parse(text.to_vec());
        let of =
            |a| symbols.find(a).map(|s| (String::from_utf8_lossy(s.name).into_owned(), s.offset, s.size));
        assert_eq!(of(0xffff_0000), Some(("first".into(), 0, 16)));
        assert_eq!(of(0xffff_000f), Some(("first".into(), 15, 16)));
        assert_eq!(of(0xffff_0024), Some(("third\t[module]".into(), 4, 0)));
        assert_eq!(of(1), None);
    }

    #[test]
    fn printk_formats_lose_their_quotes_and_escapes() {
        let formats = parse_printk_formats(b"0xffffffff81 : \"a %d\\n\"\nbad\n");
        assert_eq!(formats[&0xff_ffff_ff81], b"a %d\n");
    }
}
