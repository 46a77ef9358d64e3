//! Every real file of the corpus through the real readers, checked against its peers.

#[path = "../support/mod.rs"]
mod support;

mod dmtracedump;
mod method_trace;
mod perfetto;
mod round_trip;
mod texts;
mod trace_dat;
