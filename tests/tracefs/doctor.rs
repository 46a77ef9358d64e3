//! The reports of `doctor` and `list`: each file and category with its state, and a recorder that was killed.

use std::fs;
use std::path::Path;
use support::Command;

use serde_json::Value;

use crate::recording::{Busy, record, wait_for_pages};
use crate::tracefs_fixture::{Knobs, Machine, Recorder, machine};
use support::tracebridge;

fn run(machine: &Machine, state: &Path, args: &[&str]) -> String {
    let mut command = tracebridge();
    command.args(args).arg("--tracefs").arg(&machine.root).arg("--state-dir").arg(state);
    command.run().exited(0).stdout
}

fn report(machine: &Machine, state: &Path) -> Value {
    serde_json::from_str(&run(machine, state, &["doctor", "--json"])).unwrap()
}

#[test]
fn a_killed_recorders_settings_and_capture_are_noticed_until_restore() {
    let Some(machine) = machine() else { return };
    let before = Knobs::read(&machine.root);
    let dir = support::tempdir();
    let capture = dir.path().join("x.dat");
    let busy = Busy::start();
    let command = record(&machine, dir.path(), &["sched", "-t", "600"]);
    let mut recorder = Recorder::start(command, dir.path());
    wait_for_pages(&mut recorder, &capture);
    let running = run(&machine, dir.path(), &["doctor"]);
    let pid = recorder.id();
    assert!(running.contains(&format!("recorder {pid} is running")), "{running}");
    assert!(running.contains("x.dat (") && running.contains(" is being written"), "{running}");

    recorder.kill().unwrap();
    recorder.wait().unwrap();
    drop(busy);
    let told = run(&machine, dir.path(), &["doctor"]);
    assert!(told.contains(&format!("recorder {pid} was killed and left ")), "{told}");
    assert!(told.contains("settings changed: `tracebridge restore` puts them back"), "{told}");
    assert!(told.contains(&format!("capture  {} (", capture.display())), "{told}");
    assert!(told.contains("was not finished; what is in it can be read"), "{told}");
    let json = report(&machine, dir.path());
    let record = &json["records"][0];
    assert_eq!((record["state"].as_str(), record["pid"].as_u64()), (Some("killed"), Some(u64::from(pid))));
    assert!(record["settings"].as_u64() > Some(0), "{record}");
    assert_eq!(record["capture"]["path"].as_str(), capture.to_str());
    assert!(record["capture"]["bytes"].as_u64() > Some(100_000), "{record}");

    tracebridge().arg("restore").arg("--state-dir").arg(dir.path()).run().exited(0);
    assert_eq!(before.changed(&machine.root), [""; 0]);
    let told = run(&machine, dir.path(), &["doctor"]);
    assert!(!told.contains("\nrecord ") && !told.contains("\ncapture "), "{told}");
    assert_eq!(report(&machine, dir.path())["records"], Value::Array(Vec::new()));
    // The unfinished capture can be read, as the report of `doctor` says.
    let info = tracebridge().args(["info", "--json"]).arg(&capture).run();
    let info: Value = info.json();
    assert!(info["events"].as_u64() > Some(100), "{info}");
}

#[test]
fn a_flight_recorder_is_not_taken_for_a_killed_one() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    run(&machine, dir.path(), &["start", "sched"]);
    let told = run(&machine, dir.path(), &["doctor"]);
    assert!(told.contains("a flight recorder is on") && !told.contains("killed"), "{told}");
    run(&machine, dir.path(), &["stop"]);
    assert!(!run(&machine, dir.path(), &["doctor"]).contains("flight recorder"));
}

#[test]
fn each_file_and_category_has_its_state_and_each_refusal_its_reason() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let json = report(&machine, dir.path());
    assert_eq!(json["identity"]["who"], "root");
    let paths = json["paths"].as_array().unwrap();
    for path in paths {
        let refused = !path["obstacle"].is_null();
        assert_eq!(path["reason"].is_string(), refused, "{path}");
        assert!(path["exists"] == false || path["mode"].as_str().is_some_and(|m| m.len() == 4), "{path}");
    }
    let of = |name: String| paths.iter().filter(|p| p["path"] == name.as_str()).count();
    let cpus = fs::read_dir(machine.root.join("per_cpu")).unwrap().count();
    assert!((0..cpus).all(|n| of(format!("per_cpu/cpu{n}/trace_pipe_raw")) == 1), "each CPU's own");
    for category in json["categories"].as_array().unwrap() {
        let works = category["works"] == true;
        assert!(works || category["reason"].is_string(), "{category}");
        // pdx has neither events nor a tag, and tags need Android.
        let has = |list: &str| !category[list].as_array().unwrap().is_empty();
        assert_eq!(works, has("events") || has("tags"), "{category}");
    }
    let causes = json["causes"].as_array().unwrap();
    for cause in causes {
        assert_eq!(cause["works"] == true, cause["reason"].is_null(), "{cause}");
    }
    let told = run(&machine, dir.path(), &["doctor"]);
    assert!(told.contains("\n  ok  sched          who ran, who waited, and who ended the wait\n"), "{told}");
    let no_tags =
        "\n  no  dalvik         locks, garbage collection and classes of ART (markers of Android's own";
    assert!(told.contains(no_tags), "{told}");
    let list = run(&machine, dir.path(), &["list"]);
    assert!(list.contains("\n  ok  idle           CPU Idle: power/cpu_idle\n"), "{list}");
    assert!(list.contains(" (markers of Android's own processes: this is no Android)"), "{list}");
}

/// `record` records every category that `list` calls working, and refuses each of the others with a reason.
#[test]
fn list_and_record_agree_on_every_category() {
    let Some(machine) = machine() else { return };
    let before = Knobs::read(&machine.root);
    let dir = support::tempdir();
    let list: Value = serde_json::from_str(&run(&machine, dir.path(), &["list", "--json"])).unwrap();
    for category in list.as_array().unwrap() {
        let name = category["name"].as_str().unwrap();
        let out = record(&machine, dir.path(), &[name, "-t", "0.1", "-b", "64"]).run();
        let said = out.stderr.clone() + &out.stdout;
        let reason = category["reason"].as_str().unwrap_or_default();
        let expected = match (category["works"].as_bool(), reason.contains("no Android") && name != "pdx") {
            (Some(true), _) => "\"events\":",
            // This is only a note, because apps may write markers all the same.
            (_, true) => "no system properties here: userspace tags are not switched on",
            (_, false) => "nothing to record",
        };
        assert!(said.contains(expected), "{category}: {out:?}");
        assert_eq!(out.code() == Some(1), expected == "nothing to record", "{category}: {out:?}");
    }
    let out = record(&machine, dir.path(), &["shed", "-t", "0.1"]).run().exited(1);
    assert!(out.stderr.contains("did you mean \"sched\"?"), "{out:?}");
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

#[test]
fn doctor_without_a_tracefs_names_the_command_that_mounts_one() {
    let dir = support::tempdir();
    let nowhere = dir.path().join("nowhere");
    let out = Command::new(support::binary()).args(["doctor", "--tracefs"]).arg(&nowhere).run().exited(1);
    let told = &out.stdout;
    assert!(told.contains(&format!("mount -t tracefs nodev {}", nowhere.display())), "{told}");
}
