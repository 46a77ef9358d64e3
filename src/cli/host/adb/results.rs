//! Prints the results of a command on devices, and turns them into an exit status.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::cli::Exit;
use crate::cli::exit::{UsageError, message};
use crate::cli::host::{browser, interrupt};
use crate::console::{complain, say};
use crate::desk::{
    Completeness, DeskError, DeviceJson, DeviceLine, DeviceOutcome, DeviceResult, OutputServer,
};

/// The results of a command on devices, or why there are none.
type Results = Result<Vec<DeviceResult>, DeskError>;

/// Prints the results as [`print`] does. With `opens`, the first output is shown in the browser.
pub(super) fn print_and_open(results: Results, as_json: bool, opens: bool) -> anyhow::Result<Exit> {
    let outcomes = results.iter().flatten().filter_map(|on_device| on_device.result.as_ref().ok());
    let first = outcomes.filter(|_| opens).find_map(first_output);
    let exit = print(results, as_json)?;
    // The recording is complete, whatever becomes of the browser.
    if let Some(Err(error)) = first.map(|output| open(&output)) {
        complain(format_args!("tracebridge: {}", message(&error)));
    }
    Ok(exit)
}

/// The output of a recording or launch, or that of the first of several launches.
fn first_output(outcome: &DeviceOutcome) -> Option<PathBuf> {
    let first_run = outcome.json.runs.iter().flatten().next();
    let delivered =
        [Some(&outcome.json), first_run].into_iter().flatten().find_map(|json| json.delivered.as_ref());
    delivered.map(|delivered| PathBuf::from(&delivered.output))
}

/// Opens an output in the browser: a page as it is, any other in the Perfetto UI, which fetches it from this
/// process.
fn open(output: &Path) -> anyhow::Result<()> {
    if output.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("html")) {
        let page = output.canonicalize().with_context(|| output.display().to_string())?;
        return browser::open(page.as_os_str());
    }
    let server = OutputServer::start(output)?;
    browser::open_secret(&server.address())?;
    complain(format_args!("waiting until the browser has fetched {} (Ctrl-C ends)", output.display()));
    Ok(server.serve(&interrupt::has_come)?)
}

/// Prints the results, with `as_json` as one object a line, one for each device. Returns the worst exit
/// status: a device that fails makes the command fail, and the results of the others are printed.
pub(super) fn print(results: Results, as_json: bool) -> anyhow::Result<Exit> {
    let results = results.map_err(desk_error)?;
    let is_alone = results.len() == 1;
    let mut exits = Vec::new();
    for DeviceResult { serial, result } in results {
        match result {
            Err(error) if is_alone && !as_json => return Err(desk_error(error)),
            Err(error) => {
                exits.push(if error.is_usage() { Exit::Usage } else { Exit::Failed });
                let text = message(&error.into());
                complain(format_args!("tracebridge: {}", with_serial(&serial, &text)));
                if as_json {
                    print_object(DeviceJson { error: Some(text), ..DeviceJson::default() }, &serial)?;
                }
            }
            Ok(outcome) => {
                exits.push(exit(outcome.completeness));
                if as_json {
                    print_object(outcome.json, &serial)?;
                } else {
                    let head = if is_alone { String::new() } else { format!("{serial}: ") };
                    say(format_args!("{head}{}", outcome.text));
                }
            }
        }
    }
    Ok(worst(&exits))
}

/// Prints an object on a line of its own, with the device's serial in it.
fn print_object(fields: DeviceJson, serial: &str) -> serde_json::Result<()> {
    say(format_args!("{}\n", serde_json::to_value(DeviceLine { serial, fields })?));
    Ok(())
}

/// The error of a command on devices, as one of the command line where the command line is wrong.
pub(super) fn desk_error(error: DeskError) -> anyhow::Error {
    if error.is_usage() { UsageError::from(error.to_string()).into() } else { error.into() }
}

fn exit(completeness: Completeness) -> Exit {
    match completeness {
        Completeness::Complete => Exit::Complete,
        Completeness::Lossy => Exit::Lossy,
        Completeness::Failed => Exit::Failed,
    }
}

fn with_serial(serial: &str, text: &str) -> String {
    if text.contains(serial) { text.to_owned() } else { format!("{serial}: {text}") }
}

/// The exit status that says most of several.
fn worst(exits: &[Exit]) -> Exit {
    let order = [Exit::Failed, Exit::Usage, Exit::Lossy];
    order.into_iter().find(|exit| exits.contains(exit)).unwrap_or(Exit::Complete)
}
