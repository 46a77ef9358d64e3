//! The names of files on the host: the outputs of several devices, of several launches, and the other files
//! of a recording beside its output.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::device::is_video;
use crate::export::FORMATS;

/// The part of output names that tells the devices of one command apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputName {
    /// The device's serial as a part of a file's name. No other device of the command has this one, also
    /// where the file system takes small and capital letters for the same.
    serial: String,
    /// Whether the command works on other devices, too.
    is_one_of_several: bool,
}

impl OutputName {
    /// The names for the devices with these serials.
    pub fn for_devices(serials: &[String]) -> Vec<OutputName> {
        let mut taken: HashSet<String> = serials
            .iter()
            .filter(|serial| plain_name(serial) == **serial)
            .map(|serial| serial.to_ascii_lowercase())
            .collect();
        let mut given = HashSet::new();
        let mut unique = |serial: &String| {
            let plain = plain_name(serial);
            // A serial that is a name itself stays as it is.
            if plain == *serial && given.insert(plain.to_ascii_lowercase()) {
                return plain;
            }
            let numbered = (2..).map(|number| format!("{plain}-{number}"));
            let mut names = std::iter::once(plain.clone()).chain(numbered);
            names.find(|name| taken.insert(name.to_ascii_lowercase())).unwrap_or(plain)
        };
        serials
            .iter()
            .map(|serial| OutputName { serial: unique(serial), is_one_of_several: serials.len() > 1 })
            .collect()
    }

    /// Whether the command works on this device alone.
    pub fn is_alone(&self) -> bool {
        !self.is_one_of_several
    }

    /// The output of the device: `{serial}` in the name becomes its serial. If the command works on several
    /// devices and the name has no such place, the serial goes before the ending.
    pub fn output(&self, output: &Path) -> PathBuf {
        let Some(name) = output.file_name().map(OsStr::to_string_lossy) else { return output.to_owned() };
        if name.contains("{serial}") {
            return output.with_file_name(name.replace("{serial}", &self.serial));
        }
        if self.is_alone() {
            return output.to_owned();
        }
        before_ending(output, &self.serial)
    }
}

/// The serial with `_` in place of every character that not every file system takes.
fn plain_name(serial: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    serial.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}

/// The path with `-TEXT` before the ending of its name. Bytes of the name that are no text become U+FFFD: two
/// devices must not get one output.
pub fn before_ending(output: &Path, text: &str) -> PathBuf {
    let Some(name) = output.file_name().map(OsStr::to_string_lossy) else { return output.to_owned() };
    let packed = name.strip_suffix(".gz").unwrap_or(&name);
    let known = FORMATS.iter().flat_map(|format| format.endings);
    let ending = known.filter(|ending| packed.ends_with(**ending)).map(|ending| ending.len()).max();
    let length = ending.or_else(|| packed.rfind('.').filter(|at| *at > 0).map(|at| packed.len() - at));
    let (stem, ending) = name.split_at(packed.len() - length.unwrap_or(0));
    output.with_file_name(format!("{stem}-{text}{ending}"))
}

/// The path, and then the path with each number from `first` on before its ending.
pub fn numbered(path: &Path, first: u32) -> impl Iterator<Item = PathBuf> {
    let others = (first..=u32::MAX).map(|number| before_ending(path, &number.to_string()));
    std::iter::once(path.to_owned()).chain(others)
}

/// Whether the output is a capture itself.
pub fn is_capture(output: &Path) -> bool {
    output.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("dat"))
}

/// Whether the output is a method trace itself.
pub fn is_method_trace(output: &Path) -> bool {
    output.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("trace"))
}

/// Whether the output is a copy of the first of these files of a device, and no conversion of it.
pub fn is_copy(files: &[String], output: &Path) -> bool {
    let first_is = |ending: &str| files.first().is_some_and(|file| file.ends_with(ending));
    is_capture(output) && first_is(".dat") || is_method_trace(output) && first_is(".trace")
}

/// The files of the host that become of these files of a device, the output first: copies of them if the
/// output is a `.dat` or a `.trace`, else the output alone, and a video of the screen.
pub fn written_files(files: &[String], output: &Path) -> Vec<PathBuf> {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    // The method trace of a launch and the app's own traces go beside the capture.
    let others = files.iter().skip(1);
    let copied = |file: &String| output.with_file_name(local_name(&stem, file));
    let is_copied = is_copy(files, output);
    let others =
        others.filter_map(|file| if is_copied { Some(copied(file)) } else { video_beside(file, output) });
    std::iter::once(output.to_owned()).chain(others).collect()
}

/// The path of a video of the screen, which stands beside the output whatever its format is; `None` for any
/// other file of a device.
pub fn video_beside(file: &str, output: &Path) -> Option<PathBuf> {
    is_video(file).then(|| output.with_file_name(local_name(&stem(output), file)))
}

/// The output, or the output with a number before its ending if one of its files exists: a recording takes no
/// other file's place.
pub fn free_output(files: &[String], output: &Path) -> PathBuf {
    let is_free = |output: &PathBuf| {
        written_files(files, output).iter().all(|path| fs::symlink_metadata(path).is_err())
    };
    numbered(output, 2).find(is_free).unwrap_or_else(|| output.to_owned())
}

/// The output's name without its endings.
pub fn stem(output: &Path) -> String {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or("capture").to_owned()
}

/// The name on the host for a file of the recording: `stem` in place of `capture` (`capture.trace`,
/// `capture-app-1.pftrace`), or before the ending of another name.
pub fn local_name(stem: &str, file: &str) -> PathBuf {
    let file = file.rsplit('/').next().unwrap_or(file);
    let ending = || file.rfind('.').map_or(".dat", |at| &file[at..]);
    let rest = file.strip_prefix("capture").unwrap_or_else(ending);
    PathBuf::from(format!("{stem}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(serials: &[&str]) -> Vec<OutputName> {
        OutputName::for_devices(&serials.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    fn device_files(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| format!("/data/local/tmp/tracebridge.d/0/{name}")).collect()
    }

    #[test]
    fn each_of_several_devices_has_an_output_of_its_own() {
        let alone = &names_of(&["127.0.0.1:5"])[0];
        let several = &names_of(&["127.0.0.1:5", "S2"])[0];
        let output = |device: &OutputName, name: &str| device.output(Path::new(name)).display().to_string();
        assert_eq!(output(alone, "d/x.dat"), "d/x.dat");
        assert_eq!(output(alone, "d/{serial}.dat"), "d/127.0.0.1_5.dat");
        for (name, named) in [
            ("d/x.dat", "d/x-127.0.0.1_5.dat"),
            ("x.firefox.json", "x-127.0.0.1_5.firefox.json"),
            ("x.txt.gz", "x-127.0.0.1_5.txt.gz"),
            ("x", "x-127.0.0.1_5"),
            ("{serial}/x.{serial}.html", "{serial}/x.127.0.0.1_5.html"),
        ] {
            assert_eq!(output(several, name), named);
        }
    }

    #[cfg(unix)]
    #[test]
    fn each_of_several_devices_has_an_output_of_its_own_also_where_the_name_is_no_text() {
        use std::os::unix::ffi::OsStrExt;

        let output = Path::new(OsStr::from_bytes(b"d/\xffx.dat"));
        let several = names_of(&["S1", "S2"]);
        let outputs: Vec<PathBuf> = several.iter().map(|device| device.output(output)).collect();
        assert_eq!(outputs, [Path::new("d/\u{fffd}x-S1.dat"), Path::new("d/\u{fffd}x-S2.dat")]);
        // The output of one device alone is what the user has named.
        assert_eq!(names_of(&["S1"])[0].output(output), output);
        let numbers: Vec<PathBuf> = numbered(output, 2).take(3).collect();
        assert_eq!(numbers[2], Path::new("d/\u{fffd}x-3.dat"));
    }

    #[test]
    fn serials_that_differ_only_in_what_no_file_name_can_have_get_names_of_their_own() {
        let serials = ["a:b", "a/b", "A_B", "a_b", "a_b-2"];
        let names = names_of(&serials);
        let texts: Vec<_> = names.iter().map(|name| name.serial.as_str()).collect();
        assert_eq!(texts, ["a_b-3", "a_b-4", "A_B", "a_b-5", "a_b-2"]);
    }

    #[test]
    fn the_files_of_a_launch_are_copied_beside_a_capture_and_converted_to_one_output_else() {
        let files = device_files(&["capture.dat", "capture.trace", "capture-app-1.pftrace"]);
        let written = |output: &str| {
            let paths = written_files(&files, Path::new(output));
            paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(written("d/x.dat"), ["d/x.dat", "d/x.trace", "d/x-app-1.pftrace"]);
        assert_eq!(written("d/x.pftrace"), ["d/x.pftrace"]);
        // The first file is no method trace.
        assert_eq!(written("d/x.trace"), ["d/x.trace"]);
        assert!(is_copy(&device_files(&["capture.trace"]), Path::new("x.TRACE")));
        assert!(!is_copy(&device_files(&["capture.txt"]), Path::new("x.dat")));
        let with_video = device_files(&["capture.dat", "capture.mp4"]);
        for (output, video) in [("d/x.dat", "d/x.mp4"), ("d/x.html", "d/x.mp4")] {
            assert_eq!(written_files(&with_video, Path::new(output)), [Path::new(output), Path::new(video)]);
        }
    }

    #[test]
    fn a_recording_takes_no_other_files_place() {
        let dir = tempfile::tempdir().unwrap();
        let files = device_files(&["capture.dat", "capture.trace"]);
        let output = dir.path().join("x.dat");
        assert_eq!(free_output(&files, &output), output);
        // A file beside the output is in the way as the output is.
        fs::write(dir.path().join("x.trace"), "").unwrap();
        assert_eq!(free_output(&files, &output), dir.path().join("x-2.dat"));
        fs::write(dir.path().join("x-2.dat"), "").unwrap();
        assert_eq!(free_output(&files, &output), dir.path().join("x-3.dat"));
    }

    #[test]
    fn a_file_of_a_recording_is_named_after_the_output() {
        for (output, file, name) in [
            ("start.html", "/d/capture.dat", "start.dat"),
            ("a.b.pftrace", "/d/capture-app-2.pftrace", "a-app-2.pftrace"),
            ("x.pftrace", "/data/local/tmp/tracebridge-com.app.trace", "x.trace"),
            ("x.pftrace", "noending", "x.dat"),
            (".pftrace", "/d/capture.dat", "capture.dat"),
        ] {
            assert_eq!(local_name(&stem(Path::new(output)), file), Path::new(name), "{output} {file}");
        }
    }
}
