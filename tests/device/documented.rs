//! The commands of the pages and of the program's help that record the device itself run on it as they stand
//! there, each recording for a second.

use std::fs;

use support::pages::{code_blocks, device_commands, is_of_device, pages};
use support::project_dir;

use crate::adb::{DIR, Device};
use crate::fake_android::FakeAndroid;
use crate::settings::reset;

/// So many lines run at least: fewer, and this test would have gone blind.
const MIN_LINES: usize = 20;

/// Parts of lines that do not run here, and why.
const NOT_RUN: [(&str, &str); 4] = [
    ("adb ", "is for a desk"),
    ("tracebridge merge", "is for a desk"),
    ("live ", "goes on until somebody ends it; live.rs runs it"),
    ("jq ", "needs a program that the device lacks; tests/it compares this JSON with its schema"),
];

/// Programs and files that the lines use.
const PLACE: &str = "mkdir -p HERE && cd HERE && ln -sf PROGRAM tracebridge && printf '#!/bin/sh\n' >backup.sh && \
                     chmod 755 backup.sh && cp backup.sh make && cp backup.sh load";

/// The lines that record the device, each with where it stands.
fn lines(helps: &[(String, String)]) -> Vec<(String, String)> {
    let names = device_commands();
    let is_to_run = |line: &str| !NOT_RUN.iter().any(|(part, _)| line.contains(part));
    let mut found = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(project_dir().join(&page)).unwrap();
        for block in code_blocks(&text).into_iter().filter(|block| block.language == "sh") {
            let is_wanted =
                |line: &&String| is_of_device(line, &names) || line.contains("/sys/kernel/tracing");
            let wanted = block.lines.iter().filter(is_wanted).filter(|line| is_to_run(line));
            found.extend(wanted.map(|line| (page.clone(), line.clone())));
        }
    }
    for (command, help) in helps {
        let lines = help.lines().filter(|line| line.starts_with(' ')).map(str::trim_start);
        let lines = lines.filter(|line| ["tracebridge ", "{ "].iter().any(|start| line.starts_with(start)));
        let wanted = lines.filter(|line| is_of_device(line, &names) && is_to_run(line));
        found.extend(wanted.map(|line| (format!("{command} --help"), line.to_owned())));
    }
    found
}

#[test]
fn the_commands_of_the_pages_that_record_a_device_run_as_they_stand_there() {
    let Some(device) = Device::attached_in_full_run() else { return };
    let android = FakeAndroid::install(&device, &["am", "cmd", "getprop", "setprop"], &[]);
    let Some(_android) = android else { return };
    let program = device.program(device.abi(), "tracebridge");
    let app = device.program(device.abi(), "reference_app");
    device.run(&format!("cp {app} {DIR}/reference_app"));
    let here = format!("{DIR}/documented");
    device.run(&PLACE.replace("HERE", &here).replace("PROGRAM", &program));
    let names = device_commands().into_iter().filter(|name| name != "atrace");
    let helps: Vec<(String, String)> =
        names.map(|name| (name.clone(), device.run(&format!("{program} {name} --help")))).collect();
    let mut wrong = Vec::new();
    let lines = lines(&helps);
    for (place, line) in &lines {
        let line = line.replace(" -t 10 ", " -t 1 ").replace(" -t 5 ", " -t 1 ");
        let ran = device.shell(&format!("cd {here} && PATH={here}:$PATH && {line}"));
        if !matches!(ran.code(), Some(0 | 3)) {
            wrong.push(format!("{place}: {line}: {ran}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(lines.len() >= MIN_LINES, "only {} lines: {lines:#?}", lines.len());
    device.run(&format!(
        "rm -rf {here} {DIR}/reference_app {DIR}/x.dat {DIR}/bug.dat {DIR}/start.dat {DIR}/start.trace"
    ));
    reset(&device);
}
