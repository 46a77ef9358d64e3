//! Recording on this machine's own tracefs (needs root).

#[path = "../shared/capture.rs"]
mod capture;
#[path = "../shared/shown_samples.rs"]
mod shown_samples;

mod atrace;
mod c_programs;
mod compressed;
mod doctor;
mod failure_modes;
mod interruption;
mod json_schemas;
mod knobs;
mod launch;
mod live;
mod locked_down;
mod marker_table;
mod markers;
mod other_tracers;
mod perf_options;
mod played;
mod privilege;
mod recording;
mod ring;
mod ring_programs;
mod samples;
mod simpleperf;
mod steps;
mod text;
mod tracefs_fixture;
mod wrap;
