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

use super::pages::Pending;
use super::search::CheckedRing;
use super::times::{self, BoottimeLine};
use crate::ids::{Pid, Tid};
use crate::markers::MAX_LEN;
use crate::markers::internals::ring::{
    BLOCK_BYTES, BLOCK_WORDS, BLOCKS, BlockDamage, RingRecords, Stamp, WRITING,
};
use crate::trace_dat::recording_summary::{ProgramSummary, ThreadSummary};

/// How long the markers of other threads wait for a thread that was interrupted while it wrote one.
const MAX_UNFINISHED_WAIT: Duration = Duration::from_millis(500);
/// The longest name of a thread that is kept, bytes. One of the kernel's has 15.
const MAX_NAME_BYTES: usize = 32;

/// The counts of one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ThreadCount {
    /// The thread's name when it wrote its first marker; empty if it did so before the recording.
    pub(super) name: Vec<u8>,
    pub(super) markers: u64,
    pub(super) dropped: u64,
    /// Whether it was found to be a thread of the program.
    is_checked: bool,
}

/// A program whose ring is being read.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) pid: Pid,
    pub(super) name: String,
    ring: CheckedRing,
    link: PathBuf,
    /// The clock in which the program stamps its markers.
    stamp: Stamp,
    /// Markers stamped before this, in the clock of the recorder's stamps, are an earlier recording's.
    since: u64,
    blocks: Vec<Block>,
    /// [`Head::unowned`](crate::markers::internals::ring::Head::unowned) when it was last read.
    unowned: u32,
    /// Markers that no block was free for.
    pub(super) without_block: u64,
    /// By thread id; 0 stands for the threads that are not counted one by one.
    pub(super) threads: HashMap<Tid, ThreadCount>,
    /// Why blocks were given up.
    pub(super) damage: Vec<String>,
    /// Markers that were dropped because their times cannot be.
    pub(super) untimely: u64,
    /// Markers that were dropped because their threads came faster than the recorder looks at them.
    pub(super) unchecked: u64,
    /// The threads that may still be looked at.
    checks: Allowance,
    /// When the last marker came, or the ring was found.
    pub(super) last_used: Instant,
}

/// The recorder's state of a block.
#[derive(Debug, Clone, Default)]
struct Block {
    /// Position up to which it is read.
    read: u32,
    /// The thread that writes.
    tid: Tid,
    /// The block's count of dropped markers, as far as it is counted.
    dropped: u32,
    unfinished: Option<UnfinishedMarker>,
    is_given_up: bool,
    /// Whether it may still hold markers of an earlier recording.
    is_old: bool,
    /// Whether it is not known which thread writes: too many threads were looked at.
    is_unchecked: bool,
}

/// A marker that a thread has begun and not finished.
#[derive(Debug, Clone, Copy)]
struct UnfinishedMarker {
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
    /// The clock of the stamps.
    pub(super) stamp: Stamp,
    /// The moment of reading, in that clock.
    pub(super) now: u64,
    /// The threads of all programs together that may still be looked at.
    pub(super) checks: Allowance,
    /// The threads of all programs together that may still be counted one by one.
    pub(super) threads_left: usize,
    /// A buffer for the bytes of a block.
    pub(super) bytes: Vec<u8>,
    /// A buffer for the text of a marker.
    pub(super) text: Box<[u8; MAX_LEN]>,
}

/// How often something may be done: so many times a second.
#[derive(Debug)]
pub(super) struct Allowance {
    per_second: u32,
    left: u32,
    since: Instant,
}

impl Allowance {
    pub(super) fn new(per_second: u32) -> Allowance {
        Allowance { per_second, left: per_second, since: Instant::now() }
    }

    /// Whether it may be done once more.
    fn take(&mut self) -> bool {
        if self.left == 0 && self.since.elapsed() >= Duration::from_secs(1) {
            self.left = self.per_second;
            self.since = Instant::now();
        }
        self.left = self.left.saturating_sub(1);
        self.left > 0
    }
}

/// Looking at a thread takes two system calls, which a program can order at will: some 10 % of a CPU for each
/// program, and 20 % for all.
const CHECKS_PER_SECOND: u32 = 10_000;
pub(super) const CHECKS_OF_ALL_PER_SECOND: u32 = 20_000;

/// The most threads of all programs together that are counted one by one.
pub(super) const MAX_THREADS: usize = 1 << 16;

/// The most threads of one program that the summary names with their losses.
const MAX_THREADS_NAMED: usize = 64;

/// Why a block of a ring is given up.
#[derive(Debug, thiserror::Error)]
enum BlockFault {
    #[error("it says that {0} of {BLOCK_BYTES} bytes are unread")]
    Unread(u32),
    #[error(transparent)]
    Record(#[from] BlockDamage),
    #[error("it says that it is of thread {0}, which is another process's")]
    ForeignThread(Tid),
    #[error("its first record does not say which thread writes")]
    NoThread,
}

impl Program {
    /// Begins to read a ring. What an earlier recorder has left in it is not stored.
    pub(super) fn begin(pid: Pid, link: PathBuf, ring: CheckedRing, stamp: Stamp, since: u64) -> Program {
        let comm = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        let head = &ring.map.head;
        let used = (head.used.load(Ordering::Acquire) as usize).min(BLOCKS);
        let blocks = ring.map.controls[..used].iter().map(|control| Block {
            read: control.read.load(Ordering::Relaxed),
            tid: Some(Tid(control.owner.load(Ordering::Relaxed).cast_signed()))
                .filter(|tid| may_be_of(*tid, pid))
                .unwrap_or(Tid::IDLE),
            dropped: control.dropped.load(Ordering::Relaxed),
            is_old: true,
            ..Block::default()
        });
        let blocks = blocks.collect();
        let unowned = head.unowned.load(Ordering::Relaxed);
        let stamp = head.possible(stamp);
        head.wanted.store(stamp.wanted(), Ordering::Release);
        let name = String::from_utf8_lossy(comm.trim_ascii_end()).into_owned();
        Program {
            pid,
            name,
            ring,
            link,
            stamp,
            since,
            blocks,
            unowned,
            without_block: 0,
            threads: HashMap::new(),
            damage: Vec::new(),
            untimely: 0,
            unchecked: 0,
            checks: Allowance::new(CHECKS_PER_SECOND),
            last_used: Instant::now(),
        }
    }

    /// Tells the program that nobody wants its markers any more.
    pub(super) fn release(&self) {
        self.ring.map.head.wanted.store(0, Ordering::Release);
    }

    /// Whether the process still has the ring: it may have ended, or run another program.
    pub(super) fn has_ring(&self) -> bool {
        is_same(&self.link, self.ring.id)
    }

    /// The user of the process.
    pub(super) fn uid(&self) -> u32 {
        self.ring.uid
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
        block.note_unfinished(word & WRITING != 0, position, round);
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
        if unread > 0 {
            self.last_used = Instant::now();
        }
        round.now = times::now(round.stamp);
        let bytes = std::mem::take(&mut round.bytes);
        let result = self.read_records(&bytes, block, round, pending);
        round.bytes = bytes;
        // A marker that was being written may still be one of the earlier recording.
        block.is_old &= word & WRITING != 0;
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
            if let Some((tid, base)) = record.thread().map(|(tid, base)| (Tid(tid), base)) {
                count(&mut self.threads, block.tid, round).markers += std::mem::take(&mut markers);
                count_dropped(&mut self.threads, block, base, round);
                self.begin_thread(tid, record.name, block, round)?;
            } else if let Some(marker) = record.marker(self.pid.0) {
                if time < self.since && block.is_old {
                    continue;
                }
                // Another CPU's counter, or the line of a converted time, may be a little ahead.
                let ahead = time.saturating_sub(round.now);
                let is_timely = time >= self.since && ahead <= round.now.saturating_sub(round.before);
                if !block.tid.is_thread() && !block.is_unchecked {
                    return Err(BlockFault::NoThread);
                }
                if !is_timely || block.is_unchecked {
                    *(if is_timely { &mut self.unchecked } else { &mut self.untimely }) += 1;
                    round.dropped += 1;
                    count(&mut self.threads, block.tid, round).dropped += 1;
                    continue;
                }
                markers += 1;
                pending.push(time.min(round.now), block.tid, marker.encode(&mut round.text));
            }
        }
        count(&mut self.threads, block.tid, round).markers += markers;
        result
    }

    /// Notes that the thread `tid` writes into a block from here on. A thread that was looked at once is not
    /// looked at again.
    fn begin_thread(
        &mut self,
        tid: Tid,
        name: &[u8],
        block: &mut Block,
        round: &mut Round,
    ) -> Result<(), BlockFault> {
        let is_known =
            tid.is_main_of(self.pid) || self.threads.get(&tid).is_some_and(|thread| thread.is_checked);
        let may_check = is_known || self.checks.take() && round.checks.take();
        block.is_unchecked = !may_check;
        if block.is_unchecked {
            block.tid = Tid::IDLE;
            return Ok(());
        }
        if !is_known && !may_be_of(tid, self.pid) {
            return Err(BlockFault::ForeignThread(tid));
        }
        block.tid = tid;
        let thread = count(&mut self.threads, tid, round);
        thread.name = name[..name.len().min(MAX_NAME_BYTES)].to_vec();
        thread.is_checked = true;
        Ok(())
    }

    /// Counts what the program has written and dropped, for the summary of the recording.
    pub(super) fn summary(&self) -> ProgramSummary {
        let mut damage = self.damage.clone();
        if self.untimely > 0 {
            damage.push(format!(
                "{} markers are dropped: their times are before the recording, or had not come yet",
                self.untimely
            ));
        }
        if self.unchecked > 0 {
            damage.push(format!(
                "{} markers are dropped: their threads came too fast to be looked at",
                self.unchecked
            ));
        }
        let dropped: u64 = self.threads.values().map(|thread| thread.dropped).sum();
        ProgramSummary {
            pid: self.pid,
            name: self.name.clone(),
            markers: self.threads.values().map(|thread| thread.markers).sum(),
            dropped: dropped + self.without_block,
            without_block: self.without_block,
            threads: threads_with_losses(&self.threads),
            damage,
        }
    }
}

impl Block {
    /// Notes whether the thread is writing a marker now, which later markers of others wait for.
    fn note_unfinished(&mut self, is_writing: bool, position: u32, round: &mut Round) {
        let now = || UnfinishedMarker { position, stamp: round.before, since: Instant::now() };
        self.unfinished = is_writing.then(|| match self.unfinished {
            // It is the marker that the thread was writing in the round before.
            Some(unfinished) if unfinished.position == position => unfinished,
            // The thread has begun it since then.
            _ => now(),
        });
        if let Some(unfinished) =
            self.unfinished.filter(|unfinished| unfinished.since.elapsed() < MAX_UNFINISHED_WAIT)
        {
            round.complete = round.complete.min(unfinished.stamp);
        }
    }
}

fn threads_with_losses(threads: &HashMap<Tid, ThreadCount>) -> Vec<ThreadSummary> {
    let lossy = threads.iter().filter(|(_, count)| count.dropped > 0);
    let mut lossy: Vec<ThreadSummary> = lossy
        .map(|(tid, count)| ThreadSummary {
            tid: *tid,
            name: String::from_utf8_lossy(&count.name).into_owned(),
            markers: count.markers,
            dropped: count.dropped,
        })
        .collect();
    lossy.sort_by_key(|thread| (u64::MAX - thread.dropped, thread.tid));
    lossy.truncate(MAX_THREADS_NAMED);
    lossy
}

/// The counts of a thread.
fn count<'t>(threads: &'t mut HashMap<Tid, ThreadCount>, tid: Tid, round: &mut Round) -> &'t mut ThreadCount {
    let is_new = tid != Tid::IDLE && !threads.contains_key(&tid);
    let tid = if is_new && round.threads_left == 0 { Tid::IDLE } else { tid };
    round.threads_left -= usize::from(is_new && tid != Tid::IDLE);
    threads.entry(tid).or_default()
}

/// Counts the markers that a block has dropped until its count was `dropped` for the thread that writes.
fn count_dropped(
    threads: &mut HashMap<Tid, ThreadCount>,
    block: &mut Block,
    dropped: u32,
    round: &mut Round,
) {
    let more = dropped.wrapping_sub(block.dropped).cast_signed();
    // The count may be older than a record that was read with it.
    if let Some(more) = u32::try_from(more).ok().filter(|more| *more > 0) {
        block.dropped = dropped;
        round.dropped += u64::from(more);
        count(threads, block.tid, round).dropped += u64::from(more);
    }
}

/// Whether a thread may be one of the process: it is, or no thread of that id is there any more.
fn may_be_of(tid: Tid, pid: Pid) -> bool {
    let exists = |path: String| fs::metadata(path).is_ok();
    tid.is_main_of(pid) || exists(format!("/proc/{pid}/task/{tid}")) || !exists(format!("/proc/{tid}"))
}

fn is_same(link: &Path, id: super::search::FileId) -> bool {
    fs::metadata(link).is_ok_and(|meta| (meta.dev(), meta.ino()) == id)
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use nix::fcntl::{FcntlArg, SealFlag, fcntl};
    use nix::sys::memfd::{MFdFlags, memfd_create};

    use super::super::search;
    use super::*;
    use crate::counter;
    use crate::markers::internals::ring::{MEMFD_NAME, RING_BYTES, Record, RingMap};

    /// A ring of this process, and the link to it.
    pub(in super::super) fn ring_file() -> (File, PathBuf) {
        let file = File::from(memfd_create(MEMFD_NAME, MFdFlags::MFD_ALLOW_SEALING).unwrap());
        file.set_len(RING_BYTES as u64).unwrap();
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).unwrap();
        RingMap::new(&file).unwrap().head.begin(std::process::id(), true);
        let link = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        (file, link)
    }

    /// A ring of this process, as the process has it, and as the recorder does.
    fn ring() -> (File, RingMap, Program) {
        let (file, link) = ring_file();
        let own = RingMap::new(&file).unwrap();
        let pid = Pid(std::process::id().cast_signed());
        let checked = search::open(&link, pid).unwrap();
        let program = Program::begin(pid, link, checked, stamp(), times::now(stamp()));
        (file, own, program)
    }

    fn stamp() -> Stamp {
        if counter::ticks().is_some() { Stamp::Counter } else { Stamp::Boottime }
    }

    fn round() -> Round {
        Round {
            before: times::now(stamp()),
            complete: 0,
            boottime: None,
            dropped: 0,
            fill: 0.0,
            stamp: stamp(),
            now: 0,
            checks: Allowance::new(CHECKS_OF_ALL_PER_SECOND),
            threads_left: MAX_THREADS,
            bytes: Vec::new(),
            text: Box::new([0; MAX_LEN]),
        }
    }

    /// Writes records into the first block, as a program does.
    fn write(own: &RingMap, records: &[Record<'_>]) {
        own.head.used.store(1, Ordering::Release);
        let control = &own.controls[0];
        let bytes: Vec<u8> = records.iter().flat_map(Record::encode).collect();
        let at = control.written.load(Ordering::Relaxed);
        for (n, word) in bytes.chunks(8).enumerate() {
            let place = (at as usize / 8 + n) % BLOCK_WORDS;
            own.records[0][place].store(u64::from_le_bytes(word.try_into().unwrap()), Ordering::Relaxed);
        }
        control.written.store(at + bytes.len() as u32, Ordering::Release);
    }

    fn thread(tid: i32, name: &[u8]) -> Record<'_> {
        Record { kind: b'T', time: 0, number: tid.into(), track: b"", name }
    }

    fn marker(time: u64) -> Record<'static> {
        Record { kind: b'B', time, number: 0, track: b"", name: b"x" }
    }

    #[test]
    fn markers_of_times_that_cannot_be_are_dropped_counted_and_told() {
        let (_file, own, mut program) = ring();
        let mut round = round();
        let mut pending = Pending::default();
        let pid = program.pid;
        let now = times::now(stamp());
        write(&own, &[thread(pid.0, &[b'n'; 900]), marker(now), marker(1 << 62), marker(3), marker(now)]);
        program.read(&mut round, &mut pending);
        let mut stored = Vec::new();
        let mut store = |time, tid, _: &[u8]| {
            stored.push((time, tid));
            Ok(())
        };
        pending.take_until::<()>(u64::MAX, &mut store).unwrap();
        assert_eq!(stored, [(now, pid.main_thread()); 2]);
        let counted = &program.threads[&pid.main_thread()];
        assert_eq!((counted.markers, counted.dropped, round.dropped, program.untimely), (2, 2, 2, 2));
        assert_eq!(counted.name.len(), MAX_NAME_BYTES);
        let told = program.summary();
        assert!(told.dropped == 2 && told.damage[0].contains("had not come yet"), "{told:?}");
    }

    #[test]
    fn invented_threads_are_looked_at_so_often_and_no_more() {
        let (_file, own, mut program) = ring();
        let mut round = round();
        let mut pending = Pending::default();
        let now = times::now(stamp());
        // However slow the machine is, no second ends meanwhile.
        program.checks.since += Duration::from_secs(3_600);
        // Thread ids that no Linux gives.
        let invented = 1 << 23..(1 << 23) + 11_000;
        for first in invented.step_by(500) {
            let records: Vec<Record<'_>> =
                (first..first + 500).flat_map(|tid| [thread(tid, b""), marker(now)]).collect();
            write(&own, &records);
            program.read(&mut round, &mut pending);
        }
        assert!(program.damage.is_empty(), "{:?}", program.damage);
        assert!((900..1_100).contains(&program.unchecked), "{}", program.unchecked);
        assert_eq!(program.threads[&Tid::IDLE].dropped, program.unchecked);
        let told = program.summary();
        assert!(told.damage.iter().any(|what| what.contains("came too fast")), "{told:?}");
    }
}
