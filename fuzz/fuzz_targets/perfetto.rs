//! Any bytes into the reader, in both orders, and through the writer that passes packets through: no panic,
//! no hang, no memory beyond reason, and every whole packet of the first input in the output.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::export::{Create, OutputFormat};
use tracebridge::formats::input::Input;
use tracebridge::formats::{FormatId, Order, has_format, perfetto};
use tracebridge::timeline::{self, MergeOptions};
use tracebridge_fuzz::{Render, Written};

/// Merges the traces, each of which passes through if it is a Perfetto trace.
fn pass_through(inputs: &[Input]) -> Option<Vec<u8>> {
    let written = Written::default();
    let Create::PassThrough(_, create) = OutputFormat::of_name("perfetto")?.create else { return None };
    let mut sink = create(Box::new(written.clone()), inputs, None);
    timeline::merge(inputs, sink.as_mut(), &MergeOptions::default()).ok()?;
    drop(sink);
    Some(written.take())
}

/// The length of the whole fields of `Trace` at the beginning of `data`.
fn whole(data: &[u8]) -> usize {
    let mut at = 0;
    while at < data.len() {
        let varint = |at: usize| {
            let mut value = 0u64;
            for (n, byte) in data.get(at..)?.iter().take(10).enumerate() {
                value |= u64::from(byte & 0x7f).checked_shl(7 * n as u32).unwrap_or(0);
                if byte & 0x80 == 0 {
                    return Some((value, at + n + 1));
                }
            }
            None
        };
        let end = varint(at).filter(|(tag, _)| *tag == 0x0a).and_then(|(_, next)| {
            let (len, next) = varint(next)?;
            next.checked_add(usize::try_from(len).ok()?).filter(|end| *end <= data.len())
        });
        match end {
            Some(end) => at = end,
            None => return at,
        }
    }
    at
}

fuzz_target!(|data: &[u8]| {
    for order in [Order::Any, Order::Time] {
        let _ = perfetto::read(data, order, &mut Render::default());
    }
    let middle = whole(&data[..data.len() / 2]);
    let inputs = [
        Input::from_bytes("first", data[..middle].to_vec()),
        Input::from_bytes("second", data[middle..].to_vec()),
    ];
    let is_trace = |input: &Input| has_format(input, FormatId::Perfetto);
    if !is_trace(&inputs[0]) {
        return;
    }
    if let Some(written) = pass_through(&inputs[..1]) {
        assert!(written.ends_with(&inputs[0]), "packets are missing");
    }
    if is_trace(&inputs[1]) {
        pass_through(&inputs);
    }
});
