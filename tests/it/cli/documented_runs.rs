//! The commands of the README and of the pages in docs/ run as they stand there, in a directory with files of
//! the names that the pages use, and with an imitated phone: each block of code is one shell script, of which
//! every command ends with 0, or with 3 where something is missing from a recording. Commands that cannot run
//! in a test are listed here with the reason.

use std::fs;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

use support::adb_server::AdbServer;
use support::launch_scenario::{Launch, NoiseSource, USUAL, launches};
use support::pages::{CodeBlock, code_blocks, device_commands, is_of_device, pages};
use support::perf_writer::{BOOTTIME, perf_data};
use support::python::{python, python_with};
use support::sample_report::{RUNNING, SampleReport};
use support::scenario::START;
use support::{
    Command, Ran, TempDir, listed_commands, project_dir, run_in, run_line, screen_video, tracebridge, until,
    write_program,
};

use super::adb::abi;
use super::gate::{text_of_frames, write_launch};

/// So many lines of the pages run at least: fewer, and this test would have gone blind.
const MIN_LINES: usize = 90;

/// So many examples are in the help of the host's commands at least.
const MIN_EXAMPLES: usize = 20;

/// So many blocks run at the same time. Most of them wait for the imitated phone now and then.
const THREADS: usize = 4;

/// Parts of lines that do not run here, and why.
const NOT_RUN: [(&str, &str); 18] = [
    ("./scripts/demo", "boots the emulated device"),
    ("./scripts/test", "runs this test"),
    ("./scripts/setup", "installs packages"),
    ("scripts/build-android", "builds for minutes"),
    ("./scripts/art", "builds a runtime; the stage art of scripts/test runs it"),
    ("./scripts/dist", "builds for minutes"),
    ("./scripts/site", "needs mdbook and the demo; the stage site of scripts/test runs it"),
    ("cargo ", "builds, or asks a registry"),
    ("android/emulator/boot", "boots the emulated device"),
    ("scripts/faults", "takes minutes; tests/it/cli/scripts.rs runs it"),
    ("scripts/spark-ingest", "needs a Spark cluster; dataset_engines.rs runs it"),
    ("target/release/tracebridge", "needs the build of the line before"),
    ("lab 3f9c", "names a trace of the reader's own"),
    ("adb live ", "goes on until somebody ends it; tests/device/live.rs runs it"),
    ("tracebridge live ", "goes on until its recording ends; tests/it/live follows streams"),
    (" --live ", "needs the kernel's trace buffer, and goes on until somebody ends it"),
    (" --stream ", "needs the device's own recorder; tests/device records a stream"),
    ("/sys/kernel/tracing", "needs the kernel's tracefs; tests/device/documented.rs runs it"),
];

/// Stands in for `adb`, for the device S1. `HERE` is the device's directory.
const ADB: &str = r#"case $1 in
    devices) printf 'List of devices attached\nS1\tdevice\n' ;;
    install) [ -f "$2" ] ;;
    shell) shift; exec sh -c "$(printf '%s ' "$@" | sed "s|/data/local/tmp|HERE|g")" ;;
    *) echo "adb: $1 is none of the commands of this test" >&2; exit 1 ;;
esac"#;

/// Fetches what the Perfetto UI would fetch, and nothing for a page.
const BROWSER: &str = r#"case $1 in *url=http*) ;; *) exit ;; esac
exec 3<>/dev/tcp/127.0.0.1/9001
printf 'GET /%s HTTP/1.1\r\nHost: 127.0.0.1:9001\r\n\r\n' "${1##*/}" >&3
cat <&3 >/dev/null"#;

/// Android's programs on the device.
const ANDROID: [(&str, &str); 7] = [
    (
        "am",
        "case $2 in start) for f; do :; done; echo $f >HERE/f ;; stop) cp HERE/methods-a/1.trace $(cat HERE/f) ;; esac",
    ),
    (
        "pm",
        "case $1:$* in path:*) echo package:HERE/own.apk ;; *-other.apk*) : >HERE/other; echo Success ;; \
         *) rm -f HERE/other; echo Success ;; esac",
    ),
    ("id", "echo 'uid=0(root) gid=0(root)'"),
    ("chown", ":"),
    ("sync", ":"),
    ("screenrecord", "cp HERE/screen.mp4 \"$3\""),
    ("perfetto", "cat >/dev/null; echo 'starting tracing' >&2; cp HERE/recorded.pftrace \"$4\""),
];

/// The directory of all files that the pages name, and of the phone's.
struct Fixture {
    dir: TempDir,
    has_duckdb: bool,
}

/// The files of all tests of this module. Each test works in a copy.
static FIXTURE: LazyLock<Fixture> = LazyLock::new(Fixture::new);

/// The one port from which the Perfetto UI fetches, so that neither another block nor another run of these
/// tests serves there meanwhile. The lock is a name of the network to which the port belongs, and goes with
/// the process that holds it.
struct PerfettoPort(#[expect(dead_code, reason = "holds the name")] UnixListener);

impl PerfettoPort {
    const LOCK: &str = "tracebridge-test-port-9001";

    fn try_take() -> Option<PerfettoPort> {
        let name = SocketAddr::from_abstract_name(PerfettoPort::LOCK).unwrap();
        UnixListener::bind_addr(&name).ok().map(PerfettoPort)
    }

    fn take() -> PerfettoPort {
        let mut port = None;
        until("the port of the Perfetto UI", || {
            port = PerfettoPort::try_take();
            port.is_some()
        });
        port.unwrap()
    }
}

/// A device, and a directory in which commands run.
struct Workplace {
    dir: TempDir,
    server: AdbServer,
    bin: TempDir,
}

/// Writes a launch as a recording of the kernel, in which the app's wait for a CPU has no other reason.
fn write_launch_dat(dir: &Path, name: &str, total_us: u64) {
    let text = dir.join("launch.txt");
    write_launch(&text, total_us, "inflate");
    let written = fs::read_to_string(&text).unwrap();
    let named = written.replace("com.example", "com.example.app").replace("prev_state=S", "prev_state=R");
    fs::write(&text, named).unwrap();
    run_in(dir, &["convert", "launch.txt", "-o", name]).exited(0);
    fs::remove_file(&text).unwrap();
}

/// Writes a recording and its method trace.
fn write_pair(dir: &Path, name: &str, seed: u64, pace_percent: u64) {
    let made = Launch { seed, day: 0, slow_percent: 0, pace_percent }.make();
    fs::write(dir.join(format!("{name}.dat")), made.dat).unwrap();
    let trace = replace(&made.trace, b"com.example.app.Parser\tdecode", b"com.google.gson.Gson\tfromJson");
    fs::write(dir.join(format!("{name}.trace")), trace).unwrap();
}

fn replace(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let at = bytes.windows(old.len()).position(|window| window == old).expect("the method is there");
    [&bytes[..at], new, &bytes[at + old.len()..]].concat()
}

impl Fixture {
    fn new() -> Fixture {
        let fixture = Fixture { dir: support::tempdir(), has_duckdb: python_with("duckdb").is_some() };
        let [files, phone] = ["files", "phone"].map(|name| fixture.dir.path().join(name));
        for name in ["main", "branch", "monday", "today", "runs", "old", "new", "scripts"] {
            fs::create_dir_all(files.join(name)).unwrap();
        }
        for name in ["launches-a", "launches-b", "methods-a", "methods-b", "perfetto"] {
            fs::create_dir_all(phone.join(name)).unwrap();
        }
        let pairs = ["app", "launch", "new1", "new2", "new3", "old1", "old2", "old3", "x", "other"];
        let pairs = pairs.iter().chain(&["runs/1", "runs/2", "old/1", "old/2", "new/1", "new/2"]);
        for (seed, name) in (1..).zip(pairs) {
            write_pair(&files, name, seed, 100);
        }
        // As long as the times on the pages are.
        write_pair(&files, "start", 50, 600);
        write_launch_dat(&files, "big.dat", 4_000_000);
        for seed in 1..3 {
            for (number, side) in (0..).zip(["methods-a", "methods-b"]) {
                write_pair(&phone.join(side), &seed.to_string(), 60 + seed + 10 * number, 100);
            }
        }
        let source = &mut NoiseSource(1);
        for sides in [["main/", "branch/"], ["monday/", "today/"], ["start-a-", "start-b-"]] {
            for side in sides {
                for (run, ns) in (1..).zip(launches(source, 8, 400e6, USUAL)) {
                    write_launch_dat(&files, &format!("{side}{run}.dat"), ns / 1_000);
                }
            }
        }
        for side in ["launches-a", "launches-b"] {
            for (run, ns) in (1..).zip(launches(source, 20, 400e6, USUAL)) {
                write_launch_dat(&phone.join(side), &format!("{run}.dat"), ns / 1_000);
            }
        }
        write_launch_dat(&files, "new.dat", 440_000);
        write_launch_dat(&files, "old.dat", 400_000);
        fixture.write_others(&files, &phone);
        fixture
    }

    fn write_others(&self, files: &Path, phone: &Path) {
        fs::write(files.join("scroll.txt"), text_of_frames(5, 6_000, true)).unwrap();
        for line in [
            "convert scroll.txt -o scroll.pftrace",
            "convert app.dat -o systrace.html --format systrace-html",
            "convert app.dat -o OLD --format systrace-html",
            "convert app.dat -o ../phone/recorded.pftrace",
            "convert app.dat -o ../phone/atrace.txt",
            "dataset add lab main/1.dat main/2.dat main/3.dat main/4.dat main/5.dat main/6.dat --tag build=1233 \
             --tag device=S1",
            "dataset add lab branch/1.dat branch/2.dat branch/3.dat branch/4.dat branch/5.dat branch/6.dat \
             --tag build=1234 --tag device=S1",
            "dataset add lab1 monday/1.dat",
            "dataset add lab2 today/1.dat",
        ] {
            run_line(files, line).exited_with_one_of(&[0, 3]);
        }
        fs::copy(files.join("app.dat"), phone.join("recorded.dat")).unwrap();
        fs::write(files.join("mapping.txt"), "com.example.app.Feed -> a.b:\n    void bind() -> a\n").unwrap();
        fs::write(files.join("perf.data"), "main;run;libfeed.so+0x110 3\n").unwrap();
        fs::create_dir(files.join("symbols")).unwrap();
        let symbols = "MODULE Linux arm64 0 libfeed.so\nFUNC 100 20 0 bind\n";
        fs::write(files.join("symbols/libfeed.sym"), symbols).unwrap();
        for name in ["other.apk", "other-version.apk", "new.apk", "old.apk"] {
            fs::write(files.join(name), "an app").unwrap();
        }
        for name in ["after", "before", "release"] {
            fs::copy(files.join("app.trace"), files.join(format!("{name}.trace"))).unwrap();
        }
        let samples: Vec<(u64, u32, u32)> = (0..9).map(|n| (START + n * 1_000_000, 9_000, 9_000)).collect();
        fs::write(files.join("perf.data"), perf_data(BOOTTIME, &samples)).unwrap();
        let mut of_app = SampleReport::default();
        of_app.thread(9_000, 9_000, "main");
        of_app.sample(START, 9_000, RUNNING, &["com.example.app.Feed.bind"]);
        fs::write(files.join("app.perf.data"), of_app.bytes()).unwrap();
        write_program(&files.join("test-7"), "#!/bin/sh\n");
        let video = screen_video::video(&screen_video::frames(1_000_000_000, 3), screen_video::Tables::Both);
        for dir in [files, phone] {
            fs::write(dir.join("screen.mp4"), &video).unwrap();
        }
        fs::write(phone.join("x.dat"), "of the device").unwrap();
        fs::write(phone.join("own.apk"), "an app").unwrap();
        let trace = fs::read(files.join("app.trace")).unwrap();
        fs::write(files.join("bugreport.zip"), support::files::zip(&[("FS/data/app.trace", &trace)]))
            .unwrap();
        let query = format!("#!/bin/sh\nexec '{}/scripts/query' \"$@\"\n", project_dir().display());
        write_program(&files.join("scripts/query"), query);
        for abi in [abi(), "armeabi-v7a"] {
            let program = fs::read(project_dir().join("tests/support/documented_phone.sh")).unwrap();
            write_program(&self.dir.path().join("binaries").join(abi).join("tracebridge"), program);
        }
    }

    /// A device and a directory of its own.
    fn workplace(&self) -> Workplace {
        let server = AdbServer::start(&[("S1", "device")], "shell_v2,cmd,stat_v2,ls_v2");
        let place = Workplace { dir: support::tempdir(), server, bin: support::tempdir() };
        let phone = place.phone();
        for (from, to) in [("files", place.dir.path()), ("phone", &phone)] {
            // Links: nothing writes into a file that is there.
            let from = self.dir.path().join(from).join(".");
            Command::new("cp").arg("-al").arg(from).arg(to).run().exited(0);
        }
        for dataset in ["lab", "lab1", "lab2"] {
            // A lock is of one place alone: a file of its own, and no link.
            let lock = place.dir.path().join(dataset).join(".tracebridge-lock");
            let bytes = fs::read(&lock).unwrap();
            fs::remove_file(&lock).unwrap();
            fs::write(&lock, bytes).unwrap();
        }
        fs::copy(phone.join("atrace.txt"), place.dir.path().join("out.atrace")).unwrap();
        let here = phone.display().to_string();
        let program = |path: PathBuf, shell: &str, script: &str| {
            write_program(&path, format!("#!/bin/{shell}\n{}\n", script.replace("HERE", &here)));
        };
        fs::create_dir_all(phone.join("proc-sys/vm")).unwrap();
        for (name, script) in ANDROID {
            program(phone.join("bin").join(name), "sh", script);
        }
        let bin = place.bin.path();
        program(bin.join("adb"), "sh", ADB);
        program(bin.join("browser"), "bash", BROWSER);
        program(bin.join("git"), "sh", "echo 1235");
        std::os::unix::fs::symlink(support::binary(), bin.join("tracebridge")).unwrap();
        place
    }

    /// Runs a script in a place, to its end.
    fn run(&self, place: &Workplace, script: &str) -> Ran {
        let path = format!("{}:{}", place.bin.path().display(), std::env::var("PATH").unwrap());
        let mut bash = Command::new("bash");
        bash.args(["-c", script]).current_dir(place.dir.path());
        // Where somebody's own files would be written to.
        bash.env("HOME", place.dir.path());
        bash.env("PATH", path)
            .env("BROWSER", place.bin.path().join("browser"))
            .env("ANDROID_ADB_SERVER_PORT", place.server.port().to_string())
            .env("TRACEBRIDGE_DEVICE_BINARIES", self.dir.path().join("binaries"))
            .env("TRACEBRIDGE_ADB_TIMEOUT", "100")
            .env("TRACEBRIDGE_PYTHON", python())
            .env("GITHUB_STEP_SUMMARY", place.dir.path().join("summary.md"))
            .env("S", "S1")
            .env("yesterday", "1233");
        bash.run()
    }

    /// Runs the lines of a block in one shell. Returns the command that failed and what all have printed.
    fn failure_of(&self, lines: &[String]) -> Option<String> {
        let is_resumed = lines.iter().any(|line| line.contains("pull --resume"));
        let place = self.workplace();
        if is_resumed {
            let session = place.phone().join("tracebridge.d/0123456789abcdef");
            fs::create_dir_all(&session).unwrap();
            for (name, text) in [("output", "lost.dat"), ("status", "0"), ("summary.json", "{}"), ("log", "")]
            {
                fs::write(session.join(name), text).unwrap();
            }
            fs::copy(place.phone().join("recorded.dat"), session.join("capture.dat")).unwrap();
        }
        let trap = "trap 's=$?; [ $s = 3 ] || { echo \"exit status $s: $BASH_COMMAND\" >&2; exit 1; }' ERR";
        let ran = self.run(&place, &format!("{trap}\n{}", lines.join("\n")));
        let is_wrong = ran.code() != Some(0) && ran.code() != Some(3) || ran.stderr.contains("Usage:");
        is_wrong.then(|| ran.said())
    }
}

impl Workplace {
    /// The directory of the phone.
    fn phone(&self) -> PathBuf {
        self.server.dir("S1")
    }
}

/// Why a line does not run here; `None` if it does.
fn reason_not_to_run(line: &str, device_commands: &[String]) -> Option<&'static str> {
    let found = NOT_RUN.iter().find(|(part, _)| line.contains(part));
    let of_device = "needs the kernel's tracefs; tests/device/documented.rs runs it";
    found.map(|(_, why)| *why).or(is_of_device(line, device_commands).then_some(of_device))
}

/// The lines of a block that are commands: of an indented block, which may be what a command prints, those
/// that begin with a program of this project or `adb`; of code in a sentence, those that name a file.
fn commands_of(block: &CodeBlock) -> Vec<&String> {
    let begins = |line: &&String| {
        ["tracebridge ", "adb ", "./scripts/", "scripts/"]
            .iter()
            .any(|start| line.trim_start().starts_with(start))
    };
    let names_file =
        |line: &&String| line.starts_with("tracebridge ") && line.contains('.') && !line.contains('…');
    match block.language.as_str() {
        "sh" => block.lines.iter().collect(),
        "" if block.is_inline => block.lines.iter().filter(names_file).collect(),
        "" => block.lines.iter().filter(begins).collect(),
        _ => Vec::new(),
    }
}

/// The lines of each block of a page that are to run, and the parts of [`NOT_RUN`] that were found.
fn lines_to_run(page: &str, device_commands: &[String]) -> Vec<Vec<String>> {
    let blocks = code_blocks(page);
    let of_block = |block: &CodeBlock| -> Vec<String> {
        let lines = commands_of(block).into_iter();
        lines.filter(|line| reason_not_to_run(line, device_commands).is_none()).cloned().collect()
    };
    blocks.iter().map(of_block).filter(|lines| !lines.is_empty()).collect()
}

/// The examples in the help of each command of the host, without those of the device.
fn examples_of_helps(device_commands: &[String]) -> Vec<(String, Vec<String>)> {
    let mut blocks = Vec::new();
    let mut paths = vec![Vec::new()];
    while let Some(path) = paths.pop() {
        let help = tracebridge().args(&path).arg("--help").run().exited(0).said();
        let is_own = |name: &&str| *name != "help" && !(path.is_empty() && is_one_of(device_commands, name));
        let inner = listed_commands(&help).into_iter().filter(is_own);
        paths.extend(inner.map(|name| [&path[..], &[name.to_owned()]].concat()));
        let is_example = |line: &&str| ["tracebridge ", "{ "].iter().any(|start| line.starts_with(start));
        let joined = help.replace("\\\n", " ");
        let lines = joined.lines().map(str::trim_start).filter(is_example);
        let lines = lines.filter(|line| reason_not_to_run(line, device_commands).is_none());
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        if !lines.is_empty() {
            blocks.push((format!("tracebridge {} --help", path.join(" ")), lines));
        }
    }
    blocks
}

fn is_one_of(names: &[String], name: &str) -> bool {
    names.iter().any(|own| own == name)
}

/// The blocks of this page that fail, each as a text.
fn failures(fixture: &Fixture, blocks: &[(String, Vec<String>)]) -> Vec<String> {
    let next = Mutex::new(blocks.iter());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some((page, lines)) = { next.lock().unwrap().next() } {
                    let is_served =
                        lines.iter().any(|line| line.contains(".pftrace") && line.contains("--open"));
                    let _port = is_served.then(PerfettoPort::take);
                    if let Some(said) = fixture.failure_of(lines) {
                        failed.lock().unwrap().push(format!("{page}: {lines:#?}\n{said}"));
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap()
}

#[test]
fn the_commands_of_the_pages_run_as_they_stand_there() {
    let fixture = &*FIXTURE;
    let device_commands = device_commands();
    let mut blocks = Vec::new();
    let mut texts = String::new();
    for page in pages() {
        let text = fs::read_to_string(project_dir().join(&page)).unwrap();
        for mut lines in lines_to_run(&text, &device_commands) {
            lines.retain(|line| fixture.has_duckdb || !line.trim_start().starts_with("scripts/query"));
            blocks.push((page.clone(), lines));
        }
        texts += &text;
    }
    let count: usize = blocks.iter().map(|(_, lines)| lines.len()).sum();
    // The longest first, so that no thread ends long after the others.
    blocks.sort_by_key(|(_, lines)| {
        std::cmp::Reverse(lines.iter().filter(|line| line.contains(" -n ")).count())
    });
    let failed = failures(fixture, &blocks);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(count >= MIN_LINES, "only {count} lines were run");
    let stale: Vec<_> = NOT_RUN.iter().filter(|(part, _)| !texts.contains(part)).collect();
    assert!(stale.is_empty(), "no page has these: {stale:?}");
}

#[test]
fn the_examples_in_the_help_of_the_hosts_commands_run_as_they_stand_there() {
    let blocks = examples_of_helps(&device_commands());
    let count: usize = blocks.iter().map(|(_, lines)| lines.len()).sum();
    let failed = failures(&FIXTURE, &blocks);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(count >= MIN_EXAMPLES, "only {count} examples were run: {blocks:#?}");
}

#[test]
fn one_at_a_time_serves_the_perfetto_ui() {
    let port = PerfettoPort::take();
    assert!(PerfettoPort::try_take().is_none());
    drop(port);
    PerfettoPort::take();
}

#[test]
fn a_documented_command_that_is_wrong_is_found() {
    let fixture = &*FIXTURE;
    let page = "Text with `tracebridge info missing.dat` in it.\n\n    tracebridge info app.dat\n    tracebridge convert \
                app.dat -o x.foo\n\n```sh\nfor f in app; do\n    tracebridge info $f.dta\ndone\ntracebridge info app.dat\n```\n\
                ```sh\ntracebridge adb launch com.example.app -o start.dat\ntracebridge why start.dat\n```\n";
    let blocks = lines_to_run(page, &device_commands()).into_iter().map(|lines| ("page".to_owned(), lines));
    let mut failed = failures(fixture, &blocks.collect::<Vec<_>>());
    failed.sort();
    assert_eq!(failed.len(), 3, "{failed:#?}");
    for words in [
        "exit status 1: tracebridge info $f.dta",
        "exit status 1: tracebridge info missing.dat",
        "exit status 2: tracebridge convert",
    ] {
        assert!(failed.iter().any(|said| said.contains(words)), "no {words}: {failed:#?}");
    }
}

/// The scripts of a workflow's steps: the values of `run` and `script`.
fn scripts_of(workflow: &[String]) -> Vec<String> {
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '-']).len();
    let mut scripts = Vec::new();
    for (at, line) in workflow.iter().enumerate() {
        let key = line.trim_start_matches([' ', '-']);
        let Some(value) = key.strip_prefix("run: ").or(key.strip_prefix("script: ")) else { continue };
        let below = || workflow[at + 1..].iter().take_while(|next| indent(next) > indent(line));
        scripts.push(match value {
            "|" => below().map(|line| line.trim()).collect::<Vec<_>>().join("\n"),
            value => value.to_owned(),
        });
    }
    scripts
}

/// The exit statuses of the launches and of the gate of docs/ci.md.
fn statuses_of_the_job(fixture: &Fixture, place: &Workplace) -> Vec<Option<i32>> {
    let page = fs::read_to_string(project_dir().join("docs/ci.md")).unwrap();
    let blocks = code_blocks(&page);
    let workflow = blocks.iter().find(|block| block.language == "yaml").expect("a workflow");
    let scripts = scripts_of(&workflow.lines);
    // Its first two steps build the app, and unpack the archive.
    let is_ours = |script: &&String| !script.contains("gradlew") && !script.contains("tar -xf");
    let scripts: Vec<&String> = scripts.iter().filter(is_ours).collect();
    assert_eq!(scripts.len(), 3, "the launches, the gate and its summary: {scripts:#?}");
    scripts.iter().map(|script| fixture.run(place, &format!("set -e\n{script}")).code()).collect()
}

#[test]
fn the_job_of_the_page_about_ci_is_green_for_equal_versions_and_never_without_launches() {
    let fixture = &*FIXTURE;
    let remove = |place: &Workplace| {
        for side in ["a", "b"] {
            for run in 1..9 {
                fs::remove_file(place.dir.path().join(format!("start-{side}-{run}.dat"))).unwrap();
            }
        }
    };
    let place = fixture.workplace();
    remove(&place);
    assert_eq!(statuses_of_the_job(fixture, &place), [Some(0); 3]);
    let launches = fs::read_to_string(place.dir.path().join("launches.json")).unwrap();
    assert!(launches.contains("\"comparison\":{"), "{launches}");
    assert!(fs::read_to_string(place.dir.path().join("summary.md")).unwrap().contains("The gate is open"));
    // Recordings of the scheduler alone.
    let place = fixture.workplace();
    remove(&place);
    let text = place.dir.path().join("x.txt");
    write_launch(&text, 400_000, "inflate");
    let events = fs::read_to_string(&text).unwrap();
    let unmarked = events.lines().filter(|line| !line.contains("tracing_mark_write")).collect::<Vec<_>>();
    fs::write(&text, unmarked.join("\n") + "\n").unwrap();
    run_line(place.dir.path(), "convert x.txt -o unmarked.dat").exited(0);
    for side in ["launches-a", "launches-b"] {
        for run in 1..21 {
            let file = place.phone().join(side).join(format!("{run}.dat"));
            fs::remove_file(&file).unwrap();
            fs::copy(place.dir.path().join("unmarked.dat"), file).unwrap();
        }
    }
    let statuses = statuses_of_the_job(fixture, &place);
    assert_eq!(statuses[1], Some(1), "{statuses:?}");
}
