//! A recording on the device that needs no connection: it runs by itself in a directory of its own, and its
//! files stay there until they have been pulled.
//!
//! `/data/local/tmp/tracebridge.d/ID/` holds `output` (the file name that the host has chosen, encoded),
//! `pid`, `capture.dat` and, from `launch`, `capture.trace` and the app's own traces, for a video of the
//! screen `capture.mp4` and the process `video` that makes it, `summary.json`, `log`, and at the end
//! `status`. The directory is made new, by adb's user, under a name that nobody can predict; other users can
//! neither list it nor write to it. Files that root has written are given to adb's user at the end.
//!
//! The scripts are for every `sh`: mksh, toybox, dash, busybox.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::app_traces::{self, APP_TRACE};
use super::error::DeviceError;
use super::facts::BINARY_PATH;
use super::privilege::Privilege;
use super::recorder::RecorderJob;
use super::shell_words::{decoded, encoded};
use super::video::{self, VIDEO_FILE};
use super::{COMMAND_TIMEOUT, Device};
use crate::adb::{AdbError, Shell, ShellEvent, ShellOutput};
use crate::output_file::unpredictable;
use crate::workers::run_pool;

/// The directory of all recordings that go on without a connection. The device's users `shell` and root alone
/// may write there.
pub const SESSIONS_DIR: &str = "/data/local/tmp/tracebridge.d";
/// How often the wait for a recorder is interrupted to see whether the user wants the end.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// After this time of silence the device is asked whether it is still there; sooner where the user has less
/// patience than usual.
const PROBE_INTERVAL: Duration = Duration::from_secs(60);
/// How long a device may take to clean up when the user gives up.
const ABANDON_TIMEOUT: Duration = Duration::from_secs(10);
/// A recorder that was told to end may take so many times as long as the device may be silent.
const MAX_TIMEOUTS_TO_END: u32 = 10;
/// A connection that is lost sooner than this after it was made counts as one that the device does not keep.
const SHORT_CONNECTION: Duration = Duration::from_secs(5);
/// After so many of them in a row the device is given up.
const MAX_SHORT_CONNECTIONS: u32 = 8;
/// The pause after the first of them; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The most of the recorder's result that is kept, bytes: its summary, which names programs and threads, its
/// log, and the names of its files.
const MAX_RESULT_BYTES: usize = 1 << 20;

/// A recording on a device.
#[derive(Debug, Clone)]
pub struct Session {
    device: Device,
    privilege: Privilege,
    id: String,
}

/// The result of a recording that has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionEnd {
    /// The recorder's exit status; `None` if it was killed.
    pub status: Option<u8>,
    /// Its summary: one JSON object, or nothing.
    pub summary: String,
    /// Its standard error.
    pub log: String,
    /// The names of the files in the session's directory.
    pub files: Vec<String>,
}

impl SessionEnd {
    /// The paths of the recorded files on the device: the capture first, then the method trace, samples, the
    /// app's own traces and the video of the screen, if there are any.
    pub fn captures(&self, session: &Session) -> Vec<String> {
        let names = [
            "capture.dat",
            "capture.pftrace",
            "capture.txt",
            "capture.trace",
            "capture.perf.data",
            VIDEO_FILE,
        ];
        let names = names.into_iter().filter(|name| self.files.iter().any(|file| file == name));
        // The names come from the device's `ls`, and files of the host are named after them.
        let is_app_trace = |name: &&str| {
            let number = name.strip_prefix(APP_TRACE).and_then(|rest| rest.strip_suffix(".pftrace"));
            number.is_some_and(|number| number.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit()))
        };
        let app_traces = self.files.iter().map(String::as_str).filter(is_app_trace);
        names.chain(app_traces).map(|name| session.file(name)).collect()
    }
}

/// A session that is on a device.
#[derive(Debug, Clone)]
pub struct SessionState {
    /// The session.
    pub session: Session,
    /// The name that the host has chosen for its file.
    pub output: String,
    /// Whether its recorder runs.
    pub is_running: bool,
}

/// The recordings that this process has begun and not ended, for [`abandon_all`].
static LIVE: Mutex<Vec<Session>> = Mutex::new(Vec::new());

fn live() -> MutexGuard<'static, Vec<Session>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the recordings of this process on their devices, has the settings put back, and removes their files:
/// for a process that is about to end. Takes a few seconds at most.
pub fn abandon_all() {
    let sessions: Vec<Session> = live().drain(..).collect();
    run_pool(&sessions, sessions.len(), Session::abandon);
}

impl Session {
    /// Runs a job on the device, up to its end; the binary must be there if the job uses it. `output` is the
    /// name of the file on the host, for those who fetch it later. When `is_ending` becomes true, the
    /// recording is ended.
    ///
    /// # Errors
    /// [`DeviceError`]; [`DeviceError::LeftRunning`] if the connection is lost and does not come back: the
    /// recording goes on. A recorder that fails is no error: [`SessionEnd::status`] says so.
    pub fn run(
        device: &Device,
        privilege: Privilege,
        job: &RecorderJob<'_>,
        output: &str,
        is_ending: &dyn Fn() -> bool,
    ) -> Result<(Session, SessionEnd), DeviceError> {
        let id = format!("{:016x}", unpredictable());
        let session = Session { device: device.clone(), privilege, id };
        let shell = device.transport().start(&session.start_script(job, output))?;
        live().push(session.clone());
        let end = session.await_end(shell, is_ending);
        live().retain(|other| other.id != session.id);
        Ok((session, end?))
    }

    /// The directory on the device.
    pub fn dir(&self) -> String {
        format!("{SESSIONS_DIR}/{}", self.id)
    }

    /// The session's name on the device.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Makes the directory and starts the recorder in it, which ignores the end of its connection. Then waits
    /// for its end, and prints the result.
    fn start_script(&self, job: &RecorderJob<'_>, output: &str) -> String {
        let dir = self.dir();
        let id = &self.id;
        let app_traces = |script: fn(&str, Privilege) -> String| {
            job.app.map(|package| script(package, self.privilege)).unwrap_or_default()
        };
        let record = format!(
            "cd {dir} || exit 97; ( trap '' HUP; umask 077; {}{}{}{}{}{}echo $s >status.part; mv status.part status \
             ) </dev/null >/dev/null 2>&1 & wait $!; {}",
            job.video_seconds.map(video::before).unwrap_or_default(),
            app_traces(app_traces::before),
            job.script(&dir, id),
            job.video_seconds.map(|_| video::after()).unwrap_or_default(),
            app_traces(app_traces::after),
            self.give_away(),
            self.result_script()
        );
        format!(
            "umask 066; d={SESSIONS_DIR}; [ -d $d ] || mkdir $d || exit 97; [ ! -L $d ] || exit 97; \
             chown 2000:2000 $d 2>/dev/null; mkdir $d/{id} && echo {} >$d/{id}/output || exit 97\n{}",
            encoded(output),
            self.privilege.command(&record)
        )
    }

    /// Gives the files of root to adb's user.
    fn give_away(&self) -> String {
        match (self.privilege, self.device.facts.uid) {
            (Privilege::Su(_), Some(uid)) => format!("chown {uid}:{uid} *; "),
            _ => String::new(),
        }
    }

    /// Prints each part after a line that nobody can predict.
    fn result_script(&self) -> String {
        let id = &self.id;
        format!(
            "for f in status summary.json log; do echo \"@{id} $f\"; cat $f 2>/dev/null; echo; done; \
             echo '@{id} files'; ls; echo '@{id} end'"
        )
    }

    /// Waits until the recorder of this session has ended, and prints the result.
    fn wait_script(&self) -> String {
        format!(
            "cd {} || exit 97; while [ ! -e status ]; do p=; [ ! -e pid ] || read p <pid; \
             if [ ! -d \"/proc/${{p:-0}}\" ]; then sleep 1; break; fi; sleep 1; done; {}{}",
            self.dir(),
            self.give_away(),
            self.result_script()
        )
    }

    /// Waits for the recorder's end.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn wait(&self, is_ending: &dyn Fn() -> bool) -> Result<SessionEnd, DeviceError> {
        let shell = self.device.transport().start(&self.privilege.command(&self.wait_script()))?;
        self.await_end(shell, is_ending)
    }

    fn await_end(&self, mut shell: Shell, is_ending: &dyn Fn() -> bool) -> Result<SessionEnd, DeviceError> {
        let mut output = ShellOutput::within(MAX_RESULT_BYTES);
        let probe_interval = PROBE_INTERVAL.min(self.device.transport().server().timeout() * 2);
        let mut last_sign = Instant::now();
        let mut has_been_told = false;
        let mut connected = Instant::now();
        let mut short_connections = 0;
        let mut ending_since = None;
        let patience = self.device.transport().server().timeout() * MAX_TIMEOUTS_TO_END;
        loop {
            if is_ending() && ending_since.get_or_insert_with(Instant::now).elapsed() > patience {
                let action = format!("waiting for the recording on {}", self.device.serial());
                return Err(AdbError::NoEnd { action, seconds: patience.as_secs() }.into());
            }
            let next = match shell.next(POLL_INTERVAL) {
                Ok(None) if is_ending() && !has_been_told => {
                    self.end().map(|told| has_been_told = told).map(|()| None)
                }
                Ok(None) if last_sign.elapsed() > probe_interval => {
                    last_sign = Instant::now();
                    self.device.run_script(":", Privilege::Shell, COMMAND_TIMEOUT).map(|_| None)
                }
                next => next,
            };
            match next {
                Ok(None) => continue,
                Ok(Some(event)) => {
                    let has_ended = matches!(event, ShellEvent::Exit(_));
                    if !output.add(event) {
                        return Err(shell.too_much_output().into());
                    }
                    if has_ended {
                        break;
                    }
                }
                // Without packets the end of the connection is the end of the command.
                Err(_) if self.is_complete(&output) => break,
                Err(error) if error.is_lost_connection() => {
                    let is_short = connected.elapsed() < SHORT_CONNECTION;
                    short_connections = if is_short { short_connections + 1 } else { 0 };
                    if short_connections > MAX_SHORT_CONNECTIONS {
                        return Err(DeviceError::ClosesConnections {
                            serial: self.device.serial().to_owned(),
                            times: MAX_SHORT_CONNECTIONS,
                        });
                    }
                    if is_short {
                        std::thread::sleep(FIRST_PAUSE * 2u32.pow(short_connections));
                    }
                    shell = self.reconnect(is_ending)?;
                    connected = Instant::now();
                    output = ShellOutput::within(MAX_RESULT_BYTES);
                }
                Err(error) => return Err(error.into()),
            }
            last_sign = Instant::now();
        }
        self.parse(&output)
    }

    /// Waits for the device, and waits on.
    fn reconnect(&self, is_ending: &dyn Fn() -> bool) -> Result<Shell, DeviceError> {
        let was_ending = is_ending();
        // A signal while the device is away ends the waiting and not the recording.
        let is_cancelled = || !was_ending && is_ending();
        let script = self.privilege.command(&self.wait_script());
        let timeout = self.device.transport().server().timeout();
        let back = self.device.wait_until_back(timeout, &is_cancelled);
        let back = back.and_then(|()| self.device.transport().start(&script));
        back.map_err(|error| {
            if error.is_lost_connection() {
                let serial = self.device.serial().to_owned();
                DeviceError::LeftRunning { serial, seconds: timeout.as_secs() }
            } else {
                error.into()
            }
        })
    }

    /// Has the recorder end its recording. Returns whether it could be told: its process id may not be known
    /// yet.
    fn end(&self) -> Result<bool, AdbError> {
        let script = format!(
            "cd {} && {{ [ -e status ] || {{ [ -e pid ] && read p <pid && s=INT && \
             {{ [ ! -e signal ] || read s <signal; }} && kill -$s $p; }}; }}",
            self.dir()
        );
        Ok(self.device.run_script(&script, self.privilege, COMMAND_TIMEOUT)?.status == 0)
    }

    fn is_complete(&self, output: &ShellOutput) -> bool {
        output.text().lines().any(|line| line.trim_end() == format!("@{} end", self.id))
    }

    fn parse(&self, output: &ShellOutput) -> Result<SessionEnd, DeviceError> {
        if !self.is_complete(output) {
            let message = output.message();
            let status = || format!("the command ended with status {}", output.status);
            return Err(DeviceError::Failed {
                serial: self.device.serial().to_owned(),
                action: "starting the recording".to_owned(),
                reason: if message.is_empty() { status() } else { message },
            });
        }
        let text = output.text().replace("\r\n", "\n");
        let part = |name: &str| {
            let after = text.split_once(&format!("@{} {name}\n", self.id)).map(|(_, after)| after);
            let part = after.and_then(|after| after.split_once(&format!("\n@{}", self.id)));
            part.map(|(part, _)| part.trim().to_owned()).unwrap_or_default()
        };
        Ok(SessionEnd {
            status: part("status").parse().ok(),
            summary: part("summary.json"),
            log: part("log"),
            files: part("files").lines().map(|line| line.trim().to_owned()).collect(),
        })
    }

    /// The path of one of the session's files on the device.
    pub fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.dir())
    }

    /// Removes the session's files from the device.
    ///
    /// # Errors
    /// [`DeviceError`].
    pub fn remove(&self) -> Result<(), DeviceError> {
        let script = format!("rm -r {} && {{ rmdir {SESSIONS_DIR} 2>/dev/null; :; }}", self.dir());
        let output = self.device.run_script(&script, self.privilege, COMMAND_TIMEOUT)?;
        match output.status {
            0 => Ok(()),
            _ => Err(DeviceError::Failed {
                serial: self.device.serial().to_owned(),
                action: format!("removing {}", self.dir()),
                reason: output.message(),
            }),
        }
    }

    /// Ends the recorder, by force if it must be, has the settings put back, and removes the files.
    pub fn abandon(&self) {
        let script = format!(
            "cd {0} || exit 0; {1}p=; [ ! -e pid ] || read p <pid; if [ -n \"$p\" ] && [ ! -e status ]; then \
             kill -TERM $p; for i in 1 2 3 4 5; do [ -d /proc/$p ] || break; sleep 1; done; kill -KILL $p; \
             {BINARY_PATH} restore; fi; cd /; rm -r {0}; rmdir {SESSIONS_DIR}",
            self.dir(),
            video::abandon()
        );
        let _ = self.device.run_script(&script, self.privilege, ABANDON_TIMEOUT);
    }

    /// The sessions that are on the device.
    ///
    /// # Errors
    /// [`DeviceError`].
    pub fn list(device: &Device) -> Result<Vec<SessionState>, DeviceError> {
        let script = format!(
            "cd {SESSIONS_DIR} 2>/dev/null || exit 0; for s in *; do [ -e $s/output ] || continue; p=; \
             [ ! -e $s/pid ] || read p <$s/pid; r=ended; \
             if [ ! -e $s/status ] && [ -n \"$p\" ] && [ -d /proc/$p ]; then r=running; fi; \
             echo $s $r $(cat $s/output); done"
        );
        // A recorder of root is not seen by adb's user on every device.
        let privilege = device.privilege();
        let text = device.ask(&script, privilege, COMMAND_TIMEOUT)?.text();
        let sessions = text.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let id = words.next()?;
            let state = words.next()?;
            let output = words.next().map(decoded).unwrap_or_default();
            // The name stands in scripts later.
            let is_id = id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
            let session = Session { device: device.clone(), privilege, id: id.to_owned() };
            is_id.then(|| SessionState { session, output, is_running: state == "running" })
        });
        Ok(sessions.collect())
    }
}
