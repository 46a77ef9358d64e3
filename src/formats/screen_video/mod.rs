//! Videos of the screen as Android's `screenrecord` writes them: MP4 files with a table of the frames' times
//! (AOSP `frameworks/av/cmds/screenrecord`). The pictures themselves are not read.
//!
//! Of MP4 (ISO/IEC 14496-12) only the boxes are read that tell how many frames the video track has, and when
//! a player shows them. The table, which is there for Winscope, has the time of each frame since boot.

mod error;
mod frame_table;
mod mp4;

use std::io;

pub use self::error::VideoError;
use self::frame_table::{FrameTable, TableClock, find_table};
use self::mp4::{CutBox, Mp4, VideoTrack, read_mp4};
use super::input::Input;
use super::{
    Damage, FormatError, FormatId, Head, OpenedInput, Order, ReadReport, Recording, ScreenVideo, Sink, Track,
    TrackEvent, TrackEventKind, TrackId, TrackKind, TrackOwner, VideoFrame, video_time,
};
use crate::clock::{Clock, Snapshots, Timestamp};

/// The name of the track of a video's frames.
pub const VIDEO_TRACK: &str = "screen video";
/// The video's own times and those of the table come from the same readings of the clock. Where they differ
/// by more than this, ns, another program has changed the video.
const MAX_DRIFT_NS: u64 = 50_000_000;

/// Whether the bytes are those of an MP4 file.
pub(super) fn detect(bytes: &[u8]) -> bool {
    const LARGEST_FIRST_BOX: u32 = 4096;
    let Some((size, rest)) = bytes.split_first_chunk() else { return false };
    (8..=LARGEST_FIRST_BOX).contains(&u32::from_be_bytes(*size)) && rest.starts_with(b"ftyp")
}

/// Opens `input` as a video of the screen.
pub(super) fn open(input: &Input) -> Result<OpenedInput<'_>, FormatError> {
    Ok(OpenedInput::Recording(Box::new(VideoRecording::parse(input, &mut |at| input.release_pages(at))?)))
}

/// Opens a video of the screen and pushes its frames to `sink`.
///
/// # Errors
/// Those of the sink, and [`VideoError`] as [`io::ErrorKind::InvalidData`].
pub fn read(data: &[u8], order: Order, sink: &mut dyn Sink) -> io::Result<ReadReport> {
    let video = VideoRecording::parse(data, &mut |_| {});
    video.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?.read(order, sink)
}

/// A video of the screen, opened: its table is read.
pub struct VideoRecording {
    head: Head,
    video: ScreenVideo,
    report: ReadReport,
}

impl VideoRecording {
    /// Reads the index and the table in `data`. `release` is told of bytes that are not needed any more.
    ///
    /// # Errors
    /// [`VideoError`].
    fn parse(
        data: &[u8],
        release: &mut dyn FnMut(std::ops::Range<usize>),
    ) -> Result<VideoRecording, VideoError> {
        let mp4 = read_mp4(data);
        let found = find_table(data, release)?;
        let Some(table) = found else { return Err(without_table(&mp4, data.len())) };
        let mut report = ReadReport::default();
        report.damage.extend(mp4.damage.iter().cloned());
        report.damage.extend(table.damage.iter().cloned());
        report.notes.extend(mp4.notes());
        report.damage.extend(without_pictures(&mp4, data.len()));
        let video = joined(&table, mp4.track.as_ref(), &mut report);
        if video.frames.is_empty() {
            return Err(VideoError::NoFrames { offset: table.offset });
        }
        report.track_events.instants = video.frames.len() as u64;
        report.first_ts = video.frames.first().map(|frame| frame.ts);
        report.last_ts = video.frames.last().map(|frame| frame.ts);
        let head = Head {
            format: FormatId::ScreenVideo.name().to_owned(),
            clock: match table.clock {
                TableClock::Boot { .. } => Clock::Boottime,
                TableClock::Monotonic => Clock::Monotonic,
            },
            precision: if matches!(table.clock, TableClock::Boot { is_whole_us: true }) { 6 } else { 9 },
            snapshots: Snapshots::default(),
            cpus: None,
            machine: None,
            device: None,
            android_sdk: None,
            facts: None,
        };
        Ok(VideoRecording { head, video, report })
    }
}

/// The damage of a file whose table is there, and whose end or whose index is not.
fn without_pictures(mp4: &Mp4<'_>, end: usize) -> Option<Damage> {
    let fault = match &mp4.cut {
        Some(CutBox { kind, offset, size }) => {
            format!(
                "the file ends inside of its box {kind}, which begins at byte {offset} and has {size} bytes"
            )
        }
        None if !mp4.has_index => "the file ends before its index (the box moov)".to_owned(),
        None if mp4.track.is_none() => "the file has no video track with a whole index".to_owned(),
        None => return None,
    };
    let what = format!("{fault}: the frames have times, and a player may not show them");
    Some(Damage { offset: end as u64, what })
}

/// The error about a file without a table.
fn without_table(mp4: &Mp4<'_>, end: usize) -> VideoError {
    match &mp4.cut {
        Some(cut) => VideoError::Cut { kind: cut.kind.clone(), offset: cut.offset, size: cut.size, end },
        None if !mp4.has_index => VideoError::NoIndex { end },
        None => VideoError::NoTable,
    }
}

/// The frames of the table with the times of the video track; what disagrees goes into the report.
fn joined(table: &FrameTable, track: Option<&VideoTrack<'_>>, report: &mut ReadReport) -> ScreenVideo {
    let Some(first) = table.times.first().copied() else { return ScreenVideo::default() };
    let mut damage = |what| report.damage.push(Damage { offset: table.offset as u64, what });
    let listed = table.listed;
    if let Some(track) = track.filter(|track| track.frames != listed) {
        damage(format!(
            "the table lists the times of {listed} frames, and the video track has {} frames: the frames that \
             only one of them has are left out",
            track.frames
        ));
    }
    let mut own_times = track.and_then(VideoTrack::frame_times);
    let count = track.map_or(listed, |track| track.frames.min(listed));
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(table.times.len());
    let mut frames: Vec<VideoFrame> = Vec::with_capacity(count);
    let mut backwards = 0;
    let mut drift = 0;
    for ts in table.times.iter().take(count) {
        let last = frames.last().map_or(Timestamp::MIN, |frame| frame.ts);
        backwards += u64::from(*ts < last);
        let ts = (*ts).max(last);
        let by_table = ts.since(first);
        let video_ns = own_times.as_mut().and_then(Iterator::next).unwrap_or(by_table);
        drift = drift.max(video_ns.abs_diff(by_table));
        frames.push(VideoFrame { ts, video_ns });
    }
    if backwards > 0 {
        report.irregular.push(format!(
            "{backwards} frames of the table are earlier than the frame before them: they count as shown with it"
        ));
    }
    if drift > MAX_DRIFT_NS {
        report.irregular.push(format!(
            "1 video whose own times differ from those of its table by up to {:.3} s: pictures are looked up by \
             the number of the frame",
            drift as f64 / 1e9
        ));
    }
    let last_ns = frames.last().map_or(0, |frame| frame.video_ns);
    ScreenVideo {
        frames,
        track_frames: track.map(|track| track.frames),
        length_ns: track.map_or(0, VideoTrack::length_ns).max(last_ns),
        wall_start: table.realtime_offset_ns.and_then(|offset| first.checked_add_signed(offset)),
    }
}

impl Recording for VideoRecording {
    fn head(&self) -> &Head {
        &self.head
    }

    fn read(&self, _: Order, sink: &mut dyn Sink) -> io::Result<ReadReport> {
        sink.head(&self.head)?;
        let id = TrackId(0);
        let name = VIDEO_TRACK.as_bytes();
        let owner = TrackOwner::Machine;
        sink.track(&Track { id, name, owner_name: b"", owner, kind: TrackKind::Slices })?;
        for (number, frame) in self.video.frames.iter().enumerate() {
            let name = format!("frame {number}, {}", video_time(frame.video_ns));
            let kind = TrackEventKind::Instant { name: name.as_bytes() };
            let event = TrackEvent { ts: frame.ts, track: id, kind, thread_ns: None, flows: &[], args: &[] };
            sink.track_event(&event)?;
        }
        Ok(self.report.clone())
    }

    fn video(&self) -> Option<&ScreenVideo> {
        Some(&self.video)
    }
}

#[cfg(test)]
mod tests;
