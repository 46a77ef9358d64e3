//! Files from a device, verified before they get their name.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::error::DeviceError;
use super::free_space::RoomKeeper;
use super::privilege::Privilege;
use super::shell_words::quoted;
use super::{COMMAND_TIMEOUT, Device};
use crate::adb::{AdbError, Pace, Shell, ShellOutput, Sync};
use crate::output_file::{OutputFile, Readers, dir_of};
use crate::progress::{self, Pass};

/// How long the device may take to begin with a file's hash.
const HASH_TIMEOUT: Duration = Duration::from_secs(60);

/// It is waited for no more than so many times as long as a device may be silent.
const HASH_TIMEOUTS: u32 = 2;

/// The speed at which the slowest device hashes a file, bytes/s.
const MIN_HASH_BYTES_PER_SECOND: u64 = 5_000_000;

/// The comparison of a pulled file with the device's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verification {
    /// By length and SHA-256.
    Sha256,
    /// By length alone: the device has no `sha256sum`.
    Size,
}

impl Verification {
    /// The word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Verification::Sha256 => "sha256",
            Verification::Size => "size",
        }
    }
}

/// A file that was pulled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PulledFile {
    /// Its length.
    pub bytes: u64,
    /// The comparison with the device's file.
    pub verification: Verification,
}

impl Device {
    /// Pulls a file. Where adb's user may not read it, it is read with these rights. The file on the host
    /// appears under its name when it is whole: its length and its SHA-256 are those that the device tells.
    ///
    /// # Errors
    /// [`DeviceError`]; no file is left on the host then, and the device's file is as it was.
    pub fn pull(&self, remote: &str, local: &Path, privilege: Privilege) -> Result<PulledFile, DeviceError> {
        let mut files = self.transport().sync()?;
        let file = self.file_to_pull(remote, privilege, &mut files)?;
        let local_error = |source| DeviceError::LocalFile { path: local.display().to_string(), source };
        let room = RoomKeeper::new(dir_of(local));
        room.check(file.size).map_err(local_error)?;
        let output = OutputFile::create(local, Readers::AsTarget).map_err(local_error)?;
        // The device hashes the file while it sends it.
        let hashing =
            self.transport().start(&file.reader.command(&format!("sha256sum <{}", quoted(remote))))?;
        let pass = Pass::begin("pulling", file.size);
        // A file that grows meanwhile is refused below, and so is a device that sends without end.
        let max_bytes = if file.is_modulo_4_gib { u64::MAX } else { file.size };
        let out = room.around(output.file());
        let mut to = HashingWriter { out, hash: Sha256::new(), bytes: 0, max_bytes };
        self.read_into(remote, file.reader, files, &mut to).map_err(|error| match error {
            DeviceError::Adb(AdbError::Local { source, .. }) | DeviceError::LocalFile { source, .. } => {
                local_error(source)
            }
            other => other,
        })?;
        drop(pass);
        let bytes = to.bytes;
        let damaged = |difference| DeviceError::Damaged {
            serial: self.serial().to_owned(),
            path: remote.to_owned(),
            difference,
            consequence: "the device's copy is kept, and none here",
        };
        if !(bytes == file.size || file.is_modulo_4_gib && bytes % (1 << 32) == file.size) {
            return Err(damaged(format!(
                "{bytes} bytes arrived, and the file had {} when it began",
                file.size
            )));
        }
        let patience = self.transport().server().timeout() * HASH_TIMEOUTS;
        let verification = match device_hash(hashing, HASH_TIMEOUT.min(patience), bytes)? {
            None => Verification::Size,
            Some(hash) if hash == HEXLOWER.encode(&to.hash.finalize()) => Verification::Sha256,
            Some(_) => {
                return Err(damaged("what arrived has another SHA-256 than the device's file".to_owned()));
            }
        };
        output.commit().map_err(local_error)?;
        log::debug!("{}: {bytes} bytes of {remote}, compared by {}", local.display(), verification.name());
        Ok(PulledFile { bytes, verification })
    }

    /// Asks for a file's length, and finds out who may read it: adb's user, else `privilege`.
    fn file_to_pull(
        &self,
        remote: &str,
        privilege: Privilege,
        files: &mut Sync,
    ) -> Result<FileToPull, DeviceError> {
        let failed = |reason: String| DeviceError::Failed {
            serial: self.serial().to_owned(),
            action: format!("pulling {remote}"),
            reason,
        };
        let stat = files.stat(remote)?;
        if let Some(stat) = stat.filter(|stat| !stat.is_file()) {
            let reason = if stat.is_dir() { "is a directory" } else { "is no ordinary file" };
            return Err(failed(reason.to_owned()));
        }
        let path = quoted(remote);
        // Only where root comes through `su` may another than adb's user read more.
        let is_readable = || match privilege {
            Privilege::Su(_) => {
                let read = self.run_script(&format!("[ -r {path} ]"), Privilege::Shell, COMMAND_TIMEOUT)?;
                Ok::<bool, DeviceError>(read.status == 0)
            }
            _ => Ok(true),
        };
        match stat {
            Some(stat) if is_readable()? => {
                let is_modulo_4_gib = !stat.is_exact;
                Ok(FileToPull { size: stat.size, is_modulo_4_gib, reader: Privilege::Shell })
            }
            _ => {
                let counted = self.run_script(&format!("wc -c <{path}"), privilege, COMMAND_TIMEOUT)?;
                match counted.text().trim().parse() {
                    Ok(size) if counted.status == 0 => {
                        Ok(FileToPull { size, is_modulo_4_gib: false, reader: privilege })
                    }
                    _ => Err(failed(counted.message())),
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
    ) -> Result<(), DeviceError> {
        if !matches!(reader, Privilege::Su(_)) {
            files.pull(remote, to)?;
            return Ok(());
        }
        let cat = ["cat".to_owned(), remote.to_owned()];
        let pace = Pace::new(self.transport().server().timeout());
        let end = self.stream(&cat, reader, to, &|| false, Some(pace), None)?;
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
    /// The rights that suffice to read it.
    reader: Privilege,
}

/// The hash that the device's `sha256sum` prints, for which it has the time `begin` besides that for the
/// bytes; `None` if the device has no such program.
fn device_hash(mut shell: Shell, begin: Duration, bytes: u64) -> Result<Option<String>, AdbError> {
    let mut output = ShellOutput::default();
    shell.finish(begin + Duration::from_secs(bytes / MIN_HASH_BYTES_PER_SECOND), &mut output)?;
    let hash = output.text().split_whitespace().next().map(str::to_owned);
    Ok(hash.filter(|hash| output.status == 0 && hash.len() == 64))
}

/// A writer that hashes and counts the bytes that it passes on.
struct HashingWriter<W> {
    out: W,
    hash: Sha256,
    /// Number of bytes that have been passed on.
    bytes: u64,
    /// More bytes than this are an error.
    max_bytes: u64,
}

/// The device sends more of a file than it has announced.
#[derive(Debug, thiserror::Error)]
#[error("the device sends more than the {0} bytes that the file had when it began")]
struct MoreThanAnnounced(u64);

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.max_bytes - self.bytes {
            return Err(io::Error::other(MoreThanAnnounced(self.max_bytes)));
        }
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        progress::advance(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
