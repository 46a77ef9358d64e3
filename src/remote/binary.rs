//! The tracebridge binary on the device: pushed when another one, or none, is there.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::device::Device;
use super::device_binary::device_binary;
use super::error::RemoteError;
use super::paths::REMOTE_PATH;
use crate::output_file::unpredictable;

/// How long the device may take to look at a binary.
const CHECK_TIME: Duration = Duration::from_secs(30);

/// What [`Device::ensure_binary`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PushedBinary {
    /// The binary's length.
    pub bytes: u64,
    /// Whether it was pushed; else it was there.
    pub is_new: bool,
}

impl Device {
    /// Makes sure that the binary for this ABI (the device's own if `None`) is on the device and runs there.
    /// The file is compared by its SHA-256, pushed aside, verified, run once, and only then renamed.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn ensure_binary(&mut self, abi: Option<&str>) -> Result<PushedBinary, RemoteError> {
        let abi = abi.unwrap_or(&self.facts.abi);
        if abi.is_empty() {
            let (serial, machine) = (self.serial().to_owned(), self.facts.machine.clone());
            return Err(RemoteError::UnknownAbi { serial, machine });
        }
        let binary = device_binary(abi)?;
        let (hash, bytes) = (HEXLOWER.encode(&Sha256::digest(&binary)), binary.len() as u64);
        if self.facts.binary_hash.as_deref() == Some(hash.as_str()) {
            return Ok(PushedBinary { bytes, is_new: false });
        }
        let aside = format!("{REMOTE_PATH}.{:016x}.part", unpredictable());
        let mtime = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs() as u32);
        let pushed = self.push_aside(&binary, &aside, mtime).and_then(|()| self.install(abi, &aside, &hash));
        if pushed.is_err() {
            // Where the connection is lost, the next `clean` removes it.
            let _ = self.transport().run(&format!("rm -f {aside}"), Duration::from_secs(5));
        }
        pushed?;
        self.facts.binary_hash = Some(hash);
        Ok(PushedBinary { bytes, is_new: true })
    }

    fn push_aside(&self, mut binary: &[u8], aside: &str, mtime: u32) -> Result<(), RemoteError> {
        Ok(self.transport().sync()?.push(&mut binary, aside, 0o755, mtime, &mut |_| {})?)
    }

    /// Verifies the pushed file, runs it, and gives it its name. A device without `sha256sum` sends the file
    /// back to be compared.
    fn install(&self, abi: &str, aside: &str, hash: &str) -> Result<(), RemoteError> {
        let script = format!(
            "echo \"hash=$(sha256sum {aside} 2>/dev/null)\"; chmod 755 {aside}; {aside} --version >/dev/null || exit 9; \
             echo runs; mv -f {aside} {REMOTE_PATH}"
        );
        let output = self.transport().run(&script, CHECK_TIME)?;
        let text = output.text();
        let failed = |what: String, why| RemoteError::Failed { serial: self.serial().to_owned(), what, why };
        if !text.lines().any(|line| line.trim() == "runs") {
            let what = format!("the {abi} binary does not run on this device ({})", self.facts.machine);
            return Err(failed(what, output.words()));
        }
        if output.status != 0 {
            return Err(failed(format!("putting the binary at {REMOTE_PATH}"), output.words()));
        }
        let seen = text.lines().find_map(|line| line.strip_prefix("hash=")?.split_whitespace().next());
        let seen = match seen {
            Some(seen) => seen.to_owned(),
            None => {
                let mut back = Sha256::new();
                self.transport().sync()?.pull(REMOTE_PATH, &mut HashWriter(&mut back), &mut |_| {})?;
                HEXLOWER.encode(&back.finalize())
            }
        };
        if seen != hash {
            let _ = self.transport().run(&format!("rm -f {REMOTE_PATH}"), CHECK_TIME);
            return Err(RemoteError::Damaged {
                serial: self.serial().to_owned(),
                path: REMOTE_PATH.to_owned(),
                why: "the pushed binary has another SHA-256 than the one here".to_owned(),
                kept: "it is removed; push it once more",
            });
        }
        Ok(())
    }
}

/// A writer that only counts into a hash.
pub(super) struct HashWriter<'a>(pub(super) &'a mut Sha256);

impl std::io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
