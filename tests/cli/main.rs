//! Runs the real binary on files that the tests make themselves.

#[cfg(unix)]
#[path = "../support/adb_server.rs"]
mod adb_server;
#[path = "../support/aligned_edges.rs"]
mod aligned_edges;
#[path = "../support/art_always_on.rs"]
mod art_always_on;
#[path = "../support/art_blocks.rs"]
mod art_blocks;
#[path = "../support/art_generate.rs"]
mod art_generate;
#[path = "../support/art_writer.rs"]
mod art_writer;
#[path = "../support/damage.rs"]
mod damage;
#[path = "../support/dat_writer.rs"]
mod dat_writer;
#[path = "../support/files.rs"]
mod files;
#[path = "../support/foreign_dat.rs"]
mod foreign_dat;
#[path = "../support/launch_noise.rs"]
mod launch_noise;
#[path = "../support/report_page.rs"]
mod report_page;
#[path = "../support/scenario.rs"]
mod scenario;
#[path = "../support/schemas.rs"]
mod schemas;
#[cfg(target_os = "linux")]
#[path = "../support/small_disk.rs"]
mod small_disk;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/tables.rs"]
mod tables;

#[cfg(target_os = "linux")]
mod faults;
#[cfg(target_os = "linux")]
mod markers;

#[cfg(target_os = "linux")]
mod device_output;

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
mod compressed_inputs;
mod damaged_inputs;
mod dataset;
mod duplicates;
mod gate;
mod inputs_in_hand;
mod json_schemas;
mod launches;
mod manuals;
mod mapping;
mod method_writers;
mod mistakes;
mod output;
mod perfetto;
mod perfetto_round_trip;
mod perfetto_zip;
mod pictures;
mod profile;
mod profile_options;
mod progress;
mod report;
mod trace_dat;
mod viewers;

mod bad_text;
