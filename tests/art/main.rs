//! Method traces that a real Android runtime (ART 11) writes, through every reader, and on the timeline of
//! what this machine's kernel recorded of the same run. The runtime's and the kernel's clocks are this
//! machine's, so that the right place of each trace is known. `scripts/art` makes the runtime.

mod causes;
mod placed;
mod recorded;
mod runtime;
mod writers;
