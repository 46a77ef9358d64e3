//! The tests that need no kernel, no device and no corpus, in one program, which links once: journeys through
//! the real binary, comparisons with golden files, and the structure of the sources.

mod cli;
mod golden;
mod house;
mod live;
