//! Makes the requested profile: opens the traces, profiles each, and prints or writes the results.

use std::path::{Path, PathBuf};

use super::error::ProfileError;
use super::files::write_files;
use super::print::print_profile::ProfilePrinter;
use super::profile_run::{ProfileOutput, ProfileReport, ProfileRun, check_outputs};
use super::request::ProfileRequest;
use super::sample_profile::SampleProfile;
use super::source::ProfileSource;
use crate::formats::art_method::MethodTrace;
use crate::formats::input::Input;
use crate::formats::unpack_budget::UnpackLimit;
use crate::formats::{self, FormatId, InputSet, OpenedInput, open_all_with_copies};

/// Makes the profile that `request` describes and gives its results and messages to `output`.
pub fn run(request: &ProfileRequest, output: &mut ProfileOutput<'_>) -> Result<ProfileReport, ProfileError> {
    check_outputs(
        &[&request.traces, request.earlier.as_slice()],
        request.mapping.as_deref(),
        &request.files.paths(),
    )?;
    let mapping =
        request.mapping.as_deref().map(|path| Input::open_within(path, request.unpack_limit)).transpose()?;
    let inputs = open_inputs(&request.traces, request.unpack_limit, true, output)?;
    let earlier_input = match &request.earlier {
        Some(path) => Some(open_earlier(path, request.unpack_limit, true, output)?),
        None => None,
    };
    let several = inputs.len() > 1;
    if earlier_input.is_some() && several {
        return Err(ProfileError::SeveralTracesToCompare);
    }
    if request.files.any() && several {
        return Err(ProfileError::SeveralTracesInOneFile);
    }
    let mut printer = ProfilePrinter::new(several);
    let mut report = ProfileReport::default();
    for input in &inputs {
        let opened = ProfileInput::read(input, request, output, &mut report)?;
        let profile = ProfileRun::new(request, input, opened.source(), mapping.as_ref(), output)?;
        let calls = match &earlier_input {
            Some(earlier_input) => {
                let opened = ProfileInput::read(earlier_input, request, output, &mut report)?;
                let earlier =
                    ProfileRun::new(request, earlier_input, opened.source(), mapping.as_ref(), output)?;
                check_same_figures(&earlier, &profile)?;
                if request.files.any() {
                    write_files::compare(&earlier, &profile, output)?
                } else {
                    printer.compare(&earlier, &profile, output)?
                }
            }
            None if request.files.any() => write_files::write(&profile, output)?,
            None => printer.print(&profile, output)?,
        };
        report |= calls;
        input.check_whole()?;
    }
    earlier_input.as_ref().map_or(Ok(()), Input::check_whole)?;
    printer.finish(output)?;
    Ok(report)
}

/// An input, opened and read as far as its kind needs it.
enum ProfileInput<'i> {
    Calls(Box<MethodTrace<'i>>),
    Samples(Box<SampleProfile>),
}

impl<'i> ProfileInput<'i> {
    fn read(
        input: &'i Input,
        request: &ProfileRequest,
        output: &mut ProfileOutput<'_>,
        report: &mut ProfileReport,
    ) -> Result<ProfileInput<'i>, ProfileError> {
        if !formats::identify(input).is_ok_and(FormatId::holds_samples) {
            return Ok(ProfileInput::Calls(Box::new(output.read(input, report)?)));
        }
        let opened = formats::open(input)?;
        let OpenedInput::Samples(recording) = opened else {
            let format = formats::identify(input).unwrap_or(FormatId::PerfData);
            return Err(ProfileError::NoMethodTrace { name: input.name.clone(), format });
        };
        let samples = SampleProfile::read(recording.as_ref(), input, request)?;
        *report |= output.report_reading(input, &samples.report);
        Ok(ProfileInput::Samples(Box::new(samples)))
    }

    fn source(&self) -> ProfileSource<'_, 'i> {
        match self {
            ProfileInput::Calls(trace) => ProfileSource::Calls(trace),
            ProfileInput::Samples(samples) => ProfileSource::Samples(samples),
        }
    }
}

/// Refuses to compare times with numbers of calls.
fn check_same_figures(a: &ProfileRun<'_, '_>, b: &ProfileRun<'_, '_>) -> Result<(), ProfileError> {
    match (a.tick_ns(), b.tick_ns()) {
        _ if a.trace.columns().is_sampled != b.trace.columns().is_sampled => {
            Err(ProfileError::SamplesAgainstCalls)
        }
        _ if a.trace.columns().is_sampled && a.tick_unit() != b.tick_unit() => {
            Err(ProfileError::OtherWeights { before: a.tick_unit(), after: b.tick_unit() })
        }
        _ if a.trace.columns().is_sampled => Ok(()),
        (None, Some(_)) => Err(a.no_times("a comparison with a trace that has times")),
        (Some(_), None) => Err(b.no_times("a comparison with a trace that has times")),
        _ => Ok(()),
    }
}

/// Opens the method traces in these files. Files that are not profiled are named in messages.
pub(super) fn open_inputs(
    paths: &[PathBuf],
    limit: UnpackLimit,
    takes_samples: bool,
    output: &mut ProfileOutput<'_>,
) -> Result<Vec<Input>, ProfileError> {
    let InputSet { inputs, omissions } = open_all_with_copies(paths, limit)?;
    for omission in omissions {
        (output.message)(&omission.name, &omission.reason.to_string());
    }
    let mut traces = Vec::new();
    let mut recordings = Vec::new();
    for input in inputs {
        match formats::identify(&input) {
            Ok(FormatId::MethodTrace) | Err(_) => traces.push(input),
            Ok(format) if takes_samples && format.holds_samples() => traces.push(input),
            Ok(format) => {
                let inside =
                    formats::open(&input).map_or(Vec::new(), |opened| opened.contained_inputs(&input.name));
                if inside.is_empty() {
                    recordings.push((input, format));
                }
                traces.extend(inside);
            }
        }
    }
    for (input, format) in recordings {
        // An archive is opened for its method traces; the recording beside them is not meant.
        if !input.is_member || traces.is_empty() {
            return Err(ProfileError::NoMethodTrace { name: input.name, format });
        }
        (output.message)(
            &input.name,
            &format!("is left out: a file of the format {format} holds no method calls"),
        );
    }
    Ok(traces)
}

/// Opens the trace that others are compared with.
pub(super) fn open_earlier(
    path: &Path,
    limit: UnpackLimit,
    takes_samples: bool,
    output: &mut ProfileOutput<'_>,
) -> Result<Input, ProfileError> {
    let mut inputs = open_inputs(&[path.to_owned()], limit, takes_samples, output)?;
    match (inputs.pop(), inputs.is_empty()) {
        (Some(input), true) => Ok(input),
        _ => Err(ProfileError::SeveralTracesToCompare),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::IDENTIFICATIONS;

    #[test]
    fn each_trace_is_identified_once() {
        let dir = tempfile::tempdir().unwrap();
        let paths = ["1.trace", "2.trace"].map(|name| dir.path().join(name));
        for path in &paths {
            std::fs::write(path, format!("*version\n3\npid={}\n*end\n", path.display())).unwrap();
        }
        let mut message = |_: &str, _: &str| {};
        let mut output = ProfileOutput { results: &mut std::io::sink(), message: &mut message };
        let before = IDENTIFICATIONS.get();
        let inputs = open_inputs(&paths, UnpackLimit::default(), true, &mut output).unwrap();
        for input in &inputs {
            output.read(input, &mut crate::profile::ProfileReport::default()).unwrap();
        }
        assert_eq!((inputs.len(), IDENTIFICATIONS.get() - before), (2, 2));
    }
}
