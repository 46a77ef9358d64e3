//! Reads every real file of the corpus and compares the result with what other programs read from the same
//! file.

#[path = "../support/capture.rs"]
mod capture;
#[path = "../support/report_page.rs"]
mod report_page;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/tables.rs"]
mod tables;

mod dataset;
mod dmtracedump;
mod method_trace;
mod perfetto;
mod pictures;
mod printed_profile;
mod report;
mod round_trip;
mod texts;
mod trace_dat;
