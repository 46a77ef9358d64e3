//! The tracebridge binary on a device: where it comes from, its push when another one, or none, is there, and
//! what is said of one that another build has pushed.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{env, fs, io};

use data_encoding::HEXLOWER;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::Device;
use super::error::DeviceError;
use super::facts::{BINARY_PATH, printable_text};
use crate::output_file::unpredictable;

/// How long the device may take to verify and run a binary.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a device may take to tell the version of the binary on it.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

/// The environment variable that names a directory with `ABI/tracebridge`.
const VARIABLE: &str = "TRACEBRIDGE_DEVICE_BINARIES";

/// ABI and binary, compressed with zstd, of each device binary that a release's host binary carries, as
/// build.rs found them. A host binary that is built without `scripts/dist` carries none.
const EMBEDDED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// `e_machine` of the ELF head of each ABI's programs.
const ELF_MACHINES: [(&str, u16); 4] = [("arm64-v8a", 183), ("armeabi-v7a", 40), ("x86", 3), ("x86_64", 62)];

/// The binary that is on a device after [`Device::ensure_binary`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstalledBinary {
    /// The binary's length.
    pub bytes: u64,
    /// Whether it was pushed; else it was there.
    pub is_new: bool,
}

/// The binary on a device beside the one that this program would put there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushedBinary {
    /// None is there, or the device has no `sha256sum` to tell.
    Absent,
    /// It is the one that this program would push.
    Same,
    /// It is another one. Its version, where it tells one: `0.1.0`.
    Other(Option<String>),
    /// One is there, and this program has none for the device's ABI to compare it with.
    Incomparable,
}

impl PushedBinary {
    /// The word in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            PushedBinary::Absent => "none",
            PushedBinary::Same => "same",
            PushedBinary::Other(_) => "other",
            PushedBinary::Incomparable => "unknown",
        }
    }

    /// The warning about a binary that another build has pushed.
    pub fn warning(&self) -> Option<String> {
        let PushedBinary::Other(version) = self else { return None };
        let own = env!("CARGO_PKG_VERSION");
        let there = match version.as_deref() {
            Some(version) if version == own => format!("another build of tracebridge {own}"),
            Some(version) => format!("tracebridge {version}, and this is {own}"),
            None => "another build of tracebridge, which does not tell its version".to_owned(),
        };
        Some(format!(
            "{BINARY_PATH} is {there}: `tracebridge adb push` replaces it, as do the commands that need it"
        ))
    }
}

/// A device binary that this program carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct EmbeddedBinary {
    /// Android's name of the ABI: `arm64-v8a`.
    pub abi: &'static str,
    /// The binary's length.
    pub bytes: u64,
    /// The SHA-256 of the binary, in hexadecimal digits.
    pub sha256: String,
}

/// Whether this program carries device binaries.
pub fn has_embedded_binaries() -> bool {
    !EMBEDDED.is_empty()
}

/// The device binaries that this program carries, each unpacked and looked at.
///
/// # Errors
/// [`io::Error`] that names the ABI whose binary cannot be unpacked or is none for that ABI: the program's
/// file is damaged.
pub fn embedded_binaries() -> io::Result<Vec<EmbeddedBinary>> {
    EMBEDDED.iter().map(|(abi, packed)| EmbeddedBinary::unpack(abi, packed)).collect()
}

impl EmbeddedBinary {
    fn unpack(abi: &'static str, packed: &[u8]) -> io::Result<EmbeddedBinary> {
        let damaged =
            |fault: String| io::Error::new(io::ErrorKind::InvalidData, format!("the {abi} binary {fault}"));
        let binary =
            zstd::decode_all(packed).map_err(|error| damaged(format!("does not unpack: {error}")))?;
        if !is_program_for(abi, &binary) {
            return Err(damaged(format!("is no ELF program for {abi}")));
        }
        let sha256 = HEXLOWER.encode(&Sha256::digest(&binary));
        Ok(EmbeddedBinary { abi, bytes: binary.len() as u64, sha256 })
    }
}

/// Whether the head of an ELF file names the machine of an ABI. Of an ABI that is not known any machine will
/// do.
fn is_program_for(abi: &str, binary: &[u8]) -> bool {
    let machine = binary.get(18..20).map(|machine| u16::from_le_bytes([machine[0], machine[1]]));
    let expected = ELF_MACHINES.iter().find(|(name, _)| *name == abi).map(|(_, machine)| *machine);
    binary.starts_with(b"\x7fELF") && expected.is_none_or(|expected| machine == Some(expected))
}

impl Device {
    /// Compares the binary on the device with the one that this program would put there. The device is asked
    /// only for the version of another one.
    pub fn pushed_binary(&self) -> PushedBinary {
        let Some(there) = self.facts.binary_hash.as_deref() else { return PushedBinary::Absent };
        let Ok(own) = find_binary(&self.facts.abi) else { return PushedBinary::Incomparable };
        if HEXLOWER.encode(&Sha256::digest(&own)) == there {
            return PushedBinary::Same;
        }
        let said = self.transport().run(&format!("{BINARY_PATH} --version </dev/null"), VERSION_TIMEOUT);
        let version = said.ok().filter(|said| said.status == 0).and_then(|said| {
            let first = said.text().lines().next().map(printable_text)?;
            first.strip_prefix("tracebridge ").map(str::to_owned)
        });
        PushedBinary::Other(version)
    }

    /// Makes sure that the binary for this ABI (the device's own if `None`) is on the device and runs there.
    /// The file is compared by its SHA-256, pushed aside, verified, run once, and only then renamed.
    ///
    /// # Errors
    /// [`DeviceError`].
    pub fn ensure_binary(&mut self, abi: Option<&str>) -> Result<InstalledBinary, DeviceError> {
        let abi = abi.unwrap_or(&self.facts.abi);
        if abi.is_empty() {
            return Err(DeviceError::UnknownAbi {
                serial: self.serial().to_owned(),
                machine: self.facts.machine.clone(),
            });
        }
        let binary = find_binary(abi)?;
        let hash = HEXLOWER.encode(&Sha256::digest(&binary));
        let bytes = binary.len() as u64;
        if self.facts.binary_hash.as_deref() == Some(hash.as_str()) {
            return Ok(InstalledBinary { bytes, is_new: false });
        }
        let aside = format!("{BINARY_PATH}.{:016x}.part", unpredictable());
        let mtime = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs() as u32);
        let pushed = self.push_aside(&binary, &aside, mtime).and_then(|()| self.install(abi, &aside, &hash));
        if pushed.is_err() {
            // Where the connection is lost, the next `clean` removes it.
            let _ = self.transport().run(&format!("rm -f {aside}"), Duration::from_secs(5));
        }
        pushed?;
        self.facts.binary_hash = Some(hash);
        Ok(InstalledBinary { bytes, is_new: true })
    }

    fn push_aside(&self, mut binary: &[u8], aside: &str, mtime: u32) -> Result<(), DeviceError> {
        Ok(self.transport().sync()?.push(&mut binary, aside, 0o755, mtime)?)
    }

    /// Verifies the pushed file, runs it, and gives it its name. A device without `sha256sum` sends the file
    /// back to be compared.
    fn install(&self, abi: &str, aside: &str, hash: &str) -> Result<(), DeviceError> {
        let script = format!(
            "echo \"hash=$(sha256sum {aside} 2>/dev/null)\"; chmod 755 {aside}; {aside} --version >/dev/null || exit 9; \
             echo runs; mv -f {aside} {BINARY_PATH}"
        );
        let output = self.transport().run(&script, CHECK_TIMEOUT)?;
        let text = output.text();
        let failed =
            |action: String, reason| DeviceError::Failed { serial: self.serial().to_owned(), action, reason };
        if !text.lines().any(|line| line.trim() == "runs") {
            let action = format!("the {abi} binary does not run on this device ({})", self.facts.machine);
            return Err(failed(action, output.message()));
        }
        if output.status != 0 {
            return Err(failed(format!("putting the binary at {BINARY_PATH}"), output.message()));
        }
        let device_hash = text.lines().find_map(|line| line.strip_prefix("hash=")?.split_whitespace().next());
        let device_hash = match device_hash {
            Some(hash) => hash.to_owned(),
            None => {
                let mut pulled = Sha256::new();
                self.transport().sync()?.pull(BINARY_PATH, &mut HashWriter(&mut pulled))?;
                HEXLOWER.encode(&pulled.finalize())
            }
        };
        if device_hash != hash {
            let _ = self.transport().run(&format!("rm -f {BINARY_PATH}"), CHECK_TIMEOUT);
            return Err(DeviceError::Damaged {
                serial: self.serial().to_owned(),
                path: BINARY_PATH.to_owned(),
                difference: "the pushed binary has another SHA-256 than the one here".to_owned(),
                consequence: "it is removed; push it once more",
            });
        }
        Ok(())
    }
}

/// The SHA-256 of a file of this computer, in hexadecimal digits.
///
/// # Errors
/// The system's error.
pub fn file_sha256(path: &Path) -> io::Result<String> {
    let mut sum = Sha256::new();
    io::copy(&mut fs::File::open(path)?, &mut HashWriter(&mut sum))?;
    Ok(HEXLOWER.encode(&sum.finalize()))
}

/// A writer whose bytes go into a hash and nowhere else.
struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The tracebridge binary for devices of this ABI: the file `ABI/tracebridge` in the directory that
/// `TRACEBRIDGE_DEVICE_BINARIES` names; else the one that a release's program carries; else that file in
/// `out/android` beside the executable or up to three directories above it, where it was built. The binary
/// runs on the device, often as root: a file that others may have made or changed is refused.
///
/// # Errors
/// [`DeviceError::NoBinary`], [`DeviceError::UntrustedBinary`], or [`DeviceError::LocalFile`] for a file that
/// cannot be read.
fn find_binary(abi: &str) -> Result<Cow<'static, [u8]>, DeviceError> {
    if named_directory().is_none()
        && let Some(binary) = unpack(EMBEDDED, abi).map_err(|source| {
            let path = env::current_exe().unwrap_or_default().display().to_string();
            DeviceError::LocalFile { path, source }
        })?
    {
        return Ok(Cow::Owned(binary));
    }
    let dirs = directories();
    // The ABI's name comes from the device.
    let is_name = !abi.is_empty() && abi.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    let paths = dirs.iter().filter(|_| is_name).map(|dir| dir.join(abi).join("tracebridge"));
    let Some(path) = paths.into_iter().find(|path| path.is_file()) else {
        let directories = dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", ");
        return Err(DeviceError::NoBinary { abi: abi.to_owned(), directories });
    };
    if named_directory().is_none() {
        check_owner(&path)?;
    }
    match fs::read(&path) {
        Ok(bytes) => Ok(Cow::Owned(bytes)),
        Err(source) => Err(DeviceError::LocalFile { path: path.display().to_string(), source }),
    }
}

/// The binary for an ABI by Android's name (`arm64-v8a`), of a table such as [`EMBEDDED`]. Returns `None` if
/// the table has none for it.
///
/// # Errors
/// If the program's own copy cannot be unpacked, which means that the program's file is damaged.
fn unpack(table: &[(&str, &[u8])], abi: &str) -> io::Result<Option<Vec<u8>>> {
    let found = table.iter().find(|(name, _)| *name == abi);
    found.map(|(_, packed)| zstd::decode_all(*packed)).transpose()
}

/// Refuses a file `out/android/ABI/tracebridge` if it, or one of these directories, belongs to another user
/// than this one and root, or may be written to by others.
#[cfg(unix)]
fn check_owner(path: &Path) -> Result<(), DeviceError> {
    use std::os::unix::fs::MetadataExt;
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    for part in path.ancestors().take(4) {
        let meta = fs::metadata(part)
            .map_err(|source| DeviceError::LocalFile { path: part.display().to_string(), source })?;
        let is_foreign = meta.uid() != 0 && meta.uid() != nix::unistd::geteuid().as_raw();
        if is_foreign || meta.mode() & WRITABLE_BY_OTHERS != 0 {
            return Err(DeviceError::UntrustedBinary { path: part.display().to_string() });
        }
    }
    Ok(())
}

/// Nothing to check: the directory's own rights decide on Windows.
#[cfg(not(unix))]
fn check_owner(_: &Path) -> Result<(), DeviceError> {
    Ok(())
}

fn named_directory() -> Option<PathBuf> {
    env::var_os(VARIABLE).filter(|dir| !dir.is_empty()).map(PathBuf::from)
}

fn directories() -> Vec<PathBuf> {
    if let Some(dir) = named_directory() {
        return vec![dir];
    }
    let built = Path::new("out").join("android");
    let executable = env::current_exe().ok();
    executable.iter().flat_map(|path| path.ancestors().skip(1).take(4).map(|dir| dir.join(&built))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_is_unpacked_by_its_abi_and_a_damaged_one_is_an_error() {
        let packed = zstd::encode_all(&b"\x7fELF of arm64"[..], 1).unwrap();
        let table = [("arm64-v8a", &packed[..]), ("x86", &packed[..packed.len() - 1])];
        assert_eq!(unpack(&table, "arm64-v8a").unwrap(), Some(b"\x7fELF of arm64".to_vec()));
        assert_eq!(unpack(&table, "arm64").unwrap(), None);
        assert!(unpack(&table, "x86").is_err());
    }

    #[test]
    fn an_embedded_binary_is_one_for_its_abi() {
        let elf = |machine: u8| [&b"\x7fELF"[..], &[0; 14], &[machine, 0, 0]].concat();
        let packed = |binary: &[u8]| zstd::encode_all(binary, 1).unwrap();
        let found = EmbeddedBinary::unpack("arm64-v8a", &packed(&elf(183))).unwrap();
        assert_eq!(found.bytes, 21);
        assert_eq!(found.sha256, HEXLOWER.encode(&Sha256::digest(elf(183))));
        for (abi, machine) in [("armeabi-v7a", 40), ("x86", 3), ("x86_64", 62), ("riscv64", 243)] {
            assert!(EmbeddedBinary::unpack(abi, &packed(&elf(machine))).is_ok(), "{abi}");
        }
        let fault = |packed: &[u8]| EmbeddedBinary::unpack("x86", packed).unwrap_err().to_string();
        assert_eq!(fault(&packed(&elf(62))), "the x86 binary is no ELF program for x86");
        assert_eq!(fault(&packed(b"")), "the x86 binary is no ELF program for x86");
        let cut = packed(&elf(3));
        assert!(fault(&cut[..cut.len() - 1]).starts_with("the x86 binary does not unpack: "));
    }

    #[test]
    fn a_binary_of_another_build_is_named_by_its_version() {
        let own = env!("CARGO_PKG_VERSION");
        let other = |version: &str| PushedBinary::Other(Some(version.to_owned())).warning().unwrap();
        assert!(other("9.9.9").contains(&format!("is tracebridge 9.9.9, and this is {own}")));
        assert!(other(own).contains(&format!("is another build of tracebridge {own}")));
        assert!(PushedBinary::Other(None).warning().unwrap().contains("does not tell its version"));
        for quiet in [PushedBinary::Absent, PushedBinary::Same, PushedBinary::Incomparable] {
            assert_eq!(quiet.warning(), None, "{}", quiet.name());
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_binary_that_others_may_change_is_refused() {
        use std::os::unix::fs::PermissionsExt;

        let dir = tempfile::tempdir().unwrap();
        let abi = dir.path().join("out/android/x86_64");
        fs::create_dir_all(&abi).unwrap();
        let path = abi.join("tracebridge");
        fs::write(&path, "ELF").unwrap();
        let chmod = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        for part in path.ancestors().take(4) {
            chmod(part, 0o755);
        }
        check_owner(&path).unwrap();
        for part in path.ancestors().take(4) {
            for mode in [0o775, 0o757] {
                chmod(part, mode);
                let error = check_owner(&path).unwrap_err().to_string();
                assert!(error.contains(&part.display().to_string()) && error.contains("go-w"), "{error}");
            }
            chmod(part, 0o755);
        }
        let searched = directories();
        assert!(searched.iter().all(|dir| dir.is_absolute()), "{searched:?}");
    }
}
