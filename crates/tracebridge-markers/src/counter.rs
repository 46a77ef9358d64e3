//! The CPU's free-running counter: CNTVCT_EL0 on arm64, the TSC on x86. Reading it is one instruction, and no
//! system call.

/// Whether [`ticks`] has values on this architecture.
#[allow(dead_code)] // Only programs with the feature `ring` ask.
pub const IS_READABLE: bool = cfg!(any(target_arch = "aarch64", target_arch = "x86_64", target_arch = "x86"));

/// The value of the counter, in ticks; `None` where user space may not read it.
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64", target_arch = "x86"))]
#[inline(always)]
pub fn ticks() -> Option<u64> {
    Some(crate::system::counter())
}

/// None: on 32-bit Arm the instruction traps where the kernel does not offer the counter, and ART does not
/// use it there.
#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64", target_arch = "x86")))]
#[inline(always)]
pub fn ticks() -> Option<u64> {
    None
}

/// The frequency of [`ticks`], in ticks per second.
#[cfg(target_arch = "aarch64")]
pub fn hz() -> Option<u64> {
    Some(crate::system::counter_hz()).filter(|hz| *hz > 0)
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
