//! Any text as a file of saved settings: what is read can be written, and is then read and written the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::internals::saved_settings_again;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some(written) = saved_settings_again(text) else { return };
    let written = String::from_utf8(written).expect("our own JSON");
    assert_eq!(saved_settings_again(&written).as_deref(), Some(written.as_bytes()));
});
