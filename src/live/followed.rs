//! A recording whose pages are decoded as they come: from pages to tracks.

use std::io;
use std::sync::Arc;

use super::watch::LiveWatch;
use crate::export::report_page::PageCollector;
use crate::formats::trace_dat::FollowedDat;
use crate::formats::{Event, EventType, EventTypeId, Head, ProcessInfo, Sink, ThreadInfo};
use crate::ftrace::print_fmt::Symbolizer;
use crate::ids::Cpu;
use crate::tracks::{Both, TrackBuilder};

/// Makes tracks of events, and has them collected and watched.
pub(super) struct LiveTracks {
    pub builder: TrackBuilder<Both<PageCollector, LiveWatch>>,
}

impl LiveTracks {
    pub fn new(watch: LiveWatch) -> LiveTracks {
        LiveTracks { builder: TrackBuilder::new(Both::new(PageCollector::default(), watch)) }
    }

    pub fn page(&mut self) -> &mut PageCollector {
        self.builder.sink().parts().0
    }

    pub fn watch(&mut self) -> &mut LiveWatch {
        self.builder.sink().parts().1
    }
}

impl Sink for LiveTracks {
    fn head(&mut self, head: &Head) -> io::Result<()> {
        self.builder.head(head)
    }

    fn event_type(&mut self, id: EventTypeId, kind: &EventType) -> io::Result<()> {
        self.page().event_type();
        self.builder.event_type(id, kind)
    }

    fn kernel(&mut self, symbolizer: &Arc<Symbolizer>) -> io::Result<()> {
        self.page().kernel(symbolizer);
        self.builder.kernel(symbolizer)
    }

    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        self.builder.thread(thread)
    }

    fn process(&mut self, process: &ProcessInfo<'_>) -> io::Result<()> {
        self.builder.process(process)
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        self.builder.event(event, kind)
    }

    fn lost(&mut self, cpu: Cpu, count: Option<u64>) -> io::Result<()> {
        self.builder.lost(cpu, count)
    }
}

/// One stream of a recording, as far as it has been decoded.
pub(super) struct Followed {
    pub dat: FollowedDat,
    pub tracks: LiveTracks,
}
