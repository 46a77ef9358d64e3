//! What a recording is to have: categories, `group/event`, `group/*` and their filters, resolved for this kernel.

use super::{Error, EventName, Tracefs};
use crate::android::{Properties, atrace_properties};
use crate::categories::{
    Catalog, CategorySelection, EventSet, SelectionError, TracefsEventFiles, VENDOR_FILE,
};

/// An event asked for, with its filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The event.
    pub event: EventName,
    /// The kernel's filter language (Documentation/trace/events.rst): `prev_pid==1`.
    pub filter: Option<String>,
}

/// What names on a command line come to here.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Events of the kernel.
    pub events: Vec<Wanted>,
    /// Userspace tags.
    pub tags: u64,
    /// Whether the core services' processes are to write their app markers.
    pub core_services: bool,
    /// Categories and events that this device does not permit or have.
    pub notes: Vec<String>,
}

/// Resolves categories and events. A name that nobody knows is an error; what this kernel does not have or this
/// user may not turn on is a note, as long as something is left to record.
pub fn choose(tracefs: &Tracefs, names: &[String]) -> Result<Choice, Error> {
    let vendor = std::fs::read_to_string(VENDOR_FILE).ok();
    let core_services =
        Properties::here().and_then(|p| atrace_properties::core_services(&p).ok()).unwrap_or_default();
    let catalog = Catalog::new(vendor.as_deref(), &core_services, EventSet::Record)
        .map_err(|e| Error::Format { path: VENDOR_FILE.into(), what: e.to_string() })?;
    let files = TracefsEventFiles::new(tracefs.root());
    let mut choice = Choice::default();
    for name in names {
        // A filter may hold colons and slashes itself: only the first colon behind the first slash counts.
        let (spec, filter) = match name.split_once('/').and_then(|(g, rest)| Some((g, rest.split_once(':')?)))
        {
            Some((group, (event, filter))) => (format!("{group}/{event}"), Some(filter)),
            None => (name.clone(), None),
        };
        let mut selection = CategorySelection::default();
        match catalog.select(&spec, &files, &mut selection) {
            Ok(()) => {}
            Err(error @ SelectionError::Unknown { .. }) => return Err(error.into()),
            Err(error) => choice.notes.push(error.to_string()),
        }
        choice.tags |= selection.tags;
        choice.core_services |= selection.core_services;
        for event in selection.events {
            for event in events_of(tracefs, &event)? {
                // The last filter given for an event counts.
                choice.events.retain(|w| w.event != event);
                choice.events.push(Wanted { event, filter: filter.map(str::to_owned) });
            }
        }
    }
    if choice.events.is_empty() && choice.tags == 0 && !choice.notes.is_empty() {
        return Err(Error::Nothing(choice.notes.join("; ")));
    }
    Ok(choice)
}

/// The events behind `group/event` or a group's name.
fn events_of(tracefs: &Tracefs, name: &str) -> Result<Vec<EventName>, Error> {
    match name.split_once('/') {
        Some((group, event)) => Ok(vec![EventName::new(group, event)]),
        None => tracefs.events_of(name),
    }
}
