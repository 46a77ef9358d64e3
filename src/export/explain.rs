//! `why` as one library call: reads the inputs, and explains the spans that a question is about.

use std::io;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::convert::{Conversion, ConvertError, ConvertRequest};
use super::runs::runs_of;
use crate::clock::Timestamp;
use crate::formats::unpack_budget::UnpackLimit;
use crate::formats::{Head, Loss, Losses, Order, Sink, SinkAdapter, ThreadInfo};
use crate::measure::FinderSink;
use crate::text::file_name;
use crate::timeline::{
    InputSummary, MergeSummary, MethodThread, MissingSwitches, TimelineAdapter, TimelineSink,
};
use crate::tracks::TrackBuilder;
use crate::why::{
    Difference, Explanation, ExplanationJson, Model, ModelCollector, NothingAsked, Question, ShownFrames,
    difference,
};

/// The reason why nothing was explained.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExplainError {
    /// An input cannot be read.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// The trace has nothing of the kind, or it is among what is missing.
    #[error(
        "{why}{}",
        if *.is_lossy { "; events were lost, or an input is damaged: `tracebridge info` says where" } else { "" }
    )]
    Nothing { why: NothingAsked, is_lossy: bool },
}

/// The explained spans of a trace.
pub(crate) struct Explained {
    /// In the order of their begins.
    pub explanations: Vec<Explanation>,
    /// Sentences that name what the trace does not tell, and the categories that would.
    pub missing: Vec<String>,
    /// The account of missing data.
    pub losses: Losses,
    /// Whether events were lost, or an input is damaged.
    pub is_lossy: bool,
}

/// The object of `why --json`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ExplainedJson<'a> {
    /// In the order of their begins; with `--against` those of the new runs.
    spans: Vec<ExplanationJson<'a>>,
    /// With `--against`: the difference of the means of both sets, split over causes; null without.
    against: Option<&'a Difference>,
    /// Sentences about what the trace does not tell, and what would.
    missing: &'a [String],
    /// The account of missing data.
    losses: Vec<Loss>,
    /// Whether events were lost, or an input is damaged.
    lossy: bool,
}

impl Explained {
    /// The object of `why --json`.
    pub fn json<'a>(&'a self, against: Option<&'a Difference>) -> ExplainedJson<'a> {
        let spans = self.explanations.iter().map(ExplanationJson::new).collect();
        ExplainedJson {
            spans,
            against,
            missing: &self.missing,
            losses: self.losses.iter().collect(),
            lossy: self.is_lossy,
        }
    }

    /// Adds the spans of another run.
    pub fn add(&mut self, other: Explained) {
        self.explanations.extend(other.explanations);
        self.missing.extend(other.missing);
        self.missing.sort_unstable();
        self.missing.dedup();
        self.losses.extend(other.losses);
        self.is_lossy |= other.is_lossy;
    }
}

/// Smaller inputs than this many bytes are read at once: all of them may be kept.
const LARGE_INPUTS: u64 = 32 << 20;

/// Makes the model of a timeline. Of a large one it keeps the time alone that a question is about.
struct ModelSink<'q> {
    builder: TrackBuilder<ModelCollector>,
    /// Finds the launches and frames beforehand.
    scout: Option<TrackBuilder<FinderSink>>,
    has_scouted: bool,
    question: &'q Question,
}

impl<'q> ModelSink<'q> {
    fn new(question: &'q Question, has_scout: bool) -> ModelSink<'q> {
        ModelSink {
            builder: TrackBuilder::new(ModelCollector::default()),
            scout: has_scout.then(|| TrackBuilder::of_markers(FinderSink::default())),
            has_scouted: false,
            question,
        }
    }
}

impl SinkAdapter for ModelSink<'_> {
    type Next = TrackBuilder<ModelCollector>;

    fn next(&mut self) -> &mut Self::Next {
        &mut self.builder
    }

    fn head(&mut self, head: &Head) -> io::Result<()> {
        if let Some(mut scout) = self.scout.take().filter(|_| self.has_scouted) {
            let measured = std::mem::take(&mut scout.sink().measured);
            self.builder.sink().keep_only(self.question.kept_time(measured));
        }
        self.builder.head(head)
    }
}

impl TimelineAdapter for ModelSink<'_> {
    fn scout(&mut self) -> Option<&mut dyn TimelineSink> {
        self.has_scouted = true;
        self.scout.as_mut().map(|scout| scout as &mut dyn TimelineSink)
    }

    /// Each thread's calls are looked up by themselves.
    fn edge_order(&mut self) -> Order {
        Order::Any
    }

    /// The kernel's name of a thread counts, though the method trace comes after the recording.
    fn method_thread(&mut self, thread: &MethodThread) -> io::Result<()> {
        let known = thread.tid.and_then(|tid| self.builder.tasks().threads.get(tid)).cloned();
        self.builder.method_thread(thread)?;
        match (thread.tid, known.and_then(|known| known.name)) {
            (Some(tid), Some(name)) => {
                self.builder.thread(&ThreadInfo { tid, tgid: None, name: Some(&name) })
            }
            _ => Ok(()),
        }
    }
}

/// Reads the inputs of `request`, of which the output is not written. The model holds all that `question` is
/// about.
fn read_model(
    request: ConvertRequest<'_>,
    question: &Question,
) -> Result<(Model, MergeSummary), ConvertError> {
    let app_packages = request.app_packages;
    let conversion = Conversion::prepare(request)?;
    let mapping = conversion.parse_mapping()?;
    let read = |has_scout| -> Result<_, ConvertError> {
        let mut tracks = ModelSink::new(question, has_scout);
        let pushed = conversion.push_part(&mut tracks, mapping.as_ref());
        conversion.check_whole()?;
        let summary = pushed?;
        let collector = std::mem::take(tracks.builder.sink());
        let kept = collector.kept().clone();
        let mut model = collector.into_model();
        model.app_packages = app_packages.to_vec();
        Ok((model, summary, kept))
    };
    let (model, summary, kept) = read(conversion.input_bytes() >= LARGE_INPUTS)?;
    let is_held = model.spans(question).map_or(true, |spans| spans.iter().all(|span| span.is_in(&kept)));
    if is_held {
        return Ok((model, summary));
    }
    drop(model);
    let (model, summary, _) = read(false)?;
    Ok((model, summary))
}

/// A trace that has been read, for any number of questions.
pub(crate) struct ReadTrace {
    pub model: Model,
    summary: MergeSummary,
}

impl ReadTrace {
    /// Reads the inputs of `request`, of which the output is not written, and keeps all of their time.
    ///
    /// # Errors
    /// [`ConvertError`].
    pub fn whole(request: ConvertRequest<'_>) -> Result<ReadTrace, ConvertError> {
        let (model, summary) = read_model(request, &ANYTHING)?;
        Ok(ReadTrace { model, summary })
    }

    /// Whether events were lost, or an input is damaged.
    pub fn is_lossy(&self) -> bool {
        self.summary.report.is_lossy()
    }

    /// The account of missing data.
    pub fn losses(&self) -> Losses {
        self.summary.report.account()
    }

    /// Explains what `question` is about.
    ///
    /// # Errors
    /// [`ExplainError::Nothing`].
    pub fn explain(&self, question: &Question) -> Result<Explained, ExplainError> {
        let is_lossy = self.is_lossy();
        let spans = self.model.spans(question).map_err(|why| ExplainError::Nothing { why, is_lossy })?;
        let explain = |span| with_frames(self.model.explain(span), &self.summary);
        let explanations: Vec<Explanation> = spans.iter().map(explain).collect();
        let mut missing = self.model.missing();
        missing.extend(MissingSwitches::sentence(self.summary.missing_switches));
        missing.extend(self.model.not_told_apart(&explanations));
        Ok(Explained { explanations, missing, losses: self.losses(), is_lossy })
    }
}

/// A question about all time of all threads.
const ANYTHING: Question = Question::Stretch { thread: String::new(), from_ns: None, to_ns: None };

/// Reads the inputs of `request`, of which the output is not written, and explains what `question` is about.
///
/// # Errors
/// [`ExplainError`].
pub(crate) fn explain(request: ConvertRequest<'_>, question: &Question) -> Result<Explained, ExplainError> {
    let (model, summary) = read_model(request, question)?;
    ReadTrace { model, summary }.explain(question)
}

/// Adds the frames that the videos among the inputs show at the begin and the end of the span.
fn with_frames(mut explanation: Explanation, summary: &MergeSummary) -> Explanation {
    let begin = explanation.begin;
    let end = begin.saturating_add(explanation.duration);
    let shown = |input: &InputSummary| {
        let video = input.video.as_ref()?;
        ShownFrames::of_span(file_name(&input.name), video, begin, end)
    };
    explanation.video = summary.inputs.iter().filter_map(shown).collect();
    explanation
}

/// Explains the launches and late frames of a file, the usual slices, and what each thread did from begin to
/// end. Returns the length of each span, ns, and when its causes hold: for fuzzing, which has no name to ask
/// for. A span with a cause that holds so often that not all of it is kept is left out, and nothing is
/// returned of a file that cannot be read.
pub fn explain_everything(file: &Path) -> Vec<(u64, Vec<(Timestamp, Timestamp)>)> {
    let inputs = [file.to_owned()];
    let request = ConvertRequest::to_read(&inputs);
    let Ok(ReadTrace { model, .. }) = ReadTrace::whole(request) else { return Vec::new() };
    let measured = model.measured_spans().into_iter().map(|span| span.asked);
    let spans = measured.chain(model.spans(&Question::Usual).unwrap_or_default()).chain(model.every_thread());
    let explained = spans.map(|span| model.explain(&span));
    let is_whole = |one: &Explanation| {
        one.causes
            .iter()
            .all(|part| part.ns == part.intervals.iter().map(|(start, end)| *end - *start).sum::<u64>())
    };
    let stretches = |one: Explanation| {
        let stretches = one.causes.iter().flat_map(|part| part.intervals.iter().copied()).collect();
        (one.duration, stretches)
    };
    explained.filter(is_whole).map(stretches).collect()
}

/// [`explain`] of each run in `files`, in place of the request's inputs. Files of one directory whose names
/// differ in their endings alone are one run. A run that has nothing of the kind is left out, unless all have
/// nothing.
///
/// # Errors
/// [`ExplainError`].
pub(crate) fn explain_runs(
    request: ConvertRequest<'_>,
    files: &[PathBuf],
    question: &Question,
) -> Result<Explained, ExplainError> {
    explain_each(files, |inputs| explain(ConvertRequest { inputs, ..request.clone() }, question))
}

/// Calls `explain` with the files of each run, as [`explain_runs`] does.
///
/// # Errors
/// Those of `explain`.
pub(crate) fn explain_each(
    files: &[PathBuf],
    mut explain: impl FnMut(&[PathBuf]) -> Result<Explained, ExplainError>,
) -> Result<Explained, ExplainError> {
    let mut all: Option<Explained> = None;
    let mut nothing = ExplainError::Nothing { why: NothingAsked::Anything, is_lossy: false };
    for inputs in &runs_of(files) {
        match (explain(inputs), &mut all) {
            (Ok(explained), Some(all)) => all.add(explained),
            (Ok(explained), None) => all = Some(explained),
            (Err(error @ ExplainError::Nothing { .. }), _) => nothing = error,
            (Err(error), _) => return Err(error),
        }
    }
    all.ok_or(nothing)
}

/// The first launch of each explained run of which something was recorded; none where the runs have no
/// launch.
///
/// # Errors
/// [`ConvertError`] where a file cannot be read.
pub(super) fn known_launches(
    explained: Result<Explained, ExplainError>,
) -> Result<Vec<Explanation>, ConvertError> {
    match explained {
        Ok(explained) => Ok(explained.explanations.into_iter().filter(Explanation::is_known).collect()),
        Err(ExplainError::Convert(error)) => Err(error),
        Err(ExplainError::Nothing { .. }) => Ok(Vec::new()),
    }
}

/// The question that [`known_launches`] answers.
pub(super) const FIRST_LAUNCH: Question = Question::LaunchNumber(1);

/// The causes that grew in the first launches of the runs in `new` since those in `old`; `None` where a
/// side has no launch whose causes were recorded.
///
/// # Errors
/// [`ConvertError`] where a file cannot be read.
pub(crate) fn grown(
    new: &[PathBuf],
    old: &[PathBuf],
    limit: &UnpackLimit,
) -> Result<Option<Difference>, ConvertError> {
    let request = ConvertRequest { unpack_limit: limit.clone(), ..ConvertRequest::to_read(&[]) };
    let launches = |files: &[PathBuf]| known_launches(explain_runs(request.clone(), files, &FIRST_LAUNCH));
    let new = launches(new)?;
    let old = launches(old)?;
    Ok((!new.is_empty() && !old.is_empty()).then(|| difference(&new, &old)))
}
