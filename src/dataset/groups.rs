//! Which files belong to one trace: a recording with the method trace, the samples and the video of the
//! screen of the same moments, and the key file and the data file of a method trace.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::formats::{InputFiles, input_files};

/// The endings of a method trace's name: `launch` writes `NAME.trace` beside the recording.
const METHOD_TRACES: [&str; 2] = ["trace", "key"];
/// The ending of samples, which `launch` writes beside the recording, too.
const SAMPLES: &str = "perf.data";

/// The files of each trace, in the order of the first file of each. The files of `pairs` belong together. Of
/// the others, a method trace `NAME.trace` or `NAME.key`, samples `NAME.perf.data` and a video `NAME.mp4`
/// belong to the one other file `NAME.…` of their directory: `launch` writes such files.
pub fn pairs_of(files: &[PathBuf], pairs: &[[PathBuf; 2]]) -> Vec<Vec<PathBuf>> {
    let is_paired = |file: &PathBuf| pairs.iter().any(|pair| pair.contains(file));
    let mut groups: Vec<Vec<PathBuf>> = pairs.iter().map(|pair| pair.to_vec()).collect();
    let others: Vec<PathBuf> = files.iter().filter(|file| !is_paired(file)).cloned().collect();
    let inputs = input_files(&others);
    let mut stems: HashMap<OsString, Vec<&InputFiles>> = HashMap::new();
    for input in &inputs {
        stems.entry(stem(&input.path).0).or_default().push(input);
    }
    for input in &inputs {
        let Some(of_stem) = stems.remove(&stem(&input.path).0) else { continue };
        let count = |is: fn(&Path) -> bool| of_stem.iter().filter(|input| is(&input.path)).count();
        let beside = [count(is_method_trace), count(is_samples), count(is_screen_video)];
        let recordings = of_stem.len() - beside.iter().sum::<usize>();
        if recordings == 1 && beside.iter().all(|count| *count <= 1) {
            groups.push(of_stem.into_iter().flat_map(InputFiles::named).collect());
        } else {
            groups.extend(of_stem.into_iter().map(InputFiles::named));
        }
    }
    groups
}

fn is_method_trace(file: &Path) -> bool {
    stem(file).1.is_some_and(|ending| METHOD_TRACES.iter().any(|name| ending == *name))
}

fn is_screen_video(file: &Path) -> bool {
    stem(file).1.is_some_and(|ending| ending == "mp4")
}

fn is_samples(file: &Path) -> bool {
    stem(file).1.is_some_and(|ending| ending == SAMPLES)
}

/// The path without the ending of the file's name, and this ending; `.gz` and `.zst` behind it are left out.
fn stem(file: &Path) -> (OsString, Option<OsString>) {
    let packed = file.extension().is_some_and(|ending| ending == "gz" || ending == "zst");
    let unpacked = if packed { file.with_extension("") } else { file.to_owned() };
    if let Some(name) = unpacked.to_str().and_then(|name| name.strip_suffix(SAMPLES)?.strip_suffix('.')) {
        return (name.into(), Some(SAMPLES.into()));
    }
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
    fn a_video_of_the_screen_belongs_to_the_file_of_its_name() {
        assert_eq!(groups(&["1.mp4", "1.dat", "2.dat"], &[]), ["1.mp4+1.dat", "2.dat"]);
        assert_eq!(groups(&["1.dat", "1.trace", "1.mp4"], &[]), ["1.dat+1.trace+1.mp4"]);
        assert_eq!(groups(&["1.mp4", "1.trace"], &[]), ["1.mp4", "1.trace"]);
    }

    #[test]
    fn samples_belong_to_the_file_of_their_name() {
        assert_eq!(groups(&["1.dat", "1.perf.data"], &[]), ["1.dat+1.perf.data"]);
        let files = ["1.perf.data", "1.dat", "1.trace", "2.perf.data", "perf.data"];
        assert_eq!(groups(&files, &[]), ["1.perf.data+1.dat+1.trace", "2.perf.data", "perf.data"]);
        assert_eq!(groups(&["1.dat", "1.txt", "1.perf.data"], &[]), ["1.dat", "1.txt", "1.perf.data"]);
    }

    #[test]
    fn files_are_taken_alone_where_their_names_leave_a_choice() {
        assert_eq!(groups(&["1.dat", "1.pftrace", "1.trace"], &[]), ["1.dat", "1.pftrace", "1.trace"]);
        assert_eq!(groups(&["1.dat", "1.txt"], &[]), ["1.dat", "1.txt"]);
    }

    #[test]
    fn a_key_file_and_its_data_file_are_one_method_trace() {
        assert_eq!(groups(&["1.data", "1.key"], &[]), ["1.key+1.data"]);
        assert_eq!(groups(&["1.dat", "1.data", "1.key", "2.data"], &[]), ["1.dat+1.key+1.data", "2.data"]);
        assert_eq!(groups(&["1.key", "1.dat"], &[]), ["1.key+1.dat"]);
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
