//! The acts of a page on a recording on a device: markers, by a command of their own, and categories, by
//! commands on the recorder's standard input.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::view::LiveControls;
use crate::categories::{CategorySwitch, REFUSED, SWITCHED};
use crate::desk::device::{BINARY_PATH, Device, StreamTalk};
use crate::desk::error::DeskError;
use crate::desk::host_hints::host_hints;

/// How long a page's marker may take.
const MARK_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the list of categories may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the recorder may take to switch categories: on an old phone each property takes a process.
const SWITCH_TIMEOUT: Duration = Duration::from_secs(10);

/// The acts of a page on a recorder on a device.
pub(super) struct DeviceControls<'a> {
    device: &'a Device,
    /// The names of what is recorded.
    on: Mutex<Vec<String>>,
    /// The categories that work on the device, with their descriptions, once it was asked.
    all: Mutex<Option<Vec<(String, String)>>>,
    /// Commands for the recorder.
    commands: Exchange<String>,
    /// The recorder's answers.
    answers: Exchange<Answer>,
}

/// The recorder's answer to a command.
enum Answer {
    Switched,
    /// Refused, for this reason.
    Stays(String),
}

/// A channel whose receiving end may be held by another thread each time.
struct Exchange<T> {
    sender: Sender<T>,
    receiver: Mutex<Receiver<T>>,
}

impl<T> Default for Exchange<T> {
    fn default() -> Exchange<T> {
        let (sender, receiver) = channel();
        Exchange { sender, receiver: Mutex::new(receiver) }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> DeviceControls<'a> {
    /// For a recording of these names.
    pub(super) fn new(device: &'a Device, names: &[String]) -> DeviceControls<'a> {
        DeviceControls {
            device,
            on: Mutex::new(names.to_vec()),
            all: Mutex::default(),
            commands: Exchange::default(),
            answers: Exchange::default(),
        }
    }

    /// The names of what is recorded now. A recorder that is started with them has no command to wait for:
    /// those that nobody has taken are forgotten.
    pub(super) fn begin_stream(&self) -> Vec<String> {
        lock(&self.commands.receiver).try_iter().for_each(drop);
        lock(&self.on).clone()
    }

    /// Whether the recorder takes commands.
    pub(super) fn can_switch(&self) -> bool {
        self.device.transport().tells_streams_apart()
    }

    fn failed(&self, message: String) -> DeskError {
        DeskError::CommandFailed { serial: self.device.serial().to_owned(), message }
    }
}

impl StreamTalk for DeviceControls<'_> {
    fn next_input(&self) -> Option<String> {
        lock(&self.commands.receiver).try_recv().ok()
    }

    fn take_answer(&self, line: &str) -> bool {
        let answer = if let Some(names) = line.strip_prefix(SWITCHED) {
            let is_category = |name: &str| !name.contains('/');
            let mut on = lock(&self.on);
            on.retain(|name| !is_category(name));
            on.extend(
                names.split(' ').filter(|name| !name.is_empty() && is_category(name)).map(str::to_owned),
            );
            Answer::Switched
        } else if let Some(reason) = line.strip_prefix(REFUSED) {
            Answer::Stays(reason.to_owned())
        } else {
            return false;
        };
        let _ = self.answers.sender.send(answer);
        true
    }
}

impl LiveControls for DeviceControls<'_> {
    fn categories(&self) -> Vec<Value> {
        let mut all = lock(&self.all);
        let all = all.get_or_insert_with(|| {
            let listed =
                self.device.run(&[BINARY_PATH, "list", "--json"], self.device.privilege(), LIST_TIMEOUT);
            let listed = listed.ok().and_then(|output| serde_json::from_str(&output.text()).ok());
            let listed: Vec<Value> = listed.unwrap_or_default();
            let works = listed.iter().filter(|category| category["works"] == true);
            let text = |category: &Value, name: &str| category[name].as_str().unwrap_or_default().to_owned();
            works.map(|category| (text(category, "name"), text(category, "description"))).collect()
        });
        let on = lock(&self.on);
        let object = |(name, description): &(String, String)| json!({ "name": name, "description": description, "on": on.contains(name) });
        all.iter().map(object).collect()
    }

    fn can(&self) -> Vec<&'static str> {
        let always = ["mark", "save", "stop"];
        always.into_iter().chain(self.can_switch().then_some("categories")).collect()
    }

    fn mark(&self, name: &str) -> Result<(), DeskError> {
        let args = [BINARY_PATH, "mark", "instant", name];
        match self.device.run(&args, self.device.privilege(), MARK_TIMEOUT) {
            Ok(output) if output.status == 0 => Ok(()),
            Ok(output) => Err(self.failed(host_hints(&output.message()))),
            Err(error) => Err(error.into()),
        }
    }

    fn switch(&self, on: &[String], off: &[String]) -> Result<(), DeskError> {
        if !self.can_switch() {
            let stay = "this device takes no commands while it records: end the recording, and name other categories";
            return Err(DeskError::Request(stay.into()));
        }
        let answers = lock(&self.answers.receiver);
        // The late answer to a command before this one.
        answers.try_iter().for_each(drop);
        let switch = CategorySwitch { on: on.to_vec(), off: off.to_vec() };
        let _ = self.commands.sender.send(switch.line());
        match answers.recv_timeout(SWITCH_TIMEOUT) {
            Ok(Answer::Switched) => Ok(()),
            Ok(Answer::Stays(reason)) => {
                Err(self.failed(format!("the categories stay: {}", host_hints(&reason))))
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Err(self.failed(format!(
                "the recorder has not said within {} s that it has switched the categories",
                SWITCH_TIMEOUT.as_secs()
            ))),
        }
    }
}
