//! `adb push`: puts the binary on a device.

use clap::Args;
use serde_json::json;

use super::outcome::{self, Outcome};
use super::target::TargetArgs;
use crate::cli::Exit;
use crate::remote::REMOTE_PATH;

/// Put the tracebridge binary on a device, at /data/local/tmp/tracebridge, unless it is there
///
/// The other commands do that themselves. The binary is compared by its SHA-256, verified after the push, and
/// run once before it gets its name.
#[derive(Debug, Args)]
pub struct PushArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Push the binary for this ABI: arm64-v8a, armeabi-v7a, x86_64, x86 (armeabi-v7a runs on arm64 devices
    /// too). Default: the device's own
    #[arg(long, value_name = "ABI")]
    abi: Option<String>,
}

/// Runs `adb push`.
pub fn run(args: &PushArgs) -> anyhow::Result<Exit> {
    let results = args.target.on_each(|mut device, _| {
        let abi = args.abi.as_deref();
        let pushed = device.ensure_binary(abi)?;
        let abi = abi.unwrap_or(&device.facts.abi).to_owned();
        let what = if pushed.is_new { "pushed" } else { "is there" };
        Ok(Outcome {
            exit: Exit::Complete,
            text: format!("{REMOTE_PATH}: {abi}, {} bytes, {what}\n", pushed.bytes),
            json: json!({ "abi": abi, "path": REMOTE_PATH, "bytes": pushed.bytes, "pushed": pushed.is_new }),
        })
    })?;
    outcome::print(results, args.target.json)
}
