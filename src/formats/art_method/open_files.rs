//! Opens the files of method traces: one file, compressed or not, or a key file together with its data file.
//! A name without its ending finds them too.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::formats::input::{Input, InputError};
use crate::formats::unpack_budget::UnpackLimit;

/// Opens one trace. For `NAME.key` the function also reads `NAME.data` beside it. Where no file has the name
/// `NAME`, the function opens `NAME.trace`, or else `NAME.key`.
pub fn open_file(path: &Path, limit: UnpackLimit) -> Result<Input, InputError> {
    let path = found(path);
    match has_ending(&path, "key") {
        true => open_pair(&path, &path.with_extension("data"), limit),
        false => Input::open_within(&path, limit),
    }
}

/// The file that the name of a trace stands for.
fn found(path: &Path) -> Cow<'_, Path> {
    let with = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    if path.as_os_str() == "-" || path.exists() {
        return Cow::Borrowed(path);
    }
    let candidates = [with(".trace"), with(".key")];
    candidates.into_iter().find(|file| file.is_file()).map_or(Cow::Borrowed(path), Cow::Owned)
}

/// The files that [`open_file`] reads.
pub(crate) fn files_of(path: &Path) -> Vec<PathBuf> {
    let path = found(path).into_owned();
    let data = has_ending(&path, "key").then(|| path.with_extension("data"));
    [path].into_iter().chain(data).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_its_ending_finds_the_trace_or_the_key_file_with_its_data() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("app.1");
        let write = |ending: &str, text: &str| std::fs::write(dir.path().join(ending), text).unwrap();
        let content = || open_file(&base, UnpackLimit::default()).map(|input| input.to_vec()).ok();
        assert_eq!(content(), None);
        write("app.1.key", "key,");
        assert_eq!(content(), None, "the data file is missing");
        write("app.1.data", "data");
        assert_eq!(content().as_deref(), Some(&b"key,data"[..]));
        assert_eq!(files_of(&base), ["app.1.key", "app.1.data"].map(|name| dir.path().join(name)));
        write("app.1.trace", "trace");
        assert_eq!(content().as_deref(), Some(&b"trace"[..]));
        write("app.1", "base");
        assert_eq!(content().as_deref(), Some(&b"base"[..]));
    }
}
