//! Opens the files of method traces: one file, compressed or not, or a key file together with its data file.

use std::path::{Path, PathBuf};

use crate::formats::input::{Input, InputError};
use crate::formats::unpack_budget::UnpackLimit;

/// Opens one trace. For `NAME.key` the function also reads `NAME.data` beside it.
pub fn open_file(path: &Path, limit: UnpackLimit) -> Result<Input, InputError> {
    match has_ending(path, "key") {
        true => open_pair(path, &path.with_extension("data"), limit),
        false => Input::open_within(path, limit),
    }
}

/// The files that [`open_file`] reads.
pub(crate) fn files_of(path: &Path) -> Vec<PathBuf> {
    let data = has_ending(path, "key").then(|| path.with_extension("data"));
    [path.to_owned()].into_iter().chain(data).collect()
}

/// Opens the traces in a list of paths. A key file and the data file right behind it are one trace.
pub fn open_files(paths: &[PathBuf], limit: UnpackLimit) -> Result<Vec<Input>, InputError> {
    let mut inputs = Vec::new();
    let mut rest = paths;
    while let [path, after @ ..] = rest {
        match after {
            [data, after @ ..] if has_ending(path, "key") && has_ending(data, "data") => {
                inputs.push(open_pair(path, data, limit)?);
                rest = after;
            }
            _ => {
                inputs.push(open_file(path, limit)?);
                rest = after;
            }
        }
    }
    Ok(inputs)
}

/// Joins a key file (the text section) and its data file (the records) into the content of one trace file.
fn open_pair(key: &Path, data: &Path, limit: UnpackLimit) -> Result<Input, InputError> {
    let mut bytes = Input::open_within(key, limit)?.to_vec();
    bytes.extend_from_slice(&Input::open_within(data, limit)?);
    Ok(Input::from_bytes(&key.display().to_string(), bytes))
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|e| e == ending)
}
