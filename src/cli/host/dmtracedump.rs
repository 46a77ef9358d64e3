//! `dmtracedump`: declares the flags of the old tool, and calls [`crate::profile::dmtracedump::run`]. Here
//! are also the names of old host programs by which the binary can be called: `dmtracedump` and `traceview`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{ArgAction, Parser, ValueEnum};

use super::progress_bar::ProgressBar;
use super::{MemoryArgs, Messages};
use crate::cli::Exit;
use crate::cli::exit::UsageError;
use crate::formats::art_method::{CPU, WALL};
use crate::formats::files_of;
use crate::profile::ProfileOutput;
use crate::profile::dmtracedump::{self, DumpRequest};

/// Profile a method trace as the old dmtracedump did: same text, same numbers
///
/// Unlike the old tool, this command also reads streaming files, versions 4 and 5, gzip, damaged files, and
/// the second clock of a trace with two clocks (--clock wall). It counts exits that match no call on stderr
/// and goes on. The binary under the name dmtracedump, by link or copy, is this command.
#[derive(Parser)]
#[command(disable_help_flag = true)]
pub struct DmtracedumpArgs {
    /// The method trace; or NAME.key, with NAME.data beside it or as the next argument. NAME alone stands for
    /// NAME.trace, or else for NAME.key
    #[arg(required = true, num_args = 1..=2, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// The old tool's comparison, page and picture, which other commands make
    #[arg(short = 'd', hide = true)]
    diff: Option<PathBuf>,
    #[arg(short = 'h', hide = true)]
    html: bool,
    #[arg(short = 'g', hide = true)]
    graph: Option<PathBuf>,
    /// Print every record in file order, times in µs, in place of a profile
    #[arg(short = 'o')]
    dump: bool,
    /// The clock of a trace with two clocks [default: cpu, as in the old tool]
    #[arg(long, value_enum, value_name = "CLOCK")]
    clock: Option<ClockArg>,
    #[command(flatten)]
    memory: MemoryArgs,
    /// Exit with 3 also where irregular records had to be interpreted
    #[arg(long)]
    strict: bool,
    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// A clock of a method trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ClockArg {
    /// Wall time
    Wall,
    /// CPU time of each thread
    Cpu,
}

impl ClockArg {
    /// The clock's index in [`crate::formats::art_method::Ticks`].
    pub(super) fn index(self) -> usize {
        if self == ClockArg::Cpu { CPU } else { WALL }
    }
}

/// Runs the command.
pub fn run(args: DmtracedumpArgs) -> anyhow::Result<Exit> {
    if let Some(instead) = args.other_command() {
        return Err(UsageError::from(instead).into());
    }
    let bar = ProgressBar::of(&args.traces);
    let mut results = super::results(&bar);
    let mut messages = Messages::default();
    let mut message = |file: &str, text: &str| bar.beside_message(|| messages.say(file, text));
    let mut output = ProfileOutput { results: results.as_mut(), message: &mut message };
    let strict = args.strict;
    let report = dmtracedump::run(&args.into_request(), &mut output)?;
    Ok(if report.lossy || strict && report.irregular { Exit::Lossy } else { Exit::Complete })
}

impl DmtracedumpArgs {
    /// The command that makes what one of the old tool's options made.
    fn other_command(&self) -> Option<&'static str> {
        if self.diff.is_some() {
            Some("dmtracedump -d: `tracebridge profile TRACE --against OLD` compares two traces")
        } else if self.html {
            Some(
                "dmtracedump -h: `tracebridge open TRACE` shows a page with the methods, and `tracebridge report TRACE` writes it",
            )
        } else if self.graph.is_some() {
            Some("dmtracedump -g: `tracebridge profile TRACE -o FILE.png` draws the call graph")
        } else {
            None
        }
    }

    fn into_request(self) -> DumpRequest {
        DumpRequest {
            traces: self.traces,
            unpack_limit: self.memory.limit(),
            records: self.dump,
            clock: self.clock.map(ClockArg::index),
        }
    }
}

/// Turns a command line that calls the binary by the name of an old program into tracebridge's own. Another
/// command line stays as it is.
pub fn translate(args: impl Iterator<Item = OsString>) -> Result<Vec<OsString>, &'static str> {
    let mut args: Vec<OsString> = args.collect();
    let name = args.first().and_then(|program| Path::new(program).file_stem()).unwrap_or_default();
    let command = match name.to_str() {
        Some("dmtracedump") => "dmtracedump",
        Some("traceview") => {
            check_traceview(&args[1..])?;
            args[1..].iter_mut().for_each(complete);
            "open"
        }
        _ => return Ok(args),
    };
    args.splice(..1, ["tracebridge".into(), command.into()]);
    Ok(args)
}

/// Completes the name of a trace that was given without its ending.
fn complete(arg: &mut OsString) {
    if let [file] = &files_of(&[PathBuf::from(&*arg)])[..] {
        *arg = file.into();
    }
}

/// Checks the options of traceview, of which it had only one.
fn check_traceview(args: &[OsString]) -> Result<(), &'static str> {
    if args.iter().any(|arg| arg == "-r") {
        Err("traceview's -r only ran its regression test: leave it out to see the trace")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(line: &str) -> Result<String, &'static str> {
        let words = translate(line.split(' ').map(OsString::from))?;
        Ok(words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn the_old_names_become_commands() {
        assert_eq!(
            translated("/opt/dmtracedump -o x.trace"),
            Ok("tracebridge dmtracedump -o x.trace".into())
        );
        assert_eq!(translated("dmtracedump.exe x"), Ok("tracebridge dmtracedump x".into()));
        assert_eq!(translated("traceview x.trace"), Ok("tracebridge open x.trace".into()));
        assert!(translated("traceview -r x.trace").is_err());
        assert_eq!(translated("./tracebridge info dmtracedump"), Ok("./tracebridge info dmtracedump".into()));
    }
}
