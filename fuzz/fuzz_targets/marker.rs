//! Any bytes as a marker, and as a property area: no panic; what is read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::internals::PropertyArea;
use tracebridge::markers::{MAX_LEN, Marker};

fuzz_target!(|data: &[u8]| {
    if let Some(marker) = Marker::parse(data) {
        let mut buf = [0; MAX_LEN];
        let written = marker.encode(&mut buf);
        // Names lose their separators and their ends, never the marker its kind; but a clock sync's name may
        // have been nothing else than a separator.
        if !matches!(marker, Marker::ClockSync(_)) {
            let again = Marker::parse(written).expect("our own marker");
            assert_eq!(std::mem::discriminant(&marker), std::mem::discriminant(&again));
            assert_eq!(marker.pid(), again.pid());
        }
    }
    if let Some(area) = PropertyArea::parse(data) {
        let _ = area.find("debug.atrace.tags.enableflags");
    }
});
