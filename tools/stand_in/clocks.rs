//! The clocks in which a runtime writes its method trace.

use clap::ValueEnum;
use nix::time::{ClockId, clock_gettime};

/// How old the runtime is that writes the trace.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum Era {
    /// Dalvik: all in CLOCK_REALTIME, thread ids of the kernel.
    Dalvik,
    /// ART until March 2023: all in CLOCK_MONOTONIC, thread ids of the kernel cut to 16 bits.
    ArtMono,
    /// ART until March 2024: all in the CPU's counter, threads numbered from 1.
    ArtCounter,
    /// ART since: start in CLOCK_MONOTONIC, the rest in the CPU's counter, threads numbered from 1.
    Art14,
}

/// Readings at the trace's start, ns.
pub struct Epoch {
    delta_clock: DeltaClock,
    /// The moment that the head of the trace gives.
    pub start: u64,
    delta_start: u64,
}

/// The clock of the records' wall times, which are differences of its readings.
#[derive(Clone, Copy)]
enum DeltaClock {
    Kernel(ClockId),
    Counter { hz: u64 },
}

impl DeltaClock {
    fn ns(self) -> u64 {
        match self {
            DeltaClock::Kernel(id) => kernel_ns(id),
            DeltaClock::Counter { hz } => {
                (u128::from(counter::ticks()) * 1_000_000_000 / u128::from(hz)) as u64
            }
        }
    }
}

/// The reading of a clock, ns.
pub fn kernel_ns(id: ClockId) -> u64 {
    let t = clock_gettime(id).expect("a clock that every Linux has");
    t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64
}

impl Epoch {
    /// Reads the clocks of a runtime.
    pub fn now(era: Era) -> Epoch {
        let counter = counter::hz().map(|hz| DeltaClock::Counter { hz });
        let delta_clock = match era {
            Era::Dalvik => DeltaClock::Kernel(ClockId::CLOCK_REALTIME),
            Era::ArtMono => DeltaClock::Kernel(ClockId::CLOCK_MONOTONIC),
            // 32-bit ARM has no counter that an app may read: the runtime takes this clock there too.
            Era::ArtCounter | Era::Art14 => counter.unwrap_or(DeltaClock::Kernel(ClockId::CLOCK_MONOTONIC)),
        };
        let once = || {
            let before = delta_clock.ns();
            let start =
                if era == Era::Art14 { kernel_ns(ClockId::CLOCK_MONOTONIC) } else { delta_clock.ns() };
            let after = delta_clock.ns();
            (after - before, Epoch { delta_clock, start, delta_start: before + (after - before) / 2 })
        };
        // The first readings wait for the memory that they lie in: the two clocks are as close as the best
        // try.
        let tries = (0..10).map(|_| once());
        tries.min_by_key(|(took, _)| *took).expect("ten tries").1
    }

    /// Time since the start of the trace, µs.
    pub fn wall_us(&self) -> u32 {
        (self.delta_clock.ns().saturating_sub(self.delta_start) / 1000) as u32
    }
}

/// The CPU's counter, as far as a program may read it.
mod counter {
    #![allow(unsafe_code)]

    #[cfg(target_arch = "aarch64")]
    pub fn ticks() -> u64 {
        let ticks;
        // SAFETY: reads a register that Linux lets every program read; touches neither memory nor the stack.
        unsafe { std::arch::asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        ticks
    }

    #[cfg(target_arch = "aarch64")]
    pub fn hz() -> Option<u64> {
        let hz: u64;
        // SAFETY: as above.
        unsafe { std::arch::asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack)) };
        Some(hz)
    }

    #[cfg(target_arch = "x86_64")]
    pub fn ticks() -> u64 {
        // SAFETY: every x86_64 has the instruction, and Linux lets programs use it.
        unsafe { std::arch::x86_64::_rdtsc() }
    }

    /// Measured over some milliseconds, as the runtime does where the CPU does not tell.
    #[cfg(target_arch = "x86_64")]
    pub fn hz() -> Option<u64> {
        let before = super::kernel_ns(super::ClockId::CLOCK_MONOTONIC);
        let from = ticks();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let after = super::kernel_ns(super::ClockId::CLOCK_MONOTONIC);
        let to = ticks();
        Some((u128::from(to - from) * 1_000_000_000 / u128::from(after - before)) as u64)
    }

    #[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
    pub fn ticks() -> u64 {
        0
    }

    #[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
    pub fn hz() -> Option<u64> {
        None
    }
}
