//! The records of a ring: whatever the bytes are, reading them ends, and what is read can be a marker's text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::internals::RingRecords;
use tracebridge::markers::{MAX_LEN, Marker};

fuzz_target!(|bytes: &[u8]| {
    let mut whole = 0;
    let mut failed = false;
    for record in RingRecords::new(bytes) {
        assert!(!failed, "a record after the damage");
        let Ok(record) = record else {
            failed = true;
            continue;
        };
        whole += 16;
        assert!(whole <= bytes.len(), "more records than bytes");
        match record.marker(7) {
            Some(marker) => {
                let mut text = [0; MAX_LEN];
                let text = marker.encode(&mut text);
                assert_eq!(text.first(), Some(&record.kind));
                assert!(!text.contains(&b'\n') && !text.contains(&0), "{record:?}");
                let _ = Marker::parse(text);
            }
            None => assert!(record.thread().is_some(), "{record:?}"),
        }
    }
});
