//! A locked-down device in miniature: the user `shell`, who may use only the files that a user build of
//! Android permits.

use serde_json::Value;

use crate::adb::{self, DIR, Device, text};
use crate::capture;
use crate::fake_android::FakeAndroid;
use crate::journey::json;
use crate::settings::{assert_same, settings, usual};

/// The files that a user build labels `debugfs_tracing` (AOSP sepolicy, genfs_contexts), as patterns below
/// tracefs.
const OPEN: &str = "tracing_on trace trace_pipe trace_clock buffer_percent buffer_size_kb events/header_page \
    options/overwrite options/print-tgid options/record-tgid saved_cmdlines_size synthetic_events \
    per_cpu/cpu*/* events/sched/sched_switch/* events/sched/sched_wakeup/* events/sched/sched_waking/* \
    events/sched/sched_process_exit/* events/sched/sched_pi_setprio/* events/cgroup/enable events/cgroup/*/* \
    events/power/cpu_frequency/* events/power/cpu_idle/* events/ftrace/print/* events/oom/oom_score_adj_update/* \
    events/task/task_rename/* events/task/task_newtask/* events/irq/enable events/irq/*/*";

/// Gives tracefs the modes that it has on a phone; the old modes are put back on drop.
struct PhoneModes<'a>(&'a Device);

impl PhoneModes<'_> {
    fn set(device: &Device) -> PhoneModes<'_> {
        let phone = PhoneModes(device);
        // /tmp/modes lists the files and the directories on the way to each, with their modes now.
        device.run(&format!(
            "cd /sys/kernel/tracing && for f in {OPEN} trace_marker; do while [ -e $f ]; do echo $f; \
             case $f in */*) f=${{f%/*}} ;; .) break ;; *) f=. ;; esac; done; done | sort -u >/tmp/open && \
             xargs stat -c '%a %n' </tmp/open >/tmp/modes && \
             while read -r mode name; do if [ -d $name ]; then echo $name; fi; done </tmp/modes | xargs chmod o+rx && \
             while read -r mode name; do if [ -f $name ]; then echo $name; fi; done </tmp/modes | xargs chmod o+rw && \
             chmod 222 trace_marker"
        ));
        phone
    }
}

impl Drop for PhoneModes<'_> {
    fn drop(&mut self) {
        // One chmod puts back all files that had the same mode.
        self.0.shell(
            "cd /sys/kernel/tracing && for mode in $(cut -d' ' -f1 /tmp/modes | sort -u); do \
             sed -n \"s/^$mode //p\" /tmp/modes | sort -r | xargs chmod $mode; done",
        );
    }
}

#[test]
fn the_shell_of_a_user_build_records_sched_and_is_told_what_is_missing() {
    let Some(device) = Device::attached() else { return };
    let properties =
        [("ro.build.version.sdk", "35"), ("ro.build.version.release", "15"), ("ro.build.type", "user")];
    let Some(_android) = FakeAndroid::install(&device, &["getprop", "setprop"], &properties) else { return };
    let binary = device.program(device.abi(), "tracebridge");
    let before = usual(&device);
    let dir = format!("{DIR}/shell");
    device.run(&format!("mkdir -p {dir} && chmod 777 {dir} && chmod 755 /data /data/local {DIR}"));
    let as_shell = |command: &str| device.shell(&format!("su shell -c '{command}'"));
    let record = format!("{binary} record -t 2 --json --state-dir {dir} -o {dir}/x.dat sched freq idle");
    assert_eq!(as_shell(&record).status.code(), Some(1), "nothing is permitted yet");

    let phone = PhoneModes::set(&device);
    let recorded = as_shell(&record);
    let doctor = as_shell(&format!("{binary} doctor --state-dir {dir}"));
    let as_json = as_shell(&format!("{binary} doctor --json --state-dir {dir}"));
    let refused = as_shell(&format!("{binary} record -t 1 --state-dir {dir} -o {dir}/y.dat workq"));
    let traced = as_shell(&format!("TRACEBRIDGE_STATE_DIR={dir} {binary} atrace -t 1 sched"));
    drop(phone);

    assert_eq!(recorded.status.code(), Some(0), "{}", text(&recorded));
    let summary: Value = serde_json::from_slice(&recorded.stdout).expect("JSON");
    let host = adb::scratch();
    let dat = host.path().join("x.dat");
    device.pull(&format!("{dir}/x.dat"), &dat);
    let events = capture::read(&dat);
    assert!(events.iter().filter(|e| e.name == "sched_switch").count() > 20, "{summary}");
    assert_eq!(json(&["info", "--json"], &[&dat])["events"].as_u64(), Some(events.len() as u64));
    // The summary's notes name each tracefs file that was wanted and refused.
    let notes = summary["notes"].to_string();
    assert!(notes.contains("options/record-cmd") && notes.contains("denied"), "{notes}");

    assert_eq!(doctor.status.code(), Some(0), "{}", text(&doctor));
    let told = text(&doctor);
    for line in [
        "who      shell (uid 2000)",
        "android  15 (SDK 35), user",
        "  ok  tracing_on                       rw 0646 root:root",
        "  no  current_tracer                   -- 0640 root:root",
        "      owner and mode (root:root 0640): needs root: `adb root` on a userdebug build or an emulator, `su` on a rooted phone",
        "  ok  irq            IRQ Events: irq",
        "  no  workq          Kernel Workqueues (workqueue: owner and mode (root:root 0640): needs root",
        "Recording works here.",
    ] {
        assert!(told.contains(line), "{line}\nis not in\n{told}");
    }
    let report: Value = serde_json::from_slice(&as_json.stdout).expect("JSON");
    let path = |name: &str| report["paths"].as_array().unwrap().iter().find(|p| p["path"] == name).cloned();
    assert_eq!(path("current_tracer").unwrap()["obstacle"], "mode");
    assert_eq!(path("per_cpu/cpu1/trace_pipe_raw").unwrap()["obstacle"], Value::Null);

    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("workq"), "{}", text(&refused));
    assert!(traced.status.success() && text(&traced).contains("sched_switch: "), "{}", text(&traced));
    device.run(&format!("rm -r {dir}"));
    assert_same(before, &settings(&device), "after shell's recordings");
}
