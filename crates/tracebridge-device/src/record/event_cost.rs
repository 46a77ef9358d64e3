//! Measures how long this machine takes to record an event, in a trace buffer of its own that exists for this
//! alone: what is recorded is not disturbed.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;

use super::tracefs::Tracefs;
use crate::trace_dat::EventCost;

/// The name of the trace buffer. One that a killed recorder left behind is taken over.
const INSTANCE: &str = "tracebridge-cost";
/// The markers, and the switches, that are recorded.
const EVENTS: u32 = 1000;
/// How often each is measured; the shortest time counts.
const ROUNDS: u32 = 2;
/// Pages for so many events would only cost time.
const BUFFER_KIB: &str = "64";
/// A busy machine switches so slowly that what is measured says nothing, and the recording would begin late.
const TIMEOUT: Duration = Duration::from_millis(300);

/// Measures the cost of events. `None` where this user or kernel has no place for it, where another recorder
/// measures at the moment, or where it would take longer than [`TIMEOUT`].
pub(super) fn measure(tracefs: &Tracefs) -> Option<EventCost> {
    let deadline = Instant::now() + TIMEOUT;
    let instance = CostInstance::create(&tracefs.top().join("instances"))?;
    let marker_ns = markers(&instance.dir, deadline).ok()?;
    // Both threads inherit the affinity of the one that starts them.
    let dir = instance.dir.clone();
    let measured = thread::Builder::new().spawn(move || switches(&dir, deadline)).ok()?;
    let switch_ns = measured.join().ok()?.ok()?;
    Some(EventCost { marker_ns, switch_ns })
}

/// Removes the trace buffer that a recorder has left behind which was killed while it measured.
pub(super) fn remove_left_over(tracefs: &Tracefs) {
    let _ = fs::remove_dir(tracefs.top().join("instances").join(INSTANCE));
}

/// A trace buffer that is removed again.
struct CostInstance {
    dir: PathBuf,
}

impl CostInstance {
    fn create(instances: &Path) -> Option<CostInstance> {
        let dir = instances.join(INSTANCE);
        if fs::create_dir(&dir).is_err() {
            // This fails as long as another recorder has its files open.
            fs::remove_dir(&dir).ok()?;
            fs::create_dir(&dir).ok()?;
        }
        let instance = CostInstance { dir };
        let _ = fs::write(instance.dir.join("buffer_size_kb"), BUFFER_KIB);
        Some(instance)
    }
}

impl Drop for CostInstance {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.dir);
    }
}

/// The time of one marker with its system call, ns.
fn markers(instance: &Path, deadline: Instant) -> io::Result<u64> {
    let mut marker = OpenOptions::new().write(true).open(instance.join("trace_marker"))?;
    let text = format!("B|{}|a slice of a usual name", std::process::id());
    let mut shortest = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for number in 0..EVENTS {
            marker.write_all(text.as_bytes())?;
            check(number, deadline)?;
        }
        shortest = shortest.min(start.elapsed());
    }
    Ok(each(shortest))
}

/// By how much a context switch and its wake-up take longer when they are recorded, ns.
fn switches(instance: &Path, deadline: Instant) -> io::Result<u64> {
    let cpu = sched_getcpu()?;
    let mut one = CpuSet::new();
    one.set(cpu)?;
    sched_setaffinity(Pid::from_raw(0), &one)?;
    let (mut receive, mut send) = io::pipe()?;
    let (mut receive_answer, mut answer) = io::pipe()?;
    thread::scope(|scope| {
        thread::Builder::new().spawn_scoped(scope, move || {
            let mut byte = [0];
            while receive.read_exact(&mut byte).is_ok() && answer.write_all(&byte).is_ok() {}
        })?;
        // The pipe's end moves into the closure, so that the other thread ends with it.
        let mut turn = move || -> io::Result<Duration> {
            let start = Instant::now();
            // To the other thread and back are two switches.
            for number in 0..EVENTS / 2 {
                send.write_all(&[0])?;
                receive_answer.read_exact(&mut [0])?;
                check(number, deadline)?;
            }
            Ok(start.elapsed())
        };
        let mut shortest = [Duration::MAX; 2];
        for _ in 0..ROUNDS {
            for (is_recorded, shortest) in ["0", "1"].into_iter().zip(&mut shortest) {
                for event in ["sched_switch", "sched_waking"] {
                    fs::write(instance.join("events/sched").join(event).join("enable"), is_recorded)?;
                }
                *shortest = (*shortest).min(turn()?);
            }
        }
        Ok(each(shortest[1].saturating_sub(shortest[0])))
    })
}

/// Fails when it is later than `deadline`. The clock is read after every 32nd event alone: reading it takes a
/// part of the time that is measured.
fn check(number: u32, deadline: Instant) -> io::Result<()> {
    if number % 32 != 31 || Instant::now() < deadline { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
}

/// The time of each of the [`EVENTS`], ns.
fn each(all: Duration) -> u64 {
    u64::try_from(all.as_nanos()).unwrap_or(u64::MAX) / u64::from(EVENTS)
}
