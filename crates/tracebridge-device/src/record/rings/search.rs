//! Looks for programs that have a ring: among all processes when a recording starts, and later among the new
//! ones at once and among the others in turns, because a program may make its ring at any time.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::check::has_name;

/// A process of less than this age is looked at each time: it may be about to write its first marker.
const YOUNG: Duration = Duration::from_secs(2);
/// The longest time between two scans, and the time between two turns of the older processes.
const TURN_INTERVAL: Duration = Duration::from_secs(1);
/// Older processes that are looked at in a turn: some have a thousand descriptors.
const PROCESSES_PER_TURN: usize = 16;

/// The most links of one process that are looked at: it can have its ring open under several numbers.
const MAX_LINKS_OF_PROCESS: usize = 8;

/// The processes that were seen.
#[derive(Debug)]
pub(super) struct RingSearch {
    first_seen: HashMap<i32, Instant>,
    /// Older processes up to this one have had their turn.
    turn: i32,
    /// Ends with the id of the newest thread on the machine, so that nothing is looked at while none begins.
    loadavg: Option<File>,
    newest: Vec<u8>,
    next_turn: Instant,
}

impl RingSearch {
    pub(super) fn new() -> RingSearch {
        RingSearch {
            first_seen: HashMap::new(),
            turn: 0,
            loadavg: File::open("/proc/loadavg").ok(),
            newest: Vec::new(),
            next_turn: Instant::now(),
        }
    }

    /// Whether there is something to look at.
    pub(super) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let mut text = [0; 128];
        let len = self.loadavg.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        let newest = text[..len].rsplit(|byte| *byte == b' ').next().unwrap_or_default();
        let is_new = newest != self.newest;
        self.newest = newest.to_vec();
        is_new || now >= self.next_turn || self.has_young(now)
    }

    fn has_young(&self, now: Instant) -> bool {
        self.first_seen.values().any(|seen| now.duration_since(*seen) < YOUNG)
    }

    /// The links in `/proc/PID/fd` that have the name of a ring, with their process. `skip` are the processes
    /// whose rings are open. The first scan is of all processes.
    pub(super) fn scan(&mut self, skip: &HashSet<i32>) -> Vec<(i32, PathBuf)> {
        let now = Instant::now();
        let is_turn = now >= self.next_turn;
        if is_turn {
            self.next_turn = now + TURN_INTERVAL;
        }
        let is_first = self.first_seen.is_empty();
        let own = std::process::id() as i32;
        let mut pids: Vec<i32> = entries("/proc").filter(|pid| *pid != own && !skip.contains(pid)).collect();
        pids.sort_unstable();
        let running: HashSet<i32> = pids.iter().copied().collect();
        self.first_seen.retain(|pid, _| running.contains(pid));
        let mut found = Vec::new();
        let mut older = Vec::new();
        for pid in pids {
            // What runs when the recording starts is no younger than that.
            let seen = *self.first_seen.entry(pid).or_insert(if is_first { now - YOUNG } else { now });
            if is_first || now.duration_since(seen) < YOUNG {
                found.extend(rings_of(pid));
            } else {
                older.push(pid);
            }
        }
        let next = older.partition_point(|pid| *pid <= self.turn);
        older.rotate_left(next);
        for pid in older.into_iter().take(if is_turn { PROCESSES_PER_TURN } else { 0 }) {
            self.turn = pid;
            found.extend(rings_of(pid));
        }
        found
    }

    /// Forgets a process, so that the next scan takes it for a new one: it runs another program now.
    pub(super) fn forget(&mut self, pid: i32) {
        self.first_seen.remove(&pid);
    }
}

/// The entries of a directory whose names are numbers.
fn entries(dir: &str) -> impl Iterator<Item = i32> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
}

/// The rings in the table of descriptors of one process. It is empty for a process of another user.
fn rings_of(pid: i32) -> impl Iterator<Item = (i32, PathBuf)> {
    let dir = format!("/proc/{pid}/fd");
    let links = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let rings = links.filter(|link| fs::read_link(link).is_ok_and(|to| has_name(&to)));
    rings.take(MAX_LINKS_OF_PROCESS).map(move |link| (pid, link))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_process_is_due_and_its_ring_found_under_its_id() {
        let mut search = RingSearch::new();
        assert!(search.is_due());
        search.scan(&HashSet::new());
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        assert!(search.is_due(), "a process has begun");
        search.scan(&HashSet::new());
        assert!(search.first_seen.contains_key(&(child.id() as i32)));
        assert!(!search.first_seen.contains_key(&(std::process::id() as i32)));
        drop(child.stdin.take());
        child.wait().unwrap();
        search.scan(&HashSet::new());
        assert!(!search.first_seen.contains_key(&(child.id() as i32)));
    }
}
