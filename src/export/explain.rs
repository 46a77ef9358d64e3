//! `why` as one library call: reads the inputs once, and explains the spans that a question is about.

use std::path::{Path, PathBuf};

use super::compare::runs_of;
use super::convert::{Conversion, ConvertError, ConvertRequest};
use crate::formats::unpack_budget::UnpackLimit;
use crate::tracks::TrackBuilder;
use crate::why::{Collector, Difference, Explanation, NothingAsked, Question, difference};

/// Why nothing was explained.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExplainError {
    /// An input cannot be read.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// The trace has nothing of the kind.
    #[error("{0}")]
    Nothing(#[from] NothingAsked),
}

/// The explained spans of a trace.
pub(crate) struct Explained {
    /// In the order of their begins.
    pub explanations: Vec<Explanation>,
    /// What the trace does not tell, and what would: sentences.
    pub missing: Vec<String>,
    /// Whether events were lost, or an input is damaged.
    pub is_lossy: bool,
}

impl Explained {
    /// Adds the spans of another run.
    pub fn add(&mut self, other: Explained) {
        self.explanations.extend(other.explanations);
        self.missing.extend(other.missing);
        self.missing.sort_unstable();
        self.missing.dedup();
        self.is_lossy |= other.is_lossy;
    }
}

/// Reads the inputs of `request`, of which the output is not written, and explains what `question` is about.
///
/// # Errors
/// [`ExplainError`].
pub(crate) fn explain(request: ConvertRequest<'_>, question: &Question) -> Result<Explained, ExplainError> {
    let conversion = Conversion::prepare(request)?;
    let mut tracks = TrackBuilder::new(Collector::default());
    let mapping = conversion.parse_mapping()?;
    let pushed = conversion.push_part(&mut tracks, mapping.as_ref());
    conversion.check_whole()?;
    let summary = pushed?;
    let model = std::mem::take(tracks.sink()).into_model();
    let spans = model.spans(question)?;
    let explanations = spans.iter().map(|span| model.explain(span)).collect();
    let is_lossy = summary.report.is_lossy() || summary.problems.are_lossy();
    Ok(Explained { explanations, missing: model.missing(), is_lossy })
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
    let mut all: Option<Explained> = None;
    let mut nothing = NothingAsked::Anything;
    for inputs in &runs_of(files) {
        match (explain(ConvertRequest { inputs, ..request }, question), &mut all) {
            (Ok(explained), Some(all)) => all.add(explained),
            (Ok(explained), None) => all = Some(explained),
            (Err(ExplainError::Nothing(why)), _) => nothing = why,
            (Err(error), _) => return Err(error),
        }
    }
    all.ok_or(ExplainError::Nothing(nothing))
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
        Err(ExplainError::Nothing(_)) => Ok(Vec::new()),
    }
}

/// The question that [`known_launches`] answers.
pub(super) const FIRST_LAUNCH: Question = Question::LaunchNumber(1);

/// What grew in the first launches of the runs in `new` since those in `old`; `None` where a side has no
/// launch whose causes were recorded.
///
/// # Errors
/// [`ConvertError`] where a file cannot be read.
pub(crate) fn grown(
    new: &[PathBuf],
    old: &[PathBuf],
    limit: UnpackLimit,
) -> Result<Option<Difference>, ConvertError> {
    let request = ConvertRequest { unpack_limit: limit, ..ConvertRequest::of(&[], Path::new("why.pftrace")) };
    let launches = |files: &[PathBuf]| known_launches(explain_runs(request, files, &FIRST_LAUNCH));
    let (new, old) = (launches(new)?, launches(old)?);
    Ok((!new.is_empty() && !old.is_empty()).then(|| difference(&new, &old)))
}
