//! The parts that the command lines of the device and of the host share: exit statuses, units, and the flags
//! that say what is recorded.

pub mod exit;
pub mod recording_flags;
pub mod tips;
pub mod units;

pub use exit::{Exit, finish};

/// The purpose of the program in one sentence, with which its help begins.
pub const ABOUT: &str =
    "Records a device's kernel trace and atrace markers, and puts them on one clock with ART method traces";
