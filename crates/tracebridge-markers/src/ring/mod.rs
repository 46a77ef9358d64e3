//! The ring: memory of a program into which its threads write markers without a system call, and which a
//! recorder reads. This file defines the bytes: a head, a control of two cache lines for each block, and the
//! records of each block, which `record` reads. [`RingMap`](crate::system::RingMap) maps the memory. The
//! program's side is in `ring_writer`, the recorder's in `tracebridge-device`; docs/ring.md describes both.
//!
//! All numbers are in the byte order of the machine, and everything is an atomic: two processes use the
//! memory at once, and neither may trust the other.

pub mod record;

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub use record::{BlockDamage, Record, RecordFault, RingRecords};

/// The name of the memfd; `/proc/PID/fd` shows `/memfd:tracebridge-ring (deleted)`.
pub const MEMFD_NAME: &str = "tracebridge-ring";

/// The first eight bytes of a ring.
const MAGIC: [u8; 8] = *b"TBRING\r\n";
/// The version of this layout. A recorder reads its own version alone.
const VERSION: u32 = 1;

/// The number of blocks: as many threads may write at the same time.
pub const BLOCKS: usize = 256;
/// The size of a block's records, in words of 8 bytes: 128 KiB, some 4000 markers.
pub const BLOCK_WORDS: usize = 16 * 1024;
/// The size of a block's records, bytes.
pub const BLOCK_BYTES: u32 = BLOCK_WORDS as u32 * 8;

/// Names and tracks are cut to as many bytes: a marker's text never has more of them.
pub const MAX_NAME_BYTES: usize = crate::encode::MAX_LEN;

/// Bit of [`Control::written`]: the owner of the block has read the time for a marker, or is about to, and
/// has not written it yet. Positions are multiples of 8.
pub const WRITING: u32 = 1;

/// A ring. Only the pages that are used take memory.
#[repr(C)]
pub struct RingMemory {
    /// The facts that hold for the whole ring.
    pub head: Head,
    /// The control of each block.
    pub controls: [Control; BLOCKS],
    /// The records of each block.
    pub records: [Records; BLOCKS],
}

/// The size of a ring's file, bytes.
pub const RING_BYTES: usize = size_of::<RingMemory>();

/// The records of a block: a ring of words, indexed by a position in words modulo [`BLOCK_WORDS`].
pub type Records = [AtomicU64; BLOCK_WORDS];

/// The head of a ring, a page.
#[repr(C, align(4096))]
pub struct Head {
    magic: AtomicU64,
    version: AtomicU32,
    blocks: AtomicU32,
    block_words: AtomicU32,
    /// The program's process id, as the program knows it.
    pid: AtomicU32,
    /// The number of blocks that were ever used. The program writes it.
    pub used: AtomicU32,
    /// Markers that no block was free for. The program writes it; the number wraps.
    pub unowned: AtomicU32,
    /// Whether the program can read the CPU's counter: 0 or 1. On 32-bit Arm none can.
    has_counter: AtomicU32,
    _apart: [AtomicU32; 23],
    /// Whether, and with which [`Stamp`], a recorder wants markers. The recorder writes it, and it has a
    /// cache line of its own.
    pub wanted: AtomicU32,
}

/// The control of a block. The first cache line is the program's, the second one the recorder's.
#[repr(C, align(64))]
pub struct Control {
    /// The thread id of the block's owner; 0 while the block is free.
    pub owner: AtomicU32,
    /// Position behind the last record, bytes since ever (the number wraps), and [`WRITING`].
    pub written: AtomicU32,
    /// Markers that the block had no room for, since ever. The number wraps.
    pub dropped: AtomicU32,
    _apart: [AtomicU32; 13],
    /// Position up to which the recorder has read, bytes since ever. The number wraps.
    pub read: AtomicU32,
}

/// The clock that a recorder wants markers in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamp {
    /// The CPU's counter, ticks.
    Counter,
    /// `CLOCK_BOOTTIME`, ns.
    Boottime,
}

impl Stamp {
    /// The value of [`Head::wanted`]; 0 means that nobody wants markers.
    pub const fn wanted(self) -> u32 {
        match self {
            Stamp::Counter => 1,
            Stamp::Boottime => 2,
        }
    }
}

/// A fault of a ring's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadFault {
    /// The file is something else.
    NoRing,
    /// The ring is of this other version.
    Version(u32),
    /// The ring has another size.
    Size {
        /// The number of its blocks.
        blocks: u32,
        /// The words of a block.
        words: u32,
    },
}

impl fmt::Display for HeadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            HeadFault::NoRing => f.write_str("its first bytes are not those of a ring"),
            HeadFault::Version(version) => write!(
                f,
                "it is of version {version}, and this recorder reads version {VERSION}: use the same tracebridge on \
                 both sides"
            ),
            HeadFault::Size { blocks, words } => {
                write!(f, "it says that it has {blocks} blocks of {words} words")
            }
        }
    }
}

impl std::error::Error for HeadFault {}

impl Head {
    /// Fills in the head of a new ring, which is all zero.
    #[allow(dead_code)] // Only programs with the feature `ring` make rings.
    pub fn begin(&self, pid: u32, has_counter: bool) {
        self.has_counter.store(u32::from(has_counter), Ordering::Relaxed);
        self.version.store(VERSION, Ordering::Relaxed);
        self.blocks.store(BLOCKS as u32, Ordering::Relaxed);
        self.block_words.store(BLOCK_WORDS as u32, Ordering::Relaxed);
        self.pid.store(pid, Ordering::Relaxed);
        self.magic.store(u64::from_ne_bytes(MAGIC), Ordering::Release);
    }

    /// The clock in which the program can stamp its markers, where the recorder would have `stamp`.
    pub fn possible(&self, stamp: Stamp) -> Stamp {
        if self.has_counter.load(Ordering::Relaxed) == 0 { Stamp::Boottime } else { stamp }
    }

    /// The process id of the program, or the fault of the head.
    pub fn check(&self) -> Result<u32, HeadFault> {
        if self.magic.load(Ordering::Acquire) != u64::from_ne_bytes(MAGIC) {
            return Err(HeadFault::NoRing);
        }
        let version = self.version.load(Ordering::Relaxed);
        if version != VERSION {
            return Err(HeadFault::Version(version));
        }
        let blocks = self.blocks.load(Ordering::Relaxed);
        let words = self.block_words.load(Ordering::Relaxed);
        if (blocks as usize, words as usize) != (BLOCKS, BLOCK_WORDS) {
            return Err(HeadFault::Size { blocks, words });
        }
        Ok(self.pid.load(Ordering::Relaxed))
    }
}
