//! The objects that `adb … --json` prints.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::device::Verification;
use crate::export::launches::LaunchSetJson;
use crate::measure::Comparison;

/// The object of a device. Each command fills fields of its own, and adds those that the binary on the
/// device prints: of a recording those of record.json and launch.json, of adb doctor those of
/// doctor.json.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct DeviceJson {
    /// The fields that the device has printed. A field of the same name below takes their place.
    #[serde(flatten)]
    #[schemars(skip)]
    pub printed: Map<String, Value>,
    /// Why the device failed; of a recording, why the recorder did, or null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Of adb start and clean: what was done, in words; of adb doctor and list, what a device printed in
    /// place of JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Of adb list: the array of list.json.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("$ref" = "list.json"))]
    pub list: Option<Value>,
    /// Of adb record, launch, dump, stop -o and profile stop: the file here.
    #[serde(flatten)]
    pub delivered: Option<DeliveredJson>,
    /// Of adb push.
    #[serde(flatten)]
    pub pushed: Option<PushedJson>,
    /// Of adb live: the files here that pages saved, and those of conditions that were met.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved: Option<Vec<String>>,
    /// Of adb live: how often the connection was lost; the recorder's counts are of the last part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_losses: Option<u64>,
    /// The device's own recorder, perfetto or atrace, where it recorded in place of tracebridge's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<&'static str>,
    /// Of adb launch: the app, with or without its activity, as it was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// Of adb launch: the number of the launch of this app, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    /// Of adb launch: whether Android traces the app's methods, and by what right.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["debuggable build", "debuggable", "profileable", "refused", "unknown"]))]
    pub method_tracing: Option<&'static str>,
    /// Of adb launch: false where the device has FrameTimeline and it was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_timeline: Option<bool>,
    /// Of adb launch: the launch; null where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::export::launches::MeasuredLaunchJson>")]
    pub launch: Option<Value>,
    /// Of adb launch -n and --against: the launches of each app.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<SideJson>>")]
    pub sides: Option<Vec<Value>>,
    /// Of adb launch -n and --against: each recording, in the order in which they were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<Vec<DeviceJson>>,
    /// Of adb launch --against.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Comparison>")]
    pub comparison: Option<Value>,
    /// Of a series of launches that a signal has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_after: Option<EndedAfter>,
    /// Of adb pull: the recordings on the device, or with --resume those that were fetched; of adb clean:
    /// the number of those that were removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recordings: Option<Recordings>,
    /// Of adb pull FILE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<FetchedFile>>,
    /// Of adb pull --traces: directories on the device that may not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_directories: Option<Vec<String>>,
}

impl DeviceJson {
    /// The value of a field that the device has printed.
    pub fn printed_text(&self, name: &str) -> Option<&str> {
        self.printed.get(name).and_then(Value::as_str)
    }
}

/// A line of `adb … --json`.
#[derive(Serialize, JsonSchema)]
pub struct DeviceLine<'a> {
    /// The device, as `adb devices` names it.
    pub serial: &'a str,
    #[serde(flatten)]
    pub fields: DeviceJson,
}

/// An output on the host.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DeliveredJson {
    /// The file here.
    pub output: String,
    /// The length of the file here.
    pub bytes: u64,
    /// The format of the file here.
    pub format: String,
    /// How what was fetched was compared with the device's file.
    pub verified: Verification,
    /// With --video: the video of the screen here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<String>,
}

/// The binary on a device.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PushedJson {
    /// The ABI of the binary.
    pub abi: String,
    /// The binary's path on the device.
    pub path: &'static str,
    /// Its length.
    pub bytes: u64,
    /// False where the same binary was there.
    pub pushed: bool,
}

/// The launches of one app.
#[derive(Serialize, JsonSchema)]
pub(super) struct SideJson<'a> {
    pub app: &'a str,
    /// Launches that failed.
    pub failed: u32,
    #[serde(flatten)]
    pub set: LaunchSetJson<'a>,
}

/// The part of a series that was made.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EndedAfter {
    /// Launches that were made.
    pub launches: usize,
    /// Launches of the whole series.
    pub of: usize,
    /// The recording of the launch that the signal cut off, which does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<String>,
}

/// The recordings on a device.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Recordings {
    /// Of adb clean: the number of those that were removed.
    Removed(usize),
    /// Of adb pull.
    List(Vec<RecordingOnDevice>),
}

/// A recording that goes on without a connection.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum RecordingOnDevice {
    /// A recording that is still on the device.
    Left {
        id: String,
        /// running or ended.
        state: &'static str,
        /// The name that it was to have here.
        output: String,
    },
    /// A recording that could not be fetched.
    NotFetched {
        id: String,
        /// The name that it was to have here.
        name: String,
        error: String,
    },
    /// A recording that was fetched.
    Fetched(Box<DeviceJson>),
}

/// A file that was fetched, or with --traces one that was not, with the reason.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct FetchedFile {
    /// The file here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verification>,
    /// Of --traces: the file's format, or what it is otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Of --traces: who has left the file on the device: a program, or an app's package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_by: Option<String>,
    /// Of --traces: the file's path on the device; of an app without root, within the app's directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_path: Option<String>,
    /// Of --traces: why this file was not fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
