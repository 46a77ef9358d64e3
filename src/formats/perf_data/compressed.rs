//! Records that `perf record -z` and `simpleperf record -z` have compressed with Zstandard: one stream over
//! the contents of all records `COMPRESSED` of the file. A record may begin in one of them and end in the
//! next.

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::bytes::Bytes;
use super::records::{HEADER_BYTES, RecordHeader, record_type};
use crate::formats::Damage;
use crate::formats::unpack_budget::UnpackBudget;

/// Bytes that are unpacked at a time.
const STEP_BYTES: usize = 128 << 10;

/// The records with the compressed ones unpacked in their places, and the damage. `None` where no record is
/// compressed.
pub(super) fn unpack(
    records: &[u8],
    records_at: u64,
    is_big_endian: bool,
    budget: &UnpackBudget,
) -> Option<(Vec<u8>, Option<Damage>)> {
    let mut at = 0;
    let mut unpacked: Option<Unpacker> = None;
    let mut plain_from = 0;
    let failed = |at: usize, what: String| {
        Some(Damage {
            offset: records_at + at as u64,
            what: format!("{what}; the records from here on are not read"),
        })
    };
    while let Some(header) = RecordHeader::parse(records, at, is_big_endian) {
        let Some(body) = records.get(at + HEADER_BYTES..at + header.size) else { break };
        let end =
            (at + header.size).saturating_add(header.data_behind(body, is_big_endian)).min(records.len());
        let packed = match header.kind {
            record_type::COMPRESSED => Some(body),
            record_type::COMPRESSED2 => {
                let mut bytes = Bytes::new(body, is_big_endian);
                bytes.u64().and_then(|len| bytes.take_u64_len(len))
            }
            _ => None,
        };
        if let Some(packed) = packed {
            let unpacker = match &mut unpacked {
                Some(unpacker) => unpacker,
                none => match Unpacker::new() {
                    Ok(unpacker) => none.insert(unpacker),
                    Err(error) => return Some((Vec::new(), failed(at, error.to_string()))),
                },
            };
            let plain = &records[plain_from..at];
            let taken = budget.take(plain.len() as u64).map_err(|error| error.to_string());
            unpacker.out.extend_from_slice(plain);
            plain_from = end;
            let result = taken.and_then(|()| unpacker.add(packed, is_big_endian, budget));
            if let Err(what) = result {
                return unpacked.map(|unpacker| (unpacker.out, failed(at, what)));
            }
        }
        at = end;
    }
    let mut unpacker = unpacked?;
    unpacker.out.extend_from_slice(&records[plain_from..]);
    let left = unpacker.partial.len();
    let damage =
        (left > 0).then(|| failed(records.len(), format!("{left} bytes of a compressed record are cut")));
    Some((unpacker.out, damage.flatten()))
}

struct Unpacker {
    decoder: Decoder<'static>,
    out: Vec<u8>,
    /// The beginning of a record whose end is in the next compressed record.
    partial: Vec<u8>,
}

impl Unpacker {
    fn new() -> std::io::Result<Unpacker> {
        Ok(Unpacker { decoder: Decoder::new()?, out: Vec::new(), partial: Vec::new() })
    }

    /// Unpacks the content of one record, and appends the records that are whole.
    fn add(&mut self, packed: &[u8], is_big_endian: bool, budget: &UnpackBudget) -> Result<(), String> {
        let mut input = InBuffer::around(packed);
        let mut step = vec![0u8; STEP_BYTES];
        loop {
            let mut output = OutBuffer::around(step.as_mut_slice());
            let before = input.pos();
            self.decoder
                .run(&mut input, &mut output)
                .map_err(|error| format!("can't be unpacked: {error}"))?;
            let written = output.pos();
            budget.take(written as u64).map_err(|error| error.to_string())?;
            self.partial.extend_from_slice(&step[..written]);
            let is_done = input.pos() == packed.len() && written < STEP_BYTES;
            if is_done || (input.pos() == before && written == 0) {
                break;
            }
        }
        let mut end = 0;
        while let Some(header) = RecordHeader::parse(&self.partial, end, is_big_endian) {
            if end + header.size > self.partial.len() {
                break;
            }
            end += header.size;
        }
        self.out.extend_from_slice(&self.partial[..end]);
        self.partial.drain(..end);
        Ok(())
    }
}
