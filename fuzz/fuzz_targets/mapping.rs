//! Any bytes as a mapping file of R8, in which names are looked up: the text before the first empty line is
//! the marker that is translated, its words are the names.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::internals::Mapping;

fuzz_target!(|data: &[u8]| {
    let at = data.windows(2).position(|two| two == b"\n\n").unwrap_or(0);
    let (marker, file) = data.split_at(at);
    let Ok(mapping) = Mapping::parse(file) else { return };
    let marker = String::from_utf8_lossy(marker);
    let _ = mapping.text(&marker);
    let words: Vec<&str> = marker.split_whitespace().take(8).collect();
    for name in &words {
        let (class, method) = name.rsplit_once('.').unwrap_or((name, "a"));
        for signature in ["", "()V", words[0]] {
            for line in [None, Some(0), Some(7), Some(usize::MAX)] {
                let _ = mapping.method(class, method, signature, line);
            }
        }
    }
});
