//! The files of a directory that some reader reads, told by their first bytes alone: a glance for somebody
//! who has named no file.

use std::fs::Metadata;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Instant, SystemTime};

use super::format_id::FormatId;
use super::input::DETECTION_BYTES;
use super::input_format::identify_bytes;
use crate::file_access;

/// The most files whose first bytes are read.
const MAX_FILES: usize = 500;

/// The most entries of the directory that are looked at.
const MAX_ENTRIES: usize = 20_000;

/// A file that a reader reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadableFile {
    /// The name in its directory. Names that are not UTF-8 are left out: no command line could hold them.
    pub name: String,
    /// The format that its first bytes have.
    pub format: FormatId,
}

/// The files directly in `dir` that a reader reads, the youngest first. Hidden files, files that cannot be
/// read, and what comes after `deadline` or after some hundred files is left out.
///
/// # Errors
/// The system's error where the directory cannot be read.
pub fn readable_files(dir: &Path, deadline: Instant) -> io::Result<Vec<ReadableFile>> {
    let mut candidates: Vec<(SystemTime, String)> = Vec::new();
    for entry in file_access::entries(dir)?.take(MAX_ENTRIES).map_while(Result::ok) {
        if Instant::now() > deadline {
            break;
        }
        let Some(name) = entry.file_name().and_then(|name| name.to_str()).map(str::to_owned) else {
            continue;
        };
        // A FIFO would wait for its writer.
        let known = file_access::metadata(&entry).ok().filter(Metadata::is_file);
        let Some(known) = known.filter(|known| known.len() > 0 && !name.starts_with('.')) else { continue };
        candidates.push((known.modified().unwrap_or(SystemTime::UNIX_EPOCH), name));
    }
    candidates.sort_unstable_by(|a, b| (b.0, &a.1).cmp(&(a.0, &b.1)));
    candidates.truncate(MAX_FILES);
    let mut first_bytes = Vec::with_capacity(DETECTION_BYTES);
    let mut found = Vec::new();
    for (_, name) in candidates {
        if Instant::now() > deadline {
            break;
        }
        first_bytes.clear();
        let Ok(file) = file_access::open(&dir.join(&name)) else { continue };
        if file.take(DETECTION_BYTES as u64).read_to_end(&mut first_bytes).is_err() {
            continue;
        }
        if let Ok(format) = identify_bytes(&first_bytes) {
            found.push(ReadableFile { name, format });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_youngest_readable_file_comes_first_and_others_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let text = b" a-7 (    7) [000] d..1 1.5: tracing_mark_write: I|7|x\n";
        for (name, seconds, bytes) in [
            ("old.txt", 1, &text[..]),
            ("new.txt", 3, text),
            ("notes.txt", 4, b"no trace\n"),
            (".hidden.txt", 5, text),
            ("empty.dat", 6, b""),
        ] {
            let path = dir.path().join(name);
            fs::write(&path, bytes).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        }
        fs::create_dir(dir.path().join("directory.dat")).unwrap();
        let later = Instant::now() + Duration::from_secs(3600);
        let names = |deadline| {
            let found = readable_files(dir.path(), deadline).unwrap();
            found.into_iter().map(|file| (file.name, file.format)).collect::<Vec<_>>()
        };
        let text = FormatId::FtraceText;
        assert_eq!(names(later), [("new.txt".to_owned(), text), ("old.txt".to_owned(), text)]);
        // The time is over before the first file.
        assert_eq!(names(Instant::now().checked_sub(Duration::from_secs(1)).unwrap()), []);
        assert!(readable_files(&dir.path().join("none"), later).is_err());
    }
}
