//! Files of names that are separated by white space.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The most of a file of names that is read, bytes.
const MAX_NAMES_BYTES: u64 = 1 << 20;

/// Reads a file of names, which are separated by white space.
///
/// # Errors
/// The system's, or that the file is longer than any list of names.
pub fn read_names(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_NAMES_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_NAMES_BYTES {
        let why = "more than 1 MiB, which no list of names has";
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(text)
}
