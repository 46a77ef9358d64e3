//! The tables of every real file hold what the other outputs of the same file hold.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use support::tables::{Row, assert_same_profile, rows};
use support::{corpus, tracebridge};

/// The files of the corpus, but for single pages of ring buffers.
fn files() -> Option<Vec<PathBuf>> {
    let corpus = corpus()?;
    let mut files = Vec::new();
    for kind in ["method-trace", "ftrace-text", "trace-cmd", "trace-cmd-derived", "systrace", "perfetto"] {
        let entries = fs::read_dir(corpus.join(kind)).into_iter().flatten();
        files.extend(entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()));
    }
    files.sort();
    Some(files)
}

#[test]
fn the_tables_of_each_file_hold_what_its_profile_or_its_text_and_csv_hold() {
    let Some(files) = files() else { return };
    let dir = support::tempdir();
    let set = dir.path().join("set");
    let out = tracebridge().args(["dataset", "add", "--keep-damaged"]).arg(&set).args(&files).run();
    assert!(matches!(out.code(), Some(0 | 3)), "{}", out.stderr);
    let sources = rows(&set, "source");
    let tables: Vec<(&str, Vec<Row>)> = ["method_profile", "slice", "sched", "thread_state", "counter"]
        .map(|name| (name, rows(&set, name)))
        .into();
    let table = |name: &str, id: &str| -> Vec<&Row> {
        let (_, rows) = tables.iter().find(|(table, _)| *table == name).unwrap();
        rows.iter().filter(|row| row.text("trace_id") == Some(id)).collect()
    };
    let mut profiles = 0;
    let mut texts = 0;
    for source in &sources {
        let id = source.text("trace_id").unwrap();
        let path = Path::new(source.text("path").unwrap());
        let is_alone = sources.iter().filter(|other| other.text("trace_id") == Some(id)).count() == 1;
        match is_alone && path.is_file() {
            true if source.int("method_edges") > Some(0) => {
                let out = tracebridge().args(["profile", "--json"]).arg(path).run();
                let profile: Value = out.json();
                assert_same_profile(table("method_profile", id), &profile);
                profiles += 1;
            }
            true if source.int("method_edges") == Some(0) => {
                texts += usize::from(has_same_counts(path, dir.path(), |name| table(name, id)));
            }
            _ => {}
        }
    }
    assert!(profiles >= 8 && texts >= 10, "{profiles} profiles and {texts} texts compared");
}

/// Compares the tables of a recording with its text, which holds each event, and with its CSV. Returns
/// whether the text has the switches in a form that is counted here.
fn has_same_counts<'t>(path: &Path, dir: &Path, table: impl Fn(&str) -> Vec<&'t Row>) -> bool {
    let convert = |ending: &str| {
        let out = dir.join(format!("x.{ending}"));
        let _ = fs::remove_file(&out);
        tracebridge().arg("convert").arg(path).arg("-o").arg(&out).run();
        String::from_utf8_lossy(&fs::read(out).unwrap_or_default()).into_owned()
    };
    let text = convert("txt");
    let csv = convert("csv");
    let in_csv = |what: &str| csv.lines().filter(|line| line.starts_with(&format!("{what},"))).count();
    for (name, what) in [("sched", "sched"), ("thread_state", "state"), ("counter", "counter")] {
        assert_eq!(table(name).len(), in_csv(what), "{name} of {}", path.display());
    }
    let slices = table("slice");
    let kind = |kind: &str| slices.iter().filter(|row| row.text("kind") == Some(kind)).count();
    let begins = text.lines().filter(|line| line.contains("tracing_mark_write: B|")).count();
    assert_eq!(kind("thread"), begins, "{}", path.display());
    assert_eq!(kind("irq"), in_csv("irq"), "{}", path.display());
    let next = |line: &str| {
        let fields = line.split("sched_switch:").nth(1)?;
        fields.split("next_pid=").nth(1)?.split(' ').next().map(str::to_owned)
    };
    let switches: Vec<String> = text.lines().filter_map(next).collect();
    let to_threads = switches.iter().filter(|pid| *pid != "0").count();
    assert!(switches.is_empty() || table("sched").len() == to_threads, "{}", path.display());
    !switches.is_empty()
}
