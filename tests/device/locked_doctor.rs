//! The reports of `doctor` and `list` on a locked phone, compared with the kernel's log, and those that an
//! app gets.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::fake_android::FakeAndroid;
use crate::locked::{LockedPhone, assert_status};

/// How many denials one command may leave in the device's log.
const MOST_DENIALS: usize = 10;

/// The properties of the phone's build.
const PROPERTIES: [(&str, &str); 3] =
    [("ro.build.version.sdk", "35"), ("ro.build.version.release", "15"), ("ro.build.type", "user")];

/// A path of doctor's report as an absolute path.
fn absolute(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("/sys/kernel/tracing/{path}") }
}

/// The access that the kernel gives `shell` and root to each of these files (see tools/access_probe.rs), and
/// the files that SELinux denies `shell` to look at.
fn truth(phone: &LockedPhone, paths: &[String]) -> (BTreeMap<String, [String; 2]>, BTreeSet<String>) {
    let probe = phone.program("access_probe");
    let command = format!("printf '%s\\n' {} | {probe}", paths.join(" "));
    let found = |printed: &str| -> BTreeMap<String, String> {
        let lines = printed.lines().filter_map(|l| l.split_once(' '));
        lines.map(|(may, path)| (path.to_owned(), may.to_owned())).collect()
    };
    let (shell, denials) = phone.denials(|| found(&phone.shell.run(&command)));
    let root = found(&phone.as_root(&command));
    let both = shell.into_iter().map(|(path, may)| (path.clone(), [may, root[&path].clone()])).collect();
    (both, denials.into_iter().map(|denial| denial.file).collect())
}

#[test]
fn every_reason_of_doctor_is_the_kernels() {
    let Some(phone) = LockedPhone::attached() else { return };
    let Some(_android) = FakeAndroid::install(&phone.root, &["getprop", "setprop"], &PROPERTIES) else {
        return;
    };
    let binary = phone.program("tracebridge");
    let (output, denials) = phone.denials(|| phone.shell.shell(&format!("{binary} doctor --json")));
    assert_status(&output, 0, "doctor --json");
    let report: Value = output.json();
    let entries = report["paths"].as_array().unwrap();
    let paths: Vec<String> = entries.iter().map(|p| absolute(p["path"].as_str().unwrap())).collect();
    let (access, denied) = truth(&phone, &paths);
    let mut wrong = Vec::new();
    for (entry, path) in entries.iter().zip(&paths) {
        let [shell, root] = &access[path];
        let told = entry["obstacle"].as_str();
        let is_absent = root == "----";
        let is_denied = denied.contains(path) || denied.contains(path.rsplit('/').next().unwrap());
        let is_hidden = is_denied && !shell.contains('s');
        // What is of no use without a file that is refused need not be examined, and then nothing is told of
        // it.
        let is_examined = !entry["reason"].as_str().unwrap_or_default().starts_with("not examined");
        let right = match told {
            None if !is_examined => true,
            // The option is known from the text of trace_options.
            None => shell.contains(['r', 'w']) || entry["what_for"].as_str().unwrap().ends_with("it is on"),
            Some("kernel") => is_absent,
            Some("selinux") => is_denied,
            Some("mode") => !is_denied && !is_absent,
            Some(_) => false,
        };
        // Nobody can know of a file that is hidden whether it exists.
        let is_unknown = entry["exists"].is_null() && (is_hidden || !is_examined);
        let existence = is_unknown || entry["exists"].as_bool() == Some(!is_absent);
        if !right || !existence {
            wrong.push(format!("{entry}: shell has {shell}, root {root}, denied by SELinux: {is_denied}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), paths.len());
    assert!(denials.len() <= MOST_DENIALS, "doctor --json: {} denials", denials.len());
}

#[test]
fn doctor_and_list_say_in_few_words_what_shell_may_record() {
    let Some(phone) = LockedPhone::attached() else { return };
    let Some(_android) = FakeAndroid::install(&phone.root, &["getprop", "setprop"], &PROPERTIES) else {
        return;
    };
    let binary = phone.program("tracebridge");
    let (output, denials) = phone.denials(|| phone.shell.shell(&format!("{binary} doctor")));
    let told = output.said();
    assert_status(&output, 0, "doctor");
    for line in [
        "who      shell (uid 2000), SELinux enforcing, domain u:r:shell:s0",
        "android  15 (SDK 35), user",
        "  ok  tracing_on                       rw 0666 root:readtracefs u:object_r:debugfs_tracing:s0",
        "  ok  sched ",
        "  ok  irq ",
        "  ok  sync ",
        "  ok  pagecache ",
        "  no  workq ",
        "Recording works here.",
    ] {
        assert!(told.contains(line), "{line}\nis not in\n{told}");
    }
    assert!(!told.contains("( )") && !told.contains("tracers  \n"), "{told}");
    let workq = told.lines().find(|line| line.contains("  no  workq ")).unwrap();
    assert!(workq.contains("SELinux"), "{workq}");
    assert!(denials.len() <= MOST_DENIALS, "doctor: {} denials", denials.len());

    let (output, denials) = phone.denials(|| phone.shell.shell(&format!("{binary} list --json")));
    assert_status(&output, 0, "list");
    let categories: Value = output.json();
    // What `list` says works, the kernel permits: each event by its own file or by its group's.
    let mut files = Vec::new();
    for category in categories.as_array().unwrap() {
        for event in category["events"].as_array().unwrap() {
            files.push(absolute(&format!("events/{}/enable", event.as_str().unwrap())));
        }
    }
    let (access, _) = truth(&phone, &files);
    let unwritable: Vec<_> = access.iter().filter(|(_, [shell, _])| !shell.starts_with("rw")).collect();
    assert!(unwritable.is_empty(), "{unwritable:#?}");
    assert!(denials.len() <= MOST_DENIALS, "list: {} denials", denials.len());
}

#[test]
fn an_app_is_told_that_it_may_write_markers() {
    let Some(phone) = LockedPhone::attached() else { return };
    let Some(_android) = FakeAndroid::install(&phone.root, &["getprop", "setprop"], &PROPERTIES) else {
        return;
    };
    let binary = phone.program("tracebridge");
    phone.as_root("echo 1 >/sys/kernel/tracing/tracing_on && echo >/sys/kernel/tracing/trace");
    for domain in ["untrusted_app", "runas_app"] {
        let output = phone.as_app(domain, &format!("{binary} mark instant of-{domain}"));
        assert_status(&output, 0, "mark");
        let output = phone
            .as_app(domain, &format!("{binary} wrap --no-record --name in-{domain} -- sh -c \"exit 4\""));
        assert_status(&output, 4, "wrap --no-record");
        let (output, denials) = phone.denials(|| phone.as_app(domain, &format!("{binary} doctor")));
        let told = output.said();
        assert!(!told.contains("needs root") && told.contains("marker"), "{domain}: {told}");
        assert!(denials.len() <= MOST_DENIALS, "doctor as {domain}: {} denials", denials.len());
        let output = phone.as_app(domain, &format!("{binary} record -t 1 -o /dev/null sched"));
        assert_status(&output, 1, "record as an app");
    }
    let trace = phone.as_root("cat /sys/kernel/tracing/trace");
    for marker in ["|of-untrusted_app", "|in-untrusted_app", "|of-runas_app", "|in-runas_app"] {
        assert!(trace.contains(marker), "no {marker}: {trace}");
    }
}
