//! Categories: names such as `sched` or `gfx` for sets of userspace tags and kernel events.
//!
//! The `table` module lists the categories of atrace; [`Catalog`] adds the vendor's and resolves the names of
//! a command line into a [`CategorySelection`] for the device at hand.

mod catalog;
mod switch;
mod table;

pub use catalog::{Catalog, CategorySelection, MalformedVendorFile, SelectionError, VENDOR_FILE};
pub use switch::{CategorySwitch, MAX_CATEGORY_BYTES, MAX_COMMAND_BYTES, MAX_SWITCHED, REFUSED, SWITCHED};
pub use table::{CATEGORIES, CORE_SERVICES, PDX};

/// Which events a category stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventSet {
    /// Exactly the events that AOSP's atrace switches on.
    Atrace,
    /// The events of atrace and Perfetto, without those that another event makes redundant.
    Record,
}

/// Where the events of a category are looked up: a mounted tracefs, or a list in a test.
pub trait EventFiles {
    /// Whether `path` (relative to tracefs) exists: `access(2)` with `F_OK`.
    fn exists(&self, path: &str) -> bool;
    /// Whether `path` may be written to: `access(2)` with `W_OK`.
    fn writable(&self, path: &str) -> bool;
    /// The events of a group that may be switched on one by one, as `group/event`.
    fn writable_members(&self, group: &str) -> Vec<String>;
    /// The events of a group that exist and may not be switched on one by one, without the group's name.
    fn locked_members(&self, group: &str) -> Vec<String>;
}

/// Returns the events and groups that may be switched on for `path`, an event or a group: `path` itself. Of a
/// group that may not be switched on as a whole, a recording takes the events that may be; atrace does not.
fn usable(path: &str, files: &dyn EventFiles, event_set: EventSet) -> Vec<String> {
    if files.writable(&enable_path(path)) {
        return vec![path.to_owned()];
    }
    match event_set {
        EventSet::Record if !path.contains('/') => files.writable_members(path),
        EventSet::Record | EventSet::Atrace => Vec::new(),
    }
}

/// The file that switches an event (`sched/sched_switch`) or a whole group (`cgroup`) on, relative to
/// tracefs.
pub fn enable_path(event: &str) -> String {
    format!("events/{event}/enable")
}

/// An event, or a whole group of events, of a [`Category`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRef {
    /// `group/event`, or `group` for all of its events.
    pub path: &'static str,
    /// How much the category needs the event.
    pub need: Need,
}

/// How much a category needs an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The category is refused where this event is missing.
    Required,
    /// The event is switched on where it exists.
    Optional,
    /// Perfetto records the event for this category; atrace does not.
    PerfettoOnly,
    /// atrace requires the event. `record` leaves this frequent event out where `otherwise` exists, because
    /// `otherwise` carries the same facts and more.
    RequiredByAtrace {
        /// The event that makes it redundant.
        otherwise: &'static str,
    },
}

/// A category: a name for tags and events that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Category {
    /// The name on the command line.
    pub name: &'static str,
    /// The description that `atrace --list_categories` prints.
    pub description: &'static str,
    /// The mask of userspace tags ([`crate::android::tags`]).
    pub tags: u64,
    /// The kernel events, or whole groups of them.
    pub events: &'static [EventRef],
}

/// Whether a category works on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Support {
    /// The category works.
    Yes,
    /// Every required event exists, but this user may not switch the listed events on.
    NeedsRoot(Vec<String>),
    /// This kernel does not have the listed events. A category without required events needs any one of them.
    Absent(Vec<String>),
    /// The property `ro.atrace.core.services` is empty.
    NoCoreServices,
}

impl Category {
    /// Applies atrace's rule: a category works if every required event may be switched on and the category
    /// has at least one tag or one usable event.
    pub fn support(&self, files: &dyn EventFiles, event_set: EventSet, core_services: &str) -> Support {
        if self.name == PDX {
            return Support::Yes;
        }
        if self.name == CORE_SERVICES {
            return if core_services.is_empty() { Support::NoCoreServices } else { Support::Yes };
        }
        let missing = |ok: &dyn Fn(&str) -> bool| -> Option<Vec<String>> {
            let lacks = |e: &&EventRef| match e.need {
                Need::Required => !ok(e.path),
                Need::RequiredByAtrace { otherwise } => {
                    !ok(e.path) && (event_set == EventSet::Atrace || !ok(otherwise))
                }
                _ => false,
            };
            let required: Vec<String> = self.events.iter().filter(lacks).map(|e| e.path.to_owned()).collect();
            if !required.is_empty() {
                return Some(required);
            }
            let any = self.tags != 0 || self.events_for(event_set).any(|e| ok(e.path));
            (!any).then(|| self.events_for(event_set).map(|e| e.path.to_owned()).collect())
        };
        let is_usable = |path: &str| !usable(path, files, event_set).is_empty();
        match (missing(&is_usable), missing(&|path| files.exists(&enable_path(path)))) {
            (None, _) => Support::Yes,
            (Some(_), Some(absent)) => Support::Absent(absent),
            (Some(locked), None) => Support::NeedsRoot(locked),
        }
    }

    fn events_for(&self, event_set: EventSet) -> impl Iterator<Item = &'static EventRef> {
        let extras = event_set == EventSet::Record;
        self.events.iter().filter(move |e| extras || e.need != Need::PerfettoOnly)
    }

    /// Sorts the events of the category into usable, locked and absent ones.
    pub fn available_events(&self, files: &dyn EventFiles, event_set: EventSet) -> AvailableEvents {
        let on = |path: &str| files.writable(&enable_path(path));
        let mut available = AvailableEvents::default();
        for event in self.events_for(event_set) {
            let path = event.path;
            let needless = match event.need {
                Need::RequiredByAtrace { otherwise } => event_set == EventSet::Record && on(otherwise),
                _ => false,
            };
            if needless {
                continue;
            }
            let mut usable = usable(path, files, event_set);
            if !usable.is_empty() {
                available.on.append(&mut usable);
            } else if files.exists(&enable_path(path)) {
                available.locked.push(path);
            } else if event.need != Need::PerfettoOnly {
                available.absent.push(path);
            }
        }
        available
    }
}

/// A category's events on one device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AvailableEvents {
    /// Events, or whole groups of them, that this user may switch on.
    pub on: Vec<String>,
    /// Events that exist and that this user may not switch on.
    pub locked: Vec<&'static str>,
    /// Events that this kernel does not have. Events that only Perfetto records are not listed: few devices
    /// have them.
    pub absent: Vec<&'static str>,
}
