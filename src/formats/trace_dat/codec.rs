//! How a version 7 file's sections and pages are compressed, and their unpacking.

use std::cell::RefCell;
use std::io::Read;

/// How a version 7 file's data is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    None,
    Zlib,
    Zstd,
}

impl Codec {
    pub(super) fn named(name: &str) -> Option<Codec> {
        Some(match name {
            "none" | "" => Codec::None,
            "zlib" => Codec::Zlib,
            "zstd" => Codec::Zstd,
            _ => return None,
        })
    }

    /// Unpacks `data` into `out`, which is emptied before; it must come to exactly `unpacked` bytes.
    pub(super) fn unpack(self, data: &[u8], unpacked: usize, out: &mut Vec<u8>) -> Result<(), String> {
        thread_local! {
            // Making one costs more than unpacking a chunk of 10 pages.
            static ZSTD: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
        }
        out.clear();
        let got = match self {
            Codec::None => {
                out.extend_from_slice(data);
                Ok(data.len())
            }
            Codec::Zlib => flate2::read::ZlibDecoder::new(data).take(unpacked as u64 + 1).read_to_end(out),
            Codec::Zstd => {
                // No frame unpacks to more than this, so no field of the file makes a large buffer by itself.
                out.reserve(unpacked.min((data.len() + 4).saturating_mul(1 << 15)));
                ZSTD.with_borrow_mut(|kept| {
                    if kept.is_none() {
                        *kept = Some(zstd::bulk::Decompressor::new()?);
                    }
                    kept.as_mut().map_or(Ok(0), |d| d.decompress_to_buffer(data, out))
                })
            }
        };
        match got {
            Ok(len) if len == unpacked => Ok(()),
            Ok(len) => Err(format!("unpacks to {len} bytes, not to the {unpacked} it promises")),
            Err(error) => Err(format!("cannot be unpacked: {error}")),
        }
    }
}
