//! Method traces as arguments: one file, packed or not, or a key file with its data file.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::formats::ReadReport;
use crate::formats::art_method::{CallAnomalies, MethodTrace};
use crate::formats::input::Input;

/// Opens a trace; a `.key` file takes the `.data` file beside it along.
pub fn open(path: &Path) -> anyhow::Result<Input> {
    match path.extension().is_some_and(|e| e == "key") {
        true => open_pair(path, &path.with_extension("data")),
        false => Ok(Input::open(path)?),
    }
}

/// Joins a key file and a data file.
pub fn open_pair(key: &Path, data: &Path) -> anyhow::Result<Input> {
    let mut bytes = Input::open(key)?.to_vec();
    bytes.extend_from_slice(&Input::open(data)?);
    Ok(Input::from_bytes(&key.display().to_string(), bytes))
}

/// Parses it; errors name the file.
pub fn parse(input: &Input) -> anyhow::Result<MethodTrace<'_>> {
    MethodTrace::parse(input).with_context(|| input.name.clone())
}

/// The traces that the arguments name: a key file followed by its data file is one.
pub fn open_all(paths: &[PathBuf]) -> anyhow::Result<Vec<Input>> {
    let mut inputs = Vec::new();
    let mut rest = paths;
    while let [path, more @ ..] = rest {
        let has = |path: &Path, ending: &str| path.extension().is_some_and(|e| e == ending);
        rest = more;
        match more {
            [data, more @ ..] if has(path, "key") && has(data, "data") => {
                inputs.push(open_pair(path, data)?);
                rest = more;
            }
            _ => inputs.push(open(path)?),
        }
    }
    Ok(inputs)
}

/// Prints damage, irregularities and notes on stderr; says whether there are any but notes.
pub fn tell(input: &Input, report: &ReadReport) -> bool {
    for damage in input.damage.iter().chain(&report.damage) {
        eprintln!("tracebridge: {}: damaged at offset {}: {}", input.name, damage.offset, damage.what);
    }
    for line in &report.irregular {
        eprintln!("tracebridge: {}: {line}", input.name);
    }
    for note in &report.notes {
        eprintln!("tracebridge: {}: {note}", input.name);
    }
    !input.damage.is_empty() || report.is_lossy()
}

/// Prints what did not fit together in the records on stderr; says whether there was anything.
pub fn tell_problems(input: &Input, problems: &CallAnomalies) -> bool {
    let lines = problems.lines();
    for line in &lines {
        eprintln!("tracebridge: {}: {line}", input.name);
    }
    !lines.is_empty()
}
