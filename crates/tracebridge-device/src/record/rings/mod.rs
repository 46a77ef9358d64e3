//! The rings of running programs: finds them, has the programs write into them while a recording runs, and
//! stores their markers in the capture. docs/ring.md describes the memory and the protocol.
//!
//! `search` finds a ring, `check` decides whether it is one, `program` reads it, `pending` brings the markers
//! of all threads in order, `times` converts their times, and `pages` makes pages of them.

mod check;
mod pages;
mod pending;
mod program;
mod search;
mod summary;
mod times;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use check::NoRing;
use pages::MarkerPages;
use pending::{MAX_WAITING, Pending};
use program::{Program, Round};
use search::RingSearch;
use times::RingTimes;

use super::output::RecordingOutput;
use super::{RecordError, Tracefs};
use crate::clock::Clock;
use crate::ftrace::PageLayout;
use crate::markers::MAX_LEN;
use crate::trace_dat::recording_summary::RingsSummary;

/// Limits of the time between two rounds. Where threads write fast, rounds follow each other fast.
const MIN_INTERVAL: Duration = Duration::from_millis(2);
const MAX_INTERVAL: Duration = Duration::from_millis(50);
/// The time between two rounds while no program has a ring: only then does a new one have to be found.
const SEARCH_INTERVAL: Duration = Duration::from_millis(250);
/// A block that is filled further than this part in one round makes the rounds come faster.
const HIGH_FILL: f32 = 0.25;
/// A block that is filled less than this part lets the rounds come slower.
const LOW_FILL: f32 = 0.06;
/// How often programs are asked whether they are still there, and pages are written that are not full.
const TIDY_INTERVAL: Duration = Duration::from_secs(1);
/// A marker that is stored with a time later than its own by more than this counts as late, ns.
const LATE_NS: u64 = 1000;
/// The most reasons for refused rings that the summary has.
const MAX_REFUSED: usize = 64;
/// The most threads whose names are kept. The capture's head has room for fewer.
const MAX_NAMES: usize = 1 << 16;
/// The most programs that are read at the same time. Each takes a descriptor, and 32 MiB of addresses.
const MAX_PROGRAMS: usize = if cfg!(target_pointer_width = "64") { 256 } else { 32 };

/// The rings that a recording reads.
pub(super) struct Rings {
    times: RingTimes,
    search: RingSearch,
    programs: Vec<Program>,
    pending: Pending,
    pages: MarkerPages,
    round: Round,
    interval: Duration,
    next_round: Instant,
    next_tidy: Instant,
    /// Links that were refused already, with their reasons.
    refused: HashSet<(std::path::PathBuf, String)>,
    /// Names of threads that wrote markers: id, process, name.
    names: Vec<(i32, i32, Vec<u8>)>,
    /// Programs that have ended.
    summary: RingsSummary,
}

impl Rings {
    /// Gets ready to read rings into the entry `cpu` of the table of CPUs. `None` where the clock of the
    /// recording gives markers no time.
    pub(super) fn begin(tracefs: &Tracefs, clock: Clock, layout: PageLayout, cpu: u32) -> Option<Rings> {
        let times = RingTimes::begin(clock, tracefs)?;
        let now = Instant::now();
        Some(Rings {
            times,
            search: RingSearch::new(),
            programs: Vec::new(),
            pending: Pending::default(),
            pages: MarkerPages::new(tracefs, layout, cpu),
            round: Round {
                before: 0,
                complete: 0,
                boottime: None,
                dropped: 0,
                fill: 0.0,
                bytes: Vec::new(),
                text: Box::new([0; MAX_LEN]),
            },
            interval: MIN_INTERVAL,
            next_round: now,
            next_tidy: now + TIDY_INTERVAL,
            refused: HashSet::new(),
            names: Vec::new(),
            summary: RingsSummary::default(),
        })
    }

    /// Looks for rings, and has their programs write into them from now on.
    pub(super) fn look(&mut self) {
        let since = self.times.read();
        let known: HashSet<i32> = self.programs.iter().map(|program| program.pid).collect();
        for (pid, link) in self.search.look(&known) {
            // A process can have its ring open under two numbers.
            let is_known = |program: &Program| program.pid == pid && program.is_ring(&link);
            if self.programs.iter().any(is_known) {
                continue;
            }
            if self.programs.len() >= MAX_PROGRAMS {
                self.refuse(pid, link, format!("{MAX_PROGRAMS} programs are read already"));
                continue;
            }
            match check::open(&link, pid) {
                Ok(ring) => self.programs.push(Program::begin(pid, link, ring, self.times.stamp, since)),
                Err(NoRing::Inherited | NoRing::Unreachable) => {}
                Err(NoRing::Refused(what)) => self.refuse(pid, link, what),
            }
        }
    }

    fn refuse(&mut self, pid: i32, link: std::path::PathBuf, what: String) {
        let text = format!("process {pid}: {what}");
        if self.summary.refused.len() < MAX_REFUSED && self.refused.insert((link, what)) {
            self.summary.refused.push(text);
        }
    }

    /// How long the next round has time.
    pub(super) fn wait(&self) -> Duration {
        self.next_round.saturating_duration_since(Instant::now())
    }

    /// Reads all rings, if it is time, and stores the markers that no older one can follow any more.
    pub(super) fn round(&mut self, output: &mut dyn RecordingOutput) -> Result<(), RecordError> {
        let started = Instant::now();
        if started < self.next_round {
            return Ok(());
        }
        if self.search.is_due() {
            self.look();
        }
        let before = self.times.read();
        self.read(before);
        let result = self.store(self.round.complete, output);
        self.round.before = before;
        if started >= self.next_tidy {
            self.next_tidy = started + TIDY_INTERVAL;
            self.end_programs();
            result.and_then(|()| self.pages.flush(output))?;
        } else {
            result?;
        }
        if self.round.fill > HIGH_FILL {
            self.interval = (self.interval / 4).max(MIN_INTERVAL);
        } else if self.round.fill < LOW_FILL {
            self.interval = (self.interval * 2).min(MAX_INTERVAL);
        }
        // The recorder may have a better priority than the programs, which must go on writing: at least half
        // of the time is theirs.
        let interval = if self.programs.is_empty() { SEARCH_INTERVAL } else { self.interval };
        self.next_round = Instant::now() + interval.max(started.elapsed());
        Ok(())
    }

    /// Reads all rings. Markers that are stamped up to the round before are all there, except for those that
    /// a thread is still writing.
    fn read(&mut self, now: u64) {
        let Rings { programs, pending, round, times, .. } = self;
        (round.complete, round.fill) = (round.before, 0.0);
        if programs.iter().any(Program::stamps_boottime) {
            round.boottime = times.boottime();
        }
        for program in programs {
            program.read(round, pending);
        }
        if pending.len() > MAX_WAITING {
            round.complete = now;
        }
    }

    /// Stores the waiting markers up to `limit`, a time in the clock of the stamps.
    fn store(&mut self, limit: u64, output: &mut dyn RecordingOutput) -> Result<(), RecordError> {
        let Rings { times, pending, pages, round, summary, .. } = self;
        if round.dropped > 0 {
            pages.lost(std::mem::take(&mut round.dropped), output)?;
        }
        pending.take_until(limit, |stamp, tid, text| {
            let ts = times.convert(stamp);
            summary.late += u64::from(pages.last_ts > ts.saturating_add(LATE_NS));
            pages.push(ts, tid, text, output)
        })
    }

    /// Lets go of the rings of programs that have ended, or run another program now.
    fn end_programs(&mut self) {
        let (there, mut ended): (Vec<Program>, Vec<Program>) =
            std::mem::take(&mut self.programs).into_iter().partition(Program::is_there);
        self.programs = there;
        for program in &mut ended {
            // Nobody writes into the ring any more: what is in it now is the rest.
            program.read(&mut self.round, &mut self.pending);
            self.search.forget(program.pid);
            self.end_program(program);
        }
    }

    fn end_program(&mut self, program: &Program) {
        let named = program.threads.iter().filter(|(tid, count)| **tid > 0 && !count.name.is_empty());
        let room = MAX_NAMES.saturating_sub(self.names.len());
        let named = named.map(|(tid, count)| (*tid, program.pid, count.name.clone()));
        self.names.extend(named.take(room));
        self.summary.programs.push(summary::summarize(program));
    }

    /// Tells all programs that nobody wants their markers any more.
    pub(super) fn release(&self) {
        self.programs.iter().for_each(Program::release);
    }

    /// Stores everything that the programs have written until they were told to stop.
    pub(super) fn finish(&mut self, output: &mut dyn RecordingOutput) -> Result<(), RecordError> {
        let before = self.times.read();
        self.read(before);
        let stored = self.store(u64::MAX, output);
        for program in std::mem::take(&mut self.programs) {
            self.end_program(&program);
        }
        stored.and_then(|()| self.pages.flush(output))
    }

    /// The counts, and the names of the threads that wrote markers, after [`Rings::finish`].
    pub(super) fn into_summary(mut self) -> (RingsSummary, Vec<(i32, i32, Vec<u8>)>) {
        let mut summary = std::mem::take(&mut self.summary);
        summary.markers = self.pages.events;
        summary.dropped = summary.programs.iter().map(|program| program.dropped).sum();
        (summary, std::mem::take(&mut self.names))
    }
}

impl Drop for Rings {
    /// However the recording ends, no program goes on writing into a ring that nobody reads.
    fn drop(&mut self) {
        self.release();
    }
}
