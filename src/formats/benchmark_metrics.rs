//! The metrics that androidx's Macrobenchmark has measured itself, of one iteration: they are in a file
//! beside the iteration's trace (`PACKAGE-benchmarkData.json`), which has a list of runs for each metric.
//!
//! Only times are taken, whose names end with their unit (`timeToInitialDisplayMs`).

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::benchmark_dir::{is_benchmark_metrics, iteration_of};
use crate::file_access;

/// A file of metrics that is larger than this is none, bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The metrics of one iteration that are times.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IterationMetrics {
    /// Metrics with one value for each iteration, ns.
    pub times: BTreeMap<String, i64>,
    /// Metrics with a value for each frame or the like, ns.
    pub samples: BTreeMap<String, Vec<i64>>,
}

/// A file of metrics, as far as it is read.
#[derive(Deserialize)]
struct MetricsFile {
    #[serde(default)]
    benchmarks: Vec<BenchmarkResult>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BenchmarkResult {
    #[serde(default)]
    name: String,
    #[serde(default)]
    class_name: String,
    #[serde(default)]
    metrics: BTreeMap<String, MetricRuns<f64>>,
    #[serde(default)]
    sampled_metrics: BTreeMap<String, MetricRuns<Vec<f64>>>,
    #[serde(default)]
    profiler_outputs: Vec<ProfilerOutput>,
}

/// The values of a metric, an entry for each iteration.
#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
struct MetricRuns<T> {
    #[serde(default = "Vec::new")]
    runs: Vec<T>,
}

#[derive(Deserialize)]
struct ProfilerOutput {
    #[serde(default)]
    filename: String,
}

/// The metrics of the iteration whose trace this is; `None` if it is no iteration, or if no file beside it
/// has metrics of it.
///
/// # Errors
/// Those of reading the files of metrics, with their names.
pub fn metrics_of(trace: &Path) -> io::Result<Option<IterationMetrics>> {
    let Some((benchmark, iteration)) = iteration_of(trace) else { return Ok(None) };
    let name = trace.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let mut results = Vec::new();
    for file in metrics_files(trace.parent().unwrap_or(Path::new("")))? {
        results.extend(read(&file)?.benchmarks);
    }
    let of_trace = |result: &&BenchmarkResult| {
        let class = result.class_name.rsplit('.').next().unwrap_or_default();
        result.profiler_outputs.iter().any(|output| output.filename == name)
            || plain(&format!("{class}{}", result.name)) == plain(benchmark)
    };
    let only = || results.first().filter(|_| results.len() == 1);
    let Some(result) = results.iter().find(of_trace).or_else(only) else { return Ok(None) };
    let mut found = IterationMetrics::default();
    for (name, metric) in &result.metrics {
        if let (Some(unit), Some(value)) = (unit_ns(name), metric.runs.get(iteration)) {
            found.times.insert(name.clone(), (value * unit).round() as i64);
        }
    }
    for (name, metric) in &result.sampled_metrics {
        if let (Some(unit), Some(values)) = (unit_ns(name), metric.runs.get(iteration)) {
            let samples = values.iter().map(|value| (value * unit).round() as i64).collect();
            found.samples.insert(name.clone(), samples);
        }
    }
    Ok(Some(found))
}

/// The files of metrics in a directory, in the order of their names.
fn metrics_files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let mut files = Vec::new();
    for path in file_access::entries(dir)? {
        let path = path?;
        if is_benchmark_metrics(&path) && file_access::is_file(&path) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read(file: &Path) -> io::Result<MetricsFile> {
    let bad = |what: String| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{}: the metrics of a benchmark: {what}", file.display()),
        )
    };
    let mut text = Vec::new();
    let opened = file_access::open(file).map_err(|error| bad(error.to_string()))?;
    opened.take(MAX_FILE_BYTES + 1).read_to_end(&mut text).map_err(|error| bad(error.to_string()))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(bad(format!("the file has more than {MAX_FILE_BYTES} bytes")));
    }
    serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))
}

/// The letters and digits of a name: a file's name lacks some of the other characters.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// The unit of the values of a metric, ns; `None` where they are no times.
fn unit_ns(metric: &str) -> Option<f64> {
    let units = [("Ms", 1e6), ("Us", 1e3), ("Ns", 1.0)];
    units.into_iter().find_map(|(ending, ns)| metric.ends_with(ending).then_some(ns))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const METRICS: &str = r#"{"context":{"build":{}},"benchmarks":[
        {"name":"scroll[mode=FULL]","className":"com.example.ListBenchmark","params":{},
         "metrics":{"frameCount":{"runs":[30,31]}},
         "sampledMetrics":{"frameOverrunMs":{"P50":-2.0,"runs":[[-3.5,1.25],[0.5]]}}},
        {"name":"startup","className":"com.example.StartBenchmark","totalRunTimeNs":5,
         "metrics":{"timeToInitialDisplayMs":{"minimum":1.0,"median":2.0,"runs":[212.5,198.000001]}}}]}"#;

    #[test]
    fn an_iteration_has_the_metrics_of_its_benchmark_and_its_number() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("com.example.test-benchmarkData.json"), METRICS).unwrap();
        let of = |name: &str| metrics_of(&dir.path().join(name)).unwrap();
        let start = of("StartBenchmark_startup_iter001_2026-11-25-10-00-00.perfetto-trace").unwrap();
        assert_eq!(start.times, BTreeMap::from([("timeToInitialDisplayMs".to_owned(), 198_000_001)]));
        let scroll = of("ListBenchmark_scroll[mode=FULL]_iter000.perfetto-trace").unwrap();
        assert_eq!(
            scroll.samples,
            BTreeMap::from([("frameOverrunMs".to_owned(), vec![-3_500_000, 1_250_000])])
        );
        assert!(scroll.times.is_empty(), "a count is no time");
        assert_eq!(of("StartBenchmark_startup_iter009.perfetto-trace"), Some(IterationMetrics::default()));
        assert_eq!(of("OtherBenchmark_x_iter000.perfetto-trace"), None);
        assert_eq!(of("trace.perfetto-trace"), None);
    }

    #[test]
    fn metrics_that_cannot_be_read_are_an_error_that_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("x-benchmarkData.json"), &METRICS[..METRICS.len() - 9]).unwrap();
        let error = metrics_of(&dir.path().join("B_a_iter000.perfetto-trace")).unwrap_err().to_string();
        assert!(error.contains("x-benchmarkData.json: the metrics of a benchmark: EOF"), "{error}");
    }
}
