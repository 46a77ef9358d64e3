//! Which of the causes that the host's `why` names can be told from a recording of this device.

use serde::Serialize;

use super::categories::{CategoryReport, kernel_option};

/// A part of what `why` tells, and whether recordings of this device have the events for it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CauseReport {
    /// The part, for people.
    pub(crate) told: &'static str,
    /// The category that records the events.
    pub(crate) category: &'static str,
    pub(crate) works: bool,
    /// Why it cannot be told; `None` if it can.
    pub(crate) reason: Option<String>,
}

/// A row for each: what is told, the category that records it, and the events of it that are needed; none
/// where the category's tag is. `docs/why.md` has the rules.
const CAUSES: [(&str, &str, &[&str]); 9] = [
    ("who ran, who waited, and who ended the wait", "sched", &["sched/sched_switch", "sched/sched_waking"]),
    ("the makers and processes of new threads", "sched", &["task/task_newtask"]),
    ("for what a thread waited in the kernel", "sched", &["sched/sched_blocked_reason"]),
    ("interrupts, and timers apart from devices", "irq", &["irq"]),
    ("slow clocks", "freq", &["power/cpu_frequency"]),
    ("binder calls apart from other messages", "binder_driver", &["binder/binder_transaction"]),
    (
        "the search for free memory",
        "memreclaim",
        &["vmscan/mm_vmscan_direct_reclaim_begin", "vmscan/mm_vmscan_direct_reclaim_end"],
    ),
    ("which files were read", "pagecache", &["filemap"]),
    ("locks, garbage collection and classes of ART", "dalvik", &[]),
];

/// The parts, and whether they can be told of a recording of these categories.
pub(super) fn examine(categories: &[CategoryReport]) -> Vec<CauseReport> {
    let reported = CAUSES.iter().filter_map(|(told, name, events)| {
        let category = categories.iter().find(|category| category.name == *name)?;
        let reason = match events {
            [] => category.reason.clone().filter(|_| !category.works),
            events => events.iter().find_map(|event| missing(category, event)),
        };
        Some(CauseReport { told, category: name, works: reason.is_none(), reason })
    });
    reported.collect()
}

/// Why a recording of the category lacks an event, or a group of events.
fn missing(category: &CategoryReport, event: &str) -> Option<String> {
    let has = |list: &[String]| {
        let is_in = |name: &str, group: &str| {
            name.strip_prefix(group).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        list.iter().any(|listed| is_in(event, listed) || is_in(listed, event))
    };
    if has(&category.events) {
        None
    } else if has(&category.locked) {
        Some(format!("this user may not switch on {event}"))
    } else {
        let needs = kernel_option(event).map_or(String::new(), |option| format!(" (needs {option})"));
        Some(format!("not in this kernel: {event}{needs}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_works_or_has_the_reason_of_its_events() {
        let category = |name: &str, events: &[&str], locked: &[&str]| CategoryReport {
            name: name.to_owned(),
            works: !events.is_empty(),
            events: events.iter().map(|event| (*event).to_owned()).collect(),
            locked: locked.iter().map(|event| (*event).to_owned()).collect(),
            reason: events.is_empty().then(|| "no tags here".to_owned()),
            ..CategoryReport::default()
        };
        let categories = [
            category("sched", &["sched/sched_switch", "sched/sched_waking"], &["sched/sched_blocked_reason"]),
            category("irq", &["irq", "ipi"], &[]),
            category("binder_driver", &[], &[]),
            category("pagecache", &["filemap/mm_filemap_add_to_page_cache"], &[]),
            category("dalvik", &[], &[]),
        ];
        let found = examine(&categories);
        let reasons: Vec<(&str, Option<&str>)> =
            found.iter().map(|cause| (cause.category, cause.reason.as_deref())).collect();
        assert_eq!(
            reasons,
            [
                ("sched", None),
                ("sched", Some("not in this kernel: task/task_newtask")),
                ("sched", Some("this user may not switch on sched/sched_blocked_reason")),
                ("irq", None),
                (
                    "binder_driver",
                    Some("not in this kernel: binder/binder_transaction (needs CONFIG_ANDROID_BINDER_IPC)")
                ),
                ("pagecache", None),
                ("dalvik", Some("no tags here")),
            ]
        );
        assert!(found.iter().all(|cause| cause.works == cause.reason.is_none()));
    }
}
