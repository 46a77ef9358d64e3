//! Writes markers into the ring of this process.
//!
//! A thread takes a block with its first marker and gives it back when it ends. From then on a marker is a
//! few stores into memory that no other thread of the process writes: no lock, no allocation, no system call.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering, compiler_fence};

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::gettid;

use super::encode::{MAX_LEN, Pieces};
use super::ring::record::{THREAD, first_word, fixed_words, has_number};
use super::ring::{
    BLOCK_BYTES, BLOCK_WORDS, BLOCKS, Control, MEMFD_NAME, RING_BYTES, RingMemory, Stamp, WRITING,
};
use super::system::{OWN_RING, RingMap, above_standard_files, thread_name};
use crate::counter;

/// The environment variable with which a program's markers go to a ring although it does not ask for that.
const RING_VARIABLE: &str = "TRACEBRIDGE_RING";

/// [`MODE`]: nobody has asked yet.
const ASK: u32 = 0;
/// Markers go to `trace_marker`.
const OFF: u32 = 1;
/// Markers go to the ring, and nowhere while no recorder wants them.
const ON: u32 = 2;
/// Markers go to the ring, and to `trace_marker` while no recorder wants them.
const ON_ELSE_FILE: u32 = 3;

/// Where the markers of this process go.
static MODE: AtomicU32 = AtomicU32::new(ASK);

/// Where markers go while no recorder reads the ring of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WithoutRecorder {
    /// Nowhere. A marker then costs a few loads, and other tools (Perfetto, atrace) never see markers of this
    /// process.
    Nowhere,
    /// To `trace_marker`, with a system call each, as without a ring.
    TraceMarker,
}

/// Has all markers of this process that go to the usual `trace_marker` go to a ring in memory instead, which
/// `tracebridge record` finds and reads: those of [`Tracer::new`](super::Tracer::new), and of the functions
/// for C. A marker then costs a tenth of a system call. Call it before the first marker, so that a recorder
/// finds the ring early; it may be called again.
///
/// Returns whether the process has a ring. Where it has none (Linux before 3.17, a descriptor limit, or a
/// crate that was built without the feature `ring`), markers go to `trace_marker` as before.
///
/// ```
/// use tracebridge_markers::{APP, WithoutRecorder, use_ring};
/// use_ring(WithoutRecorder::Nowhere);
/// APP.instant("in the ring, if a recorder reads it");
/// ```
pub fn use_ring(without: WithoutRecorder) -> bool {
    let mode = match without {
        WithoutRecorder::Nowhere => ON,
        WithoutRecorder::TraceMarker => ON_ELSE_FILE,
    };
    let has_ring = make().is_ok_and(|memory| memory.is_some());
    MODE.store(if has_ring { mode } else { OFF }, Ordering::Relaxed);
    has_ring
}

/// Whether markers go nowhere now.
#[inline(always)]
pub(super) fn is_idle() -> bool {
    OWN_RING.memory().is_some_and(|memory| {
        memory.head.wanted.load(Ordering::Relaxed) == 0 && MODE.load(Ordering::Relaxed) == ON
    })
}

/// Writes a marker into the ring. Returns whether it was written; `None` if `trace_marker` is its place.
#[inline(always)]
pub(super) fn write(pieces: Pieces<'_>) -> Option<bool> {
    let slot = SLOT.get();
    match OWN_RING.memory() {
        None if MODE.load(Ordering::Relaxed) == OFF => None,
        Some(memory)
            if counter::IS_READABLE
                && slot.epoch == OWN_RING.epoch()
                && memory.head.wanted.load(Ordering::Acquire) == Stamp::Counter.wanted() =>
        {
            Some(put(memory, slot.block, || counter::ticks().unwrap_or(0), pieces))
        }
        _ => write_first(pieces.phase, pieces.track, pieces.name, pieces.number),
    }
}

/// Writes the first marker of a thread or of the process, or one that the recorder does not want stamped with
/// the CPU's counter. The pieces come one by one, because [`Pieces`] would have to be in memory for a call.
#[cold]
#[inline(never)]
fn write_first(phase: u8, track: &[u8], name: &[u8], number: i64) -> Option<bool> {
    let memory = match OWN_RING.memory() {
        Some(memory) => memory,
        None => find()?,
    };
    let wanted = memory.head.wanted.load(Ordering::Acquire);
    if wanted == 0 {
        return if MODE.load(Ordering::Relaxed) == ON_ELSE_FILE { None } else { Some(false) };
    }
    let mut slot = SLOT.get();
    if slot.epoch != OWN_RING.epoch() {
        let Some(taken) = take_block(memory, wanted) else { return Some(false) };
        slot = taken;
    }
    Some(put(memory, slot.block, || now(wanted), Pieces { phase, track, name, number }))
}

/// Makes the ring, if the environment or the parent of a fork wants one. A process that cannot make a ring
/// does not try again.
#[cold]
fn find() -> Option<&'static RingMemory> {
    if MODE.load(Ordering::Relaxed) == ASK {
        let wanted = std::env::var_os(RING_VARIABLE).unwrap_or_default();
        let mode = match wanted.as_encoded_bytes() {
            b"1" => ON,
            b"2" => ON_ELSE_FILE,
            _ => OFF,
        };
        let _ = MODE.compare_exchange(ASK, mode, Ordering::Relaxed, Ordering::Relaxed);
        if mode == OFF {
            return None;
        }
    }
    let made = make();
    if made.is_err() {
        MODE.store(OFF, Ordering::Relaxed);
    }
    made.ok().flatten()
}

/// Makes the ring of this process, unless another thread has made it or is just making it.
///
/// # Errors
/// Returns the error of the system call that the kernel refused: `memfd_create(2)` is there since Linux 3.17.
fn make() -> io::Result<Option<&'static RingMemory>> {
    OWN_RING.get_or_make(|| {
        let fd = memfd_create(MEMFD_NAME, MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?;
        let file = above_standard_files(File::from(fd))?;
        file.set_len(RING_BYTES as u64)?;
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
        let map = RingMap::new(&file)?;
        map.head.begin(std::process::id(), counter::IS_READABLE);
        Ok((file, map))
    })
}

/// The block of a thread.
#[derive(Clone, Copy)]
struct Slot {
    /// The [`OwnRing::epoch`](super::system::OwnRing::epoch) of the ring that the block belongs to; 0 while
    /// the thread has none.
    epoch: u32,
    block: u32,
}

thread_local! {
    static SLOT: Cell<Slot> = const { Cell::new(Slot { epoch: 0, block: 0 }) };
    static GIVE_BACK: GiveBack = const { GiveBack };
}

/// The time in the clock that the recorder wants.
fn now(wanted: u32) -> u64 {
    if wanted == Stamp::Counter.wanted()
        && let Some(ticks) = counter::ticks()
    {
        return ticks;
    }
    clock_gettime(ClockId::CLOCK_BOOTTIME)
        .map_or(0, |time| time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// Writes a record into a block, which is the calling thread's. Returns whether it had room.
#[inline(always)]
fn put(memory: &RingMemory, block: u32, now: impl FnOnce() -> u64, pieces: Pieces<'_>) -> bool {
    let block = block as usize % BLOCKS;
    let control = &memory.controls[block];
    let records = &memory.records[block];
    let Pieces { phase, track, name, number } = pieces;
    let track = &track[..track.len().min(MAX_LEN)];
    let name = &name[..name.len().min(MAX_LEN)];
    let words = fixed_words(phase) + track.len().div_ceil(8) + name.len().div_ceil(8);
    let start = control.written.load(Ordering::Relaxed);
    let used = (start & !WRITING).wrapping_sub(control.read.load(Ordering::Acquire));
    // A signal handler may come between two stores of the marker that it interrupts.
    if start & WRITING != 0 || used > BLOCK_BYTES || (BLOCK_BYTES - used) as usize / 8 < words {
        return drop_one(control);
    }
    // A recorder that sees this bit waits with later markers of other threads. A marker of this thread that
    // it does not see yet is younger than the moment at which the recorder last looked.
    control.written.store(start | WRITING, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    let time = now();
    let mut at = start as usize / 8;
    let mut word = |word: u64| {
        records[at % BLOCK_WORDS].store(word, Ordering::Relaxed);
        at = at.wrapping_add(1);
    };
    word(first_word(phase, words, track.len(), name.len()));
    word(time);
    if has_number(phase) {
        word(number.cast_unsigned());
    }
    if !track.is_empty() {
        words_of(track, &mut word);
    }
    words_of(name, &mut word);
    compiler_fence(Ordering::SeqCst);
    control.written.store(start.wrapping_add(8 * words as u32), Ordering::Release);
    true
}

/// Counts a marker that is not written.
#[cold]
fn drop_one(control: &Control) -> bool {
    // This thread alone writes the number; a signal handler on it may come in between and count too.
    control.dropped.fetch_add(1, Ordering::Relaxed);
    false
}

/// Hands the bytes of a name to `word`, eight at a time, the last ones filled up with zeroes.
#[inline(always)]
fn words_of(name: &[u8], word: &mut impl FnMut(u64)) {
    let mut rest = name;
    while let Some((chunk, more)) = rest.split_first_chunk::<8>() {
        word(u64::from_le_bytes(*chunk));
        rest = more;
    }
    if rest.is_empty() {
        return;
    }
    // Copying a number of bytes that is not known in advance would be a call.
    word(match (name.last_chunk::<8>(), rest) {
        (Some(last), _) => u64::from_le_bytes(*last) >> (64 - 8 * rest.len()),
        (None, [a, b, c, d, more @ ..]) => {
            let low = u64::from(u32::from_le_bytes([*a, *b, *c, *d]));
            more.iter().enumerate().fold(low, |all, (n, byte)| all | u64::from(*byte) << (32 + 8 * n))
        }
        (None, few) => few.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)),
    });
}

/// Takes a free block for the calling thread, and writes who it is. `None` if there was none.
#[cold]
fn take_block(memory: &'static RingMemory, wanted: u32) -> Option<Slot> {
    /// Where the search for a free block begins.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let tid = u32::try_from(gettid().as_raw()).unwrap_or(0);
    let name = thread_name();
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    // Without it nothing would give the block back: the thread is ending already.
    let is_noticed_when_it_ends = GIVE_BACK.try_with(|_| ()).is_ok();
    if tid != 0 && is_noticed_when_it_ends {
        let first = NEXT.load(Ordering::Relaxed) as usize;
        for block in (0..BLOCKS).map(|n| (first + n) % BLOCKS) {
            let control = &memory.controls[block];
            let free = control.owner.load(Ordering::Relaxed) == 0;
            let taken =
                || control.owner.compare_exchange(0, tid, Ordering::AcqRel, Ordering::Relaxed).is_ok();
            if !free || !taken() {
                continue;
            }
            memory.head.used.fetch_max(block as u32 + 1, Ordering::AcqRel);
            let dropped = control.dropped.load(Ordering::Relaxed);
            let number = i64::from(tid) | i64::from(dropped) << 32;
            let thread = Pieces { phase: THREAD, track: b"", name, number };
            if put(memory, block as u32, || now(wanted), thread) {
                NEXT.store(block as u32, Ordering::Relaxed);
                let slot = Slot { epoch: OWN_RING.epoch(), block: block as u32 };
                SLOT.set(slot);
                return Some(slot);
            }
            // Full, of records of a thread that has ended. Nobody's marker was dropped.
            control.dropped.store(dropped, Ordering::Relaxed);
            control.owner.store(0, Ordering::Release);
        }
    }
    memory.head.unowned.fetch_add(1, Ordering::Relaxed);
    None
}

/// Gives the block of a thread back when the thread ends. What is in it stays there for the recorder, and the
/// next thread goes on behind it.
struct GiveBack;

impl Drop for GiveBack {
    fn drop(&mut self) {
        let _ = SLOT.try_with(|slot| {
            let Slot { epoch, block } = slot.replace(Slot { epoch: 0, block: 0 });
            if epoch == OWN_RING.epoch()
                && let Some(memory) = OWN_RING.memory()
            {
                memory.controls[block as usize % BLOCKS].owner.store(0, Ordering::Release);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_name_are_its_bytes() {
        for len in 0..40u8 {
            let name: Vec<u8> = (1..=len).map(|n| n.wrapping_mul(37)).collect();
            let mut words = Vec::new();
            words_of(&name, &mut |word| words.push(word));
            let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            assert_eq!(bytes.len(), name.len().next_multiple_of(8));
            assert!(bytes.split_off(name.len()).iter().all(|byte| *byte == 0), "{len}");
            assert_eq!(bytes, name);
        }
    }
}
