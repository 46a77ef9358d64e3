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

/// What grew in the first launches of the runs in `new` since those in `old`; `None` where a side has no
/// launch whose causes were recorded. Files of one directory whose names differ in their endings alone are
/// one run.
///
/// # Errors
/// [`ConvertError`] where a file cannot be read.
pub(crate) fn grown(
    new: &[PathBuf],
    old: &[PathBuf],
    limit: UnpackLimit,
) -> Result<Option<Difference>, ConvertError> {
    let sets = [new, old].map(|files| first_launches(files, limit));
    let [new, old] = sets;
    let (new, old) = (new?, old?);
    Ok((!new.is_empty() && !old.is_empty()).then(|| difference(&new, &old)))
}

fn first_launches(files: &[PathBuf], limit: UnpackLimit) -> Result<Vec<Explanation>, ConvertError> {
    let mut launches = Vec::new();
    for inputs in runs_of(files) {
        let request =
            ConvertRequest { unpack_limit: limit, ..ConvertRequest::of(&inputs, Path::new("why.pftrace")) };
        match explain(request, &Question::LaunchNumber(1)) {
            Ok(explained) => {
                launches.extend(explained.explanations.into_iter().filter(Explanation::is_known))
            }
            Err(ExplainError::Convert(error)) => return Err(error),
            Err(ExplainError::Nothing(_)) => {}
        }
    }
    Ok(launches)
}
