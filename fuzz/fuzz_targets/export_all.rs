//! One recording of any format, written in every format: no panic, no hang, and what is JSON can be parsed.
#![no_main]

use std::io::Write as _;

use libfuzzer_sys::fuzz_target;
use tracebridge::export::{self, FORMATS};
use tracebridge::formats::input::Input;
use tracebridge::timeline::{self, MergeOptions};
use tracebridge_fuzz::Written;

fuzz_target!(|data: &[u8]| {
    let inputs = [Input::from_bytes("input", data.to_vec())];
    if tracebridge::formats::identify(&inputs[0]).is_err() {
        return;
    }
    for format in FORMATS {
        let mut written = Written::default();
        let Some(mut sink) = export::create(format.name, Box::new(written.clone())) else { continue };
        let is_merged = timeline::merge(&inputs, sink.as_mut(), &MergeOptions::default()).is_ok();
        drop(sink);
        let _ = written.flush();
        let bytes = written.take();
        if is_merged && format.endings[0].ends_with("json") {
            if let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(&bytes) {
                panic!("{}: {error}", format.name);
            }
        }
    }
});
