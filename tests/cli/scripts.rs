//! The scripts for a device, with a stand-in for adb that runs what it is given on this machine: no name of a
//! device or a file may become a command.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// A directory with a stand-in for `adb`. `devices` lists a device of this serial; `shell` runs a command
/// here.
fn adb(serial: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let script = r#"#!/bin/bash
if [[ $1 == -s ]]; then shift 2; fi
case $1 in
    devices) printf 'List of devices attached\n%s\tdevice\n' "$(cat "$0.serial")" ;;
    shell) shift; [[ $1 == -n ]] && shift; exec sh -c "$*" ;;
    pull) cp -- "$2" "$3" ;;
esac
"#;
    // A shell writes the script: if this process had it open for writing while another test forks, the kernel
    // would refuse to run it.
    let write = r#"printf %s "$1" >"$0" && chmod 755 "$0""#;
    let path = dir.path().join("adb");
    assert!(Command::new("sh").args(["-c", write]).arg(&path).arg(script).status().unwrap().success());
    fs::write(dir.path().join("adb.serial"), serial).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

fn run(adb: &Path, script: &str, args: &[&str]) -> Output {
    let path = format!("{}:{}", adb.display(), std::env::var("PATH").unwrap());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(script);
    Command::new(script).args(args).env("PATH", path).current_dir(adb).output().unwrap()
}

#[test]
fn a10_a_serial_is_no_command() {
    let hostile = "x;touch${IFS}ran;";
    let adb = adb(hostile);
    for (script, args) in
        [("record", &["-t", "1"][..]), ("pull", &["x.dat"]), ("launch", &["com.app"]), ("push", &[])]
    {
        for serial in [&["--serial", hostile][..], &["--serial", "-x"], &[]] {
            let out = run(adb.path(), script, &[serial, args].concat());
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            assert!(out.status.code() == Some(1) && said.contains("not a serial"), "{script}: {out:?}");
        }
    }
    assert!(!adb.path().join("ran").exists());
}

#[test]
fn a11_a_file_is_no_command_and_what_is_told_is_json() {
    let adb = adb("emulator-5554");
    let remote = adb.path().join("remote");
    fs::create_dir(&remote).unwrap();
    for name in ["a';touch ran;'.dat", "b\"c\\d.dat", "$(touch ran).dat", "e\nf.dat", "-rf"] {
        let file = remote.join(name);
        fs::write(&file, "capture").unwrap();
        let to = adb.path().join("to");
        let out = run(adb.path(), "pull", &["--json", "--to", to.to_str().unwrap(), file.to_str().unwrap()]);
        assert_eq!(out.status.code(), Some(0), "{out:?}");
        let told: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(told["files"][0]["path"].as_str(), to.join(name).to_str(), "{told}");
        assert!(to.join(name).exists() && !file.exists(), "{name}");
    }
    assert!(!adb.path().join("ran").exists());
}
