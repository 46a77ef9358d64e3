//! Method profiles: exclusive and inclusive times, callers and callees, call trees, comparisons.
//!
//! [`run()`] makes a whole profile from files to outputs: it opens the traces, profiles each, and has the
//! results printed or written. The records of a [`selection`](count::selection) are streamed into one of
//! three counters: [`flat`](count::flat) (times of each method), [`tree`](count::tree) (times of each path
//! of calls, from which callers and callees follow), or [`call_stacks`](count::call_stacks) (calls in time
//! order). `rows` makes rows of them; `print` and `files` make the outputs.

pub mod count;
pub mod dmtracedump;
mod error;
mod figures;
mod files;
pub(crate) mod graphviz;
mod names;
mod overhead;
mod print;
mod profile_run;
mod request;
mod rows;
mod source;
mod text_style;

use self::print::ProfilePrinter;
use self::profile_run::{ProfileInput, ProfileRun, check_outputs, open_earlier, open_inputs};
use crate::formats::input::Input;
use crate::formats::symbols::SymbolDirectory;

pub use error::{DrawError, ProfileError};
#[cfg(all(test, target_os = "linux"))]
pub(crate) use overhead::Overhead;
pub use overhead::overhead;
#[cfg(all(test, target_os = "linux"))]
pub(crate) use print::ProfileLine;
pub use profile_run::{ProfileOutput, ProfileReport};
pub use request::{
    PrintForm, ProfileFiles, ProfileRequest, RecordFilter, RowKind, RowRequest, SampleWeight, SortKey,
    TreeDirection,
};
pub use text_style::TextStyle;

/// Makes the profile that `request` describes and gives its results and messages to `output`.
pub fn run(request: &ProfileRequest, output: &mut ProfileOutput<'_>) -> Result<ProfileReport, ProfileError> {
    check_outputs(
        &[&request.traces, request.earlier.as_slice()],
        request.mapping.as_deref(),
        &request.files.paths(),
    )?;
    let mapping =
        request.mapping.as_deref().map(|path| Input::open_within(path, &request.unpack_limit)).transpose()?;
    let symbols = match request.symbols.as_slice() {
        [] => None,
        paths => Some(SymbolDirectory::open(paths, &request.unpack_limit).map_err(ProfileError::Symbols)?),
    };
    if symbols.as_ref().is_some_and(SymbolDirectory::is_empty) {
        return Err(ProfileError::NoSymbols);
    }
    let inputs = open_inputs(&request.traces, &request.unpack_limit, true, output)?;
    let earlier_input = match &request.earlier {
        Some(path) => Some(open_earlier(path, &request.unpack_limit, true, output)?),
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
        let opened = ProfileInput::read(input, request, symbols.as_ref(), output, &mut report)?;
        let profile = ProfileRun::new(request, input, opened.source(), mapping.as_ref(), output)?;
        let calls = match &earlier_input {
            Some(earlier_input) => {
                let opened =
                    ProfileInput::read(earlier_input, request, symbols.as_ref(), output, &mut report)?;
                let earlier =
                    ProfileRun::new(request, earlier_input, opened.source(), mapping.as_ref(), output)?;
                check_same_figures(&earlier, &profile)?;
                if request.files.any() {
                    files::compare(&earlier, &profile, output)?
                } else {
                    printer.compare(&earlier, &profile, output)?
                }
            }
            None if request.files.any() => files::write(&profile, output)?,
            None => printer.print(&profile, output)?,
        };
        report |= calls;
        input.check_whole()?;
    }
    earlier_input.as_ref().map_or(Ok(()), Input::check_whole)?;
    printer.finish(output)?;
    Ok(report)
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
