//! Traces that other programs have left on a device: Perfetto's recorder and its app System Tracing,
//! benchmarks of androidx, and of apps ProfilingManager (`files/profiling`, Android 15) and the library
//! androidx.tracing. They are copied here, and stay on the device.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::delivery::local_error;
use super::device::{
    APP_TRACE_DIRS, COMMAND_TIMEOUT, Device, DeviceError, Privilege, PulledFile, SESSIONS_DIR, command_line,
    data_dir, printable_text,
};
use super::device_json::{DeviceJson, FetchedFile};
use super::error::DeskError;
use super::outcome::{Completeness, DeviceOutcome, DeviceResult, LineKind, OutcomeText};
use super::output_names::free_output;
use super::pull::file_name;
use super::targets::{TargetDevice, Targets};
use super::user_interface::UserInterface;
use crate::adb::AdbError;
use crate::formats::input::Input;
use crate::formats::{BENCHMARK_METRICS_ENDING, identify, is_benchmark_metrics};
use crate::text::byte_size;

/// How long the copy of a file may take on the device.
const STAGING_TIMEOUT: Duration = Duration::from_secs(120);

/// The most files that are fetched from one place.
const MAX_FILES: usize = 500;

/// So many files that cannot be fetched end the command.
const MAX_FAILURES: usize = 20;

/// The longest path of a file that is fetched, bytes.
const MAX_PATH_BYTES: usize = 1024;

/// So much of a longer path is shown, characters.
const SHOWN_PATH_CHARS: usize = 200;

/// The endings that files keep here. A file with another one gets `.perfetto-trace` behind its name, so that
/// a device cannot name a file as it likes.
const KEPT_ENDINGS: [&str; 7] = [
    ".perfetto-trace",
    ".pftrace",
    ".ptrace",
    ".trace",
    ".perfetto-stack-sample",
    ".perfetto-heap-profile",
    ".perfetto-java-heap-dump",
];

/// Which traces are fetched, and where they go.
#[derive(Debug, Clone)]
pub struct OtherTracesRequest {
    /// The directory for the files, which is made if it is missing.
    pub directory: PathBuf,
    /// The packages of apps whose own traces are fetched besides.
    pub apps: Vec<String>,
}

/// Who may read a place.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reader {
    /// Commands with these rights.
    User(Privilege),
    /// The app itself, as which `run-as` runs commands where it is debuggable. Paths are relative to its
    /// directory.
    App(String),
}

/// A directory in which programs leave traces.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TracePlace {
    /// Who leaves traces there.
    origin: String,
    directory: String,
    /// A script that prints the paths of the traces, a line for each, or [`CLOSED`].
    list: String,
    reader: Reader,
}

/// The line of a place that may not be read. Paths begin otherwise.
const CLOSED: &str = "!closed";

impl TracePlace {
    /// A directory of the system. `tests` are the tests of `find` besides that for an ordinary file.
    fn of_system(origin: &str, directory: &str, tests: &str, privilege: Privilege) -> TracePlace {
        let find = format!("find {directory} -type f {tests} 2>/dev/null");
        TracePlace {
            origin: origin.to_owned(),
            directory: directory.to_owned(),
            list: format!(
                "if [ -r {directory} ]; then {find}; elif [ -e {directory} ]; then echo '{CLOSED}'; fi"
            ),
            reader: Reader::User(privilege),
        }
    }

    /// The directory of an app.
    fn of_app(package: &str, privilege: Privilege) -> TracePlace {
        let directory = data_dir(package);
        let find = |from: &str| {
            let dirs = APP_TRACE_DIRS.map(|dir| format!("{from}{dir}")).join(" ");
            format!(
                "find {dirs} -type f \\( -path '{from}files/profiling/*' -o -name '*.perfetto-trace' \\) 2>/dev/null"
            )
        };
        let (list, reader) = if privilege.is_root() {
            let find = find(&format!("{directory}/"));
            let list = format!("if [ -d {directory} ]; then {find}; else echo '{CLOSED}'; fi");
            (list, Reader::User(privilege))
        } else {
            let as_app = command_line(&["run-as", package, "sh", "-c", &format!("{}; :", find(""))]);
            let list = format!("{as_app} </dev/null 2>/dev/null || echo '{CLOSED}'");
            (list, Reader::App(package.to_owned()))
        };
        TracePlace { origin: package.to_owned(), directory, list, reader }
    }

    /// All places, those of the apps last.
    fn all(apps: &[String], privilege: Privilege) -> Vec<TracePlace> {
        let benchmarks = format!(
            "\\( -name '*.perfetto-trace' -o -name '*.trace' -o -name '*{BENCHMARK_METRICS_ENDING}' \\)"
        );
        let mut places = vec![
            TracePlace::of_system("Perfetto", "/data/misc/perfetto-traces", "", privilege),
            TracePlace::of_system("System Tracing", "/data/local/traces", "", privilege),
            TracePlace::of_system("a benchmark", "/storage/emulated/0/Android/media", &benchmarks, privilege),
        ];
        places.extend(apps.iter().map(|app| TracePlace::of_app(app, privilege)));
        places
    }

    /// The paths of the files in this place; `None` if it is closed.
    fn files(&self, device: &Device) -> Result<Option<ListedFiles>, DeskError> {
        let rights = match &self.reader {
            Reader::User(privilege) => *privilege,
            Reader::App(_) => Privilege::Shell,
        };
        let script = format!("( {} ) | head -n {}", self.list, MAX_FILES + 1);
        let printed = device.ask(&script, rights, COMMAND_TIMEOUT)?.text();
        if printed.lines().any(|line| line.trim_end() == CLOSED) {
            return Ok(None);
        }
        let listed = self.paths_of(&printed).ok_or_else(|| DeskError::CommandFailed {
            serial: device.serial().to_owned(),
            message: format!("{}: what the device answers is no list of files", self.directory),
        })?;
        Ok(Some(listed))
    }

    /// The paths in a list, in order; `None` if it is no list of paths.
    fn paths_of(&self, printed: &str) -> Option<ListedFiles> {
        let mut paths: Vec<String> = Vec::new();
        for line in printed.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)) {
            if self.may_begin(line) {
                paths.push(line.to_owned());
            } else if let (false, Some(before)) = (line.is_empty(), paths.last_mut()) {
                // The path before has a line feed in it.
                before.push('\n');
                before.push_str(line);
            } else if !line.is_empty() {
                return None;
            }
        }
        let (odd, files): (Vec<String>, Vec<String>) =
            paths.into_iter().partition(|path| fault_of(path).is_some());
        let mut listed = ListedFiles { files, odd };
        listed.files.sort();
        listed.odd.sort();
        Some(listed)
    }

    /// Whether the path of a file of this place may begin so.
    fn may_begin(&self, line: &str) -> bool {
        match self.reader {
            Reader::User(_) => line.starts_with('/'),
            Reader::App(_) => line.split_once('/').is_some_and(|(dir, _)| APP_TRACE_DIRS.contains(&dir)),
        }
    }

    /// Copies a file of this place to the host.
    fn pull(&self, file: &str, local: &Path, device: &Device) -> Result<PulledFile, DeskError> {
        let package = match &self.reader {
            Reader::User(privilege) => return Ok(device.pull(file, local, *privilege)?),
            Reader::App(package) => package,
        };
        // adb's own user may not read the app's file, and the app may not write where adb's user reads.
        // `adb clean` removes the directory, with what a lost connection leaves there.
        let copy = format!("{SESSIONS_DIR}/other-trace");
        let read = command_line(&["run-as", package, "cat", file]);
        let script = format!("mkdir -p {SESSIONS_DIR} && {read} </dev/null >{copy}");
        let copied = device.run_script(&script, Privilege::Shell, STAGING_TIMEOUT)?;
        let pulled = if copied.status == 0 {
            device.pull(&copy, local, Privilege::Shell).map_err(DeskError::from)
        } else {
            let serial = device.serial().to_owned();
            Err(DeskError::CommandFailed { serial, message: copied.message() })
        };
        let _ = device.run_script(&format!("rm -f {copy}"), Privilege::Shell, COMMAND_TIMEOUT);
        pulled
    }
}

/// The files of a place.
#[derive(Debug, PartialEq, Eq)]
struct ListedFiles {
    /// The paths of the files that are fetched.
    files: Vec<String>,
    /// Paths that are not asked for ([`fault_of`]).
    odd: Vec<String>,
}

/// Why a file with this path is not fetched; `None` if it is.
fn fault_of(path: &str) -> Option<String> {
    if path.len() > MAX_PATH_BYTES {
        Some(format!("its path has {} bytes: at most {MAX_PATH_BYTES} are asked for", path.len()))
    } else if path.contains(char::is_control) {
        Some("its path has a control character".to_owned())
    } else {
        None
    }
}

/// The begin of a path that is not fetched, with its control characters escaped.
fn escaped(path: &str) -> String {
    let begin: String = path.chars().take(SHOWN_PATH_CHARS).collect();
    let more = if begin.len() < path.len() { "…" } else { "" };
    format!("{}{more}", begin.escape_debug())
}

/// Fetches the traces that other programs have left on devices.
///
/// # Errors
/// [`DeskError`] if the devices cannot be found.
pub fn fetch_other_traces(
    request: &OtherTracesRequest,
    targets: &Targets,
    ui: &dyn UserInterface,
) -> Result<Vec<DeviceResult>, DeskError> {
    targets.on_each(ui, |target| fetch_all(request, &target))
}

/// Fetches all of a device. One that cannot be fetched keeps no other from being fetched.
fn fetch_all(request: &OtherTracesRequest, target: &TargetDevice<'_>) -> Result<DeviceOutcome, DeskError> {
    if let Some(app) = request.apps.iter().find(|app| !is_package(app)) {
        return Err(DeskError::Request(
            format!("--app {app}: name a package, such as com.example.app").into(),
        ));
    }
    fs::create_dir_all(&request.directory).map_err(local_error(&request.directory))?;
    let mut fetched = FetchedTraces::new(target, &request.directory);
    for place in TracePlace::all(&request.apps, target.device.privilege()) {
        match place.files(&target.device)? {
            Some(listed) => {
                fetched.leave_out(&place, &listed.odd);
                fetched.fetch(&place, &listed.files)?;
            }
            None => {
                fetched.text.push(LineKind::Note, &place.closed_text());
                fetched.closed.push(place.directory.clone());
            }
        }
        if fetched.is_ended {
            fetched.text.push(LineKind::Loss, "what comes behind it is not fetched");
            break;
        }
    }
    Ok(fetched.into_outcome())
}

/// The traces that were fetched from a device.
struct FetchedTraces<'a> {
    target: &'a TargetDevice<'a>,
    directory: &'a Path,
    completeness: Completeness,
    text: OutcomeText,
    /// An object for each file.
    list: Vec<FetchedFile>,
    /// The directories that may not be read.
    closed: Vec<String>,
    failures: usize,
    /// Whether no more is fetched: the connection or the disk is bad, or nearly nothing can be fetched.
    is_ended: bool,
}

impl<'a> FetchedTraces<'a> {
    fn new(target: &'a TargetDevice<'a>, directory: &'a Path) -> FetchedTraces<'a> {
        FetchedTraces {
            target,
            directory,
            completeness: Completeness::Complete,
            text: OutcomeText::default(),
            list: Vec::new(),
            closed: Vec::new(),
            failures: 0,
            is_ended: false,
        }
    }

    /// Fetches these files of a place.
    fn fetch(&mut self, place: &TracePlace, files: &[String]) -> Result<(), DeskError> {
        if files.len() > MAX_FILES {
            let more =
                format!("{}: more than {MAX_FILES} files: the others are not fetched", place.directory);
            self.text.push(LineKind::Loss, &more);
            self.completeness = self.completeness.with_loss(true);
        }
        for file in files.iter().take(MAX_FILES) {
            let local = free_local(self.target, self.directory, file)?;
            let progress = self.target.show_progress(std::slice::from_ref(&local));
            let pulled = place.pull(file, &local, &self.target.device);
            drop(progress);
            match pulled {
                Ok(pulled) => self.add(place, file, &local, pulled),
                Err(error) => self.add_failure(place, file, &error),
            }
            if self.is_ended {
                break;
            }
        }
        Ok(())
    }

    /// Names the files of a place that are not asked for.
    fn leave_out(&mut self, place: &TracePlace, odd: &[String]) {
        for (path, fault) in odd.iter().filter_map(|path| Some((escaped(path), fault_of(path)?))) {
            let error = format!("it is not fetched: {fault}");
            self.completeness = self.completeness.with_loss(true);
            self.text.push(LineKind::Loss, &format!("{path}: {error}"));
            self.list.push(FetchedFile::failed(path, place, error));
        }
    }

    fn add(&mut self, place: &TracePlace, file: &str, local: &Path, pulled: PulledFile) {
        let kind = kind_of(local);
        let size = byte_size(pulled.bytes);
        let line = format!("{} ({kind}, {size}), left by {}", local.display(), place.origin);
        self.text.push(LineKind::Output, &line);
        self.list.push(FetchedFile {
            path: Some(local.to_string_lossy().into_owned()),
            bytes: Some(pulled.bytes),
            verified: Some(pulled.verification),
            kind: Some(kind),
            left_by: Some(place.origin.clone()),
            device_path: Some(file.to_owned()),
            error: None,
        });
    }

    fn add_failure(&mut self, place: &TracePlace, file: &str, error: &DeskError) {
        self.completeness = Completeness::Failed;
        self.failures += 1;
        self.is_ended = self.failures == MAX_FAILURES || !is_of_one_file(error);
        self.text.push(LineKind::Loss, &format!("{}: {error}", printable_text(file)));
        self.list.push(FetchedFile::failed(file.to_owned(), place, error.to_string()));
    }

    fn into_outcome(mut self) -> DeviceOutcome {
        if self.list.is_empty() {
            self.text.push(LineKind::Note, "no other program has left a trace where it can be read");
        }
        let json = DeviceJson {
            files: Some(self.list),
            closed_directories: Some(self.closed),
            ..DeviceJson::default()
        };
        DeviceOutcome { completeness: self.completeness, text: self.text, json }
    }
}

impl FetchedFile {
    fn failed(device_path: String, place: &TracePlace, error: String) -> FetchedFile {
        FetchedFile {
            device_path: Some(device_path),
            left_by: Some(place.origin.clone()),
            error: Some(error),
            ..FetchedFile::default()
        }
    }
}

impl TracePlace {
    /// Says that the place may not be read, and what would change that.
    fn closed_text(&self) -> String {
        match &self.reader {
            Reader::User(_) => format!("{} is closed to adb's user; root reads it", self.directory),
            Reader::App(package) => format!(
                "{}: {package} is not there, or no debuggable app; root reads the directory of any app",
                self.directory
            ),
        }
    }
}

/// Whether another file may be fetched all the same: the connection and the disk of this machine are good.
fn is_of_one_file(error: &DeskError) -> bool {
    match error {
        DeskError::Device(DeviceError::Adb(error)) => matches!(error, AdbError::Refused { .. }),
        DeskError::Device(error) => !matches!(error, DeviceError::LocalFile { .. }),
        error => matches!(error, DeskError::CommandFailed { .. }),
    }
}

/// Whether this may be the name of a package. It stands in scripts and in patterns of paths.
fn is_package(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._".contains(&byte);
    name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.bytes().all(is_part)
}

/// The path on the host for a file of a device: one at which nothing is.
fn free_local(target: &TargetDevice<'_>, directory: &Path, file: &str) -> Result<PathBuf, DeskError> {
    let name = local_name(file_name(file)?);
    let wanted = target.name.output(&directory.join(name));
    Ok(free_output(&[], &wanted))
}

/// The name on the host for a file of this name.
fn local_name(name: &str) -> String {
    let name = name.trim_start_matches('.');
    let has_ending = |ending: &&str| name.len() > ending.len() && name.ends_with(*ending);
    if KEPT_ENDINGS.iter().any(has_ending) || is_benchmark_metrics(Path::new(name)) {
        name.to_owned()
    } else {
        format!("{name}.perfetto-trace")
    }
}

/// The kind of a file that was fetched, for people.
fn kind_of(file: &Path) -> String {
    if is_benchmark_metrics(file) {
        return "metrics of a benchmark".to_owned();
    }
    match Input::open(file) {
        Ok(input) => {
            identify(&input).map_or_else(|unread| unread.what.to_owned(), |format| format.name().to_owned())
        }
        Err(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_names_only_traces() {
        let names = [
            ("trace", "trace.perfetto-trace"),
            ("x.pftrace", "x.pftrace"),
            ("Makefile", "Makefile.perfetto-trace"),
            ("package.json", "package.json.perfetto-trace"),
            (".bashrc", "bashrc.perfetto-trace"),
            (".pftrace", "pftrace.perfetto-trace"),
            ("com.example-benchmarkData.json", "com.example-benchmarkData.json"),
            ("p_1_uid-2.perfetto-stack-sample", "p_1_uid-2.perfetto-stack-sample"),
        ];
        for (name, local) in names {
            assert_eq!(local_name(name), local);
        }
    }

    #[test]
    fn a_list_has_paths_that_are_fetched_and_odd_ones_and_nothing_else() {
        let place = TracePlace::of_system("Perfetto", "/t", "", Privilege::Shell);
        let long = format!("/t/{}", "x".repeat(MAX_PATH_BYTES));
        let listed =
            place.paths_of(&format!("/t/b\r\n/t/a\n/t/bell\x07\n{long}\n/t/two\nlines\n\n")).unwrap();
        assert_eq!(listed.files, ["/t/a", "/t/b"]);
        assert_eq!(listed.odd, ["/t/bell\x07", "/t/two\nlines", long.as_str()]);
        let escaped: Vec<String> = listed.odd.iter().map(|path| escaped(path)).collect();
        assert_eq!(escaped[..2], ["/t/bell\\u{7}", "/t/two\\nlines"]);
        assert!(
            escaped[2].ends_with("xx…") && escaped[2].chars().count() == SHOWN_PATH_CHARS + 1,
            "{escaped:?}"
        );
        for text in ["error: closed\n/t/a\n", "find: no\n"] {
            assert_eq!(place.paths_of(text), None, "{text}");
        }
        assert_eq!(place.paths_of("\n"), Some(ListedFiles { files: Vec::new(), odd: Vec::new() }));
    }

    #[test]
    fn an_app_is_asked_by_root_or_as_the_app() {
        let as_root = TracePlace::of_app("com.a", Privilege::AdbdRoot);
        assert_eq!(as_root.reader, Reader::User(Privilege::AdbdRoot));
        assert!(as_root.list.contains("-path '/data/data/com.a/files/profiling/*'"), "{}", as_root.list);
        let as_app = TracePlace::of_app("com.a", Privilege::Shell);
        assert_eq!(as_app.reader, Reader::App("com.a".to_owned()));
        assert!(as_app.list.starts_with("run-as com.a sh -c 'find files "), "{}", as_app.list);
        assert!(is_package("com.example_2.app") && !is_package("com.a'; reboot") && !is_package("../x"));
    }
}
