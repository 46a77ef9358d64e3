//! Reads every real file of the corpus and compares the result with what other programs read from the same
//! file.

#[path = "../shared/capture.rs"]
mod capture;

mod dataset;
mod frames;
mod json_schemas;
mod launches;
mod method_trace;
mod perfetto;
mod profile;
mod report;
mod round_trip;
mod sample_profiles;
mod samples;
mod samples_written;
mod texts;
mod trace_dat;
mod why;
