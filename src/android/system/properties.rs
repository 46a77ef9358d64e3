//! Reads Android's system properties through `getprop`, and writes them through init's socket or `setprop`.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The socket on which init listens (bionic `system_property_set.cpp`).
const PROPERTY_SERVICE: &str = "/dev/socket/property_service";
/// `PROP_MSG_SETPROP2`, which init understands since Android 8.
const PROP_MSG_SETPROP2: u32 = 0x0002_0001;
/// How long an answer of init may take; usually it takes a few ms.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// A property could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum PropertyError {
    /// init or SELinux refused the new value.
    #[error(
        "setting the property {name} to \"{value}\" was refused ({reason}); the shell user may set debug.* properties, an app may not"
    )]
    Refused {
        /// The name of the property.
        name: String,
        /// The value that was refused.
        value: String,
        /// The words of `setprop` or init.
        reason: String,
    },
    /// `getprop` could not be started.
    #[error("reading the property {name}: running {}: {error}", program.display())]
    Read {
        /// The name of the property.
        name: String,
        /// The path of `getprop`.
        program: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
}

/// Returns the directory of Android's own programs: `$ANDROID_ROOT/bin`, usually `/system/bin`.
pub fn system_bin() -> PathBuf {
    let root = std::env::var_os("ANDROID_ROOT").unwrap_or_else(|| "/system".into());
    Path::new(&root).join("bin")
}

/// The properties of a system.
#[derive(Debug, Clone)]
pub struct Properties {
    /// The directory with `getprop` and `setprop`.
    bin: PathBuf,
}

impl Properties {
    /// Returns the properties of this system, or `None` on a Linux without properties.
    pub fn here() -> Option<Properties> {
        let properties = Properties::at(&system_bin());
        properties.bin.join("getprop").exists().then_some(properties)
    }

    /// Returns the properties that the programs in `bin` read and write.
    pub(super) fn at(bin: &Path) -> Properties {
        Properties { bin: bin.to_owned() }
    }

    /// Returns the directory of the system's own programs: `am`, `service`, `getprop`.
    pub fn bin(&self) -> &Path {
        &self.bin
    }

    /// Reads a property. The value of a property that was never set is empty.
    pub fn get(&self, name: &str) -> Result<String, PropertyError> {
        let program = self.bin.join("getprop");
        match Command::new(&program).arg(name).stdin(Stdio::null()).output() {
            Ok(output) => {
                Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches(['\n', '\r']).to_owned())
            }
            Err(error) => Err(PropertyError::Read { name: name.to_owned(), program, error }),
        }
    }

    /// Returns the API level of the system (`ro.build.version.sdk`), if it has one.
    pub fn sdk(&self) -> Option<u32> {
        self.get("ro.build.version.sdk").ok()?.trim().parse().ok()
    }

    /// Sets a property. The new value is in force when the call returns.
    pub fn set(&self, name: &str, value: &str) -> Result<(), PropertyError> {
        // The socket costs no process. Android 7 and older do not know its protocol; setprop works there too.
        if set_by_socket(Path::new(PROPERTY_SERVICE), name, value).is_ok() {
            return Ok(());
        }
        let refused = |reason: String| PropertyError::Refused {
            name: name.to_owned(),
            value: value.to_owned(),
            reason,
        };
        let output =
            Command::new(self.bin.join("setprop")).arg(name).arg(value).stdin(Stdio::null()).output();
        match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(refused(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
            Err(error) => Err(refused(error.to_string())),
        }
    }
}

fn set_by_socket(service: &Path, name: &str, value: &str) -> io::Result<()> {
    let mut socket = UnixStream::connect(service)?;
    socket.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    socket.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    let mut request = PROP_MSG_SETPROP2.to_ne_bytes().to_vec();
    for text in [name, value] {
        request.extend_from_slice(&(text.len() as u32).to_ne_bytes());
        request.extend_from_slice(text.as_bytes());
    }
    socket.write_all(&request)?;
    let mut answer = [0; 4];
    socket.read_exact(&mut answer)?;
    match u32::from_ne_bytes(answer) {
        0 => Ok(()),
        code => Err(io::Error::other(format!("init answered {code:#x}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    /// Sends one request to a stand-in for init that replies with `answer`. Returns the result and the
    /// request.
    fn request_to_init(answer: u32) -> (io::Result<()>, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("property_service");
        let listener = UnixListener::bind(&path).unwrap();
        let init = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let mut request = vec![0; 4 + 4 + 5 + 4 + 3];
            peer.read_exact(&mut request).unwrap();
            peer.write_all(&answer.to_ne_bytes()).unwrap();
            request
        });
        (set_by_socket(&path, "debug", "0x2"), init.join().unwrap())
    }

    #[test]
    fn init_is_asked_in_its_second_protocol() {
        let (result, request) = request_to_init(0);
        assert!(result.is_ok());
        let mut expected = 0x0002_0001u32.to_ne_bytes().to_vec();
        expected.extend(5u32.to_ne_bytes());
        expected.extend(b"debug");
        expected.extend(3u32.to_ne_bytes());
        expected.extend(b"0x2");
        assert_eq!(request, expected);
    }

    #[test]
    fn a_refusal_is_an_error() {
        assert!(request_to_init(0x18).0.unwrap_err().to_string().contains("0x18"));
    }
}
