//! Categories: names for sets of userspace tags and kernel events, and what each comes to on a given device.

mod catalog;
#[cfg(all(feature = "device", unix))]
mod files;
mod table;
mod vendor;

pub use catalog::{Catalog, Flavour, Selection, SelectionError};
#[cfg(all(feature = "device", unix))]
pub use files::DirFiles;
pub use table::{CATEGORIES, CORE_SERVICES, PDX};
pub use vendor::{MalformedVendorFile, VENDOR_FILE, VendorCategory};

/// What a category's events are looked up in: a tracefs, or a directory of captured files.
pub trait EventFiles {
    /// Whether `path` (relative to tracefs) exists: `access(2)` with `F_OK`.
    fn exists(&self, path: &str) -> bool;
    /// Whether `path` may be written to: `access(2)` with `W_OK`.
    fn writable(&self, path: &str) -> bool;
}

/// The file that switches an event (`sched/sched_switch`) or a whole group (`cgroup`) on, relative to tracefs.
pub fn enable_path(event: &str) -> String {
    format!("events/{event}/enable")
}

/// An event, or a whole group of events, of a [`Category`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRef {
    /// `group/event`, or `group` for all of its events.
    pub path: &'static str,
    /// How much the category needs it.
    pub need: Need,
}

/// How much a category needs an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Without it the category does not work.
    Required,
    /// Switched on where it exists.
    Optional,
    /// Perfetto adds it; atrace does not know it.
    RecorderInfo,
    /// The same, but only where this other event does not exist.
    ExtraWithout(&'static str),
    /// Required by atrace. A recording leaves it out where `otherwise` exists, which tells the same and more:
    /// it is frequent.
    RequiredByAtrace {
        /// The event that makes it redundant.
        otherwise: &'static str,
    },
}

/// One category.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Category {
    /// The name on the command line.
    pub name: &'static str,
    /// What it is, as `atrace --list_categories` prints it.
    pub description: &'static str,
    /// Userspace tags, as [`super::tags`] has them.
    pub tags: u64,
    /// Kernel events.
    pub events: &'static [EventRef],
}

/// Whether a category works on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Support {
    /// It does.
    Yes,
    /// Every event exists, but these may not be written to by who asks.
    NeedsRoot(Vec<String>),
    /// These events do not exist in this kernel (any of them would do, for a category without required ones).
    Absent(Vec<String>),
    /// `ro.atrace.core.services` is empty.
    NoCoreServices,
}

impl Category {
    /// atrace's rule: every required event may be switched on, and there is something to switch on at all.
    pub fn support(&self, files: &dyn EventFiles, flavour: Flavour, core_services: &str) -> Support {
        if self.name == PDX {
            return Support::Yes;
        }
        if self.name == CORE_SERVICES {
            return if core_services.is_empty() { Support::NoCoreServices } else { Support::Yes };
        }
        let missing = |ok: &dyn Fn(&str) -> bool| -> Option<Vec<String>> {
            let there = |path: &str| ok(&enable_path(path));
            let lacks = |e: &&EventRef| match e.need {
                Need::Required => !there(e.path),
                Need::RequiredByAtrace { otherwise } => {
                    !there(e.path) && (flavour == Flavour::Atrace || !there(otherwise))
                }
                _ => false,
            };
            let required: Vec<String> = self.events.iter().filter(lacks).map(|e| e.path.to_owned()).collect();
            if !required.is_empty() {
                return Some(required);
            }
            let any = self.tags != 0 || self.events_for(flavour).any(|e| ok(&enable_path(e.path)));
            (!any).then(|| self.events_for(flavour).map(|e| e.path.to_owned()).collect())
        };
        match (missing(&|path| files.writable(path)), missing(&|path| files.exists(path))) {
            (None, _) => Support::Yes,
            (Some(_), Some(absent)) => Support::Absent(absent),
            (Some(locked), None) => Support::NeedsRoot(locked),
        }
    }

    fn events_for(&self, flavour: Flavour) -> impl Iterator<Item = &'static EventRef> {
        let extras = flavour == Flavour::Record;
        self.events
            .iter()
            .filter(move |e| extras || !matches!(e.need, Need::RecorderInfo | Need::ExtraWithout(_)))
    }

    /// What of its events can be switched on here, and what not.
    pub fn events_here(&self, files: &dyn EventFiles, flavour: Flavour) -> EventsHere {
        let on = |path: &str| files.writable(&enable_path(path));
        let mut here = EventsHere::default();
        for event in self.events_for(flavour) {
            let path = event.path;
            let needless = match event.need {
                Need::ExtraWithout(other) => on(other),
                Need::RequiredByAtrace { otherwise } => flavour == Flavour::Record && on(otherwise),
                _ => false,
            };
            if needless {
            } else if on(path) {
                here.on.push(path);
            } else if files.exists(&enable_path(path)) {
                here.locked.push(path);
            } else if !matches!(event.need, Need::RecorderInfo | Need::ExtraWithout(_)) {
                here.absent.push(path);
            }
        }
        here
    }
}

/// A category's events on one device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventsHere {
    /// To switch on: those that may be written to.
    pub on: Vec<&'static str>,
    /// Those that exist, but may not be written to by who asks.
    pub locked: Vec<&'static str>,
    /// Those that this kernel does not have. Perfetto's extras, which few devices have, are not counted.
    pub absent: Vec<&'static str>,
}
