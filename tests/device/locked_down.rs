//! A locked-down device in miniature: the user `shell`, who may use just the files that a user build lets it.

use serde_json::Value;

use crate::adb::{self, DIR, Device, text};
use crate::capture;
use crate::journey::json;
use crate::settings::{assert_same, settings, usual};
use crate::stand_in::StandIns;

/// What a user build labels `debugfs_tracing` (AOSP sepolicy, genfs_contexts): the files, and the directories with all
/// that is in them.
const OPEN: &str = "tracing_on trace trace_pipe trace_clock buffer_percent buffer_size_kb events/header_page \
    options/overwrite options/print-tgid options/record-tgid saved_cmdlines_size synthetic_events \
    per_cpu/cpu*/* events/sched/sched_switch/* events/sched/sched_wakeup/* events/sched/sched_waking/* \
    events/sched/sched_process_exit/* events/sched/sched_pi_setprio/* events/cgroup/enable events/cgroup/*/* \
    events/power/cpu_frequency/* events/power/cpu_idle/* events/ftrace/print/* events/oom/oom_score_adj_update/* \
    events/task/task_rename/* events/task/task_newtask/* events/irq/enable events/irq/*/*";

/// tracefs with a phone's modes; put back on drop.
struct Phone<'a>(&'a Device);

impl Phone<'_> {
    fn of(device: &Device) -> Phone<'_> {
        let phone = Phone(device);
        // The files, and the directories on the way to each.
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

impl Drop for Phone<'_> {
    fn drop(&mut self) {
        // As many at once as have one mode.
        self.0.shell(
            "cd /sys/kernel/tracing && for mode in $(cut -d' ' -f1 /tmp/modes | sort -u); do \
             sed -n \"s/^$mode //p\" /tmp/modes | sort -r | xargs chmod $mode; done",
        );
    }
}

#[test]
fn the_shell_of_a_user_build_records_sched_and_is_told_what_is_missing() {
    let Some(device) = Device::attached() else { return };
    // The property's real programs may be called by anybody.
    let Some(android) = StandIns::install(&device, &["getprop", "setprop"]) else { return };
    android.set("ro.build.version.sdk", "35");
    android.set("ro.build.version.release", "15");
    android.set("ro.build.type", "user");
    let binary = device.program(device.abi(), "tracebridge");
    usual(&device);
    let before = settings(&device);
    let dir = format!("{DIR}/shell");
    device.run(&format!("mkdir -p {dir} && chmod 777 {dir} && chmod 755 /data /data/local {DIR}"));
    let as_shell = |command: &str| device.shell(&format!("su shell -c '{command}'"));
    let record = format!("{binary} record -t 2 --json --state-dir {dir} -o {dir}/x.dat sched freq idle");
    assert_eq!(as_shell(&record).status.code(), Some(1), "nothing is permitted yet");

    let phone = Phone::of(&device);
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
    // What is missing is said where it was wanted, with the knob.
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
    assert_same(&before, &settings(&device), "after shell's recordings");
}
