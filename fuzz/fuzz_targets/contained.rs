//! Files that hold method traces: the rest behind the first byte is a text, or the text is a member of a zip,
//! or the rest is a Perfetto trace. Each trace that is found is opened.
#![no_main]

use std::io::{Cursor, Write};

use libfuzzer_sys::fuzz_target;
use tracebridge::formats::art_method::MethodTrace;
use tracebridge::formats::{self, input::Input};
use zip::write::{SimpleFileOptions, ZipWriter};

fuzz_target!(|data: &[u8]| {
    let Some((kind, rest)) = data.split_first() else { return };
    let bytes = if *kind == b'Z' {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for name in ["FS/data/anr/anr_1", "bugreport-x.txt"] {
            zip.start_file(name, SimpleFileOptions::default()).expect("a new name");
            zip.write_all(rest).expect("writing to memory");
        }
        zip.finish().expect("writing to memory").into_inner()
    } else {
        rest.to_vec()
    };
    let Ok(set) = formats::expand(Input::from_bytes("a", bytes)) else { return };
    let inside = |input: Input| {
        let contained = formats::open(&input).map_or(Vec::new(), |opened| opened.contained_inputs(&input.name));
        let is_whole_file = input.name == "a";
        contained.into_iter().chain((!is_whole_file).then_some(input))
    };
    let traces: Vec<Input> = set.inputs.into_iter().flat_map(inside).collect();
    // The same text twice holds each trace once.
    let mut held: usize = 0;
    for trace in &traces {
        held += trace.len();
        if let Ok(opened) = MethodTrace::parse(trace) {
            assert!(opened.records().count() as u64 <= opened.counts().records);
        }
    }
    // Packets of a Perfetto trace may be compressed.
    assert!(*kind != b'Z' || held <= rest.len(), "{held} bytes of {}", rest.len());
});
