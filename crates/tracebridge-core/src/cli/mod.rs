//! What the command lines of the device and of the host share: exit statuses, units, and the flags that say
//! what is recorded.

pub mod exit;
pub mod recording_flags;
pub mod units;

pub use exit::{Exit, finish};
