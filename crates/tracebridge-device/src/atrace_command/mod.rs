//! The drop-in `atrace`: the command line, the output and the order of steps of AOSP's atrace, built on the
//! recorder. docs/atrace.md says what it does as AOSP's atrace does, and what differently.

pub mod options;
mod output;
mod session;

use options::{AtraceOptions, ParsedCommandLine, help, parse};

use std::ffi::OsString;
use std::path::PathBuf;

use crate::android::Properties;
use crate::categories::{Catalog, EventSet, PDX, Support, VENDOR_FILE};
use crate::console::{complain, say};
use crate::record::Tracefs;
use crate::record::events::{TracefsEventFiles, load_catalog};

/// The exit status that AOSP's `exit(-1)` arrives as.
const EXIT_USAGE: u8 = 255;
/// Android 15, the last release with the category `pdx`.
const LAST_SDK_WITH_PDX: u32 = 35;

/// The directories of a run of atrace, where they are not the usual ones.
#[derive(Debug, Default)]
pub struct AtraceDirs {
    /// The directory of tracefs.
    pub tracefs: Option<PathBuf>,
    /// The directory of the saved settings.
    pub state_dir: Option<PathBuf>,
}

/// Runs atrace with the arguments behind the program's name. Returns the exit status.
pub fn run(program: &str, dirs: &AtraceDirs, args: impl IntoIterator<Item = OsString>) -> u8 {
    let args: Vec<String> = args.into_iter().map(|a| a.to_string_lossy().into_owned()).collect();
    if args == ["--help"] {
        complain(format_args!("{}", help(program).trim_end()));
        return 0;
    }
    let Ok(tracefs) = Tracefs::find(dirs.tracefs.as_deref()) else {
        complain(format_args!("Error: Did not find trace folder\nNo trace folder found"));
        return EXIT_USAGE;
    };
    let properties = Properties::find();
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
    let state_dir = dirs.state_dir.clone();
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
