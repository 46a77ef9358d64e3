//! `adb live`: shows recordings on devices in the browser while they run.

use clap::Args;

use super::TargetArgs;
use super::forwarded::{Forwarded, GivenFlag, device_args, name_args};
use super::results::print;
use crate::cli::Exit;
use crate::cli::host::interrupt;
use crate::cli::host::live::LivePageArgs;
use crate::cli::host::terminal::TERMINAL;
use crate::cli::recording_flags::{RecordSelection, SchedulingArgs};
use crate::cli::units;
use crate::desk;
use crate::desk::live::LiveRequest;

/// The categories that are recorded if nothing is named, as far as the device has them.
const LIVE_CATEGORIES: [&str; 8] = ["sched", "freq", "am", "wm", "view", "gfx", "input", "binder_driver"];

/// Show what devices do in the browser, while they do it
///
/// Records as `adb record --stream` does, and opens a page that shows the last seconds: CPUs, the app's
/// threads, its frames and launches. Space stops the picture, not the recording. The page writes markers, and
/// saves what is kept. Ctrl-C ends the recording, and the settings of the device are put back, as they are
/// where the connection is lost.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 complete, 1 failed, 2 usage, 3 events were lost, or the connection was. Of several devices, which have a page
each, the worst counts.

  tracebridge adb live -a com.example.app
  tracebridge adb live sched gfx view -a com.example.app --until 'frame.overrun > 50ms' --output-dir found")]
pub struct LiveArgs {
    #[command(flatten)]
    selection: Forwarded<RecordSelection>,
    /// End after this time (30, 5m). Without it: on Ctrl-C, or when a page ends it
    #[arg(short = 't', long, value_name = "TIME", value_parser = units::duration)]
    time: Option<std::time::Duration>,
    #[command(flatten)]
    page: LivePageArgs,
    #[command(flatten)]
    scheduling: Forwarded<SchedulingArgs>,
    #[command(flatten)]
    target: TargetArgs,
}

/// Runs `adb live`.
pub fn run(args: &LiveArgs) -> anyhow::Result<Exit> {
    let request = args.request()?;
    interrupt::hold_first();
    let show = |serial: &str, address: &str| args.page.show(serial, address);
    print(desk::live::live(&request, &args.target.targets(), &TERMINAL, &show), args.target.json)
}

impl LiveArgs {
    fn request(&self) -> anyhow::Result<LiveRequest> {
        let mut names = self.selection.flags.all_names()?;
        let given: Vec<&GivenFlag> = self.selection.given().chain(self.scheduling.given()).collect();
        let mut flags = device_args(given.into_iter());
        if names.is_empty() && self.selection.flags.functions.is_empty() {
            names = LIVE_CATEGORIES.map(str::to_owned).to_vec();
            flags.push("--lenient".to_owned());
        }
        let args = [flags, name_args(&names)].concat();
        let app = self.selection.flags.apps.first().filter(|app| !app.contains('*')).cloned();
        Ok(LiveRequest { args, names, duration: self.time, app, ..self.page.request() })
    }
}
