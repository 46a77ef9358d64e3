//! `tracebridge adb pull --traces`: what other programs have left on an imitated phone.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::adb::Desk;

/// A Perfetto trace with one packet, which has a time.
const TRACE: &[u8] = b"\x0a\x02\x40\x05";

/// The files that are on the phone.
const LEFT: [&str; 9] = [
    "perfetto/trace",
    "perfetto/bugreport/systrace.pftrace",
    "perfetto/package.json",
    "traces/trace-1.ptrace",
    "media/com.bench/Start_iter000.perfetto-trace",
    "media/com.bench/com.bench-benchmarkData.json",
    "media/com.bench/picture.png",
    "apps/com.app/files/profiling/profile_slow_1_uid-2.perfetto-stack-sample",
    "apps/com.app/no_backup/perfetto-1.perfetto-trace",
];

/// A phone on which other programs have left traces, with its directory. Commands on it are root, or the user
/// shell.
fn phone(is_root: bool) -> Option<(Desk, PathBuf)> {
    let desk = Desk::one()?;
    let here = desk.server.dir("S1");
    for file in LEFT {
        let path = here.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, TRACE).unwrap();
    }
    fs::create_dir_all(here.join("apps/com.app/cache")).unwrap();
    fs::write(here.join("apps/com.app/files/secrets.db"), "not a trace").unwrap();
    if is_root {
        desk.has_program("id", "echo 'uid=0(root) gid=0(root)'");
    } else {
        desk.has_program("su", "exit 1");
        desk.has_program("id", "echo 'uid=2000(shell) gid=2000(shell)'");
    }
    let run_as = format!("[ $1 = com.app ] && cd {}/apps/$1 && shift && exec \"$@\"", here.display());
    desk.has_program("run-as", &run_as);
    Some((desk, here))
}

/// The names of the files of a directory, in order.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_traces_of_other_programs_are_copied_with_what_they_are() {
    for is_root in [true, false] {
        let Some((desk, here)) = phone(is_root) else { return };
        fs::create_dir(desk.path("out")).unwrap();
        fs::write(desk.path("out/trace.perfetto-trace"), "mine").unwrap();
        let ran = desk.run("pull --traces --app com.app --to out").exited(0);
        let all = [
            "Start_iter000.perfetto-trace",
            "com.bench-benchmarkData.json",
            "package.json.perfetto-trace",
            "perfetto-1.perfetto-trace",
            "profile_slow_1_uid-2.perfetto-stack-sample",
            "systrace.pftrace",
            "trace-1.ptrace",
            "trace-2.perfetto-trace",
            "trace.perfetto-trace",
        ];
        assert_eq!(names(&desk.path("out")), all, "{ran}");
        assert_eq!(fs::read(desk.path("out/trace.perfetto-trace")).unwrap(), b"mine");
        assert_eq!(fs::read(desk.path("out/trace-2.perfetto-trace")).unwrap(), TRACE);
        for line in [
            "out/trace-2.perfetto-trace (Perfetto trace, 4 bytes), left by Perfetto\n",
            "out/trace-1.ptrace (Perfetto trace, 4 bytes), left by System Tracing\n",
            "out/Start_iter000.perfetto-trace (Perfetto trace, 4 bytes), left by a benchmark\n",
            "out/com.bench-benchmarkData.json (metrics of a benchmark, 4 bytes), left by a benchmark\n",
            "out/perfetto-1.perfetto-trace (Perfetto trace, 4 bytes), left by com.app\n",
        ] {
            assert!(ran.stdout.contains(line), "{line}{ran}");
        }
        for file in LEFT {
            assert!(here.join(file).is_file(), "{file} stays on the device");
        }
        assert!(!here.join("tracebridge.d/other-trace").exists());
    }
}

#[test]
fn closed_places_and_files_that_cannot_be_fetched_are_told() {
    let Some((desk, here)) = phone(false) else { return };
    let ran = desk.run("pull --traces --app com.app --app com.other --to out --json").exited(0);
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["files"].as_array().unwrap().len(), 8, "{json}");
    assert!(json["closed_directories"][0].as_str().unwrap().ends_with("com.other"), "{json}");
    let of_app = json["files"].as_array().unwrap().iter().find(|file| file["left_by"] == "com.app").unwrap();
    assert_eq!((&of_app["bytes"], &of_app["verified"]), (&4.into(), &"sha256".into()), "{json}");
    let said = desk.run("pull --traces --app com.other --to again").exited(0).said();
    assert!(said.contains("com.other is not there, or no debuggable app; root reads"), "{said}");

    // The app removes one between the list and the copy: the others are fetched.
    let run_as = format!(
        "[ $1 = com.app ] && cd {}/apps/$1 && shift && {{ [ $1 != cat ] || rm -f no_backup/*; exec \"$@\"; }}",
        here.display()
    );
    desk.has_program("run-as", &run_as);
    let said = desk.run("pull --traces --app com.app --to third").exited(1).said();
    assert!(said.contains("no_backup/perfetto-1.perfetto-trace: S1: "), "{said}");
    assert_eq!(names(&desk.path("third")).len(), 7, "{said}");
}

#[test]
fn a_path_that_no_program_writes_keeps_no_other_file_from_being_fetched() {
    for is_root in [true, false] {
        let Some((desk, here)) = phone(is_root) else { return };
        let long = (0..5).fold(here.join("perfetto"), |dir, _| dir.join("d".repeat(250)));
        fs::create_dir_all(&long).unwrap();
        fs::write(long.join("trace"), TRACE).unwrap();
        fs::write(here.join("traces/two\nlines.ptrace"), TRACE).unwrap();
        fs::write(here.join("apps/com.app/no_backup/\x1b[31m.perfetto-trace"), TRACE).unwrap();
        let ran = desk.run("pull --traces --app com.app --to out").exited(3);
        assert_eq!(names(&desk.path("out")).len(), LEFT.len() - 1, "{ran}");
        let said = ran.said();
        for line in [
            "traces/two\\nlines.ptrace: it is not fetched: its path has a control character",
            "\\u{1b}[31m.perfetto-trace: it is not fetched: its path has a control character",
            "at most 1024 are asked for",
        ] {
            assert!(said.contains(line), "{line}: {ran}");
        }
        assert!(!said.contains('\x1b'), "{ran}");
        let json: Value =
            serde_json::from_str(&desk.run("pull --traces --to more --json").exited(3).stdout).unwrap();
        let odd = json["files"].as_array().unwrap().iter().filter(|file| file["error"].is_string());
        assert_eq!(odd.count(), 2, "{json}");
    }
}

#[test]
fn a_phone_without_other_traces_says_so_and_wrong_packages_are_refused() {
    let Some(desk) = Desk::one() else { return };
    let said = desk.run("pull --traces").exited(0).said();
    assert!(said.contains("no other program has left a trace where it can be read"), "{said}");
    let said = desk.run("pull --traces --app com.a';reboot").exited(2).said();
    assert!(said.contains("--app com.a';reboot: name a package"), "{said}");
    desk.run("pull --traces --resume").exited(2);
    desk.run("pull --app com.app").exited(2);
}
