//! The files of an archive or a directory, whatever their container is.

use std::io::{self, Cursor, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use zip::ZipArchive;

use super::manifest::ManifestError;
use super::tar::{self, TarMember};
use crate::file_access::{self, MEMBER_SEPARATOR};
use crate::formats::input::{Input, InputError, Omission, OmissionReason};
use crate::formats::spill::{FileBytes, RELEASE_BYTES, SpillWriter, is_of_temporary_file};
use crate::formats::unpack_budget::{OverUnpackLimit, UnpackBudget, UnpackLimit, is_over_limit};

/// The most files of a container that are read.
const MAX_FILES: usize = 100_000;
/// The most directories inside each other that are searched.
const MAX_DEPTH: usize = 32;

/// The first bytes of a zip archive with a file in it.
pub(in crate::formats) const ZIP_MAGIC: &[u8] = b"PK\x03\x04";

/// Whether the bytes are those of a zip archive.
pub fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(ZIP_MAGIC)
}

/// A container of files.
pub struct Members<'a> {
    name: String,
    container: Container<'a>,
    /// Directories that are not searched, and the limit that ended the search.
    pub omissions: Vec<Omission>,
    /// Whether the archive ends before its end.
    pub is_cut: bool,
}

enum Container<'a> {
    Zip { input: &'a Input, zip: Box<ZipArchive<Cursor<&'a [u8]>>> },
    Tar { input: &'a Input, list: Vec<TarMember> },
    Directory { root: PathBuf, list: Vec<PathBuf>, budget: UnpackBudget, limit: UnpackLimit },
}

impl<'a> Members<'a> {
    /// The members of an archive; `None` for a file that is none.
    ///
    /// # Errors
    /// [`ArchiveError::Zip`] where the list of the members cannot be read.
    pub fn of_archive(input: &'a Input) -> Result<Option<Members<'a>>, ArchiveError> {
        let name = input.name.clone();
        let mut is_cut = false;
        let container = if is_zip(input) {
            let zip = ZipArchive::new(Cursor::new(&input[..]));
            let zip = zip.map_err(|source| ArchiveError::Zip { name: name.clone(), source })?;
            Container::Zip { input, zip: Box::new(zip) }
        } else if tar::is_tar(input) {
            // One more tells that there are too many.
            let (list, is_whole) = tar::members(input, MAX_FILES + 1);
            if !is_whole && list.is_empty() {
                return Err(ArchiveError::Tar { name });
            }
            is_cut = !is_whole;
            Container::Tar { input, list }
        } else {
            return Ok(None);
        };
        Ok(Some(Members { name, container, omissions: Vec::new(), is_cut }.with_limit()))
    }

    /// The files of a directory and of the directories in it. Links are not followed, because they may lead
    /// around in a circle.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn of_directory(root: &Path, limit: &UnpackLimit) -> io::Result<Members<'static>> {
        let mut list = Vec::new();
        let mut omissions = Vec::new();
        let mut omit = |dir: &Path, reason| {
            omissions.push(Omission { name: dir.display().to_string(), reason });
        };
        let mut waiting = vec![(root.to_owned(), 0)];
        'search: while let Some((dir, depth)) = waiting.pop() {
            let entries = match file_access::entries(&dir) {
                Ok(entries) => entries,
                Err(error) if depth == 0 => return Err(error),
                Err(error) => {
                    omit(&dir, OmissionReason::Unreadable(error.to_string()));
                    continue;
                }
            };
            for entry in entries.flatten().filter(|entry| !file_access::is_link(entry)) {
                let Ok(kind) = file_access::metadata(&entry) else { continue };
                if kind.is_dir() && depth < MAX_DEPTH {
                    waiting.push((entry, depth + 1));
                } else if kind.is_dir() {
                    omit(&entry, OmissionReason::TooDeep);
                } else if kind.is_file() {
                    list.push(entry);
                    // One more tells that there are too many.
                    if list.len() > MAX_FILES {
                        break 'search;
                    }
                }
            }
        }
        list.sort();
        let budget = limit.budget(0);
        let limit = limit.clone();
        let container = Container::Directory { root: root.to_owned(), list, budget, limit };
        Ok(Members { name: root.display().to_string(), container, omissions, is_cut: false }.with_limit())
    }

    /// Tells of the files that are too many.
    fn with_limit(mut self) -> Self {
        if self.entries() > MAX_FILES {
            let reason = OmissionReason::TooMany { limit: MAX_FILES };
            self.omissions.push(Omission { name: self.name.clone(), reason });
        }
        self
    }

    /// The path of the container as given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the container is a directory.
    pub(super) fn is_directory(&self) -> bool {
        matches!(self.container, Container::Directory { .. })
    }

    /// A file in it as a user names it.
    pub(super) fn named(&self, path: &str) -> String {
        match self.container {
            Container::Directory { .. } => format!("{}/{path}", self.name),
            _ => format!("{}{MEMBER_SEPARATOR}{path}", self.name),
        }
    }

    /// The name of the container's kind.
    pub fn kind(&self) -> &'static str {
        match self.container {
            Container::Zip { .. } => "zip archive",
            Container::Tar { .. } => "tar archive",
            Container::Directory { .. } => "directory",
        }
    }

    /// The bytes that the files may still unpack to.
    pub fn budget(&self) -> &UnpackBudget {
        match &self.container {
            Container::Zip { input, .. } | Container::Tar { input, .. } => &input.unpack_budget,
            Container::Directory { budget, .. } => budget,
        }
    }

    /// How many entries are searched.
    pub fn count(&self) -> usize {
        self.entries().min(MAX_FILES)
    }

    fn entries(&self) -> usize {
        match &self.container {
            Container::Zip { zip, .. } => zip.len(),
            Container::Tar { list, .. } => list.len(),
            Container::Directory { list, .. } => list.len(),
        }
    }

    /// Calls `read` with the path, the unpacked size in bytes and the contents of an entry. `None` where the
    /// entry is no file. The reader of the contents counts them against no budget: see [`unpacking_reader`].
    ///
    /// [`unpacking_reader`]: crate::formats::input::unpacking_reader
    ///
    /// # Errors
    /// The entry cannot be opened.
    pub fn read_entry<R>(
        &mut self,
        number: usize,
        read: impl FnOnce(String, u64, &mut dyn Read) -> R,
    ) -> Option<io::Result<R>> {
        match &mut self.container {
            Container::Zip { zip, .. } => match zip.by_index(number) {
                Ok(mut member) if member.is_file() => {
                    let path = String::from_utf8_lossy(member.name_raw()).into_owned();
                    let size = member.size();
                    Some(Ok(read(path, size, &mut member)))
                }
                Ok(_) => None,
                Err(error) => Some(Err(error.into())),
            },
            Container::Tar { input, list } => {
                let member = list.get(number)?;
                let mut content = input.get(member.range.clone()).unwrap_or(&[]);
                Some(Ok(read(member.path.clone(), content.len() as u64, &mut content)))
            }
            Container::Directory { root, list, .. } => {
                let path = list.get(number)?;
                let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
                Some(file_access::open(path).map(|mut file| {
                    let size = file.metadata().map_or(0, |meta| meta.len());
                    read(name, size, &mut file)
                }))
            }
        }
    }

    /// Opens the file with this path as an input.
    ///
    /// # Errors
    /// There is no such file, or it cannot be read.
    pub fn open(&mut self, path: &str) -> Result<Input, ArchiveError> {
        let name = format!("{}/{path}", self.name);
        let missing = || ArchiveError::NoMember { name: self.name.clone(), member: path.to_owned() };
        match &mut self.container {
            Container::Zip { input, zip } => {
                let number = zip.index_for_name(path).ok_or_else(missing)?;
                let zip_error = |source| ArchiveError::Zip { name: name.clone(), source };
                let member = zip.by_index(number).map_err(zip_error)?;
                let bytes = unpack(&name, member, &input.unpack_budget)?;
                Ok(Input::open_member(name, bytes, input.unpack_budget.clone())?)
            }
            Container::Tar { input, list } => {
                let member = list.iter().rfind(|member| same_path(&member.path, path)).ok_or_else(missing)?;
                let content = Releasing { input, range: member.range.clone(), read: 0 };
                let bytes = unpack(&name, content, &input.unpack_budget)?;
                let mut opened = Input::open_member(name, bytes, input.unpack_budget.clone())?;
                if member.missing > 0 {
                    let what =
                        format!("the archive is cut: {} bytes of this file are missing", member.missing);
                    opened.damage.push(crate::formats::Damage { offset: opened.len() as u64, what });
                }
                Ok(opened)
            }
            Container::Directory { root, list, limit, .. } => {
                // A manifest names files of its directory alone.
                let path = Path::new(path.trim_start_matches("./"));
                let is_named = |file: &&PathBuf| file.strip_prefix(&*root) == Ok(path);
                let file = list.iter().find(is_named).ok_or_else(missing)?;
                Ok(Input::open_within(file, limit)?)
            }
        }
    }
}

/// Whether two paths in an archive are one: `./a` is `a`.
fn same_path(a: &str, b: &str) -> bool {
    a.trim_start_matches("./") == b.trim_start_matches("./")
}

/// The contents of a file in an archive. The archive's memory is released as far as it was read.
struct Releasing<'a> {
    input: &'a Input,
    /// The bytes that are left to be read.
    range: Range<usize>,
    /// The bytes that were read since memory was released.
    read: usize,
}

impl Read for Releasing<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.input.get(self.range.clone()).unwrap_or(&[]).read(out)?;
        self.range.start += count;
        self.read += count;
        if self.read >= RELEASE_BYTES {
            self.input.release_pages(self.range.start - self.read..self.range.start);
            self.read = 0;
        }
        Ok(count)
    }
}

fn unpack(name: &str, from: impl Read, budget: &UnpackBudget) -> Result<FileBytes, ArchiveError> {
    let mut out = SpillWriter::default();
    let name = || name.to_owned();
    match budget.read_to_end(from, &mut out).and_then(|()| out.finish()) {
        Err(error) if is_over_limit(&error) => {
            Err(ArchiveError::TooBig { name: name(), source: budget.error() })
        }
        Err(source) if is_of_temporary_file(&source) => Err(InputError::Io { name: name(), source }.into()),
        Err(error) => Err(ArchiveError::Zip { name: name(), source: error.into() }),
        Ok(bytes) => Ok(bytes),
    }
}

/// So many traces are named in a message.
const NAMED_TRACES: usize = 20;

/// Why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The archive or a file in it is damaged.
    #[error("{name}: the zip archive cannot be read: {source}: unzip it and name the files in it")]
    Zip {
        /// The archive's path as given, and the file in it.
        name: String,
        /// The error of the zip's reader.
        source: zip::result::ZipError,
    },
    /// The files unpack to more than they may.
    #[error("{name}: {source}")]
    TooBig {
        /// The archive's path as given, and the file in it.
        name: String,
        /// The limit.
        source: OverUnpackLimit,
    },
    /// Not one file of a tar can be read.
    #[error("{name}: the tar archive is cut or damaged: not one file in it can be read")]
    Tar {
        /// The archive's path as given.
        name: String,
    },
    /// A file in the archive cannot be decompressed.
    #[error(transparent)]
    Member(#[from] InputError),
    /// The manifest cannot be used.
    #[error("{name}: {source}")]
    Manifest {
        /// The archive's path as given, and the manifest's in it.
        name: String,
        /// The fault.
        source: Box<ManifestError>,
    },
    /// There is no file of this name.
    #[error("{name}: holds no file {member}: `tracebridge info {name}` lists the traces in it")]
    NoMember {
        /// The archive's path as given.
        name: String,
        /// The file that was asked for.
        member: String,
    },
    /// A directory has several traces, and nothing says how they are related.
    #[error("{name}: holds {} traces: name one of them: {}", traces.len(), list(traces))]
    SeveralTraces {
        /// The archive's path as given.
        name: String,
        /// The traces in it, each as a user names it.
        traces: Vec<String>,
    },
}

/// Some traces for people.
fn list(traces: &[String]) -> String {
    let more = if traces.len() > NAMED_TRACES { ", …" } else { "" };
    format!("{}{more}", traces[..traces.len().min(NAMED_TRACES)].join(", "))
}
