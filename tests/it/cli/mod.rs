//! Runs the real binary on files that the tests make themselves.

#[path = "../../shared/aligned_edges.rs"]
mod aligned_edges;

#[cfg(target_os = "linux")]
mod faults;
#[cfg(target_os = "linux")]
mod markers;

#[cfg(target_os = "linux")]
mod device_output;

#[cfg(target_os = "linux")]
mod documented_commands;

#[cfg(target_os = "linux")]
mod outputs_whole;
mod scripts;

#[cfg(unix)]
#[path = "adb_server.rs"]
mod adb;
#[cfg(target_os = "linux")]
mod adb_launch;
mod align;
mod bounded;
mod change_points;
mod chrome_json;
mod compressed_inputs;
mod damaged_inputs;
mod dataset;
mod dataset_engines;
#[cfg(unix)]
mod dataset_fire;
mod dataset_parts;
mod duplicates;
mod gate;
mod gate_frames;
#[cfg(unix)]
mod hostile_phones;
mod inputs_in_hand;
mod json_schemas;
mod launches;
mod manuals;
mod mapping;
mod method_writers;
mod mistakes;
mod one_way_in;
mod output;
mod perfetto;
mod perfetto_round_trip;
mod perfetto_zip;
mod pictures;
mod profile;
mod profile_options;
mod progress;
mod queries_of_launches;
mod report;
mod trace_dat;
mod viewers;
mod why;

mod bad_text;
