//! `why` finds causes that a program on the runtime plants. `scripts/why-truth --art` counts over many runs.

use std::collections::BTreeMap;

use serde_json::Value;
use support::{has_program, skip, tempdir, tracebridge};

use crate::recorded::recorded;
use crate::runtime::runtime;

const CAUSES: [&str; 7] = [
    "monitor",
    "pool_queue",
    "stopped",
    "own_collection",
    "awaited_collection",
    "verification",
    "interpreted",
];

/// The path of causes that takes most of the span. Waiting for the collection of another thread is a
/// collection, too.
fn largest_path(span: &Value) -> Vec<String> {
    let mut times: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for part in span["causes"].as_array().unwrap() {
        let hops = part["path"].as_array().unwrap().iter();
        let mut path: Vec<String> = hops.map(|hop| hop["cause"].as_str().unwrap().to_owned()).collect();
        path.dedup_by(|a, b| a == "gc" && b == "gc");
        *times.entry(path).or_default() += part["ns"].as_u64().unwrap();
    }
    times.into_iter().max_by_key(|(_, ns)| *ns).unwrap().0
}

/// The fault in the explanation of one run; `None` if all is right.
fn fault(cause: &str, planted: &Value, span: &Value) -> Option<String> {
    let path: Vec<&str> = planted["path"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let printed = span.to_string();
    let mut named = planted["named"].as_array().unwrap().iter().filter_map(Value::as_str);
    (largest_path(span) != path || !named.all(|text| printed.contains(text)))
        .then(|| format!("{cause}: {planted} was planted: {span:#}"))
}

#[test]
fn why_finds_the_causes_that_a_program_plants() {
    let Some(art) = runtime() else { return };
    if !has_program("chrt") {
        return skip("chrt", "no chrt: util-linux has it");
    }
    let dir = tempdir();
    let recording = dir.path().join("planted.dat");
    for cause in CAUSES {
        // At real-time priority, so that other programs are no cause.
        let mut command = ["chrt", "-f", "1"].map(str::to_owned).to_vec();
        command.extend(art.program("Causes", &[cause, "60", dir.path().to_str().unwrap()]));
        let run = || {
            let planted = recorded("causes", "boot", &command, &recording)?;
            let planted: Value = serde_json::from_str(&planted).expect("the program prints JSON");
            let why = tracebridge().args(["why", "--json", "--slice", "planted"]).arg(&recording).run();
            Some(fault(cause, &planted, &why.exited_with_one_of(&[0, 3]).json()["spans"][0]))
        };
        // A machine that is busy with other tests may be wrong once.
        let Some(first) = run() else { return };
        let fault = first.and_then(|_| run().flatten());
        assert!(fault.is_none(), "{}", fault.unwrap_or_default());
    }
}
