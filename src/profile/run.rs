//! Makes the requested profile: opens the traces, profiles each, and prints or writes the results.

use super::error::ProfileError;
use super::output::{ProfileOutput, ProfileReport};
use super::print_profile::{print_comparison, print_json, print_profile};
use super::profile_run::ProfileRun;
use super::request::{PrintForm, ProfileRequest};
use super::write_files::{write_comparison, write_files};
use crate::formats::art_method::open_files::{open_file, open_files};
use crate::formats::input::Input;

/// Makes the profile that `request` describes and gives its results and messages to `output`.
pub fn run(request: &ProfileRequest, output: &mut ProfileOutput<'_>) -> Result<ProfileReport, ProfileError> {
    let mapping = request.mapping.as_deref().map(Input::open).transpose()?;
    let inputs = open_files(&request.traces)?;
    let earlier_input = request.earlier.as_deref().map(open_file).transpose()?;
    let writes_files = request.files.any();
    if earlier_input.is_some() && inputs.len() > 1 {
        return Err(ProfileError::SeveralTracesToCompare);
    }
    if writes_files && inputs.len() > 1 {
        return Err(ProfileError::SeveralTracesInOneFile);
    }
    let mut report = ProfileReport::default();
    let mut json = Vec::new();
    for input in &inputs {
        let trace = output.read(input, &mut report)?;
        let profile = ProfileRun::new(request, input, &trace, mapping.as_ref(), output)?;
        report.lossy |= match &earlier_input {
            Some(earlier_input) => {
                let trace = output.read(earlier_input, &mut report)?;
                let earlier = ProfileRun::new(request, earlier_input, &trace, mapping.as_ref(), output)?;
                match writes_files {
                    true => write_comparison(&earlier, &profile, output)?,
                    false => print_comparison(&earlier, &profile, &mut json, output)?,
                }
            }
            None if writes_files => write_files(&profile, output)?,
            None => print_profile(&profile, inputs.len() > 1, &mut json, output)?,
        };
    }
    if request.form == PrintForm::Json && !writes_files {
        print_json(json, output)?;
    }
    Ok(report)
}
