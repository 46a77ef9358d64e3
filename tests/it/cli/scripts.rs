//! The scripts for a device, with an imitated adb server, and a stand-in for `adb` that lists its device: no
//! name of a device or a file may become a command. And `scripts/faults`: faults at random moments of
//! commands on files.

use std::fs;
use std::path::Path;

use support::adb_server::AdbServer;
use support::{Command, Ran, TempDir, inject_faults, write_program};

/// A directory with a stand-in for `adb`, which lists a device of this serial.
fn adb(serial: &str) -> TempDir {
    let dir = support::tempdir();
    let script = r#"#!/bin/bash
case $1 in
    devices) printf 'List of devices attached\n%s\tdevice\n' "$(cat "$0.serial")" ;;
esac
"#;
    write_program(&dir.path().join("adb"), script);
    fs::write(dir.path().join("adb.serial"), serial).unwrap();
    dir
}

fn run(adb: &Path, server: &AdbServer, script: &str, args: &[&str]) -> Ran {
    let path = format!("{}:{}", adb.display(), std::env::var("PATH").unwrap());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(script);
    Command::new(script)
        .args(args)
        .env("PATH", path)
        .env("TRACEBRIDGE_HOST_BINARY", support::binary())
        .env("ANDROID_ADB_SERVER_PORT", server.port().to_string())
        // Longer than any step takes on a busy machine.
        .env("TRACEBRIDGE_ADB_TIMEOUT", "200")
        .current_dir(adb)
        .run()
}

#[test]
fn a_serial_is_no_command() {
    let hostile = "x;touch${IFS}ran;";
    let adb = adb(hostile);
    let server = AdbServer::start(&[(hostile, "device")], "shell_v2,stat_v2");
    for (script, args) in [("pull", &["x.dat"][..]), ("push", &[])] {
        for serial in [&["--serial", hostile][..], &["--serial", "-x"], &[]] {
            let out = run(adb.path(), &server, script, &[serial, args].concat());
            let is_refused = out.code() == Some(1) && out.stderr.contains("not a serial");
            assert!(is_refused, "{script}: {out}");
        }
    }
    assert!(!adb.path().join("ran").exists());
}

#[test]
fn a_file_is_no_command_and_what_is_told_is_json() {
    let adb = adb("emulator-5554");
    let server = AdbServer::start(&[("emulator-5554", "device")], "shell_v2,stat_v2");
    let remote = adb.path().join("remote");
    fs::create_dir(&remote).unwrap();
    for name in ["a';touch ran;'.dat", "b\"c\\d.dat", "$(touch ran).dat", "e\nf.dat", "-rf"] {
        let file = remote.join(name);
        fs::write(&file, "capture").unwrap();
        let to = adb.path().join("to");
        let args = ["--json", "--to", to.to_str().unwrap(), file.to_str().unwrap()];
        let told = run(adb.path(), &server, "pull", &args).exited(0).json();
        assert_eq!(told["files"][0]["path"].as_str(), to.join(name).to_str(), "{told}");
        assert!(to.join(name).exists() && !file.exists(), "{name}");
    }
    assert!(!adb.path().join("ran").exists());
}

#[test]
fn the_csv_of_a_query_holds_no_formula_and_no_control_character() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let line = "import query; print([query.csv_cell(v) for v in \
        ['=1+1', '-5', '-$$Lambda', '@x', 'a\\x1b[31mb', 'two\\nlines', '\\tx', '', 7, None]])";
    let out = Command::new("python3").args(["-B", "-c", line]).current_dir(scripts).run();
    let said = "[\"'=1+1\", '-5', \"'-$$Lambda\", \"'@x\", 'a\u{fffd}[31mb', 'two\\nlines', \"'\u{fffd}x\", '', 7, None]";
    assert_eq!(out.stdout.trim_end(), said, "{out}");
}

/// Whether a number with a unit stands in a cell of docs/figures.json beside the names of values. `99 %` is
/// the name of a percentile there.
fn has_figure(cell: &str) -> bool {
    let units = [" s", " ms", " µs", " ns", " MB", " %", "×", " CPU-s"];
    let text = cell.replace("99 %", "");
    let literal = text.split('{').map(|part| part.rsplit('}').next().unwrap()).collect::<Vec<_>>().join("{}");
    let follows_a_digit = |at: usize| literal[..at].ends_with(|c: char| c.is_ascii_digit());
    units.iter().any(|unit| literal.match_indices(unit).any(|(at, _)| follows_a_digit(at)))
}

#[test]
fn the_figures_of_the_readme_and_the_pages_come_from_one_file() {
    let dir = support::tempdir();
    let root = dir.path();
    for part in ["scripts", "docs"] {
        fs::create_dir(root.join(part)).unwrap();
    }
    let others = ["docs/dataset.md", "docs/markers.md", "docs/report.md"];
    for file in ["scripts/figures", "docs/figures.json", "docs/figures.md", "README.md"].iter().chain(&others)
    {
        fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join(file), root.join(file)).unwrap();
    }
    let figures = |args: &[&str]| Command::new("python3").arg(root.join("scripts/figures")).args(args).run();
    figures(&["--check"]).exited(0);
    // No figure of a table is written by hand.
    let file: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(root.join("docs/figures.json")).unwrap()).unwrap();
    let rows = file["rows"].as_array().unwrap();
    for row in rows.iter().chain(rows.iter().map(|row| &row["readme"])).filter(|row| row.is_object()) {
        for column in ["peer", "tracebridge"] {
            let cell = row[column].as_str().unwrap();
            assert!(!has_figure(cell), "a value of docs/figures.json has no name: {cell}");
        }
    }
    assert!(has_figure("{a.b}, 2.5 MB") && has_figure("1.4× {a.2:MB}") && !has_figure("(99 %: {a.1-s})"));
    // Every other page that repeats figures has the same.
    assert!(others.iter().all(|page| file["lines"][page].is_array()), "{}", file["lines"]);
    for page in others {
        let text = fs::read_to_string(root.join(page)).unwrap();
        let line = file["lines"][page][0].as_str().unwrap();
        let fixed = line.split('{').next().unwrap();
        fs::write(root.join(page), text.replacen(fixed, &format!("{fixed}1"), 1)).unwrap();
        let found = figures(&["--check"]).exited(1);
        assert!(found.stderr.contains(&format!("{}: run", page.trim_start_matches("docs/"))), "{found}");
        fs::write(root.join(page), text.replacen(fixed, "", 1)).unwrap();
        assert!(figures(&["--check"]).exited(1).stderr.contains("has 0 places like this"), "{page}");
        fs::write(root.join(page), text).unwrap();
    }
    // A figure that is changed by hand is found, and written anew from the file.
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    fs::write(root.join("README.md"), readme.replace("bare `write(2)`: ", "bare `write(2)`: 1")).unwrap();
    let found = figures(&["--check"]).exited(1);
    assert!(found.stderr.contains("README.md: run scripts/figures"), "{found}");
    figures(&[]).exited(0);
    assert_eq!(fs::read_to_string(root.join("README.md")).unwrap(), readme);
    // A value has one place, and a size is that of the bytes.
    figures(&["--set", "device-binary.arm64-v8a=901048", "marker.write=260 ns"]).exited(0);
    for page in ["README.md", "docs/figures.md"] {
        let text = fs::read_to_string(root.join(page)).unwrap();
        assert!(text.contains("0.90 MB (arm64)") && text.contains("bare `write(2)`: 260 ns"), "{text}");
    }
    assert!(figures(&["--set", "nonsense=1"]).exited(1).stderr.contains("the names are"));
    // What a script of a benchmark has printed is taken by its names.
    let log = root.join("log");
    fs::write(&log, "trace-cmd report: 2300 ms\nfigure text.peer=2.30 s\nfigure text.seconds=0.131 s\n")
        .unwrap();
    let from = || figures(&["--from", log.to_str().unwrap()]);
    from().exited(0);
    for page in ["README.md", "docs/figures.md"] {
        let text = fs::read_to_string(root.join(page)).unwrap();
        assert!(text.contains("`trace-cmd report`: 2.30 s") && text.contains("| 0.131 s"), "{text}");
    }
    fs::write(&log, "figure nonsense=1\n").unwrap();
    assert!(from().exited(1).stderr.contains("figures: nonsense=1: the names are"));
    fs::write(&log, "nothing\n").unwrap();
    assert!(from().exited(1).stderr.contains("no line begins with"));
}

/// The faults of one run, some ten seconds; docs/faults.md says how to inject more.
const FAULTS: u32 = 60;

#[test]
fn commands_on_files_leave_whole_outputs_or_none_after_faults_at_random_moments() {
    inject_faults("files", FAULTS);
}
