//! The clock of a method trace's start by the source of the runtime that wrote it. Contents may contradict
//! it.

use crate::clock::Clock;
use crate::formats::art_method::{Header, MethodTrace, YEAR_2001_NS};

/// A method trace's clock, as the source of its runtime has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuntimeClock {
    /// The clock of the start.
    pub clock: Clock,
    /// No release of this runtime has taken another clock, and its times since the start are readings of
    /// this clock. Otherwise they may be ticks of the CPU's counter, scaled to µs or ns, which drift.
    pub is_certain: bool,
}

/// The clock by the header and the threads' ids.
///
/// | runtime | start | times since the start |
/// | --- | --- | --- |
/// | Dalvik | REALTIME | REALTIME |
/// | ART until March 2023 | MONOTONIC | MONOTONIC |
/// | ART until March 2024 | the CPU's counter | the CPU's counter |
/// | later ART | MONOTONIC | the CPU's counter |
///
/// Since May 2023 ART numbers the threads 1, 2, 3… in versions 1 to 3; before, the ids are the kernel's.
pub fn runtime_clock(trace: &MethodTrace<'_>) -> RuntimeClock {
    let header = trace.header();
    if let Some(clock) = header.start_clock {
        return RuntimeClock { clock, is_certain: false };
    }
    if header.vm.as_deref() == Some("dalvik") || header.start_ns() > YEAR_2001_NS {
        return RuntimeClock { clock: Clock::Realtime, is_certain: true };
    }
    RuntimeClock { clock: Clock::Monotonic, is_certain: has_kernel_ids(header, trace) }
}

/// Whether the ids of threads are the kernel's, in a version whose later writers number the threads.
fn has_kernel_ids(header: &Header<'_>, trace: &MethodTrace<'_>) -> bool {
    let is_main = |id: u32| header.pid.is_some_and(|pid| id == pid.0 as u32 || id == pid.0 as u32 & 0xffff);
    (1..=3).contains(&header.version) && trace.threads().iter().any(|thread| is_main(thread.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::test_data::method_trace;

    #[test]
    fn the_threads_ids_tell_the_age_of_the_runtime() {
        let clock = |bytes: &[u8]| runtime_clock(&MethodTrace::parse(bytes).unwrap());
        let kernel_ids = method_trace(1_000, &[(7, 0, 0, 10, 10)]);
        assert_eq!(clock(&kernel_ids), RuntimeClock { clock: Clock::Monotonic, is_certain: true });
        let numbered = String::from_utf8_lossy(&kernel_ids).replacen("pid=7", "pid=9", 1).into_bytes();
        assert_eq!(clock(&numbered), RuntimeClock { clock: Clock::Monotonic, is_certain: false });
        let since_1970 = method_trace(1_790_000_000_000_000, &[(1, 0, 0, 10, 10)]);
        assert_eq!(clock(&since_1970), RuntimeClock { clock: Clock::Realtime, is_certain: true });
    }
}
