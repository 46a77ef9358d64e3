//! The device binaries that a release's host binary carries, compressed with zstd. What is built without
//! `scripts/dist` carries none.

use std::io;

/// ABI and compressed binary, as build.rs found them.
const EMBEDDED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The device binary for an ABI by Android's name (`arm64-v8a`). Returns `None` if this program carries none
/// for it.
///
/// # Errors
/// If the program's own copy cannot be unpacked, which means that the program's file is damaged.
pub(super) fn embedded(abi: &str) -> io::Result<Option<Vec<u8>>> {
    unpacked(EMBEDDED, abi)
}

fn unpacked(table: &[(&str, &[u8])], abi: &str) -> io::Result<Option<Vec<u8>>> {
    let found = table.iter().find(|(name, _)| *name == abi);
    found.map(|(_, packed)| zstd::decode_all(*packed)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_is_unpacked_by_its_abi_and_a_damaged_one_is_an_error() {
        let packed = zstd::encode_all(&b"\x7fELF of arm64"[..], 1).unwrap();
        let table = [("arm64-v8a", &packed[..]), ("x86", &packed[..packed.len() - 1])];
        assert_eq!(unpacked(&table, "arm64-v8a").unwrap(), Some(b"\x7fELF of arm64".to_vec()));
        assert_eq!(unpacked(&table, "arm64").unwrap(), None);
        assert!(unpacked(&table, "x86").is_err());
    }
}
