//! Every command line of the README and of the pages in docs/ that works on files or on attached devices is
//! run as it stands there, in the order of its page: in a directory with files of the names that it uses, and
//! with an imitated device. The commands of a device itself are run by the tests in tests/tracefs/.

use std::fs;
use std::path::PathBuf;

use super::adb::{Desk, abi};
use super::documented_commands::pages;
use super::gate::text_of_frames;
use support::launch_scenario::Launch;
use support::python::{has_modules, python};
use support::{Command, project_dir, run_in, write_program};

/// So many lines are run at least: fewer, and this test would have gone blind.
const MIN_LINES: usize = 90;

/// Beginnings of lines that are not run, each with the reason.
const LEFT_OUT: [(&str, &str); 12] = [
    ("./scripts/", "builds, or is the suite itself"),
    ("target/release/", "needs a release"),
    ("sudo ", "needs more than a test has"),
    ("cargo ", "builds"),
    ("scripts/faults", "is a test of its own"),
    ("scripts/spark-ingest", "needs a cluster"),
    ("{ echo begin load", "writes markers on a device"),
    ("echo \"B|", "writes markers on a device"),
    ("echo \"$PWD", "installs an archive"),
    ("tar ", "installs an archive"),
    ("./gradlew", "builds an app"),
    ("git ", "needs a network"),
];

/// The commands that act on the machine that they run on.
const OF_A_DEVICE: [&str; 11] =
    ["record", "start", "dump", "stop", "launch", "atrace", "mark", "wrap", "doctor", "list", "restore"];

/// Lines with names that stand for the reader's own, which the files here have not, and the answer to them.
const OTHER_NAMES: [(&str, &str); 5] = [
    ("tracebridge dataset remove lab 3f9c", "no trace"),
    ("tracebridge why app.dat --frame late", "frame"),
    ("tracebridge why start.dat start.trace --method Gson.fromJson", "Gson.fromJson"),
    ("tracebridge why start.dat --thread RenderThread", "RenderThread"),
    ("tracebridge adb launch com.example.app --until loadFeed", "no slice named loadFeed has ended"),
];

/// A stand-in for the device's binary that has recorded at once.
const DEVICE_PROGRAM: &str = r#"#!/usr/bin/env python3
import json, os, shutil, sys
words = sys.argv[1:]
here = os.path.dirname(os.path.abspath(__file__))
if words[0] == "--version":
    print("tracebridge 0.1.0")
elif words[0] == "restore":
    print("nothing to put back")
elif words[0] in ("doctor", "list"):
    print("all of it works")
elif "-o" in words:
    summary = json.dumps({"streaming": True, "seconds": 1.0, "clock": "boot", "ended_by": "time",
                          "cpus": [{"cpu": 0, "events": 12}], "app_start": {"times": ["TotalTime: 300"]}})
    out = words[words.index("-o") + 1]
    if out == "-":
        sys.stdout.buffer.write(open(here + "/source.dat", "rb").read())
        print(summary, file=sys.stderr)
    else:
        shutil.copy(here + "/source.dat", out)
        if words[0] == "launch" and "--no-profile" not in words:
            shutil.copy(here + "/source.trace", out[:-4] + ".trace")
        print(summary)
"#;

/// A stand-in for a browser: the Perfetto UI fetches what its address names.
const BROWSER: &str = r#"#!/usr/bin/env python3
import sys, urllib.request
address = sys.argv[1].partition("url=")[2]
if address:
    urllib.request.urlopen(address).read()
"#;

/// A directory with everything that the pages name, and a device.
struct Sandbox {
    desk: Desk,
}

impl Sandbox {
    fn new() -> Option<Sandbox> {
        let sandbox = Sandbox { desk: Desk::one()? };
        sandbox.make_device();
        sandbox.make_files();
        Some(sandbox)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.desk.path(name)
    }

    fn make_device(&self) {
        let here = self.desk.server.dir("S1");
        let launch = launch(1);
        fs::write(here.join("source.dat"), launch.dat).unwrap();
        fs::write(here.join("source.trace"), launch.trace).unwrap();
        for abi in [abi(), "armeabi-v7a"] {
            let dir = self.path("binaries").join(abi);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("tracebridge"), DEVICE_PROGRAM).unwrap();
        }
        run_in(&here, &["convert", "source.dat", "-o", "source.pftrace"]).exited(0);
        let perfetto = format!("cat >/dev/null; cp {}/source.pftrace \"$4\"", here.display());
        self.desk.has_program("perfetto", &perfetto);
        let am = format!(
            "case $2 in start) for f; do :; done; echo $f >{0}/file;; stop) cp {0}/source.trace $(cat {0}/file);; esac",
            here.display()
        );
        self.desk.has_program("am", &am);
        let apk = here.join("base.apk");
        fs::write(&apk, "an app").unwrap();
        let pm = format!("[ $1 = path ] && echo package:{} || echo Success", apk.display());
        self.desk.has_program("pm", &pm);
        // The programs of this computer.
        write_program(&self.path("bin/browser"), BROWSER);
        let adb = "#!/bin/sh\n[ $1 != devices ] || printf 'List of devices attached\\nS1\\tdevice\\n'\n";
        write_program(&self.path("bin/adb"), adb);
        write_program(&self.path("bin/git"), "#!/bin/sh\necho 1234\n");
        std::os::unix::fs::symlink(support::binary(), self.path("bin/tracebridge")).unwrap();
        for dir in ["scripts", "queries"] {
            std::os::unix::fs::symlink(project_dir().join(dir), self.path(dir)).unwrap();
        }
    }

    fn make_files(&self) {
        let pair = |name: &str, seed: u64| {
            let launch = launch(seed);
            fs::write(self.path(&format!("{name}.dat")), launch.dat).unwrap();
            fs::write(self.path(&format!("{name}.trace")), launch.trace).unwrap();
        };
        for (seed, name) in (2..).zip(["app", "start", "launch", "x", "old", "new", "other"]) {
            pair(name, seed);
        }
        for dir in ["main", "branch", "runs", "old", "new", "monday", "today"] {
            fs::create_dir(self.path(dir)).unwrap();
        }
        for run in 1..4 {
            pair(&format!("old{run}"), 10 + run);
            pair(&format!("new{run}"), 20 + run);
            pair(&format!("runs/{run}"), 30 + run);
            pair(&format!("old/{run}"), 40 + run);
            pair(&format!("new/{run}"), 50 + run);
        }
        for run in 1..10 {
            for (side, dirs) in [(60, ["main", "monday"]), (80, ["branch", "today"])] {
                let launch = launch(side + run);
                let _ = dirs.map(|dir| fs::write(self.path(&format!("{dir}/{run}.dat")), &launch.dat));
                let label = if side == 60 { "a" } else { "b" };
                fs::write(self.path(&format!("start-{label}-{run}.dat")), &launch.dat).unwrap();
            }
        }
        fs::copy(self.path("app.trace"), self.path("OLD")).unwrap();
        fs::write(self.path("scroll.pftrace"), text_of_frames(5, 1_000, true)).unwrap();
        let mark = |s: u32| format!(" a-7 (    7) [000] ...1 {s}.500000: tracing_mark_write: I|7|x\n");
        fs::write(self.path("big.dat"), (1..9).map(mark).collect::<String>()).unwrap();
        fs::write(self.path("mapping.txt"), "com.example.Feed -> com.example.app.Feed:\n").unwrap();
        for apk in ["other.apk", "other-version.apk", "new.apk", "old.apk"] {
            fs::write(self.path(apk), "another app").unwrap();
        }
        let dir = self.path("");
        let run = |args: &[&str]| drop(run_in(&dir, args).exited(0));
        run(&["convert", "app.dat", "--format", "systrace-html", "-o", "systrace.html"]);
        run(&["merge", "app.dat", "app.trace", "-o", "bugreport.zip"]);
        for build in ["1233", "1234"] {
            let side = if build == "1233" { "main" } else { "branch" };
            let files = self.files_of(side);
            let tag = format!("build={build}");
            let files = files.iter().map(String::as_str);
            run(&["dataset", "add", "lab", "--tag", &tag].into_iter().chain(files).collect::<Vec<_>>());
        }
        for (name, file) in [("lab1", "old1.dat"), ("lab2", "old2.dat")] {
            run(&["dataset", "add", name, file]);
        }
    }

    fn files_of(&self, dir: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(dir)).unwrap();
        entries.map(|entry| format!("{dir}/{}", entry.unwrap().file_name().display())).collect()
    }

    /// Runs a script of the shell.
    fn run(&self, script: &str) -> support::Ran {
        let path = std::env::var("PATH").unwrap();
        Command::new("bash")
            .args(["-c", script])
            .current_dir(self.path(""))
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .env("BROWSER", self.path("bin/browser"))
            .env("TRACEBRIDGE_PYTHON", python())
            .env("GITHUB_STEP_SUMMARY", self.path("summary.md"))
            .env("ANDROID_ADB_SERVER_PORT", self.desk.server.port().to_string())
            .env("TRACEBRIDGE_DEVICE_BINARIES", self.path("binaries"))
            .env("TRACEBRIDGE_ADB_TIMEOUT", "200")
            .env("S", "S1")
            .env("yesterday", "1233")
            .run()
    }
}

/// The files of a launch, of which each seed has others.
fn launch(seed: u64) -> support::launch_scenario::LaunchFiles {
    Launch { seed, day: 1, slow_percent: 0, pace_percent: 100 }.make()
}

/// The lines of shell code of a page: those of blocks, in their order, and of steps of a workflow. A loop is
/// one line.
fn lines(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut language: Option<&str> = None;
    let mut loops = 0;
    for line in page.replace("\\\n", " ").lines() {
        match (line.trim_start().strip_prefix("```"), language) {
            (Some(name), None) => language = Some(name),
            (Some(_), Some(_)) => language = None,
            (None, Some("sh" | "yaml")) => {
                let step = line.trim();
                let step = step.strip_prefix("- ").unwrap_or(step);
                let step = step.strip_prefix("run: ").unwrap_or(step);
                if loops > 0 {
                    let whole: &mut String = found.last_mut().unwrap();
                    *whole += &format!("\n{step}");
                } else {
                    found.push(step.to_owned());
                }
                loops += i32::from(step.starts_with("for ")) - i32::from(step.starts_with("done"));
            }
            (None, None) if line.starts_with("    ") => found.push(line.trim().to_owned()),
            _ => {}
        }
    }
    found
}

/// Whether a line is run: it is one of the program or of `scripts/query`, and no command of a device.
fn is_run(line: &str) -> bool {
    if LEFT_OUT.iter().any(|(beginning, _)| line.starts_with(beginning)) {
        return false;
    }
    let words: Vec<&str> = line.split_whitespace().skip_while(|word| word.contains('=')).collect();
    match words[..] {
        ["tracebridge", command, ..] => !OF_A_DEVICE.contains(&command),
        ["scripts/query", ..] => has_modules("duckdb"),
        ["for" | "if" | "adb", ..] => true,
        _ => line.starts_with("build="),
    }
}

/// Runs the lines of a page. Returns how many they are, and what went wrong.
fn run_page(name: &str) -> (usize, Vec<String>) {
    let text = fs::read_to_string(project_dir().join(name)).unwrap();
    let lines: Vec<String> = lines(&text).into_iter().filter(|line| is_run(line)).collect();
    let Some(sandbox) = (!lines.is_empty()).then(Sandbox::new).flatten() else { return (0, Vec::new()) };
    let mut wrong = Vec::new();
    // What a line sets is there for the next ones.
    let mut set = String::new();
    for line in &lines {
        let ran = sandbox.run(&format!("{set}{line}"));
        if line.starts_with("build=") {
            set = format!("{line}\n");
        }
        let said = ran.said();
        let other = OTHER_NAMES.iter().find(|(beginning, _)| line.starts_with(beginning));
        let is_right = match (other, ran.code()) {
            (Some((_, answer)), Some(1 | 3)) => said.contains(answer),
            (None, Some(0 | 3)) => true,
            // A gate that closes on launches that differ at random is a gate all the same.
            (None, Some(4)) => line.contains(" gate "),
            _ => false,
        };
        if !is_right || said.contains("command not found") {
            wrong.push(format!("{name}: {line}: {}: {said}", ran.status));
        }
    }
    (lines.len(), wrong)
}

#[test]
fn every_documented_command_on_files_and_attached_devices_does_what_the_page_says() {
    if !support::has_program("python3") {
        return support::skip("python", "the imitated device's recorder is a Python script");
    }
    let results: Vec<(usize, Vec<String>)> = std::thread::scope(|scope| {
        let pages: Vec<_> = pages().into_iter().map(|page| scope.spawn(move || run_page(&page))).collect();
        pages.into_iter().map(|page| page.join().unwrap()).collect()
    });
    let count: usize = results.iter().map(|(count, _)| count).sum();
    let wrong: Vec<&String> = results.iter().flat_map(|(_, wrong)| wrong).collect();
    assert!(wrong.is_empty(), "{} of {count} lines went wrong: {wrong:#?}", wrong.len());
    assert!(count >= MIN_LINES, "only {count} lines were run");
}

#[test]
fn a_loop_is_one_line_and_the_steps_of_a_workflow_are_lines() {
    let page = "```sh\nfor x in a; do\n  tracebridge info $x\ndone\ntracebridge list\n```\n\n    tracebridge open x\n\n\
                ```yaml\n- run: tracebridge gate \\\n    --x\n```\n";
    assert_eq!(
        lines(page),
        [
            "for x in a; do\ntracebridge info $x\ndone",
            "tracebridge list",
            "tracebridge open x",
            "tracebridge gate      --x"
        ]
    );
    assert!(is_run("tracebridge adb list") && !is_run("tracebridge list") && !is_run("./scripts/test"));
}
