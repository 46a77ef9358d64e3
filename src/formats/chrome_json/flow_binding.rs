//! Which slice the event of a flow belongs to. In JSON a flow's event is one of its own, at the time of the
//! slice that it belongs to; on a track, flows are parts of the event that begins the slice.

use std::collections::HashMap;

use super::event::JsonEvent;
use super::names::ThreadKey;
use crate::formats::Flow;

/// The flows of events of one time: those that belong to an event of the same time, by its number among them.
#[derive(Debug, Default)]
pub(super) struct FlowBinding {
    pub(super) by_event: HashMap<usize, Vec<Flow>>,
}

/// The number of the flow that an `s`, `t` or `f` event belongs to: flows with the same id, category and name
/// are one.
pub(super) fn flow_of(event: &JsonEvent<'_>, hash: impl Fn(&[&[u8]]) -> u64) -> Option<Flow> {
    let (_, id) = event.id?;
    let (kind, number, text) = id.parts();
    let (cat, name) = (event.cat.unwrap_or_default().raw(), event.name.unwrap_or_default().raw());
    let id = hash(&[b"flow", &[kind], &number.to_le_bytes(), text, cat, name]);
    Some(Flow { id, ends: event.phase == b'f' })
}

/// The flow that a slice itself names (`bind_id`).
pub(super) fn bound_flow(event: &JsonEvent<'_>, hash: impl Fn(&[&[u8]]) -> u64) -> Option<Flow> {
    let (kind, number, text) = event.bind_id?.parts();
    let id = hash(&[b"bound flow", &[kind], &number.to_le_bytes(), text]);
    (event.flow_in || event.flow_out).then_some(Flow { id, ends: !event.flow_out })
}

impl FlowBinding {
    /// Finds the slices for the flows' events among the events of one time.
    pub(super) fn of(
        group: &[JsonEvent<'_>],
        thread_of: impl Fn(&JsonEvent<'_>) -> ThreadKey,
        hash: impl Fn(&[&[u8]]) -> u64 + Copy,
    ) -> FlowBinding {
        let mut binding = FlowBinding::default();
        for (number, event) in group.iter().enumerate() {
            if let Some(flow) = bound_flow(event, hash) {
                binding.by_event.entry(number).or_default().push(flow);
            }
        }
        let flows = group.iter().filter(|event| matches!(event.phase, b's' | b't' | b'f'));
        for event in flows {
            let Some(flow) = flow_of(event, hash) else { continue };
            let thread = thread_of(event);
            let may_hold = |other: &JsonEvent<'_>| {
                matches!(other.phase, b'B' | b'X' | b'i' | b'I' | b'R') && thread_of(other) == thread
            };
            // The innermost slice is the one that began last.
            if let Some(number) = group.iter().rposition(may_hold) {
                binding.by_event.entry(number).or_default().push(flow);
            }
        }
        binding
    }
}
