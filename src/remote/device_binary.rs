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
/// `out/android` of the current directory, or in `out/android` beside the executable or up to three
/// directories above it.
///
/// # Errors
/// [`RemoteError::NoBinary`], or [`RemoteError::Local`] for a file that cannot be read.
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
    match fs::read(&path) {
        Ok(bytes) => Ok(Cow::Owned(bytes)),
        Err(source) => Err(RemoteError::Local { path: path.display().to_string(), source }),
    }
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
    let above =
        executable.iter().flat_map(|path| path.ancestors().skip(1).take(4).map(|dir| dir.join(&built)));
    [built.clone()].into_iter().chain(above).collect()
}
