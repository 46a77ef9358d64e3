//! Every method trace of the corpus opens, with the counts that INDEX.tsv gives.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use tracebridge::formats::art_method::Action;
use tracebridge::formats::art_method::{Error, MethodTrace, detect};

use tracebridge::profile::count::flat::FlatProfile;
use tracebridge::profile::count::selection::ProfileSelection;
use tracebridge::profile::count::tree::{CallGraph, CallTree, TreeOptions};

/// The file's bytes, unpacked where it is gzip.
pub fn bytes(path: &Path) -> Vec<u8> {
    let raw = std::fs::read(path).unwrap();
    if !raw.starts_with(&[0x1f, 0x8b]) {
        return raw;
    }
    let mut out = Vec::new();
    flate2::read::GzDecoder::new(&raw[..]).read_to_end(&mut out).unwrap();
    out
}

/// The `name=value` words of an INDEX row.
fn facts(details: &str) -> BTreeMap<String, String> {
    let separators = |c: char| c.is_whitespace() || matches!(c, '{' | '}' | ',');
    let words = details.split(separators).filter_map(|word| word.split_once('='));
    words.map(|(key, value)| (key.trim_start_matches('(').to_owned(), value.to_owned())).collect()
}

#[test]
fn every_method_trace_has_the_counts_of_its_index_row() {
    let Some(corpus) = support::corpus() else { return };
    let index = std::fs::read_to_string(corpus.join("INDEX.tsv")).unwrap();
    let mut compared = 0;
    let mut files = 0;
    for row in index.lines().filter(|row| row.starts_with("method-trace/")) {
        let columns: Vec<_> = row.split('\t').collect();
        let name = columns[0];
        let facts = facts(columns[4]);
        let bytes = bytes(&corpus.join(name));
        assert!(detect(&bytes), "{name}");
        let trace = MethodTrace::parse(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        let counts = trace.counts();
        let streaming = columns[4].contains("STREAMING");
        let mut check = |fact: &str, ours: u64| {
            if let Some(index_value) = facts.get(fact) {
                let index_value: u64 = index_value
                    .trim_start_matches("0x")
                    .parse()
                    .unwrap_or_else(|_| panic!("{name} {fact}={index_value}"));
                assert_eq!(ours, index_value, "{name}: {fact}");
                compared += 1;
            }
        };
        check("records", counts.records);
        if !streaming {
            check("threads", counts.declared_threads);
        }
        check("methods", counts.declared_methods);
        // INDEX counts id 0x0 as undeclared; the list does declare it, as `0` without `0x`.
        check("ids", counts.undeclared_methods + 1);
        check("pid", trace.header().pid.map_or(0, |p| p.0 as u64));
        if !name.ends_with("header.trace") {
            check("start_us", trace.header().start);
            let actions =
                format!("{}/{}/{}/{}", counts.enters, counts.exits, counts.unrolls, counts.bad_actions);
            let index_value = facts.iter().find(|(key, _)| key.starts_with("actions")).unwrap().1;
            assert!(actions.starts_with(index_value), "{name}: {actions} against {index_value}");
            let report = trace.report();
            assert!(report.damage.is_empty(), "{name}: {:?}", report.damage);
            let unnamed = report.irregular.iter().any(|line| line.contains("methods are in no list"));
            assert_eq!(unnamed, counts.undeclared_methods > 0, "{name}: {:?}", report.irregular);
            compared += 2;
        }
        if let Some(clock) = facts.get("clock") {
            assert_eq!(trace.header().clock.name(), clock, "{name}");
            compared += 1;
        }
        if streaming {
            // packets={'method': 3963, 'thread': 52, 'rec': 39377, …} recs-before-method-decl=38 …
            // sumthreads=61
            assert_eq!((counts.declared_methods, counts.records), (3963, 39377), "{name}");
            assert_eq!(counts.enters + counts.exits, 39377, "{name}");
            assert!(counts.declared_threads >= 61, "{name}");
            compared += 3;
        }
        let listed = trace.records().count() as u64;
        assert_eq!(listed, counts.records - counts.bad_actions, "{name}");
        files += 1;
    }
    println!("{files} files, {compared} values compared");
    assert!(files >= 12);
}

#[test]
fn records_of_undeclared_methods_are_kept() {
    let Some(corpus) = support::corpus() else { return };
    let bytes = bytes(&corpus.join("method-trace/firefox-devtools__profiler__art-trace-streaming.trace"));
    let trace = MethodTrace::parse(&bytes).unwrap();
    let unknown = trace.records().filter(|r| !trace.methods()[r.method as usize].declared).count();
    assert_eq!(unknown, 38);
}

#[test]
fn a_threads_clocks_never_run_backwards() {
    let Some(corpus) = support::corpus() else { return };
    for name in [
        "firefox-devtools__profiler__art-trace-regular.trace",
        "Grigory-Rylov__android-methods-profiler__legacy.trace",
    ] {
        let bytes = bytes(&corpus.join("method-trace").join(name));
        let trace = MethodTrace::parse(&bytes).unwrap();
        let mut last = vec![(0, None); trace.threads().len()];
        for record in trace.records() {
            let wall = record.wall.unwrap();
            let cpu = record.cpu.unwrap();
            let last = &mut last[record.thread as usize];
            assert!(wall >= last.0, "{name}");
            match *last {
                (_, None) => assert_eq!(cpu, 0, "{name}: a thread's CPU time counts from its first event"),
                (_, Some(before)) => assert!(cpu >= before, "{name}"),
            }
            *last = (wall, Some(cpu));
        }
    }
}

#[test]
fn a_trace_cut_anywhere_opens_in_part_or_says_why_not() {
    let Some(corpus) = support::corpus() else { return };
    for entry in std::fs::read_dir(corpus.join("method-trace")).unwrap() {
        let path = entry.unwrap().path();
        let whole = bytes(&path);
        let records = MethodTrace::parse(&whole).unwrap().counts().records;
        for n in 0..200 {
            let cut = whole.len() * n / 200;
            match MethodTrace::parse(&whole[..cut]) {
                Ok(trace) => {
                    assert!(trace.counts().records <= records);
                    // A file that promises no number, cut between two records, is as good as whole.
                    let tellable =
                        trace.header().key("num-method-calls").is_some() || trace.header().streaming;
                    assert!(
                        !tellable || !trace.report().damage.is_empty(),
                        "{} cut at {cut} passes as whole",
                        path.display()
                    );
                    let damage = &trace.report().damage;
                    assert!(
                        damage.iter().all(|d| d.offset <= cut as u64),
                        "{} cut at {cut}: {damage:?}",
                        path.display()
                    );
                    assert_eq!(trace.records().count() as u64, trace.counts().records);
                }
                Err(Error::Empty) => assert_eq!(cut, 0),
                Err(error) => assert!(error.to_string().contains("offset"), "{error}"),
            }
        }
    }
}

#[test]
fn an_unroll_is_an_action_of_its_own() {
    let Some(corpus) = support::corpus() else { return };
    let bytes = bytes(&corpus.join("method-trace/tadfisher__platform_tools_base__exception.trace"));
    let trace = MethodTrace::parse(&bytes).unwrap();
    assert_eq!(trace.records().filter(|r| r.action == Action::Unroll).count(), 3);
}

/// Calls, recursive calls, exclusive and inclusive times of each method, counted twice in two ways; how many
/// values.
fn flat_and_tree_agree(trace: &MethodTrace<'_>, name: &str) -> usize {
    let all = ProfileSelection::default();
    let flat = FlatProfile::from_trace(trace, &all);
    let tree = CallTree::from_trace(trace, &all, TreeOptions::default());
    let graph = CallGraph::from_tree(&tree, trace.methods().len());
    assert_eq!(flat.anomalies, tree.anomalies, "{name}");
    for (n, (flat, graph)) in flat.methods.iter().zip(&graph.methods).enumerate() {
        let method = trace.methods()[n].full_name();
        assert_eq!([flat.calls, flat.recursive], graph.calls, "{name}: {method}");
        assert_eq!((flat.exclusive, flat.inclusive), (graph.exclusive, graph.inclusive), "{name}: {method}");
    }
    for (thread, total) in flat.threads.iter().zip(tree.totals()) {
        assert_eq!(thread.total, total, "{name}: all paths of a thread add up to its time");
    }
    flat.methods.len() * 6
}

#[test]
fn the_flat_profile_and_the_call_tree_agree_also_on_damaged_traces() {
    let Some(corpus) = support::corpus() else { return };
    let mut compared = 0;
    for entry in std::fs::read_dir(corpus.join("method-trace")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        let mut bytes = bytes(&path);
        compared += flat_and_tree_agree(&MethodTrace::parse(&bytes).unwrap(), &name);
        // Every so many bytes of the records one that is wrong: other methods, threads, actions, times.
        let records = bytes.windows(4).position(|w| w == b"SLOW").unwrap() + 32;
        for at in (records..bytes.len()).step_by(997) {
            bytes[at] ^= 0x15;
        }
        if let Ok(trace) = MethodTrace::parse(&bytes) {
            compared += flat_and_tree_agree(&trace, &format!("{name}, damaged"));
        }
    }
    println!("{compared} values compared");
    assert!(compared > 50_000);
}
