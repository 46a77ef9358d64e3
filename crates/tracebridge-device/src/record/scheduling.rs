//! The scheduling of the recorder: it asks to be run before the programs that it records, so that a busy
//! machine does not keep it from emptying the kernel's buffers.
//!
//! A recorder moves pages for a small part of the time, and sleeps the rest. Where it does not, because
//! another program makes events faster than they can be moved, it must not starve the device: when it has
//! used more than [`MAX_CPU_SHARE`] of a CPU for a second, it goes on with ordinary scheduling, and says so.
//! (The kernel has a limit of its own, `sched_rt_runtime_us`, which is 95 % of each CPU.)

use std::fmt;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

use crate::system::{set_nice, set_real_time};

/// The real-time priority, of 1 to 99: below all other real-time threads, such as those of Android's audio.
const REAL_TIME_PRIORITY: i32 = 1;
/// The nice value where real-time scheduling is refused.
const FALLBACK_NICE: i32 = -19;
/// The most of one CPU that the recorder may use before its priority.
const MAX_CPU_SHARE: f64 = 0.6;
/// The time over which the share is measured.
const SHARE_INTERVAL: Duration = Duration::from_secs(1);

/// How a thread is scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    RealTime(i32),
    Nice(i32),
    Ordinary,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Class::RealTime(priority) => write!(f, "real-time {priority}"),
            Class::Nice(nice) => write!(f, "nice {nice}"),
            Class::Ordinary => f.write_str("ordinary"),
        }
    }
}

/// The priority of the calling thread while it records. Dropping the value makes the thread an ordinary one
/// again. Threads and processes that it starts are ordinary ones.
#[derive(Debug)]
pub(super) struct Priority {
    class: Class,
    /// Whether the thread was made an ordinary one because it used too much of a CPU.
    too_busy: bool,
    since: Instant,
    cpu_time: Duration,
}

impl Priority {
    /// Asks for the best scheduling that the kernel permits, or for this nice value.
    pub(super) fn raise(nice: Option<i32>) -> Priority {
        let class = match nice {
            Some(nice) if set_nice(nice).is_ok() => Class::Nice(nice),
            Some(_) => Class::Ordinary,
            None if set_real_time(Some(REAL_TIME_PRIORITY)).is_ok() => Class::RealTime(REAL_TIME_PRIORITY),
            None if set_nice(FALLBACK_NICE).is_ok() => Class::Nice(FALLBACK_NICE),
            None => Class::Ordinary,
        };
        // Children do not inherit a nice value either.
        if matches!(class, Class::Nice(_)) {
            let _ = set_real_time(None);
        }
        Priority { class, too_busy: false, since: Instant::now(), cpu_time: cpu_time() }
    }

    /// The scheduling that was got.
    pub(super) fn class(&self) -> impl fmt::Display {
        self.class
    }

    /// Gives the priority up if the thread has used too much of a CPU.
    pub(super) fn check_share(&mut self) {
        let elapsed = self.since.elapsed();
        if elapsed < SHARE_INTERVAL {
            return;
        }
        let used = cpu_time();
        let share = (used - self.cpu_time).as_secs_f64() / elapsed.as_secs_f64();
        self.since = Instant::now();
        self.cpu_time = used;
        if share > MAX_CPU_SHARE && matches!(self.class, Class::RealTime(_)) && !self.too_busy {
            self.too_busy = true;
            lower(self.class);
        }
    }

    /// The scheduling in words, and a note if the priority was given up.
    pub(super) fn describe(&self) -> (String, Option<String>) {
        let note = "the recorder used more than 60 % of a CPU, so it went on with ordinary scheduling";
        (self.class.to_string(), self.too_busy.then(|| note.to_owned()))
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        lower(self.class);
    }
}

fn lower(class: Class) {
    match class {
        Class::RealTime(_) => drop(set_real_time(None)),
        Class::Nice(nice) if nice < 0 => drop(set_nice(0)),
        Class::Nice(_) | Class::Ordinary => {}
    }
}

/// The CPU time of the calling thread.
fn cpu_time() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else { return Duration::ZERO };
    let time = |t: nix::sys::time::TimeVal| {
        Duration::from_secs(t.tv_sec() as u64) + Duration::from_micros(t.tv_usec() as u64)
    };
    time(usage.user_time()) + time(usage.system_time())
}
