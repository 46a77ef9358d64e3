//! The directory of a dataset: its days and parts with their names, its lock, and the removal of directories
//! that a killed writer has left.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::error::DatasetError;
use crate::clock::Timestamp;
use crate::file_access;
use crate::output_file::{LockedFile, REPLACED, end_replacement, try_lock};
use crate::tables::{TABLES, TableFile, TableId, TableSchema, UNFINISHED_PREFIX};
use crate::text::utc_date;

/// The file that a writer locks. It also marks the directory as a dataset.
const LOCK: &str = ".tracebridge-lock";

/// The names of the partitions' directories begin with these.
const DAY: &str = "day=";
pub(super) const PART: &str = "part=";

/// The digits of an id: 128 bits.
pub(super) const ID_DIGITS: usize = 32;

/// How often a writer that waits for another one tries to lock the dataset.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The directory of a dataset.
#[derive(Debug, Clone)]
pub(super) struct DatasetDir {
    path: PathBuf,
}

/// A dataset that this process alone writes to.
pub(super) struct LockedDataset {
    pub dir: DatasetDir,
    _lock: LockedFile,
}

/// One part: a directory with a file for each table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    /// The part's directory.
    pub dir: PathBuf,
}

/// Whether a path is the directory of a dataset.
pub fn is_dataset(path: &Path) -> bool {
    file_access::is_file(&path.join(LOCK))
}

/// The files of a table in a dataset, as paths without symbolic links. Each is a regular file.
///
/// # Errors
/// [`DatasetError`].
pub fn table_files(dataset: &Path, table: &TableSchema) -> Result<Vec<PathBuf>, DatasetError> {
    let mut files = Vec::new();
    for part in DatasetDir::open(dataset)?.parts()? {
        let file = part.dir.join(table.file_name());
        match file_access::open_regular(&file).and_then(|_| file_access::without_links(&file)) {
            Err(error) if error.kind() == ErrorKind::NotFound && table.may_be_absent() => {}
            found => files.push(found.map_err(DatasetError::io(&file))?),
        }
    }
    Ok(files)
}

impl DatasetDir {
    /// The dataset in `dir`.
    ///
    /// # Errors
    /// [`DatasetError::Missing`] and [`DatasetError::NoDataset`].
    pub fn open(dir: &Path) -> Result<DatasetDir, DatasetError> {
        let path = || dir.display().to_string();
        if !file_access::is_dir(dir) {
            return Err(DatasetError::Missing { path: path() });
        }
        if !is_dataset(dir) {
            return Err(DatasetError::NoDataset { path: path() });
        }
        Ok(DatasetDir { path: dir.to_owned() })
    }

    /// The directory's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory of the parts of a day.
    pub fn day_dir(&self, day: &str) -> PathBuf {
        self.path.join(format!("{DAY}{day}"))
    }

    /// The directories of all days, sorted.
    ///
    /// # Errors
    /// [`DatasetError::Io`].
    pub fn days(&self) -> Result<Vec<PathBuf>, DatasetError> {
        named(&self.path, DAY)
    }

    /// All parts, by day and name.
    ///
    /// # Errors
    /// [`DatasetError::Io`].
    pub fn parts(&self) -> Result<Vec<Part>, DatasetError> {
        let mut parts = Vec::new();
        for day in self.days()? {
            parts.extend(Part::all_of(&day)?);
        }
        Ok(parts)
    }

    /// The directories of writers that are at work or were killed.
    ///
    /// # Errors
    /// [`DatasetError::Io`].
    pub fn unfinished(&self) -> Result<Vec<PathBuf>, DatasetError> {
        let is_ours = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let number = name.strip_prefix(UNFINISHED_PREFIX).and_then(|rest| rest.strip_prefix('-'));
            number.is_some_and(|number| number.len() == 16 && number.bytes().all(|b| b.is_ascii_hexdigit()))
        };
        Ok(named(&self.path, UNFINISHED_PREFIX)?.into_iter().filter(is_ours).collect())
    }

    /// The ids of all traces and of all rejected inputs.
    ///
    /// # Errors
    /// [`DatasetError`].
    pub fn ids(&self) -> Result<HashSet<String>, DatasetError> {
        let mut ids = HashSet::new();
        for part in self.parts()? {
            ids.extend(part.all_ids()?);
        }
        Ok(ids)
    }
}

impl Part {
    /// The parts in the directory of a day, sorted.
    ///
    /// # Errors
    /// [`DatasetError::Io`].
    pub fn all_of(day: &Path) -> Result<Vec<Part>, DatasetError> {
        Ok(named(day, PART)?.into_iter().map(|dir| Part { dir }).collect())
    }

    /// The name of its directory: `part=…`.
    pub fn name(&self) -> &OsStr {
        self.dir.file_name().unwrap_or_default()
    }

    /// The name of the directory that it is in: `day=2026-11-22`.
    pub fn day_name(&self) -> &OsStr {
        self.dir.parent().and_then(Path::file_name).unwrap_or_default()
    }

    /// Size of its files, bytes.
    ///
    /// # Errors
    /// [`DatasetError::Io`].
    pub fn bytes(&self) -> Result<u64, DatasetError> {
        let size = |table: &TableSchema| {
            let file = self.dir.join(table.file_name());
            match file_access::metadata(&file) {
                Err(error) if error.kind() == ErrorKind::NotFound && table.may_be_absent() => Ok(0),
                meta => meta.map(|meta| meta.len()).map_err(DatasetError::io(&file)),
            }
        };
        TABLES.iter().map(size).sum()
    }

    /// The ids of its traces and of its rejected inputs.
    ///
    /// # Errors
    /// [`DatasetError::Table`].
    pub fn all_ids(&self) -> Result<Vec<String>, DatasetError> {
        Ok([self.ids(TableId::Trace)?, self.ids(TableId::Rejected)?].concat())
    }

    /// The ids in the first column of a table with a row for each.
    ///
    /// # Errors
    /// [`DatasetError::Table`].
    pub fn ids(&self, table: TableId) -> Result<Vec<String>, DatasetError> {
        let rows = TableFile::open(&self.dir, table.table())?.all_rows()?;
        Ok((0..rows.len()).filter_map(|row| rows.text(row, 0)).map(str::to_owned).collect())
    }
}

impl LockedDataset {
    /// Opens the dataset in `dir`, or makes one where there is nothing, and locks it. Where another process
    /// has locked it, calls `wait` once and waits until that process ends. Removes what killed writers have
    /// left.
    ///
    /// # Errors
    /// [`DatasetError`].
    pub fn lock(dir: &Path, wait: &mut dyn FnMut()) -> Result<LockedDataset, DatasetError> {
        fs::create_dir_all(dir).map_err(DatasetError::io(dir))?;
        let lock = dir.join(LOCK);
        if !lock.is_file() && fs::read_dir(dir).map_err(DatasetError::io(dir))?.next().is_some() {
            // Another process may have begun the same dataset just now.
            DatasetDir::open(dir)?;
        }
        let mut waits = false;
        let lock = loop {
            match try_lock(&lock).map_err(DatasetError::io(&lock))? {
                Some(lock) => break lock,
                None if !std::mem::replace(&mut waits, true) => wait(),
                None => std::thread::sleep(LOCK_POLL_INTERVAL),
            }
        };
        let dataset = DatasetDir { path: dir.to_owned() };
        for left in dataset.unfinished()? {
            fs::remove_dir_all(&left).map_err(DatasetError::io(&left))?;
        }
        end_replacements(dataset.days()?)?;
        end_replacements(dataset.parts()?.into_iter().map(|part| part.dir))?;
        Ok(LockedDataset { dir: dataset, _lock: lock })
    }
}

/// Ends the replacements of directories among `dirs` that a killed writer has begun.
fn end_replacements(dirs: impl IntoIterator<Item = PathBuf>) -> Result<(), DatasetError> {
    let replaced = dirs.into_iter().filter(|dir| dir.to_string_lossy().ends_with(REPLACED));
    replaced.into_iter().try_for_each(|dir| end_replacement(&dir).map_err(DatasetError::io(&dir)))
}

/// The directories in `dir` whose names begin with `prefix`, sorted.
fn named(dir: &Path, prefix: &str) -> Result<Vec<PathBuf>, DatasetError> {
    let mut found = Vec::new();
    for entry in file_access::entries(dir).map_err(DatasetError::io(dir))? {
        let entry = entry.map_err(DatasetError::io(dir))?;
        let has_prefix = entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
        if has_prefix && file_access::is_dir(&entry) {
            found.push(entry);
        }
    }
    found.sort();
    Ok(found)
}

/// The name of the part with these traces and rejected inputs: the same for the same ids.
pub(super) fn part_name(mut ids: Vec<String>) -> String {
    ids.sort_unstable();
    format!("{PART}{}", hex_id(ids.iter().map(String::as_bytes)))
}

/// Makes the directory that `target` is in.
pub(super) fn make_parent(target: &Path) -> io::Result<()> {
    fs::create_dir_all(target.parent().unwrap_or(Path::new(".")))
}

/// A hash of several strings of bytes, in hexadecimal digits.
pub(super) fn hex_id<'a>(parts: impl Iterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    HEXLOWER.encode(&hash.finalize()[..ID_DIGITS / 2])
}

/// The day in UTC of a time in CLOCK_REALTIME: `2026-11-22`.
pub(super) fn day_of_realtime(ts: Timestamp) -> String {
    utc_date(ts.0 / 1_000_000_000)
}

/// The day in UTC on which a file was last written; today where the system does not tell.
pub(super) fn day_of_file(path: &Path) -> String {
    let written =
        file_access::metadata(path).and_then(|meta| meta.modified()).unwrap_or_else(|_| SystemTime::now());
    utc_date(written.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}
