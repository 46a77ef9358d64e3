//! The adb server: its address, its start, and its answers about devices.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::attached::AttachedDevice;
use super::connection::Connection;
use super::error::AdbError;
use crate::child::{self, ChildKind};

/// adb's own port.
const DEFAULT_PORT: u16 = 5037;

/// How long a device or the server may be silent while something is due, unless [`TIMEOUT_VARIABLE`] is set.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The environment variable with that time, in seconds.
const TIMEOUT_VARIABLE: &str = "TRACEBRIDGE_ADB_TIMEOUT";

/// How long `adb start-server` may take.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// The adb server that this process uses. It is started if none runs; a running one is used as it is, of
/// whatever version, and never ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    host: String,
    port: u16,
    /// How long it may be silent while something is due.
    timeout: Duration,
}

impl Server {
    /// The server that `ADB_SERVER_SOCKET` (`tcp:HOST:PORT` or `tcp:PORT`) or `ANDROID_ADB_SERVER_PORT`
    /// names, else that of this machine at port 5037. It is not contacted.
    ///
    /// # Errors
    /// [`AdbError::BadVariable`].
    pub fn from_environment() -> Result<Server, AdbError> {
        let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let server =
            Server::from_variables(variable("ADB_SERVER_SOCKET"), variable("ANDROID_ADB_SERVER_PORT"))?;
        let Some(value) = variable(TIMEOUT_VARIABLE) else { return Ok(server) };
        match value.parse() {
            Ok(seconds @ 1..=86_400) => Ok(Server { timeout: Duration::from_secs(seconds), ..server }),
            _ => {
                let rule = "it must be a number of seconds, 1 to 86400";
                Err(AdbError::BadVariable { variable: TIMEOUT_VARIABLE, value, rule })
            }
        }
    }

    fn from_variables(socket: Option<String>, port: Option<String>) -> Result<Server, AdbError> {
        if let Some(value) = socket {
            let address = value.strip_prefix("tcp:").map(|rest| rest.rsplit_once(':').unwrap_or(("", rest)));
            let (host, port) = address.unwrap_or_default();
            return Server::at(host.trim_matches(['[', ']']), port).ok_or_else(|| AdbError::BadVariable {
                variable: "ADB_SERVER_SOCKET",
                value: value.clone(),
                rule: "it must be tcp:HOST:PORT or tcp:PORT",
            });
        }
        let Some(value) = port else {
            return Ok(Server { host: localhost(), port: DEFAULT_PORT, timeout: DEFAULT_TIMEOUT });
        };
        Server::at("", &value).ok_or_else(|| AdbError::BadVariable {
            variable: "ANDROID_ADB_SERVER_PORT",
            value: value.clone(),
            rule: "it must be a port's number",
        })
    }

    /// The server at this host, this machine if it is empty. `None` if `port` is no port's number.
    fn at(host: &str, port: &str) -> Option<Server> {
        let port = port.parse().ok().filter(|port| *port > 0)?;
        let host = if host.is_empty() || host == "localhost" { localhost() } else { host.to_owned() };
        Some(Server { host, port, timeout: DEFAULT_TIMEOUT })
    }

    /// How long a device may be silent, or away, while something is due.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The server's address, for messages.
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Makes sure that a server answers: starts one on this machine if none does.
    ///
    /// # Errors
    /// [`AdbError::NotInstalled`], [`AdbError::ServerNotStarted`], or [`AdbError::NoServer`] for one of
    /// another machine.
    pub fn ensure_running(&self) -> Result<(), AdbError> {
        let address = self.address();
        match Connection::open(&self.host, self.port, self.timeout) {
            Ok(_) => return self.check_version(),
            Err(source) if !self.is_local() => return Err(AdbError::NoServer { address, source }),
            Err(_) => {}
        }
        let candidates = programs();
        let Some(adb) = candidates.iter().find(|program| runs(program)) else {
            return Err(AdbError::NotInstalled { address });
        };
        log::debug!("adb: no server answers at {address}: starting one with {}", adb.display());
        start(adb, self.port).map_err(|error| AdbError::ServerNotStarted {
            adb: adb.display().to_string(),
            address: address.clone(),
            reason: error.to_string(),
        })?;
        self.check_version()
    }

    /// Asks the server for the version of its protocol, so that something else at its address is found out. A
    /// server of any version will do.
    fn check_version(&self) -> Result<(), AdbError> {
        let mut connection = self.connect()?;
        connection.request("host:version")?;
        let text = connection.read_text()?;
        match u32::from_str_radix(&text, 16) {
            Ok(_) => Ok(()),
            Err(_) => Err(connection.protocol_error(format!("the version is \"{}\"", text.escape_debug()))),
        }
    }

    /// The devices that the server knows.
    ///
    /// # Errors
    /// [`AdbError`].
    pub fn devices(&self) -> Result<Vec<AttachedDevice>, AdbError> {
        let mut connection = self.connect()?;
        connection.request("host:devices-l")?;
        let text = connection.read_text()?;
        let devices = AttachedDevice::parse_list(&text);
        if devices.is_empty() && !text.trim().is_empty() {
            return Err(connection.protocol_error("the list of devices names none".to_owned()));
        }
        Ok(devices)
    }

    /// The features that a device's adbd offers: `shell_v2`, `stat_v2`.
    ///
    /// # Errors
    /// [`AdbError`].
    pub fn features(&self, serial: &str) -> Result<Vec<String>, AdbError> {
        let mut connection = self.connect()?;
        connection.set_action(format!("asking {serial} for its features"));
        connection
            .request(&format!("host-serial:{serial}:features"))
            .map_err(|error| device_error(error, serial))?;
        Ok(connection.read_text()?.split(',').map(str::to_owned).collect())
    }

    /// Has the server connect to a device at a network address, which it may have forgotten. A serial that is
    /// no such address is left alone.
    ///
    /// # Errors
    /// [`AdbError`] of the server; that the device does not answer is not told.
    pub fn reconnect(&self, serial: &str) -> Result<(), AdbError> {
        if !serial.contains(':') {
            return Ok(());
        }
        let mut connection = self.connect()?;
        connection.set_action(format!("connecting to {serial}"));
        connection.request(&format!("host:connect:{serial}"))?;
        // The server says in words whether it is connected; the list of devices shows it.
        connection.read_text().map(drop)
    }

    /// Connects to a service of a device (`shell:…`, `sync:`).
    ///
    /// # Errors
    /// [`AdbError`] of the server, of the device's state, or [`AdbError::Refused`] by the device.
    pub(super) fn open(&self, serial: &str, service: &str, action: String) -> Result<Connection, AdbError> {
        let mut connection = self.connect()?;
        connection.set_action(action);
        connection
            .request(&format!("host:transport:{serial}"))
            .map_err(|error| device_error(error, serial))?;
        connection.request(service).map_err(|error| device_error(error, serial))?;
        Ok(connection)
    }

    fn connect(&self) -> Result<Connection, AdbError> {
        Connection::open(&self.host, self.port, self.timeout)
            .map_err(|source| AdbError::NoServer { address: self.address(), source })
    }

    /// Whether the server is one of this machine.
    fn is_local(&self) -> bool {
        self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

fn localhost() -> String {
    Ipv4Addr::LOCALHOST.to_string()
}

/// Turns the server's words about a device into the error of the device's state.
fn device_error(error: AdbError, serial: &str) -> AdbError {
    let AdbError::Refused { action, text } = error else { return error };
    let serial = serial.to_owned();
    match text.as_str() {
        text if text.starts_with("device unauthorized") || text.starts_with("device still authorizing") => {
            AdbError::Unauthorized { serial }
        }
        text if text.starts_with("device offline") || text.starts_with("device still connecting") => {
            AdbError::Offline { serial }
        }
        text if text.starts_with("device '") && text.ends_with("not found") => {
            AdbError::NoSuchDevice { serial, attached: Vec::new() }
        }
        text if text.starts_with("insufficient permissions") => {
            AdbError::NoPermissions { serial, state: text.to_owned() }
        }
        // The words of a server whose device went away between two requests.
        "closed" | "device not found" => AdbError::ConnectionLost { action },
        _ => AdbError::Refused { action, text },
    }
}

/// The programs that may be `adb`, the likeliest first.
fn programs() -> Vec<PathBuf> {
    let name = format!("adb{}", env::consts::EXE_SUFFIX);
    let sdks = ["ANDROID_HOME", "ANDROID_SDK_ROOT"].into_iter().filter_map(env::var_os);
    let in_sdks =
        sdks.filter(|dir| !dir.is_empty()).map(|dir| Path::new(&dir).join("platform-tools").join(&name));
    [PathBuf::from("adb")].into_iter().chain(in_sdks).collect()
}

/// Whether the program exists and runs.
fn runs(program: &Path) -> bool {
    let mut version = child::command(program, ChildKind::Worker);
    version.arg("version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

/// Why a server was not started.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    System(#[from] io::Error),
    #[error("{0}")]
    Status(ExitStatus),
    #[error("it has not ended within {} s", START_TIMEOUT.as_secs())]
    TooSlow,
}

/// Has `adb` start a server.
fn start(adb: &Path, port: u16) -> Result<(), StartError> {
    let mut command = child::command(adb, ChildKind::Independent);
    command.args([OsStr::new("-P"), OsStr::new(&port.to_string()), OsStr::new("start-server")]);
    // The server that it starts would keep a pipe open.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(StartError::Status(status)),
            None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(StartError::TooSlow);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(socket: &str, port: &str) -> Result<String, String> {
        let given = |value: &str| (!value.is_empty()).then(|| value.to_owned());
        Server::from_variables(given(socket), given(port)).map(|s| s.address()).map_err(|e| e.to_string())
    }

    #[test]
    fn the_variables_of_adb_name_the_server() {
        assert_eq!(address("", "").unwrap(), "127.0.0.1:5037");
        assert_eq!(address("", "6000").unwrap(), "127.0.0.1:6000");
        assert_eq!(address("tcp:6001", "6000").unwrap(), "127.0.0.1:6001");
        assert_eq!(address("tcp:localhost:6001", "").unwrap(), "127.0.0.1:6001");
        assert_eq!(address("tcp:lab.example:6001", "").unwrap(), "lab.example:6001");
        assert_eq!(address("tcp:[::1]:6001", "").unwrap(), "::1:6001");
        for (socket, port) in [("", "x"), ("", "0"), ("tcp:a:b", ""), ("local:x", ""), ("tcp:", "")] {
            assert!(address(socket, port).unwrap_err().contains("it must be"), "{socket} {port}");
        }
    }

    #[test]
    fn the_servers_words_about_a_device_become_its_state() {
        let error = |text: &str| {
            let text = text.to_owned();
            device_error(AdbError::Refused { action: "x".into(), text }, "S").to_string()
        };
        assert!(
            error("device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set")
                .contains("accept the dialogue")
        );
        assert!(error("device offline").starts_with("S: offline"));
        assert!(error("device 'S' not found").starts_with("no device S"));
        assert_eq!(error("something else"), "x: adb says: something else");
    }
}
