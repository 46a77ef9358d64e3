//! Files of the tests, and a file system that is soon full.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{Command, skip};

/// A directory for the files of one test, which goes with this value.
pub struct Files(pub TempDir);

impl Default for Files {
    fn default() -> Files {
        Files(crate::tempdir())
    }
}

impl Files {
    pub fn new() -> Files {
        Files::default()
    }

    /// Writes a file, and returns its path.
    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

/// The bytes as gzip packs them.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).expect("memory takes it");
    packer.finish().expect("memory takes it")
}

/// A zip archive of files with these paths.
pub fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    for (path, bytes) in files {
        zip.start_file(*path, zip::write::SimpleFileOptions::default()).expect("memory takes it");
        zip.write_all(bytes).expect("memory takes it");
    }
    zip.finish().expect("memory takes it").into_inner()
}

/// The names in a directory, in order.
///
/// # Panics
/// If it cannot be read.
#[track_caller]
pub fn entries(dir: &Path) -> Vec<String> {
    let read = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut names: Vec<String> =
        read.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Writes the file of a program that can be run at once, and makes its directory.
///
/// # Panics
/// If that cannot be done.
#[track_caller]
pub fn write_program(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().expect("a file has a directory")).expect("a directory for a program");
    write_executable(path, text.as_ref(), 0o755).expect("a file for a program");
}

/// The same in a directory that is there, with these permissions.
///
/// # Errors
/// The system's.
pub fn write_executable(path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    crate::command::while_no_child_starts(|| fs::write(path, bytes))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    }
    #[cfg(not(unix))]
    let _ = mode;
    Ok(())
}

/// A file system in memory, unmounted on drop.
pub struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Mounts one of this size, as in `size=64k`. Without root the test is skipped, with a message: `None`.
    pub fn mount(size: &str) -> Option<SmallDisk> {
        let dir = crate::tempdir();
        let options = format!("size={size},mode=0700");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "small"]).arg(dir.path()).output();
        if !mounted.is_ok_and(|mounted| mounted.status.success()) {
            skip("root", "mounting a small tmpfs is not permitted");
            return None;
        }
        crate::unmount_at_end(dir.path());
        Some(SmallDisk(dir))
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}
