//! Limits on what a recording may claim about the machine that made it. Numbers beyond them are damage, not
//! data.

/// The largest number of CPUs a recording may have. Linux cannot be built for more (`CONFIG_NR_CPUS`).
pub const MAX_CPUS: u32 = 8192;

/// The smallest sub-buffer that a file may name, bytes.
const MIN_SUB_BUFFER_BYTES: u32 = 64;

/// The largest sub-buffer that a file may name, bytes. The kernel's own limit is 32 system pages of up to 64
/// KiB.
pub(super) const MAX_SUB_BUFFER_BYTES: u32 = 4 << 20;

/// Whether a sub-buffer ("page") of the ring buffer can be `bytes` long.
pub fn is_sub_buffer_size(bytes: u32) -> bool {
    (MIN_SUB_BUFFER_BYTES..=MAX_SUB_BUFFER_BYTES).contains(&bytes)
}
