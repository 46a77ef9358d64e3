//! AOSP's dmtracedump in its own layout: the profile as text, and the raw records.

mod dump;
mod text;

use std::path::PathBuf;

use self::dump::{MethodDump, default_clock, write_records};
use super::error::ProfileError;
use super::profile_run::{ProfileOutput, ProfileReport, open_inputs};
use crate::formats::art_method::MethodTrace;
use crate::formats::unpack_budget::UnpackLimit;

/// A request to profile one trace as dmtracedump did.
#[derive(Debug, Clone, Default)]
pub struct DumpRequest {
    /// One trace; or a key file and its data file.
    pub traces: Vec<PathBuf>,
    /// The user's limit on what each file may unpack to.
    pub unpack_limit: UnpackLimit,
    /// Prints every record in place of a profile.
    pub records: bool,
    /// The clock: [`CPU`](crate::formats::art_method::CPU) or [`WALL`](crate::formats::art_method::WALL).
    /// `None` selects thread-CPU time where the trace has it, as the old tool did.
    pub clock: Option<usize>,
}

/// Makes the outputs that `request` describes, and passes results and messages to `output`.
pub fn run(request: &DumpRequest, output: &mut ProfileOutput<'_>) -> Result<ProfileReport, ProfileError> {
    let inputs = open_inputs(&request.traces, &request.unpack_limit, false, output)?;
    let [input] = &inputs[..] else { return Err(ProfileError::SeveralTracesToDump) };
    let mut report = ProfileReport::default();
    let trace = output.read(input, &mut report)?;
    let clock = request.clock.unwrap_or_else(|| default_clock(&trace));
    if request.records {
        output.print(|mut out| write_records(&trace, clock, &mut out))?;
        input.check_whole()?;
        return Ok(report);
    }
    check_times(&input.name, &trace)?;
    let dump = MethodDump::from_trace(&trace, clock);
    report |= output.report_anomalies(input, &dump.anomalies);
    input.check_whole()?;
    output.print(|mut out| text::write_text(&dump, &mut out))?;
    Ok(report)
}

/// Every figure of the old tool is a time.
fn check_times(name: &str, trace: &MethodTrace<'_>) -> Result<(), ProfileError> {
    if !trace.header().has_times() {
        return Err(ProfileError::NoTimes { name: name.to_owned(), purpose: "dmtracedump" });
    }
    Ok(())
}
