//! An adb server imitated at the level of its protocol, with devices that are directories of this machine:
//! their shell is this machine's `sh`, with `/data/local/tmp` in every command and path replaced by the
//! directory, Perfetto's, System Tracing's, the apps' and their shared directories by `perfetto`, `traces`,
//! `apps` and `media` in it, and /sys/kernel by a directory `sys` that is not there. For states and accidents
//! that no real server has when a test wants them.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::hostile_phone::Hostility;
use crate::{Child, Command, until, write_executable};

/// Something that goes wrong once.
#[derive(Debug, Clone)]
pub enum Mischief {
    /// Every answer is this, whatever was asked.
    Says(&'static [u8]),
    /// The connection ends after some bytes of a file to the device.
    CutPush,
    /// The connection ends in the middle of a file from the device.
    CutPull,
    /// Nothing more comes in the middle of a file from the device, until the other side gives up.
    StallPull,
    /// A byte of a file from the device is another.
    FlipPull,
    /// The device refuses a file with these words.
    FailPush(&'static str),
    /// In the middle of a file from the device come these bytes.
    PullSays(&'static [u8]),
    /// The connection of a command that contains these words ends when this file is on the device. The
    /// command goes on.
    CutShell(&'static str, &'static str),
    /// The connection of every command that contains these words ends at once, however often it comes. No
    /// such command runs.
    CutEachShell(&'static str),
    /// A command that contains these words prints without end: packets of so many bytes.
    EndlessShell(&'static str, usize),
    /// A file from the device has no end.
    EndlessPull,
    /// As [`Mischief::CutShell`], and the device is offline from then on.
    LoseDevice(&'static str, &'static str),
}

/// A port of this machine at which nobody answers: a process has bound it and does not listen, and nobody
/// else can have it meanwhile.
pub struct ClosedPort {
    _holder: Child,
    port: String,
}

impl ClosedPort {
    /// Takes a port that is free, with Python's help: the standard library binds no port without listening.
    ///
    /// # Panics
    /// If there is no Python.
    pub fn take() -> ClosedPort {
        let script = "import socket, sys; s = socket.socket(); s.bind(('127.0.0.1', 0)); \
                      print(s.getsockname()[1], flush=True); sys.stdin.read()";
        let mut holder = Command::new("python3");
        holder.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = holder.spawn().expect("python3 runs");
        let port = holder.collect_stdout().line_with("");
        ClosedPort { _holder: holder, port }
    }

    pub fn port(&self) -> &str {
        &self.port
    }
}

/// A wrong behaviour that lasts.
#[derive(Debug, Clone)]
struct Hostile {
    kind: Hostility,
    /// The device whose behaviour it is; that of all if it is empty.
    serial: String,
    /// The device tells its facts as it should: only other commands are answered wrongly.
    tells_facts: bool,
}

/// The command that asks a device for its facts contains this.
const ASKS_FOR_FACTS: &str = "machine=$(uname -m";

/// The server. Its threads end with the process.
pub struct AdbServer {
    port: u16,
    state: Arc<State>,
}

struct State {
    root: tempfile::TempDir,
    /// Serials and states, as `adb devices` prints them.
    devices: Mutex<Vec<(String, String)>>,
    mischief: Mutex<Option<Mischief>>,
    /// The features that every device's adbd offers.
    features: &'static str,
    /// The wrong behaviour of the server and its devices.
    hostility: Mutex<Option<Hostile>>,
    /// The commands that came.
    commands: Mutex<Vec<String>>,
}

impl AdbServer {
    /// A server with devices of these serials and states.
    pub fn start(devices: &[(&str, &str)], features: &'static str) -> AdbServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let own = |(serial, state): &(&str, &str)| ((*serial).to_owned(), (*state).to_owned());
        let state = Arc::new(State {
            root: crate::tempdir(),
            devices: Mutex::new(devices.iter().map(own).collect()),
            mischief: Mutex::new(None),
            features,
            hostility: Mutex::new(None),
            commands: Mutex::default(),
        });
        for (serial, _) in devices {
            fs::create_dir(state.root.path().join(serial)).unwrap();
        }
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&shared);
                thread::spawn(move || state.serve(stream));
            }
        });
        AdbServer { port, state }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The directory that is a device's `/data/local/tmp`.
    pub fn dir(&self, serial: &str) -> PathBuf {
        self.state.root.path().join(serial)
    }

    /// Has something go wrong once.
    pub fn will(&self, mischief: Mischief) {
        *self.state.mischief.lock().unwrap() = Some(mischief);
    }

    /// Makes the server or its devices hostile from now on.
    pub fn become_hostile(&self, kind: Hostility) {
        self.turn_hostile(kind, "", false);
    }

    /// Makes this device hostile from now on.
    pub fn make_hostile(&self, serial: &str, kind: Hostility) {
        self.turn_hostile(kind, serial, false);
    }

    /// Makes the devices hostile from now on, after each has told its facts as it should.
    pub fn become_hostile_later(&self, kind: Hostility) {
        self.turn_hostile(kind, "", true);
    }

    fn turn_hostile(&self, kind: Hostility, serial: &str, tells_facts: bool) {
        let serial = serial.to_owned();
        *self.state.hostility.lock().unwrap() = Some(Hostile { kind, serial, tells_facts });
    }

    /// A device is in another state from now on.
    pub fn set_state(&self, serial: &str, state: &str) {
        self.state.set_state(serial, state);
    }

    /// The commands that came until now.
    pub fn commands(&self) -> Vec<String> {
        self.state.commands.lock().unwrap().clone()
    }
}

/// Length of a part that goes well before an accident.
const PART: usize = 1000;

impl State {
    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let mut serial = String::new();
        loop {
            let mut digits = [0; 4];
            stream.read_exact(&mut digits).ok()?;
            let length = usize::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?;
            let mut service = vec![0; length];
            stream.read_exact(&mut service).ok()?;
            let service = String::from_utf8(service).ok()?;
            if let Some(Mischief::Says(answer)) = self.take(|m| matches!(m, Mischief::Says(_))) {
                stream.write_all(answer).ok()?;
                return None;
            }
            let hostility = self.hostility_of("");
            if let Some(goes_on) = hostility.and_then(|kind| kind.serve(&mut stream, &service)) {
                goes_on.then_some(())?;
            } else if service == "host:version" {
                answer(&mut stream, "0029")?;
            } else if service == "host:devices-l" {
                let devices = self.devices.lock().unwrap().clone();
                let lines =
                    devices.iter().map(|(serial, state)| format!("{serial:<22} {state} transport_id:1\n"));
                answer(&mut stream, &lines.collect::<String>())?;
            } else if service.starts_with("host:connect:") {
                answer(&mut stream, "connected")?;
            } else if let Some(name) = service.strip_prefix("host-serial:") {
                self.check(&mut stream, name.strip_suffix(":features")?)?;
                answer(&mut stream, self.features)?;
            } else if let Some(name) = service.strip_prefix("host:transport:") {
                self.check(&mut stream, name)?;
                stream.write_all(b"OKAY").ok()?;
                serial = name.to_owned();
            } else if let Some(script) = service.strip_prefix("shell,v2,raw:") {
                stream.write_all(b"OKAY").ok()?;
                return self.shell(stream, &serial, script, true);
            } else if let Some(script) = service.strip_prefix("shell:") {
                stream.write_all(b"OKAY").ok()?;
                return self.shell(stream, &serial, script, false);
            } else if service == "sync:" {
                stream.write_all(b"OKAY").ok()?;
                return self.sync(stream, &serial);
            } else {
                fail(&mut stream, &format!("unknown service {service}"))?;
            }
        }
    }

    /// The wrong behaviour of this device, or of the server for an empty serial.
    fn hostility_of(&self, serial: &str) -> Option<Hostility> {
        let hostile = self.hostility.lock().unwrap();
        hostile.as_ref().filter(|h| h.serial.is_empty() || h.serial == serial).map(|h| h.kind)
    }

    fn set_state(&self, serial: &str, state: &str) {
        let mut devices = self.devices.lock().unwrap();
        devices.iter_mut().filter(|device| device.0 == serial).for_each(|device| device.1 = state.to_owned());
    }

    /// Takes the mischief if it is of this kind.
    fn take(&self, is_meant: impl Fn(&Mischief) -> bool) -> Option<Mischief> {
        self.mischief.lock().unwrap().take_if(|mischief| is_meant(mischief))
    }

    /// Fails as the server does if the device cannot be used.
    fn check(&self, stream: &mut TcpStream, serial: &str) -> Option<()> {
        let state = self.devices.lock().unwrap().iter().find(|(name, _)| name == serial).map(|d| d.1.clone());
        match state.as_deref() {
            Some("device") => Some(()),
            Some("unauthorized") => {
                fail(stream, "device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set")
            }
            Some(_) => fail(stream, "device offline"),
            None => fail(stream, &format!("device '{serial}' not found")),
        }
    }

    fn here(&self, serial: &str, text: &str) -> String {
        let dir = self.root.path().join(serial);
        let dir = dir.to_string_lossy();
        text.replace("/data/local/tmp", &dir)
            .replace("/data/misc/perfetto-traces", &format!("{dir}/perfetto"))
            .replace("/data/local/traces", &format!("{dir}/traces"))
            .replace("/storage/emulated/0/Android/media", &format!("{dir}/media"))
            .replace("/data/data", &format!("{dir}/apps"))
            .replace("/sys/kernel/", &format!("{dir}/sys/"))
            .replace("/proc/sys/", &format!("{dir}/proc-sys/"))
    }

    fn shell(&self, mut stream: TcpStream, serial: &str, script: &str, packets: bool) -> Option<()> {
        self.commands.lock().unwrap().push(script.to_owned());
        if matches!(*self.mischief.lock().unwrap(), Some(Mischief::CutEachShell(words)) if script.contains(words))
        {
            return None;
        }
        let is_endless =
            |m: &Mischief| matches!(m, Mischief::EndlessShell(words, _) if script.contains(words));
        if let Some(Mischief::EndlessShell(_, length)) = self.take(is_endless) {
            let packet = [&[1][..], &(length as u32).to_le_bytes(), &vec![b'x'; length]].concat();
            let packets = packet.repeat(1 + (64 << 10) / packet.len());
            // Until the other side has enough.
            while stream.write_all(&packets).is_ok() {}
            return None;
        }
        let is_meant = |hostile: &Hostile| !(hostile.tells_facts && script.contains(ASKS_FOR_FACTS));
        let hostile = self.hostility.lock().unwrap().clone().filter(is_meant);
        let hostile = hostile.filter(|hostile| hostile.serial.is_empty() || hostile.serial == serial);
        if hostile.is_some_and(|hostile| hostile.kind.shell(&mut stream)) {
            return None;
        }
        // Stand-ins for the device's own programs.
        let path = format!(
            "{}/bin:{}",
            self.root.path().join(serial).display(),
            std::env::var("PATH").unwrap_or_default()
        );
        // By its path: a program that is looked up in the child's own PATH is started in the slow way.
        let mut child = Command::new("/bin/sh")
            .args(["-c", &self.here(serial, script)])
            .env("PATH", path)
            .stdin(if packets { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .ok()?;
        let mut out = child.stdout.take()?;
        let mut err = child.stderr.take()?;
        if let Some(stdin) = child.stdin.take() {
            let stream = stream.try_clone().ok()?;
            thread::spawn(move || copy_input(stream, stdin));
        }
        let is_meant = |m: &Mischief| match m {
            Mischief::CutShell(words, _) | Mischief::LoseDevice(words, _) => script.contains(words),
            _ => false,
        };
        let mischief = self.take(is_meant);
        if let Some(Mischief::CutShell(_, file) | Mischief::LoseDevice(_, file)) = mischief {
            let file = self.root.path().join(serial).join(file);
            until(&format!("{} on the imitated device", file.display()), || file.exists());
            child.leave_running();
            if matches!(mischief, Some(Mischief::LoseDevice(..))) {
                self.set_state(serial, "offline");
            }
            let _ = stream.shutdown(Shutdown::Both);
            return None;
        }
        if !packets {
            let mut text = Vec::new();
            let mut more = Vec::new();
            out.read_to_end(&mut text).ok()?;
            err.read_to_end(&mut more).ok()?;
            let text = String::from_utf8_lossy(&[more, text].concat()).replace('\n', "\r\n");
            return stream.write_all(text.as_bytes()).ok();
        }
        let mut to_stdout = stream.try_clone().ok()?;
        let copying = thread::spawn(move || copy_packets(&mut out, &mut to_stdout, 1));
        copy_packets(&mut err, &mut stream, 2);
        let _ = copying.join();
        let status = child.wait().ok()?.code().unwrap_or(255) as u8;
        stream.write_all(&[3, 1, 0, 0, 0, status]).ok()
    }

    fn sync(&self, mut stream: TcpStream, serial: &str) -> Option<()> {
        loop {
            let (id, length) = head(&mut stream)?;
            let mut path = vec![0; length];
            stream.read_exact(&mut path).ok()?;
            let path = self.here(serial, &String::from_utf8(path).ok()?);
            if self.hostility_of(serial).is_some_and(|kind| kind.sync(&mut stream, &id)) {
                continue;
            }
            match &id {
                b"STA2" | b"STAT" => self.stat(&mut stream, &id, Path::new(&path))?,
                b"SEND" => self.receive(&mut stream, &path)?,
                b"RECV" => self.send(&mut stream, Path::new(&path))?,
                _ => return None,
            }
        }
    }

    fn stat(&self, stream: &mut TcpStream, id: &[u8; 4], path: &Path) -> Option<()> {
        let meta = fs::metadata(path).ok();
        let (mode, size) = meta.map_or((0, 0), |meta| (meta.permissions().mode(), meta.len()));
        let error = u32::from(mode == 0).to_le_bytes();
        let mode = mode.to_le_bytes();
        stream.write_all(id).ok()?;
        let reply = match id {
            b"STA2" => [&error[..], &[0; 16], &mode, &[0; 12], &size.to_le_bytes(), &[0; 24]].concat(),
            _ => [&mode[..], &(size as u32).to_le_bytes(), &[0; 4]].concat(),
        };
        stream.write_all(&reply).ok()
    }

    fn receive(&self, stream: &mut TcpStream, path_and_mode: &str) -> Option<()> {
        let (path, mode) = path_and_mode.rsplit_once(',')?;
        let mut file = Vec::new();
        loop {
            let (id, length) = head(stream)?;
            match &id {
                b"DATA" => {
                    assert!(length <= 64 << 10, "a piece of {length} bytes");
                    let mut piece = vec![0; length];
                    stream.read_exact(&mut piece).ok()?;
                    file.extend(piece);
                }
                _ => break,
            }
            if self.take(|m| matches!(m, Mischief::CutPush)).is_some() {
                fs::write(path, &file).ok()?;
                return None;
            }
        }
        if let Some(Mischief::FailPush(words)) = self.take(|m| matches!(m, Mischief::FailPush(_))) {
            return stream
                .write_all(&[b"FAIL", &(words.len() as u32).to_le_bytes()[..], words.as_bytes()].concat())
                .ok();
        }
        write_executable(Path::new(path), &file, mode.parse::<u32>().ok()? & 0o777).ok()?;
        stream.write_all(b"OKAY\0\0\0\0").ok()
    }

    fn send(&self, stream: &mut TcpStream, path: &Path) -> Option<()> {
        let Ok(mut file) = fs::read(path) else {
            let words = "No such file or directory";
            return stream
                .write_all(&[b"FAIL", &(words.len() as u32).to_le_bytes()[..], words.as_bytes()].concat())
                .ok();
        };
        let of_pull = |m: &Mischief| {
            matches!(
                m,
                Mischief::CutPull
                    | Mischief::StallPull
                    | Mischief::FlipPull
                    | Mischief::PullSays(_)
                    | Mischief::EndlessPull
            )
        };
        match self.take(of_pull) {
            Some(Mischief::FlipPull) => file[PART] ^= 1,
            Some(mischief) => {
                data(stream, &file[..PART])?;
                match mischief {
                    Mischief::StallPull => drop(stream.read(&mut [0])),
                    Mischief::PullSays(bytes) => stream.write_all(bytes).ok()?,
                    // Until the other side has enough.
                    Mischief::EndlessPull => while data(stream, &[0; 64 << 10]).is_some() {},
                    _ => {}
                }
                return None;
            }
            None => {}
        }
        file.chunks(64 << 10).try_for_each(|piece| data(stream, piece))?;
        stream.write_all(b"DONE\0\0\0\0").ok()
    }
}

/// Passes packets of standard input on, up to the one that closes it.
fn copy_input(mut stream: TcpStream, mut stdin: ChildStdin) -> Option<()> {
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).ok()?;
        let mut bytes = vec![0; u32::from_le_bytes(head[1..].try_into().ok()?) as usize];
        stream.read_exact(&mut bytes).ok()?;
        if head[0] != 0 {
            return Some(());
        }
        stdin.write_all(&bytes).ok()?;
    }
}

fn data(stream: &mut TcpStream, piece: &[u8]) -> Option<()> {
    stream.write_all(&[b"DATA", &(piece.len() as u32).to_le_bytes()[..], piece].concat()).ok()
}

fn head(stream: &mut TcpStream) -> Option<([u8; 4], usize)> {
    let mut id = [0; 4];
    let mut length = [0; 4];
    stream.read_exact(&mut id).ok()?;
    stream.read_exact(&mut length).ok()?;
    Some((id, u32::from_le_bytes(length) as usize))
}

fn answer(stream: &mut TcpStream, text: &str) -> Option<()> {
    stream.write_all(format!("OKAY{:04x}{text}", text.len()).as_bytes()).ok()
}

fn fail(stream: &mut TcpStream, text: &str) -> Option<()> {
    stream.write_all(format!("FAIL{:04x}{text}", text.len()).as_bytes()).ok()?;
    None
}

fn copy_packets(from: &mut dyn Read, to: &mut TcpStream, kind: u8) -> Option<()> {
    let mut bytes = [0; 4096];
    loop {
        let length = from.read(&mut bytes).ok().filter(|length| *length > 0)?;
        to.write_all(&[&[kind], &(length as u32).to_le_bytes()[..], &bytes[..length]].concat()).ok()?;
    }
}
