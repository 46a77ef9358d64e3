//! Opens the traces of a request: files of their own, or inside of other files.

use std::path::{Path, PathBuf};

use super::error::ProfileError;
use crate::formats::art_method::open_files;
use crate::formats::contained::with_contained;
use crate::formats::input::{Input, InputError};
use crate::formats::unpack_budget::UnpackLimit;

/// Opens the traces of these paths. A file may hold several.
pub(super) fn open_inputs(paths: &[PathBuf], limit: UnpackLimit) -> Result<Vec<Input>, InputError> {
    Ok(with_contained(open_files::open_files(paths, limit)?))
}

/// Opens the trace that others are compared with.
pub(super) fn open_earlier(path: &Path, limit: UnpackLimit) -> Result<Input, ProfileError> {
    let mut inputs = with_contained(vec![open_files::open_file(path, limit)?]);
    match (inputs.pop(), inputs.is_empty()) {
        (Some(input), true) => Ok(input),
        _ => Err(ProfileError::SeveralTracesToCompare),
    }
}
