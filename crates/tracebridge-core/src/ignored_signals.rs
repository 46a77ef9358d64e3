//! The signals that this process was started to ignore.
//!
//! A blocked signal is delivered to who waits for it even if the process ignores the signal. Whoever waits
//! for signals asks here first, so that `nohup` keeps its meaning.

/// Whether the process ignored the signal with the number `signal` when this was called. Linux says it in
/// `/proc/self/status`; elsewhere the answer is no.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
