//! A recording of any format through `why`: no panic, no hang, and the causes of each span share no moment
//! and add up to it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::internals::explain_everything;
use tracebridge_fuzz::InputFile;

fuzz_target!(|data: &[u8]| {
    let file = InputFile::new("why", data);
    for (duration, mut stretches) in explain_everything(&file.path) {
        stretches.sort_unstable();
        let ns: u64 = stretches.iter().map(|(start, end)| *end - *start).sum();
        assert_eq!(ns, duration, "the causes do not add up");
        for pair in stretches.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "two causes share a moment: {pair:?}");
        }
    }
});
