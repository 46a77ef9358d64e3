//! Any bytes in the containers of ftrace's text. The first byte chooses: as they are, as a zlib stream behind
//! `TRACE:`, as the text that such a stream holds, in a page's script, or in base64 in a page. A text reads
//! the same in each container.
#![no_main]

use std::io::Write;

use libfuzzer_sys::fuzz_target;
use tracebridge::formats::{Order, ReadReport, ftrace_text};
use tracebridge_fuzz::Render;

fn read(data: &[u8]) -> ReadReport {
    ftrace_text::read(data, Order::Any, &mut Render::default()).expect("the sink never fails")
}

fn zlib(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).expect("writing to memory");
    encoder.finish().expect("writing to memory")
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, rest)) = data.split_first() else { return };
    match kind {
        b'Z' => drop(read(&[b"capturing trace... done\nTRACE:\n", rest].concat())),
        b'T' => {
            let packed = [b"TRACE:\n".to_vec(), zlib(rest)].concat();
            // Whether bytes are text is decided by what they begin with.
            if rest.starts_with(b"# tracer: nop\n") {
                assert_eq!(read(&packed).events(), read(rest).events());
            } else {
                read(&packed);
            }
        }
        b'S' => {
            let start =
                b"<!DOCTYPE html>\n<html><body><script class=\"trace-data\" type=\"application/text\">\n";
            read(&[start, rest, b"\n</script></body></html>"].concat());
        }
        b'B' => {
            let start = b"<!DOCTYPE html>\n<html><body><script>\n  var linuxPerfData = \"";
            read(&[start, rest, b"\";\n</script></body></html>"].concat());
        }
        _ => drop(read(data)),
    }
});
