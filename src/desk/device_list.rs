//! The list of attached devices, with the facts that decide which of them can record.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;

use super::device::{Device, DeviceFacts, PushedBinary, printable_text};
use super::error::DeskError;
use crate::adb::{AdbError, AttachedDevice, Server};
use crate::workers::run_pool;

/// The most devices that are asked at the same time.
const MAX_DEVICES_AT_ONCE: usize = 16;

/// For so long the answers are waited for, so that they come in the order of the devices. What comes later is
/// shown as it comes: one slow device hides no other.
const GATHERING_TIME: Duration = Duration::from_secs(2);

/// How often it is looked whether all devices have been asked.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// An attached device.
#[derive(Debug)]
pub struct ListedDevice {
    /// Its serial.
    pub serial: String,
    pub details: DeviceDetails,
    /// The words about a binary on it that is another one than this program's.
    pub warning: Option<String>,
    /// The same for scripts.
    pub json: ListedJson,
}

/// A device as `adb devices --json` prints it.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ListedJson {
    serial: String,
    /// The state, as the adb server names it.
    state: String,
    /// Why the device cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    usable: Option<UsableDevice>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct UsableDevice {
    /// How root is had: adbd, su -c, su 0, su root, refused, or no.
    root: String,
    /// Whether something can be recorded.
    #[schemars(extend("enum" = ["yes", "part", "no"]))]
    tracing: &'static str,
    /// The tracebridge binary on the device: none, the same as this program pushes, another one, or
    /// unknown where this program has none for the ABI.
    #[schemars(extend("enum" = ["none", "same", "other", "unknown"]))]
    binary: &'static str,
    /// The version of another binary, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    binary_version: Option<String>,
    #[serde(flatten)]
    facts: DeviceFacts,
}

/// The columns of a device in the list.
#[derive(Debug)]
pub enum DeviceDetails {
    /// Its model, Android release and ABI, how root is had on it, and whether tracing works.
    Usable([String; 5]),
    /// Why the device cannot be used.
    Unusable(String),
}

/// Lists the attached devices, and asks each for its facts. `show` gets those that have answered, in the
/// order of the devices, and then, where some are slow, each as it answers. Returns the number of devices.
///
/// # Errors
/// [`DeskError`] of the adb server. A device that cannot be used is no error.
pub fn list_devices(show: &mut dyn FnMut(Vec<ListedDevice>)) -> Result<usize, DeskError> {
    let server = Server::from_environment()?;
    server.ensure_running()?;
    let attached: Vec<(usize, AttachedDevice)> = server.devices()?.into_iter().enumerate().collect();
    let (answers, answered) = channel();
    let ask_all = || {
        run_pool(&attached, MAX_DEVICES_AT_ONCE, |(at, device)| {
            // The receiver goes away after this thread.
            let _ = answers.send((*at, ListedDevice::ask(&server, device)));
        });
    };
    thread::scope(|scope| {
        let asking = Builder::new().spawn_scoped(scope, ask_all).ok();
        if asking.is_none() {
            ask_all();
        }
        let is_asking = || asking.as_ref().is_some_and(|thread| !thread.is_finished());
        let gathered = Instant::now() + GATHERING_TIME;
        let mut left = attached.len();
        let mut waiting = Vec::new();
        while left > 0 {
            let answer = match answered.recv_timeout(POLL_INTERVAL) {
                Ok(answer) => Some(answer),
                Err(RecvTimeoutError::Timeout) if is_asking() => None,
                Err(_) => match answered.try_recv() {
                    // It came just before the thread ended.
                    Ok(answer) => Some(answer),
                    // The thread has panicked, which the scope passes on.
                    Err(_) => break,
                },
            };
            left -= usize::from(answer.is_some());
            waiting.extend(answer);
            if left == 0 || Instant::now() > gathered {
                waiting.sort_unstable_by_key(|(at, _)| *at);
                let devices: Vec<ListedDevice> = waiting.drain(..).map(|(_, device)| device).collect();
                if !devices.is_empty() {
                    show(devices);
                }
            }
        }
    });
    Ok(attached.len())
}

impl ListedDevice {
    fn ask(server: &Server, attached: &AttachedDevice) -> ListedDevice {
        let serial = attached.serial.clone();
        ListedDevice::ask_usable(server, attached).unwrap_or_else(|error| {
            let problem = error.to_string();
            let json = ListedJson {
                serial: serial.clone(),
                state: attached.state.clone(),
                error: Some(problem.clone()),
                usable: None,
            };
            let problem = problem.strip_prefix(&format!("{serial}: ")).unwrap_or(&problem).to_owned();
            ListedDevice { serial, details: DeviceDetails::Unusable(problem), warning: None, json }
        })
    }

    fn ask_usable(server: &Server, attached: &AttachedDevice) -> Result<ListedDevice, AdbError> {
        attached.check()?;
        let device = Device::open(server, &attached.serial)?;
        let tracing = device.tracing_access()?.name();
        let facts = &device.facts;
        let root = if facts.su_refused { "refused".to_owned() } else { device.privilege().to_string() };
        let binary = device.pushed_binary();
        let binary_version = match &binary {
            PushedBinary::Other(version) => version.clone(),
            _ => None,
        };
        let usable = UsableDevice {
            root: root.clone(),
            tracing,
            binary: binary.name(),
            binary_version,
            facts: facts.clone(),
        };
        let json = ListedJson {
            serial: attached.serial.clone(),
            state: attached.state.clone(),
            error: None,
            usable: Some(usable),
        };
        let known = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        let server_model = printable_text(attached.model.as_deref().unwrap_or_default());
        let model = if facts.model.is_empty() { &server_model } else { &facts.model };
        let details =
            [known(model), known(&facts.release), known(&facts.abi), root.clone(), tracing.to_owned()];
        let details = DeviceDetails::Usable(details);
        Ok(ListedDevice { serial: attached.serial.clone(), details, warning: binary.warning(), json })
    }
}
