//! Everything that a host does with attached devices: recordings and launches that are started from here,
//! their files fetched and converted, and the commands of the binary on a device. Each public function is one
//! command of `tracebridge adb`; it works on several devices at the same time, and returns a result for each.

mod app_versions;
mod delivery;
mod device;
mod device_command;
mod device_json;
mod device_list;
mod error;
mod host_hints;
mod install;
mod launch_series;
pub mod live;
mod method_trace;
mod other_traces;
mod outcome;
mod output_names;
mod output_server;
mod pull;
mod recorder_choice;
mod recording;
mod targets;
mod user_interface;

pub use device::{EmbeddedBinary, abandon_all, embedded_binaries, file_sha256, has_embedded_binaries};
pub use device_command::{mark, report, start_flight_recorder, stop_flight_recorder};
pub use device_json::{DeviceJson, DeviceLine};
#[cfg(test)]
pub use device_list::ListedJson;
pub use device_list::{DeviceDetails, ListedDevice, list_devices};
pub use error::DeskError;
pub use host_hints::{host_command, host_hints};
pub use install::{clean, push};
pub use launch_series::{LaunchSeriesRequest, RecordedLaunches, compare_recorded, launch};
pub use method_trace::{ProfilerRequest, start_profiler, stop_profiler};
pub use other_traces::{OtherTracesRequest, fetch_other_traces};
pub use outcome::{Completeness, DeviceOutcome, DeviceResult};
pub use output_server::OutputServer;
pub use pull::{PullRequest, list_recordings, pull, resume};
pub use recorder_choice::{RecorderChoice, TraceSelection};
pub use recording::{RecordingRequest, fetch_flight, record};
pub use targets::Targets;
pub use user_interface::UserInterface;
