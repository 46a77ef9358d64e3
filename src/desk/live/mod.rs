//! `live`: recordings that are shown in a browser while they run. A [view](view) serves one of them; its
//! stream comes from the recorder on a device (here), from a file that grows, or from a recorder on this
//! machine.

mod file;
mod local;
mod occurrences;
mod request;
mod result;
mod view;

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub use self::file::follow_file;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use self::local::{LocalRecorder, follow_recorder};
pub use self::request::LiveRequest;
use self::request::{OUTPUT, check_directory};
use self::result::outcome;
use self::view::{LiveControls, LiveView};
use super::device::{BINARY_PATH, Device, DeviceError, StreamEnd};
use super::error::DeskError;
use super::host_hints::host_hints;
use super::outcome::{DeviceOutcome, DeviceResult};
use super::recording::recorder_error;
use super::targets::{TargetDevice, Targets};
use super::user_interface::UserInterface;

/// A device that is gone is asked again so often.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(500);
/// After a lost connection the old recorder may hold the trace buffer for so long.
const OLD_RECORDER_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a page's marker may take.
const MARK_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the list of categories may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// Shows recordings on devices while they run, a page for each. `show` is given each page's address.
///
/// # Errors
/// [`DeskError`] if the devices cannot be found.
pub fn live(
    request: &LiveRequest,
    targets: &Targets,
    ui: &dyn UserInterface,
    show: &(dyn Fn(&str, &str) + Sync),
) -> Result<Vec<DeviceResult>, DeskError> {
    check_directory(&request.output_dir)?;
    targets.on_each(ui, |mut target| {
        if request.port != 0 && !target.name.is_alone() {
            return Err(DeskError::Request("--port: each device has a page of its own: leave it out".into()));
        }
        target.device.ensure_binary(None)?;
        live_on(request, &target, show)
    })
}

fn live_on(
    request: &LiveRequest,
    target: &TargetDevice<'_>,
    show: &(dyn Fn(&str, &str) + Sync),
) -> Result<DeviceOutcome, DeskError> {
    let device = &target.device;
    let output = target.name.output(Path::new(OUTPUT));
    let view = LiveView::start(request, &output, device.serial())?;
    show(device.serial(), &view.address());
    let controls = DeviceControls { device, on: request.names.clone(), all: Mutex::new(None) };
    let record = [BINARY_PATH, "record", "-o", "-", "--live", "--json"].map(str::to_owned);
    let command = [&record, request.args.as_slice()].concat();
    let deadline = request.duration.and_then(|duration| Instant::now().checked_add(duration));
    let wants_end = || {
        target.wants_end() || view.wants_end() || deadline.is_some_and(|deadline| Instant::now() > deadline)
    };
    let end = view.run(&controls, |out| stream_until_end(device, &command, out, &wants_end, &view));
    let gaps = view.gaps();
    let written = view.written();
    view.finish("the recording has ended");
    Ok(outcome(&end?, gaps, &written))
}

/// Receives the recorder's stream, and starts another recorder when a lost connection is there again.
fn stream_until_end(
    device: &Device,
    command: &[String],
    out: &mut dyn std::io::Write,
    wants_end: &dyn Fn() -> bool,
    view: &LiveView<'_>,
) -> Result<StreamEnd, DeskError> {
    let mut lost_at: Option<Instant> = None;
    loop {
        let ended = device.stream(command, device.privilege(), out, wants_end, None);
        let (text, is_busy) = match ended {
            Ok(StreamEnd { lost: Some(lost), .. }) => (lost.to_string(), false),
            Ok(end) if matches!(end.status, Some(0 | 3) | None) => return Ok(end),
            // The recorder of the lost connection has not ended yet.
            Ok(end) if lost_at.is_some_and(|at| at.elapsed() < OLD_RECORDER_TIMEOUT) => (end.log, true),
            Ok(end) => return Err(recorder_error(device.serial(), end.status, &end.log)),
            Err(DeviceError::Adb(error)) if lost_at.is_some() && error.is_lost_connection() => {
                (error.to_string(), true)
            }
            Err(error) => return Err(error.into()),
        };
        if wants_end() {
            return Ok(StreamEnd { status: None, log: String::new(), lost: None });
        }
        if !is_busy {
            view.lose_connection(&text);
        }
        loop {
            std::thread::sleep(RECONNECT_INTERVAL);
            if wants_end() {
                return Ok(StreamEnd { status: None, log: String::new(), lost: None });
            }
            if device.wait_until_back(Duration::ZERO, wants_end).is_ok() {
                break;
            }
        }
        if !is_busy {
            lost_at = Some(Instant::now());
        }
    }
}

/// The acts of a page on a recorder on a device.
struct DeviceControls<'a> {
    device: &'a Device,
    /// The names of what is recorded.
    on: Vec<String>,
    /// The categories that work on the device, once it was asked.
    all: Mutex<Option<Vec<(String, String)>>>,
}

impl LiveControls for DeviceControls<'_> {
    fn categories(&self) -> Vec<Value> {
        let Ok(mut all) = self.all.lock() else { return Vec::new() };
        let all = all.get_or_insert_with(|| {
            let listed =
                self.device.run(&[BINARY_PATH, "list", "--json"], self.device.privilege(), LIST_TIMEOUT);
            let listed = listed.ok().and_then(|output| serde_json::from_str(&output.text()).ok());
            let listed: Vec<Value> = listed.unwrap_or_default();
            let works = listed.iter().filter(|category| category["works"] == true);
            let text = |category: &Value, name: &str| category[name].as_str().unwrap_or_default().to_owned();
            works.map(|category| (text(category, "name"), text(category, "description"))).collect()
        });
        let object = |(name, description): &(String, String)| json!({ "name": name, "description": description, "on": self.on.contains(name) });
        all.iter().map(object).collect()
    }

    fn can(&self) -> Vec<&'static str> {
        vec!["mark", "save", "stop"]
    }

    fn mark(&self, name: &str) -> Result<(), DeskError> {
        let args = [BINARY_PATH, "mark", "instant", name];
        match self.device.run(&args, self.device.privilege(), MARK_TIMEOUT) {
            Ok(output) if output.status == 0 => Ok(()),
            Ok(output) => {
                let serial = self.device.serial().to_owned();
                Err(DeskError::CommandFailed { serial, message: host_hints(&output.message()) })
            }
            Err(error) => Err(error.into()),
        }
    }

    fn switch(&self, _: &[String], _: &[String]) -> Result<(), DeskError> {
        let stay = "the categories of a recording stay as they were at its begin: end it, and name others";
        Err(DeskError::Request(stay.into()))
    }
}
