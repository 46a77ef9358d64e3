//! Recording on this machine's own tracefs (needs root).

#[path = "../shared/capture.rs"]
mod capture;
#[path = "../shared/marker_table.rs"]
mod marker_table;

mod atrace;
mod atrace_text;
mod c_programs;
mod compressed;
mod damaged_capture;
mod doctor;
mod failure_modes;
mod faults;
mod interruption;
mod json_schemas;
mod knobs;
mod launch;
mod locked_down;
mod markers;
mod markers_tracing;
mod other_tracers;
mod played_launch;
mod privilege;
mod recording;
mod ring;
mod ring_programs;
mod starvation;
mod steps;
mod text;
mod tracefs_fixture;
mod why;
mod wrap;
