//! One recording that is running: its stream comes in, batches and messages go out.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use super::figures::LiveFigures;
use super::followed::Followed;
use super::kept::Kept;
use super::launches::ToldLaunches;
use super::pages::KeptPages;
use super::stream::{StreamReader, StreamSteps};
use super::trigger::{Met, Occurrence, Trigger, plain_name};
use super::watch::LiveWatch;
use crate::clock::Timestamp;
use crate::export::report_page::{RolledBatch, RolledTimes};
use crate::formats::trace_dat::{FollowedDat, TraceDatError};
use crate::ids::Cpu;
use crate::measure::Frame;
use crate::trace_dat::recorder_stream::{StreamError, StreamFault, StreamedHead};

/// The most bytes of pages that are kept, whatever the time that they are to be kept.
const MAX_KEPT_BYTES: usize = 512 << 20;
/// Pages that have come and wait for the end of their round are decoded all the same once they have so many
/// bytes.
const MAX_WAITING_BYTES: usize = 32 << 20;
/// A stream whose pages cover so much time, ns, and that had no round, is one without rounds.
const FIRST_ROUND_NS: u64 = 500_000_000;
/// The most notes about damage and what was given up that are told; later ones are only counted.
const MAX_TOLD: usize = 100;

/// The wishes for a recording that is followed.
#[derive(Debug, Clone)]
pub struct LiveOptions {
    /// How long pages are kept.
    pub keep: Duration,
    /// The package of the app whose numbers are wanted; without one they are those of all apps.
    pub app: Option<String>,
    /// The conditions that are watched for.
    pub triggers: Vec<Trigger>,
    /// The name of the recording, for people.
    pub title: String,
}

/// Something that a recording has to tell.
#[derive(Debug, Clone)]
pub enum LiveMessage {
    /// A batch of tracks (docs/live-format.md).
    Batch(Arc<[u8]>),
    /// A JSON object.
    Text(String),
    /// A trigger's condition was met.
    Triggered(Occurrence),
}

/// Why the rest of a stream cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The bytes are none of a recorder's stream.
    #[error("the recorder's stream, {0}")]
    Stream(#[from] StreamError),
    /// The head of the recording, with which the stream begins, cannot be read.
    #[error("the head of the recorder's stream: {0}")]
    Head(#[from] TraceDatError),
}

/// One recording that is running.
pub struct Live {
    stream: StreamReader,
    recording: LiveRecording,
}

/// The recording, whatever its streams are.
struct LiveRecording {
    options: LiveOptions,
    followed: Option<Followed>,
    /// Watches the tracks as soon as there are some.
    first_watch: LiveWatch,
    pages: KeptPages,
    /// All events before this time of the pages' clock have come.
    round: Option<Timestamp>,
    /// The earliest and the latest time of a page of this stream, in the recording's clock.
    page_times: Option<(Timestamp, Timestamp)>,
    head_error: Option<TraceDatError>,
    /// The session's start, and the end of the last batch.
    start: Option<Timestamp>,
    to: Timestamp,
    batches: u64,
    /// The counts of streams before this one, and those that the last batch told.
    before: EventCounts,
    told: EventCounts,
    figures: LiveFigures,
    launches: ToldLaunches,
    /// The text about a connection that was lost, until a stream begins behind it.
    lost_connection: Option<String>,
    /// The same from then on until the stream's first event.
    gap: Option<String>,
    waiting: Vec<LiveMessage>,
    told_notes: usize,
    is_limit_told: bool,
    given_up: u64,
}

/// How many events came and were lost.
#[derive(Debug, Clone, Copy, Default)]
struct EventCounts {
    events: u64,
    lost: u64,
}

impl Live {
    /// A recording of which nothing has come yet.
    pub fn new(options: LiveOptions) -> Live {
        let keep_ns = u64::try_from(options.keep.as_nanos()).unwrap_or(u64::MAX);
        let recording = LiveRecording {
            followed: None,
            first_watch: LiveWatch::new(options.app.clone(), options.triggers.clone()),
            pages: KeptPages::new(keep_ns, MAX_KEPT_BYTES),
            round: None,
            page_times: None,
            head_error: None,
            start: None,
            to: Timestamp::MIN,
            batches: 0,
            before: EventCounts::default(),
            told: EventCounts::default(),
            figures: LiveFigures::default(),
            launches: ToldLaunches::default(),
            lost_connection: None,
            gap: None,
            waiting: Vec::new(),
            told_notes: 0,
            is_limit_told: false,
            given_up: 0,
            options,
        };
        Live { stream: StreamReader::new(), recording }
    }

    /// Takes bytes of the recorder's stream, in any pieces.
    ///
    /// # Errors
    /// [`LiveError`] for bytes that are none of a stream. What came before them stays.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), LiveError> {
        let fed = self.stream.feed(bytes, &mut self.recording);
        match self.recording.head_error.take() {
            Some(error) => Err(LiveError::Head(error)),
            None => Ok(fed?),
        }
    }

    /// The stream broke off: the next bytes are the begin of a new stream of the same device.
    pub fn connection_lost(&mut self, text: &str) {
        if self.stream.is_empty() {
            return;
        }
        self.stream = StreamReader::new();
        self.recording.end_stream();
        self.recording.lost_connection = Some(text.to_owned());
    }

    /// Returns what has become complete since the last call. With `is_last` the stream has ended, and
    /// everything that is open ends.
    pub fn batch(&mut self, is_last: bool) -> Vec<LiveMessage> {
        let recording = &mut self.recording;
        if is_last {
            recording.end_stream();
        } else {
            recording.advance(false);
        }
        std::mem::take(&mut recording.waiting)
    }

    /// Has the marker of this name, which is about to be written, be told when it comes.
    pub fn await_mark(&mut self, name: &str) {
        self.recording.watch().await_mark(name);
    }

    /// A marker that was awaited has not been written.
    pub fn forget_mark(&mut self, name: &str) {
        self.recording.watch().forget_mark(name);
    }

    /// The last time that is known, ns since the session's start.
    pub fn end_ns(&self) -> u64 {
        self.recording.to.since(self.recording.start.unwrap_or(self.recording.to))
    }

    /// The name of the clock whose times the recording has; `None` before its head has come.
    pub fn clock(&self) -> Option<&'static str> {
        self.recording.followed.as_ref().map(|followed| followed.dat.clock().name())
    }

    /// The session's start, in the recording's clock; `None` before the first event.
    pub fn start(&self) -> Option<Timestamp> {
        self.recording.start
    }

    /// Whether the stream has said that it is complete.
    pub fn is_ended(&self) -> bool {
        self.stream.is_ended()
    }

    /// The pages that are kept. The call copies none of them.
    pub fn kept(&self) -> Kept {
        let LiveRecording { pages, options, start, to, .. } = &self.recording;
        pages.kept(&options.title, start.map(|start| (start, *to)))
    }
}

impl StreamSteps for LiveRecording {
    fn head(&mut self, head: &StreamedHead) -> Result<(), StreamFault> {
        let dat = FollowedDat::open(&head.bytes, head.info.cpus).map_err(|error| {
            self.head_error = Some(error);
            StreamFault::NoHead
        })?;
        let before = self.followed.take();
        self.before = self.told;
        self.gap = self.lost_connection.take();
        let continues = before.as_ref().is_some_and(|before| before.dat.has_formats_of(&dat));
        let watch = match before {
            Some(mut before) => std::mem::take(before.watch()),
            None => std::mem::take(&mut self.first_watch),
        };
        self.pages.begin(head, continues);
        self.round = None;
        self.page_times = None;
        self.followed = Some(Followed::new(dat, watch));
        Ok(())
    }

    fn page(&mut self, cpu: Cpu, page: &[u8]) -> Result<(), StreamFault> {
        let followed = self.followed.as_mut().ok_or(StreamFault::NoHead)?;
        let page = followed.dat.add_page(cpu, page).ok_or(StreamFault::UnknownCpu)?;
        let (first, last) = self.page_times.unwrap_or((page.ts, page.ts));
        self.page_times = Some((first.min(page.ts), last.max(page.ts)));
        self.pages.add(cpu, page);
        if followed.dat.pending_bytes() > MAX_WAITING_BYTES {
            self.advance(true);
        }
        Ok(())
    }

    fn patched(&mut self, head: &StreamedHead) {
        self.pages.set_head(head);
        if let Some(Followed { dat, tracks }) = &mut self.followed {
            // The tracks' sinks do not fail.
            let _ = dat.renew_head(&head.bytes, tracks);
        }
    }

    fn round(&mut self, ts: Timestamp) {
        self.round = self.round.max(Some(ts));
    }
}

/// The begin of a batch.
#[derive(Serialize)]
struct BatchHead<'a> {
    batch: u64,
    start_ns: String,
    from_ns: u64,
    to_ns: u64,
    events: u64,
    lost: u64,
    /// An open item that a batch does not repeat goes on.
    open_kept: bool,
    #[serde(flatten)]
    tracks: &'a RolledBatch,
}

impl LiveRecording {
    /// Decodes what has come up to the last round, and makes a batch of it. Without rounds, and with `all`,
    /// everything that has come is decoded.
    fn advance(&mut self, all: bool) {
        let Some(Followed { dat, tracks }) = &mut self.followed else { return };
        let until = self.round.filter(|_| !all);
        // Before the first round nobody knows whether the pages of all CPUs have come.
        let waited = self.page_times.map_or(0, |(first, last)| last.since(first));
        if until.is_none() && !all && waited < FIRST_ROUND_NS {
            return;
        }
        // The tracks' sinks do not fail.
        let _ = dat.push(until, tracks);
        let Some(first) = dat.first_ts() else { return };
        let last = dat.last_ts().unwrap_or(first);
        let to = until.map_or(last, |until| dat.time_of(until).max(last));
        self.begin_at(first);
        self.make_batch(to, false);
    }

    /// Decodes everything that has come, and ends everything that is open.
    fn end_stream(&mut self) {
        let Some(Followed { dat, tracks }) = &mut self.followed else { return };
        let _ = dat.push(None, tracks);
        let Some(first) = dat.first_ts() else { return };
        let last = dat.last_ts().unwrap_or(first);
        let end = tracks.last_ts();
        let _ = tracks.close(end);
        self.begin_at(first);
        self.make_batch(last, true);
    }

    /// The first event of a stream has come.
    fn begin_at(&mut self, first: Timestamp) {
        let start = *self.start.get_or_insert(first);
        if let Some(text) = self.gap.take() {
            let from = self.to.since(start);
            let to = first.since(start).max(from);
            self.tell(&json!({ "kind": "gap", "from_ns": from, "to_ns": to, "text": text }));
            self.to = self.to.max(first);
        }
        if self.batches == 0 {
            self.to = start;
        }
    }

    fn watch(&mut self) -> &mut LiveWatch {
        match &mut self.followed {
            Some(followed) => followed.watch(),
            None => &mut self.first_watch,
        }
    }

    fn tell(&mut self, message: &serde_json::Value) {
        self.waiting.push(LiveMessage::Text(message.to_string()));
    }

    /// Tells of something that went wrong, as long as there is not too much of it.
    fn note(&mut self, text: &str) {
        self.told_notes += 1;
        if self.told_notes <= MAX_TOLD {
            self.tell(&json!({ "kind": "error", "text": text }));
        }
    }

    /// Makes a batch that ends at the time `to`, of everything that is complete.
    fn make_batch(&mut self, to: Timestamp, is_last: bool) {
        let Some(Followed { dat, tracks }) = &mut self.followed else { return };
        let start = self.start.unwrap_or(to);
        let from = self.to.max(start);
        let to = to.max(from);
        let counts = dat.counts();
        let now =
            EventCounts { events: self.before.events + counts.events, lost: self.before.lost + counts.lost };
        let events = now.events - self.told.events;
        let lost = now.lost.saturating_sub(self.told.lost);
        let (both, open) = tracks.split();
        let (page, watch) = both.parts();
        let frames = page.take_frames(open.tasks, to, is_last);
        let batch = page.take_batch(RolledTimes { start, to, is_last }, open, &frames);
        self.launches.look(page, open.tasks, to, is_last);
        watch.forget_names();
        frames.iter().for_each(|frame| meet_frame(watch, frame));
        self.launches.new.iter().for_each(|launch| watch.met_launch(launch));
        self.figures.add(to, events, lost, &frames, self.options.app.as_deref());
        let given_up = tracks.forget() + batch.given_up;
        let (damage, damaged) = dat.take_damage();
        dat.forget();
        self.told = now;
        let is_new = to > from || events > 0 || !frames.is_empty() || is_last && !batch.is_empty();
        if is_new {
            self.batches += 1;
            self.to = to;
            let head = BatchHead {
                batch: self.batches,
                start_ns: start.to_string(),
                from_ns: from - start,
                to_ns: to - start,
                events,
                lost,
                open_kept: true,
                tracks: &batch,
            };
            self.waiting.extend(encode(&head).map(LiveMessage::Batch));
        }
        self.pages.trim(to);
        self.tell_of_the_batch(start, to, is_last);
        self.tell_of_damage(&damage, damaged, given_up);
    }

    /// The messages that belong to the batch that ends at `to`.
    fn tell_of_the_batch(&mut self, start: Timestamp, to: Timestamp, is_last: bool) {
        let Some(followed) = &mut self.followed else { return };
        let watch = followed.watch();
        let marks = std::mem::take(&mut watch.marks);
        let lost_marks = watch.give_up_marks(to);
        let occurrences = std::mem::take(&mut watch.occurrences);
        let left_out = std::mem::take(&mut watch.left_out);
        let has_app = self.options.app.is_some();
        let figures = self.figures.due(to, start, is_last, has_app.then_some(&*watch));
        let launches: Vec<serde_json::Value> =
            std::mem::take(&mut self.launches.told).iter().map(|launch| launch.json(start)).collect();
        self.launches.new.clear();
        for (name, ts) in marks {
            self.tell(&json!({ "kind": "mark", "name": name, "at_ns": ts.since(start) }));
        }
        for name in lost_marks {
            self.note(&format!("the marker {name:?} was written, and is not in the recording"));
        }
        figures.iter().chain(&launches).for_each(|message| self.tell(message));
        let occurrences = occurrences.into_iter().map(|met| met.in_session(start));
        self.waiting.extend(occurrences.map(LiveMessage::Triggered));
        if left_out > 0 {
            self.note(&format!("{left_out} more conditions were met at the same time: they are left out"));
        }
    }

    fn tell_of_damage(&mut self, damage: &[String], damaged: u64, given_up: u64) {
        damage.iter().for_each(|line| self.note(&format!("damaged page: {line}")));
        let unlisted = damaged.saturating_sub(damage.len() as u64);
        if unlisted > 0 {
            self.note(&format!("{unlisted} more damaged pages"));
        }
        if given_up > 0 {
            let was_told = self.given_up > 0;
            self.given_up += given_up;
            if !was_told {
                self.note("slices, threads or messages that never end are too many: the oldest are given up");
            }
        }
        if self.pages.is_over_limit && !std::mem::replace(&mut self.is_limit_told, true) {
            let limit = MAX_KEPT_BYTES >> 20;
            self.note(&format!(
                "more than {limit} MiB in the time that is kept: the oldest pages are dropped"
            ));
        }
    }
}

fn meet_frame(watch: &mut LiveWatch, frame: &Frame) {
    let Some(overrun) = frame.overrun() else { return };
    let met = watch.triggers.iter().filter(|trigger| trigger.is_met_by_frame(overrun));
    let met: Vec<String> = met.map(|trigger| trigger.text().to_owned()).collect();
    for trigger in met {
        let number = frame.id.map_or_else(String::new, |id| format!(" {id}"));
        let by = overrun as f64 / 1e6;
        let text = format!("frame{number} of {} ended {by:.1} ms after its deadline", frame.package);
        let what = plain_name(&format!("frame{}", number.replace(' ', "-")));
        watch.met(Met { ts: frame.end, trigger, what, text });
    }
}

/// The length of the JSON text, the text, and the columns.
fn encode(head: &BatchHead<'_>) -> Option<Arc<[u8]>> {
    let mut out = vec![0; size_of::<u32>()];
    serde_json::to_writer(&mut out, head).ok()?;
    let len = u32::try_from(out.len() - size_of::<u32>()).ok()?;
    out[..size_of::<u32>()].copy_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&head.tracks.columns);
    Some(out.into())
}
