//! Counts the samples of a file.

use std::io;

use serde::Serialize;

use crate::clock::Clock;
use crate::formats::ReadReport;
use crate::formats::samples::{
    Sample, SampleEvent, SampleReading, SampleRecording, SampleSink, SampleTables, SampleThread,
};

/// The report of a file with samples.
#[derive(Debug, Clone, Serialize)]
pub struct SamplesReport {
    /// The format's name for people: `perf.data of simpleperf`.
    pub format: String,
    /// The clock of the samples' times.
    pub clock: Clock,
    /// The samples in numbers.
    pub samples: SampleCounts,
    /// Facts that the file states about itself: keys and values.
    pub facts: Vec<(String, String)>,
    /// The range of time, damage, irregularities and notes.
    pub report: ReadReport,
}

/// The samples of a file in numbers.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SampleCounts {
    /// Number of samples.
    pub count: u64,
    /// Records that the kernel could not write, samples among them, and samples that the recorder dropped.
    pub lost: u64,
    /// How often the kernel stopped sampling for a while because it took too much time.
    pub throttled: u64,
    /// Number of different stacks.
    pub stacks: usize,
    /// Number of different functions.
    pub functions: usize,
    /// The share of the samples whose innermost function has no symbol, percent.
    pub unsymbolised_percent: f64,
    /// The event types.
    pub events: Vec<SampleEvent>,
    /// The threads with samples.
    pub threads: Vec<SampleThread>,
}

/// Counts the samples whose innermost function has no symbol.
#[derive(Default)]
struct Unsymbolised(u64);

impl SampleSink for Unsymbolised {
    fn sample(&mut self, tables: &SampleTables, sample: &Sample) -> io::Result<()> {
        let innermost = tables.stacks.frames(sample.stack).next();
        let frame = innermost.and_then(|frame| tables.frames.get(frame as usize));
        self.0 += u64::from(!frame.is_some_and(|frame| frame.has_symbol));
        Ok(())
    }
}

/// Reads all samples and counts them.
pub(super) fn inspect(recording: &dyn SampleRecording) -> io::Result<SamplesReport> {
    let mut unsymbolised = Unsymbolised::default();
    let SampleReading { tables, losses, report } = recording.read(&mut unsymbolised)?;
    let count = tables.events.iter().map(|event| event.samples).sum();
    let percent = if count == 0 { 0.0 } else { 100.0 * unsymbolised.0 as f64 / count as f64 };
    Ok(SamplesReport {
        format: recording.format(),
        clock: recording.clock(),
        samples: SampleCounts {
            count,
            lost: losses.lost,
            throttled: losses.throttled,
            stacks: tables.stacks.nodes().len(),
            functions: tables.frames.len(),
            unsymbolised_percent: percent,
            events: tables.events,
            threads: tables.threads,
        },
        facts: recording.facts(),
        report,
    })
}
