//! Switches events on and off: one by one or, where only that is permitted, with their whole group.
//!
//! On a locked phone the shell user may write the `enable` of some events, and of a few groups whose events
//! it may not switch one by one (`cgroup`, `irq`, `ipi`, `dma_fence`).

use std::collections::BTreeMap;

use super::event_selection::{SelectedEvent, category_events};
use super::{EventName, RecordError, SettingsGuard, Tracefs};
use crate::categories::enable_path;

/// More events of one group than this are named as `group/*` in a note.
const MAX_EVENTS_NAMED: usize = 3;

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
    let is_there = |name: &str| name.split('/').next().is_some_and(|group| groups.iter().any(|g| g == group));
    for name in category_events().into_iter().filter(|name| is_there(name)) {
        let enable = enable_path(&name);
        if !tracefs.may_write(&enable) || tracefs.read(&enable).is_ok_and(|value| value.starts_with('0')) {
            continue;
        }
        let events = tracefs.events_named(&name)?;
        enabled.extend(events.into_iter().filter(|event| tracefs.is_enabled(event)));
    }
    Ok(enabled)
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
    let told = problems.sentences();
    if nothing_on && !selected.is_empty() {
        return Err(RecordError::NothingAvailable(told.join("; ")));
    }
    notes.extend(told);
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
        let cause = match error.is_denied() {
            true => obstacles.entry(event.group.clone()).or_insert_with(|| error.explained().cause()).clone(),
            false => error.cause(),
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
