//! Any bytes as a method trace, through every counter: no panic, no hang, no memory beyond reason; and the
//! flat profile and the call tree agree.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::formats::art_method::MethodTrace;
use tracebridge::profile::count::call_stacks::call_events;
use tracebridge::profile::count::flat::FlatProfile;
use tracebridge::profile::count::selection::ProfileSelection;
use tracebridge::profile::count::tree::{CallGraph, CallTree, TreeOptions};

fuzz_target!(|data: &[u8]| {
    let Ok(trace) = MethodTrace::parse(data) else { return };
    assert_eq!(trace.records().count() as u64, trace.counts().records - trace.counts().bad_actions);
    let all = ProfileSelection::default();
    let flat = FlatProfile::from_trace(&trace, &all);
    let tree = CallTree::from_trace(&trace, &all, TreeOptions::default());
    assert_eq!(flat.anomalies, tree.anomalies);
    let graph = CallGraph::from_tree(&tree, trace.methods().len());
    for (flat, graph) in flat.methods.iter().zip(&graph.methods) {
        assert_eq!([flat.calls, flat.recursive], graph.calls);
        assert_eq!(flat.exclusive, graph.exclusive);
        assert_eq!(flat.inclusive, graph.inclusive);
    }
    let window = ProfileSelection { threads: None, window: Some(1_000..50_000_000) };
    let _ = FlatProfile::from_trace(&trace, &window);
    let _ = call_events(&trace, &all, 0);
});
