//! `adb devices`: the attached devices, and what can be recorded on them.

use clap::Args;

use super::results::desk_error;
use crate::cli::Exit;
use crate::console::{printable, say};
use crate::desk::{self, DeviceDetails, ListedDevice};

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

/// The titles of the columns: the serial, and the details of a [`ListedDevice`].
const TITLES: [&str; 6] = ["SERIAL", "MODEL", "ANDROID", "ABI", "ROOT", "TRACING"];

/// Runs `adb devices`.
pub fn run(args: &DevicesArgs) -> anyhow::Result<Exit> {
    let devices = desk::list_devices().map_err(desk_error)?;
    if args.json {
        devices.iter().for_each(|device| say(format_args!("{}\n", device.json)));
    } else if devices.is_empty() {
        say(format_args!("no device is attached\n"));
    } else {
        say(format_args!("{}", table(&devices)));
    }
    Ok(Exit::Complete)
}

/// The rows below each other, columns as wide as they must be. A device that cannot be used has its problem
/// behind the serial, in place of the other columns.
fn table(devices: &[ListedDevice]) -> String {
    let mut rows = vec![TITLES.map(str::to_owned).to_vec()];
    rows.extend(devices.iter().map(|device| {
        let details = match &device.details {
            DeviceDetails::Usable(details) => details.as_slice(),
            DeviceDetails::Unusable(problem) => std::slice::from_ref(problem),
        };
        let cells = std::iter::once(&device.serial).chain(details);
        cells.map(|cell| printable(cell).into_owned()).collect()
    }));
    let columns = TITLES.len();
    let width = |column: usize| {
        let cells = rows.iter().filter(|row| column == 0 || row.len() == columns);
        cells.map(|row| row[column].chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        out += padded.collect::<Vec<_>>().join("  ").trim_end();
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_device_that_cannot_be_used_has_its_problem_beside_its_serial() {
        let device =
            |serial: &str, details| ListedDevice { serial: serial.to_owned(), details, json: Value::Null };
        let details = ["Pixel 3a", "15", "arm64-v8a", "su -c", "yes"].map(str::to_owned);
        let problem = "unauthorized: unlock the device, a long text that widens no column".to_owned();
        assert_eq!(
            table(&[
                device("S1", DeviceDetails::Usable(details)),
                device("0123456789", DeviceDetails::Unusable(problem))
            ]),
            "SERIAL      MODEL     ANDROID  ABI        ROOT   TRACING\n\
             S1          Pixel 3a  15       arm64-v8a  su -c  yes\n\
             0123456789  unauthorized: unlock the device, a long text that widens no column\n"
        );
    }
}
