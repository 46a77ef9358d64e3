//! Sizes of files for people.

/// A number of bytes for people: `9999 bytes`, `12.3 kB`, `1.0 MB`.
pub fn byte_size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_exact_where_it_is_small() {
        assert_eq!(byte_size(9_999), "9999 bytes");
        assert_eq!(byte_size(12_345), "12.3 kB");
        assert_eq!(byte_size(10_000_000), "10.0 MB");
    }
}
