//! Attacks of another user on a recorder that is root. The other user is a user id that owns nothing on this
//! machine.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use support::{Command, Ran, until};

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::Signal;

use crate::recording::record;
use crate::tracefs_fixture::{Instance, Knobs, Machine, Recorder, machine, wait_for_tracing};
use crate::wrap::command;
use support::tracebridge;

/// The user id of the attacker.
const ATTACKER: u32 = 10_123;

/// A directory to which everybody may write and from which everybody may remove, as the shell user's
/// `/data/local/tmp` is for that user.
fn shared() -> tempfile::TempDir {
    let dir = support::tempdir();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    dir
}

/// Runs a shell script as the attacker in `dir`.
fn attack(dir: &Path, script: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).current_dir(dir).uid(ATTACKER).gid(ATTACKER);
    let out = shell.run();
    assert!(out.status.success(), "{script}: {out:?}");
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned()
}

/// The name of the file of saved settings for the buffer at `root`.
fn name_of(root: &Path) -> String {
    let meta = fs::metadata(root.join("tracing_on")).unwrap();
    format!("tracebridge-{:x}-{:x}.saved", meta.dev(), meta.ino())
}

/// The text of a file of saved settings with one setting, in the form of a recorder.
fn forged(pid: u32, tracefs: &Path, setting: &str) -> String {
    let boot_id = boot_id();
    let tracefs = tracefs.display();
    format!(
        "{{\"pid\":{pid},\"boot_id\":\"{boot_id}\",\"tracefs\":\"{tracefs}\",\"instance\":null,\
         \"remove_instance\":false,\"flight\":null}}\n{setting}\n"
    )
}

/// Runs a command of the product as root, with its saved settings in or below `dir`.
fn as_root(machine: &Machine, dir: &Path, name: &str, args: &[&str]) -> Ran {
    let mut run = command(machine, dir, name);
    if name == "restore" {
        run = tracebridge();
        run.arg("restore").arg("--state-dir").arg(dir);
    }
    run.args(args).current_dir(dir).run()
}

#[test]
fn a_planted_record_makes_root_write_nothing() {
    let Some(machine) = machine() else { return };
    let dir = shared();
    let before = Knobs::read(&machine.root);
    let secret = support::tempdir();
    let victim = secret.path().join("victim");
    let empty = secret.path().join("empty");
    fs::write(&victim, "untouched").unwrap();
    fs::create_dir(&empty).unwrap();
    let setting = format!("{{\"knob\":\"{}\",\"value\":\"evil\"}}", victim.display());
    let text = forged(1, &machine.root, &setting);
    let remove = forged(1, &empty, "").replace("\"remove_instance\":false", "\"remove_instance\":true");
    for name in [name_of(&machine.root), "tracebridge-top.saved".to_owned()] {
        fs::write(dir.path().join("text"), &text).unwrap();
        fs::write(dir.path().join("remove"), &remove).unwrap();
        // Beside root's directory, under its name, and in a directory of its name.
        attack(dir.path(), &format!("cp text {name}; mkdir -p tracebridge-0; cp text tracebridge-0/{name}"));
        attack(dir.path(), "cp remove tracebridge-x.saved; cp remove tracebridge-0/tracebridge-x.saved");
    }
    for name in ["doctor", "restore", "record", "restore"] {
        let args: &[&str] = if name == "record" { &["sched", "-t", "0.1"] } else { &[] };
        let out = as_root(&machine, dir.path(), name, args);
        assert_eq!(out.code(), Some(0), "{name}: {out:?}");
        assert!(!out.said().contains("put back 1"), "{name}: {out:?}");
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
    assert!(empty.exists());
    assert_eq!(before.changed(&machine.root), [""; 0]);
    let own: Vec<_> = fs::read_dir(dir.path()).unwrap().flatten().collect();
    let own = own.iter().find(|entry| entry.file_name().to_string_lossy().starts_with("tracebridge-0."));
    let own = own.expect("root has made a directory of another name").metadata().unwrap();
    assert_eq!((own.uid(), own.mode() & 0o7777), (0, 0o700));
}

#[test]
fn a_record_of_roots_own_that_names_no_tracefs_is_refused_and_the_rest_is_done() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let secret = support::tempdir();
    let victim = secret.path().join("victim");
    fs::write(&victim, "untouched").unwrap();
    let knob = |knob: &str| format!("{{\"knob\":\"{knob}\",\"value\":\"evil\"}}");
    let plant = |name: &str, text: String| fs::write(dir.path().join(name), text).unwrap();
    plant("tracebridge-a.saved", forged(1, secret.path(), &knob("victim")));
    plant("tracebridge-b.saved", forged(1, &machine.root, &knob(victim.to_str().unwrap())));
    plant("tracebridge-c.saved", forged(1, &machine.root, &knob("../../../../victim")));
    let property = "{\"values\":[[\"persist.sys.usb.config\",\"evil\"]]}";
    plant("tracebridge-d.saved", forged(1, &machine.root, property));
    plant("tracebridge-e.saved", forged(1, &machine.root, &knob("events/gone/enable")));
    let out = as_root(&machine, dir.path(), "restore", &[]);
    assert_eq!(out.code(), Some(3), "{out:?}");
    let told = out.said();
    for (name, reason) in [
        ("a", "is not a tracefs"),
        ("b", "not a file of tracefs"),
        ("c", "not a file"),
        ("d", "not a property"),
    ] {
        let line = told.lines().find(|line| line.contains(&format!("tracebridge-{name}.saved"))).expect(name);
        assert!(line.contains(reason) && line.contains("remove it"), "{line}");
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
    assert!(!dir.path().join("tracebridge-e.saved").exists(), "a file that is gone keeps no record: {told}");
}

#[test]
fn records_and_captures_are_their_owners_alone_whatever_the_umask() {
    let Some(machine) = machine() else { return };
    let dir = shared();
    let state = shared();
    let run = |args: &str| {
        let binary = support::binary();
        let program = binary.display();
        let root = machine.root.display();
        let state = state.path().display();
        let script = format!("umask 0; exec {program} {args} --tracefs {root} --state-dir {state}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(dir.path()).run().exited(0);
    };
    let mode = |path: PathBuf| fs::metadata(path).unwrap().mode() & 0o7777;
    run("record sched -t 0.1 -o plain.dat");
    run("record sched -t 0.1 -o packed.dat --compress");
    run("record sched -t 0.1 -o open.dat --readable");
    run("start sched");
    let own = state.path().join("tracebridge-0");
    assert_eq!((mode(own.clone()), mode(own.join(name_of(&machine.root)))), (0o700, 0o600));
    run("dump -o dump.dat");
    run("stop -o stop.dat --readable");
    for (name, expected) in
        [("plain", 0o600), ("packed", 0o600), ("open", 0o644), ("dump", 0o600), ("stop", 0o644)]
    {
        assert_eq!(mode(dir.path().join(format!("{name}.dat"))), expected, "{name}");
    }
    assert_eq!(fs::read_dir(own).unwrap().count(), 0, "a record is left");
}

#[test]
fn planted_links_and_parts_lead_root_nowhere() {
    let Some(machine) = machine() else { return };
    let dir = shared();
    let secret = support::tempdir();
    let victim = secret.path().join("victim");
    fs::write(&victim, "untouched").unwrap();
    let link = victim.display();
    let saved = name_of(&machine.root);
    let script = format!(
        "ln -s {link} x.dat; ln -s {link} x.dat.part; ln -s {link} a.txt; ln -s {link} {saved}; \
         ln -s {}/new tracebridge-0; ln -s {link} tracebridge-top.part; echo mine >b.txt; chmod 666 b.txt",
        secret.path().display()
    );
    attack(dir.path(), &script);
    for args in
        [&["record", "sched", "-t", "0.1", "-o", "x.dat"][..], &["start", "sched"], &["stop", "-o", "y.dat"]]
    {
        let out = as_root(&machine, dir.path(), args[0], &args[1..]);
        assert_eq!(out.code(), Some(0), "{out:?}");
    }
    for name in ["a.txt", "b.txt"] {
        let mut atrace = crate::atrace::atrace(&machine, dir.path(), &["-t", "0", "-o", name, "sched"]);
        assert!(atrace.current_dir(dir.path()).status().unwrap().success());
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
    assert_eq!(fs::read_dir(secret.path()).unwrap().count(), 1);
    for name in ["x.dat", "y.dat", "a.txt", "b.txt"] {
        let meta = fs::symlink_metadata(dir.path().join(name)).unwrap();
        assert!(meta.is_file() && meta.uid() == 0 && meta.len() > 0, "{name}: {meta:?}");
    }
    // A FIFO of another user would hand that user what root records.
    attack(dir.path(), "mkfifo fifo.txt; mkfifo fifo.dat");
    let mut atrace = crate::atrace::atrace(&machine, dir.path(), &["-t", "0", "-o", "fifo.txt", "sched"]);
    let out = atrace.current_dir(dir.path()).run();
    assert!(out.code() == Some(1) && out.said().contains("another user"), "{out:?}");
    let out = as_root(&machine, dir.path(), "record", &["sched", "-t", "0.1", "-o", "fifo.dat"]);
    assert!(out.code() == Some(1) && out.said().contains("not a regular file"), "{out:?}");
}

#[test]
fn force_ends_the_holder_of_the_lock_and_no_process_that_a_record_only_names() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let path = dir.path().join(name_of(&machine.root));
    let mut victim = Command::new("sleep").arg("6000").spawn().unwrap();
    for pid in [victim.id(), 0, 1, u32::MAX, u32::MAX - 1, std::process::id()] {
        fs::write(&path, forged(pid, &machine.root, "")).unwrap();
        let mut holder = Command::new("flock").arg("-F").arg(&path).args(["sleep", "6000"]).spawn().unwrap();
        let locked = || {
            let file = fs::File::open(&path).unwrap();
            Flock::lock(file, FlockArg::LockSharedNonblock).is_err()
        };
        until("the lock of a file", locked);
        let out = as_root(&machine, dir.path(), "record", &["sched", "--force", "-t", "0.1"]);
        assert_eq!(out.code(), Some(0), "{pid}: {out:?}");
        assert!(out.said().contains(&format!("from recorder {}", holder.id())), "{out:?}");
        assert!(!holder.wait().unwrap().success());
    }
    assert!(victim.try_wait().unwrap().is_none());
    // The lock is this test's, and the record says that its holder started at another time.
    let text = forged(std::process::id(), &machine.root, "").replace("\"pid\"", "\"started\":1,\"pid\"");
    fs::write(&path, text).unwrap();
    let _lock = Flock::lock(fs::File::open(&path).unwrap(), FlockArg::LockExclusiveNonblock).unwrap();
    let out = as_root(&machine, dir.path(), "record", &["sched", "--force", "-t", "0.1"]);
    assert!(out.code() == Some(1) && out.said().contains("another recorder"), "{out:?}");
    victim.kill().unwrap();
    victim.wait().unwrap();
}

#[test]
fn nobody_else_can_hold_the_lock_of_a_record() {
    let Some(machine) = machine() else { return };
    let dir = shared();
    let out = as_root(&machine, dir.path(), "start", &["sched"]);
    assert_eq!(out.code(), Some(0), "{out:?}");
    let record = dir.path().join("tracebridge-0").join(name_of(&machine.root));
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec 9<\"$0\" && flock -n 9"]).arg(&record).uid(ATTACKER).gid(ATTACKER);
    assert!(record.exists() && !shell.run().status.success());
    // What is left alone is no success.
    let left = as_root(&machine, dir.path(), "restore", &[]);
    assert_eq!(left.code(), Some(3), "{left:?}");
    let out = as_root(&machine, dir.path(), "stop", &[]);
    assert_eq!(out.code(), Some(0), "{out:?}");
    assert_eq!(as_root(&machine, dir.path(), "restore", &[]).status.code(), Some(0));
}

#[test]
fn fifos_directories_devices_and_endless_files_are_told_and_passed_over() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let at = |name: &str| dir.path().join(format!("tracebridge-{name}.saved"));
    nix::unistd::mkfifo(&at("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::create_dir(at("dir")).unwrap();
    symlink("/dev/zero", at("zero")).unwrap();
    fs::File::create(at("long")).unwrap().set_len(64 << 20).unwrap();
    fs::write(dir.path().join("a"), "").unwrap();
    fs::hard_link(dir.path().join("a"), at("second")).unwrap();
    for (name, status) in [("restore", 3), ("doctor", 0)] {
        let out = as_root(&machine, dir.path(), name, &[]);
        assert_eq!(out.code(), Some(status), "{out:?}");
        for file in ["fifo", "dir", "zero", "long", "second"] {
            assert!(
                out.said().contains(&format!("tracebridge-{file}.saved: not used")),
                "{name} {file}: {out:?}"
            );
        }
    }
    fs::remove_file(at("fifo")).unwrap();
    let of_buffer = dir.path().join(name_of(&machine.root));
    nix::unistd::mkfifo(&of_buffer, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for name in ["record", "start", "dump", "stop"] {
        let args: &[&str] = if ["record", "start"].contains(&name) { &["sched"] } else { &[] };
        let out = as_root(&machine, dir.path(), name, args);
        assert_eq!(out.code(), Some(1), "{name}: {out:?}");
        assert!(out.said().contains("not a regular file: remove it"), "{name}: {out:?}");
    }
}

#[test]
fn settings_go_back_to_the_buffer_that_they_came_from() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let instances = ["first", "second"].map(|what| Instance::new(what).unwrap());
    let run = |instance: &Path, args: &[&str]| {
        let mut command = tracebridge();
        command.args(["record", "--json", "--tracefs"]).arg(instance).arg("--state-dir").arg(dir.path());
        command.arg("-o").arg(dir.path().join("x.dat")).args(args);
        command
    };
    let read = |n: usize, knob: &str| fs::read_to_string(instances[n].dir().join(knob)).unwrap();
    instances[1].write("buffer_size_kb", "77");
    let size = read(1, "buffer_size_kb");
    let mut first =
        Recorder::start(run(instances[0].dir(), &["sched", "-b", "3000", "-t", "600"]), dir.path());
    wait_for_tracing(instances[0].dir());
    first.kill().unwrap();
    first.wait().unwrap();
    run(instances[1].dir(), &["sched", "-t", "0.1"]).run().exited(0);
    assert_eq!(read(1, "buffer_size_kb"), size);
    assert_eq!(read(0, "events/sched/sched_switch/enable"), "1\n", "still as the killed recorder left it");
    // An instance that was made again is another buffer.
    let made_again =
        fs::read_dir(dir.path()).unwrap().flatten().any(|e| e.path().extension() == Some("saved".as_ref()));
    assert!(made_again, "the record of the killed recorder is there");
    fs::remove_dir(instances[0].dir()).unwrap();
    instances[0].make();
    let fresh = read(0, "buffer_size_kb");
    let restored = as_root(&machine, dir.path(), "restore", &[]);
    assert_eq!(restored.code(), Some(0), "{restored:?}");
    assert_eq!(read(0, "buffer_size_kb"), fresh);
}

#[test]
fn an_instance_is_no_path() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    for name in ["..", ".", "", "a/b", "/etc", "../.."] {
        for command in ["record", "start", "dump"] {
            let args: &[&str] = if command == "dump" { &[] } else { &["sched"] };
            let args = [args, &["--instance", name]].concat();
            let out = as_root(&machine, dir.path(), command, &args);
            assert_eq!(out.code(), Some(1), "{name:?}: {out:?}");
            assert!(out.said().contains("the name of an instance"), "{name:?}: {out:?}");
        }
    }
    // The top-level buffer under another name has the same lock.
    let first = Recorder::start(record(&machine, dir.path(), &["sched", "-t", "600"]), dir.path());
    wait_for_tracing(&machine.root);
    let around = machine.root.join("instances/..");
    let mut second = tracebridge();
    second.args(["record", "sched", "-t", "0.1", "--tracefs"]).arg(around).arg("--state-dir").arg(dir.path());
    let out = second.current_dir(dir.path()).run();
    assert!(out.code() == Some(1) && out.said().contains("another recorder"), "{out:?}");
    first.signal(Signal::SIGTERM);
    assert_eq!(first.finish().json()["ended_by"], "signal SIGTERM");
}

#[test]
fn the_environment_does_not_choose_what_root_runs_or_where_it_keeps_its_settings() {
    let Some(machine) = machine() else { return };
    let dir = shared();
    attack(
        dir.path(),
        "mkdir bin; for p in getprop setprop am cmd pm service; do printf '#!/bin/sh\\ntouch %s/ran\\n' \"$PWD\" >bin/$p; done; chmod 755 bin/*",
    );
    let home = dir.path().to_str().unwrap();
    let bin = dir.path().join("bin");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    for args in [
        &["doctor"][..],
        &["list"],
        &["launch", "com.app/.Main", "sched"],
        &["restore"],
        &["atrace", "--list_categories"],
    ] {
        let mut command = tracebridge();
        for name in ["ANDROID_ROOT", "TRACEBRIDGE_STATE_DIR", "TRACEBRIDGE_TRACEFS", "TMPDIR", "HOME"] {
            command.env(name, home);
        }
        command.env("PATH", &path).args(args).stdin(Stdio::null()).current_dir(dir.path());
        let out = command.run();
        assert!(!out.said().contains(home), "{args:?}: {out:?}");
    }
    assert!(!dir.path().join("ran").exists());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    let _ = machine;
}

#[test]
fn doctor_takes_a_relative_state_directory() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    fs::create_dir(dir.path().join("state")).unwrap();
    let mut doctor = tracebridge();
    doctor.args(["doctor", "--json", "--state-dir", "state", "--tracefs"]).arg(&machine.root);
    let out = doctor.current_dir(dir.path()).run();
    let report: serde_json::Value = out.json();
    let paths = report["paths"].as_array().unwrap();
    let state = paths.iter().find(|p| p["what_for"] == "the settings to put back").unwrap();
    assert_eq!(state["path"].as_str(), dir.path().join("state").to_str());
    assert_eq!((state["write"].as_bool(), state["reason"].is_null()), (Some(true), true), "{state}");
}
