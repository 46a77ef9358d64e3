//! The vendor's own categories: `/vendor/etc/atrace/atrace_categories.txt` (Android 14 and newer).

/// Where a device keeps them.
pub const VENDOR_FILE: &str = "/vendor/etc/atrace/atrace_categories.txt";

/// A category that the vendor file defines, or the events it adds to one of atrace's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VendorCategory {
    /// The name on the command line.
    pub name: String,
    /// `group/event` or `group`; absent ones are no error.
    pub events: Vec<String>,
}

/// An event stands before any category.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed vendor categories file: line {line} is an event that belongs to no category")]
pub struct MalformedVendorFile {
    /// Its number, from 1.
    pub line: usize,
}

/// Reads the file: a line that starts at its left edge names a category, an indented one an event of it.
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
