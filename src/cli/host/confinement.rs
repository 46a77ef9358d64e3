//! The flag with which the server for assistants confines its own commands.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, builder::ValueParser};

use crate::file_access::{Roots, confine};
use crate::output_file::keep_files;

/// The flag's name on the command line.
const BELOW: &str = "below";

/// The flag, which is in no help: only this program gives it.
pub(super) fn below_flag() -> Arg {
    Arg::new(BELOW)
        .long(BELOW)
        .value_name("DIR")
        .value_parser(ValueParser::path_buf())
        .action(ArgAction::Append)
        .hide(true)
        .global(true)
        .help("Open files below these directories alone, and replace none")
}

/// The directories that the flag names.
pub(super) fn directories(matches: &ArgMatches) -> Vec<PathBuf> {
    matches.get_many(BELOW).into_iter().flatten().cloned().collect()
}

/// Confines the process to these directories, if there are any: no other file is opened, and no output takes
/// the place of anything.
///
/// # Errors
/// A path that is no directory.
pub(super) fn start(directories: &[PathBuf]) -> anyhow::Result<()> {
    if !directories.is_empty() {
        confine(Roots::new(directories)?);
        keep_files();
    }
    Ok(())
}
