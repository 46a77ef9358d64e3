//! `why` on the launches of Perfetto's own tests: Perfetto's reasons for a slow start are among our causes
//! and circumstances, and the causes of each launch add up to it.

use std::path::Path;

use serde_json::Value;
use support::tracebridge;

use crate::launches::files;

/// Perfetto's reasons, and the causes or circumstances here that stand for them. Its thresholds are not ours:
/// each has a size.
const REASONS: &[(&str, &[&str])] = &[
    ("NO_BASELINE_OR_CLOUD_PROFILES", &["no_profile"]),
    ("RUN_FROM_APK", &["no_profile"]),
    ("UNLOCK_RUNNING", &["unlock"]),
    ("GC_ACTIVITY", &["gc"]),
    ("DEX2OAT_RUNNING", &["dex2oat"]),
    ("INSTALLD_RUNNING", &["installd"]),
    ("MAIN_THREAD_TIME_SPENT_IN_RUNNABLE", &["runnable", "throttled"]),
    ("MAIN_THREAD_TIME_SPENT_IN_INTERRUPTIBLE_SLEEP", &["sleep", "idle", "ipc", "lock", "binder", "gc"]),
    ("MAIN_THREAD_TIME_SPENT_IN_BLOCKING_IO", &["disk"]),
    ("MAIN_THREAD_TIME_SPENT_IN_OPEN_DEX_FILES_FROM_OAT", &["open_dex_files"]),
    ("TIME_SPENT_IN_BIND_APPLICATION", &["bind_application"]),
    ("TIME_SPENT_IN_VIEW_INFLATION", &["inflate"]),
    ("TIME_SPENT_IN_RESOURCES_MANAGER_GET_RESOURCES", &["resources"]),
    ("TIME_SPENT_VERIFYING_CLASSES", &["verify_class"]),
    ("MAIN_THREAD_LOCK_CONTENTION", &["art_lock", "monitor"]),
    ("MAIN_THREAD_MONITOR_CONTENTION", &["monitor"]),
    ("MAIN_THREAD_BINDER_TRANSCATIONS_BLOCKED", &["binder"]),
    ("POTENTIAL_CPU_CONTENTION_WITH_ANOTHER_PROCESS", &["runnable"]),
    ("JIT_ACTIVITY", &["jit"]),
    ("JIT_COMPILED_METHODS", &["jit"]),
    ("BROADCAST_DISPATCHED_COUNT", &["broadcast_dispatched"]),
    ("BROADCAST_RECEIVED_COUNT", &["broadcast_received"]),
    ("STARTUP_RUNNING_CONCURRENT", &["other_launch"]),
    ("APP_IN_DEBUGGABLE_MODE", &["debuggable"]),
];

fn explained(path: &Path, number: usize) -> Value {
    let out = tracebridge().args(["why", "--json", "--launch", &number.to_string()]).arg(path).run();
    let out = out.exited_with_one_of(&[0, 3]);
    let said: Value = serde_json::from_str(&out.stdout).unwrap();
    said["spans"][0].clone()
}

/// The names of the causes, of all hops to them, and of the circumstances.
fn names(span: &Value) -> Vec<String> {
    let causes =
        span["causes"].as_array().unwrap().iter().flat_map(|cause| cause["path"].as_array().unwrap());
    let causes = causes.map(|hop| hop["cause"].as_str().unwrap().to_owned());
    let circumstances = span["circumstances"].as_array().unwrap().iter();
    causes.chain(circumstances.map(|one| one["name"].as_str().unwrap().to_owned())).collect()
}

#[test]
fn perfettos_reasons_are_among_the_causes_and_circumstances() {
    let mut checked = 0;
    for (path, answers) in files() {
        let launches = answers["launches"].as_array().unwrap();
        let reasons = answers["slow_start_reasons"].as_array().unwrap();
        for (number, launch) in launches.iter().enumerate() {
            let span = explained(&path, number + 1);
            assert_eq!(span["begin_ns"].to_string(), launch["ts"].as_str().unwrap(), "{}", path.display());
            assert_eq!(
                span["duration_ns"].to_string(),
                launch["dur"].as_str().unwrap(),
                "{}",
                path.display()
            );
            let sum: u64 =
                span["causes"].as_array().unwrap().iter().map(|cause| cause["ns"].as_u64().unwrap()).sum();
            assert_eq!(span["duration_ns"], sum, "{}", path.display());
            let id: u64 = launch["startup_id"].as_str().unwrap().parse().unwrap();
            let of_launch = reasons.iter().find(|reasons| reasons["startup_id"] == id);
            for reason in of_launch.iter().flat_map(|of_launch| of_launch["reasons"].as_array().unwrap()) {
                let reason = reason.as_str().unwrap();
                let ours = REASONS.iter().find(|(name, _)| *name == reason).expect("a reason of the table").1;
                let told = names(&span);
                let is_told = ours.iter().any(|name| told.iter().any(|told| told == name));
                assert!(is_told, "{}, launch {id}: {reason} is not among {told:?}", path.display());
                checked += 1;
            }
        }
    }
    assert!(checked >= 14 || support::corpus().is_none(), "{checked} reasons");
}
