//! The rules of the phone that the emulated device imitates: what `shell` and apps may do with each file of
//! tracefs on a user build. The table is of AOSP's policy as a kernel applied it, and not of
//! android/emulator/policy.

use std::collections::{BTreeMap, BTreeSet};

use crate::adb::{DIR, scratch};
use crate::locked::{LockedPhone, assert_status};

/// `r` opens for reading, `w` opens for writing, `s` stat works, `f` `access(F_OK)` finds it.
const READ_WRITE: &str = "rwsf";
const READ: &str = "r-sf";
const WRITE: &str = "-wsf";
const HIDDEN: &str = "---f";

/// Groups whose `enable` may be written.
const GROUPS: [&str; 4] = ["cgroup", "dma_fence", "ipi", "irq"];

/// Events of which everything may be read and `enable` may be written, where the kernel has them.
const EVENTS: &str = "sched/sched_switch sched/sched_wakeup sched/sched_wakeup_new sched/sched_waking \
    sched/sched_blocked_reason sched/sched_cpu_hotplug sched/sched_pi_setprio sched/sched_process_exit \
    sched/sched_process_free power/cpu_frequency power/cpu_frequency_limits power/cpu_idle power/clock_enable \
    power/clock_disable power/clock_set_rate power/gpu_frequency power/gpu_work_period power/suspend_resume \
    clk/clk_enable clk/clk_disable clk/clk_set_rate cpuhp/cpuhp_enter cpuhp/cpuhp_exit cpuhp/cpuhp_pause \
    vmscan/mm_vmscan_direct_reclaim_begin vmscan/mm_vmscan_direct_reclaim_end \
    vmscan/mm_vmscan_kswapd_wake vmscan/mm_vmscan_kswapd_sleep filemap/mm_filemap_add_to_page_cache \
    filemap/mm_filemap_delete_from_page_cache kmem/rss_stat oom/oom_score_adj_update oom/mark_victim \
    task/task_rename task/task_newtask thermal/thermal_temperature thermal/cdev_update gpu_mem/gpu_mem_total \
    ext4/ext4_da_write_begin ext4/ext4_da_write_end ext4/ext4_sync_file_enter ext4/ext4_sync_file_exit \
    ext4/ext4_es_lookup_extent_enter ext4/ext4_es_lookup_extent_exit ext4/ext4_load_inode f2fs/f2fs_get_data_block \
    f2fs/f2fs_iget f2fs/f2fs_sync_file_enter f2fs/f2fs_sync_file_exit f2fs/f2fs_write_begin f2fs/f2fs_write_end \
    mm_event/mm_event_record block/block_rq_issue block/block_rq_complete \
    irq/irq_handler_entry irq/irq_handler_exit irq/softirq_entry irq/softirq_exit irq/softirq_raise \
    irq/tasklet_entry irq/tasklet_exit ipi/ipi_raise ipi/ipi_entry ipi/ipi_exit";

/// The access of `shell` to a file or a directory (whose path ends in a slash) of tracefs.
fn rule(path: &str, release: u32) -> &'static str {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["instances", ..] => HIDDEN,
        [.., ""] => READ,
        ["buffer_percent"] if release < 15 => HIDDEN,
        [
            "tracing_on"
            | "trace"
            | "trace_clock"
            | "buffer_size_kb"
            | "buffer_percent"
            | "saved_cmdlines_size"
            | "synthetic_events",
        ] => READ_WRITE,
        ["options", "overwrite" | "record-tgid" | "print-tgid"] | ["per_cpu", _, "trace"] => READ_WRITE,
        ["trace_pipe" | "trace_options"] | ["events", "header_page"] | ["per_cpu", ..] => READ,
        ["trace_marker" | "trace_marker_raw"] => WRITE,
        ["events", group, "enable"] if GROUPS.contains(&group) => READ_WRITE,
        ["events", "ftrace", "print", _] => READ,
        ["events", group, event, file] => {
            let opened = EVENTS.split_whitespace().any(|e| e.split_once('/') == Some((group, event)));
            match file {
                "enable" if opened => READ_WRITE,
                _ if opened || GROUPS.contains(&group) => READ,
                _ => HIDDEN,
            }
        }
        // The group's own filter has the label of the events below it.
        ["events", group, "filter"] if GROUPS.contains(&group) => READ,
        _ => HIDDEN,
    }
}

/// The entries of tracefs that the test probes: of the events that nobody may use, every `enable` and one
/// event's other files in each group; of everything else, every entry.
fn entries(phone: &LockedPhone) -> Vec<String> {
    let found = phone.as_root("cd /sys/kernel/tracing/ && find * -type d | sed 's,$,/,' && find * -type f");
    let mut sampled = BTreeSet::new();
    let mut entries: Vec<String> = found.lines().map(str::to_owned).collect();
    entries.retain(|entry| match entry.split('/').collect::<Vec<_>>()[..] {
        ["events", group, event, file] if file != "enable" && rule(entry, 15) == HIDDEN => {
            let first = sampled.iter().all(|(g, _)| g != group);
            group == "ftrace"
                || first && sampled.insert((group.to_owned(), event.to_owned()))
                || sampled.contains(&(group.to_owned(), event.to_owned()))
        }
        ["events", _, _, ""] => false,
        _ => true,
    });
    entries
}

/// The findings of `access_probe` as this user: entry and access.
fn probed(output: &str) -> BTreeMap<String, String> {
    output
        .lines()
        .filter_map(|l| l.split_once(' '))
        .map(|(may, file)| (file.to_owned(), may.to_owned()))
        .collect()
}

#[test]
fn the_emulated_phone_permits_shell_exactly_what_a_phone_does() {
    let Some(phone) = LockedPhone::attached_in_full_run() else { return };
    let probe = phone.program("access_probe");
    let release = phone.as_root("sed -n 's/.*device.release=\\([0-9]*\\).*/\\1/p' /proc/cmdline");
    let release: u32 = release.trim().parse().expect("a release");
    let entries = entries(&phone);
    let dir = scratch();
    let list = dir.path().join("entries");
    std::fs::write(&list, entries.join("\n")).unwrap();
    phone.shell.push(&list, &format!("{DIR}/entries"));
    let found = probed(&phone.shell.run(&format!("{probe} <{DIR}/entries; rm {DIR}/entries")));
    assert_eq!(found.len(), entries.len());
    let wrong: Vec<String> = found
        .iter()
        .filter(|(entry, may)| *may != rule(entry, release))
        .map(|(entry, may)| format!("{entry}: {may}, and a phone has {}", rule(entry, release)))
        .collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), found.len());

    // The counts of the real policy on the same kernel.
    if phone.as_root("uname -r").starts_with("6.12.") {
        let count = |may: &str, is_counted: &dyn Fn(&[&str]) -> bool| {
            let counted = |(entry, m): &(&String, &String)| {
                *m == may && is_counted(&entry.split('/').collect::<Vec<_>>())
            };
            found.iter().filter(counted).count()
        };
        let event = |parts: &[&str]| matches!(parts, ["events", _, _, "enable"]);
        assert_eq!(count(READ_WRITE, &event), 51, "single events that may be switched on");
        assert_eq!(count(READ, &event), 31, "events that only their group switches on");
        assert_eq!(count(HIDDEN, &event), 1362, "events that nobody but root may switch on");
        assert_eq!(count(READ, &|parts| parts.last() == Some(&"format")), 83);
        assert_eq!(count(HIDDEN, &|parts| matches!(parts, ["events", "ftrace", _, "format"])), 17);
    }
}

#[test]
fn an_app_may_write_markers_and_nothing_else() {
    let Some(phone) = LockedPhone::attached() else { return };
    let probe = phone.program("access_probe");
    for domain in ["untrusted_app", "runas_app"] {
        let command = format!("printf \"%s\\n\" ./ trace_marker tracing_on trace_pipe events/ | {probe}");
        let output = phone.as_app(domain, &command);
        assert_status(&output, 0, domain);
        let found = probed(&output.stdout);
        for (entry, may) in found {
            assert_eq!(may, if entry == "trace_marker" { "-w-f" } else { HIDDEN }, "{domain}: {entry}");
        }
    }
}

#[test]
fn the_user_build_has_no_su_and_enforces_its_policy() {
    let Some(phone) = LockedPhone::attached() else { return };
    let told = phone
        .shell
        .run("id -u; cat /proc/self/attr/current | tr -d '\\0'; echo; cat /sys/fs/selinux/enforce");
    assert_eq!(told, "2000\nu:r:shell:s0\n1");
    assert_eq!(phone.shell.shell("su").status.code(), Some(127));
    assert_eq!(
        phone.shell.run("id -G").trim(),
        "2000 1004 1007 1011 1015 1028 1078 1079 3001 3002 3003 3006 3009 3011 3012"
    );
}
