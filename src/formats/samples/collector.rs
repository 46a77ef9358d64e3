//! The part of reading samples that all formats share: counts, threads, and the times that threads did not
//! run.

use std::io;

use super::{Sample, SampleReading, SampleSink, SampleThread};

/// Counts samples on their way to a sink.
///
/// A sample that was taken where its thread stopped running waits until the thread runs again: only then is
/// known how long it stands for.
#[derive(Debug, Default)]
pub(crate) struct SampleCollector {
    /// The result so far.
    pub reading: SampleReading,
    /// By thread: the sample that waits.
    waiting: Vec<Option<Sample>>,
}

impl SampleCollector {
    /// Adds a thread, and returns its index.
    pub(crate) fn add_thread(&mut self, pid: i32, tid: i32, name: String) -> u32 {
        let threads = &mut self.reading.tables.threads;
        let index = threads.len() as u32;
        threads.push(SampleThread { pid, tid, name, samples: 0 });
        self.waiting.push(None);
        index
    }

    /// Takes a sample. It ends the time that its thread did not run.
    pub(crate) fn take(&mut self, sample: Sample, sink: &mut dyn SampleSink) -> io::Result<()> {
        self.runs_again(sample.thread, sample.time, sink)?;
        if self.reading.tables.events[sample.event as usize].is_off_cpu {
            self.waiting[sample.thread as usize] = Some(sample);
            return Ok(());
        }
        self.push(sample, sink)
    }

    /// A thread runs at `time`, ns: pushes the sample of the time that it did not run.
    pub(crate) fn runs_again(&mut self, thread: u32, time: u64, sink: &mut dyn SampleSink) -> io::Result<()> {
        match self.waiting[thread as usize].take() {
            Some(sample) => self.push(Sample { period: time.saturating_sub(sample.time), ..sample }, sink),
            None => Ok(()),
        }
    }

    fn push(&mut self, sample: Sample, sink: &mut dyn SampleSink) -> io::Result<()> {
        let SampleReading { tables, report, .. } = &mut self.reading;
        let event = &mut tables.events[sample.event as usize];
        event.samples += 1;
        event.period = event.period.saturating_add(sample.period);
        tables.threads[sample.thread as usize].samples += 1;
        if sample.time > 0 {
            report.cover(sample.time);
        }
        sink.sample(tables, &sample)
    }

    /// Pushes the samples of threads that did not run again; how long they waited is not known.
    pub(crate) fn finish(mut self, sink: &mut dyn SampleSink) -> io::Result<SampleReading> {
        for thread in 0..self.waiting.len() {
            if let Some(sample) = self.waiting[thread].take() {
                self.push(Sample { period: 0, ..sample }, sink)?;
            }
        }
        self.reading.report.lost_anywhere = self.reading.losses.lost;
        Ok(self.reading)
    }
}
