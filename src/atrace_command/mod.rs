//! The drop-in `atrace`: the command line, the output and the order of steps of AOSP's atrace, built on the
//! recorder.
//!
#![doc = include_str!("../../docs/atrace.md")]

mod functions;
mod getopt;
mod options;
mod output;
mod session;

use options::{AtraceOptions, ParsedCommandLine, help, parse};

use std::ffi::OsString;
use std::path::PathBuf;

use crate::android::system::Properties;
use crate::categories::{Catalog, EventSet, PDX, Support, TracefsEventFiles, VENDOR_FILE};
use crate::console::{complain, say};
use crate::record::Tracefs;
use crate::record::event_selection::load_catalog;
use crate::record::saved_settings::state_dir;

/// The exit status that AOSP's `exit(-1)` arrives as.
const EXIT_USAGE: u8 = 255;
/// Android 15, the last release with the category `pdx`.
const LAST_SDK_WITH_PDX: u32 = 35;

/// Runs atrace with the arguments behind the program's name. Returns the exit status.
///
/// The environment variables `TRACEBRIDGE_TRACEFS` and `TRACEBRIDGE_STATE_DIR` replace the flags `--tracefs`
/// and `--state-dir` of the other commands, because atrace's own command line must stay as it is.
pub fn run(program: &str, args: impl IntoIterator<Item = OsString>) -> u8 {
    let args: Vec<String> = args.into_iter().map(|a| a.to_string_lossy().into_owned()).collect();
    if args == ["--help"] {
        complain(format_args!("{}", help(program).trim_end()));
        return 0;
    }
    let dir = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let Ok(tracefs) = Tracefs::find(dir("TRACEBRIDGE_TRACEFS").as_deref()) else {
        complain(format_args!("Error: Did not find trace folder\nNo trace folder found"));
        return EXIT_USAGE;
    };
    let properties = Properties::here();
    let Ok(catalog) = load_catalog(Some(VENDOR_FILE.as_ref()), properties.as_ref(), EventSet::Atrace) else {
        complain(format_args!("Malformed vendor categories file"));
        return 1;
    };
    let options = match parse(args) {
        Ok(ParsedCommandLine::Run(options)) => *options,
        Ok(ParsedCommandLine::Help) => return 0,
        Ok(ParsedCommandLine::ListCategories) => {
            list(&catalog, &tracefs, properties.and_then(|p| p.sdk()));
            return 0;
        }
        Err(error) => {
            complain(format_args!("{program}: {error}\n\n{}", help(program).trim_end()));
            return EXIT_USAGE;
        }
    };
    let state_dir = dir("TRACEBRIDGE_STATE_DIR").unwrap_or_else(state_dir);
    session::AtraceSession { options, tracefs, state_dir, properties, catalog }.run()
}

fn list(catalog: &Catalog, tracefs: &Tracefs, sdk: Option<u32>) {
    for (category, support) in catalog.builtin(&TracefsEventFiles::new(tracefs.root())) {
        let of_its_time = category.name != PDX || sdk.is_some_and(|sdk| sdk <= LAST_SDK_WITH_PDX);
        if support == Support::Yes && of_its_time {
            say(format_args!("  {:>10} - {}\n", category.name, category.description));
        }
    }
    for category in &catalog.vendor {
        say(format_args!("  {:>10} - (VENDOR)\n", category.name));
    }
}
