//! The spans that can be asked about: launches, frames, slices, calls of methods, and stretches of a thread.

use super::kept_time::KeptTime;
use super::model::{Model, ThreadHistory};
use super::slices::Slice;
use crate::clock::Timestamp;
use crate::ids::Tid;
use crate::measure::{Frame, Launch, LaunchType, Measured, late_frames};
use crate::text::duration;

/// A question about a timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Question {
    /// The first launch; else the late frames; else the longest slices of a main thread.
    Usual,
    /// The launch with this number, from 1 on.
    LaunchNumber(usize),
    /// All launches of a package.
    LaunchOf(String),
    /// The frame with this number.
    Frame(i64),
    /// All frames that ended after their deadline; without deadlines those that took long.
    LateFrames,
    /// All slices of this name.
    Slice(String),
    /// All calls of this method.
    Method(String),
    /// A stretch of a thread, in ns after the timeline's begin.
    Stretch { thread: String, from_ns: Option<u64>, to_ns: Option<u64> },
}

impl Question {
    /// A launch by its number, or all launches of a package.
    pub(crate) fn of_launch(text: &str) -> Question {
        text.parse().map_or_else(|_| Question::LaunchOf(text.to_owned()), Question::LaunchNumber)
    }

    /// A frame by its number, or all late frames by the word `late`; `None` for any other text.
    pub(crate) fn of_frame(text: &str) -> Option<Question> {
        match text {
            "late" => Some(Question::LateFrames),
            number => number.parse().ok().map(Question::Frame),
        }
    }

    /// The time that the question is about, by the launches and frames that were found beforehand; all time,
    /// where these do not tell it.
    pub(crate) fn kept_time(&self, measured: Measured) -> KeptTime {
        let of_launches = measured.launches.iter().filter_map(|launch| launch.main_tid);
        let of_frames = measured.frames.iter().flat_map(Frame::tids);
        let threads: Vec<Tid> = of_launches.chain(of_frames).collect();
        let model = Model { measured, ..Model::default() };
        let spans = match self {
            Question::Slice(_) | Question::Method(_) | Question::Stretch { .. } => {
                return KeptTime::default();
            }
            Question::Usual => match model.usual() {
                Ok(spans) => spans,
                Err(_) => return KeptTime::default(),
            },
            _ => model.spans(self).unwrap_or_default(),
        };
        KeptTime::of_spans(spans.iter().map(|span| (span.begin, span.end)), threads)
    }
}

/// The most spans that one question explains, the longest ones.
pub(crate) const MAX_SPANS: usize = 10_000;
/// The longest slices that are explained where nothing is asked.
const USUAL_SLICES: usize = 5;
/// How many similar names are told where there is none of a name.
const SIMILAR_NAMES: usize = 3;

/// A stretch of time, and the threads whose time it is, one after the other. Times are those of the timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpanAsked {
    /// For people: `launch of com.example.app, cold`.
    pub what: String,
    pub begin: Timestamp,
    pub end: Timestamp,
    /// The thread whose time counts up to a moment; the last one up to the end.
    pub threads: Vec<(Tid, Timestamp)>,
    /// The app's main thread, where the span is a launch, and whether its process came to be in it.
    pub launched: Option<(Tid, bool)>,
    /// Time to initial display, and how late a frame was.
    pub detail: String,
}

impl SpanAsked {
    fn of_thread(what: String, tid: Tid, begin: Timestamp, end: Timestamp) -> SpanAsked {
        SpanAsked { what, begin, end, threads: vec![(tid, end)], launched: None, detail: String::new() }
    }

    /// Whether all that concerns the span is kept.
    pub(crate) fn is_in(&self, kept: &KeptTime) -> bool {
        self.threads.iter().all(|(tid, _)| kept.holds(self.begin, self.end, *tid))
    }

    /// How long the span is, ns.
    pub fn duration(&self) -> u64 {
        self.end.since(self.begin)
    }
}

/// A launch or a late frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MeasuredSpan {
    pub kind: MeasuredKind,
    /// The package; empty where nothing names it.
    pub app: String,
    /// Its number, where it is a frame that has one.
    pub frame: Option<i64>,
    pub asked: SpanAsked,
}

/// The kind of a [`MeasuredSpan`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MeasuredKind {
    Launch,
    Frame,
}

impl MeasuredKind {
    pub fn name(self) -> &'static str {
        match self {
            MeasuredKind::Launch => "launch",
            MeasuredKind::Frame => "frame",
        }
    }
}

/// There is nothing of the kind that was asked about.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum NothingAsked {
    #[error(
        "no launch of an app, no late frame and no slice of a main thread is in the trace; name a thread: --thread NAME --from 0s"
    )]
    Anything,
    #[error("the trace has {0} launches")]
    LaunchNumber(usize),
    #[error("no launch of {package} is in the trace{}", alternatives(.others))]
    Launch { package: String, others: Vec<String> },
    #[error("no frame has the number {0}")]
    Frame(i64),
    #[error("no frame of the trace was late")]
    LateFrame,
    #[error("no slice is called {name:?}{}", alternatives(.similar))]
    Slice { name: String, similar: Vec<String> },
    #[error("no method is called {name:?}{}", alternatives(.similar))]
    Method { name: String, similar: Vec<String> },
    #[error("no thread is called {0:?}")]
    Thread(String),
    #[error("the time ends before it begins")]
    Time,
}

impl Model {
    /// The spans that a question is about, in the order of their begins.
    ///
    /// # Errors
    /// [`NothingAsked`] where the trace has none.
    pub(crate) fn spans(&self, question: &Question) -> Result<Vec<SpanAsked>, NothingAsked> {
        match question {
            Question::Usual => self.usual(),
            Question::LaunchNumber(number) => {
                let launch = number.checked_sub(1).and_then(|at| self.measured.launches.get(at));
                let launch = launch.ok_or(NothingAsked::LaunchNumber(self.measured.launches.len()))?;
                Ok(vec![launch_span(launch)])
            }
            Question::LaunchOf(package) => self.launches_of(package),
            Question::Frame(number) => {
                let frames = self.measured.frames.iter().filter(|frame| frame.id == Some(*number));
                some(frames.map(|frame| self.frame_span(frame)).collect(), || NothingAsked::Frame(*number))
            }
            Question::LateFrames => some(self.late_frames(), || NothingAsked::LateFrame),
            Question::Slice(name) => self.named(name, ThreadHistory::all_slices, |similar| {
                NothingAsked::Slice { name: name.clone(), similar }
            }),
            Question::Method(name) => self.named(
                name,
                |thread| [&thread.calls.list, &[]],
                |similar| NothingAsked::Method { name: name.clone(), similar },
            ),
            Question::Stretch { thread, from_ns, to_ns } => self.stretch(thread, *from_ns, *to_ns),
        }
    }

    /// The launches that the recording does not cut, and the late frames, of which it is at most
    /// [`MAX_SPANS`], the first ones.
    pub(crate) fn measured_spans(&self) -> Vec<MeasuredSpan> {
        let launches = self.measured.launches.iter().filter(|launch| launch.cut.is_none());
        let launches = launches.map(|launch| MeasuredSpan {
            kind: MeasuredKind::Launch,
            app: launch.package.clone(),
            frame: None,
            asked: launch_span(launch),
        });
        let frames =
            late_frames(&self.measured.frames).into_iter().take(MAX_SPANS).map(|frame| MeasuredSpan {
                kind: MeasuredKind::Frame,
                app: frame.package.clone(),
                frame: frame.id,
                asked: self.frame_span(frame),
            });
        launches.chain(frames).collect()
    }

    /// The time of each thread whose states are known, from the first event to the last.
    pub(crate) fn every_thread(&self) -> Vec<SpanAsked> {
        let (begin, end) = self.extent;
        let of = |tid: Tid| SpanAsked::of_thread(self.thread_words(tid), tid, begin, end);
        self.scheduled_threads().into_iter().map(of).collect()
    }

    fn usual(&self) -> Result<Vec<SpanAsked>, NothingAsked> {
        if let Some(launch) = self.measured.launches.first() {
            return Ok(vec![launch_span(launch)]);
        }
        let late = self.late_frames();
        if !late.is_empty() {
            return Ok(late);
        }
        let mut longest = Vec::new();
        for (tid, thread) in &self.threads {
            if self.is_main(*tid) {
                let outermost =
                    thread.slices.list.iter().filter(|slice| thread.slices.outwards(slice).count() == 1);
                longest.extend(outermost.filter(|slice| slice.end < Timestamp::MAX).map(|slice| {
                    SpanAsked::of_thread(
                        self.slice_words(*tid, self.names.text(slice.name)),
                        *tid,
                        slice.start,
                        slice.end,
                    )
                }));
            }
        }
        longest.sort_by_key(|span| (std::cmp::Reverse(span.duration()), span.begin));
        longest.truncate(USUAL_SLICES);
        some(longest, || NothingAsked::Anything)
    }

    fn launches_of(&self, package: &str) -> Result<Vec<SpanAsked>, NothingAsked> {
        let of_package = self.measured.launches.iter().filter(|launch| launch.package == package);
        some(of_package.map(launch_span).collect(), || {
            let mut others: Vec<String> =
                self.measured.launches.iter().map(|launch| launch.package.clone()).collect();
            others.sort_unstable();
            others.dedup();
            NothingAsked::Launch { package: package.to_owned(), others }
        })
    }

    fn late_frames(&self) -> Vec<SpanAsked> {
        late_frames(&self.measured.frames).into_iter().map(|frame| self.frame_span(frame)).collect()
    }

    /// A frame's time is its UI thread's as long as that works on it, and then its RenderThread's. A frame
    /// that only FrameTimeline has is its process's main thread's.
    fn frame_span(&self, frame: &Frame) -> SpanAsked {
        let number = frame.id.map_or(String::new(), |id| format!(" {id}"));
        let threads = match &frame.work {
            Some(work) => {
                let ui = self.ui_end(frame, work.ui_tid).map(|end| (work.ui_tid, end));
                ui.into_iter().chain([(work.render_tid, frame.end)]).collect()
            }
            None => vec![(frame.pid.main_thread(), frame.end)],
        };
        let detail = match frame.overrun() {
            Some(overrun) if overrun > 0 => {
                format!("{} after its deadline", duration(overrun.unsigned_abs()))
            }
            _ => String::new(),
        };
        let what = format!("frame{number} of {}", frame.package);
        SpanAsked { what, begin: frame.begin, end: frame.end, threads, launched: None, detail }
    }

    /// The end of the UI thread's part of a frame.
    fn ui_end(&self, frame: &Frame, ui_tid: Tid) -> Option<Timestamp> {
        let slices = &self.threads.get(&ui_tid)?.slices;
        let after = slices.list.partition_point(|slice| slice.start < frame.begin);
        let within = slices.list[after..].iter().take_while(|slice| slice.start < frame.end);
        let mut of_frame =
            within.filter(|slice| self.names.text(slice.name).starts_with("Choreographer#doFrame"));
        of_frame.next().map(|slice| slice.end.clamp(frame.begin, frame.end))
    }

    /// All slices or calls of a name; where none is called exactly so, those whose name contains it.
    fn named(
        &self,
        name: &str,
        of: impl Fn(&ThreadHistory) -> [&[Slice]; 2],
        nothing: impl Fn(Vec<String>) -> NothingAsked,
    ) -> Result<Vec<SpanAsked>, NothingAsked> {
        let with = |fits: &dyn Fn(&str) -> bool| {
            let mut spans = Vec::new();
            for (tid, thread) in &self.threads {
                let found = of(thread)
                    .into_iter()
                    .flatten()
                    .filter(|slice| slice.end < Timestamp::MAX && fits(self.names.text(slice.name)));
                spans.extend(found.map(|slice| {
                    let what = self.slice_words(*tid, self.names.text(slice.name));
                    SpanAsked::of_thread(what, *tid, slice.start, slice.end)
                }));
            }
            spans
        };
        let mut spans = with(&|text| text == name);
        if spans.is_empty() {
            spans = with(&|text| text.contains(name));
        }
        if spans.len() > MAX_SPANS {
            spans.sort_by_key(|span| (std::cmp::Reverse(span.duration()), span.begin));
            spans.truncate(MAX_SPANS);
        }
        some(spans, || {
            let names = self.threads.values().flat_map(|thread| of(thread).into_iter().flatten());
            let all: std::collections::BTreeSet<&str> =
                names.map(|slice| self.names.text(slice.name)).collect();
            let mut near: Vec<(f64, &str)> = all
                .into_iter()
                .map(|text| (strsim::jaro_winkler(text, name), text))
                .filter(|(near, _)| *near > 0.7)
                .collect();
            near.sort_by(|a, b| b.0.total_cmp(&a.0));
            nothing(near.iter().take(SIMILAR_NAMES).map(|(_, text)| (*text).to_owned()).collect())
        })
    }

    fn stretch(
        &self,
        thread: &str,
        from_ns: Option<u64>,
        to_ns: Option<u64>,
    ) -> Result<Vec<SpanAsked>, NothingAsked> {
        let (begin, end) = self.time_between(from_ns, to_ns)?;
        let is_known = |tid: &Tid| self.threads.contains_key(tid) || self.tasks.threads.get(*tid).is_some();
        let by_number = thread.parse::<Tid>().ok().filter(is_known);
        let known = self.tasks.threads.sorted().into_iter().map(|(tid, _)| tid);
        let all: Vec<Tid> = self.threads.keys().copied().chain(known).collect();
        let named = |tid: &&Tid| self.tasks.thread_name(**tid) == thread;
        // Of several threads of one name, the one that did most.
        let events = |tid: &&Tid| {
            let of = |thread: &ThreadHistory| thread.changes.len() + thread.slices.list.len();
            self.threads.get(*tid).map_or(0, of)
        };
        let by_name = || all.iter().filter(named).max_by_key(|tid| (events(tid), **tid)).copied();
        let tid = by_number.or_else(by_name).ok_or_else(|| NothingAsked::Thread(thread.to_owned()))?;
        Ok(vec![SpanAsked::of_thread(format!("thread {}", self.thread_words(tid)), tid, begin, end)])
    }

    /// The time between two moments, ns after the begin of the trace.
    pub(super) fn time_between(
        &self,
        from_ns: Option<u64>,
        to_ns: Option<u64>,
    ) -> Result<(Timestamp, Timestamp), NothingAsked> {
        let (first, last) = self.extent;
        let begin = first.saturating_add(from_ns.unwrap_or(0));
        let end = to_ns.map_or(last, |to_ns| first.saturating_add(to_ns)).min(last);
        if begin < end { Ok((begin, end)) } else { Err(NothingAsked::Time) }
    }

    fn slice_words(&self, tid: Tid, name: &str) -> String {
        format!("{name} on {}", self.thread_words(tid))
    }

    fn thread_words(&self, tid: Tid) -> String {
        match &*self.tasks.thread_name(tid) {
            _ if tid == Tid::UNKNOWN => "no thread".to_owned(),
            "" => tid.to_string(),
            name => format!("{name} ({tid})"),
        }
    }
}

fn launch_span(launch: &Launch) -> SpanAsked {
    let launch_type =
        launch.launch_type.map_or(String::new(), |launch_type| format!(", {}", launch_type.name()));
    let cut = launch.cut.map_or(String::new(), |cut| format!(", cut at its {}", cut.name()));
    let ttid = launch.ttid.map(|ns| format!("TTID {}", duration(ns)));
    let ttfd = launch.ttfd.map(|ns| format!("TTFD {}", duration(ns)));
    let tid = launch.main_tid.unwrap_or(Tid::UNKNOWN);
    SpanAsked {
        what: format!("launch of {}{launch_type}{cut}", launch.package),
        begin: launch.begin,
        end: launch.end,
        threads: vec![(tid, launch.end)],
        launched: launch.main_tid.map(|tid| (tid, launch.launch_type == Some(LaunchType::Cold))),
        detail: [ttid, ttfd].into_iter().flatten().collect::<Vec<_>>().join(", "),
    }
}

fn some(
    mut spans: Vec<SpanAsked>,
    nothing: impl FnOnce() -> NothingAsked,
) -> Result<Vec<SpanAsked>, NothingAsked> {
    if spans.is_empty() {
        return Err(nothing());
    }
    spans.sort_by(|a, b| (a.begin, a.end, &a.what).cmp(&(b.begin, b.end, &b.what)));
    Ok(spans)
}

/// The end of a message about a name that is not there: the names that are.
fn alternatives(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; there is {}", names.join(", ")) }
}
