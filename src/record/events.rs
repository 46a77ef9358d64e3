//! Which events a recording is to have: `group/event`, `group/*` and their filters.

use super::{Error, EventName, Tracefs};

/// An event asked for, with its filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The event.
    pub event: EventName,
    /// The kernel's filter language (Documentation/trace/events.rst): `prev_pid==1`.
    pub filter: Option<String>,
}

/// The events behind `group/event`, `group/event:filter`, `group/*` or `group/*:filter` (`group:event` as trace-cmd
/// writes it is understood too).
pub fn expand(tracefs: &Tracefs, spec: &str) -> Result<Vec<Wanted>, Error> {
    let no_event = |hint: String| Error::NoEvent { name: spec.to_owned(), hint };
    let (group, rest) = spec
        .split_once('/')
        .or_else(|| spec.split_once(':'))
        .ok_or_else(|| no_event("an event is GROUP/EVENT or GROUP/*".into()))?;
    let (name, filter) = match rest.split_once(':') {
        Some((name, filter)) => (name, Some(filter.to_owned())),
        None => (rest, None),
    };
    let known =
        tracefs.events_of(group).map_err(|_| no_event(format!("this kernel has no group {group}")))?;
    let wanted: Vec<Wanted> = known
        .iter()
        .filter(|e| name == "*" || e.name == name)
        .map(|event| Wanted { event: event.clone(), filter: filter.clone() })
        .collect();
    if wanted.is_empty() {
        let list: Vec<&str> = known.iter().map(|e| e.name.as_str()).collect();
        return Err(no_event(format!("group {group} has {}", list.join(", "))));
    }
    Ok(wanted)
}
