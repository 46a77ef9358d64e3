//! All decoders of compressed data. Each takes the [`UnpackBudget`] of its file: no other file of the crate
//! names a decoder, which a test checks.

use std::io::{self, BufRead, Read, Write};

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::unpack_budget::UnpackBudget;

/// How data is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    /// Several gzip members may follow each other.
    Gzip,
    Zlib,
    Zstd,
    Xz,
}

/// Most bytes that an xz stream may unpack to: its decoder keeps them all in memory. The packed symbols of a
/// library have some megabytes.
const MAX_XZ_BYTES: u64 = 32 << 20;

/// Why an xz stream is not unpacked.
#[derive(Debug, thiserror::Error)]
enum XzError {
    #[error("no xz stream")]
    NoStream,
    #[error("unpacks to more than {MAX_XZ_BYTES} bytes, which is the most that xz data is unpacked to")]
    TooLarge,
    #[error("can't be unpacked: {0:?}")]
    Decoder(lzma_rs::error::Error),
}

impl UnpackBudget {
    /// Appends what `packed` unpacks to, and takes it out of the budget.
    ///
    /// # Errors
    /// Those of [`UnpackBudget::read_to_end`], and data that is damaged. `out` has the bytes before the
    /// error.
    pub(crate) fn unpack(
        &self,
        packing: Packing,
        packed: impl BufRead,
        out: &mut impl Write,
    ) -> io::Result<()> {
        if packing == Packing::Xz {
            return self.unpack_xz(packed, out);
        }
        self.read_to_end(decoder(packing, packed)?, out)
    }

    /// Unpacks a zlib stream as [`UnpackBudget::unpack`] does. Returns the length of the stream in `packed`.
    pub(crate) fn unpack_zlib_prefix(&self, packed: &[u8], out: &mut impl Write) -> (u64, io::Result<()>) {
        let mut decoder = flate2::read::ZlibDecoder::new(packed);
        let result = self.read_to_end(&mut decoder, out);
        (decoder.total_in(), result)
    }

    /// A reader of unpacked bytes, which it takes out of the budget.
    ///
    /// # Errors
    /// The decoder cannot be made. Reading fails at the end of the budget.
    pub(crate) fn reader<'a>(
        &self,
        packing: Option<Packing>,
        packed: impl BufRead + 'a,
    ) -> io::Result<Box<dyn Read + 'a>> {
        let budget = self.clone();
        let from: Box<dyn Read + 'a> = match packing {
            Some(packing) => decoder(packing, packed)?,
            None => Box::new(packed),
        };
        Ok(Box::new(BudgetedReader { from, budget }))
    }

    fn unpack_xz(&self, mut packed: impl BufRead, out: &mut impl Write) -> io::Result<()> {
        let mut bytes = Vec::new();
        packed.read_to_end(&mut bytes)?;
        let unpacked = unpacked_bytes_of_xz(&bytes).ok_or(XzError::NoStream).map_err(io::Error::other)?;
        if unpacked > MAX_XZ_BYTES {
            return Err(io::Error::other(XzError::TooLarge));
        }
        self.take(unpacked).map_err(io::Error::other)?;
        lzma_rs::xz_decompress(&mut &*bytes, out).map_err(|error| io::Error::other(XzError::Decoder(error)))
    }
}

fn decoder<'a>(packing: Packing, packed: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match packing {
        Packing::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(packed)),
        Packing::Zlib => Box::new(flate2::bufread::ZlibDecoder::new(packed)),
        Packing::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(packed)?),
        Packing::Xz => return Err(io::ErrorKind::Unsupported.into()),
    })
}

struct BudgetedReader<'a> {
    from: Box<dyn Read + 'a>,
    budget: UnpackBudget,
}

impl Read for BudgetedReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(out)?;
        self.budget.take(count as u64).map_err(io::Error::other)?;
        Ok(count)
    }
}

/// Size of the header of an xz stream, bytes (tukaani.org/xz/xz-file-format.txt).
const XZ_HEADER_BYTES: usize = 12;
/// Sizes of the check behind a block, bytes, by the last four bits of the header's flags.
const XZ_CHECK_BYTES: [usize; 16] = [0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64];
/// Bits of a block's flags with the number of its filters less one. Each filter may multiply the bytes.
const XZ_MORE_FILTERS: u8 = 0x03;
/// The first byte of a chunk of LZMA2 with compressed data has this bit.
const LZMA2_COMPRESSED: u8 = 0x80;
/// A chunk of compressed data also has the byte of properties from this value of its first byte on.
const LZMA2_WITH_PROPERTIES: u8 = 0xc0;

/// Number of bytes that an xz stream unpacks to, by the headers of its chunks, which the decoder follows too.
/// `None` where a header is cut or wrong, or a block has several filters.
fn unpacked_bytes_of_xz(xz: &[u8]) -> Option<u64> {
    let check = XZ_CHECK_BYTES[usize::from(*xz.get(7)? & 0x0f)];
    let mut at = XZ_HEADER_BYTES;
    let mut total = 0u64;
    loop {
        // The index, which stands behind the last block, begins with 0.
        let header_size = *xz.get(at)?;
        if header_size == 0 {
            return Some(total);
        }
        if xz.get(at + 1)? & XZ_MORE_FILTERS != 0 {
            return None;
        }
        let start = at;
        at += (usize::from(header_size) + 1) * 4;
        while let Some((chunk, unpacked)) = lzma2_chunk(xz.get(at..)?)? {
            at += chunk;
            total += unpacked;
        }
        at += 1;
        at += (at - start).next_multiple_of(4) - (at - start) + check;
    }
}

/// Length of the chunk of LZMA2 at the start of `data`, and the number of bytes that it unpacks to. The inner
/// value is `None` at the end of the chunks, the outer one where the chunk is cut or wrong.
#[expect(clippy::option_option, reason = "an end and a fault")]
fn lzma2_chunk(data: &[u8]) -> Option<Option<(usize, u64)>> {
    let number = |at: usize| Some(usize::from(*data.get(at)?) << 8 | usize::from(*data.get(at + 1)?));
    let control = *data.first()?;
    Some(match control {
        0 => None,
        1 | 2 => {
            let bytes = number(1)? + 1;
            Some((3 + bytes, bytes as u64))
        }
        LZMA2_COMPRESSED.. => {
            let unpacked = (usize::from(control & 0x1f) << 16 | number(1)?) + 1;
            let properties = usize::from(control >= LZMA2_WITH_PROPERTIES);
            Some((5 + properties + number(3)? + 1, unpacked as u64))
        }
        _ => return None,
    })
}

/// One stream of Zstandard whose parts lie apart.
pub(super) struct ZstdStream {
    decoder: Decoder<'static>,
    step: Vec<u8>,
}

/// Bytes that are unpacked at a time.
const STEP_BYTES: usize = 128 << 10;

impl ZstdStream {
    /// # Errors
    /// The decoder cannot be made.
    pub(super) fn new() -> io::Result<ZstdStream> {
        Ok(ZstdStream { decoder: Decoder::new()?, step: vec![0; STEP_BYTES] })
    }

    /// Calls `add` with what the next part of the stream unpacks to, piece by piece.
    ///
    /// # Errors
    /// Data that is damaged, the end of the budget in [`io::Error::other`], and those of `add`.
    pub(super) fn unpack(
        &mut self,
        packed: &[u8],
        budget: &UnpackBudget,
        mut add: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut input = InBuffer::around(packed);
        loop {
            let mut output = OutBuffer::around(self.step.as_mut_slice());
            let before = input.pos();
            self.decoder.run(&mut input, &mut output)?;
            let written = output.pos();
            budget.take(written as u64).map_err(io::Error::other)?;
            add(&self.step[..written])?;
            let is_done = input.pos() == packed.len() && written < STEP_BYTES;
            if is_done || (input.pos() == before && written == 0) {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::unpack_budget::{UnpackLimit, is_over_limit};

    /// An xz stream of `blocks` blocks, each with `chunks` chunks of 64 KiB. No decoder reads it.
    fn xz(blocks: usize, chunks: usize, flags: u8) -> Vec<u8> {
        let mut xz = b"\xfd7zXZ\0\0\x01crc4".to_vec();
        for _ in 0..blocks {
            xz.extend([2, flags, 0x21, 1, 0, 0, 0, 0, 1, 2, 3, 4]);
            for _ in 0..chunks {
                // A compressed chunk of 3 bytes.
                xz.extend([0xe0, 0xff, 0xff, 0, 2, 0, 7, 7, 7]);
            }
            xz.push(0);
            xz.resize(xz.len().next_multiple_of(4), 0);
            xz.extend(b"crc4");
        }
        xz.extend([0, 0]);
        xz
    }

    #[test]
    fn the_bytes_of_xz_data_are_counted_before_it_is_unpacked() {
        assert_eq!(unpacked_bytes_of_xz(&xz(1, 3, 0)), Some(3 << 16));
        assert_eq!(unpacked_bytes_of_xz(&xz(3, 5, 0)), Some(15 << 16));
        assert_eq!(unpacked_bytes_of_xz(&xz(1, 3, 1)), None, "filters inside each other multiply");
        let budget = UnpackLimit::new(Some(1 << 20)).budget(0);
        let error = budget.unpack(Packing::Xz, &*xz(1, 17, 0), &mut Vec::new()).unwrap_err();
        assert!(is_over_limit(&error), "{error}");
        let free = UnpackLimit::default().budget(0);
        let error = free.unpack(Packing::Xz, &*xz(60, 17, 0), &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("the most that xz data is unpacked to"), "{error}");
    }

    #[test]
    fn any_bytes_of_xz_are_no_panic() {
        let whole = xz(2, 3, 0);
        for cut in 0..whole.len() {
            let _ = unpacked_bytes_of_xz(&whole[..cut]);
            let mut bad = whole.clone();
            bad[cut] = 0xff;
            let _ = UnpackLimit::new(Some(1 << 20)).budget(0).unpack(Packing::Xz, &*bad, &mut Vec::new());
        }
    }

    #[test]
    fn every_packing_is_unpacked_within_the_budget() {
        use std::io::Write;
        let zeros = [0; 5_000];
        let zlib = || {
            let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            zlib.write_all(&zeros).unwrap();
            zlib.finish().unwrap()
        };
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&zeros).unwrap();
        let zstd = zstd::encode_all(&zeros[..], 1).unwrap();
        for (packing, packed) in
            [(Packing::Gzip, gzip.finish().unwrap()), (Packing::Zlib, zlib()), (Packing::Zstd, zstd)]
        {
            let budget = UnpackLimit::new(Some(9_000)).budget(0);
            let mut out = Vec::new();
            budget.unpack(packing, &*packed, &mut out).unwrap();
            assert_eq!(out, zeros);
            assert!(is_over_limit(&budget.unpack(packing, &*packed, &mut out).unwrap_err()), "{packing:?}");
            assert_eq!(out.len(), 9_000);
        }
        let budget = UnpackLimit::new(Some(9_000)).budget(0);
        let mut reader = budget.reader(Some(Packing::Zlib), io::Cursor::new(zlib())).unwrap();
        assert_eq!(io::copy(&mut reader, &mut io::sink()).unwrap(), 5_000);
        assert_eq!(budget.left(), 4_000);
        let packed = zstd::encode_all(&zeros[..], 1).unwrap();
        let mut stream = ZstdStream::new().unwrap();
        let error = packed.chunks(3).try_for_each(|part| stream.unpack(part, &budget, |_| Ok(())));
        assert!(is_over_limit(&error.unwrap_err()));
    }
}
