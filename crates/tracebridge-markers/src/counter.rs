//! The CPU's free-running counter: CNTVCT_EL0 on arm64, the TSC on x86. Reading it is one instruction, and no
//! system call.
#![allow(unsafe_code)] // One instruction that has no safe wrapper in the standard library.

/// Whether [`ticks`] has values on this architecture.
#[allow(dead_code)] // Only programs with the feature `ring` ask.
pub const IS_READABLE: bool = cfg!(any(target_arch = "aarch64", target_arch = "x86_64", target_arch = "x86"));

/// The value of the counter, in ticks; `None` where user space may not read it.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub fn ticks() -> Option<u64> {
    let ticks: u64;
    // SAFETY: reading CNTVCT_EL0 has no side effect. Linux enables the read for user space on every arm64,
    // because the vDSO's clock_gettime uses it. Where an erratum forbids the read, the kernel traps and
    // emulates it.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    Some(ticks)
}

/// The frequency of [`ticks`], in ticks per second.
#[cfg(target_arch = "aarch64")]
pub fn hz() -> Option<u64> {
    let hz: u64;
    // SAFETY: reading CNTFRQ_EL0 has no side effect, and user space may read it wherever it may read
    // CNTVCT_EL0.
    unsafe { std::arch::asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack)) };
    Some(hz).filter(|hz| *hz > 0)
}

/// The value of the counter, in ticks; `None` where user space may not read it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn ticks() -> Option<u64> {
    // SAFETY: RDTSC has no side effect. Linux permits it unless a process has forbidden it to itself
    // (PR_SET_TSC).
    Some(unsafe { std::arch::x86_64::_rdtsc() })
}

/// The value of the counter, in ticks; `None` where user space may not read it.
#[cfg(target_arch = "x86")]
#[inline(always)]
pub fn ticks() -> Option<u64> {
    // SAFETY: as on x86_64.
    Some(unsafe { std::arch::x86::_rdtsc() })
}

/// None: on 32-bit Arm the instruction traps where the kernel does not offer the counter, and ART does not
/// use it there.
#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64", target_arch = "x86")))]
#[inline(always)]
pub fn ticks() -> Option<u64> {
    None
}

/// Unknown: user space on x86 has no reliable source for the TSC's frequency. Readers derive it from two
/// snapshots.
#[cfg(not(target_arch = "aarch64"))]
pub fn hz() -> Option<u64> {
    None
}

/// Whether the counter is one clock for all CPUs. Every arm64 has such a counter. An x86 has it where the
/// kernel offers the clock source `tsc`: it takes the name off the list when the TSCs of two CPUs differ, or
/// when they stop in sleep.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn is_one_clock() -> bool {
    const SOURCES: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    let is_offered =
        || std::fs::read_to_string(SOURCES).is_ok_and(|names| names.split_whitespace().any(|n| n == "tsc"));
    ticks().is_some() && (cfg!(target_arch = "aarch64") || is_offered())
}
