//! Which files belong to one trace: a recording and the method trace of the same moments.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The ending of a method trace's name, as `launch` writes it beside the recording.
const METHOD_TRACE: &str = "trace";

/// The files of each trace, in the order of the first file of each. The files of `pairs` belong together.
/// Of the others, a method trace `NAME.trace` belongs to the one other file `NAME.…` of its directory:
/// `launch` writes such pairs.
pub fn pairs_of(files: &[PathBuf], pairs: &[[PathBuf; 2]]) -> Vec<Vec<PathBuf>> {
    let is_paired = |file: &PathBuf| pairs.iter().any(|pair| pair.contains(file));
    let mut groups: Vec<Vec<PathBuf>> = pairs.iter().map(|pair| pair.to_vec()).collect();
    let mut stems: HashMap<OsString, Vec<&PathBuf>> = HashMap::new();
    for file in files.iter().filter(|file| !is_paired(file)) {
        stems.entry(stem(file).0).or_default().push(file);
    }
    for file in files.iter().filter(|file| !is_paired(file)) {
        let Some(of_stem) = stems.remove(&stem(file).0) else { continue };
        let traces = of_stem.iter().filter(|file| is_method_trace(file)).count();
        match (of_stem.len(), traces) {
            (2, 1) => groups.push(of_stem.into_iter().cloned().collect()),
            _ => groups.extend(of_stem.into_iter().map(|file| vec![file.clone()])),
        }
    }
    groups
}

fn is_method_trace(file: &Path) -> bool {
    stem(file).1.is_some_and(|ending| ending == METHOD_TRACE)
}

/// The path without the ending of the file's name, and this ending; `.gz` and `.zst` behind it are left out.
fn stem(file: &Path) -> (OsString, Option<OsString>) {
    let packed = file.extension().is_some_and(|ending| ending == "gz" || ending == "zst");
    let unpacked = if packed { file.with_extension("") } else { file.to_owned() };
    (unpacked.with_extension("").into_os_string(), unpacked.extension().map(ToOwned::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(files: &[&str], pairs: &[[&str; 2]]) -> Vec<String> {
        let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        let pairs: Vec<[PathBuf; 2]> = pairs.iter().map(|pair| pair.map(PathBuf::from)).collect();
        let join = |group: Vec<PathBuf>| {
            group.iter().map(|file| file.to_str().unwrap().to_owned()).collect::<Vec<_>>().join("+")
        };
        pairs_of(&files, &pairs).into_iter().map(join).collect()
    }

    #[test]
    fn a_method_trace_belongs_to_the_file_of_its_name() {
        let files =
            ["a/1.dat", "a/2.dat", "a/1.trace", "b/1.trace", "a/2.trace.gz", "x.1.trace", "x.2.trace"];
        let expected = ["a/1.dat+a/1.trace", "a/2.dat+a/2.trace.gz", "b/1.trace", "x.1.trace", "x.2.trace"];
        assert_eq!(groups(&files, &[]), expected);
    }

    #[test]
    fn files_are_taken_alone_where_their_names_leave_a_choice() {
        assert_eq!(groups(&["1.dat", "1.pftrace", "1.trace"], &[]), ["1.dat", "1.pftrace", "1.trace"]);
        assert_eq!(groups(&["1.dat", "1.txt"], &[]), ["1.dat", "1.txt"]);
    }

    #[test]
    fn a_pair_that_the_user_names_is_a_pair_whatever_its_names() {
        assert_eq!(
            groups(&["1.dat", "1.trace", "2.dat"], &[["2.dat", "1.trace"]]),
            ["2.dat+1.trace", "1.dat"]
        );
        assert_eq!(groups(&[], &[["p.dat", "q.trace"]]), ["p.dat+q.trace"]);
    }
}
