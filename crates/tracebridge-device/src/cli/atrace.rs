//! `atrace`: runs the drop-in atrace, as a subcommand or under the program name `atrace`. It parses its own
//! arguments.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use crate::android::use_android_root;
use crate::atrace_command::{self, AtraceDirs};

/// Record as AOSP's atrace does: same options, same output (also under the name atrace, by link or copy)
///
/// `tracebridge atrace --help` shows atrace's own options. Push the binary under the name atrace (`adb push
/// tracebridge /data/local/tmp/atrace`) for tools that call that.
#[derive(Parser)]
#[command(disable_help_flag = true)]
pub struct AtraceArgs {
    /// atrace's options and categories
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _args: Vec<OsString>,
}

/// Runs atrace if the program was called as `atrace` or with the subcommand `atrace`. Returns `None`
/// otherwise.
///
/// The flags `--tracefs`, `--state-dir` and `--android-root` stand before the word `atrace`, because atrace's
/// own command line must stay as it is.
pub fn dispatch() -> Option<ExitCode> {
    let mut args = env::args_os();
    let program = args.next()?;
    let mut dirs = AtraceDirs::default();
    let is_atrace = Path::new(&program).file_name().is_some_and(|name| name == "atrace");
    loop {
        if is_atrace {
            break;
        }
        match args.next()?.to_str()? {
            "atrace" => break,
            "--tracefs" => dirs.tracefs = Some(args.next()?.into()),
            "--state-dir" => dirs.state_dir = Some(args.next()?.into()),
            "--android-root" => use_android_root(args.next()?.into()),
            _ => return None,
        }
    }
    Some(ExitCode::from(atrace_command::run("atrace", &dirs, args)))
}
