//! A method trace through `profile` and `dmtracedump` with their outputs, which the first two bytes choose:
//! no panic, no hang, and no output whose size is out of all proportion.
#![no_main]

use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use tracebridge::profile::dmtracedump::{self, DumpRequest};
use tracebridge::profile::{
    self, PrintForm, ProfileFiles, ProfileOutput, ProfileRequest, RecordFilter, RowKind, RowRequest,
    TreeDirection,
};
use tracebridge_fuzz::InputFile;

const KINDS: [RowKind; 4] = [RowKind::Method, RowKind::Class, RowKind::Package, RowKind::Thread];
const FORMS: [PrintForm; 3] = [PrintForm::Text, PrintForm::Json, PrintForm::Csv];

fn files(choice: u8) -> ProfileFiles {
    let stdout = || Some(PathBuf::from("-"));
    let merge_threads = choice & 8 != 0;
    match choice & 7 {
        1 => ProfileFiles { folded: stdout(), merge_threads, ..ProfileFiles::default() },
        2 => ProfileFiles { flamegraph: stdout(), merge_threads, ..ProfileFiles::default() },
        3 => ProfileFiles { dot: stdout(), ..ProfileFiles::default() },
        4 => ProfileFiles { speedscope: stdout(), ..ProfileFiles::default() },
        5 => ProfileFiles { firefox: stdout(), ..ProfileFiles::default() },
        _ => ProfileFiles::default(),
    }
}

fuzz_target!(|data: &[u8]| {
    let Some(([what, how], trace)) = data.split_first_chunk() else { return };
    let file = InputFile::new("profile", trace);
    let mut results = Vec::new();
    let mut message = |_: &str, _: &str| {};
    let mut output = ProfileOutput { results: &mut results, message: &mut message };
    if what & 0x80 != 0 {
        let request = DumpRequest {
            traces: vec![file.path.clone()],
            earlier: (what & 1 != 0).then(|| file.path.clone()),
            html: what & 2 != 0,
            records: what & 4 != 0,
            clock: (how & 2 != 0).then_some(usize::from(how & 1)),
            threshold_percent: 20,
            ..DumpRequest::default()
        };
        let _ = dmtracedump::run(&request, &mut output);
    } else {
        let request = ProfileRequest {
            traces: vec![file.path.clone()],
            earlier: (what & 0x40 != 0).then(|| file.path.clone()),
            clock: (how & 2 != 0).then_some(usize::from(how & 1)),
            filter: RecordFilter {
                threads: Vec::new(),
                window_ns: (how & 4 != 0).then_some(1_000..50_000_000),
            },
            rows: RowRequest {
                kind: KINDS[usize::from(how >> 3 & 3)],
                relations: how & 0x20 != 0,
                ..RowRequest::default()
            },
            tree: match what >> 4 & 3 {
                1 => Some(TreeDirection::TopDown),
                2 => Some(TreeDirection::BottomUp),
                _ => None,
            },
            form: FORMS[usize::from(how >> 6) % 3],
            files: files(what & 15),
            ..ProfileRequest::default()
        };
        let _ = profile::run(&request, &mut output);
    }
    // Names are printed once for each row, and a trace of 4 KiB has at most a few hundred of both.
    assert!(results.len() < 64 << 20, "{} bytes of output", results.len());
});
