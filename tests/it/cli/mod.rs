//! Runs the real binary on files that the tests make themselves.

#[cfg(target_os = "linux")]
mod markers;

#[cfg(target_os = "linux")]
mod documented_commands;
#[cfg(target_os = "linux")]
mod documented_runs;

#[cfg(target_os = "linux")]
mod outputs_whole;
#[cfg(target_os = "linux")]
mod scripts;

#[cfg(unix)]
#[path = "adb_server.rs"]
mod adb;
#[cfg(target_os = "linux")]
mod adb_launch;
mod adb_other_traces;
#[cfg(unix)]
mod adb_versions;
#[cfg(target_os = "linux")]
mod adb_video;
mod agreement;
mod align;
mod bounded;
mod chrome_json;
mod damaged_inputs;
mod dataset;
mod dataset_engines;
#[cfg(unix)]
mod dataset_fire;
mod dataset_parts;
mod duplicates;
#[cfg(unix)]
mod gate;
#[cfg(unix)]
mod hostile_phones;
mod inputs_in_hand;
mod json_schemas;
#[cfg(target_os = "linux")]
mod launch_samples;
mod launches;
mod limits_are_told;
mod losses;
mod manuals;
#[cfg(target_os = "linux")]
mod many_events;
mod mapping;
#[cfg(unix)]
mod mcp;
#[cfg(target_os = "linux")]
mod mcp_borders;
mod method_writers;
mod mistakes;
mod one_way_in;
mod output;
mod perfetto;
mod perfetto_samples;
mod pictures;
mod profile;
mod profile_options;
mod progress;
mod queries;
mod report;
mod sample_cuts;
mod samples;
mod samples_on_timeline;
mod screen_video;
mod strace;
mod trace_dat;
mod version;
mod viewers;
mod why;
