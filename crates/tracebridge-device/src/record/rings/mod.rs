//! The rings of running programs: finds them, has the programs write into them while a recording runs, and
//! stores their markers in the capture. docs/ring.md describes the memory and the protocol.
//!
//! `search` finds a ring, `check` decides whether it is one, `program` reads it, `pending` brings the markers
//! of all threads in order, `times` converts their times, and `pages` makes pages of them.

mod pages;
mod program;
mod search;
mod times;

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use pages::{MarkerPages, Pending};
use program::{Allowance, CHECKS_OF_ALL_PER_SECOND, MAX_THREADS, Program, Round};
use search::{CheckedRing, NoRing, RingSearch};
use times::RingTimes;

use super::capture::RecordingOutput;
use super::{RecordError, Tracefs};
use crate::clock::{Clock, Timestamp};
use crate::ftrace::PageLayout;
use crate::ids::{Cpu, Pid, Tid};
use crate::markers::MAX_LEN;
use crate::step_log::print_step;
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
/// The most processes without a place that are counted.
const MAX_SHUT_OUT: usize = 1 << 16;
/// The most ended programs that are told of one by one.
const MAX_SUMMARIES: usize = 4096;
/// The most threads whose names are kept. The capture's head has room for fewer.
const MAX_NAMES: usize = 1 << 16;
/// The most programs that are read at the same time. Each takes a descriptor, and 32 MiB of addresses.
const MAX_PROGRAMS: usize = if cfg!(target_pointer_width = "64") { 256 } else { 32 };
/// The programs of one user take at most this part of the places, and of the reasons for refusals.
const USERS: usize = 4;
/// The most rings of one process: a program may hold two copies of the library.
const MAX_RINGS_OF_PROCESS: usize = 2;
/// A ring into which nothing was written for so long gives way to a new one where no place is left.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);

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
    /// Links that were refused already, with the owners of their processes and the reasons.
    refused: HashSet<(u32, std::path::PathBuf, String)>,
    /// The processes for whose rings there was no place.
    shut_out: HashSet<Pid>,
    /// Names of threads that wrote markers: id, process, name.
    names: Vec<(Tid, Pid, Vec<u8>)>,
    /// Markers that ended programs beyond [`MAX_SUMMARIES`] have dropped.
    unlisted_dropped: u64,
    /// Programs that have ended.
    summary: RingsSummary,
}

impl Rings {
    /// Gets ready to read rings into the entry `cpu` of the table of CPUs. `None` where the clock of the
    /// recording gives markers no time.
    pub(super) fn begin(tracefs: &Tracefs, clock: Clock, layout: PageLayout, cpu: Cpu) -> Option<Rings> {
        let times = RingTimes::begin(clock, tracefs)?;
        let stamp = times.stamp;
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
                stamp,
                now: 0,
                checks: Allowance::new(CHECKS_OF_ALL_PER_SECOND),
                threads_left: MAX_THREADS,
                bytes: Vec::new(),
                text: Box::new([0; MAX_LEN]),
            },
            interval: MIN_INTERVAL,
            next_round: now,
            next_tidy: now + TIDY_INTERVAL,
            refused: HashSet::new(),
            shut_out: HashSet::new(),
            names: Vec::new(),
            unlisted_dropped: 0,
            summary: RingsSummary::default(),
        })
    }

    /// Looks for rings, and has their programs write into them from now on.
    pub(super) fn scan(&mut self) {
        let since = self.times.read();
        let known: HashSet<Pid> = self.programs.iter().map(|program| program.pid).collect();
        for (pid, link) in self.search.scan(&known) {
            // A process can have its ring open under two numbers.
            let is_known = |program: &Program| program.pid == pid && program.is_ring(&link);
            if self.programs.iter().any(is_known) {
                continue;
            }
            match search::open(&link, pid) {
                Ok(ring) => self.admit(pid, link, ring, since),
                Err(NoRing::Inherited | NoRing::Unreachable) => {}
                Err(NoRing::Refused(what)) => self.refuse(pid, link, what),
            }
        }
    }

    /// Reads a ring from now on, if a place is left or becomes free.
    fn admit(&mut self, pid: Pid, link: std::path::PathBuf, ring: CheckedRing, since: u64) {
        if self.programs.iter().filter(|program| program.pid == pid).count() >= MAX_RINGS_OF_PROCESS {
            let what = format!("{MAX_RINGS_OF_PROCESS} rings of the process are read already");
            return self.refuse(pid, link, what);
        }
        let uids: Vec<u32> = self.programs.iter().map(Program::uid).collect();
        let Some((count, of_all)) = share(&uids, ring.uid) else {
            print_step(format_args!("reads the ring of process {pid}"));
            return self.programs.push(Program::begin(pid, link, ring, self.times.stamp, since));
        };
        let is_rival = |program: &Program| of_all || program.uid() == ring.uid;
        let idle = self.programs.iter().enumerate().filter(|(_, program)| is_rival(program));
        let idle = idle.min_by_key(|(_, program)| program.last_used);
        let idle =
            idle.filter(|(_, program)| program.last_used.elapsed() >= IDLE_TIMEOUT).map(|(number, _)| number);
        let Some(number) = idle else {
            if self.shut_out.len() < MAX_SHUT_OUT && self.shut_out.insert(pid) {
                self.summary.shut_out += 1;
            }
            return self.refuse(
                pid,
                link,
                format!("{count} programs are read already, and all of them write"),
            );
        };
        let mut idle = self.programs.swap_remove(number);
        idle.release();
        idle.read(&mut self.round, &mut self.pending);
        self.end_program(&idle);
        self.programs.push(Program::begin(pid, link, ring, self.times.stamp, since));
    }

    fn refuse(&mut self, pid: Pid, link: std::path::PathBuf, what: String) {
        let user = std::fs::metadata(format!("/proc/{pid}")).map_or(0, |meta| meta.uid());
        let of_user = self.refused.iter().filter(|(uid, ..)| *uid == user).count();
        let text = format!("process {pid}: {what}");
        if of_user < MAX_REFUSED / USERS
            && self.summary.refused.len() < MAX_REFUSED
            && self.refused.insert((user, link, what))
        {
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
            self.scan();
        }
        let before = self.times.read();
        let result = self.read(before, output).and_then(|()| self.store(self.round.complete, output));
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

    /// Stores what a live recording is to show, also pages that are not full. Returns the time before which
    /// every marker is stored, in the recording's clock; `None` while no program has a ring.
    pub(super) fn live_round(
        &mut self,
        output: &mut dyn RecordingOutput,
    ) -> Result<Option<Timestamp>, RecordError> {
        if self.programs.is_empty() {
            return Ok(None);
        }
        self.pages.flush(output)?;
        Ok(Some(self.times.convert(self.round.complete)))
    }

    /// Reads all rings. Markers that are stamped up to the round before are all there, except for those that
    /// a thread is still writing. Where more wait than memory has room for, they are stored at once.
    fn read(&mut self, now: u64, output: &mut dyn RecordingOutput) -> Result<(), RecordError> {
        self.round.complete = self.round.before;
        self.round.fill = 0.0;
        if self.programs.iter().any(Program::stamps_boottime) {
            self.round.boottime = self.times.boottime();
        }
        for number in 0..self.programs.len() {
            self.programs[number].read(&mut self.round, &mut self.pending);
            if self.pending.is_full() {
                self.round.complete = now;
                self.store(u64::MAX, output)?;
            }
        }
        Ok(())
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
        let (running, mut ended): (Vec<Program>, Vec<Program>) =
            std::mem::take(&mut self.programs).into_iter().partition(Program::has_ring);
        self.programs = running;
        for program in &mut ended {
            // Nobody writes into the ring any more: what is in it now is the rest.
            program.read(&mut self.round, &mut self.pending);
            self.search.forget(program.pid);
            self.end_program(program);
        }
    }

    fn end_program(&mut self, program: &Program) {
        let named = program.threads.iter().filter(|(tid, count)| tid.is_thread() && !count.name.is_empty());
        let room = MAX_NAMES.saturating_sub(self.names.len());
        let named = named.map(|(tid, count)| (*tid, program.pid, count.name.clone()));
        self.names.extend(named.take(room));
        if self.summary.programs.len() < MAX_SUMMARIES {
            self.summary.programs.push(program.summary());
        } else {
            let ended = program.summary();
            self.unlisted_dropped += ended.dropped;
        }
    }

    /// Tells all programs that nobody wants their markers any more.
    pub(super) fn release(&self) {
        self.programs.iter().for_each(Program::release);
    }

    /// Stores everything that the programs have written until they were told to stop.
    pub(super) fn finish(&mut self, output: &mut dyn RecordingOutput) -> Result<(), RecordError> {
        let before = self.times.read();
        let stored = self.read(before, output).and_then(|()| self.store(u64::MAX, output));
        for program in std::mem::take(&mut self.programs) {
            self.end_program(&program);
        }
        stored.and_then(|()| self.pages.flush(output))
    }

    /// The counts, and the names of the threads that wrote markers, after [`Rings::finish`].
    pub(super) fn into_summary(mut self) -> (RingsSummary, Vec<(Tid, Pid, Vec<u8>)>) {
        let mut summary = std::mem::take(&mut self.summary);
        summary.markers = self.pages.events;
        let told: u64 = summary.programs.iter().map(|program| program.dropped).sum();
        summary.dropped = told + self.unlisted_dropped;
        (summary, std::mem::take(&mut self.names))
    }
}

/// Whether a program of the user `uid` has no place beside programs of the users `uids`: how many there are,
/// and whether those are of all users.
fn share(uids: &[u32], uid: u32) -> Option<(usize, bool)> {
    let own = uids.iter().filter(|other| **other == uid).count();
    // Root and the recorder's own user can do worse than to take places.
    let is_trusted = uid == 0 || uid == nix::unistd::geteuid().as_raw();
    match (uids.len() >= MAX_PROGRAMS, own >= MAX_PROGRAMS / USERS && !is_trusted) {
        (_, true) => Some((own, false)),
        (true, false) => Some((uids.len(), true)),
        (false, false) => None,
    }
}

impl Drop for Rings {
    /// However the recording ends, no program goes on writing into a ring that nobody reads.
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_of_one_user_leave_places_for_those_of_others() {
        let many = vec![10_001; MAX_PROGRAMS / USERS];
        assert_eq!(share(&many, 10_001), Some((MAX_PROGRAMS / USERS, false)));
        assert_eq!(share(&many, 10_002), None);
        let full: Vec<u32> = (0..MAX_PROGRAMS as u32).map(|n| n % USERS as u32).collect();
        assert_eq!(share(&full, 10_002), Some((MAX_PROGRAMS, true)));
    }

    /// The rings of a recording, and a directory that stands for its tracefs.
    fn rings() -> (tempfile::TempDir, Rings) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("tracing_on"), "1\n").unwrap();
        let tracefs = Tracefs::find(Some(dir.path())).unwrap();
        let layout = PageLayout {
            endian: crate::ftrace::Endian::NATIVE,
            commit_offset: 8,
            commit_size: 8,
            data_offset: 16,
            size: 4096,
        };
        let rings = Rings::begin(&tracefs, Clock::Boottime, layout, Cpu(1)).unwrap();
        (dir, rings)
    }

    /// Offers a ring of this process as one of the process `pid`. Returns what has to stay open.
    fn offer(rings: &mut Rings, pid: Pid) -> std::fs::File {
        let (file, link) = program::tests::ring_file();
        let ring = search::open(&link, Pid(std::process::id().cast_signed())).unwrap();
        let since = rings.times.read();
        rings.admit(pid, link, ring, since);
        file
    }

    fn pids(rings: &Rings) -> HashSet<Pid> {
        rings.programs.iter().map(|program| program.pid).collect()
    }

    #[test]
    fn where_no_place_is_left_an_idle_ring_gives_way_and_without_one_the_recording_is_lossy() {
        /// Above the ids of all processes.
        const FIRST: i32 = 1 << 23;
        let (_dir, mut rings) = rings();
        let mut files: Vec<std::fs::File> =
            (0..MAX_PROGRAMS as i32).map(|n| offer(&mut rings, Pid(FIRST + n))).collect();
        assert_eq!((rings.programs.len(), rings.summary.shut_out), (MAX_PROGRAMS, 0));
        let now = Instant::now();
        rings.programs.iter_mut().for_each(|program| program.last_used = now);
        for (number, seconds) in [(3, 3), (7, 5), (9, 1)] {
            rings.programs[number].last_used = now.checked_sub(Duration::from_secs(seconds)).unwrap();
        }
        let newer = |n: i32| Pid(FIRST + MAX_PROGRAMS as i32 + n);
        files.push(offer(&mut rings, newer(0)));
        let places = pids(&rings);
        assert!(places.contains(&newer(0)) && !places.contains(&Pid(FIRST + 7)), "the one idle for longest");
        files.push(offer(&mut rings, newer(1)));
        let places = pids(&rings);
        assert!(places.contains(&newer(1)) && !places.contains(&Pid(FIRST + 3)), "the other idle one");
        let ended: Vec<Pid> = rings.summary.programs.iter().map(|program| program.pid).collect();
        assert_eq!((ended, rings.summary.is_lossy()), (vec![Pid(FIRST + 7), Pid(FIRST + 3)], false));
        for _ in 0..2 {
            files.push(offer(&mut rings, newer(2)));
        }
        assert!(!pids(&rings).contains(&newer(2)) && rings.programs.len() == MAX_PROGRAMS);
        let (summary, _) = rings.into_summary();
        assert_eq!((summary.shut_out, summary.is_lossy()), (1, true), "a program is counted once");
        assert!(summary.refused[0].contains("256 programs are read already"), "{:?}", summary.refused);
    }
}
