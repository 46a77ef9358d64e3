//! `why` as one library call: reads the inputs once, and explains the spans that a question is about.

use super::convert::{Conversion, ConvertError, ConvertRequest};
use crate::tracks::TrackBuilder;
use crate::why::{Collector, Explanation, NothingAsked, Question};

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
