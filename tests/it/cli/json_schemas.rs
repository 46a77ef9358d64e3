//! The output of `--json` has the form that the published schemas describe.

use std::fs;
use std::path::Path;

use support::scenario::{Era, Scenario};
use support::schemas::Documents;
use support::tracebridge;

/// A directory that stands for tracefs: enough files that `doctor` and `list` have something to report.
fn stand_in_for_tracefs(dir: &Path) {
    for (name, text) in [
        ("tracing_on", "1\n"),
        ("trace", ""),
        ("trace_marker", ""),
        ("trace_clock", "[local] global boot mono\n"),
        ("available_tracers", "function nop\n"),
        ("buffer_size_kb", "7\n"),
        ("set_event", ""),
        ("options/overwrite", "1\n"),
        ("events/sched/sched_switch/enable", "0\n"),
        ("events/sched/sched_waking/enable", "0\n"),
        ("per_cpu/cpu0/trace_pipe_raw", ""),
        ("per_cpu/cpu0/stats", "entries: 0\n"),
    ] {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn what_json_prints_has_the_form_of_the_published_schemas() {
    let Some(mut documents) = Documents::new() else { return };
    let dir = support::tempdir();
    let dir = dir.path();
    let made = Scenario::new(14, Era::ArtMono).make();
    let put = |name: &str, bytes: &[u8]| fs::write(dir.join(name), bytes).unwrap();
    put("app.dat", &made.dat);
    put("app.trace", &made.trace);
    put("before.trace", &made.trace[..made.trace.len() / 2]);
    put("cut.dat", &made.dat[..made.dat.len() / 2]);
    put("a.txt", b" a-7 (    7) [000] d..1 1.5: tracing_mark_write: I|7|x\nno line\n a-7 (    7) [000] d..1 1.6: cpu_idle: state=0 cpu_id=0\n");
    put("why.txt", crate::cli::why::TRACE.as_bytes());
    put("notes.txt", b"no trace\n");
    fs::create_dir(dir.join("bug")).unwrap();
    put("bug/app.trace", &made.trace);
    put("bug/memory.hprof", b"JAVA PROFILE 1.0.3\0");
    let frames = support::screen_video::frames(1_000_000_000, 3);
    put("screen.mp4", &support::screen_video::video(&frames, support::screen_video::Tables::Both));
    stand_in_for_tracefs(&dir.join("tracefs"));
    let mut check = |schema: &str, line: &str| {
        documents.add(schema, tracebridge().current_dir(dir).args(line.split(' ')));
    };
    check(
        "info",
        "info --json app.dat app.trace cut.dat before.trace a.txt screen.mp4 notes.txt bug missing",
    );
    for out in ["pftrace", "zip", "dat", "txt", "json", "firefox.json", "csv"] {
        check("convert", &format!("merge --json --explain app.dat app.trace -o out.{out}"));
        check("convert", &format!("convert --json a.txt -o text.{out}.gz").replace("zip.gz", "html"));
    }
    check("why", "why --json why.txt --slice load --against why.txt");
    check("why", "why --json why.txt --thread worker");
    check("convert", "convert --json app.trace -o methods.html");
    check("convert", "convert --json cut.dat -o cut.csv");
    check("convert", "convert --json app.trace -o app.parquet");
    for tag in ["a=1", "b=2"] {
        let file = if tag == "a=1" { "app.dat" } else { "app.trace" };
        let args = ["dataset", "add", "set", file, "--tag", tag];
        tracebridge().current_dir(dir).args(args).run().exited(0);
    }
    check("dataset", "dataset list --json set");
    let gate =
        "gate --json --baseline app.dat --candidate cut.dat --fail-if state.*>+5% --fail-if slice.*>+1ms";
    check("gate", gate);
    check("gate", &gate.replace("cut.dat", "set --candidate-tag b=2").replace("state", "slice"));
    for options in [
        "",
        " --calls",
        " --by class",
        " --by thread",
        " --tree",
        " --bottom-up",
        " --diff before.trace",
        " before.trace",
    ] {
        check("profile", &format!("profile --json app.trace{options}"));
    }
    check("version", "version --json");
    check("version", "version --verify --json");
    check("comparison", "report app.dat --diff cut.dat -o d.html --json");
    check("comparison", "adb launch --compare app.dat cut.dat --json");
    // Calls of a method that the trace does not declare.
    let text = "*version\n2\nclock=wall\n*threads\n1\tmain\n*methods\n*end\nSLOW\x02\0\x20\0";
    let record = |what: u32, us: u32| [&[1, 0][..], &(8 | what).to_le_bytes(), &us.to_le_bytes()].concat();
    put("undeclared.trace", &[text.as_bytes(), &[0; 24], &record(0, 1), &record(1, 5)].concat());
    check("profile", "profile --json undeclared.trace");
    #[cfg(target_os = "linux")]
    for command in ["doctor", "list"] {
        check(command, &format!("{command} --json --tracefs tracefs --state-dir bug"));
    }
    #[cfg(target_os = "linux")]
    check("restore", "restore --json --state-dir bug");
    let checked = documents.check();
    assert!(checked > 30, "{checked}");
}
