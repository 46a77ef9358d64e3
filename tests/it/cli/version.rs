//! `version` and `completions`: what the program says about itself.

use std::fs;

use data_encoding::HEXLOWER;
use serde_json::Value;
use sha2::{Digest, Sha256};
use support::{binary, tracebridge};

#[test]
fn the_version_names_the_build_and_the_sums_are_those_of_its_file() {
    let version = env!("CARGO_PKG_VERSION");
    let said = tracebridge().arg("version").run().exited(0).stdout;
    let first = format!("tracebridge {version}\ncommit    ");
    assert!(said.starts_with(&first) && said.contains("\ntarget    ") && !said.contains("sha256"), "{said}");
    let plain = tracebridge().arg("--version").run().exited(0).stdout;
    assert_eq!(plain, format!("tracebridge {version}\n"));

    let facts = tracebridge().args(["version", "--verify", "--json"]).run().exited(0).json();
    let program = fs::read(binary()).unwrap();
    let sum = HEXLOWER.encode(&Sha256::digest(&program));
    assert_eq!(facts["version"], version);
    assert_eq!(facts["program"]["sha256"], sum.as_str());
    assert_eq!(facts["program"]["bytes"], program.len());
    assert!(facts["target"].as_str().unwrap().contains(std::env::consts::ARCH), "{facts}");
    let text = tracebridge().args(["version", "--verify"]).run().exited(0).stdout;
    assert!(text.contains(&format!("program   sha256 {sum}  {} bytes", program.len())), "{text}");
    let inside = facts["device_binaries"].as_array().unwrap();
    let carries = Value::from("device-binaries-inside");
    assert_eq!(facts["features"].as_array().unwrap().contains(&carries), !inside.is_empty());
    assert_eq!(text.contains("no binary is inside"), inside.is_empty(), "{text}");
}

#[test]
fn the_help_says_that_nothing_is_sent() {
    let help = tracebridge().arg("--help").run().exited(0).stdout;
    assert!(help.contains("there is no telemetry") && help.contains("Environment variables: "), "{help}");
}

#[test]
fn completions_are_printed_for_each_shell_and_for_no_other_word() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = tracebridge().args(["completions", shell]).run().exited(0).stdout;
        assert!(script.contains("dmtracedump") && script.contains("tracebridge"), "{shell}");
    }
    let ran = tracebridge().args(["completions", "cmd"]).run().exited(2);
    assert!(ran.stderr.contains("bash"), "{ran}");
}
