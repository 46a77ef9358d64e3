//! What several targets share.

use std::io;

use tracebridge::formats::{Event, EventType, Sink, event_catalog};

/// Renders every event as a text would have it, and throws it away.
#[derive(Default)]
pub struct Render(Vec<u8>);

impl Sink for Render {
    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        self.0.clear();
        event_catalog::render(event, kind, &mut self.0);
        Ok(())
    }
}
