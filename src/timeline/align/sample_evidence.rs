//! The samples with which the place of a file of samples is found: all, or evenly chosen ones.

use std::io;

use crate::clock::Timestamp;
use crate::formats::samples::{Sample, SampleSink, SampleTables};
use crate::ids::{Cpu, Tid};

/// The most samples that are kept, 24 bytes each. Of more, every second, fourth, … one is kept.
const MAX_SAMPLES: usize = 1 << 18;

/// A sample, as far as it matters for the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedBySwitches {
    /// Time, in the samples' clock.
    pub time: Timestamp,
    /// The thread.
    pub tid: Tid,
    /// The processor, where it is known.
    pub cpu: Option<Cpu>,
    /// Whether the sample was taken when the thread stopped running.
    pub is_off_cpu: bool,
}

/// Samples of one file, with which its place is found.
#[derive(Debug)]
pub struct SampleEvidence {
    /// The samples, nearly in order of time.
    pub samples: Vec<PlacedBySwitches>,
    /// The earliest and the latest time of all samples, in their clock; `None` where samples have no times.
    pub extent: Option<(Timestamp, Timestamp)>,
    /// Every such sample is kept.
    every: u64,
    seen: u64,
}

impl Default for SampleEvidence {
    fn default() -> SampleEvidence {
        SampleEvidence { samples: Vec::new(), extent: None, every: 1, seen: 0 }
    }
}

impl SampleSink for SampleEvidence {
    fn sample(&mut self, tables: &SampleTables, sample: &Sample) -> io::Result<()> {
        if sample.time == Timestamp::MIN {
            return Ok(());
        }
        let (first, last) = self.extent.unwrap_or((sample.time, sample.time));
        self.extent = Some((first.min(sample.time), last.max(sample.time)));
        let tid = tables.threads[sample.thread as usize].tid;
        if !tid.is_thread() {
            return Ok(());
        }
        if self.seen.is_multiple_of(self.every) {
            if self.samples.len() >= MAX_SAMPLES {
                let mut number = 0;
                self.samples.retain(|_| {
                    number += 1;
                    number % 2 == 1
                });
                self.every *= 2;
            }
            let is_off_cpu = tables.events[sample.event as usize].is_off_cpu;
            self.samples.push(PlacedBySwitches { time: sample.time, tid, cpu: sample.cpu, is_off_cpu });
        }
        self.seen += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::samples::{NO_STACK, SampleEvent, SampleThread};

    #[test]
    fn of_many_samples_evenly_chosen_ones_are_kept() {
        let mut tables = SampleTables::default();
        tables.events.push(SampleEvent::default());
        tables.threads.push(SampleThread { tid: Tid(7), ..SampleThread::default() });
        let mut evidence = SampleEvidence::default();
        let all = 2 * MAX_SAMPLES as u64 + 100;
        for time in (1..=all).map(Timestamp) {
            let sample = Sample { time, thread: 0, event: 0, stack: NO_STACK, cpu: None, period: 1 };
            evidence.sample(&tables, &sample).unwrap();
        }
        assert_eq!(evidence.extent, Some((Timestamp(1), Timestamp(all))));
        assert!(evidence.samples.len() <= MAX_SAMPLES, "{}", evidence.samples.len());
        let distances: Vec<u64> =
            evidence.samples.windows(2).map(|pair| pair[1].time - pair[0].time).collect();
        assert!(distances.iter().all(|distance| *distance == 4), "every fourth one");
    }
}
