//! A phone with the tracebridge of another build on it: `adb devices` says so.

use serde_json::Value;
use support::write_program;

use super::adb::Desk;

#[test]
fn a_device_with_the_binary_of_another_build_is_told() {
    let Some(desk) = Desk::one() else { return };
    let there = desk.server.dir("S1").join("tracebridge");
    let state = || {
        let ran = desk.run("devices --json").exited(0);
        let fields: Value = ran.json();
        (fields["binary"].clone(), fields["binary_version"].clone(), ran.stderr)
    };
    assert_eq!(state(), ("none".into(), Value::Null, String::new()));

    write_program(&there, "#!/bin/sh\necho tracebridge 0.0.7\n");
    let own = env!("CARGO_PKG_VERSION");
    let (binary, version, said) = state();
    assert_eq!((binary, version), ("other".into(), "0.0.7".into()));
    let words = format!(
        "S1: /data/local/tmp/tracebridge is tracebridge 0.0.7, and this is {own}: `tracebridge adb push`"
    );
    assert!(said.contains(&words) && said.lines().count() == 1, "{said}");

    // One of this version with other bytes, and one that tells no version or control characters.
    write_program(&there, format!("#!/bin/sh\necho tracebridge {own}\n"));
    assert!(state().2.contains(&format!("is another build of tracebridge {own}:")));
    for script in ["exit 1", "kill $$", "echo", "printf '\\033[2J'"] {
        write_program(&there, format!("#!/bin/sh\n{script}\n"));
        let (binary, version, said) = state();
        assert_eq!((binary, version), ("other".into(), Value::Null), "{script}");
        assert!(said.contains("does not tell its version") && !said.contains('\x1b'), "{script}: {said}");
    }

    desk.run("push").exited(0);
    assert_eq!(state(), ("same".into(), Value::Null, String::new()));
    // Without a binary for the device's ABI nothing can be compared.
    let mut command = desk.adb(&["devices", "--json"]);
    let ran = command.env("TRACEBRIDGE_DEVICE_BINARIES", desk.path("none")).run().exited(0);
    assert_eq!((ran.json()["binary"].clone(), ran.stderr.as_str()), ("unknown".into(), ""));
}
