//! One program's ring: reads its blocks, and counts what each thread wrote and dropped.
//!
//! The program may write anything into the memory at any time. So a block is copied before it is looked at,
//! every number is a claim, and a block that does not add up is given up while the others go on.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::check::CheckedRing;
use super::pending::Pending;
use super::times::BoottimeLine;
use crate::markers::MAX_LEN;
use crate::markers::internals::ring::layout::{BLOCK_BYTES, BLOCK_WORDS, BLOCKS, WRITING};
use crate::markers::internals::ring::{BlockDamage, RingRecords, Stamp};

/// How long the markers of other threads wait for a thread that was interrupted while it wrote one.
const MAX_HOLD: Duration = Duration::from_millis(500);
/// The most threads of a program that are counted one by one; the others are counted together.
const MAX_THREADS: usize = 1 << 16;

/// The counts of one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ThreadCount {
    /// The thread's name when it wrote its first marker; empty if it did so before the recording.
    pub(super) name: Vec<u8>,
    pub(super) markers: u64,
    pub(super) dropped: u64,
}

/// A program whose ring is being read.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) pid: i32,
    pub(super) name: String,
    ring: CheckedRing,
    link: PathBuf,
    /// The clock in which the program stamps its markers.
    stamp: Stamp,
    /// Markers stamped before this, in the clock of the recorder's stamps, are an earlier recording's.
    since: u64,
    blocks: Vec<Block>,
    /// [`Head::unowned`](crate::markers::internals::ring::layout::Head::unowned) when it was last read.
    unowned: u32,
    /// Markers that no block was free for.
    pub(super) without_block: u64,
    /// By thread id; 0 stands for the threads beyond [`MAX_THREADS`].
    pub(super) threads: HashMap<i32, ThreadCount>,
    /// Why blocks were given up.
    pub(super) damage: Vec<String>,
}

/// What the recorder knows of a block.
#[derive(Debug, Clone, Default)]
struct Block {
    /// Position up to which it is read.
    read: u32,
    /// The thread that writes.
    tid: i32,
    /// The block's count of dropped markers, as far as it is counted.
    dropped: u32,
    held: Option<Held>,
    is_given_up: bool,
}

/// A marker that a thread has begun and not finished.
#[derive(Debug, Clone, Copy)]
struct Held {
    position: u32,
    /// The marker's time is not before this, in the clock of the stamps.
    stamp: u64,
    since: Instant,
}

/// A round of reading all rings.
#[derive(Debug)]
pub(super) struct Round {
    /// The time at which the round before began, in the clock of the stamps.
    pub(super) before: u64,
    /// Markers up to this time are all there.
    pub(super) complete: u64,
    /// For programs that stamp their markers with `CLOCK_BOOTTIME`, where the others do not.
    pub(super) boottime: Option<BoottimeLine>,
    /// Markers that were dropped since the round before.
    pub(super) dropped: u64,
    /// The part of a block that was filled at most.
    pub(super) fill: f32,
    /// A buffer for the bytes of a block.
    pub(super) bytes: Vec<u8>,
    /// A buffer for the text of a marker.
    pub(super) text: Box<[u8; MAX_LEN]>,
}

/// Why a block of a ring is given up.
#[derive(Debug, thiserror::Error)]
enum BlockFault {
    #[error("it says that {0} of {BLOCK_BYTES} bytes are unread")]
    Unread(u32),
    #[error(transparent)]
    Record(#[from] BlockDamage),
    #[error("it says that it is of thread {0}, which is another process's")]
    ForeignThread(i32),
    #[error("its first record does not say which thread writes")]
    NoThread,
}

impl Program {
    /// Begins to read a ring. What an earlier recorder has left in it is not stored.
    pub(super) fn begin(pid: i32, link: PathBuf, ring: CheckedRing, stamp: Stamp, since: u64) -> Program {
        let comm = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        let head = &ring.map.head;
        let used = (head.used.load(Ordering::Acquire) as usize).min(BLOCKS);
        let blocks = ring.map.controls[..used].iter().map(|control| Block {
            read: control.read.load(Ordering::Relaxed),
            tid: Some(control.owner.load(Ordering::Relaxed).cast_signed())
                .filter(|tid| may_be_of(*tid, pid))
                .unwrap_or(0),
            dropped: control.dropped.load(Ordering::Relaxed),
            ..Block::default()
        });
        let blocks = blocks.collect();
        let unowned = head.unowned.load(Ordering::Relaxed);
        let stamp = head.possible(stamp);
        head.wanted.store(stamp.wanted(), Ordering::Release);
        let name = String::from_utf8_lossy(comm.trim_ascii_end()).into_owned();
        let (threads, damage) = (HashMap::new(), Vec::new());
        Program { pid, name, ring, link, stamp, since, blocks, unowned, without_block: 0, threads, damage }
    }

    /// Tells the program that nobody wants its markers any more.
    pub(super) fn release(&self) {
        self.ring.map.head.wanted.store(0, Ordering::Release);
    }

    /// Whether the process still has the ring: it may have ended, or run another program.
    pub(super) fn is_there(&self) -> bool {
        is_same(&self.link, self.ring.id)
    }

    /// Whether this is the ring with this identity.
    pub(super) fn is_ring(&self, link: &Path) -> bool {
        is_same(link, self.ring.id)
    }

    /// Whether the program stamps its markers with `CLOCK_BOOTTIME`.
    pub(super) fn stamps_boottime(&self) -> bool {
        self.stamp == Stamp::Boottime
    }

    /// Reads what all blocks have.
    pub(super) fn read(&mut self, round: &mut Round, pending: &mut Pending) {
        let head = &self.ring.map.head;
        let unowned = head.unowned.load(Ordering::Relaxed);
        let more = unowned.wrapping_sub(std::mem::replace(&mut self.unowned, unowned));
        self.without_block += u64::from(more);
        round.dropped += u64::from(more);
        let used = (head.used.load(Ordering::Acquire) as usize).min(BLOCKS);
        if used > self.blocks.len() {
            self.blocks.resize(used, Block::default());
        }
        for number in 0..self.blocks.len() {
            if self.blocks[number].is_given_up {
                continue;
            }
            let mut block = self.blocks[number].clone();
            if let Err(fault) = self.read_block(number, &mut block, round, pending) {
                block.is_given_up = true;
                self.damage.push(format!("block {number} of the ring is given up: {fault}"));
            }
            self.blocks[number] = block;
        }
    }

    fn read_block(
        &mut self,
        number: usize,
        block: &mut Block,
        round: &mut Round,
        pending: &mut Pending,
    ) -> Result<(), BlockFault> {
        let control = &self.ring.map.controls[number];
        // In this order: a drop that is counted belongs to the thread of the records that are read with it,
        // or to one before.
        let dropped = control.dropped.load(Ordering::Acquire);
        let word = control.written.load(Ordering::Acquire);
        let position = word & !WRITING;
        block.hold(word & WRITING != 0, position, round);
        let unread = position.wrapping_sub(block.read);
        if unread > BLOCK_BYTES || !unread.is_multiple_of(8) {
            return Err(BlockFault::Unread(unread));
        }
        if unread == 0 && dropped == block.dropped {
            return Ok(());
        }
        round.fill = round.fill.max(unread as f32 / BLOCK_BYTES as f32);
        let records = &self.ring.map.records[number];
        round.bytes.clear();
        let first = block.read as usize / 8;
        for n in 0..unread as usize / 8 {
            let word = records[(first + n) % BLOCK_WORDS].load(Ordering::Relaxed);
            round.bytes.extend_from_slice(&word.to_le_bytes());
        }
        block.read = position;
        control.read.store(position, Ordering::Release);
        let bytes = std::mem::take(&mut round.bytes);
        let result = self.read_records(&bytes, block, round, pending);
        round.bytes = bytes;
        count_dropped(&mut self.threads, block, dropped, round);
        result
    }

    fn read_records(
        &mut self,
        bytes: &[u8],
        block: &mut Block,
        round: &mut Round,
        pending: &mut Pending,
    ) -> Result<(), BlockFault> {
        let mut markers = 0;
        let mut result = Ok(());
        for record in RingRecords::new(bytes) {
            let record = match record {
                Ok(record) => record,
                Err(damage) => {
                    result = Err(damage.into());
                    break;
                }
            };
            let time = round.boottime.filter(|_| self.stamps_boottime());
            let time = time.map_or(record.time, |line| line.stamp(record.time));
            if let Some((tid, base)) = record.thread() {
                count(&mut self.threads, block.tid).markers += std::mem::take(&mut markers);
                count_dropped(&mut self.threads, block, base, round);
                if !may_be_of(tid, self.pid) {
                    return Err(BlockFault::ForeignThread(tid));
                }
                block.tid = tid;
                count(&mut self.threads, tid).name = record.name.to_vec();
            } else if time >= self.since
                && let Some(marker) = record.marker(self.pid)
            {
                if block.tid <= 0 {
                    return Err(BlockFault::NoThread);
                }
                markers += 1;
                pending.push(time, block.tid, marker.encode(&mut round.text));
            }
        }
        count(&mut self.threads, block.tid).markers += markers;
        result
    }
}

impl Block {
    /// Notes whether the thread is writing a marker now, which later markers of others wait for.
    fn hold(&mut self, is_writing: bool, position: u32, round: &mut Round) {
        let now = || Held { position, stamp: round.before, since: Instant::now() };
        self.held = is_writing.then(|| match self.held {
            // It is the marker that the thread was writing in the round before.
            Some(held) if held.position == position => held,
            // The thread has begun it since then.
            _ => now(),
        });
        if let Some(held) = self.held.filter(|held| held.since.elapsed() < MAX_HOLD) {
            round.complete = round.complete.min(held.stamp);
        }
    }
}

/// The counts of a thread.
fn count(threads: &mut HashMap<i32, ThreadCount>, tid: i32) -> &mut ThreadCount {
    let is_counted = threads.len() < MAX_THREADS || threads.contains_key(&tid);
    threads.entry(if is_counted { tid } else { 0 }).or_default()
}

/// Counts the markers that a block has dropped until its count was `dropped` for the thread that writes.
fn count_dropped(
    threads: &mut HashMap<i32, ThreadCount>,
    block: &mut Block,
    dropped: u32,
    round: &mut Round,
) {
    let more = dropped.wrapping_sub(block.dropped).cast_signed();
    // The count may be older than a record that was read with it.
    if let Some(more) = u32::try_from(more).ok().filter(|more| *more > 0) {
        block.dropped = dropped;
        round.dropped += u64::from(more);
        count(threads, block.tid).dropped += u64::from(more);
    }
}

/// Whether a thread may be one of the process: it is, or no thread of that id is there any more.
fn may_be_of(tid: i32, pid: i32) -> bool {
    let exists = |path: String| fs::metadata(path).is_ok();
    tid == pid || exists(format!("/proc/{pid}/task/{tid}")) || !exists(format!("/proc/{tid}"))
}

fn is_same(link: &Path, id: super::check::FileId) -> bool {
    fs::metadata(link).is_ok_and(|meta| (meta.dev(), meta.ino()) == id)
}
