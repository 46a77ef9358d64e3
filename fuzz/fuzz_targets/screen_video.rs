//! Any bytes into the reader of videos of the screen: no panic, no hang, no memory beyond the size of the
//! file; frames come in order of time, and as many as the report counts.
#![no_main]

use std::io;

use libfuzzer_sys::fuzz_target;
use tracebridge::clock::Timestamp;
use tracebridge::formats::{Event, EventType, Order, Sink, TrackEvent, screen_video};

/// Checks the order of the frames.
#[derive(Default)]
struct Frames {
    count: u64,
    last: Timestamp,
}

impl Sink for Frames {
    fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
        Ok(())
    }

    fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        assert!(self.last <= event.ts);
        self.last = event.ts;
        self.count += 1;
        Ok(())
    }
}

fuzz_target!(|data: &[u8]| {
    let mut frames = Frames::default();
    if let Ok(report) = screen_video::read(data, Order::Time, &mut frames) {
        assert_eq!(frames.count, report.track_events.instants);
        assert!(frames.count > 0 && frames.count <= data.len() as u64 / 8);
    }
});
