//! The endings of files: an option that writes one kind of file refuses the name of another kind.

use std::path::Path;

use crate::cli::exit::UsageError;
use crate::export::FORMATS;

/// The endings of pictures, pages, texts and traces beside those of the formats that are written.
const OTHERS: [&str; 22] = [
    ".svg",
    ".png",
    ".jpg",
    ".jpeg",
    ".gif",
    ".webp",
    ".bmp",
    ".pdf",
    ".ps",
    ".xml",
    ".md",
    ".log",
    ".trace",
    ".parquet",
    ".folded",
    ".dot",
    ".gv",
    ".speedscope",
    ".pprof",
    ".pb",
    ".gz",
    ".apk",
];

/// Whether the name of a file ends so, in capital letters or small ones.
pub(super) fn ends_with(path: &Path, ending: &str) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_encoded_bytes().to_ascii_lowercase().ends_with(ending.as_bytes()))
}

/// Refuses a file whose ending is known, and is none of `own`. `what` says what the option writes: `a flame
/// graph is SVG`.
///
/// # Errors
/// A sentence that names the option and the endings of its files.
pub(super) fn check_ending(option: &str, path: &Path, what: &str, own: &[&str]) -> Result<(), UsageError> {
    let formats = FORMATS.iter().flat_map(|format| format.endings);
    let is_known = formats.chain(&OTHERS).any(|ending| ends_with(path, ending));
    if !is_known || own.iter().any(|ending| ends_with(path, ending)) {
        return Ok(());
    }
    let endings = own.join(" or ");
    Err(UsageError::from(format!("{option} {}: {what}: name the file {endings}", path.display())))
}
