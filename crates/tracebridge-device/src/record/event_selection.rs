//! Turns the names on a command line (categories, `group/event`, `group/*`, each event with an optional
//! filter) into the events and userspace tags that this kernel has.

use std::path::Path;

use super::{EventName, RecordError, Tracefs};
use crate::android::{Properties, atrace_properties};
use crate::categories::{
    Catalog, CategorySelection, EventSet, MalformedVendorFile, SelectionError, TracefsEventFiles, VENDOR_FILE,
};

/// An event to record, with its filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SelectedEvent {
    pub(crate) event: EventName,
    /// An expression in the kernel's filter language (Documentation/trace/events.rst), such as `prev_pid==1`.
    pub(crate) filter: Option<String>,
}

/// The events and userspace tags that a list of names selects on this device.
#[derive(Debug, Clone, Default)]
pub(crate) struct EventSelection {
    pub(crate) events: Vec<SelectedEvent>,
    /// The mask of userspace tags.
    pub(crate) tags: u64,
    /// Whether the processes of `ro.atrace.core.services` are to write their app markers.
    pub(crate) core_services: bool,
    /// One sentence for each category or event that this device does not have or permit.
    pub(crate) notes: Vec<String>,
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
pub(super) fn category_events() -> Vec<String> {
    let catalog = load_catalog(Some(VENDOR_FILE.as_ref()), None, EventSet::Record)
        .or_else(|_| load_catalog(None, None, EventSet::Record));
    catalog.map(|catalog| catalog.all_events()).unwrap_or_default()
}

/// Resolves categories and events. A name that does not exist anywhere is an error. A category or an event
/// that this kernel does not have, or that this user may not switch on, becomes a note, as long as something
/// is left to record.
pub(crate) fn select_events(tracefs: &Tracefs, names: &[String]) -> Result<EventSelection, RecordError> {
    let catalog = load_catalog(Some(VENDOR_FILE.as_ref()), Properties::here().as_ref(), EventSet::Record)?;
    let files = TracefsEventFiles::new(tracefs.root());
    let mut selected = EventSelection::default();
    for name in names {
        let (name, filter) = split_filter(name);
        let mut selection = CategorySelection::default();
        match catalog.select(name, &files, &mut selection) {
            Ok(()) => {}
            Err(error @ SelectionError::Unknown { .. }) => return Err(error.into()),
            Err(error) => selected.notes.push(error.to_string()),
        }
        selected.tags |= selection.tags;
        selected.core_services |= selection.core_services;
        for event in selection.events {
            for event in tracefs.events_named(&event)? {
                // The last filter that is given for an event counts.
                selected.events.retain(|other| other.event != event);
                selected.events.push(SelectedEvent { event, filter: filter.map(str::to_owned) });
            }
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
        let selected = select_events(&tracefs, &names).unwrap();
        let filters: Vec<_> =
            selected.events.iter().map(|e| (e.event.name.as_str(), e.filter.as_deref())).collect();
        assert_eq!(filters, [("sched_waking", None), ("sched_switch", Some("prev_pid==1"))]);
    }

    #[test]
    fn an_event_that_is_missing_is_a_note_while_something_else_is_left() {
        let (_dir, tracefs) = tracefs_with_sched();
        let both = ["sched/sched_switch", "irq/none"].map(str::to_owned);
        let selected = select_events(&tracefs, &both).unwrap();
        assert_eq!((selected.events.len(), selected.notes.len()), (1, 1));
        let error = select_events(&tracefs, &both[1..]).unwrap_err();
        assert!(matches!(error, RecordError::NothingAvailable(_)), "{error}");
        let unknown = select_events(&tracefs, &["shed".to_owned()]).unwrap_err();
        assert!(unknown.to_string().contains("did you mean"), "{unknown}");
    }
}
