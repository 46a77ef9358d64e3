//! What the `adb` commands print and return.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::open_output;
use super::target::OnDevice;
use crate::cli::Exit;
use crate::cli::exit::message;
use crate::console::{complain, say};

/// The result of a command on one device: a text for people, an object for scripts.
pub(super) struct Outcome {
    pub(super) exit: Exit,
    /// Lines for people; empty if there is nothing to say.
    pub(super) text: String,
    /// An object; the serial is added.
    pub(super) json: Value,
}

/// Prints the outcomes as [`print`] does. With `opens`, the first output is shown in the browser.
pub(super) fn print_and_open(
    results: Vec<OnDevice<Outcome>>,
    json: bool,
    opens: bool,
) -> anyhow::Result<Exit> {
    let outputs = results.iter().filter_map(|on| Some(&on.result.as_ref().ok()?.json));
    // Several launches have an output each.
    let output =
        |json: &Value| json["output"].as_str().or(json["runs"][0]["output"].as_str()).map(PathBuf::from);
    let first = outputs.filter(|_| opens).find_map(output);
    let exit = print(results, json)?;
    // The recording is complete, whatever becomes of the browser.
    if let Some(Err(error)) = first.map(|output| open_output::open(&output)) {
        complain(format_args!("tracebridge: {}", message(&error)));
    }
    Ok(exit)
}

/// Prints the outcomes: JSON one object a line, one for each device. Returns the worst exit status: of
/// several devices, that one has failed is a failure, and the others' results are there.
pub(super) fn print(results: Vec<OnDevice<Outcome>>, json: bool) -> anyhow::Result<Exit> {
    let several = results.len() > 1;
    let mut exits = Vec::new();
    for OnDevice { serial, result } in results {
        let outcome = match result {
            Err(error) if !several && !json => return Err(error),
            result => result,
        };
        match &outcome {
            Ok(outcome) if !json => {
                let head = if several { format!("{serial}: ") } else { String::new() };
                say(format_args!("{head}{}", outcome.text));
            }
            Err(error) => complain(format_args!("tracebridge: {}", with_serial(&serial, &message(error)))),
            Ok(_) => {}
        }
        if json {
            let mut object = match &outcome {
                Ok(outcome) => outcome.json.clone(),
                Err(error) => json!({ "error": message(error) }),
            };
            if let Some(fields) = object.as_object_mut() {
                fields.insert("serial".to_owned(), serial.into());
            }
            say(format_args!("{object}\n"));
        }
        exits.push(outcome.map_or_else(
            |error| if error.is::<crate::cli::exit::UsageError>() { Exit::Usage } else { Exit::Failed },
            |outcome| outcome.exit,
        ));
    }
    Ok(worst(&exits))
}

fn with_serial(serial: &str, text: &str) -> String {
    if text.contains(serial) { text.to_owned() } else { format!("{serial}: {text}") }
}

/// The exit status that says most of several.
pub(super) fn worst(exits: &[Exit]) -> Exit {
    let order = [Exit::Failed, Exit::Usage, Exit::Lossy];
    order.into_iter().find(|exit| exits.contains(exit)).unwrap_or(Exit::Complete)
}
