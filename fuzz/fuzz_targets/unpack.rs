//! Any bytes as a file that `Input::open` opens. The first byte chooses how often and how they are compressed
//! before: by its bits, lowest first, 2 bits for each of up to 4 layers (0 none, 1 gzip, 2 zstd, 3 cut gzip).
#![no_main]

use std::io::Write;

use libfuzzer_sys::fuzz_target;
use tracebridge::formats::input::Input;
use tracebridge::formats::{self, OpenedInput, Order};
use tracebridge_fuzz::{InputFile, Render};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("writing to memory");
    encoder.finish().expect("writing to memory")
}

fuzz_target!(|data: &[u8]| {
    let Some((layers, rest)) = data.split_first() else { return };
    let mut bytes = rest.to_vec();
    for layer in 0..4 {
        match layers >> (2 * layer) & 3 {
            1 => bytes = gzip(&bytes),
            2 => bytes = zstd::encode_all(&bytes[..], 1).expect("writing to memory"),
            3 => {
                bytes = gzip(&bytes);
                bytes.truncate(bytes.len() / 4 * 3);
            }
            _ => {}
        }
    }
    let file = InputFile::new("unpack", &bytes);
    let Ok(input) = Input::open(&file.path) else { return };
    assert_eq!(input.size, bytes.len() as u64);
    match layers {
        1 | 2 => assert!(
            input[..] == *rest
                || rest.starts_with(b"TBstream")
                || input.packed.is_none_or(|packed| packed.starts_with("tracebridge"))
        ),
        _ => {}
    }
    if let Ok(OpenedInput::Recording(recording)) = formats::open(&input) {
        let _ = recording.read(Order::Any, &mut Render::default());
    }
});
