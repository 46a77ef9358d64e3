//! What of each category works here, and why not the rest.

use std::fs;
use std::path::Path;

use serde::Serialize;

use super::access;
use super::paths::reason;
use super::system::Identity;
use crate::android::{Properties, atrace_properties, tags};
use crate::categories::{
    AvailableEvents, Catalog, Category, EventFiles, EventSet, PDX, Support, TracefsEventFiles, VENDOR_FILE,
    enable_path,
};

/// One category and what of it works.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CategoryReport {
    /// Its name on the command line.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Whether it works here.
    pub works: bool,
    /// The userspace tags that it switches on, where there are any to be switched.
    pub tags: Vec<&'static str>,
    /// The kernel events that it switches on (a group stands for all of its events).
    pub events: Vec<String>,
    /// Events that exist, but that this user may not switch on.
    pub locked: Vec<String>,
    /// Events that this kernel does not have.
    pub absent: Vec<String>,
    /// Why it does not work, or what of it does not, and what would change that; absent where all is well.
    pub reason: Option<String>,
}

/// Every category, ours and the vendor's, below `root`.
pub fn examine(root: &Path, who: &Identity, properties: Option<&Properties>) -> Vec<CategoryReport> {
    let vendor_file = fs::read_to_string(VENDOR_FILE).ok();
    let core = properties.and_then(|p| atrace_properties::core_services(p).ok()).unwrap_or_default();
    let files = TracefsEventFiles::new(root);
    let look = Look { root, files: &files, who, android: properties.is_some() };
    let mut all = Vec::new();
    let catalog = Catalog::new(vendor_file.as_deref(), &core, EventSet::Record).or_else(|malformed| {
        all.push(CategoryReport {
            name: "(vendor)".to_owned(),
            description: "the vendor's categories".to_owned(),
            reason: Some(format!("{VENDOR_FILE}: {malformed}")),
            ..CategoryReport::default()
        });
        // Without the vendor's then.
        Catalog::new(None, &core, EventSet::Record)
    });
    let Ok(catalog) = catalog else { return all };
    all.extend(catalog.builtin(&files).into_iter().map(|(category, support)| look.at(category, support)));
    for vendor in &catalog.vendor {
        match all.iter_mut().find(|c| c.name == vendor.name) {
            Some(ours) => look.vendors_events(ours, &vendor.events),
            None => {
                let (name, description) = (vendor.name.clone(), "(VENDOR)".to_owned());
                let mut theirs = CategoryReport { name, description, ..CategoryReport::default() };
                look.vendors_events(&mut theirs, &vendor.events);
                theirs.works = !theirs.events.is_empty();
                theirs.reason = look.reason(&theirs.locked, &theirs.absent);
                all.push(theirs);
            }
        }
    }
    all
}

/// What categories are held against.
struct Look<'a> {
    root: &'a Path,
    files: &'a TracefsEventFiles,
    who: &'a Identity,
    android: bool,
}

impl Look<'_> {
    fn at(&self, category: &Category, support: Support) -> CategoryReport {
        let AvailableEvents { on, locked, absent } = category.available_events(self.files, EventSet::Record);
        let owned = |events: Vec<&str>| events.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let (locked, absent) = (owned(locked), owned(absent));
        let (works, reason) = match support {
            Support::Yes if on.is_empty() && !self.android => {
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
        let tagged = tags::TAGS.iter().filter(|t| self.android && category.tags & t.mask() != 0);
        CategoryReport {
            name: category.name.to_owned(),
            description: category.description.to_owned(),
            works,
            tags: tagged.map(|t| t.name).collect(),
            events: owned(on),
            locked,
            absent,
            reason,
        }
    }

    /// Adds what the vendor's file has for a category.
    fn vendors_events(&self, category: &mut CategoryReport, events: &[String]) {
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

    /// Why these events cannot be had.
    fn reason(&self, locked: &[String], absent: &[String]) -> Option<String> {
        let locked = locked.first().map(|first| {
            let access = access::look(&self.root.join(enable_path(first)), self.who, false, true, false);
            let why = access.obstacle.map(|o| reason(o, "", &access, self.who));
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

/// The option that gives a kernel this event's group, where one does; other groups are part of every kernel of some
/// age, or of one vendor's only.
fn kernel_option(event: &str) -> Option<&'static str> {
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
