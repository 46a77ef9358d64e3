//! Where the binary comes from that is pushed to a device.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::{env, fs};

use super::embedded::embedded;
use super::error::RemoteError;

/// The environment variable that names a directory with `ABI/tracebridge`.
const VARIABLE: &str = "TRACEBRIDGE_DEVICE_BINARIES";

/// The tracebridge binary for devices of this ABI: the file `ABI/tracebridge` in the directory that
/// `TRACEBRIDGE_DEVICE_BINARIES` names; else the one that a release's program carries; else that file in
/// `out/android` beside the executable or up to three directories above it, where it was built. The binary
/// runs on the device, often as root: a file that others may have made or changed is refused.
///
/// # Errors
/// [`RemoteError::NoBinary`], or [`RemoteError::Local`] for a file that cannot be read or is refused.
pub fn device_binary(abi: &str) -> Result<Cow<'static, [u8]>, RemoteError> {
    if named_directory().is_none()
        && let Some(binary) = embedded(abi).map_err(|source| {
            let path = env::current_exe().unwrap_or_default().display().to_string();
            RemoteError::Local { path, source }
        })?
    {
        return Ok(Cow::Owned(binary));
    }
    let dirs = directories();
    // The ABI's name comes from the device.
    let is_name = !abi.is_empty() && abi.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    let paths = dirs.iter().filter(|_| is_name).map(|dir| dir.join(abi).join("tracebridge"));
    let Some(path) = paths.into_iter().find(|path| path.is_file()) else {
        let looked_in = dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", ");
        return Err(RemoteError::NoBinary { abi: abi.to_owned(), looked_in });
    };
    if named_directory().is_none() {
        check_owner(&path)?;
    }
    match fs::read(&path) {
        Ok(bytes) => Ok(Cow::Owned(bytes)),
        Err(source) => Err(RemoteError::Local { path: path.display().to_string(), source }),
    }
}

/// Refuses a file `out/android/ABI/tracebridge` if it, or one of these directories, belongs to another user
/// than this one and root, or may be written to by others.
#[cfg(unix)]
fn check_owner(path: &Path) -> Result<(), RemoteError> {
    use std::os::unix::fs::MetadataExt;
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    let local = |path: &Path, source| RemoteError::Local { path: path.display().to_string(), source };
    for part in path.ancestors().take(4) {
        let meta = fs::metadata(part).map_err(|source| local(part, source))?;
        let is_foreign = meta.uid() != 0 && meta.uid() != nix::unistd::geteuid().as_raw();
        if is_foreign || meta.mode() & WRITABLE_BY_OTHERS != 0 {
            let why = format!(
                "belongs to another user, or others may write to it: no binary from there is put on a device \
                 (chmod go-w, or name the directory with {VARIABLE})"
            );
            return Err(local(part, std::io::Error::new(std::io::ErrorKind::PermissionDenied, why)));
        }
    }
    Ok(())
}

/// Nothing to check: the directory's own rights decide on Windows.
#[cfg(not(unix))]
fn check_owner(_: &Path) -> Result<(), RemoteError> {
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

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_binary_that_others_may_change_is_refused() {
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
        let elsewhere = directories();
        assert!(elsewhere.iter().all(|dir| dir.is_absolute()), "{elsewhere:?}");
    }
}
