//! Detects Perfetto traces.

/// Whether a file with these bytes may be a Perfetto trace. A `Trace` is a repeated field 1 of
/// `TracePacket`s: the first byte is 0x0a, then comes a length, then a packet's first field.
pub(in crate::formats) fn detect(bytes: &[u8]) -> bool {
    let Some((0x0a, rest)) = bytes.split_first() else { return false };
    // A text that begins with an empty line, as an `adb shell` captures it, begins with 0x0a too.
    if rest.trim_ascii_start().starts_with(b"# tracer:") {
        return false;
    }
    let mut len: u64 = 0;
    for (n, byte) in rest.iter().take(5).enumerate() {
        len |= u64::from(byte & 0x7f) << (7 * n);
        if byte & 0x80 == 0 {
            let Some(tag) = rest.get(n + 1) else { return false };
            // A packet's first field: of wire type varint, 64 bit, length or 32 bit, and not field 0.
            return len > 0 && matches!(tag & 7, 0 | 1 | 2 | 5) && tag >> 3 != 0;
        }
    }
    false
}
