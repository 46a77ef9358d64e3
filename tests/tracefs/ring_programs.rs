//! Programs with a ring: one in C, and the reference app, whose method trace shows how good the times are.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::markers::c_library;
use crate::ring::{markers, start_recorder, stop};
use crate::support::{skip, tracebridge};
use crate::tracefs_fixture::{expand, machine};

const PROGRAM_IN_C: &str = r#"
#define ATRACE_TAG ATRACE_TAG_ALWAYS
#include <tracebridge.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
    if (!tracebridge_use_ring(false)) return 2;
    while (!tracebridge_instant(ATRACE_TAG_ALWAYS, "ready")) usleep(1000);
    ATRACE_BEGIN("draw|it");
    ATRACE_INT64("bytes", -5);
    ATRACE_ASYNC_BEGIN("load", 7);
    ATRACE_ASYNC_FOR_TRACK_BEGIN("net", "GET /", 3);
    ATRACE_ASYNC_FOR_TRACK_END("net", 3);
    ATRACE_INSTANT_FOR_TRACK("net", "retry");
    ATRACE_ASYNC_END("load", 7);
    ATRACE_END();
    printf("%d\n", (int)getpid());
    return 0;
}
"#;

#[test]
fn ring_of_a_program_in_c_has_every_kind_of_marker() {
    let Some(library) = c_library() else { return };
    let Some(machine) = machine() else { return };
    expand(&machine.root);
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("ring_c");
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Werror", "-x", "c", "-", "-I"])
        .arg(library);
    cc.args(["-x", "none"]).arg(library.join("libtracebridge_markers.a")).arg("-o").arg(&program);
    let mut cc = cc.stdin(Stdio::piped()).spawn().unwrap();
    cc.stdin.take().unwrap().write_all(PROGRAM_IN_C.as_bytes()).unwrap();
    assert!(cc.wait().unwrap().success());
    let recorder = start_recorder(&machine, dir.path(), &[]);
    let mut child = Command::new(&program).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(child.wait().unwrap().success());
    stop(recorder);
    let pid: i32 = line.trim().parse().unwrap();
    let found = markers(&dir.path().join("x.dat"));
    let texts: Vec<&str> =
        found.iter().filter(|(_, tid, _)| *tid == pid).map(|(.., text)| text.as_str()).collect();
    let expected = "I|P|ready B|P|draw it C|P|bytes|-5 S|P|load|7 G|P|net|GET /|3 H|P|net|3 N|P|net|retry F|P|load|7 E|P";
    assert_eq!(texts.join(" "), expected.replace("|P", &format!("|{pid}")));
}

#[test]
fn ring_markers_prove_where_a_method_trace_lies() {
    let target = Path::new(env!("CARGO_BIN_EXE_tracebridge")).parent().unwrap();
    let program = target.join("examples/reference_app");
    if !cfg!(feature = "ring") || !program.is_file() {
        return skip("ring", "the reference app is not built with the feature ring");
    }
    let Some(machine) = machine() else { return };
    expand(&machine.root);
    let dir = tempfile::tempdir().unwrap();
    let recorder = start_recorder(&machine, dir.path(), &[]);
    let trace = dir.path().join("app.trace");
    let mut app = Command::new(program);
    app.args(["--ring", "--threads", "4", "--calls", "600", "--pause", "2000", "-o"]).arg(&trace);
    let out = app.output().unwrap();
    assert!(out.status.success(), "{out:?}");
    stop(recorder);
    let mut merge = tracebridge();
    merge.args(["merge", "--json"]).arg(dir.path().join("x.dat")).arg(&trace);
    let out = merge.arg("-o").arg(dir.path().join("x.json")).output().unwrap();
    let summary: Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out:?}"));
    let trace = &summary["outcome"]["inputs"][1];
    assert_eq!(trace["verdict"], "proven", "{trace}");
    // The method trace has times in whole µs.
    let median = trace["residual_median_ns"].as_u64().unwrap();
    assert!(median <= 2000, "median {median} ns");
}
