//! Samples on their way to the exporter: announces the sets of samples and their threads, and pushes the
//! samples at their times on the timeline.

use std::io;
use std::sync::Arc;

use super::align::clock_map::ClockMap;
use super::align::placement::Finding;
use super::recording_pass::Timeline;
use super::summary::DataKind;
use crate::clock::Timestamp;
use crate::formats::samples::{Sample, SampleReading, SampleRecording, SampleSink, SampleTables};
use crate::formats::{ReadReport, ThreadInfo};

/// A file with samples, and its place on the timeline.
pub struct PlacedSamples<'a> {
    /// The file's number among the inputs.
    pub index: usize,
    /// The opened file.
    pub recording: Box<dyn SampleRecording + 'a>,
    /// The tables of all samples.
    pub tables: Arc<SampleTables>,
    /// From the samples' clock to the timeline's.
    pub map: ClockMap,
    /// How the place was found; `None` for the samples of a recording, which are on its clock.
    pub finding: Option<Finding>,
}

/// Passes the samples of a file on, at their times on the timeline.
struct SamplePass<'t, 'o> {
    timeline: &'t mut Timeline<'o>,
    map: &'t ClockMap,
    set: u32,
    is_buffered: bool,
}

impl SampleSink for SamplePass<'_, '_> {
    fn sample(&mut self, tables: &SampleTables, sample: &Sample) -> io::Result<()> {
        let sample = Sample { time: self.map.map(sample.time), ..*sample };
        self.timeline.counter.sample(tables.threads[sample.thread as usize].tid);
        if self.is_buffered {
            self.timeline.buffer.add_sample(self.set, &sample);
            return Ok(());
        }
        self.timeline.out.sample(self.set, &sample)
    }
}

impl Timeline<'_> {
    /// Announces the samples of all files, and their threads: the recordings' names of threads come later,
    /// and replace these.
    pub fn announce_samples(&mut self, samples: &[PlacedSamples<'_>]) -> io::Result<()> {
        for (set, placed) in samples.iter().enumerate() {
            for thread in placed.tables.threads.iter().filter(|thread| thread.tid.is_thread()) {
                let tgid = (thread.pid.0 > 0).then_some(thread.pid);
                let name = (!thread.name.is_empty()).then_some(thread.name.as_bytes());
                self.out.thread(&ThreadInfo { tid: thread.tid, tgid, name })?;
            }
            self.out.sample_set(set as u32, &placed.tables)?;
        }
        Ok(())
    }

    /// Pushes all samples, or buffers them until the timeline reaches their times.
    pub fn push_samples(&mut self, samples: &[PlacedSamples<'_>], is_buffered: bool) -> io::Result<()> {
        for (set, placed) in samples.iter().enumerate() {
            let before = self.counter.samples;
            let mut pass = SamplePass { timeline: self, map: &placed.map, set: set as u32, is_buffered };
            let reading = placed.recording.read(&mut pass)?;
            self.add_samples(placed, reading, self.counter.samples - before);
        }
        self.buffer.sort_samples();
        Ok(())
    }

    /// Adds samples to the summary.
    fn add_samples(&mut self, placed: &PlacedSamples<'_>, reading: SampleReading, count: u64) {
        let map = &placed.map;
        let report = reading.report;
        let offset_ns = map.offset_at(report.first_ts.unwrap_or_default());
        let summary = &mut self.summary.inputs[placed.index];
        summary.samples = count;
        if let Some(finding) = &placed.finding {
            summary.format = placed.recording.format();
            summary.clock = finding.clock;
            summary.verdict = finding.verdict;
            summary.why = finding.basis.clone().into();
            summary.offset_ns = offset_ns;
            summary.error_ns = finding.error_ns;
            summary.confidence = finding.error_ns.and(finding.verdict.confidence());
            summary.residual_median_ns = finding.median;
            summary.residual_p99_ns = finding.p99;
            summary.explain = finding.trials.clone();
        }
        self.summary.contents.add(DataKind::Samples, count);
        let moved = |ts: Option<Timestamp>| ts.map(|ts| map.map(ts));
        let first_ts = moved(report.first_ts);
        let last_ts = moved(report.last_ts);
        self.add_report(placed.index, ReadReport { first_ts, last_ts, ..report });
    }
}
