//! Recording on this machine's own tracefs (needs root).

#[path = "../support/capture.rs"]
mod capture;
#[path = "../support/damage.rs"]
mod damage;
#[path = "../support/schemas.rs"]
mod schemas;
#[path = "../support/small_disk.rs"]
mod small_disk;
#[path = "../support/mod.rs"]
mod support;

mod atrace;
mod atrace_text;
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
mod other_tracers;
mod privilege;
mod recording;
mod starvation;
mod text;
mod tracefs_fixture;
mod wrap;
