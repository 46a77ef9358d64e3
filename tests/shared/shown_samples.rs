//! The samples of a file as the library reads them, in the form in which simpleperf prints them.

use std::io;
use std::path::Path;

use support::simpleperf::{PrintedSample, as_simpleperf_writes};
use tracebridge::formats::input::Input;
use tracebridge::formats::open;
use tracebridge::formats::samples::{Sample, SampleReading, SampleSink, SampleTables};

#[derive(Default)]
struct Shown(Vec<PrintedSample>);

impl SampleSink for Shown {
    fn sample(&mut self, tables: &SampleTables, sample: &Sample) -> io::Result<()> {
        let frame = |frame: u32| {
            let frame = &tables.frames[frame as usize];
            let path = tables.modules[frame.module as usize].path.clone();
            let name = as_simpleperf_writes(&frame.name);
            // simpleperf calls a file that it does not know `unknown`.
            if path.is_empty() {
                (name.replace("[unknown]", "unknown"), "unknown".to_owned())
            } else {
                (name, path)
            }
        };
        let mut stack: Vec<(String, String)> = tables.stacks.frames(sample.stack).map(frame).collect();
        // simpleperf prints no caller in a file that it does not know.
        let mut is_own = true;
        stack.retain(|(_, file)| std::mem::take(&mut is_own) || file != "unknown");
        self.0.push(PrintedSample {
            event: tables.events[sample.event as usize].name.clone(),
            time: sample.time.0,
            tid: tables.threads[sample.thread as usize].tid.0,
            period: sample.period,
            stack,
        });
        Ok(())
    }
}

/// The samples of a file, sorted, and the result of reading it.
pub fn read(path: &Path) -> (Vec<PrintedSample>, SampleReading) {
    let input = Input::open(path).unwrap();
    let opened = open(&input).unwrap();
    let mut shown = Shown::default();
    let reading = opened.samples().unwrap().read(&mut shown).unwrap();
    comparable(&mut shown.0);
    assert!(reading.report.damage.is_empty(), "{:?}", reading.report.damage);
    (shown.0, reading)
}

pub const MANGLED: &str = "a mangled name";

/// Takes the times off the CPU from threads that had ended: the kernel gives all of them the number -1.
/// Replaces names that come from mangled ones: the programs of others that a recording of the whole machine
/// meets are of Rust too, whose names simpleperf writes in another way.
pub fn comparable(samples: &mut [PrintedSample]) {
    for sample in samples.iter_mut().filter(|sample| sample.tid < 0) {
        sample.period = 0;
    }
    for (name, _) in samples.iter_mut().flat_map(|sample| &mut sample.stack) {
        if name.contains("::") {
            *name = MANGLED.to_owned();
        }
    }
    samples.sort();
}
