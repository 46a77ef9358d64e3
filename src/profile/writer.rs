//! The contract between [`run`](super::run()) and the writers that print a profile or write it to files.

use super::error::ProfileError;
use super::output::ProfileOutput;
use super::profile_run::ProfileRun;

/// Makes the outputs of profiles: prints them, or writes them to files.
pub(super) trait ProfileWriter {
    /// Makes the outputs of one trace. Returns whether the calls have irregularities.
    fn write(
        &mut self,
        profile: &ProfileRun<'_, '_>,
        output: &mut ProfileOutput<'_>,
    ) -> Result<bool, ProfileError>;

    /// Makes the outputs that compare two traces. Returns whether the calls of either have irregularities.
    fn compare(
        &mut self,
        earlier: &ProfileRun<'_, '_>,
        later: &ProfileRun<'_, '_>,
        output: &mut ProfileOutput<'_>,
    ) -> Result<bool, ProfileError>;

    /// Completes the outputs after the last trace.
    fn finish(&mut self, output: &mut ProfileOutput<'_>) -> Result<(), ProfileError>;
}
