//! Any bytes into the reader of strace's output: no panic, no hang, no memory beyond
//! reason; the events of a track come in order of time.
#![no_main]

use std::io;

use libfuzzer_sys::fuzz_target;
use tracebridge::formats::{Event, EventType, Order, Sink, Track, TrackEvent, strace};

/// Checks the order of the events.
#[derive(Default)]
struct Checked {
    last: Vec<u64>,
}

impl Sink for Checked {
    fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
        Ok(())
    }

    fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
        assert_eq!(track.id.0 as usize, self.last.len());
        self.last.push(0);
        Ok(())
    }

    fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        let last = &mut self.last[event.track.0 as usize];
        assert!(*last <= event.ts);
        *last = event.ts;
        Ok(())
    }
}

fuzz_target!(|data: &[u8]| {
    let _ = strace::read(data, Order::Time, &mut Checked::default());
});
