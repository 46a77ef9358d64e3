//! Finds out which categories work here, which of their events are missing, and why; and which of the causes
//! that the host's `why` names can be told by them.

use std::path::Path;

use serde::Serialize;

use super::paths::reason;
use crate::android::{Properties, UserIdentity, tags};
use crate::categories::{
    AvailableEvents, Category, EventFiles, EventSet, PDX, Support, VENDOR_FILE, enable_path,
};
use crate::record::events::{TracefsEventFiles, load_catalog};
use crate::record::file_access::{RequiredAccess, inspect};

/// A category, and which of its tags and events this device has.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CategoryReport {
    /// The name on the command line.
    pub(crate) name: String,
    pub(crate) description: String,
    /// Whether the category can be recorded here.
    pub(crate) works: bool,
    /// The userspace tags that the category switches on; empty on a system without tags.
    pub(crate) tags: Vec<&'static str>,
    /// The kernel events that the category enables. The name of a group stands for all of its events.
    pub(crate) events: Vec<String>,
    /// Events that exist but that this user may not enable.
    pub(crate) locked: Vec<String>,
    /// Events that this kernel does not have.
    pub(crate) absent: Vec<String>,
    /// Why the category, or some of its events, cannot be recorded and what would change that; `None` if
    /// everything can.
    pub(crate) reason: Option<String>,
}

/// Examines every category, those of the vendor included. `root` is the directory of tracefs.
pub(super) fn examine(
    root: &Path,
    user: &UserIdentity,
    properties: Option<&Properties>,
) -> Vec<CategoryReport> {
    let files = TracefsEventFiles::new(root);
    let inspector = CategoryInspector { root, files: &files, user, is_android: properties.is_some() };
    let mut all = Vec::new();
    let catalog =
        load_catalog(Some(VENDOR_FILE.as_ref()), properties, EventSet::Record).or_else(|malformed| {
            all.push(CategoryReport {
                name: "(vendor)".to_owned(),
                description: "the vendor's categories".to_owned(),
                reason: Some(format!("{VENDOR_FILE}: {malformed}")),
                ..CategoryReport::default()
            });
            load_catalog(None, properties, EventSet::Record)
        });
    let Ok(catalog) = catalog else { return all };
    all.extend(
        catalog.builtin(&files).into_iter().map(|(category, support)| inspector.inspect(category, support)),
    );
    for vendor in &catalog.vendor {
        match all.iter_mut().find(|c| c.name == vendor.name) {
            Some(ours) => inspector.add_vendor_events(ours, &vendor.events),
            None => {
                let mut theirs = CategoryReport {
                    name: vendor.name.clone(),
                    description: "(VENDOR)".to_owned(),
                    ..CategoryReport::default()
                };
                inspector.add_vendor_events(&mut theirs, &vendor.events);
                theirs.works = !theirs.events.is_empty();
                theirs.reason = inspector.reason(&theirs.locked, &theirs.absent);
                all.push(theirs);
            }
        }
    }
    all
}

/// The device that categories are examined on.
struct CategoryInspector<'a> {
    /// The directory of tracefs.
    root: &'a Path,
    files: &'a TracefsEventFiles,
    user: &'a UserIdentity,
    is_android: bool,
}

impl CategoryInspector<'_> {
    fn inspect(&self, category: &Category, support: Support) -> CategoryReport {
        let AvailableEvents { on, locked, absent } = category.available_events(self.files, EventSet::Record);
        let owned = |events: Vec<&str>| events.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let locked = owned(locked);
        let absent = owned(absent);
        let (works, reason) = match support {
            Support::Yes if on.is_empty() && !self.is_android => {
                (false, Some("markers of Android's own processes: this is no Android".to_owned()))
            }
            Support::Yes if category.name == PDX => {
                (true, Some("nothing to switch on: those services follow the tags by themselves".to_owned()))
            }
            Support::Yes => (true, self.reason(&locked, &absent)),
            Support::NeedsRoot(required) => (false, self.reason(&required, &[])),
            Support::Absent(required) => (false, self.reason(&[], &required)),
            Support::NoCoreServices => {
                (false, Some("the property ro.atrace.core.services names no process".to_owned()))
            }
        };
        let tagged = tags::TAGS.iter().filter(|t| self.is_android && category.tags & t.mask() != 0);
        CategoryReport {
            name: category.name.to_owned(),
            description: category.description.to_owned(),
            works,
            tags: tagged.map(|t| t.name).collect(),
            events: on,
            locked,
            absent,
            reason,
        }
    }

    /// Adds the events that the vendor's file lists for a category.
    fn add_vendor_events(&self, category: &mut CategoryReport, events: &[String]) {
        for event in events {
            let path = enable_path(event);
            let list = if self.files.writable(&path) {
                &mut category.events
            } else if self.files.exists(&path) {
                &mut category.locked
            } else {
                &mut category.absent
            };
            list.push(event.clone());
        }
    }

    /// Why these events cannot be recorded.
    fn reason(&self, locked: &[String], absent: &[String]) -> Option<String> {
        let locked = locked.first().map(|first| {
            let access = inspect(&self.root.join(enable_path(first)), self.user, RequiredAccess::WRITE);
            let why = reason("", &access, self.user);
            format!("{}: {}", locked.join(", "), why.unwrap_or_else(|| "needs root".to_owned()))
        });
        let absent = (!absent.is_empty()).then(|| {
            let mut options: Vec<&str> = absent.iter().filter_map(|e| kernel_option(e)).collect();
            options.dedup();
            let needs =
                if options.is_empty() { String::new() } else { format!(" (needs {})", options.join(", ")) };
            format!("not in this kernel: {}{needs}", absent.join(", "))
        });
        match (locked, absent) {
            (Some(locked), Some(absent)) => Some(format!("{locked}; {absent}")),
            (locked, absent) => locked.or(absent),
        }
    }
}

/// The kernel option that provides the group of this event. `None` for groups that depend on the kernel's
/// version or that only one vendor has.
pub(super) fn kernel_option(event: &str) -> Option<&'static str> {
    Some(match event.split('/').next()? {
        "preemptirq" => "CONFIG_PREEMPTIRQ_TRACEPOINTS",
        "i2c" => "CONFIG_I2C",
        "mmc" => "CONFIG_MMC",
        "regulator" => "CONFIG_REGULATOR",
        "binder" => "CONFIG_ANDROID_BINDER_IPC",
        "thermal" => "CONFIG_THERMAL",
        "f2fs" => "CONFIG_F2FS_FS",
        "ext4" => "CONFIG_EXT4_FS",
        "block" => "CONFIG_BLOCK",
        "ufs" => "CONFIG_SCSI_UFSHCD",
        "dma_fence" => "CONFIG_DMA_SHARED_BUFFER",
        "gpu_mem" => "CONFIG_TRACE_GPU_MEM",
        "cgroup" => "CONFIG_CGROUPS",
        "clk" => "CONFIG_COMMON_CLK",
        "cpufreq_interactive" => "the interactive governor of old Android kernels",
        "ion" | "lowmemorykiller" => "an old Android kernel",
        _ => return None,
    })
}

// Which of the causes that the host's `why` names can be told from a recording of this device.

/// A part of what `why` tells, and whether recordings of this device have the events for it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
pub(super) fn told_causes(categories: &[CategoryReport]) -> Vec<CauseReport> {
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
        let found = told_causes(&categories);
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
