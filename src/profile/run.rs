//! Makes the requested profile: opens the traces, profiles each, and prints or writes the results.

use super::error::ProfileError;
use super::inputs::{open_earlier, open_inputs};
use super::output::{ProfileOutput, ProfileReport, check_outputs};
use super::print_profile::ProfilePrinter;
use super::profile_run::ProfileRun;
use super::request::ProfileRequest;
use super::write_files::ProfileFileWriter;
use super::writer::ProfileWriter;
use crate::formats::input::Input;

/// Makes the profile that `request` describes and gives its results and messages to `output`.
pub fn run(request: &ProfileRequest, output: &mut ProfileOutput<'_>) -> Result<ProfileReport, ProfileError> {
    let traces = request.traces.iter().chain(&request.earlier);
    check_outputs(traces.chain(&request.mapping), &request.files.paths())?;
    let mapping =
        request.mapping.as_deref().map(|path| Input::open_within(path, request.unpack_limit)).transpose()?;
    let inputs = open_inputs(&request.traces, request.unpack_limit)?;
    let earlier_input =
        request.earlier.as_deref().map(|path| open_earlier(path, request.unpack_limit)).transpose()?;
    let several = inputs.len() > 1;
    if earlier_input.is_some() && several {
        return Err(ProfileError::SeveralTracesToCompare);
    }
    let mut writer: Box<dyn ProfileWriter> = match request.files.any() {
        true if several => return Err(ProfileError::SeveralTracesInOneFile),
        true => Box::new(ProfileFileWriter),
        false => Box::new(ProfilePrinter::new(several)),
    };
    let mut report = ProfileReport::default();
    for input in &inputs {
        let trace = output.read(input, &mut report)?;
        let profile = ProfileRun::new(request, input, &trace, mapping.as_ref(), output)?;
        let calls = match &earlier_input {
            Some(earlier_input) => {
                let trace = output.read(earlier_input, &mut report)?;
                let earlier = ProfileRun::new(request, earlier_input, &trace, mapping.as_ref(), output)?;
                check_same_figures(&earlier, &profile)?;
                writer.compare(&earlier, &profile, output)?
            }
            None => writer.write(&profile, output)?,
        };
        report |= calls;
        input.check_whole()?;
    }
    earlier_input.as_ref().map_or(Ok(()), Input::check_whole)?;
    writer.finish(output)?;
    Ok(report)
}

/// Refuses to compare times with numbers of calls.
fn check_same_figures(a: &ProfileRun<'_, '_>, b: &ProfileRun<'_, '_>) -> Result<(), ProfileError> {
    match (a.tick_ns(), b.tick_ns()) {
        (None, Some(_)) => Err(a.no_times("a comparison with a trace that has times")),
        (Some(_), None) => Err(b.no_times("a comparison with a trace that has times")),
        _ => Ok(()),
    }
}
