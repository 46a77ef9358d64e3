//! Any bytes into every reader of samples: no panic, no hang, no memory beyond reason; each sample names a
//! thread, an event type and a stack that the tables have, and the tables count what is pushed.
#![no_main]

use std::io;

use libfuzzer_sys::fuzz_target;
use tracebridge::formats::input::Input;
use tracebridge::formats::samples::{NO_STACK, Sample, SampleSink, SampleTables};

/// Checks what samples refer to.
#[derive(Default)]
struct Checked {
    samples: u64,
    period: u64,
}

impl SampleSink for Checked {
    fn sample(&mut self, tables: &SampleTables, sample: &Sample) -> io::Result<()> {
        assert!((sample.thread as usize) < tables.threads.len());
        assert!((sample.event as usize) < tables.events.len());
        assert!(sample.stack == NO_STACK || (sample.stack as usize) < tables.stacks.nodes().len());
        for frame in tables.stacks.frames(sample.stack) {
            let frame = &tables.frames[frame as usize];
            assert!((frame.module as usize) < tables.modules.len());
        }
        self.samples += 1;
        self.period = self.period.saturating_add(sample.period);
        Ok(())
    }
}

fuzz_target!(|data: &[u8]| {
    let input = Input::from_bytes("samples", data.to_vec());
    let Ok(opened) = tracebridge::formats::open(&input) else { return };
    let Some(recording) = opened.samples() else { return };
    let _ = (recording.format(), recording.clock(), recording.clock_pair(), recording.facts());
    let mut checked = Checked::default();
    let reading = recording.read(&mut checked).expect("the sink has no errors");
    let tables = &reading.tables;
    assert_eq!(tables.events.iter().map(|event| event.samples).sum::<u64>(), checked.samples);
    assert_eq!(tables.threads.iter().map(|thread| thread.samples).sum::<u64>(), checked.samples);
    let period = tables.events.iter().fold(0u64, |sum, event| sum.saturating_add(event.period));
    assert_eq!(period, checked.period);
    for (number, node) in tables.stacks.nodes().iter().enumerate() {
        assert!(node.parent == NO_STACK || (node.parent as usize) < number, "a caller stands before");
    }
});
