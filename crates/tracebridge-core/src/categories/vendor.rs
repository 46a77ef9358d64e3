//! Parses the categories of the vendor: `/vendor/etc/atrace/atrace_categories.txt` (Android 14 and newer).

/// The path of the vendor file on a device.
pub const VENDOR_FILE: &str = "/vendor/etc/atrace/atrace_categories.txt";

/// A category that the vendor file defines, or the events it adds to one of atrace's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VendorCategory {
    /// The name on the command line.
    pub name: String,
    /// Events as `group/event` or `group`. An event that the kernel does not have is skipped.
    pub events: Vec<String>,
}

/// The vendor file has an event before its first category.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed vendor categories file: line {line} is an event that belongs to no category")]
pub struct MalformedVendorFile {
    /// The number of the line, from 1.
    pub line: usize,
}

/// Parses the file: a line without indentation names a category, an indented line names an event of it.
pub(super) fn parse(text: &str) -> Result<Vec<VendorCategory>, MalformedVendorFile> {
    let mut categories: Vec<VendorCategory> = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let name = line.trim();
        if name.is_empty() {
            continue;
        }
        if !line.starts_with([' ', '\t']) {
            categories.push(VendorCategory { name: name.to_owned(), events: Vec::new() });
        } else if let Some(category) = categories.last_mut() {
            category.events.push(name.to_owned());
        } else {
            return Err(MalformedVendorFile { line: n + 1 });
        }
    }
    Ok(categories)
}
