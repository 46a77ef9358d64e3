//! `live`: recordings that are shown in a browser while they run. A [view](view) serves one of them; its
//! stream comes from the recorder on a device (here), from a file that grows, or from a recorder on this
//! machine.

mod device_controls;
mod file;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod local;
mod occurrences;
mod request;
mod result;
mod view;

use std::path::Path;
use std::time::{Duration, Instant};

use self::device_controls::DeviceControls;
pub use self::file::follow_file;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use self::local::{LocalRecorder, follow_recorder};
pub use self::request::LiveRequest;
use self::request::{OUTPUT, check_directory};
use self::result::outcome;
use self::view::LiveView;
use super::device::{BINARY_PATH, Device, DeviceError, StreamEnd, StreamTalk};
use super::error::DeskError;
use super::outcome::{DeviceOutcome, DeviceResult};
use super::recording::recorder_error;
use super::targets::{TargetDevice, Targets};
use super::user_interface::UserInterface;

/// A device that is gone is asked again so often.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(500);
/// After a lost connection the old recorder may hold the trace buffer for so long.
const OLD_RECORDER_TIMEOUT: Duration = Duration::from_secs(20);

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
    let controls = DeviceControls::new(device, &request.names);
    let deadline = request.duration.and_then(|duration| Instant::now().checked_add(duration));
    let wants_end = || {
        target.wants_end() || view.wants_end() || deadline.is_some_and(|deadline| Instant::now() > deadline)
    };
    let end = view.run(&controls, |out| stream_until_end(device, request, &controls, out, &wants_end, &view));
    let gaps = view.gaps();
    let written = view.written();
    view.finish("the recording has ended");
    Ok(outcome(&end?, gaps, &written))
}

/// The command of a recorder that records these names, and for the rest as it was asked for.
fn recorder_command(request: &LiveRequest, names: &[String]) -> Vec<String> {
    let record = [BINARY_PATH, "record", "-o", "-", "--live", "--json"].map(str::to_owned);
    let flags = request.args.split(|arg| arg == "--").next().unwrap_or_default();
    let dashes = if names.is_empty() { None } else { Some("--".to_owned()) };
    record.into_iter().chain(flags.iter().cloned()).chain(dashes).chain(names.iter().cloned()).collect()
}

/// Receives the recorder's stream, and starts another recorder when a lost connection is there again.
fn stream_until_end(
    device: &Device,
    request: &LiveRequest,
    controls: &DeviceControls<'_>,
    out: &mut dyn std::io::Write,
    wants_end: &dyn Fn() -> bool,
    view: &LiveView<'_>,
) -> Result<StreamEnd, DeskError> {
    let mut lost_at: Option<Instant> = None;
    loop {
        let command = recorder_command(request, &controls.begin_stream());
        let talk = controls.can_switch().then_some(controls as &dyn StreamTalk);
        let ended = device.stream(&command, device.privilege(), out, wants_end, None, talk);
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
