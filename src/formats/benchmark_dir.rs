//! The output directory of androidx's Macrobenchmark: a Perfetto trace of each iteration
//! (`CLASS_METHOD_iter003_DATE.perfetto-trace`), and beside them the metrics that the benchmark has measured
//! itself (`PACKAGE-benchmarkData.json`).

use std::path::{Path, PathBuf};

use crate::file_access;

/// The end of the name of a file of metrics.
pub const BENCHMARK_METRICS_ENDING: &str = "-benchmarkData.json";

/// Whether a file's name is that of a benchmark's metrics, which are no trace.
pub fn is_benchmark_metrics(file: &Path) -> bool {
    file.file_name()
        .is_some_and(|name| name.as_encoded_bytes().ends_with(BENCHMARK_METRICS_ENDING.as_bytes()))
}

/// Whether a text begins as such a file of Macrobenchmark or Microbenchmark does: an object with a `context`
/// or `benchmarks`, of which the first is about the device's `build`.
pub(super) fn begins_benchmark_metrics(start: &[u8]) -> bool {
    let text = start.trim_ascii_start();
    let inside = text.strip_prefix(b"{").unwrap_or(&[]).trim_ascii_start();
    let is_context =
        inside.starts_with(b"\"context\"") && memchr::memmem::find(start, b"\"build\"").is_some();
    is_context || inside.starts_with(b"\"benchmarks\"")
}

/// The paths, where each directory of a benchmark's iterations is replaced by their traces, in the order of
/// their names.
pub fn with_iterations(paths: &[PathBuf]) -> Vec<PathBuf> {
    let expanded = |path: &PathBuf| {
        let traces = iterations(path);
        if traces.is_empty() { vec![path.clone()] } else { traces }
    };
    paths.iter().flat_map(expanded).collect()
}

fn iterations(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = file_access::entries(dir) else { return Vec::new() };
    let is_trace = |file: &PathBuf| is_iteration(file) && file_access::is_file(file);
    let mut traces: Vec<PathBuf> = entries.flatten().filter(is_trace).collect();
    traces.sort();
    traces
}

fn is_iteration(file: &Path) -> bool {
    iteration_of(file).is_some()
}

/// The benchmark that a trace's name has, `CLASS_METHOD`, and the number of the iteration.
pub(super) fn iteration_of(file: &Path) -> Option<(&str, usize)> {
    let stem = file.file_name()?.to_str()?.strip_suffix(".perfetto-trace")?;
    stem.match_indices("_iter").find_map(|(at, word)| {
        let rest = &stem[at + word.len()..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let is_number = digits >= 3 && matches!(rest.as_bytes().get(digits), None | Some(b'_'));
        Some((&stem[..at], rest[..digits].parse().ok().filter(|_| is_number)?))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn iterations_and_metrics_are_known_by_their_names() {
        for name in [
            "StartupBenchmark_startup_iter000_2026-11-25-10-00-00.perfetto-trace",
            "B_scroll[mode=FULL]_iter012_2026.perfetto-trace",
            "B_x_iter1000.perfetto-trace",
        ] {
            assert!(is_iteration(Path::new(name)), "{name}");
        }
        for name in [
            "B_iter00_x.perfetto-trace",
            "x_iter000_y.pftrace",
            "iter000.perfetto-trace",
            "a_iter000x.perfetto-trace",
        ] {
            assert!(!is_iteration(Path::new(name)), "{name}");
        }
        assert!(is_benchmark_metrics(Path::new("out/com.example-benchmarkData.json")));
        assert!(!is_benchmark_metrics(Path::new("out/com.example.json")));
    }

    #[test]
    fn a_directory_of_iterations_is_its_traces_and_another_one_stays_itself() {
        let dir = tempfile::tempdir().unwrap();
        let runs = dir.path().join("runs");
        let other = dir.path().join("other");
        for (dir, name) in [
            (&runs, "B_a_iter001_x.perfetto-trace"),
            (&runs, "B_a_iter000_x.perfetto-trace"),
            (&runs, "c-benchmarkData.json"),
            (&other, "x.perfetto-trace"),
        ] {
            fs::create_dir_all(dir).unwrap();
            fs::write(dir.join(name), "").unwrap();
        }
        let file = runs.join("c-benchmarkData.json");
        assert_eq!(
            with_iterations(&[runs.clone(), other.clone(), file.clone()]),
            [
                runs.join("B_a_iter000_x.perfetto-trace"),
                runs.join("B_a_iter001_x.perfetto-trace"),
                other,
                file
            ]
        );
    }
}
