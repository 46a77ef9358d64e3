//! The flags that all commands on devices share.

use clap::Args;

use crate::desk::Targets;

/// The devices, how root is asked for on them, and how the results are printed.
#[derive(Debug, Args)]
pub(super) struct TargetArgs {
    /// These devices, as `adb devices` names them. Default: ANDROID_SERIAL, else the only one
    #[arg(long, short, value_name = "SERIAL", value_delimiter = ',', conflicts_with = "all")]
    serial: Vec<String>,
    /// All devices that are attached, at the same time
    #[arg(long)]
    all: bool,
    /// Have adbd start anew as root first (`adb root`; userdebug and eng builds). It stays root afterwards
    #[arg(long)]
    root: bool,
    /// Print JSON: one object a line, one for each device
    #[arg(long)]
    pub(super) json: bool,
}

impl TargetArgs {
    /// The devices that the flags select.
    pub(super) fn targets(&self) -> Targets {
        Targets { serials: self.serial.clone(), all: self.all, become_root: self.root }
    }
}
