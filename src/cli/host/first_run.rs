//! The answer to `tracebridge` without arguments on a terminal: what the program is, and the three commands
//! that fit what it sees at a glance. Elsewhere, and with wrong arguments, clap answers.

use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::cli::Exit;
use crate::console::{printable, say};
use crate::desk::{AdbGlance, SeenDevice, glance_at_adb, quoted};
use crate::formats::{FormatId, ReadableFile, readable_files};

/// How long the program looks around.
const GLANCE: Duration = Duration::from_secs(1);

/// Names longer than this stand in no line, characters.
const MAX_NAME_CHARS: usize = 40;

/// The most files that are named.
const MAX_NAMED_FILES: usize = 2;

/// The number of commands.
const COMMANDS: usize = 3;

/// Prints ten lines, within little more than [`GLANCE`], whatever adb and the directory do.
pub fn greet() -> Exit {
    let deadline = Instant::now() + GLANCE;
    let adb = beside(|| glance_at_adb(GLANCE));
    let files = beside(move || readable_files(Path::new("."), deadline).unwrap_or_default());
    // The adb server may take the whole time, and the directory has had it by then.
    let adb = adb.recv_timeout(GLANCE).ok();
    let left = deadline.saturating_duration_since(Instant::now());
    let files = files.recv_timeout(left.max(Duration::from_millis(50))).unwrap_or_default();
    let adb = adb.unwrap_or_else(|| AdbGlance::Unclear("the adb server is silent".to_owned()));
    say(format_args!("{}", text(&adb, &files, this_system())));
    Exit::Complete
}

/// Has a thread look. Whoever waits for it stops after a time: it may hang where a file system or a server
/// does, and ends with the program.
fn beside<T: Send + 'static>(look: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (found, receiver) = channel();
    let _ = thread::Builder::new().spawn(move || found.send(look()));
    receiver
}

/// The parts of the text that depend on the system.
#[derive(Debug, Clone, Copy)]
struct System {
    /// The command that installs adb.
    install_adb: &'static str,
    /// Whether the program records the machine that it runs on.
    records_itself: bool,
}

fn this_system() -> System {
    System {
        install_adb: if cfg!(target_os = "macos") {
            "brew install --cask android-platform-tools"
        } else if cfg!(windows) {
            "winget install Google.PlatformTools"
        } else {
            "sudo apt install adb"
        },
        records_itself: cfg!(any(target_os = "linux", target_os = "android")),
    }
}

/// A command line, and its purpose.
struct Suggestion {
    command: String,
    purpose: String,
}

impl Suggestion {
    fn new(command: impl Into<String>, purpose: impl Into<String>) -> Suggestion {
        Suggestion { command: command.into(), purpose: purpose.into() }
    }
}

/// The ten lines.
fn text(adb: &AdbGlance, files: &[ReadableFile], system: System) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!(
        "tracebridge {version} records Android phones and Linux, and says where the time of an app went.\n\
         It sees {} and {}.\n\n",
        adb_seen(adb),
        files_seen(files)
    );
    for Suggestion { command, purpose } in suggestions(adb, files, system) {
        text += &format!("  {command}\n      {purpose}\n");
    }
    text + "All commands: tracebridge --help. Nothing is sent anywhere: there is no telemetry.\n"
}

/// A name that may stand in a line for people.
fn short(name: &str) -> String {
    let name = printable(name);
    match name.char_indices().nth(MAX_NAME_CHARS) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.into_owned(),
    }
}

fn adb_seen(adb: &AdbGlance) -> String {
    match adb {
        AdbGlance::NotInstalled => "no adb here, which reaches phones".to_owned(),
        AdbGlance::NoServer => "adb, whose server does not run".to_owned(),
        AdbGlance::Unclear(_) => "adb, which does not tell its devices".to_owned(),
        AdbGlance::Devices(devices) => match devices.as_slice() {
            [] => "no phone on adb".to_owned(),
            [one] => match &one.problem {
                None => format!("a phone on adb ({})", short(&one.name)),
                Some(problem) => format!("a phone on adb that is {} ({})", short(problem), short(&one.name)),
            },
            several => {
                let usable = several.iter().filter(|device| device.problem.is_none()).count();
                format!("{} devices on adb, of which {usable} can be used,", several.len())
            }
        },
    }
}

fn files_seen(files: &[ReadableFile]) -> String {
    let named: Vec<String> = files.iter().take(MAX_NAMED_FILES).map(|file| short(&file.name)).collect();
    let more = files.len() - named.len();
    match files.len() {
        0 => "no trace in this directory".to_owned(),
        1 => format!("a trace in this directory: {}", named.concat()),
        count if more == 0 => format!("{count} traces in this directory: {}", named.join(", ")),
        count => format!("{count} traces in this directory: {} and {more} more", named.join(", ")),
    }
}

/// The three commands: the first for what is there, the last for what is not.
fn suggestions(adb: &AdbGlance, files: &[ReadableFile], system: System) -> Vec<Suggestion> {
    let phone = phone_suggestions(adb, system);
    let has_phone = phone.len() > 1;
    let files = file_suggestions(files);
    let has_files = files.len() > 1;
    let mut phone = phone.into_iter();
    let mut files = files.into_iter();
    let chosen: Vec<Suggestion> = match (has_phone, has_files) {
        (true, true) => phone.by_ref().take(1).chain(files).collect(),
        (true, false) => phone.collect(),
        (false, true) => files.by_ref().take(2).chain(phone).collect(),
        (false, false) => phone.chain(files).chain([itself(system)]).collect(),
    };
    chosen.into_iter().take(COMMANDS).collect()
}

/// The commands for phones: one that leads to a phone where none can be used, else three.
fn phone_suggestions(adb: &AdbGlance, system: System) -> Vec<Suggestion> {
    let devices = match adb {
        AdbGlance::NotInstalled => {
            let purpose =
                "installs adb (Android's platform tools), and then `tracebridge adb devices` lists phones";
            return vec![Suggestion::new(system.install_adb, purpose)];
        }
        AdbGlance::NoServer => {
            let purpose = "starts the adb server, and lists the phones that are attached";
            return vec![Suggestion::new("tracebridge adb devices", purpose)];
        }
        AdbGlance::Unclear(_) => {
            let purpose = "lists the phones that are attached, or says what is wrong with the adb server";
            return vec![Suggestion::new("tracebridge adb devices", purpose)];
        }
        AdbGlance::Devices(devices) => devices,
    };
    let usable: Vec<&SeenDevice> = devices.iter().filter(|device| device.problem.is_none()).collect();
    let Some(first) = usable.first() else {
        let purpose = if devices.is_empty() {
            "lists phones: one needs USB debugging (in its developer options) and a yes to its dialogue"
        } else {
            "says what each phone lacks, and the cure"
        };
        return vec![Suggestion::new("tracebridge adb devices", purpose)];
    };
    let serial = if usable.len() == 1 { String::new() } else { format!(" --serial {}", serial_word(first)) };
    vec![
        Suggestion::new(
            format!("tracebridge adb launch com.example.app{serial} -o start.html --open"),
            "records the start of an app, and opens the page that shows where its time went",
        ),
        Suggestion::new(
            format!("tracebridge adb record sched freq gfx view{serial} -t 10 -o x.html --open"),
            "records ten seconds of whatever the phone does",
        ),
        Suggestion::new(
            format!("tracebridge adb doctor{serial}"),
            "says what this phone permits to be recorded",
        ),
    ]
}

/// A serial as a word of a command line, or a placeholder for one that no shell takes as it is.
fn serial_word(device: &SeenDevice) -> &str {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
    let serial = device.serial.as_str();
    let is_word = !serial.starts_with('-') && serial.len() <= MAX_NAME_CHARS && serial.chars().all(is_plain);
    if is_word { serial } else { "SERIAL" }
}

/// The commands for files: one that says what could be given where there is none, else two.
fn file_suggestions(files: &[ReadableFile]) -> Vec<Suggestion> {
    // A video alone shows nothing: it stands beside a recording.
    let Some(newest) = files.iter().find(|file| file.format != FormatId::ScreenVideo) else {
        let purpose = "shows a recording or a method trace of the last 17 years in the browser, offline";
        return vec![Suggestion::new("tracebridge open FILE", purpose)];
    };
    let (recording, methods) = pair_of(files, newest);
    let words: Vec<String> = [recording, methods].into_iter().flatten().map(file_word).collect();
    let words = words.join(" ");
    let open = Suggestion::new(format!("tracebridge open {words}"), "shows it in the browser, offline");
    let second = match (recording, methods) {
        (Some(_), Some(_)) => Suggestion::new(
            format!("tracebridge why {words}"),
            "says why the launch in it took as long as it did",
        ),
        (Some(recording), None) if !recording.format.holds_samples() => Suggestion::new(
            format!("tracebridge info {words}"),
            "says what is in it, launches and frames among that, and what is missing",
        ),
        _ => Suggestion::new(format!("tracebridge profile {words}"), "says in which methods the time went"),
    };
    vec![open, second]
}

/// The newest file, and with it the method trace or the recording of the same name (`start.dat`,
/// `start.trace`), as `adb launch` writes them: first what is no method trace, then the method trace.
fn pair_of<'f>(
    files: &'f [ReadableFile],
    newest: &'f ReadableFile,
) -> (Option<&'f ReadableFile>, Option<&'f ReadableFile>) {
    let is_methods = |file: &ReadableFile| file.format == FormatId::MethodTrace;
    let is_recording = |file: &ReadableFile| file.format == FormatId::TraceDat;
    let stem = |file: &'f ReadableFile| Path::new(&file.name).file_stem();
    let partner = files.iter().find(|file| {
        stem(file) == stem(newest)
            && (is_methods(newest) && is_recording(file) || is_recording(newest) && is_methods(file))
    });
    if is_methods(newest) { (partner, Some(newest)) } else { (Some(newest), partner) }
}

/// A file's name as a word of a command line, or a placeholder for one that people would not want to copy.
fn file_word(file: &ReadableFile) -> String {
    let name = file.name.as_str();
    if name.chars().count() > MAX_NAME_CHARS || printable(name) != name {
        return "FILE".to_owned();
    }
    // A name that begins with a dash would be an option.
    let word = if name.starts_with('-') { format!("./{name}") } else { name.to_owned() };
    let quoted_word = quoted(&word);
    if !cfg!(windows) {
        return quoted_word;
    }
    if quoted_word == word {
        return word;
    }
    // No name on Windows has a quotation mark, and its shells read these between two of them.
    if word.contains(['%', '$', '`', '!']) { "FILE".to_owned() } else { format!("\"{word}\"") }
}

/// The command where there is neither a phone nor a file.
fn itself(system: System) -> Suggestion {
    if system.records_itself {
        Suggestion::new("tracebridge doctor", "says what can be recorded on this computer itself (as root)")
    } else {
        Suggestion::new("tracebridge help adb", "lists the commands for attached phones")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX: System = System { install_adb: "sudo apt install adb", records_itself: true };

    fn device(serial: &str, problem: Option<&str>) -> SeenDevice {
        SeenDevice {
            serial: serial.to_owned(),
            name: format!("Pixel {serial}"),
            problem: problem.map(str::to_owned),
        }
    }

    fn file(name: &str, format: FormatId) -> ReadableFile {
        ReadableFile { name: name.to_owned(), format }
    }

    /// The commands of the text, which has ten lines.
    fn commands(adb: &AdbGlance, files: &[ReadableFile]) -> Vec<String> {
        let text = text(adb, files, LINUX);
        assert_eq!(text.lines().count(), 10, "{text}");
        let lines = text.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        lines.map(|line| line.trim_start().to_owned()).collect()
    }

    #[test]
    fn three_commands_fit_what_is_seen() {
        let phone = AdbGlance::Devices(vec![device("S1", None)]);
        let launch = "tracebridge adb launch com.example.app -o start.html --open";
        let recording = [file("x.pftrace", FormatId::Perfetto)];
        let methods = [file("app.trace", FormatId::MethodTrace), file("x.pftrace", FormatId::Perfetto)];
        let devices = "tracebridge adb devices";
        let cases: [(&AdbGlance, &[ReadableFile], [&str; 3]); 7] = [
            (
                &AdbGlance::NotInstalled,
                &[],
                ["sudo apt install adb", "tracebridge open FILE", "tracebridge doctor"],
            ),
            (
                &AdbGlance::NoServer,
                &recording,
                ["tracebridge open x.pftrace", "tracebridge info x.pftrace", devices],
            ),
            (&AdbGlance::Devices(Vec::new()), &[], [devices, "tracebridge open FILE", "tracebridge doctor"]),
            (
                &AdbGlance::Devices(vec![device("S1", Some("unauthorized"))]),
                &methods,
                ["tracebridge open app.trace", "tracebridge profile app.trace", devices],
            ),
            (
                &phone,
                &[],
                [
                    launch,
                    "tracebridge adb record sched freq gfx view -t 10 -o x.html --open",
                    "tracebridge adb doctor",
                ],
            ),
            (&phone, &methods, [launch, "tracebridge open app.trace", "tracebridge profile app.trace"]),
            (
                &AdbGlance::Unclear("x".to_owned()),
                &[file("v.mp4", FormatId::ScreenVideo)],
                [devices, "tracebridge open FILE", "tracebridge doctor"],
            ),
        ];
        for (adb, files, expected) in cases {
            assert_eq!(commands(adb, files), expected, "{adb:?}");
        }
    }

    #[test]
    fn a_recording_and_the_method_trace_of_its_name_are_opened_together() {
        let dat = file("start.dat", FormatId::TraceDat);
        let trace = file("start.trace", FormatId::MethodTrace);
        let other = file("other.trace", FormatId::MethodTrace);
        for files in [[dat.clone(), other.clone(), trace.clone()], [trace, dat, other]] {
            let said = commands(&AdbGlance::NoServer, &files);
            assert_eq!(
                said[..2],
                ["tracebridge open start.dat start.trace", "tracebridge why start.dat start.trace"]
            );
        }
    }

    #[test]
    fn of_several_phones_a_command_names_one_that_can_be_used() {
        let glance = |serial| {
            AdbGlance::Devices(vec![device("S0", Some("offline")), device(serial, None), device("S2", None)])
        };
        assert!(commands(&glance("S1"), &[])[0].contains(" --serial S1 -o "));
        let long = "x".repeat(MAX_NAME_CHARS + 1);
        for hostile in ["-S1", "a;reboot", "a b", "$(x)", long.as_str()] {
            assert!(commands(&glance(hostile), &[])[0].contains(" --serial SERIAL -o "), "{hostile}");
        }
        assert!(
            text(&glance("S1"), &[], LINUX).contains("It sees 3 devices on adb, of which 2 can be used, and")
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_name_becomes_one_harmless_word_or_a_placeholder() {
        let long = "x".repeat(MAX_NAME_CHARS + 1);
        for (name, word) in [
            ("a b.dat", "'a b.dat'"),
            ("-rf", "./-rf"),
            ("$(reboot).dat", "'$(reboot).dat'"),
            ("it's.dat", r"'it'\''s.dat'"),
            ("a\nb.dat", "FILE"),
            ("\u{1b}[2J.dat", "FILE"),
            ("\u{202e}tad.exe", "FILE"),
            (long.as_str(), "FILE"),
        ] {
            let files = [file(name, FormatId::TraceDat)];
            assert_eq!(commands(&AdbGlance::NoServer, &files)[0], format!("tracebridge open {word}"));
        }
    }

    #[test]
    fn long_lists_and_names_are_cut() {
        let files: Vec<ReadableFile> =
            (0..9).map(|at| file(&format!("{at}{}", "ä".repeat(60)), FormatId::TraceDat)).collect();
        let seen = files_seen(&files);
        assert!(
            seen.starts_with("9 traces in this directory: 0ää") && seen.ends_with("ä… and 7 more"),
            "{seen}"
        );
        assert!(seen.chars().count() < 130, "{seen}");
    }
}
