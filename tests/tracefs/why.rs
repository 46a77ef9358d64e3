//! Causes that are planted in a slice on this machine's kernel: `why` names them. `scripts/why-truth`
//! counts over many runs how often it does, and how near the sizes are.

use serde_json::Value;

use crate::tracefs_fixture::machine;
use crate::wrap::command;
use support::{skip, tracebridge};

/// Records the planted cause. Returns what the program says that it has planted, and the explained span.
fn planted(machine: &crate::tracefs_fixture::Machine, cause: &str) -> Option<(Value, Value)> {
    let dir = support::tempdir();
    let capture = dir.path().join("x.dat");
    let mut wrap = command(machine, dir.path(), "wrap");
    wrap.arg("-o").arg(&capture).args(["sched", "irq", "-b", "16384", "--"]);
    // At real-time priority, so that what else the machine does is no cause.
    wrap.args(["chrt", "-f", "1"]).arg(support::example("planted_cause")).args([cause, "80", "--tracefs"]);
    let said = wrap.arg(&machine.root).arg("--dir").arg(dir.path()).run();
    if said.stderr.contains("failed to set pid 0's policy") {
        skip("tracefs", "no real-time priority is to be had here");
        return None;
    }
    let said = said.exited(0);
    let why = tracebridge().args(["why", "--json", "--slice", "planted"]).arg(&capture).run();
    let why: Value = serde_json::from_str(&why.exited_with_one_of(&[0, 3]).stdout).unwrap();
    Some((serde_json::from_str(&said.stdout).unwrap(), why["spans"][0].clone()))
}

/// The path of the largest cause, by the names of causes, and its ns.
fn largest(span: &Value) -> (Vec<String>, u64) {
    let mut times: std::collections::BTreeMap<Vec<String>, u64> = Default::default();
    for cause in span["causes"].as_array().unwrap() {
        let hops = cause["path"].as_array().unwrap().iter();
        let path = hops.map(|hop| hop["cause"].as_str().unwrap().to_owned()).collect();
        *times.entry(path).or_default() += cause["ns"].as_u64().unwrap();
    }
    assert_eq!(times.values().sum::<u64>(), span["duration_ns"].as_u64().unwrap());
    times.into_iter().max_by_key(|(_, ns)| *ns).unwrap()
}

#[test]
fn a_planted_cause_is_the_largest_that_is_named() {
    let Some(machine) = machine() else { return };
    for cause in ["more_work", "sleep", "lock_computing", "lock_sleeping", "lock_chain", "server"] {
        let Some((said, span)) = planted(&machine, cause) else { return };
        let expected: Vec<String> = serde_json::from_value(said["path"].clone()).unwrap();
        let (path, ns) = largest(&span);
        assert_eq!(path, expected, "{cause}: {said} {span:#}");
        // What is planted was made to last; the machine can only add to that.
        assert!(ns + 5_000_000 >= said["ns"].as_u64().unwrap(), "{cause}: {said} {span:#}");
    }
}
