//! Protobuf encoding onto a byte vector: varints, fields, and messages whose length is put in afterwards.

/// Appends a varint.
#[inline]
pub fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a varint field; a negative `int32` or `int64` goes in as its 64 bits and takes ten bytes.
#[inline]
pub fn uint(out: &mut Vec<u8>, field: u32, value: u64) {
    varint(out, u64::from(field) << 3);
    varint(out, value);
}

/// Appends a `double` field.
pub fn double(out: &mut Vec<u8>, field: u32, value: f64) {
    varint(out, u64::from(field) << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a `bytes` field, or a message that is encoded already, or a packed array.
#[inline]
pub fn bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    varint(out, u64::from(field) << 3 | 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Appends a `string` field; what is not UTF-8 (a comm cut in the middle of a character) is replaced.
#[inline]
pub fn string(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    if value.is_ascii() {
        bytes(out, field, value);
    } else {
        bytes(out, field, String::from_utf8_lossy(value).as_bytes());
    }
}

/// Appends a message field that `fill` writes.
///
/// One byte is kept for its length, which most messages need; a longer one is moved to make room.
#[inline]
pub fn message(out: &mut Vec<u8>, field: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    varint(out, u64::from(field) << 3 | 2);
    sized(out, fill);
}

/// Appends what `fill` writes with its length in front.
#[inline]
pub fn sized(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.push(0);
    fill(out);
    let len = out.len() - at - 1;
    if len < 0x80 {
        out[at] = len as u8;
    } else {
        lengthen(out, at, len);
    }
}

#[cold]
fn lengthen(out: &mut Vec<u8>, at: usize, len: usize) {
    let mut prefix = Vec::with_capacity(10);
    varint(&mut prefix, len as u64);
    out.splice(at..=at, prefix);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_get_a_long_length() {
        for len in [0, 1, 127, 128, 300, 20_000] {
            let mut out = vec![9];
            message(&mut out, 1, |m| m.resize(m.len() + len, 7));
            let mut want = vec![9, 0x0a];
            varint(&mut want, len as u64);
            want.resize(want.len() + len, 7);
            assert_eq!(out, want);
        }
    }

    #[test]
    fn negative_numbers_take_ten_bytes() {
        let mut out = Vec::new();
        uint(&mut out, 2, -1i64 as u64);
        assert_eq!(out, [0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
    }
}
