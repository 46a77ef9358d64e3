//! Base64 (RFC 4648, section 4), written piece by piece.

use std::io::{self, Write};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const GROUP: usize = 3;

/// Encodes bytes that come in pieces; a group of three bytes may lie across two of them.
#[derive(Default)]
pub(super) struct Base64Writer {
    rest: Vec<u8>,
    text: Vec<u8>,
}

impl Base64Writer {
    pub fn write(&mut self, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
        let missing = (GROUP - self.rest.len()) % GROUP;
        let (first, bytes) = bytes.split_at(missing.min(bytes.len()));
        self.rest.extend_from_slice(first);
        if self.rest.len() == GROUP {
            let group = std::mem::take(&mut self.rest);
            self.encode(&group);
        }
        let whole = if self.rest.is_empty() { bytes.len() / GROUP * GROUP } else { 0 };
        self.encode(&bytes[..whole]);
        self.rest.extend_from_slice(&bytes[whole..]);
        out.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }

    /// Ends the text with the padding that it needs.
    pub fn finish(&mut self, out: &mut impl Write) -> io::Result<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        let padding = GROUP - self.rest.len();
        let mut group = std::mem::take(&mut self.rest);
        group.resize(GROUP, 0);
        self.encode(&group);
        let end = self.text.len() - padding;
        self.text[end..].fill(b'=');
        out.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }

    /// Appends whole groups to the text.
    fn encode(&mut self, groups: &[u8]) {
        self.text.reserve(groups.len() / GROUP * 4);
        for group in groups.chunks_exact(GROUP) {
            let bits = u32::from(group[0]) << 16 | u32::from(group[1]) << 8 | u32::from(group[2]);
            let sextets = [bits >> 18, bits >> 12 & 63, bits >> 6 & 63, bits & 63];
            self.text.extend_from_slice(&sextets.map(|sextet| ALPHABET[sextet as usize]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Base64Writer;

    #[test]
    fn pieces_of_any_size_give_the_text_that_the_standard_gives() {
        let cases = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (plain, text) in cases {
            for size in 1..=7 {
                let (mut writer, mut out) = (Base64Writer::default(), Vec::new());
                for piece in plain.as_bytes().chunks(size) {
                    writer.write(piece, &mut out).unwrap();
                }
                writer.finish(&mut out).unwrap();
                assert_eq!(String::from_utf8(out).unwrap(), text, "in pieces of {size}");
            }
        }
    }
}
