//! `adb clean`: leaves a device as if tracebridge had never been there.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::outcome::{self, Outcome};
use super::target::TargetArgs;
use crate::cli::Exit;
use crate::remote::{Device, Privilege, REMOTE_PATH, Session};

/// How long the device may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// End what tracebridge has left running on a device, put the kernel's settings back, and remove its files
///
/// While recordings are there that nobody has fetched, nothing is done: `tracebridge adb pull --resume`
/// fetches them.
#[derive(Debug, Args)]
pub struct CleanArgs {
    /// Remove recordings, too, that nobody has fetched
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    target: TargetArgs,
}

/// Runs `adb clean`.
pub fn run(args: &CleanArgs) -> anyhow::Result<Exit> {
    let results = args.target.on_each(|device, _| clean(&device, args.force))?;
    outcome::print(results, args.target.json)
}

fn clean(device: &Device, removes_recordings: bool) -> anyhow::Result<Outcome> {
    let sessions = Session::list(device)?;
    if !sessions.is_empty() && !removes_recordings {
        let ids = sessions.iter().map(|state| format!("{} ({})", state.session.id(), state.output));
        anyhow::bail!(
            "{}: nobody has fetched {} recording{}: {}. Fetch with `tracebridge adb pull --resume`, or remove with \
             `tracebridge adb clean --force`",
            device.serial(),
            sessions.len(),
            if sessions.len() == 1 { "" } else { "s" },
            ids.collect::<Vec<_>>().join(", ")
        );
    }
    sessions.iter().for_each(|state| state.session.abandon());
    let (mut text, mut exit) = (String::new(), Exit::Complete);
    if !sessions.is_empty() {
        let plural = if sessions.len() == 1 { "" } else { "s" };
        text += &format!("{} recording{plural} removed\n", sessions.len());
    }
    // Each user has saved settings of its own. What root has left, root puts back.
    let users = if device.privilege().is_root() {
        vec![device.privilege(), Privilege::Shell]
    } else {
        vec![Privilege::Shell]
    };
    for user in users {
        let output = device.run_script(&script(), user, PATIENCE)?;
        text += &output.text();
        if output.status != 0 {
            exit = Exit::Lossy;
            text += &format!("{}\n", output.words());
        }
    }
    if text.is_empty() {
        text = "nothing to remove\n".to_owned();
    }
    Ok(Outcome { exit, json: json!({ "recordings": sessions.len(), "text": text.trim() }), text })
}

/// Ends every process of the binary, has the settings put back, and removes the files, as one user.
fn script() -> String {
    format!(
        "n=0; for e in /proc/[0-9]*/exe; do case $(readlink $e 2>/dev/null) in {REMOTE_PATH}*) \
         p=${{e%/exe}}; kill -TERM ${{p#/proc/}} 2>/dev/null && n=$((n+1));; esac; done; \
         if [ $n != 0 ]; then echo \"$n processes ended\"; sleep 2; fi; s=0; \
         if [ -x {REMOTE_PATH} ]; then r=$({REMOTE_PATH} restore --flight 2>&1) || s=$?; \
         case $r in nothing*) ;; *) echo \"$r\";; esac; fi; \
         if [ $s = 0 ] && [ -e {REMOTE_PATH} ]; then echo 'removed: {REMOTE_PATH}'; fi; \
         [ $s = 0 ] && rm -rf /data/local/tmp/tracebridge.d /data/local/tmp/tracebridge.*.part {REMOTE_PATH} 2>/dev/null; \
         rmdir /data/local/tmp/tracebridge-* 2>/dev/null; exit $s"
    )
}
