//! `live`: recordings that are shown in a browser while they run. A [view](view) serves one of them; its
//! stream comes from the recorder on a device (here), from a file that grows, or from a recorder on this
//! machine.

mod local;
mod view;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

pub use self::local::{follow_file, follow_recorder};
use self::view::{LiveControls, LiveView};
use super::device::{BINARY_PATH, Device, DeviceError, StreamEnd};
use super::error::DeskError;
use super::host_hints::host_hints;
use super::outcome::{Completeness, DeviceOutcome, DeviceResult, LineKind, OutcomeText};
use super::recording::{PrintedSummary, recorder_error};
use super::targets::{TargetDevice, Targets};
use super::user_interface::UserInterface;
use crate::live::{Kept, Occurrence, Trigger};

/// A device that is gone is asked again so often.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(500);
/// After a lost connection the old recorder may hold the trace buffer for so long.
const OLD_RECORDER_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a page's marker may take.
const MARK_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the list of categories may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// The name of saved files, before they get a number and the ending of their format.
const OUTPUT: &str = "live.dat";

/// A recording that is to be shown while it runs.
#[derive(Debug, Clone)]
pub struct LiveRequest {
    /// The arguments of tracebridge's own `record`: flags, and names behind them.
    pub args: Vec<String>,
    /// The names of what is recorded, as they were given.
    pub names: Vec<String>,
    /// When the recording ends by itself.
    pub duration: Option<Duration>,
    /// How long pages are kept.
    pub keep: Duration,
    /// The app whose numbers are wanted.
    pub app: Option<String>,
    /// The title of the page; without one it is the device's serial.
    pub title: Option<String>,
    /// The conditions that are watched for.
    pub triggers: Vec<Trigger>,
    /// The time that the file of a condition holds before its moment.
    pub before: Duration,
    /// The same behind it.
    pub after: Duration,
    /// Whether the first condition that is met ends the recording.
    pub stops: bool,
    /// The port of the page; 0 takes any.
    pub port: u16,
    /// The directory of saved files.
    pub output_dir: PathBuf,
}

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

fn check_directory(directory: &Path) -> Result<(), DeskError> {
    let path = directory.display().to_string();
    match std::fs::metadata(directory) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(DeskError::NoDirectory { path }),
        Err(source) => Err(DeskError::LocalFile { path, source }),
    }
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

/// The outcome of a recording that was shown: the recorder's own counts, and the files.
fn outcome(end: &StreamEnd, gaps: u64, written: &[PathBuf]) -> DeviceOutcome {
    let (summary, messages): (Vec<&str>, Vec<&str>) = end.log.lines().partition(|line| line.starts_with('{'));
    let summary = summary.concat();
    let printed: PrintedSummary = serde_json::from_str(&summary).unwrap_or_default();
    let mut text = OutcomeText::from(host_hints(&messages.join("\n")));
    written.iter().for_each(|path| text.push(LineKind::Output, &path.display().to_string()));
    printed.push_to(&mut text);
    if gaps > 0 {
        text.push(
            LineKind::Loss,
            &format!("  the connection was lost {gaps} times; the counts are of the last part"),
        );
    }
    let mut fields: Map<String, Value> = serde_json::from_str(&summary).unwrap_or_default();
    let paths: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
    fields.insert("saved".to_owned(), json!(paths));
    fields.insert("connection_losses".to_owned(), json!(gaps));
    let is_lossy = gaps > 0 || end.status == Some(3) || printed.recording.is_lossy();
    let completeness = Completeness::Complete.with_loss(is_lossy);
    DeviceOutcome { completeness, text, json: Value::Object(fields) }
}

/// The path of the file of a condition that was met.
fn capture_of_occurrence(output: &Path, one: &Occurrence) -> PathBuf {
    let is_plain = |c: char| c.is_alphanumeric() || "._-".contains(c);
    let what: String = one.what.chars().map(|c| if is_plain(c) { c } else { '_' }).take(80).collect();
    super::output_names::before_ending(&output.with_extension("pftrace"), &what)
}

/// Writes the part of a recording around a condition that was met, and a text about it beside it.
fn write_occurrence(part: &Kept, one: &Occurrence, path: &Path) -> Result<(), String> {
    part.write(path, None).map_err(|error| format!("{}: {error}", path.display()))?;
    let text = format!("{}\n{}", one.text, local::why_text(path, one));
    let beside = path.with_extension("txt");
    std::fs::write(&beside, text).map_err(|error| format!("{}: {error}", beside.display()))
}

/// What a page may do to a recorder on a device.
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

    fn mark(&self, name: &str) -> Result<(), String> {
        let args = [BINARY_PATH, "mark", "instant", name];
        match self.device.run(&args, self.device.privilege(), MARK_TIMEOUT) {
            Ok(output) if output.status == 0 => Ok(()),
            Ok(output) => Err(host_hints(&output.message())),
            Err(error) => Err(error.to_string()),
        }
    }

    fn switch(&self, _: &[String], _: &[String]) -> Result<(), String> {
        Err("the categories of a recording stay as they were at its begin: end it, and name others"
            .to_owned())
    }
}
