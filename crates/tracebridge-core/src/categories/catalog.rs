//! All categories of a device, and the resolution of names from a command line.

use super::{CATEGORIES, CORE_SERVICES, Category, EventFiles, EventSet, Support, enable_path};

/// The vendor's file of categories on a device (Android 14 and newer).
pub const VENDOR_FILE: &str = "/vendor/etc/atrace/atrace_categories.txt";

/// Why a name on the command line is not recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// No category has this name.
    #[error("unknown tracing category \"{name}\"{}", nearest.as_ref().map(|n| format!(", did you mean \"{n}\"?")).unwrap_or_default())]
    Unknown {
        /// The name as it was given.
        name: String,
        /// The category with the most similar name.
        nearest: Option<String>,
    },
    /// The events of the category exist, and this user may not switch them on.
    #[error("category \"{name}\" requires root privileges (not writable: {})", events.join(", "))]
    NeedsRoot {
        /// The category.
        name: String,
        /// The events that could not be switched on.
        events: Vec<String>,
    },
    /// The kernel does not have the events of the category.
    #[error("category \"{name}\" is not supported on this device ({})", reason(events))]
    Unsupported {
        /// The category.
        name: String,
        /// The missing events; empty for `core_services`.
        events: Vec<String>,
    },
    /// The event `group/event` does not exist, or this user may not switch it on.
    #[error("event \"{event}\" {}", if *exists { "may not be switched on without root" } else { "does not exist in this kernel" })]
    Event {
        /// The event as it was given.
        event: String,
        /// Whether the event exists.
        exists: bool,
    },
    /// This user may switch the event on only together with its whole group.
    #[error("event \"{event}\" may only be switched on with its whole group: name {group}/*")]
    OnlyWithGroup {
        /// The event as it was given.
        event: String,
        /// Its group.
        group: String,
    },
    /// This user may switch on a part of a group's events, which is recorded.
    #[error("of {group}/* {} of {} events may be switched on; left out: {}", permitted, permitted + left_out.len(), left_out.join(", "))]
    PartOfGroup {
        /// The group.
        group: String,
        /// The number of events that are recorded.
        permitted: usize,
        /// The names of the others.
        left_out: Vec<String>,
    },
}

fn reason(events: &[String]) -> String {
    if events.is_empty() {
        "the property ro.atrace.core.services is empty".to_owned()
    } else {
        format!("not in this kernel: {}", events.join(", "))
    }
}

/// The tags and events that a list of names stands for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CategorySelection {
    /// Userspace tags, for `debug.atrace.tags.enableflags`.
    pub tags: u64,
    /// Events (`sched/sched_switch`) and groups (`cgroup`) to switch on, each once, in the order asked for.
    pub events: Vec<String>,
    /// Whether the processes of `ro.atrace.core.services` are to write their app markers.
    pub core_services: bool,
}

impl CategorySelection {
    fn add(&mut self, event: &str) {
        if !self.events.iter().any(|e| e == event) {
            self.events.push(event.to_owned());
        }
    }
}

/// All categories of a device: those of atrace and those of the vendor file.
#[derive(Debug, Clone)]
pub struct Catalog {
    /// The vendor file's categories, in its order.
    pub vendor: Vec<VendorCategory>,
    event_set: EventSet,
    core_services: String,
}

impl Catalog {
    /// `vendor_file` is the content of [`super::VENDOR_FILE`] where the device has one; `core_services` is
    /// the value of the property `ro.atrace.core.services`.
    pub fn new(
        vendor_file: Option<&str>,
        core_services: &str,
        event_set: EventSet,
    ) -> Result<Catalog, MalformedVendorFile> {
        let vendor = vendor_file.map_or(Ok(Vec::new()), parse_vendor_file)?;
        Ok(Catalog { vendor, event_set, core_services: core_services.to_owned() })
    }

    /// Returns the categories of atrace, each with whether it works here. `ion`, which only Perfetto has, is
    /// left out for [`EventSet::Atrace`].
    pub fn builtin(&self, files: &dyn EventFiles) -> Vec<(&'static Category, Support)> {
        self.known().map(|c| (c, c.support(files, self.event_set, &self.core_services))).collect()
    }

    /// The built-in categories that this set of events has.
    fn known(&self) -> impl Iterator<Item = &'static Category> {
        CATEGORIES.iter().filter(|c| self.event_set == EventSet::Record || c.name != "ion")
    }

    /// Adds the tags and events of one name: a category, `group/event`, or `group/*`.
    pub fn select(
        &self,
        name: &str,
        files: &dyn EventFiles,
        into: &mut CategorySelection,
    ) -> Result<(), SelectionError> {
        if name.contains('/') {
            return select_event(name, files, self.event_set, into);
        }
        let mut found = false;
        for category in self.vendor.iter().filter(|c| c.name == name) {
            found = true;
            for event in category.events.iter().filter(|e| files.writable(&enable_path(e))) {
                into.add(event);
            }
        }
        if let Some(category) = self.known().find(|c| c.name == name) {
            let name = name.to_owned();
            match category.support(files, self.event_set, &self.core_services) {
                Support::Yes => {}
                Support::NeedsRoot(events) => return Err(SelectionError::NeedsRoot { name, events }),
                Support::Absent(events) => return Err(SelectionError::Unsupported { name, events }),
                Support::NoCoreServices => {
                    return Err(SelectionError::Unsupported { name, events: Vec::new() });
                }
            }
            into.tags |= category.tags;
            into.core_services |= category.name == CORE_SERVICES;
            for event in category.available_events(files, self.event_set).on {
                into.add(&event);
            }
            found = true;
        }
        if found {
            Ok(())
        } else {
            Err(SelectionError::Unknown { name: name.to_owned(), nearest: self.nearest(name) })
        }
    }

    /// Resolves a list of names. Returns the selection of those that worked, and an error for each that did
    /// not.
    pub fn select_all<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
        files: &dyn EventFiles,
    ) -> (CategorySelection, Vec<SelectionError>) {
        let mut selection = CategorySelection::default();
        let errors =
            names.into_iter().filter_map(|name| self.select(name, files, &mut selection).err()).collect();
        (selection, errors)
    }

    /// Returns every event that any category may switch on. atrace switches all of them off before it starts.
    pub fn all_events(&self) -> Vec<String> {
        let mut all = CategorySelection::default();
        for category in CATEGORIES {
            category.events_for(self.event_set).for_each(|e| all.add(e.path));
        }
        self.vendor.iter().flat_map(|c| &c.events).for_each(|e| all.add(e));
        all.events
    }

    fn nearest(&self, name: &str) -> Option<String> {
        let known = CATEGORIES.iter().map(|c| c.name).chain(self.vendor.iter().map(|c| c.name.as_str()));
        known
            .map(|known| (strsim::jaro_winkler(name, known), known))
            .filter(|(likeness, _)| *likeness > 0.7)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, known)| known.to_owned())
    }
}

fn select_event(
    name: &str,
    files: &dyn EventFiles,
    event_set: EventSet,
    into: &mut CategorySelection,
) -> Result<(), SelectionError> {
    let event = name.strip_suffix("/*").unwrap_or(name);
    let path = enable_path(event);
    let sane = !event.is_empty() && event.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if sane && files.writable(&path) {
        into.add(event);
        return Ok(());
    }
    let members = if sane && name.ends_with("/*") { files.writable_members(event) } else { Vec::new() };
    if !members.is_empty() {
        members.iter().for_each(|member| into.add(member));
        let left_out = files.locked_members(event);
        if left_out.is_empty() || event_set == EventSet::Atrace {
            return Ok(());
        }
        let permitted = members.len();
        return Err(SelectionError::PartOfGroup { group: event.to_owned(), permitted, left_out });
    }
    if let Some((group, _)) =
        event.split_once('/').filter(|(group, _)| sane && files.writable(&enable_path(group)))
        && files.exists(&path)
    {
        return Err(SelectionError::OnlyWithGroup { event: name.to_owned(), group: group.to_owned() });
    }
    Err(SelectionError::Event { event: name.to_owned(), exists: sane && files.exists(&path) })
}

/// A category that the vendor file defines, or the events it adds to one of atrace's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VendorCategory {
    /// The name on the command line.
    pub name: String,
    /// Events as `group/event` or `group`. An event that the kernel does not have is skipped.
    pub events: Vec<String>,
}

/// The vendor file has an event before its first category.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed vendor categories file: line {line} is an event that belongs to no category")]
pub struct MalformedVendorFile {
    /// The number of the line, from 1.
    pub line: usize,
}

/// Parses the vendor file: a line without indentation names a category, an indented line names an event of
/// it.
fn parse_vendor_file(text: &str) -> Result<Vec<VendorCategory>, MalformedVendorFile> {
    let mut categories: Vec<VendorCategory> = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let name = line.trim();
        if name.is_empty() {
            continue;
        }
        if !line.starts_with([' ', '\t']) {
            categories.push(VendorCategory { name: name.to_owned(), events: Vec::new() });
        } else if let Some(category) = categories.last_mut() {
            category.events.push(name.to_owned());
        } else {
            return Err(MalformedVendorFile { line: n + 1 });
        }
    }
    Ok(categories)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tracefs in which some events exist, and some of those may be written to.
    struct Fake {
        locked: &'static [&'static str],
        open: &'static [&'static str],
    }

    impl EventFiles for Fake {
        fn exists(&self, path: &str) -> bool {
            self.writable(path) || self.locked.iter().any(|e| enable_path(e) == path)
        }
        fn writable(&self, path: &str) -> bool {
            self.open.iter().any(|e| enable_path(e) == path)
        }
        fn writable_members(&self, group: &str) -> Vec<String> {
            let is_member = |e: &&&str| e.split_once('/').is_some_and(|(g, _)| g == group);
            self.open.iter().filter(is_member).map(|e| (*e).to_owned()).collect()
        }
        fn locked_members(&self, group: &str) -> Vec<String> {
            let of_group = self.locked.iter().filter_map(|e| e.split_once('/'));
            of_group.filter(|(g, _)| *g == group).map(|(_, event)| event.to_owned()).collect()
        }
    }

    const PHONE: Fake = Fake {
        locked: &["workqueue", "i2c"],
        open: &[
            "sched/sched_switch",
            "sched/sched_wakeup",
            "sched/sched_waking",
            "cgroup",
            "mali",
            "kmem/rss_stat",
            "irq",
        ],
    };

    fn catalog(event_set: EventSet) -> Catalog {
        Catalog::new(None, "", event_set).unwrap()
    }

    fn select(event_set: EventSet, names: &[&str]) -> (CategorySelection, Vec<String>) {
        let (selection, errors) = catalog(event_set).select_all(names.iter().copied(), &PHONE);
        (selection, errors.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn atrace_gets_its_own_events_and_a_recording_the_useful_ones() {
        let (atrace, errors) = select(EventSet::Atrace, &["sched", "gfx"]);
        assert_eq!(
            atrace.events,
            ["sched/sched_switch", "sched/sched_wakeup", "sched/sched_waking", "cgroup"]
        );
        assert_eq!((atrace.tags, errors.len()), (2, 0));
        let (record, _) = select(EventSet::Record, &["sched", "gfx", "memory"]);
        assert_eq!(
            record.events,
            ["sched/sched_switch", "sched/sched_waking", "cgroup", "mali", "kmem/rss_stat"]
        );
    }

    #[test]
    fn memory_has_an_event_that_comes_without_perfettos_trigger() {
        let phone = Fake { locked: &[], open: &["synthetic/rss_stat_throttled", "kmem/rss_stat"] };
        let (record, _) = catalog(EventSet::Record).select_all(["memory"], &phone);
        assert!(record.events.iter().any(|event| event == "kmem/rss_stat"), "{:?}", record.events);
        let (atrace, _) = catalog(EventSet::Atrace).select_all(["memory"], &phone);
        assert_eq!(atrace.events, ["synthetic/rss_stat_throttled"]);
    }

    #[test]
    fn the_reason_tells_root_from_kernel() {
        let (_, errors) = select(EventSet::Atrace, &["workq", "mmc", "shed", "core_services", "zzz"]);
        assert_eq!(
            errors,
            [
                "category \"workq\" requires root privileges (not writable: workqueue)",
                "category \"mmc\" is not supported on this device (not in this kernel: mmc)",
                "unknown tracing category \"shed\", did you mean \"sched\"?",
                "category \"core_services\" is not supported on this device (the property ro.atrace.core.services is empty)",
                "unknown tracing category \"zzz\"",
            ]
        );
    }

    #[test]
    fn what_a_recording_needs_is_less_than_what_atrace_needs() {
        // No sched_wakeup here, which a recording leaves out beside sched_waking.
        const SOME: Fake =
            Fake { locked: &["task/task_rename"], open: &["sched/sched_switch", "sched/sched_waking"] };
        let of = |event_set| {
            catalog(event_set).builtin(&SOME).into_iter().find(|(c, _)| c.name == "sched").unwrap()
        };
        assert_eq!(of(EventSet::Atrace).1, Support::Absent(vec!["sched/sched_wakeup".into()]));
        let (sched, support) = of(EventSet::Record);
        assert_eq!(support, Support::Yes);
        let here = sched.available_events(&SOME, EventSet::Record);
        assert_eq!(here.on, ["sched/sched_switch", "sched/sched_waking"]);
        assert_eq!(here.locked, ["task/task_rename"]);
        assert!(here.absent.contains(&"cgroup"));
        // Neither what is left out on purpose nor Perfetto's extras count as absent.
        assert!(!here.absent.contains(&"sched/sched_wakeup") && !here.absent.contains(&"scm"));
    }

    #[test]
    fn a_recording_takes_what_is_allowed_of_a_group_and_atrace_refuses_it() {
        const SHELL: Fake = Fake {
            locked: &["filemap", "filemap/filemap_set_wb_err", "irq/irq_handler_entry"],
            open: &[
                "filemap/mm_filemap_add_to_page_cache",
                "filemap/mm_filemap_delete_from_page_cache",
                "irq",
            ],
        };
        let select = |event_set, name: &str| {
            let mut selection = CategorySelection::default();
            let result = catalog(event_set).select(name, &SHELL, &mut selection);
            result.map(|()| selection.events).map_err(|e| e.to_string())
        };
        let both = Ok(SHELL.open[..2].iter().map(|e| (*e).to_owned()).collect());
        assert_eq!(select(EventSet::Record, "pagecache"), both);
        // Of a pattern it is said what is left out.
        let mut selection = CategorySelection::default();
        let told = catalog(EventSet::Record).select("filemap/*", &SHELL, &mut selection).unwrap_err();
        assert_eq!(Ok(selection.events), both);
        assert_eq!(
            told.to_string(),
            "of filemap/* 2 of 3 events may be switched on; left out: filemap_set_wb_err"
        );
        assert!(select(EventSet::Atrace, "pagecache").unwrap_err().contains("requires root privileges"));
        assert_eq!(
            select(EventSet::Record, "irq/irq_handler_entry").unwrap_err(),
            "event \"irq/irq_handler_entry\" may only be switched on with its whole group: name irq/*"
        );
    }

    #[test]
    fn every_category_of_aosp_is_there_with_its_tag() {
        let names: Vec<&str> = CATEGORIES.iter().map(|c| c.name).collect();
        let aosp = "gfx input view webview wm am sm audio video camera hal res dalvik rs bionic power pm ss database \
            network adb vibrator aidl nnapi rro core_services sched irq irqoff preemptoff i2c freq membus idle disk mmc \
            load sync workq memreclaim regulators binder_driver binder_lock pagecache memory thermal pdx";
        for name in aosp.split_whitespace() {
            assert!(names.contains(&name), "{name}");
        }
        // Each tag but `always` and `app` has its category, and no other.
        for tag in crate::android::tags::TAGS.iter().filter(|t| !matches!(t.name, "always" | "app")) {
            let with: Vec<_> =
                CATEGORIES.iter().filter(|c| c.tags & tag.mask() != 0).map(|c| c.name).collect();
            assert_eq!(with, [tag.category], "{tag}");
        }
    }

    #[test]
    fn events_can_be_named_themselves() {
        let (selection, errors) =
            select(EventSet::Record, &["sched/sched_switch", "irq/*", "i2c/*", "no/such", "../x"]);
        assert_eq!(selection.events, ["sched/sched_switch", "irq"]);
        assert_eq!(errors[0], "event \"i2c/*\" may not be switched on without root");
        assert_eq!(errors[1], "event \"no/such\" does not exist in this kernel");
        assert_eq!(errors.len(), 3);
    }

    #[test]
    fn the_vendor_file_adds_categories_and_extends_ours() {
        let file = "gfx\n  mali\n\nsensors\n\tirq\n\tsensors/absent\n";
        let catalog = Catalog::new(Some(file), "", EventSet::Atrace).unwrap();
        let (selection, errors) = catalog.select_all(["gfx", "sensors"], &PHONE);
        assert_eq!(
            (selection.events, selection.tags, errors),
            (vec!["mali".into(), "irq".into()], 2, vec![])
        );
        assert!(catalog.all_events().contains(&"sensors/absent".to_owned()));
        let malformed = Catalog::new(Some("\n  mali\n"), "", EventSet::Atrace).unwrap_err();
        assert_eq!(malformed.line, 2);
    }

    #[test]
    fn no_category_is_listed_twice() {
        let mut names: Vec<_> = CATEGORIES.iter().map(|c| c.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CATEGORIES.len());
    }
}
