//! Decompresses the sections and the pages of a version 7 file.

use std::cell::RefCell;
use std::io::{self, Read};

/// Why a chunk or a section is not decompressed, or not as a whole. The subject of the text is missing.
#[derive(Debug, thiserror::Error)]
pub(super) enum DecompressError {
    #[error("unpacks to {len} bytes, not to the {promised} it promises")]
    Length { len: usize, promised: usize },
    #[error("cannot be unpacked: {0}")]
    Decoder(io::Error),
    #[error("of {packed} bytes says that it decompresses to {unpacked} bytes; no writer makes such a chunk")]
    TooLarge { packed: usize, unpacked: usize },
    #[error("was not decompressed")]
    NotDone,
}

/// The compression of a version 7 file's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Zlib,
    Zstd,
}

impl Compression {
    /// The compression with this name in a file's header. `None` for a name that is not known.
    pub(super) fn from_name(name: &str) -> Option<Compression> {
        Some(match name {
            "none" | "" => Compression::None,
            "zlib" => Compression::Zlib,
            "zstd" => Compression::Zstd,
            _ => return None,
        })
    }

    /// Decompresses `data` into `out`, which is cleared first. The result must have exactly `unpacked` bytes;
    /// otherwise the error tells the difference. On an error `out` holds as many bytes as could be
    /// decompressed.
    pub(super) fn decompress(
        self,
        data: &[u8],
        unpacked: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), DecompressError> {
        thread_local! {
            // A decompressor costs more to make than a chunk of 10 pages costs to decompress.
            static ZSTD: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
        }
        out.clear();
        let got = match self {
            Compression::None => {
                out.extend_from_slice(data);
                Ok(data.len())
            }
            Compression::Zlib => {
                flate2::read::ZlibDecoder::new(data).take(unpacked as u64 + 1).read_to_end(out)
            }
            Compression::Zstd => {
                // A zstd frame cannot grow by more than this factor. Without the limit, one damaged number in
                // the file would allocate a large buffer.
                out.reserve(unpacked.min((data.len() + 4).saturating_mul(1 << 15)));
                ZSTD.with_borrow_mut(|decompressor| {
                    if decompressor.is_none() {
                        *decompressor = Some(zstd::bulk::Decompressor::new()?);
                    }
                    decompressor.as_mut().map_or(Ok(0), |d| d.decompress_to_buffer(data, out))
                })
            }
        };
        match got {
            Ok(len) if len == unpacked => Ok(()),
            Ok(len) => Err(DecompressError::Length { len, promised: unpacked }),
            Err(error) => Err(DecompressError::Decoder(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_dat::zstd_matcher::{BLOCK, Zstd};

    /// Data like that of pages: records of a few types, whose fields differ a little from those of the record
    /// before.
    fn records(len: usize, mut seed: u64) -> Vec<u8> {
        let mut random = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % most
        };
        let mut out = Vec::new();
        while out.len() < len {
            let kind = random(5);
            out.extend((random(1 << 20) << 5 | kind).to_le_bytes());
            out.extend((0..kind * 6).map(|n| (n * n) as u8));
            out.resize(out.len() + random(40) as usize, 0);
        }
        out.truncate(len);
        out
    }

    #[test]
    fn the_recorders_zstd_frames_of_every_length_are_decompressed_by_the_c_library() {
        let mut zstd = Zstd::new();
        let mut unpacked = Vec::new();
        let lengths = (0..40).chain([4096, 40_000, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5]);
        for (n, len) in lengths.enumerate() {
            let same = vec![7; len];
            let noise: Vec<u8> = records(len, n as u64).iter().map(|b| b.wrapping_mul(167)).rev().collect();
            for data in [records(len, n as u64), same, noise] {
                let (data, packed) = zstd.frame(data, Vec::new());
                let result = Compression::Zstd.decompress(&packed, len, &mut unpacked);
                assert!(result.is_ok(), "{len} bytes: {result:?}");
                assert!(unpacked == data, "{len} bytes");
            }
        }
    }

    #[test]
    fn records_compress_to_less_than_a_third() {
        let (data, packed) = Zstd::new().frame(records(BLOCK, 1), Vec::new());
        assert!(packed.len() * 3 < data.len(), "{} of {}", packed.len(), data.len());
    }

    #[test]
    fn a_length_that_does_not_fit_the_data_is_an_error() {
        let (_, packed) = Zstd::new().frame(vec![1; 100], Vec::new());
        let mut out = Vec::new();
        assert!(Compression::Zstd.decompress(&packed, 101, &mut out).is_err());
        assert!(Compression::None.decompress(&[1, 2], 3, &mut out).is_err());
        assert!(Compression::Zlib.decompress(b"no zlib data", 3, &mut out).is_err());
    }
}
