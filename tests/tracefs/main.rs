//! Recording on this machine's own tracefs (needs root).

#[path = "../support/capture.rs"]
mod capture;
#[path = "../support/damage.rs"]
mod damage;
#[path = "../support/marker_table.rs"]
mod marker_table;
#[path = "../support/report_page.rs"]
mod report_page;
#[path = "../support/schemas.rs"]
mod schemas;
#[path = "../support/small_disk.rs"]
mod small_disk;
#[path = "../support/mod.rs"]
mod support;

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
mod privilege;
mod recording;
mod ring;
mod ring_programs;
mod starvation;
mod text;
mod tracefs_fixture;
mod wrap;
