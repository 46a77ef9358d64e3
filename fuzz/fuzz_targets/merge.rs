//! Two inputs of any format, told by their bytes, merged on one clock and written as a Perfetto trace.
//!
//! The first four bytes are the length of the first input (little-endian), the rest is both.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::export::{self, OutputFormat};
use tracebridge::formats::detect;
use tracebridge::formats::input::Input;
use tracebridge::timeline::{self, MergeOptions, Source};

fuzz_target!(|data: &[u8]| {
    let Some((len, rest)) = data.split_first_chunk() else { return };
    let (first, second) = rest.split_at(rest.len().min(u32::from_le_bytes(*len) as usize));
    let sources: Vec<Source> = [first, second]
        .into_iter()
        .filter(|bytes| !bytes.is_empty())
        .map(|bytes| Source { format: detect::detect(bytes), input: Input::from_bytes("input", bytes.to_vec()) })
        .collect();
    let mut sink = export::create(OutputFormat::Perfetto, Box::new(std::io::sink()));
    let _ = timeline::merge(&sources, sink.as_mut(), &MergeOptions::default());
});
