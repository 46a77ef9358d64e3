//! Two inputs of any format, told by their bytes, merged on one clock and written as a Perfetto trace.
//!
//! The first four bytes are the length of the first input (little-endian), the rest is both.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::export;
use tracebridge::formats::input::Input;
use tracebridge::timeline::{self, MergeOptions};

fuzz_target!(|data: &[u8]| {
    let Some((len, rest)) = data.split_first_chunk() else { return };
    let (first, second) = rest.split_at(rest.len().min(u32::from_le_bytes(*len) as usize));
    let inputs: Vec<Input> = [first, second]
        .into_iter()
        .filter(|bytes| !bytes.is_empty())
        .map(|bytes| Input::from_bytes("input", bytes.to_vec()))
        .collect();
    let Some(mut sink) = export::create("perfetto", Box::new(std::io::sink())) else { return };
    let _ = timeline::merge(&inputs, sink.as_mut(), &MergeOptions::default());
});
