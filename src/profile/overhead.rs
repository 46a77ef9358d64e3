//! The overhead of the method tracer: a method's share of the time by the calls of a method trace, against
//! its share of the samples of the same run. A method that is called often and is short gets the time that
//! recording its calls takes; samples are taken at moments in time, whatever is called.

use std::collections::HashMap;
use std::io;

use serde::Serialize;

use super::count::flat::FlatProfile;
use super::count::selection::ProfileSelection;
use super::error::ProfileError;
use super::figures::duration;
use super::profile_run::{ProfileOutput, ProfileReport, open_inputs};
use super::request::ProfileRequest;
use crate::formats::art_method::{CPU, WALL};
use crate::formats::input::Input;
use crate::formats::samples::{FrameKind, Sample, SampleSink, SampleTables};
use crate::formats::{self, FormatId};

/// Rows that are printed where the request does not say how many.
const ROWS: usize = 40;

/// A method's shares.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
struct OverheadRow {
    /// `com.example.Foo.bar`.
    method: String,
    calls: u64,
    /// The exclusive time by the method trace, ns.
    exclusive_ns: u64,
    samples: u64,
    /// Of the time of all methods, from 0 to 1.
    share_by_calls: f64,
    /// Of all samples in methods, from 0 to 1.
    share_by_samples: f64,
}

/// The comparison of a method trace with samples, as it is printed in JSON.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Overhead<'a> {
    /// The path as given.
    method_trace: &'a str,
    /// The path as given.
    samples: &'a str,
    /// `cpu` or `wall`: that of the exclusive times.
    clock: &'static str,
    calls: u64,
    exclusive_ns: u64,
    /// Samples in a method.
    sampled: u64,
    /// Samples outside of all methods.
    outside: u64,
    /// The greatest difference first.
    rows: Vec<OverheadRow>,
}

/// Counts the samples of running threads by the innermost method.
#[derive(Default)]
struct MethodSamples {
    /// By the number of the frame.
    by_frame: HashMap<u32, u64>,
    outside: u64,
}

impl SampleSink for MethodSamples {
    fn sample(&mut self, tables: &SampleTables, sample: &Sample) -> io::Result<()> {
        if tables.events[sample.event as usize].is_off_cpu {
            return Ok(());
        }
        let is_method = |frame: &u32| tables.frames[*frame as usize].kind == FrameKind::Java;
        match tables.stacks.frames(sample.stack).find(is_method) {
            Some(frame) => *self.by_frame.entry(frame).or_default() += 1,
            None => self.outside += 1,
        }
        Ok(())
    }
}

/// Compares the two inputs of the request: a method trace, and samples of the same run.
///
/// # Errors
/// [`ProfileError::NotTraceAndSamples`] where the inputs are others.
pub fn overhead(
    request: &ProfileRequest,
    output: &mut ProfileOutput<'_>,
) -> Result<ProfileReport, ProfileError> {
    let inputs = open_inputs(&request.traces, &request.unpack_limit, true, output)?;
    let is_trace =
        |input: &&Input| formats::identify(input).is_ok_and(|format| format == FormatId::MethodTrace);
    let (traces, samples): (Vec<&Input>, Vec<&Input>) = inputs.iter().partition(is_trace);
    let ([trace_input], [sample_input]) = (&traces[..], &samples[..]) else {
        return Err(ProfileError::NotTraceAndSamples);
    };
    let mut report = ProfileReport::default();
    let trace = output.read(trace_input, &mut report)?;
    let opened = formats::open(sample_input)?;
    let recording = opened.samples().ok_or(ProfileError::NotTraceAndSamples)?;
    let mut counts = MethodSamples::default();
    let reading = recording.read(&mut counts).map_err(ProfileError::Print)?;
    report |= output.report_reading(sample_input, &reading.report);

    let header = trace.header();
    if !header.has_times() {
        return Err(ProfileError::NoTimes { name: trace_input.name.clone(), purpose: "--overhead" });
    }
    let clock = if header.clock.has_cpu() { CPU } else { WALL };
    let flat = FlatProfile::from_trace(&trace, &ProfileSelection::default());
    let mut rows: HashMap<String, OverheadRow> = HashMap::new();
    let empty = |method: &String| OverheadRow {
        method: method.clone(),
        calls: 0,
        exclusive_ns: 0,
        samples: 0,
        share_by_calls: 0.0,
        share_by_samples: 0.0,
    };
    for (method, stat) in trace.methods().iter().zip(&flat.methods) {
        let class = method.class_name();
        let name =
            if class.is_empty() { method.name.to_string() } else { format!("{class}.{}", method.name) };
        let row = rows.entry(name.clone()).or_insert_with(|| empty(&name));
        row.calls += stat.calls + stat.recursive;
        row.exclusive_ns += stat.exclusive[clock].saturating_mul(header.tick_ns);
    }
    for (frame, count) in counts.by_frame {
        let name = &reading.tables.frames[frame as usize].name;
        rows.entry(name.clone()).or_insert_with(|| empty(name)).samples += count;
    }
    let mut rows: Vec<OverheadRow> =
        rows.into_values().filter(|row| row.calls > 0 || row.samples > 0).collect();
    let sampled: u64 = rows.iter().map(|row| row.samples).sum();
    let exclusive_ns: u64 = rows.iter().map(|row| row.exclusive_ns).sum();
    let calls: u64 = rows.iter().map(|row| row.calls).sum();
    for row in &mut rows {
        row.share_by_calls = row.exclusive_ns as f64 / exclusive_ns.max(1) as f64;
        row.share_by_samples = row.samples as f64 / sampled.max(1) as f64;
    }
    let change = |row: &OverheadRow| (row.share_by_calls - row.share_by_samples).abs();
    rows.sort_by(|a, b| change(b).total_cmp(&change(a)).then_with(|| a.method.cmp(&b.method)));
    let comparison = Overhead {
        method_trace: &trace_input.name,
        samples: &sample_input.name,
        clock: if clock == CPU { "cpu" } else { "wall" },
        calls,
        exclusive_ns,
        sampled,
        outside: counts.outside,
        rows,
    };
    comparison.print(request, output).map_err(ProfileError::Print)?;
    report.has_results |= sampled > 0 && calls > 0;
    if !report.has_results {
        (output.message)(&sample_input.name, "no sample is in a method of Java: there is nothing to compare");
    }
    trace_input.check_whole()?;
    sample_input.check_whole()?;
    Ok(report)
}

impl Overhead<'_> {
    fn print(&self, request: &ProfileRequest, output: &mut ProfileOutput<'_>) -> io::Result<()> {
        let out = &mut output.results;
        if request.form == super::PrintForm::Json {
            serde_json::to_writer(&mut **out, self)?;
            return writeln!(out);
        }
        let time = if self.clock == "cpu" { "CPU time" } else { "wall time, waiting included" };
        writeln!(
            out,
            "{}: {} calls, {} of {time}",
            self.method_trace,
            self.calls,
            duration(self.exclusive_ns)
        )?;
        writeln!(
            out,
            "{}: {} samples in methods, {} outside of all",
            self.samples, self.sampled, self.outside
        )?;
        writeln!(
            out,
            "\n{:>9} {:>11} {:>10} {:>9} {:>9}  method",
            "by calls", "by samples", "change", "calls", "samples"
        )?;
        let limit = request.rows.limit.unwrap_or(ROWS);
        let shown = if limit == 0 { self.rows.len() } else { limit.min(self.rows.len()) };
        for row in &self.rows[..shown] {
            let percent = |share: f64| format!("{:.1} %", share * 100.0);
            writeln!(
                out,
                "{:>9} {:>11} {:>10} {:>9} {:>9}  {}",
                percent(row.share_by_calls),
                percent(row.share_by_samples),
                format!("{:+.1} pp", (row.share_by_calls - row.share_by_samples) * 100.0),
                row.calls,
                row.samples,
                row.method
            )?;
        }
        Ok(())
    }
}
