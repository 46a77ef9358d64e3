//! `why` on the launches of Perfetto's own tests: Perfetto's reasons for a slow start are among our causes
//! and circumstances, and the causes of each launch add up to it.

use std::collections::BTreeMap;
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

/// A part of Perfetto's breakdown of a launch, ns, and our causes for the same time: cause, subject, ns. An
/// empty reason is time that Perfetto's breakdown leaves out.
type BreakdownRow = (&'static str, u64, &'static [(&'static str, &'static str, u64)]);

const SECOND: u64 = 1_000_000_000;

/// Where Perfetto splits a launch, ours has the same times. The names differ by these rules:
/// - Perfetto names the deepest slice that it knows, ours is the innermost slice, whatever it is called.
/// - Opening dex files is a cause of its own here, and plain running there.
/// - The time before the main thread's first event is `launch_delay` there. Here it is the start of the
///   process where the launch is a cold one, and else not recorded.
/// - A sleep is `S` there. Here it has the cause that its wake-up tells: without one it is not recorded.
/// - A state that nothing ends is left out there, and goes on to the end of the launch here.
const BREAKDOWNS: &[(&str, &[BreakdownRow])] = &[
    (
        "android_startup_breakdown_slow.pftrace",
        &[
            ("launch_delay", 78 * SECOND, &[("start", "whoever started it was not recorded", 78 * SECOND)]),
            ("inflate", 3 * SECOND, &[("running", "inflate", 3 * SECOND)]),
            (
                "resources_manager_get_resources",
                2 * SECOND,
                &[("running", "ResourcesManager#getResources", 2 * SECOND)],
            ),
            ("activity_resume", SECOND, &[("running", "activityResume", SECOND)]),
            ("activity_start", SECOND, &[("running", "activityStart", SECOND)]),
            (
                "bind_application",
                5 * SECOND,
                &[
                    ("running", "bindApplication", 4 * SECOND),
                    ("running", "performResume:com.google.android.calendar.MainActivity", SECOND),
                ],
            ),
            (
                "Running",
                13 * SECOND,
                &[
                    ("running", "", 10 * SECOND),
                    (
                        "class_loading",
                        "location=error status=io-error-no-oat filter=run-from-apk reason=unknown",
                        2 * SECOND,
                    ),
                    (
                        "class_loading",
                        "location=/system/framework/oat/arm/com.android.location.provider.odex status=up-to-date filter=speed-profile reason=install",
                        SECOND,
                    ),
                ],
            ),
            ("", 5 * SECOND, &[("runnable", "system_server (real-time)", 5 * SECOND)]),
        ],
    ),
    (
        "android_startup.pftrace",
        &[
            ("launch_delay", 8, &[("not_recorded", "the thread's state before its first event", 8)]),
            ("Running", 7, &[("running", "", 7)]),
            ("activity_start", 2, &[("running", "activityStart", 2)]),
            ("activity_resume", 1, &[("running", "activityResume", 1)]),
            ("S", 10, &[("not_recorded", "the wake-up that ended the wait", 10)]),
            (
                "",
                80,
                &[
                    ("runnable", "the CPU left its idle state", 49),
                    ("runnable", "com.google.android.calendar (real-time)", 31),
                ],
            ),
        ],
    ),
];

#[test]
fn perfettos_breakdown_differs_by_the_rules_and_by_nothing_else() {
    for (path, answers) in files() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut of_perfetto = BTreeMap::<&str, u64>::new();
        for part in answers["breakdown"].as_array().unwrap() {
            let ns: u64 = part["dur"].as_str().unwrap().parse().unwrap();
            *of_perfetto.entry(part["reason"].as_str().unwrap()).or_default() += ns;
        }
        let table = BREAKDOWNS.iter().find(|(file, _)| *file == name).map_or(&[][..], |(_, rows)| rows);
        let told = table.iter().filter(|(reason, ..)| !reason.is_empty());
        assert_eq!(
            told.map(|(reason, ns, _)| (*reason, *ns)).collect::<BTreeMap<_, _>>(),
            of_perfetto,
            "{name}"
        );
        if table.is_empty() {
            continue;
        }
        let mut ours: Vec<(&str, &str, u64)> = Vec::new();
        for (reason, ns, causes) in table {
            let sum: u64 = causes.iter().map(|(.., ns)| ns).sum();
            assert_eq!(sum, *ns, "{name}: {reason}");
            ours.extend(*causes);
        }
        let span = explained(&path, 1);
        let mut found: Vec<(&str, &str, u64)> = Vec::new();
        for cause in span["causes"].as_array().unwrap() {
            let [hop] = cause["path"].as_array().unwrap().as_slice() else { panic!("{name}: {cause}") };
            let subject = cause["subject"].as_str().unwrap_or("");
            let cause_name = hop["cause"].as_str().unwrap();
            let ns = cause["ns"].as_u64().unwrap();
            // Parts with other frames of the app are parts of one cause.
            match found.iter_mut().find(|(name, about, _)| *name == cause_name && *about == subject) {
                Some((.., sum)) => *sum += ns,
                None => found.push((cause_name, subject, ns)),
            }
        }
        ours.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, ours, "{name}");
    }
}
