//! `tracebridge mcp` with the protocol's own client, and a device that it records.

use serde_json::{Value, json};
use support::python::python_with;
use support::{Command, binary, project_dir};

use crate::adb::{self, DIR, Device};
use crate::settings::{assert_same, settings, unusual};

/// The usual size of an answer.
const USUAL_BYTES: u64 = 4_000;

#[test]
fn an_assistant_records_a_device_and_asks_why() {
    let Some(python) = python_with("mcp") else { return };
    let Some(device) = Device::attached() else { return };
    let before = unusual(&device);
    let dir = adb::scratch();
    std::fs::write(dir.path().join("hostile.dat"), b"tracing\x08\x44 and no more").unwrap();
    let steps = json!([
        ["devices", {}],
        ["doctor", { "timeout_s": 200 }],
        ["record", { "time": "500ms", "output": "x.dat", "timeout_s": 200 }],
        ["info", { "files": ["x.dat"] }],
        ["thread_states", { "files": ["x.dat"] }],
        ["why", { "files": ["x.dat"], "thread": "nobody" }],
        ["why", { "files": ["x.dat"], "thread": "tracebridge" }],
        ["record", { "time": "50s", "output": "cancelled.dat", "timeout_s": 200 }, { "cancelled": true }],
        ["record", { "time": "1s", "output": "x.dat" }],
        ["profile", { "file": "x.dat" }],
        ["info", { "files": ["/etc/passwd"] }],
        ["info", { "files": ["hostile.dat"] }],
        // The turn on devices comes when the cancelled call has put the settings back.
        ["devices", { "timeout_s": 200 }],
    ]);
    let session = project_dir().join("tests/support/mcp_session.py");
    let mut command = Command::new(python);
    command.arg(session).arg(binary()).arg(dir.path()).arg(steps.to_string());
    command.env("ANDROID_SERIAL", device.serial()).env("TRACEBRIDGE_DEVICE_BINARIES", adb::binaries());
    let said: Value = command.run().exited(0).json();
    let steps = said["steps"].as_array().unwrap();
    assert!(said["tools"].as_array().unwrap().contains(&json!("record")), "{said}");
    for step in steps.iter().filter(|step| step["cancelled"].is_null()) {
        assert!(step["bytes"].as_u64().unwrap() <= USUAL_BYTES, "{step}");
    }
    let errors: Vec<bool> = steps.iter().map(|step| step["error"] == json!(true)).collect();
    let wanted = [false, false, false, false, false, true, false, false, true, true, true, true, false];
    assert_eq!(errors, wanted, "{said:#}");
    assert!(steps[3]["answer"]["files"][0]["events"].as_u64() > Some(10), "{said:#}");
    assert_eq!(steps[7]["cancelled"], json!(true));
    assert_eq!(device.run(&format!("ls -d {DIR}/tracebridge.* 2>/dev/null || true")), "");
    assert_same(&before, &settings(&device), "after the session");
}
