//! The events of the tracks that programs write themselves.

use std::io;

use super::builder::TrackBuilder;
use super::sink::{OwnTrack, Span, TrackSink};
use crate::formats::{OwnedTrackEvent, Track, TrackEvent, TrackEventKind, TrackOwner};

impl<S: TrackSink> TrackBuilder<S> {
    pub(super) fn add_track(&mut self, track: &Track<'_>) {
        let (tid, tgid) = match track.owner {
            TrackOwner::Thread { tid, tgid } => (Some(tid), tgid),
            _ => (None, None),
        };
        if let Some(tid) = tid {
            let name = (!track.owner_name.is_empty()).then_some(track.owner_name);
            self.tasks.threads.learn(tid, tgid, name);
        }
        self.own_tracks.push(OwnTrack {
            id: track.id,
            name: String::from_utf8_lossy(track.name).into_owned(),
            owner: track.owner,
            open: Vec::new(),
        });
    }

    pub(super) fn own_track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        self.last_ts = self.last_ts.max(event.ts);
        let Some(track) = self.own_tracks.get_mut(event.track.0 as usize) else { return Ok(()) };
        match event.kind {
            TrackEventKind::Begin { name } => {
                self.sink.track_begin(track, event.ts, name)?;
                track.open.push((event.ts, name.to_vec()));
            }
            TrackEventKind::End => {
                // Without a begin, the slice began before the recording.
                if let Some((start, name)) = track.open.pop() {
                    let span = Span { start, end: event.ts, open: false };
                    let depth = track.open.len();
                    self.sink.track_slice(track, span, &name, depth)?;
                }
            }
            TrackEventKind::Instant { name } => self.sink.track_instant(track, event.ts, name)?,
            TrackEventKind::Counter(value) => self.sink.track_counter(track, event.ts, value)?,
            TrackEventKind::Frame(frame) => match frame.end {
                Some(end) => {
                    self.last_ts = self.last_ts.max(end);
                    let span = Span { start: event.ts, end, open: false };
                    self.sink.frame(&self.tasks, track, span, frame)?;
                }
                None => self.open_frames.push(OwnedTrackEvent::new(event)),
            },
        }
        for flow in event.flows {
            self.sink.track_flow(track, event.ts, *flow)?;
        }
        Ok(())
    }

    /// Ends at `end` the slices that no event ended.
    pub(super) fn close_track_slices(&mut self, end: u64) -> io::Result<()> {
        for track in &mut self.own_tracks {
            while let Some((start, name)) = track.open.pop() {
                let depth = track.open.len();
                self.sink.track_slice(track, Span { start, end, open: true }, &name, depth)?;
            }
        }
        Ok(())
    }

    /// Passes on the frames whose end is not known. They end at `end`.
    pub(super) fn close_frames(&mut self, end: u64) -> io::Result<()> {
        for open in std::mem::take(&mut self.open_frames) {
            open.with_event(|event| {
                let TrackEventKind::Frame(frame) = event.kind else { return Ok(()) };
                let Some(track) = self.own_tracks.get(event.track.0 as usize) else { return Ok(()) };
                let span = Span { start: event.ts, end: end.max(event.ts), open: true };
                self.sink.frame(&self.tasks, track, span, frame)
            })?;
        }
        Ok(())
    }
}
