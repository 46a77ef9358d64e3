//! `adb devices`: the attached devices, and what can be recorded on them.

use clap::Args;

use super::results::desk_error;
use crate::cli::Exit;
use crate::console::{complain, printable, say};
use crate::desk::{self, DeviceDetails, ListedDevice};

/// List the attached devices: model, Android release, ABI, how root is had, whether tracing works
#[derive(Debug, Args)]
#[command(after_help = "\
ROOT is adbd (adbd runs as root), su -c, su 0 or su root (so a command becomes root), refused (there is a su that gave no
root: accept its dialogue on the device), or no. TRACING is yes, part (what SELinux leaves to the user shell; `adb doctor`
says item by item what), or no. A device that cannot be used has its reason and the cure instead. Where the tracebridge on
a device is another one than this program pushes, a line on stderr names its version.

No device is an empty list, and no failure: the exit status is 0. Scripts read --json, which prints nothing then; a command
that needs a device fails without one.")]
pub struct DevicesArgs {
    /// Print one JSON object a line, one for each device
    #[arg(long)]
    json: bool,
}

/// The titles of the columns: the serial, and the details of a [`ListedDevice`].
const TITLES: [&str; 6] = ["SERIAL", "MODEL", "ANDROID", "ABI", "ROOT", "TRACING"];

/// Runs `adb devices`.
pub fn run(args: &DevicesArgs) -> anyhow::Result<Exit> {
    let mut table = Table::default();
    let mut show = |devices: Vec<ListedDevice>| {
        for device in &devices {
            if let Some(warning) = &device.warning {
                complain(format_args!("tracebridge: {}: {warning}", printable(&device.serial)));
            }
        }
        if args.json {
            for device in devices {
                let json = serde_json::to_value(&device.json).unwrap_or_default();
                say(format_args!("{json}\n"));
            }
        } else {
            say(format_args!("{}", table.lines(&devices)));
        }
    };
    let count = desk::list_devices(&mut show).map_err(desk_error)?;
    if count == 0 && !args.json {
        say(format_args!(
            "no device is attached: a phone needs USB debugging (in its developer options) and a yes to its dialogue, \
             one on the network `adb connect HOST:PORT`\n"
        ));
    }
    Ok(Exit::Complete)
}

/// The table of devices, of which some lines may have been printed before others are known.
#[derive(Debug, Default)]
struct Table {
    /// As wide as the columns have been until now, in characters.
    widths: [usize; TITLES.len()],
}

impl Table {
    /// The rows of these devices below each other, columns as wide as they must be, the titles above the
    /// first ones. A device that cannot be used has its problem behind the serial, in place of the other
    /// columns.
    fn lines(&mut self, devices: &[ListedDevice]) -> String {
        let is_first = self.widths[0] == 0;
        let titles = is_first.then(|| TITLES.map(str::to_owned).to_vec());
        let cells_of = |device: &ListedDevice| {
            let details = match &device.details {
                DeviceDetails::Usable(details) => details.as_slice(),
                DeviceDetails::Unusable(problem) => std::slice::from_ref(problem),
            };
            let cells = std::iter::once(&device.serial).chain(details);
            cells.map(|cell| printable(cell).into_owned()).collect()
        };
        let rows: Vec<Vec<String>> = titles.into_iter().chain(devices.iter().map(cells_of)).collect();
        for (column, width) in self.widths.iter_mut().enumerate() {
            let cells = rows.iter().filter(|row| column == 0 || row.len() == TITLES.len());
            *width = cells.map(|row| row[column].chars().count()).max().unwrap_or(0).max(*width);
        }
        let mut out = String::new();
        for row in &rows {
            let padded = row.iter().zip(self.widths).map(|(cell, width)| format!("{cell:<width$}"));
            out += padded.collect::<Vec<_>>().join("  ").trim_end();
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desk::ListedJson;

    #[test]
    fn a_device_that_cannot_be_used_has_its_problem_beside_its_serial() {
        let device = |serial: &str, details| ListedDevice {
            serial: serial.to_owned(),
            details,
            warning: None,
            json: ListedJson::default(),
        };
        let details = ["Pixel 3a", "15", "arm64-v8a", "su -c", "yes"].map(str::to_owned);
        let problem = "unauthorized: unlock the device, a long text that widens no column".to_owned();
        assert_eq!(
            Table::default().lines(&[
                device("S1", DeviceDetails::Usable(details)),
                device("0123456789", DeviceDetails::Unusable(problem))
            ]),
            "SERIAL      MODEL     ANDROID  ABI        ROOT   TRACING\n\
             S1          Pixel 3a  15       arm64-v8a  su -c  yes\n\
             0123456789  unauthorized: unlock the device, a long text that widens no column\n"
        );
    }

    #[test]
    fn a_device_that_answers_late_has_its_row_below_the_others() {
        let device = |serial: &str, model: &str| {
            let details = [model, "15", "x86", "no", "part"].map(str::to_owned);
            ListedDevice {
                serial: serial.to_owned(),
                details: DeviceDetails::Usable(details),
                warning: None,
                json: ListedJson::default(),
            }
        };
        let mut table = Table::default();
        let first = table.lines(&[device("S1", "Pixel 3a")]);
        let later = table.lines(&[device("S2", "P")]);
        assert_eq!(
            first + &later,
            "SERIAL  MODEL     ANDROID  ABI  ROOT  TRACING\n\
             S1      Pixel 3a  15       x86  no    part\n\
             S2      P         15       x86  no    part\n"
        );
    }
}
