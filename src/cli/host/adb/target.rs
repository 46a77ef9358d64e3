//! Which devices a command works on.

use std::collections::HashSet;
use std::env;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::adb::Server;
use crate::cli::exit::UsageError;
use crate::export::FORMATS;
use crate::remote::{Choice, Device, choose};
use crate::workers::run_pool;

/// The most devices that are worked on at the same time: all that a shelf of phones holds, so that they
/// record the same moment.
const AT_ONCE: usize = 64;

/// The devices, how root is asked for on them, and how the results are printed: all commands on devices share
/// these flags.
#[derive(Debug, Args)]
pub(super) struct TargetArgs {
    /// These devices, as `adb devices` names them. Default: ANDROID_SERIAL, else the only one
    #[arg(long, short, value_name = "SERIAL", value_delimiter = ',', conflicts_with = "all")]
    serial: Vec<String>,
    /// All devices that are attached, at the same time
    #[arg(long)]
    all: bool,
    /// Have adbd start anew as root first (`adb root`; userdebug and eng builds). It stays root afterwards
    #[arg(long)]
    root: bool,
    /// Print JSON: one object a line, one for each device
    #[arg(long)]
    pub(super) json: bool,
}

/// The result of a command on one device.
pub(super) struct OnDevice<T> {
    pub(super) serial: String,
    pub(super) result: anyhow::Result<T>,
}

impl TargetArgs {
    /// The server, and the serials of the devices that are meant.
    pub(super) fn choose(&self) -> anyhow::Result<(Server, Vec<String>)> {
        let server = Server::from_environment()?;
        server.ensure_running()?;
        let mut serials = self.serial.clone();
        if serials.is_empty() && !self.all {
            serials.extend(env::var("ANDROID_SERIAL").ok().filter(|serial| !serial.is_empty()));
        }
        let mut seen = HashSet::new();
        serials.retain(|serial| seen.insert(serial.clone()));
        if serials.iter().any(|serial| serial.is_empty() || serial.contains(char::is_whitespace)) {
            return Err(UsageError::from("--serial: a serial is empty, or has white space in it").into());
        }
        let choice = match serials.is_empty() {
            false => Choice::Serials(serials),
            true if self.all => Choice::All,
            true => Choice::Only,
        };
        let serials = choose(&server, &choice)?;
        Ok((server, serials))
    }

    /// Does the work on each device, on several at the same time. One that fails does not end the others. The
    /// results are in the order of the devices.
    pub(super) fn on_each<T: Send>(
        &self,
        work: impl Fn(Device, &OutputName) -> anyhow::Result<T> + Sync,
    ) -> anyhow::Result<Vec<OnDevice<T>>> {
        let (server, serials) = self.choose()?;
        let names = OutputName::of_all(&serials);
        let on_one = |serial: &String, name: &OutputName| {
            let work = || {
                let mut device = Device::open(&server, serial)?;
                if self.root {
                    device.become_root()?;
                }
                work(device, name)
            };
            OnDevice { serial: serial.clone(), result: work() }
        };
        let devices: Vec<_> = serials.iter().zip(&names).collect();
        Ok(run_pool(&devices, AT_ONCE, |(serial, name)| on_one(serial, name)))
    }
}

/// How the files of one device are named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutputName {
    /// The device's serial as a part of a file's name. No other device of the command has this one, also
    /// where the file system takes small and capital letters for the same.
    serial: String,
    /// Whether the command works on other devices, too.
    is_one_of_several: bool,
}

impl OutputName {
    /// The names for the devices with these serials.
    fn of_all(serials: &[String]) -> Vec<OutputName> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let plain =
            |serial: &str| -> String { serial.chars().map(|c| if is_plain(c) { c } else { '_' }).collect() };
        let mut taken: HashSet<String> = serials
            .iter()
            .filter(|serial| plain(serial) == **serial)
            .map(|serial| serial.to_ascii_lowercase())
            .collect();
        let mut given = HashSet::new();
        let mut unique = |serial: &String| {
            let wanted = plain(serial);
            // A serial that is a name itself stays as it is.
            if wanted == *serial && given.insert(wanted.to_ascii_lowercase()) {
                return wanted;
            }
            let numbered = (2..).map(|number| format!("{wanted}-{number}"));
            let mut names = std::iter::once(wanted.clone()).chain(numbered);
            names.find(|name| taken.insert(name.to_ascii_lowercase())).unwrap_or(wanted)
        };
        serials
            .iter()
            .map(|serial| OutputName { serial: unique(serial), is_one_of_several: serials.len() > 1 })
            .collect()
    }

    /// Whether the command works on this device alone.
    pub(super) fn is_alone(&self) -> bool {
        !self.is_one_of_several
    }

    /// The output of the device: `{serial}` in the name becomes its serial. Of several devices whose name has
    /// no such place, the serial goes before the ending.
    pub(super) fn of(&self, output: &Path) -> PathBuf {
        let Some(name) = output.file_name().and_then(|name| name.to_str()) else { return output.to_owned() };
        if name.contains("{serial}") {
            return output.with_file_name(name.replace("{serial}", &self.serial));
        }
        if self.is_alone() {
            return output.to_owned();
        }
        before_ending(output, &self.serial)
    }
}

/// The path with `-TEXT` before the ending of its name.
pub(super) fn before_ending(output: &Path, text: &str) -> PathBuf {
    let Some(name) = output.file_name().and_then(|name| name.to_str()) else { return output.to_owned() };
    let packed = name.strip_suffix(".gz").unwrap_or(name);
    let known = FORMATS.iter().flat_map(|format| format.endings);
    let ending = known.filter(|ending| packed.ends_with(**ending)).map(|ending| ending.len()).max();
    let length = ending.or_else(|| packed.rfind('.').filter(|at| *at > 0).map(|at| packed.len() - at));
    let (stem, ending) = name.split_at(packed.len() - length.unwrap_or(0));
    output.with_file_name(format!("{stem}-{text}{ending}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(serials: &[&str]) -> Vec<OutputName> {
        OutputName::of_all(&serials.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn each_of_several_devices_has_an_output_of_its_own() {
        let alone = &names_of(&["127.0.0.1:5"])[0];
        let several = &names_of(&["127.0.0.1:5", "S2"])[0];
        let of = |how: &OutputName, name: &str| how.of(Path::new(name)).display().to_string();
        assert_eq!(of(alone, "d/x.dat"), "d/x.dat");
        assert_eq!(of(alone, "d/{serial}.dat"), "d/127.0.0.1_5.dat");
        for (name, named) in [
            ("d/x.dat", "d/x-127.0.0.1_5.dat"),
            ("x.firefox.json", "x-127.0.0.1_5.firefox.json"),
            ("x.txt.gz", "x-127.0.0.1_5.txt.gz"),
            ("x", "x-127.0.0.1_5"),
            ("{serial}/x.{serial}.html", "{serial}/x.127.0.0.1_5.html"),
        ] {
            assert_eq!(of(several, name), named);
        }
    }

    #[test]
    fn serials_that_differ_only_in_what_no_file_name_can_have_get_names_of_their_own() {
        let serials = ["a:b", "a/b", "A_B", "a_b", "a_b-2"];
        let names = names_of(&serials);
        let texts: Vec<_> = names.iter().map(|name| name.serial.as_str()).collect();
        assert_eq!(texts, ["a_b-3", "a_b-4", "A_B", "a_b-5", "a_b-2"]);
    }
}
