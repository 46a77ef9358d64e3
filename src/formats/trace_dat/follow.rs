//! Reads a trace.dat whose pages come one after the other, while they are recorded.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::header::{TraceDat, TraceDatError};
use super::page_position::{CpuRecords, PagePosition};
use super::read::{EventPush, NextRecords, ReadState};
use crate::clock::{Clock, Timestamp};
use crate::formats::{CpuCount, Sink};
use crate::ftrace::{LostEvents, PageLayout};
use crate::ids::Cpu;

/// The most damaged places that are kept to be told.
const MAX_DAMAGE_LINES: usize = 16;

/// A page of one CPU, as it was recorded.
#[derive(Debug, Clone)]
pub(crate) struct FollowedPage {
    /// The time from which the first record's time delta counts, in the recording's clock.
    pub ts: Timestamp,
    /// Whether events are missing before it.
    pub has_losses: bool,
    /// The whole page.
    pub bytes: Arc<[u8]>,
}

/// A trace.dat whose pages are still coming.
pub(crate) struct FollowedDat {
    dat: TraceDat<'static>,
    state: ReadState,
    cpus: Vec<PageQueue>,
    next: NextRecords,
    has_told_head: bool,
    pending_bytes: usize,
}

impl FollowedDat {
    /// Reads the head of a trace.dat that has `cpus` CPUs.
    ///
    /// # Errors
    /// [`TraceDatError`] where no event can be read with this head.
    pub fn open(head: &[u8], cpus: u32) -> Result<FollowedDat, TraceDatError> {
        let dat = TraceDat::open(head)?.into_followed();
        let state = ReadState::new(&dat);
        let cpus = (0..cpus).map(|cpu| PageQueue::new(Cpu(cpu), dat.layout)).collect();
        Ok(FollowedDat { dat, state, cpus, next: NextRecords::new(), has_told_head: false, pending_bytes: 0 })
    }

    /// Takes a later version of the head: the names of threads in it are pushed.
    ///
    /// # Errors
    /// The errors of the sink.
    pub fn renew_head<S: Sink + ?Sized>(&mut self, head: &[u8], sink: &mut S) -> io::Result<()> {
        let Ok(dat) = TraceDat::open(head) else { return Ok(()) };
        self.dat.options = dat.options;
        self.dat.cmdlines = dat.cmdlines.into_owned().into();
        if self.has_told_head { self.dat.read_threads(sink) } else { Ok(()) }
    }

    /// The clock of the events' times.
    pub fn clock(&self) -> Clock {
        self.dat.head().clock
    }

    /// Whether events of both mean the same by the same bytes.
    pub fn has_formats_of(&self, other: &FollowedDat) -> bool {
        self.dat.formats == other.dat.formats
            && self.dat.layout == other.dat.layout
            && self.cpus.len() == other.cpus.len()
    }

    /// Adds a page behind the pages of its CPU. `None` for a CPU that the recording does not have.
    pub fn add_page(&mut self, cpu: Cpu, bytes: &[u8]) -> Option<FollowedPage> {
        let queue = self.cpus.get_mut(cpu.index())?;
        let bytes: Arc<[u8]> = bytes.into();
        let page = self.dat.layout.page(&bytes).ok();
        let ts = page.map_or(Timestamp::MIN, |page| self.dat.options.time.apply(page.ts));
        let has_losses = page.is_some_and(|page| page.lost.is_some());
        self.pending_bytes += bytes.len();
        queue.pages.push_back(bytes.clone());
        Some(FollowedPage { ts, has_losses, bytes })
    }

    /// Size of the pages that have not been read to their end, bytes.
    pub fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// The time in the recording's clock of an event with this time in the clock of the pages.
    pub fn time_of(&self, page_time: Timestamp) -> Timestamp {
        self.dat.options.time.apply(page_time)
    }

    /// Pushes the events before the time `until` of the pages' clock, in the order of time; without it
    /// all that have come.
    ///
    /// # Errors
    /// The errors of the sink.
    pub fn push<S: Sink + ?Sized>(&mut self, until: Option<Timestamp>, sink: &mut S) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_told_head, true) {
            self.dat.read_head(sink)?;
        }
        for (number, queue) in self.cpus.iter_mut().enumerate() {
            if queue.is_idle && queue.advance() {
                queue.is_idle = false;
                self.next.push(Reverse((queue.ts(), queue.cpu, number)));
            }
        }
        let last = until.map_or(Timestamp::MAX, |until| until.saturating_sub(1));
        let mut push = EventPush { dat: &self.dat, state: &mut self.state, sink };
        push.by_time(&mut self.cpus, &mut self.next, last, false)?;
        let mut waits = vec![false; self.cpus.len()];
        self.next.iter().for_each(|Reverse((.., number))| waits[*number] = true);
        let mut pending = 0;
        for (queue, waits) in self.cpus.iter_mut().zip(waits) {
            queue.is_idle = !waits;
            pending += queue.pages.iter().map(|page| page.len()).sum::<usize>();
        }
        self.pending_bytes = pending;
        Ok(())
    }

    /// The counts of all events so far, over all CPUs.
    pub fn counts(&self) -> CpuCount {
        let mut sum = CpuCount::default();
        for count in self.state.report.cpus.values() {
            sum.events += count.events;
            sum.lost = sum.lost.saturating_add(count.lost);
            sum.gaps += count.gaps;
        }
        sum
    }

    /// The time of the first event that was pushed, in the recording's clock.
    pub fn first_ts(&self) -> Option<Timestamp> {
        self.state.report.first_ts
    }

    /// The time of the last event that was pushed, in the recording's clock.
    pub fn last_ts(&self) -> Option<Timestamp> {
        self.state.report.last_ts
    }

    /// The damaged places that were met since the last call, and how many there were.
    pub fn take_damage(&mut self) -> (Vec<String>, u64) {
        let mut lines = Vec::new();
        let mut count = 0;
        for queue in &mut self.cpus {
            count += std::mem::take(&mut queue.damaged);
            lines.append(&mut queue.damage);
        }
        (lines, count)
    }

    /// Forgets threads where too many are known.
    pub fn forget(&mut self) {
        self.state.forget();
    }
}

/// The pages of one CPU that have not been read to their end.
struct PageQueue {
    cpu: Cpu,
    /// The first one is the page of `position`.
    pages: VecDeque<Arc<[u8]>>,
    position: PagePosition,
    /// Whether `position` is one of the first page.
    is_entered: bool,
    /// Whether there was no record left.
    is_idle: bool,
    damage: Vec<String>,
    damaged: u64,
}

impl PageQueue {
    fn new(cpu: Cpu, layout: PageLayout) -> PageQueue {
        PageQueue {
            cpu,
            pages: VecDeque::new(),
            position: PagePosition::new(layout),
            is_entered: false,
            is_idle: true,
            damage: Vec::new(),
            damaged: 0,
        }
    }
}

impl CpuRecords for PageQueue {
    #[inline]
    fn cpu(&self) -> Cpu {
        self.cpu
    }

    #[inline]
    fn advance(&mut self) -> bool {
        loop {
            let Some(page) = self.pages.front() else { return false };
            if !self.is_entered {
                self.position.enter(page, 0..page.len());
                self.is_entered = true;
            }
            if self.position.advance(page) {
                return true;
            }
            if let Some(fault) = self.position.fault() {
                self.damaged += 1;
                if self.damage.len() < MAX_DAMAGE_LINES {
                    self.damage.push(format!("CPU {}: {fault}", self.cpu));
                }
            }
            self.pages.pop_front();
            self.is_entered = false;
        }
    }

    #[inline]
    fn ts(&self) -> Timestamp {
        self.position.span.ts
    }

    #[inline]
    fn record(&self) -> &[u8] {
        self.pages.front().map_or(&[], |page| self.position.record(page))
    }

    #[inline]
    fn take_lost(&mut self) -> Option<LostEvents> {
        self.position.lost.take()
    }
}
