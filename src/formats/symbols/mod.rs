//! Files with the symbols of programs and libraries: ELF files, and the texts of Breakpad. They are found in
//! a directory by their contents, and belong to a file of a recording by their build id.
//!
//! A directory may be Android's `symbols/`, an app's `obj/local/`, `.build-id/` of a distribution, or any
//! other with such files in it.

mod address;
mod breakpad;
mod dwarf;
mod elf;
#[cfg(test)]
mod hostile_tests;
mod work_limit;

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use self::work_limit::OverWorkLimit;
use super::mapped_file::MappedFile;
use super::unpack_budget::UnpackLimit;
use crate::file_access;

pub(crate) use address::{FunctionNames, SymbolAddress};

/// The most files that are looked at, and the deepest directories.
const MAX_FILES: usize = 1 << 17;
const MAX_DEPTH: usize = 64;
/// So many bytes show what kind of file it is.
const HEAD_BYTES: usize = 4096;

/// The kind of a file with symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SymbolFileKind {
    Elf,
    Breakpad,
}

/// A file with symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SymbolFile {
    path: PathBuf,
    kind: SymbolFileKind,
    /// In hexadecimal digits; empty where the file has none.
    build_id: String,
    /// The name of the program or the library.
    name: String,
}

/// How a file of a recording was found among files with symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SymbolMatch {
    /// These files have its build id.
    BuildId(Vec<usize>),
    /// The recording has no build id for it, and these files have its name.
    NameAlone(Vec<usize>),
    /// Files of its name have other build ids.
    OtherBuildId,
    /// No file has its build id or its name.
    Missing,
}

/// The files with symbols in some directories.
#[derive(Debug, Default)]
pub struct SymbolDirectory {
    files: Vec<SymbolFile>,
    by_build_id: HashMap<String, Vec<usize>>,
    by_name: HashMap<String, Vec<usize>>,
    /// Whether there are more files than are looked at.
    is_partial: bool,
    /// The limit on what their sections may unpack to.
    limit: UnpackLimit,
}

/// Why functions lack names that a file may have for them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SymbolFault {
    /// A section cannot be unpacked.
    #[error(transparent)]
    Section(io::Error),
    /// The symbols take too much work.
    #[error(transparent)]
    Work(OverWorkLimit),
}

/// The functions at some addresses.
#[derive(Debug)]
pub(crate) struct SymbolNames {
    /// In the order of the addresses.
    pub(crate) names: Vec<Option<FunctionNames>>,
    pub(crate) fault: Option<SymbolFault>,
}

impl SymbolDirectory {
    /// Looks for files with symbols in these directories. A file is looked at itself. Their sections are
    /// unpacked within `limit`.
    ///
    /// # Errors
    /// Those of a named path that cannot be read. What cannot be read inside of it has no symbols.
    pub fn open(paths: &[PathBuf], limit: &UnpackLimit) -> io::Result<SymbolDirectory> {
        let mut found = SymbolDirectory { limit: limit.clone(), ..SymbolDirectory::default() };
        let mut looked_at = 0;
        for path in paths {
            let metadata = file_access::metadata(path).map_err(|error| named(path, &error))?;
            if !metadata.is_dir() {
                found.look_at(path);
                continue;
            }
            drop(file_access::entries(path).map_err(|error| named(path, &error))?);
            let mut directories = vec![(path.clone(), 0)];
            while let Some((directory, depth)) = directories.pop() {
                let Ok(entries) = file_access::entries(&directory) else { continue };
                let mut entries: Vec<PathBuf> = entries.flatten().collect();
                entries.sort();
                for entry in entries {
                    looked_at += 1;
                    if looked_at > MAX_FILES {
                        found.is_partial = true;
                        return Ok(found);
                    }
                    // A link to a directory may lead back.
                    let is_directory = !file_access::is_link(&entry) && file_access::is_dir(&entry);
                    if is_directory && depth < MAX_DEPTH {
                        directories.push((entry, depth + 1));
                    } else if file_access::is_file(&entry) {
                        found.look_at(&entry);
                    }
                }
            }
        }
        Ok(found)
    }

    /// The number of files with symbols.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there is no file with symbols.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Whether there are more files than are looked at.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    fn look_at(&mut self, path: &Path) {
        let Some(file) = identified(path) else { return };
        let number = self.files.len();
        if !file.build_id.is_empty() {
            self.by_build_id.entry(file.build_id.clone()).or_default().push(number);
        }
        self.by_name.entry(file.name.clone()).or_default().push(number);
        self.files.push(file);
    }

    /// The files with the symbols of a file of a recording.
    pub(crate) fn find(&self, path: &str, build_id: &str) -> SymbolMatch {
        let build_id = trimmed_build_id(build_id);
        if let Some(files) = self.by_build_id.get(build_id).filter(|_| !build_id.is_empty()) {
            return SymbolMatch::BuildId(files.clone());
        }
        let name = path.rsplit('/').next().unwrap_or("");
        match self.by_name.get(name) {
            Some(files) if build_id.is_empty() => SymbolMatch::NameAlone(files.clone()),
            Some(_) => SymbolMatch::OtherBuildId,
            None => SymbolMatch::Missing,
        }
    }

    /// The functions at `addresses`, by the first of `files` that has one.
    pub(crate) fn names(&self, files: &[usize], addresses: &[SymbolAddress]) -> SymbolNames {
        let mut names = vec![None; addresses.len()];
        let mut fault = None;
        for file in files.iter().filter_map(|number| self.files.get(*number)) {
            let open: Vec<usize> = (0..names.len()).filter(|at| names[*at].is_none()).collect();
            if open.is_empty() {
                break;
            }
            let Some(map) = mapped(&file.path) else { continue };
            let asked: Vec<SymbolAddress> = open.iter().map(|at| addresses[*at]).collect();
            let found = match file.kind {
                SymbolFileKind::Elf => elf::names(&map, &asked, &self.limit.budget(map.len() as u64)),
                SymbolFileKind::Breakpad => breakpad::names(&map, &asked),
            };
            for (at, name) in open.into_iter().zip(found.names) {
                names[at] = name;
            }
            fault = fault.or(found.fault);
        }
        SymbolNames { names, fault }
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn mapped(path: &Path) -> Option<MappedFile> {
    let file = file_access::open(path).ok()?;
    let is_empty = file.metadata().ok()?.len() == 0;
    if is_empty { None } else { MappedFile::new(file, &path.display().to_string()).ok() }
}

/// The file with symbols at a path; `None` for other files.
fn identified(path: &Path) -> Option<SymbolFile> {
    let mut head = Vec::new();
    file_access::open(path).ok()?.take(HEAD_BYTES as u64).read_to_end(&mut head).ok()?;
    let file_name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if elf::detect(&head) {
        let map = mapped(path)?;
        let build_id = elf::build_id(&map)?;
        let build_id = trimmed_build_id(&build_id).to_owned();
        return Some(SymbolFile {
            path: path.to_owned(),
            kind: SymbolFileKind::Elf,
            build_id,
            name: file_name,
        });
    }
    let module = breakpad::module(&head)?;
    let build_id = trimmed_build_id(&module.build_id).to_owned();
    let name = if module.name.is_empty() { file_name } else { module.name };
    Some(SymbolFile { path: path.to_owned(), kind: SymbolFileKind::Breakpad, build_id, name })
}

/// A build id without the zeros that fill it up to 20 bytes in recordings. A Breakpad text without the whole
/// id has its first 16 bytes.
fn trimmed_build_id(build_id: &str) -> &str {
    let mut id = build_id;
    while let Some(rest) = id.strip_suffix("00") {
        id = rest;
    }
    id
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const BREAKPAD: &str = "MODULE Linux arm64 DDCCBBAA22114433556677889900AABB0 libx.so\n\
        INFO CODE_ID AABBCCDD112233445566778899\nINLINE_ORIGIN 0 inlined()\nFUNC 1000 40 0 outer\n\
        INLINE 0 5 0 0 1010 8\nFUNC m 2000 10 0 other\nPUBLIC 3000 0 last\n";

    #[test]
    fn a_file_is_found_by_its_build_id_and_by_its_name_alone_only_without_one() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("inside")).unwrap();
        fs::write(dir.path().join("inside/x.sym"), BREAKPAD).unwrap();
        fs::write(dir.path().join("text"), "no symbols").unwrap();
        fs::write(dir.path().join("empty"), "").unwrap();
        let found = SymbolDirectory::open(&[dir.path().to_owned()], &UnpackLimit::default()).unwrap();
        assert_eq!(found.len(), 1);
        let by_id = found.find("/system/lib64/other.so", "aabbccdd11223344556677889900000000000000");
        assert_eq!(by_id, SymbolMatch::BuildId(vec![0]), "zeros fill the id of the recording");
        assert_eq!(found.find("/system/lib64/libx.so", ""), SymbolMatch::NameAlone(vec![0]));
        assert_eq!(found.find("/system/lib64/libx.so", "0102"), SymbolMatch::OtherBuildId);
        assert_eq!(found.find("/system/lib64/liby.so", ""), SymbolMatch::Missing);
        let at = |address| SymbolAddress { address, is_offset: false };
        let names = found.names(&[0], &[at(0x1012), at(0x1020), at(0x2001), at(0x2010), at(0x3005), at(0)]);
        let name = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        let expected =
            [name(&["outer", "inlined()"]), name(&["outer"]), name(&["other"]), None, name(&["last"]), None];
        assert_eq!(names.names, expected);
        assert!(SymbolDirectory::open(&[dir.path().join("missing")], &UnpackLimit::default()).is_err());
    }
}
