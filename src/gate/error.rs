//! The reasons why a gate judges nothing.

/// Why nothing can be judged.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// One side has no runs.
    #[error("{0}: there are no runs")]
    NoRuns(String),
    /// A run is on both sides.
    #[error("{0}: is a run of the baseline and of the candidate: nothing can have changed in it")]
    OnBothSides(String),
    /// No run has what a condition names.
    #[error("'{condition}': no run has {measure}: {instead}")]
    NothingMeasured {
        /// The condition.
        condition: String,
        /// The measure.
        measure: String,
        /// What there is in its place.
        instead: String,
    },
}
