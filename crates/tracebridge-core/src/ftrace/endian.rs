//! Byte order of the machine that recorded.

/// Byte order of the machine that recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endian {
    /// Least significant byte first: every Android device, x86.
    Little,
    /// Most significant byte first: old MIPS, s390x, some PowerPC.
    Big,
}

impl Endian {
    /// Byte order of the machine that this program runs on.
    pub const NATIVE: Endian = if cfg!(target_endian = "big") { Endian::Big } else { Endian::Little };

    /// Reads an unsigned integer of 1, 2, 4 or 8 bytes. Any other length gives `None`.
    #[inline]
    pub fn uint(self, bytes: &[u8]) -> Option<u64> {
        Some(match (bytes.len(), self) {
            (1, _) => u64::from(bytes[0]),
            (2, Endian::Little) => u64::from(u16::from_le_bytes(bytes.try_into().ok()?)),
            (2, Endian::Big) => u64::from(u16::from_be_bytes(bytes.try_into().ok()?)),
            (4, Endian::Little) => u64::from(u32::from_le_bytes(bytes.try_into().ok()?)),
            (4, Endian::Big) => u64::from(u32::from_be_bytes(bytes.try_into().ok()?)),
            (8, Endian::Little) => u64::from_le_bytes(bytes.try_into().ok()?),
            (8, Endian::Big) => u64::from_be_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    }

    /// Reads a signed integer of 1, 2, 4 or 8 bytes. Any other length gives `None`.
    #[inline]
    pub fn int(self, bytes: &[u8]) -> Option<i64> {
        let unused = 64u32.checked_sub(8 * bytes.len() as u32)?;
        Some(((self.uint(bytes)? << unused) as i64) >> unused)
    }
}
