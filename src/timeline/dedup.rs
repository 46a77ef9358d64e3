//! Finds the events of a recording that another recording holds too.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::formats::{Event, EventType};

/// A hash of what distinguishes an event from all others: its time (in µs, the resolution of text
/// recordings), its CPU, its thread, its type, and the text of a marker.
fn key(micros: u64, event: &Event<'_>, event_type: &EventType) -> u64 {
    let mut hasher = DefaultHasher::new();
    (micros, event.cpu, event.tid, &event_type.name).hash(&mut hasher);
    if event_type.name == "print"
        && let Some(text) = event_type.field("buf").and_then(|buf| event.text(event_type, buf))
    {
        text.trim_ascii_end().hash(&mut hasher);
    }
    hasher.finish()
}

/// How many events with one [`key`] lie in the first and in the second half of their µs. A text recording
/// that rounds its times puts events of the second half into the next µs.
type HalfCounts = [u32; 2];

/// Remembers the events of recordings, to find the same events in a later recording. Each remembered event
/// stands for one event of each later recording: an event that one recording holds twice is kept twice.
#[derive(Default)]
pub struct DuplicateFilter {
    /// Events of earlier recordings.
    earlier: HashMap<u64, HalfCounts>,
    /// Events of `earlier` that the current recording holds too.
    found: HashMap<u64, HalfCounts>,
    /// Events that only the current recording holds; they join `earlier` when the next recording begins.
    current: HashMap<u64, HalfCounts>,
}

impl DuplicateFilter {
    /// Begins another recording: the events of the current one count as earlier from now on.
    pub fn next_recording(&mut self) {
        self.found.clear();
        for (key, [first, second]) in self.current.drain() {
            let counts = self.earlier.entry(key).or_default();
            counts[0] += first;
            counts[1] += second;
        }
    }

    /// Remembers an event of the current recording. The event's time is in the timeline's clock.
    pub fn remember(&mut self, event: &Event<'_>, event_type: &EventType) {
        let half = usize::from(event.ts.0 % 1_000 >= 500);
        self.current.entry(key(event.ts.0 / 1_000, event, event_type)).or_default()[half] += 1;
    }

    /// Whether an earlier recording holds this event, and the current recording did not have it yet. The
    /// event's time is in the timeline's clock. Text recordings cut or round their times to µs, so events
    /// at the cut time and at the rounded time are both looked for.
    pub fn is_duplicate(&mut self, event: &Event<'_>, event_type: &EventType) -> bool {
        let micros = event.ts.0 / 1_000;
        let own_key = key(micros, event, event_type);
        self.take(own_key, 0)
            || self.take(own_key, 1)
            || (micros > 0
                && !event.ts.is_finer_than_us()
                && self.take(key(micros - 1, event, event_type), 1))
    }

    /// Marks one earlier event with this key, in this half of its µs, as found. Returns `false` if all such
    /// events are found already.
    fn take(&mut self, key: u64, half: usize) -> bool {
        let Some(earlier) = self.earlier.get(&key).filter(|counts| counts[half] > 0) else { return false };
        let found = self.found.entry(key).or_default();
        let left = found[half] < earlier[half];
        found[half] += u32::from(left);
        left
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
    fn an_event_is_found_where_a_text_cut_its_time_or_rounded_it() {
        assert!(is_duplicate(&mut filter(&[1_700]), 1_000), "cut");
        assert!(is_duplicate(&mut filter(&[1_700]), 2_000), "rounded up");
        assert!(is_duplicate(&mut filter(&[1_400]), 1_000), "cut or rounded down");
        assert!(!is_duplicate(&mut filter(&[1_400]), 2_000), "nothing rounds 1.4 to 2");
        assert!(!is_duplicate(&mut filter(&[1_700]), 2_001), "a time in ns is not rounded");
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
