//! The drop-in `atrace`: AOSP's command line, output and order of doings, on top of the recorder's seams.
//!
#![doc = include_str!("../../docs/atrace.md")]

mod functions;
mod getopt;
mod options;
mod output;
mod session;

pub use options::{Options, Parsed, help, parse};

use std::ffi::OsString;
use std::path::PathBuf;

use crate::android::{Properties, atrace_properties};
use crate::categories::{Catalog, DirFiles, Flavour, PDX, Support, VENDOR_FILE};
use crate::console::{complain, say};
use crate::record::{Tracefs, state_dir};

/// What AOSP's `exit(-1)` arrives as.
const MISUSED: u8 = 255;
/// Android 15.
const LAST_SDK_WITH_PDX: u32 = 35;

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
        complain(format_args!("Error: Did not find trace folder\nNo trace folder found"));
        return MISUSED;
    };
    let properties = Properties::here();
    let core = properties.as_ref().and_then(|p| atrace_properties::core_services(p).ok()).unwrap_or_default();
    let vendor_file = std::fs::read_to_string(VENDOR_FILE).ok();
    let Ok(catalog) = Catalog::new(vendor_file.as_deref(), &core, Flavour::Atrace) else {
        complain(format_args!("Malformed vendor categories file"));
        return 1;
    };
    let options = match parse(args) {
        Ok(Parsed::Run(options)) => *options,
        Ok(Parsed::Help) => return 0,
        Ok(Parsed::ListCategories) => {
            list(&catalog, &tracefs, properties.and_then(|p| p.sdk()));
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

fn list(catalog: &Catalog, tracefs: &Tracefs, sdk: Option<u32>) {
    for (category, support) in catalog.builtin(&DirFiles::new(tracefs.root())) {
        let of_its_time = category.name != PDX || sdk.is_some_and(|sdk| sdk <= LAST_SDK_WITH_PDX);
        if support == Support::Yes && of_its_time {
            say(format_args!("  {:>10} - {}\n", category.name, category.description));
        }
    }
    for category in &catalog.vendor {
        say(format_args!("  {:>10} - (VENDOR)\n", category.name));
    }
}
