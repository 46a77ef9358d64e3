//! The scripts for a device, with an imitated adb server, and a stand-in for `adb` that lists its device: no
//! name of a device or a file may become a command.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::adb_server::AdbServer;

/// A directory with a stand-in for `adb`, which lists a device of this serial.
fn adb(serial: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let script = r#"#!/bin/bash
case $1 in
    devices) printf 'List of devices attached\n%s\tdevice\n' "$(cat "$0.serial")" ;;
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

fn run(adb: &Path, server: &AdbServer, script: &str, args: &[&str]) -> Output {
    let path = format!("{}:{}", adb.display(), std::env::var("PATH").unwrap());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(script);
    Command::new(script)
        .args(args)
        .env("PATH", path)
        .env("TRACEBRIDGE_HOST_BINARY", env!("CARGO_BIN_EXE_tracebridge"))
        .env("ANDROID_ADB_SERVER_PORT", server.port().to_string())
        .env_remove("ANDROID_SERIAL")
        .env_remove("ADB_SERVER_SOCKET")
        .current_dir(adb)
        .output()
        .unwrap()
}

#[test]
fn a10_a_serial_is_no_command() {
    let hostile = "x;touch${IFS}ran;";
    let adb = adb(hostile);
    let server = AdbServer::start(&[(hostile, "device")], "shell_v2,stat_v2");
    for (script, args) in
        [("record", &["-t", "1"][..]), ("pull", &["x.dat"]), ("launch", &["com.app"]), ("push", &[])]
    {
        for serial in [&["--serial", hostile][..], &["--serial", "-x"], &[]] {
            let out = run(adb.path(), &server, script, &[serial, args].concat());
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            let is_refused = out.status.code() == Some(1) && said.contains("not a serial");
            assert!(is_refused, "{script}: {out:?}");
        }
    }
    assert!(!adb.path().join("ran").exists());
}

#[test]
fn a11_a_file_is_no_command_and_what_is_told_is_json() {
    let adb = adb("emulator-5554");
    let server = AdbServer::start(&[("emulator-5554", "device")], "shell_v2,stat_v2");
    let remote = adb.path().join("remote");
    fs::create_dir(&remote).unwrap();
    for name in ["a';touch ran;'.dat", "b\"c\\d.dat", "$(touch ran).dat", "e\nf.dat", "-rf"] {
        let file = remote.join(name);
        fs::write(&file, "capture").unwrap();
        let to = adb.path().join("to");
        let args = ["--json", "--to", to.to_str().unwrap(), file.to_str().unwrap()];
        let out = run(adb.path(), &server, "pull", &args);
        assert_eq!(out.status.code(), Some(0), "{out:?}");
        let told: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(told["files"][0]["path"].as_str(), to.join(name).to_str(), "{told}");
        assert!(to.join(name).exists() && !file.exists(), "{name}");
    }
    assert!(!adb.path().join("ran").exists());
}
