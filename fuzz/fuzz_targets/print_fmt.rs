//! Any text as a print format, over a record with a field of every type.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::ftrace::print_fmt::{PrintFmt, Symbolizer};
use tracebridge::ftrace::{Endian, EventType, Field, FieldType};

fuzz_target!(|data: &[u8]| {
    let field = |name: &str, ctype: &str, ty, offset, size| Field {
        name: name.into(),
        ctype: ctype.into(),
        ty,
        offset,
        size,
    };
    let kind = EventType {
        system: "fuzz".into(),
        name: "fuzz".into(),
        fields: vec![
            field("a", "int", FieldType::Int, 0, 4),
            field("b", "u32", FieldType::Uint, 4, 4),
            field("s", "char[8]", FieldType::FixedStr, 8, 8),
            field("d", "__data_loc char[]", FieldType::DataLocStr, 16, 4),
            field("r", "__rel_loc u8[]", FieldType::RelLocBytes { elem: 1 }, 20, 4),
            field("u", "u64", FieldType::Uint, 24, 8),
            field("addr", "__u8[16]", FieldType::Bytes { elem: 1 }, 32, 16),
        ],
        print_fmt: Some(String::from_utf8_lossy(data).into_owned()),
    };
    for long in [4, 8] {
        let Ok(program) = PrintFmt::compile(&kind, long) else { continue };
        let symbols = || b"ffffffff81000000 T f\nffffffff82000000 T g\n".to_vec();
        let context = Symbolizer::new(long, Box::new(symbols), Box::new(Vec::new));
        let record: Vec<u8> = (0..64).map(|n| if n == 16 { 40 } else { n }).collect();
        let mut out = Vec::new();
        for len in [64, 40, 3] {
            let _ = program.print(&record[..len], Endian::Little, &context, &mut out);
        }
    }
});
