//! One timeline from several inputs: clocks, identity of threads, merge.
