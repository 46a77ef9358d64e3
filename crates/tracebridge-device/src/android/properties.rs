//! Reads Android's system properties through `getprop`, and writes them through init's socket or `setprop`.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use crate::child::{self, ChildKind};
use crate::step_log::{ShortValue, print_step};

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

/// Where Android is installed.
const ANDROID_ROOT: &str = "/system";
/// The directories in which Android's programs find others.
const PROGRAM_PATH: &str = "/system/bin:/system/xbin:/usr/bin:/bin";
/// Variables that Android's programs need, with the values that init gives them.
const PROGRAM_ENVIRONMENT: [(&str, &str); 5] = [
    ("PATH", PROGRAM_PATH),
    ("ANDROID_DATA", "/data"),
    ("ANDROID_ART_ROOT", "/apex/com.android.art"),
    ("ANDROID_I18N_ROOT", "/apex/com.android.i18n"),
    ("ANDROID_TZDATA_ROOT", "/apex/com.android.tzdata"),
];
/// Variables with lists of files, which init makes on the device. They are passed on if all files are of the
/// system.
const CLASS_PATHS: [&str; 2] = ["BOOTCLASSPATH", "DEX2OATBOOTCLASSPATH"];
const SYSTEM_DIRS: [&str; 4] = ["/apex/", "/system/", "/system_ext/", "/product/"];

static OTHER_ROOT: OnceLock<PathBuf> = OnceLock::new();

/// Uses the programs of another Android than that of `/system`. The command line says so with
/// `--android-root`. An environment variable cannot: it would decide what a recorder runs that is root.
pub(crate) fn use_android_root(root: PathBuf) {
    let _ = OTHER_ROOT.set(root);
}

/// Returns the directory of Android's own programs.
pub fn system_bin() -> PathBuf {
    OTHER_ROOT.get().map_or(Path::new(ANDROID_ROOT), PathBuf::as_path).join("bin")
}

/// One of Android's own programs, with the environment that Android gives it and no other variable.
pub(super) fn system_program(program: &Path) -> Command {
    let mut command = child::command(program, ChildKind::AsFromShell);
    command.env_clear().envs(PROGRAM_ENVIRONMENT).env("ANDROID_ROOT", ANDROID_ROOT).stdin(Stdio::null());
    for name in CLASS_PATHS {
        command.envs(std::env::var(name).ok().filter(|list| is_of_system(list)).map(|list| (name, list)));
    }
    command
}

/// Whether all files of a list belong to the system.
fn is_of_system(list: &str) -> bool {
    list.split(':').all(|file| {
        SYSTEM_DIRS.iter().any(|dir| file.starts_with(dir)) && file.split('/').all(|part| part != "..")
    })
}

/// The properties of a system.
#[derive(Debug, Clone)]
pub struct Properties {
    /// The directory with `getprop` and `setprop`.
    bin: PathBuf,
}

impl Properties {
    /// Returns the properties of this system, or `None` on a Linux without properties.
    pub fn find() -> Option<Properties> {
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
        match system_program(&program).arg(name).output() {
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

    /// The device and its release for people: `Pixel 8, Android 15`. `None` where neither is known.
    pub fn device(&self) -> Option<String> {
        let get = |name| self.get(name).ok().filter(|value| !value.is_empty());
        let release = get("ro.build.version.release").map(|release| format!("Android {release}"));
        let parts: Vec<String> = [get("ro.product.model"), release].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Sets a property. The new value is in force when the call returns.
    pub fn set(&self, name: &str, value: &str) -> Result<(), PropertyError> {
        print_step(format_args!("sets the property {name} to {}", ShortValue(value)));
        // The socket costs no process. Android 7 and older do not know its protocol; setprop works there too.
        if set_by_socket(Path::new(PROPERTY_SERVICE), name, value).is_ok() {
            return Ok(());
        }
        let refused = |reason: String| PropertyError::Refused {
            name: name.to_owned(),
            value: value.to_owned(),
            reason,
        };
        let output = system_program(&self.bin.join("setprop")).arg(name).arg(value).output();
        match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(refused(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
            Err(error) => Err(refused(error.to_string())),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("init answered {0:#x}")]
struct InitRefused(u32);

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
        code => Err(io::Error::other(InitRefused(code))),
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
    fn the_environment_does_not_reach_androids_programs() {
        let command = system_program(Path::new("/usr/bin/env"));
        let names: Vec<_> = command.get_envs().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        assert!(names.contains(&"PATH".to_owned()) && !names.contains(&"HOME".to_owned()), "{names:?}");
        assert!(is_of_system("/apex/com.android.art/javalib/core-oj.jar:/system/framework/framework.jar"));
        for list in ["/data/local/tmp/x.jar", "/system/a.jar:x.jar", "/system/../data/x.jar", ""] {
            assert!(!is_of_system(list), "{list}");
        }
    }

    #[test]
    fn a_refusal_is_an_error() {
        assert!(request_to_init(0x18).0.unwrap_err().to_string().contains("0x18"));
    }
}
