//! Mistakes in command lines. Every mistake gets an answer that names the cure, and no success.

use std::fs;

use support::art_writer::{Action, ArtTrace, Method, Record};
use support::foreign_dat::{Endian, Packing, make};
use support::tracebridge;

/// The arguments behind `tracebridge`, the exit status, and a part of the answer.
const MISTAKES: &[(&str, i32, &str)] = &[
    ("", 2, "tracebridge open app.trace  "),
    ("app.trace", 2, "tracebridge profile app.trace"),
    ("rec.dat", 2, "tracebridge merge rec.dat -o OUT.pftrace"),
    ("notes.txt", 2, "tracebridge info notes.txt"),
    ("missing.trace", 2, "is no command, and no such file is here"),
    ("profil app.trace", 2, "'profile'"),
    ("profile", 2, "<TRACE>"),
    ("profile missing.trace", 1, "missing.trace: No such file"),
    ("profile rec.dat", 1, "holds no method calls; `tracebridge info`"),
    ("profile .", 1, "holds 2 traces: name one of them: ./app.trace, ./rec.dat"),
    ("profile notes.txt", 1, "text of an unknown kind"),
    ("profile app.trace --top", 2, "a value is required for '--top <N>'"),
    ("profile app.trace --top many", 2, "invalid value 'many'"),
    ("profile app.trace --thread nobody", 1, "no thread is called nobody"),
    ("profile app.trace --tree --threshold 101", 2, "percent, 0 to 100"),
    ("profile app.trace --json --csv", 2, "--json does not go with --csv"),
    ("profile --flamegraph app.trace", 2, "<TRACE>"),
    ("profile app.trace --method nomatch", 1, "no method matches nomatch; 1"),
    ("profile app.trace --csv --calls", 2, "--calls does not go with --csv"),
    ("profile app.trace --diff app.trace --tree", 2, "--against does not go with --tree"),
    ("profile app.trace --from 100s", 1, "the trace ends at"),
    ("profile app.trace --from 5ms --to 1ms", 2, "--from"),
    ("profile app.trace --app com.example", 2, "--app"),
    ("profile app.trace --threshold 5", 2, "--threshold does not go with the table"),
    ("profile app.trace --flamegraph f.png", 2, "a flame graph is SVG: name the file .svg"),
    ("profile app.trace --flamegraph f.txt", 2, "a flame graph is SVG: name the file .svg"),
    ("profile app.trace -o .", 2, "is a directory: name a file in it"),
    ("profile app.trace -o app.trace", 1, "is an input and the output"),
    ("adb profile stop com.a -o x.foo", 2, "name it by one of: .trace .pftrace"),
    ("adb -s S1 record sched", 2, "unexpected argument '-s'"),
    ("profile app.trace --png f.svg", 2, "the picture is PNG: name the file .png"),
    ("profile app.trace -o f.pftrace", 2, "`tracebridge merge TRACE -o FILE`"),
    ("profile app.trace -o f.foo", 2, "endings that name an output: .svg, .folded"),
    ("convert app.trace", 2, "--output <OUT>"),
    ("convert -o x.pftrace", 2, "<INPUTS>"),
    ("convert app.trace x.pftrace", 2, "--output <OUT>"),
    ("convert app.trace -o x.xyz", 2, "its ending names no format"),
    ("convert app.trace -o x", 2, ".pftrace"),
    ("convert app.trace -o x.xyz", 2, "tables (.parquet)"),
    ("convert app.trace -o .", 2, "is a directory: name a file in it"),
    ("convert app.trace -o app.trace", 1, "is an input and the output"),
    ("merge app.trace rec.dat -o ..", 2, "is a directory: name a file in it"),
    ("convert app.trace --format xyz -o x", 2, "no format has this name or ending"),
    ("convert app.trace -o missing/x.pftrace", 1, "missing/x.pftrace: No such file or directory"),
    ("convert app.trace -o x.dat", 1, "Outputs that hold methods"),
    ("convert app.trace --format perfetto -o app.trace", 1, "is an input and the output"),
    ("convert app.trace --from 1x -o x.json", 2, "1.5s, 200ms, 350us"),
    ("convert app.trace --from 5ms --to 1ms -o x.json", 2, "is not behind --from"),
    ("convert app.trace --from 100s -o x.json", 1, "the trace ends"),
    ("convert app.trace -o x.zip --gzip", 2, "a zip is written to a file"),
    ("merge app.trace -o", 2, "a value is required for '--output <OUT>'"),
    ("merge -o x.pftrace", 2, "<INPUTS>"),
    ("merge app.trace rec.dat -o x.json --offset much", 2, "invalid value 'much'"),
    ("report app.trace -o x.svg", 2, "x.svg: `report` writes a page: name it .html"),
    ("report app.trace --against rec.dat -o x", 2, "x: `report` writes a page: name it .html"),
    ("report app.trace -o app.trace", 1, "is an input and the output"),
    ("report app.trace -o .", 2, "is a directory: name a file in it"),
    ("report app.trace --against", 2, "a value is required for '--against"),
    ("report --against rec.dat app.trace", 2, "--against took rec.dat, app.trace as the older side"),
    ("report --diff rec.dat app.trace", 2, "tracebridge report app.trace --against rec.dat"),
    ("report --against a b c", 2, "tracebridge report NEW… --against OLD…"),
    ("profile app.trace --against missing.trace", 1, "missing.trace: No such file"),
    ("profile --against app.trace", 2, "tracebridge profile NEW… --against app.trace"),
    ("profile --against app.trace new.trace", 2, "tracebridge profile new.trace --against app.trace"),
    ("profile --diff app.trace new.trace", 2, "tracebridge profile new.trace --against app.trace"),
    ("profile app.trace --against a.trace b.trace", 2, "--against took a.trace, b.trace as the older side"),
    ("why --against rec.dat new.dat", 2, "tracebridge why new.dat --against rec.dat"),
    ("why --diff rec.dat new.dat", 2, "--against took rec.dat, new.dat as the older side"),
    ("report app.trace --diff missing.trace", 1, "missing.trace: No such file"),
    ("open missing.html", 1, "missing.html: No such file"),
    ("info", 2, "<FILES>"),
    ("info notes.txt", 1, "text of an unknown kind"),
    ("info app.trace --jsn", 2, "--json"),
    ("gate --baseline app.trace --candidate rec.dat", 2, "--fail-if"),
    ("gate --baseline app.trace --candidate rec.dat --fail-if launch.total>5%", 2, "at character 14"),
    (
        "gate --baseline app.trace --candidate rec.dat --fail-if launch.total>+5% --html g.png",
        2,
        "the page is HTML: name the file .html or .htm",
    ),
    ("gate --baseline . --candidate rec.dat --fail-if launch.total>+5% --junit app.trace", 2, "is an input"),
    (
        "gate --baseline app.trace --candidate rec.dat --fail-if launch.total>+5%",
        1,
        "no run has launch.total",
    ),
    ("record --serial S1 sched", 2, "`record` runs on a device; from here: `tracebridge adb record`"),
    ("launch --all com.example", 2, "`launch` runs on a device; from here: `tracebridge adb launch`"),
    ("restore --serial S1", 2, "`restore` runs on a device; from here: `tracebridge adb clean`"),
    ("devices", 2, "`devices` is a command for attached devices: `tracebridge adb devices`"),
    ("record sched -t -3", 2, "unexpected argument '-3'"),
    ("adb record sched -o x.xyz", 2, "its ending names no format: name it by one of: .pftrace"),
    ("adb launch com.example -o .", 2, "is a directory: name a file in it"),
    ("dmtracedump", 2, "<TRACE>"),
    ("dmtracedump rec.dat", 1, "holds no method calls"),
    ("dmtracedump -h app.trace", 2, "tracebridge report TRACE"),
];

#[test]
fn every_mistake_gets_an_answer_and_no_success() {
    let dir = support::tempdir();
    let trace = ArtTrace {
        threads: vec![(1, "main".into())],
        methods: vec![Method::new("a.B", "run")],
        records: vec![Record::new(1, 0, Action::Enter, 1, 1), Record::new(1, 0, Action::Exit, 9, 9)],
        elapsed_us: 10,
        ..ArtTrace::default()
    };
    fs::write(dir.path().join("app.trace"), trace.to_bytes()).unwrap();
    fs::write(dir.path().join("rec.dat"), make(Endian::Little, 8, Packing::V6)).unwrap();
    fs::write(dir.path().join("notes.txt"), "buy milk\n").unwrap();
    let names = || {
        let mut names: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    let mut wrong = Vec::new();
    for (typed, status, answer) in MISTAKES {
        let out = tracebridge().current_dir(dir.path()).args(typed.split_whitespace()).run();
        let said = &out.stderr;
        // No advice to make a name of a flag, which nobody means.
        let is_true = !said.contains("use '--");
        if out.code() != Some(*status) || !said.contains(answer) || !is_true || names() != before {
            wrong.push(format!("tracebridge {typed}: {}: {said}", out.status));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
