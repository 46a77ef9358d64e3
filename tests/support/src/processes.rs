//! The state of processes, as `/proc` tells it.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::{Child, Ran};

/// Whether a process runs. One that has ended, and for which its parent has not waited yet, does not.
pub fn runs(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z' && state != 'X')
}

/// Whether all threads of a process sleep: it waits for something.
pub fn sleeps(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    let states: Vec<Option<char>> = threads
        .map_while(Result::ok)
        .map(|thread| state_in(&fs::read_to_string(thread.path().join("stat")).ok()?))
        .collect();
    !states.is_empty() && states.iter().all(|state| *state == Some('S'))
}

/// Whether a process is stopped, as by SIGSTOP.
pub fn is_stopped(pid: u32) -> bool {
    state(pid) == Some('T')
}

/// The most memory that a process has used until now, KiB; `None` if there is none of this number.
pub fn resident_kib(pid: u32) -> Option<usize> {
    // A child shares this program's memory until it runs its own program, which can be a moment after it was
    // started.
    let program = |who: &str| fs::read_link(format!("/proc/{who}/exe")).ok();
    if program(&pid.to_string())? == program("self")? {
        return Some(0);
    }
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Waits for a command, and returns the most memory that it has used, KiB, as far as it is seen every 20 ms.
pub fn finish_with_memory(child: Child) -> (Ran, usize) {
    let pid = child.id();
    let has_ended = AtomicBool::new(false);
    let resident = AtomicUsize::new(0);
    let ran = thread::scope(|scope| {
        scope.spawn(|| {
            while let Some(kib) = resident_kib(pid).filter(|_| !has_ended.load(Ordering::Relaxed)) {
                resident.fetch_max(kib, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(20));
            }
        });
        let ran = child.finish();
        has_ended.store(true, Ordering::Relaxed);
        ran
    });
    (ran, resident.into_inner())
}

/// The letter of the process's state; `None` if there is none of this number.
fn state(pid: u32) -> Option<char> {
    state_in(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The letter behind the name, which may hold anything.
fn state_in(stat: &str) -> Option<char> {
    stat.rsplit_once(") ")?.1.chars().next()
}
