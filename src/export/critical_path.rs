//! Adds the critical path of each launch and of each late frame to an output, as tracks.

use std::io;

use crate::clock::Timestamp;
use crate::formats::{SinkAdapter, Track, TrackEvent, TrackEventKind, TrackId, TrackKind, TrackOwner};
use crate::timeline::{MergeSummary, TimelineAdapter, TimelineSink};
use crate::why::{Explanation, Model};

/// Passes a timeline on, and at its end the critical paths.
pub(super) struct WithCriticalPaths<'a> {
    next: &'a mut dyn TimelineSink,
    paths: Vec<Explanation>,
    /// The number of the next track.
    next_track: u32,
}

impl<'a> WithCriticalPaths<'a> {
    /// Adds the paths of the launches and late frames of `model` to what `next` receives.
    pub fn new(next: &'a mut dyn TimelineSink, model: &Model) -> WithCriticalPaths<'a> {
        let paths = model.measured_spans().iter().map(|span| model.explain(&span.asked)).collect();
        WithCriticalPaths { next, paths, next_track: 0 }
    }

    fn add_paths(&mut self) -> io::Result<()> {
        let mut paths = std::mem::take(&mut self.paths);
        paths.sort_by_key(|path| path.begin);
        // The end of the last span on each track: spans that overlap lie on tracks of their own.
        let mut tracks: Vec<(Timestamp, TrackId)> = Vec::new();
        for path in &paths {
            let end = path.begin + path.duration;
            let free = tracks.iter_mut().find(|(last, _)| *last <= path.begin);
            let track = if let Some((last, track)) = free {
                *last = end;
                *track
            } else {
                let track = self.add_track()?;
                tracks.push((end, track));
                track
            };
            self.add_path(track, path)?;
        }
        Ok(())
    }

    fn add_track(&mut self) -> io::Result<TrackId> {
        let id = TrackId(self.next_track);
        self.next_track += 1;
        self.next.track(&Track {
            id,
            name: b"Critical path",
            owner_name: b"",
            owner: TrackOwner::Machine,
            kind: TrackKind::Slices,
        })?;
        Ok(id)
    }

    /// Adds a slice of the span, and in it one for each stretch that has one cause.
    fn add_path(&mut self, track: TrackId, path: &Explanation) -> io::Result<()> {
        let mut stretches: Vec<(Timestamp, Timestamp, String)> = Vec::new();
        for part in &path.causes {
            let subject =
                if part.subject.is_empty() { String::new() } else { format!(" ({})", part.subject) };
            let name = format!("{}{subject}", part.path_text());
            stretches.extend(part.intervals.iter().map(|(start, end)| (*start, *end, name.clone())));
        }
        stretches.sort_unstable();
        self.slice(track, path.begin, &path.what)?;
        for (start, end, name) in &stretches {
            self.slice(track, *start, name)?;
            self.end(track, *end)?;
        }
        self.end(track, path.begin + path.duration)
    }

    fn slice(&mut self, track: TrackId, ts: Timestamp, name: &str) -> io::Result<()> {
        let kind = TrackEventKind::Begin { name: name.as_bytes() };
        self.next.track_event(&TrackEvent { ts, track, kind, thread_ns: None, flows: &[], args: &[] })
    }

    fn end(&mut self, track: TrackId, ts: Timestamp) -> io::Result<()> {
        let kind = TrackEventKind::End;
        self.next.track_event(&TrackEvent { ts, track, kind, thread_ns: None, flows: &[], args: &[] })
    }
}

impl<'a> SinkAdapter for WithCriticalPaths<'a> {
    type Next = dyn TimelineSink + 'a;

    fn next(&mut self) -> &mut Self::Next {
        self.next
    }

    fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
        self.next_track = self.next_track.max(track.id.0 + 1);
        self.next.track(track)
    }
}

impl TimelineAdapter for WithCriticalPaths<'_> {
    fn finish(&mut self, summary: &MergeSummary) -> io::Result<()> {
        self.add_paths()?;
        self.next.finish(summary)
    }
}
