//! The drop-in `atrace`: AOSP's command line, output and order of doings, on top of the recorder's seams.
//!
//! Where AOSP's program is at fault and no caller can depend on it, this one is not (Android 16's `atrace.cpp`):
//!
//! | AOSP's atrace | here |
//! | --- | --- |
//! | categories of `-f` never reach the userspace tags | they do |
//! | "unable to start tracing" and every failed dump exit with 0 | exit with 1 |
//! | an unknown category from `-f` ends everything, one from the command line is passed over | both are passed over, with a message |
//! | `app_N` properties stay behind, and `app_number=1` with an empty `app_0` appears without `-a` | everything is as before |
//! | settings end at fixed values (1 KB of buffer, events off), whatever they were | they end as they were, also after a SIGKILL (`tracebridge restore`) |
//! | a short write ends the `-z` stream early | it is written to its end |
//! | `Failed to open 'FILE'` goes to stdout, without a line end, and exits with 0 | to stderr, and exits with 1 |
//! | `parent_ts` passes through a C float: 8 ms off after a day of uptime | every digit |
//! | lost events are not mentioned | stderr tells them per CPU, where stdout's reader cannot mistake them for trace |
//! | reading `trace` asks for write access | for read access only |
//!
//! Not taken over: the vendor HAL (`IAtraceDevice`, deprecated since Android 14's vendor file).

mod getopt;
mod options;
mod output;
mod session;

pub use options::{Options, Parsed, help, parse};

use std::ffi::OsString;
use std::path::PathBuf;

use crate::atrace::categories::{Catalog, DirFiles, Flavour, Support, VENDOR_FILE};
use crate::atrace::{Properties, userspace};
use crate::record::{Tracefs, state_dir};

/// What AOSP's `exit(-1)` arrives as.
const MISUSED: u8 = 255;

/// Runs atrace with the arguments behind its name; hands back the exit status.
///
/// `TRACEBRIDGE_TRACEFS` and `TRACEBRIDGE_STATE_DIR` stand for the flags `--tracefs` and `--state-dir` of the other
/// commands: atrace's own command line has no room for them.
pub fn run(program: &str, args: impl IntoIterator<Item = OsString>) -> u8 {
    let args: Vec<String> = args.into_iter().map(|a| a.to_string_lossy().into_owned()).collect();
    if args == ["--help"] {
        eprint!("{}", help(program));
        return 0;
    }
    let dir = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let Ok(tracefs) = Tracefs::find(dir("TRACEBRIDGE_TRACEFS").as_deref()) else {
        eprintln!("Error: Did not find trace folder\nNo trace folder found");
        return MISUSED;
    };
    let properties = Properties::here();
    let core = properties.as_ref().and_then(|p| userspace::core_services(p).ok()).unwrap_or_default();
    let vendor_file = std::fs::read_to_string(VENDOR_FILE).ok();
    let Ok(catalog) = Catalog::new(vendor_file.as_deref(), &core, Flavour::Atrace) else {
        eprintln!("Malformed vendor categories file");
        return 1;
    };
    let options = match parse(args) {
        Ok(Parsed::Run(options)) => *options,
        Ok(Parsed::Help) => return 0,
        Ok(Parsed::ListCategories) => {
            list(&catalog, &tracefs);
            return 0;
        }
        Err(error) => {
            eprint!("{program}: {error}\n\n{}", help(program));
            return MISUSED;
        }
    };
    let state_dir = dir("TRACEBRIDGE_STATE_DIR").unwrap_or_else(state_dir);
    session::Session { options, tracefs, state_dir, properties, catalog }.run()
}

fn list(catalog: &Catalog, tracefs: &Tracefs) {
    for (category, support) in catalog.builtin(&DirFiles::new(tracefs.root())) {
        if support == Support::Yes {
            println!("  {:>10} - {}", category.name, category.description);
        }
    }
    for category in &catalog.vendor {
        println!("  {:>10} - (VENDOR)", category.name);
    }
}
