//! Finds out which categories work here, which of their events are missing, and why.

use std::path::Path;

use serde::Serialize;

use super::paths::reason;
use crate::android::tags;
use crate::android::{Properties, UserIdentity};
use crate::categories::{
    AvailableEvents, Category, EventFiles, EventSet, PDX, Support, VENDOR_FILE, enable_path,
};
use crate::record::events::{TracefsEventFiles, load_catalog};
use crate::record::file_access::{RequiredAccess, inspect};

/// A category, and which of its tags and events this device has.
#[derive(Debug, Clone, Default, Serialize)]
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
