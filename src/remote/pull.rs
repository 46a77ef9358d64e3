//! Files from a device, verified before they get their name.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::device::{COMMAND_TIME, Device};
use super::error::RemoteError;
use super::privilege::Privilege;
use super::words::quoted;
use crate::adb::{AdbError, Shell, ShellOutput, Sync};
use crate::output_file::{OutputFile, Readers};
use crate::progress::{self, Pass};

/// How long the device may take to begin with a file's hash, and how fast it hashes at the least, bytes/s.
const HASH_TIME: Duration = Duration::from_secs(60);
const SLOWEST_HASH: u64 = 5_000_000;

/// How a pulled file was compared with the device's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verified {
    /// By length and SHA-256.
    Sha256,
    /// By length alone: the device has no `sha256sum`.
    Size,
}

/// A file that was pulled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PulledFile {
    /// Its length.
    pub bytes: u64,
    /// How it was compared.
    pub verified: Verified,
}

impl Device {
    /// Pulls a file. Where adb's user may not read it, it is read with these rights. The file here appears
    /// under its name when it is whole: its length and its SHA-256 are those that the device says.
    ///
    /// # Errors
    /// [`RemoteError`]; nothing is left here then, and the device's file is as it was.
    pub fn pull(&self, remote: &str, local: &Path, privilege: Privilege) -> Result<PulledFile, RemoteError> {
        let mut files = self.transport().sync()?;
        let what = self.look_at(remote, privilege, &mut files)?;
        let here = |source| RemoteError::Local { path: local.display().to_string(), source };
        let output = OutputFile::create(local, Readers::AsTarget).map_err(here)?;
        // The device hashes the file while it sends it.
        let hashing =
            self.transport().start(&what.reader.command(&format!("sha256sum <{}", quoted(remote))))?;
        let pass = Pass::begin("pulling", what.size);
        // A file that grows meanwhile is refused below, and so is a device that sends without end.
        let most = if what.is_modulo_4_gib { u64::MAX } else { what.size };
        let mut to = Hashed { out: output.file(), hash: Sha256::new(), bytes: 0, most };
        self.read_into(remote, what.reader, files, &mut to).map_err(|error| match error {
            RemoteError::Adb(AdbError::Local { source, .. }) | RemoteError::Local { source, .. } => {
                here(source)
            }
            other => other,
        })?;
        drop(pass);
        let bytes = to.bytes;
        let damaged = |why| RemoteError::Damaged {
            serial: self.serial().to_owned(),
            path: remote.to_owned(),
            why,
            kept: "the device's copy is kept, and none here",
        };
        if !(bytes == what.size || what.is_modulo_4_gib && bytes % (1 << 32) == what.size) {
            return Err(damaged(format!(
                "{bytes} bytes arrived, and the file had {} when it began",
                what.size
            )));
        }
        let verified = match device_hash(hashing, bytes)? {
            None => Verified::Size,
            Some(seen) if seen == HEXLOWER.encode(&to.hash.finalize()) => Verified::Sha256,
            Some(_) => {
                return Err(damaged("what arrived has another SHA-256 than the device's file".to_owned()));
            }
        };
        output.commit().map_err(here)?;
        Ok(PulledFile { bytes, verified })
    }

    /// How long a file is, and who may read it: adb's user, else `privilege`.
    fn look_at(
        &self,
        remote: &str,
        privilege: Privilege,
        files: &mut Sync,
    ) -> Result<FileToPull, RemoteError> {
        let failed = |why: String| RemoteError::Failed {
            serial: self.serial().to_owned(),
            what: format!("pulling {remote}"),
            why,
        };
        let stat = files.stat(remote)?;
        if let Some(stat) = stat.filter(|stat| !stat.is_file()) {
            let why = if stat.is_dir() { "is a directory" } else { "is no ordinary file" };
            return Err(failed(why.to_owned()));
        }
        let path = quoted(remote);
        // Only where root comes through `su` may another than adb's user read more.
        let is_readable = || match privilege {
            Privilege::Su(_) => {
                let read = self.run_script(&format!("[ -r {path} ]"), Privilege::Shell, COMMAND_TIME)?;
                Ok::<bool, RemoteError>(read.status == 0)
            }
            _ => Ok(true),
        };
        match stat {
            Some(stat) if is_readable()? => {
                let (size, is_modulo_4_gib) = (stat.size, !stat.is_exact);
                Ok(FileToPull { size, is_modulo_4_gib, reader: Privilege::Shell })
            }
            _ => {
                let counted = self.run_script(&format!("wc -c <{path}"), privilege, COMMAND_TIME)?;
                match counted.text().trim().parse() {
                    Ok(size) if counted.status == 0 => {
                        Ok(FileToPull { size, is_modulo_4_gib: false, reader: privilege })
                    }
                    _ => Err(failed(counted.words())),
                }
            }
        }
    }

    /// Reads a file of the device.
    fn read_into(
        &self,
        remote: &str,
        reader: Privilege,
        mut files: Sync,
        to: &mut dyn Write,
    ) -> Result<(), RemoteError> {
        if !matches!(reader, Privilege::Su(_)) {
            files.pull(remote, to, &mut progress::advance)?;
            return Ok(());
        }
        let cat = ["cat".to_owned(), remote.to_owned()];
        let end = self.stream(&cat, reader, to, &|| false)?;
        match end.lost {
            Some(lost) => Err(lost.into()),
            None => Ok(()),
        }
    }
}

/// A file of the device that is to be pulled.
struct FileToPull {
    /// Its length, bytes.
    size: u64,
    /// Whether the length is known modulo 4 GiB only.
    is_modulo_4_gib: bool,
    /// Who reads it.
    reader: Privilege,
}

/// What the device's `sha256sum` prints; `None` if it has none.
fn device_hash(mut shell: Shell, bytes: u64) -> Result<Option<String>, AdbError> {
    let mut output = ShellOutput::default();
    shell.finish(HASH_TIME + Duration::from_secs(bytes / SLOWEST_HASH), &mut output)?;
    let hash = output.text().split_whitespace().next().map(str::to_owned);
    Ok(hash.filter(|hash| output.status == 0 && hash.len() == 64))
}

/// A writer that hashes and counts what it passes on.
struct Hashed<W> {
    out: W,
    hash: Sha256,
    /// How much has been passed on.
    bytes: u64,
    /// The most that may come.
    most: u64,
}

/// The device sends more of a file than it has announced.
#[derive(Debug, thiserror::Error)]
#[error("the device sends more than the {0} bytes that the file had when it began")]
struct MoreThanAnnounced(u64);

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.most - self.bytes {
            return Err(io::Error::other(MoreThanAnnounced(self.most)));
        }
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
