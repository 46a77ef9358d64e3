//! Finds the events of a recording that another recording holds too.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::formats::{Event, EventType};

/// Largest distance between the times of one event in two recordings, ns. A text cuts its times to µs or
/// rounds them; and where two recorders have a kernel buffer each, the kernel reads the clock for each of
/// them. For `record` and Perfetto 56 these readings lie 0 to 3 µs apart for 99.9 % of the events on a
/// desktop, and up to 75 µs on an emulated device.
const MAX_DISTANCE_NS: u64 = 100_000;

/// The distance of a text that cuts or rounds. An event so far before or behind all earlier recordings is no
/// event of them: of two recordings one after the other, the second may begin with such a marker as the first
/// has at its end.
const MAX_DISTANCE_OUTSIDE_NS: u64 = 1_000;

/// A hash of what distinguishes an event from others near in time: its CPU, its type, its thread, and the
/// text of a marker. The thread of a switch or a waking is the one that it is for: a Perfetto trace in its
/// compact form names no other.
fn key(event: &Event<'_>, event_type: &EventType) -> u64 {
    let mut hasher = DefaultHasher::new();
    (event.cpu, &event_type.name).hash(&mut hasher);
    let other_thread = match event_type.name.as_ref() {
        "print" => {
            let text = event_type.field("buf").and_then(|buf| event.text(event_type, buf));
            text.map(<[u8]>::trim_ascii_end).hash(&mut hasher);
            None
        }
        "sched_switch" => event_type.field("next_pid"),
        "sched_waking" | "sched_wakeup" => event_type.field("pid"),
        _ => None,
    };
    let other_thread = other_thread.and_then(|field| event.tid_at(event_type, field));
    other_thread.unwrap_or(event.tid).hash(&mut hasher);
    hasher.finish()
}

/// The times of events with one [`key`], sorted, and whether the current recording holds the event too.
type Times = Vec<(u64, bool)>;

/// Remembers the events of recordings, to find the same events in a later recording. Each remembered event
/// stands for one event of each later recording: an event that one recording holds twice is kept twice.
#[derive(Default)]
pub struct DuplicateFilter {
    /// Events of earlier recordings.
    earlier: HashMap<u64, Times>,
    /// The first and the last time of `earlier`.
    span: Option<(u64, u64)>,
    /// Times of events that only the current recording holds; they join `earlier` when the next recording
    /// begins.
    current: HashMap<u64, Vec<u64>>,
}

impl DuplicateFilter {
    /// Begins another recording: the events of the current one count as earlier from now on.
    pub fn next_recording(&mut self) {
        for (_, is_found) in self.earlier.values_mut().flatten() {
            *is_found = false;
        }
        for (key, times) in self.current.drain() {
            for time in &times {
                let (first, last) = self.span.unwrap_or((*time, *time));
                self.span = Some((first.min(*time), last.max(*time)));
            }
            let earlier = self.earlier.entry(key).or_default();
            earlier.extend(times.into_iter().map(|time| (time, false)));
            earlier.sort_unstable();
        }
    }

    /// Remembers an event of the current recording. The event's time is in the timeline's clock.
    pub fn remember(&mut self, event: &Event<'_>, event_type: &EventType) {
        self.current.entry(key(event, event_type)).or_default().push(event.ts.0);
    }

    /// Whether an earlier recording holds this event, and the current recording did not have it yet. The
    /// event's time is in the timeline's clock.
    pub fn is_duplicate(&mut self, event: &Event<'_>, event_type: &EventType) -> bool {
        let ts = event.ts.0;
        let is_inside = |(first, last): (u64, u64)| {
            ts.saturating_add(MAX_DISTANCE_OUTSIDE_NS) >= first
                && ts <= last.saturating_add(MAX_DISTANCE_OUTSIDE_NS)
        };
        if !self.span.is_some_and(is_inside) {
            return false;
        }
        let Some(times) = self.earlier.get_mut(&key(event, event_type)) else { return false };
        let from = times.partition_point(|(time, _)| time.saturating_add(MAX_DISTANCE_NS) < ts);
        let near =
            times[from..].iter_mut().take_while(|(time, _)| *time <= ts.saturating_add(MAX_DISTANCE_NS));
        let nearest = near.filter(|(_, is_found)| !is_found).min_by_key(|(time, _)| time.abs_diff(ts));
        nearest.map(|(_, is_found)| *is_found = true).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_data::{first_type_event, print_type};
    use super::*;
    use crate::formats::Value;

    /// A filter whose earlier recording holds markers with the text `x` at these times, ns.
    fn filter(times: &[u64]) -> DuplicateFilter {
        let mut filter = DuplicateFilter::default();
        for ts in times {
            filter.remember(&first_type_event(*ts, &[Value::Str(b"x")]), &print_type());
        }
        filter.next_recording();
        filter
    }

    fn is_duplicate(filter: &mut DuplicateFilter, ts: u64) -> bool {
        filter.is_duplicate(&first_type_event(ts, &[Value::Str(b"x")]), &print_type())
    }

    #[test]
    fn each_event_of_an_earlier_recording_stands_for_one_event_of_a_later_one() {
        let mut filter = filter(&[5_000, 5_000]);
        assert_eq!([(); 3].map(|()| is_duplicate(&mut filter, 5_000)), [true, true, false]);
        filter.next_recording();
        assert!(is_duplicate(&mut filter, 5_000), "a third recording may hold the event as well");
    }

    #[test]
    fn an_event_is_found_where_another_buffer_or_a_text_has_another_time_for_it() {
        assert!(is_duplicate(&mut filter(&[1_700]), 1_000), "cut");
        assert!(is_duplicate(&mut filter(&[1_700]), 2_000), "rounded up");
        assert!(is_duplicate(&mut filter(&[1_700, 900_000]), 4_816), "of another buffer");
        assert!(!is_duplicate(&mut filter(&[1_700, 900_000]), 101_701), "too far apart");
        assert!(!is_duplicate(&mut filter(&[1_700]), 4_816), "behind the end of the other recording");
        let mut both = filter(&[1_000, 4_000, 900_000]);
        assert_eq!([900, 3_800, 4_100].map(|ts| is_duplicate(&mut both, ts)), [true, true, false]);
    }

    #[test]
    fn another_text_is_another_event() {
        let mut filter = filter(&[5_000]);
        assert!(!filter.is_duplicate(&first_type_event(5_000, &[Value::Str(b"y")]), &print_type()));
        assert!(
            filter.is_duplicate(&first_type_event(5_000, &[Value::Str(b"x\n")]), &print_type()),
            "a line end"
        );
    }
}
