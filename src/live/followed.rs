//! A recording whose pages are decoded as they come: from pages to tracks.

use super::watch::LiveWatch;
use crate::export::report_page::PageCollector;
use crate::formats::trace_dat::FollowedDat;
use crate::tracks::{Both, TrackBuilder};

/// Makes tracks of events, and has them collected and watched.
pub(super) type LiveTracks = TrackBuilder<Both<PageCollector, LiveWatch>>;

/// One stream of a recording, as far as it has been decoded.
pub(super) struct Followed {
    pub dat: FollowedDat,
    pub tracks: LiveTracks,
}

impl Followed {
    pub fn new(dat: FollowedDat, watch: LiveWatch) -> Followed {
        Followed { dat, tracks: TrackBuilder::new(Both::new(PageCollector::default(), watch)) }
    }

    pub fn watch(&mut self) -> &mut LiveWatch {
        self.tracks.sink().parts().1
    }
}
