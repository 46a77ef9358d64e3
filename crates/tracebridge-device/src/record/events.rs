//! Turns the names on a command line (categories, `group/event`, `group/*`, each event with an optional
//! filter) into the events and userspace tags that this kernel has, and switches events on and off: one by
//! one or, where only that is permitted, with their whole group.
//!
//! On a locked phone the shell user may write the `enable` of some events, and of a few groups whose events
//! it may not switch one by one (`cgroup`, `irq`, `ipi`, `dma_fence`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::{EventName, RecordError, SettingsGuard, Tracefs};
use crate::android::{Properties, atrace_properties};
use crate::categories::{
    Catalog, CategorySelection, EventFiles, EventSet, MalformedVendorFile, SelectionError, VENDOR_FILE,
    enable_path,
};

/// More events of one group than this are named as `group/*` in a note.
const MAX_EVENTS_NAMED: usize = 3;

/// An event to record, with its filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SelectedEvent {
    pub(crate) event: EventName,
    /// An expression in the kernel's filter language (Documentation/trace/events.rst), such as `prev_pid==1`.
    pub(crate) filter: Option<String>,
}

/// A category or an event as it was asked for, and the kernel events that it selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AskedEvents {
    pub(crate) name: String,
    pub(crate) events: Vec<EventName>,
}

/// The events and userspace tags that a list of names selects on this device.
#[derive(Debug, Clone, Default)]
pub(crate) struct EventSelection {
    pub(crate) events: Vec<SelectedEvent>,
    /// The names that select kernel events.
    pub(crate) asked: Vec<AskedEvents>,
    /// The mask of userspace tags.
    pub(crate) tags: u64,
    /// Whether the processes of `ro.atrace.core.services` are to write their app markers.
    pub(crate) core_services: bool,
    /// One sentence for each category or event that this device does not have or permit.
    pub(crate) notes: Vec<String>,
}

/// The event files of a mounted tracefs, as this process may use them.
#[derive(Debug, Clone)]
pub(crate) struct TracefsEventFiles(PathBuf);

impl TracefsEventFiles {
    /// The tracefs, or the instance of one, at `root`.
    pub(crate) fn new(root: &Path) -> TracefsEventFiles {
        TracefsEventFiles(root.to_owned())
    }
}

impl TracefsEventFiles {
    /// The names of what is in a group's directory, in order.
    fn entries(&self, group: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.0.join("events").join(group)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }
}

impl EventFiles for TracefsEventFiles {
    fn exists(&self, path: &str) -> bool {
        access(&self.0.join(path), AccessFlags::F_OK).is_ok()
    }

    fn writable(&self, path: &str) -> bool {
        access(&self.0.join(path), AccessFlags::W_OK).is_ok()
    }

    fn writable_members(&self, group: &str) -> Vec<String> {
        let events = self.entries(group).into_iter().map(|name| format!("{group}/{name}"));
        events.filter(|event| self.writable(&enable_path(event))).collect()
    }

    fn locked_members(&self, group: &str) -> Vec<String> {
        let is_locked = |name: &String| {
            let file = enable_path(&format!("{group}/{name}"));
            self.exists(&file) && !self.writable(&file)
        };
        self.entries(group).into_iter().filter(is_locked).collect()
    }
}

/// Reads the catalogue of this device's categories: the categories of atrace and those of the vendor's file,
/// if that file exists. Without a `vendor_file` the catalogue holds the categories of atrace alone.
pub(crate) fn load_catalog(
    vendor_file: Option<&Path>,
    properties: Option<&Properties>,
    flavour: EventSet,
) -> Result<Catalog, MalformedVendorFile> {
    let vendor = vendor_file.and_then(|path| std::fs::read_to_string(path).ok());
    let core_services = properties.and_then(|p| atrace_properties::core_services(p).ok()).unwrap_or_default();
    Catalog::new(vendor.as_deref(), &core_services, flavour)
}

/// The events, and whole groups of them, of all categories, those of the vendor included.
fn category_events() -> Vec<String> {
    let catalog = load_catalog(Some(VENDOR_FILE.as_ref()), None, EventSet::Record)
        .or_else(|_| load_catalog(None, None, EventSet::Record));
    catalog.map(|catalog| catalog.all_events()).unwrap_or_default()
}

/// Resolves categories and events. A category that is none, and an event that this kernel does not have, are
/// errors, or notes if `is_lenient`. A category whose events this kernel does not have, and what this user
/// may not switch on, are notes, as long as something is left to record.
pub(crate) fn select_events(
    tracefs: &Tracefs,
    names: &[String],
    is_lenient: bool,
) -> Result<EventSelection, RecordError> {
    let catalog = load_catalog(Some(VENDOR_FILE.as_ref()), Properties::find().as_ref(), EventSet::Record)?;
    let files = TracefsEventFiles::new(tracefs.root());
    let mut selected = EventSelection::default();
    for name in names {
        let (name, filter) = split_filter(name);
        let mut selection = CategorySelection::default();
        match catalog.select(name, &files, &mut selection) {
            Ok(()) => {}
            Err(error @ (SelectionError::Unknown { .. } | SelectionError::Event { exists: false, .. }))
                if !is_lenient =>
            {
                return Err(error.into());
            }
            Err(error) => selected.notes.push(error.to_string()),
        }
        selected.tags |= selection.tags;
        selected.core_services |= selection.core_services;
        let mut asked = AskedEvents { name: name.to_owned(), events: Vec::new() };
        for event in selection.events {
            for event in tracefs.events_named(&event)? {
                asked.events.push(event.clone());
                // The last filter that is given for an event counts.
                selected.events.retain(|other| other.event != event);
                selected.events.push(SelectedEvent { event, filter: filter.map(str::to_owned) });
            }
        }
        if !asked.events.is_empty() && !selected.asked.contains(&asked) {
            selected.asked.push(asked);
        }
    }
    if selected.events.is_empty() && selected.tags == 0 && !selected.notes.is_empty() {
        return Err(RecordError::NothingAvailable(selected.notes.join("; ")));
    }
    Ok(selected)
}

/// Splits `group/event:filter` at the first colon behind the first slash: a filter may contain colons and
/// slashes.
fn split_filter(name: &str) -> (&str, Option<&str>) {
    let Some(slash) = name.find('/') else { return (name, None) };
    match name[slash..].find(':') {
        Some(colon) => (&name[..slash + colon], Some(&name[slash + colon + 1..])),
        None => (name, None),
    }
}

/// The events that are enabled now, as far as this user can see them. `set_event` lists them all. Where that
/// file is not readable (a locked phone), only the events of the categories are looked at. Those are the
/// events that such a user may switch; looking at one takes a millisecond where the kernel makes its files on
/// demand (since Linux 6.6), and each refusal would be logged.
pub(super) fn enabled_events(tracefs: &Tracefs) -> Result<Vec<EventName>, RecordError> {
    if let Ok(text) = tracefs.read("set_event") {
        let names = text.lines().filter_map(|l| l.split_once(':'));
        return Ok(names.map(|(g, n)| EventName::new(g, n.trim())).collect());
    }
    let mut enabled = Vec::new();
    let groups = tracefs.list("events")?;
    let has_group =
        |name: &str| name.split('/').next().is_some_and(|group| groups.iter().any(|g| g == group));
    for name in category_events().into_iter().filter(|name| has_group(name)) {
        let enable = enable_path(&name);
        if !tracefs.may_write(&enable) || tracefs.read(&enable).is_ok_and(|value| value.starts_with('0')) {
            continue;
        }
        let events = tracefs.events_named(&name)?;
        enabled.extend(events.into_iter().filter(|event| tracefs.is_enabled(event)));
    }
    Ok(enabled)
}

/// The events of all categories that this user may switch.
pub(super) fn switchable_events(tracefs: &Tracefs) -> Vec<EventName> {
    let mut names = category_events();
    names.iter_mut().filter(|name| !name.contains('/')).for_each(|group| group.push_str("/*"));
    let selected = select_events(tracefs, &names, true).map(|selected| selected.events);
    selected.unwrap_or_default().into_iter().map(|selected| selected.event).collect()
}

/// Enables the selected events and disables all others. Returns the events that are enabled afterwards, as
/// far as this user can see them.
pub(super) fn switch_events(
    settings: &mut SettingsGuard,
    selected: &[SelectedEvent],
    notes: &mut Vec<String>,
) -> Result<Vec<EventName>, RecordError> {
    let enabled_before = enabled_events(settings.tracefs())?;
    let mut switches = EventSwitches { settings, enabled: Vec::new() };
    let mut problems = Problems::default();
    switches.switch_off(enabled_before, selected, &mut problems.stay_on);
    let stay_on = switches.enabled.len();
    let mut groups: BTreeMap<&str, Vec<&SelectedEvent>> = BTreeMap::new();
    for event in selected {
        groups.entry(&event.event.group).or_default().push(event);
    }
    for (group, events) in groups {
        switches.switch_group_on(group, &events, &mut problems)?;
    }
    let nothing_on = switches.enabled.len() == stay_on;
    let mut enabled = switches.enabled;
    let sentences = problems.sentences();
    if nothing_on && !selected.is_empty() {
        return Err(RecordError::NothingAvailable(sentences.join("; ")));
    }
    notes.extend(sentences);
    enabled.sort_unstable();
    enabled.dedup();
    Ok(enabled)
}

/// Events that are not as they should be, each with the reason.
#[derive(Default)]
struct Problems {
    stay_on: Vec<(EventName, RecordError)>,
    not_recorded: Vec<(EventName, RecordError)>,
    unfiltered: Vec<(EventName, RecordError)>,
    filtered: Vec<(EventName, RecordError)>,
}

impl Problems {
    /// One sentence for each kind of problem and each cause.
    fn sentences(self) -> Vec<String> {
        let kinds = [
            (self.not_recorded, "not recorded"),
            (self.unfiltered, "recorded without the filter"),
            (self.filtered, "a filter that somebody set earlier stays"),
            (self.stay_on, "was on before, stays on, and is recorded too"),
        ];
        kinds.into_iter().flat_map(|(events, what)| sentences(events, what)).collect()
    }
}

fn sentences(problems: Vec<(EventName, RecordError)>, what: &str) -> Vec<String> {
    // The obstacle is looked up once for each group: the lookup itself may be refused, and logged.
    let mut obstacles: BTreeMap<String, String> = BTreeMap::new();
    let mut by_cause: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for (event, error) in problems {
        let cause = if error.is_denied() {
            obstacles.entry(event.group.clone()).or_insert_with(|| error.explained().cause()).clone()
        } else {
            error.cause()
        };
        by_cause.entry(cause).or_default().entry(event.group).or_default().push(event.name);
    }
    let named = |(group, events): (String, Vec<String>)| match events.len() {
        ..=MAX_EVENTS_NAMED => {
            events.iter().map(|name| format!("{group}/{name}")).collect::<Vec<_>>().join(", ")
        }
        many => format!("{group}/* ({many} events)"),
    };
    let sentence = |(cause, groups): (String, BTreeMap<String, Vec<String>>)| {
        let events = groups.into_iter().map(named).collect::<Vec<_>>().join(", ");
        format!("{what}: {events}: {cause}")
    };
    by_cause.into_iter().map(sentence).collect()
}

struct EventSwitches<'a> {
    settings: &'a mut SettingsGuard,
    /// The events that are on.
    enabled: Vec<EventName>,
}

impl EventSwitches<'_> {
    /// Switches off the events that are on and not selected.
    fn switch_off(
        &mut self,
        enabled: Vec<EventName>,
        selected: &[SelectedEvent],
        stay_on: &mut Vec<(EventName, RecordError)>,
    ) {
        for event in enabled {
            if selected.iter().any(|s| s.event == event) {
                continue;
            }
            let is_group_wanted = selected.iter().any(|s| s.event.group == event.group);
            let group = enable_path(&event.group);
            let mut switched = self.settings.set(&event.enable(), "0");
            if switched.as_ref().is_err_and(RecordError::is_denied)
                && !is_group_wanted
                && self.settings.tracefs().may_write(&group)
            {
                switched = self.settings.set(&group, "0");
            }
            if let Err(error) = switched {
                self.enabled.push(event.clone());
                stay_on.push((event, error));
            }
        }
    }

    /// Switches the selected events of one group on, after their filters are set.
    fn switch_group_on(
        &mut self,
        group: &str,
        events: &[&SelectedEvent],
        problems: &mut Problems,
    ) -> Result<(), RecordError> {
        for event in events {
            self.set_filter(event, problems)?;
        }
        let tracefs = self.settings.tracefs().clone();
        let is_switchable = |event: &EventName| tracefs.may_write(event.enable());
        let is_selected = |event: &EventName| events.iter().any(|s| s.event == *event);
        if events.iter().any(|s| !is_switchable(&s.event)) && tracefs.may_write(enable_path(group)) {
            let members = tracefs.events_of(group)?;
            // If some of them are not selected, the group would record what nobody asked for.
            if members.iter().all(is_selected) && self.settings.set(&enable_path(group), "1").is_ok() {
                self.enabled.extend(members);
                return Ok(());
            }
        }
        for SelectedEvent { event, .. } in events {
            match self.settings.set(&event.enable(), "1") {
                Ok(_) => self.enabled.push(event.clone()),
                Err(error) => problems.not_recorded.push((event.clone(), error)),
            }
        }
        Ok(())
    }

    /// Sets the filter of an event. A filter that somebody set earlier would hide events, so it is cleared.
    fn set_filter(&mut self, selected: &SelectedEvent, problems: &mut Problems) -> Result<(), RecordError> {
        let SelectedEvent { event, filter } = selected;
        let knob = format!("{}/filter", event.dir());
        let is_filtered = || self.settings.tracefs().read(&knob).is_ok_and(|current| current != "none");
        if filter.is_none() && !is_filtered() {
            return Ok(());
        }
        match self.settings.set(&knob, filter.as_deref().unwrap_or("0")) {
            Err(error) if error.is_denied() => {
                let list = if filter.is_some() { &mut problems.unfiltered } else { &mut problems.filtered };
                list.push((event.clone(), error));
                Ok(())
            }
            result => result.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracefs_with_sched() -> (tempfile::TempDir, Tracefs) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("tracing_on"), "1\n").unwrap();
        for event in ["", "sched_switch", "sched_waking"] {
            let event = dir.path().join("events/sched").join(event);
            std::fs::create_dir_all(&event).unwrap();
            std::fs::write(event.join("enable"), "0\n").unwrap();
        }
        let tracefs = Tracefs::find(Some(dir.path())).unwrap();
        (dir, tracefs)
    }

    #[test]
    fn a_filter_may_contain_colons_and_slashes() {
        assert_eq!(split_filter("sched/sched_switch"), ("sched/sched_switch", None));
        assert_eq!(split_filter("fs/open:name ~ \"a:/b\""), ("fs/open", Some("name ~ \"a:/b\"")));
        assert_eq!(split_filter("gfx"), ("gfx", None));
    }

    #[test]
    fn the_last_filter_of_an_event_counts() {
        let (_dir, tracefs) = tracefs_with_sched();
        let names = ["sched/*", "sched/sched_switch:prev_pid==1"].map(str::to_owned);
        let selected = select_events(&tracefs, &names, false).unwrap();
        let filters: Vec<_> =
            selected.events.iter().map(|e| (e.event.name.as_str(), e.filter.as_deref())).collect();
        assert_eq!(filters, [("sched_waking", None), ("sched_switch", Some("prev_pid==1"))]);
    }

    #[test]
    fn a_name_that_is_unknown_is_an_error_and_for_the_lenient_a_note_while_something_else_is_left() {
        let (_dir, tracefs) = tracefs_with_sched();
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        for unknown in ["irq/none", "shed"] {
            let both = names(&["sched/sched_switch", unknown]);
            let error = select_events(&tracefs, &both, false).unwrap_err().to_string();
            assert!(error.contains(unknown) && error.ends_with("(--lenient leaves it out)"), "{error}");
            let selected = select_events(&tracefs, &both, true).unwrap();
            assert_eq!((selected.events.len(), selected.notes.len()), (1, 1));
            let error = select_events(&tracefs, &both[1..], true).unwrap_err();
            assert!(matches!(error, RecordError::NothingAvailable(_)), "{error}");
        }
        let unknown = select_events(&tracefs, &names(&["shed"]), false).unwrap_err();
        assert!(unknown.to_string().contains("did you mean"), "{unknown}");
        // The kernel lacks the events of a category that every device has a name for.
        let selected = select_events(&tracefs, &names(&["sched", "mmc"]), false).unwrap();
        assert!(selected.notes[0].contains("\"mmc\" is not supported"), "{:?}", selected.notes);
    }
}
