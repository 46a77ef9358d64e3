//! A text becomes a trace.dat and a text again. From there on nothing changes: the second trace.dat has as
//! many events, and gives the second text letter for letter.
//! (Blanks and line breaks around a value are not kept.)
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::export;
use tracebridge::formats::input::Input;
use tracebridge::timeline::{self, MergeOptions, MergeSummary};
use tracebridge_fuzz::Written;

/// Converts one input to the format called `format`. `None` where nothing can be made of the input.
fn convert(input: Vec<u8>, format: &str) -> Option<(Vec<u8>, MergeSummary)> {
    let written = Written::default();
    let mut sink = export::create(format, Box::new(written.clone()))?;
    let input = [Input::from_bytes("input", input)];
    let summary = timeline::merge(&input, sink.as_mut(), &MergeOptions::default()).ok()?;
    drop(sink);
    Some((written.take(), summary))
}

fuzz_target!(|data: &[u8]| {
    // Without this line one event per line would have to be found before the text is recognized.
    let text = [b"# tracer: nop\n#\n", data].concat();
    let Some((dat, first)) = convert(text, "trace-dat") else { return };
    if first.report.events() == 0 {
        return;
    }
    let (text, second) = convert(dat, "systrace").expect("our own trace.dat");
    assert!(second.report.damage.is_empty(), "{:?}", second.report.damage);
    let Some((dat, third)) = convert(text.clone(), "trace-dat") else { panic!("our own text") };
    assert_eq!(second.report.events(), third.report.events());
    let (again, _) = convert(dat, "systrace").expect("our own trace.dat");
    let text = String::from_utf8_lossy(&text);
    let again = String::from_utf8_lossy(&again);
    // A text has no way to show where a value of several lines ends.
    let is_event = |line: &&str| !line.starts_with('#') && !line.starts_with("CPU:");
    if text.lines().filter(is_event).count() as u64 != second.report.events() {
        return;
    }
    let letters = |text: &str| text.split_whitespace().collect::<String>();
    assert!(letters(&text) == letters(&again), "\n{text}\n---\n{again}");
});
