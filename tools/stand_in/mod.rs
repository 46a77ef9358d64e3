//! The parts that the programs share which stand in for an Android app: the clocks of its runtime, and the
//! names of its process and threads.

mod clocks;
mod names;

pub use clocks::{Epoch, Era, kernel_ns};
pub use names::{become_package, set_comm};
