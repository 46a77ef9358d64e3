//! Any text as a file of saved settings: what is read can be written, and is then read and written the same;
//! and no path that may be written to leaves the tracefs.
#![no_main]

use std::path::{Component, Path};

use libfuzzer_sys::fuzz_target;
use tracebridge::internals::read_settings_text;

/// How many directories above the start a relative path gets, or `None` if it is absolute.
fn highest(path: &Path) -> Option<i32> {
    let mut depth = 0;
    let mut highest = 0;
    for component in path.components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir => depth -= 1,
            Component::RootDir | Component::Prefix(_) => return None,
        }
        highest = highest.min(depth);
    }
    Some(-highest)
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some(read) = read_settings_text(text) else { return };
    for knob in &read.knobs {
        // The settings of an instance are two directories below the tracefs.
        assert!(highest(Path::new(knob)).is_some_and(|above| above <= 2), "{knob}");
        assert!(!knob.is_empty() && !knob.ends_with('/'), "{knob}");
    }
    let written = String::from_utf8(read.written).expect("our own JSON");
    let again = read_settings_text(&written).expect("our own file");
    assert_eq!(again.written, written.as_bytes());
    assert_eq!(again.knobs, read.knobs);
});
