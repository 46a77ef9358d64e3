//! `adb devices`: what is attached, and what can be recorded on it.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use crate::adb::{AttachedDevice, Server};
use crate::cli::Exit;
use crate::console::say;
use crate::remote::{Device, device_text};
use crate::workers::run_pool;

/// How long a device may take to say whether it can be traced.
const LOOK_TIME: Duration = Duration::from_secs(10);
/// The most devices that are asked at the same time.
const AT_ONCE: usize = 16;

/// List the attached devices: model, Android release, ABI, how root is had, whether tracing works
#[derive(Debug, Args)]
#[command(after_help = "\
ROOT is adbd (adbd runs as root), su -c, su 0 or su root (so a command becomes root), refused (there is a su that gave no
root: accept its dialogue on the device), or no. TRACING is yes, part (what SELinux leaves to the user shell; `adb doctor`
says item by item what), or no. A device that cannot be used has its reason and the cure instead.")]
pub struct DevicesArgs {
    /// Print one JSON object a line, one for each device
    #[arg(long)]
    json: bool,
}

/// Runs `adb devices`.
pub fn run(args: &DevicesArgs) -> anyhow::Result<Exit> {
    let server = Server::from_environment()?;
    server.ensure_running()?;
    let attached = server.devices()?;
    let rows = run_pool(&attached, AT_ONCE, |device| Row::of(&server, device));
    if args.json {
        rows.iter().for_each(|row| say(format_args!("{}\n", row.json)));
    } else if rows.is_empty() {
        say(format_args!("no device is attached\n"));
    } else {
        say(format_args!("{}", table(&rows)));
    }
    Ok(Exit::Complete)
}

const HEAD: [&str; 6] = ["SERIAL", "MODEL", "ANDROID", "ABI", "ROOT", "TRACING"];

struct Row {
    cells: [String; 6],
    /// In place of the cells after the serial.
    problem: Option<String>,
    json: Value,
}

impl Row {
    fn of(server: &Server, attached: &AttachedDevice) -> Row {
        let serial = &attached.serial;
        let looked = attached.check().and_then(|()| {
            let device = Device::open(server, serial)?;
            let tracing = tracing(&device)?;
            Ok((device, tracing))
        });
        let (device, tracing) = match looked {
            Ok(looked) => looked,
            Err(error) => {
                let json = json!({ "serial": serial, "state": attached.state, "error": error.to_string() });
                let problem = error.to_string();
                let problem = problem.strip_prefix(&format!("{serial}: ")).unwrap_or(&problem).to_owned();
                let mut cells: [String; 6] = Default::default();
                cells[0] = serial.clone();
                return Row { cells, problem: Some(problem), json };
            }
        };
        let facts = &device.facts;
        let root = if facts.su_refused { "refused".to_owned() } else { device.privilege().to_string() };
        let known = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        let mut json = json!({ "serial": serial, "state": attached.state, "root": root, "tracing": tracing });
        if let (Some(fields), Ok(Value::Object(facts))) = (json.as_object_mut(), serde_json::to_value(facts))
        {
            fields.extend(facts);
        }
        let attached_model = device_text(attached.model.as_deref().unwrap_or_default());
        let model = if facts.model.is_empty() { &attached_model } else { &facts.model };
        let cells = [
            serial.clone(),
            known(model),
            known(&facts.release),
            known(&facts.abi),
            root,
            tracing.to_owned(),
        ];
        Row { cells, problem: None, json }
    }
}

/// Whether the device's trace buffer can be used: `yes`, `part`, `no`.
pub(super) fn tracing(device: &Device) -> Result<&'static str, crate::adb::AdbError> {
    let script = "for d in /sys/kernel/tracing /sys/kernel/debug/tracing; do if [ -w $d/tracing_on ]; then \
                  if [ -w $d/set_event ]; then echo yes; else echo part; fi; exit; fi; done; echo no";
    let answer = device.run_script(script, device.privilege(), LOOK_TIME)?.text();
    Ok(["yes", "part"].into_iter().find(|word| answer.trim() == *word).unwrap_or("no"))
}

/// The rows below each other, columns as wide as they must be.
fn table(rows: &[Row]) -> String {
    let head = HEAD.map(str::to_owned);
    let printable = |text: &str| crate::console::printable(text).into_owned();
    let all = || std::iter::once(&head).chain(rows.iter().map(|row| &row.cells));
    let width = |column: usize| {
        let cells =
            all().enumerate().filter(|(at, _)| *at == 0 || column == 0 || rows[at - 1].problem.is_none());
        cells.map(|(_, cells)| printable(&cells[column]).chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let mut out = String::new();
    for (at, cells) in all().enumerate() {
        let problem = at.checked_sub(1).and_then(|row| rows[row].problem.as_deref());
        let line = match problem {
            Some(problem) => format!("{:<w$}  {}", printable(&cells[0]), printable(problem), w = widths[0]),
            None => cells
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{:<width$}", printable(cell)))
                .collect::<Vec<_>>()
                .join("  "),
        };
        out += line.trim_end();
        out.push('\n');
    }
    out
}
