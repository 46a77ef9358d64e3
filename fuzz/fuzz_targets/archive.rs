//! Archives of traces. The first byte chooses: the rest is the zip or the tar, or the rest is a manifest, an
//! empty line and the trace that a well-formed zip holds.
#![no_main]

use std::io::{Cursor, Write};

use libfuzzer_sys::fuzz_target;
use tracebridge::formats::{archive, input::Input};
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        zip.start_file(*name, options).expect("a new name");
        zip.write_all(bytes).expect("writing to memory");
    }
    zip.finish().expect("writing to memory").into_inner()
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, rest)) = data.split_first() else { return };
    let bytes = if *kind == b'M' {
        let at = rest.windows(2).position(|two| two == b"\n\n").unwrap_or(rest.len());
        let (manifest, trace) = rest.split_at(at);
        zip_of(&[("perfetto_manifest.json", manifest), ("recording.pftrace", trace), ("0-a.trace", trace)])
    } else {
        rest.to_vec()
    };
    // An archive may lie in an archive, so that the budget of the outermost one is the only limit.
    let most = (64 * bytes.len()).max(256 << 20);
    if let Ok(set) = archive::inputs_in(&Input::from_bytes("a.zip", bytes)) {
        for member in set.inputs.iter().filter(|input| input.is_member) {
            assert!(member.len() <= most);
            assert!(member.name.starts_with("a.zip/"));
        }
    }
});
