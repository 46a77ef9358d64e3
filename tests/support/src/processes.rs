//! The state of processes, as `/proc` tells it.

use std::fs;

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

/// The letter of the process's state; `None` if there is none of this number.
fn state(pid: u32) -> Option<char> {
    state_in(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The letter behind the name, which may hold anything.
fn state_in(stat: &str) -> Option<char> {
    stat.rsplit_once(") ")?.1.chars().next()
}
