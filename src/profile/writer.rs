//! The contract between [`run`](super::run()) and the writers that print a profile or write it to files.

use super::error::ProfileError;
use super::output::{ProfileOutput, ProfileReport};
use super::profile_run::ProfileRun;

/// Makes the outputs of profiles: prints them, or writes them to files.
pub(super) trait ProfileWriter {
    /// Makes the outputs of one trace. Returns the irregularities of the calls.
    fn write(
        &mut self,
        profile: &ProfileRun<'_, '_>,
        output: &mut ProfileOutput<'_>,
    ) -> Result<ProfileReport, ProfileError>;

    /// Makes the outputs that compare two traces. Returns the irregularities of the calls of both.
    fn compare(
        &mut self,
        earlier: &ProfileRun<'_, '_>,
        later: &ProfileRun<'_, '_>,
        output: &mut ProfileOutput<'_>,
    ) -> Result<ProfileReport, ProfileError>;

    /// Completes the outputs after the last trace.
    fn finish(&mut self, output: &mut ProfileOutput<'_>) -> Result<(), ProfileError>;
}
