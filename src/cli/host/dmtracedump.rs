//! `dmtracedump`: the old tool's command line, on top of the profiler.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::{ArgAction, Parser, ValueEnum};

use super::method_input;
use crate::cli::Exit;
use crate::profile::dmtracedump::{self, Dump, DumpOptions};
use crate::profile::dot;
use crate::profile::drive::{CPU, WALL};

/// Profile a method trace as the old dmtracedump did: same options, same layout, same numbers
///
/// Unlike the old tool it also reads streaming files, versions 4 and 5, gzip, damaged files, and the second clock of a
/// dual trace (--clock wall). Exits that match nothing are counted on stderr; they do not end the program.
#[derive(Parser)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// The method trace; or NAME.key, with NAME.data beside it or named behind it
    #[arg(required = true, num_args = 1..=2, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Compare with this trace: it is run 1, the other one run 2
    #[arg(short = 'd', value_name = "TRACE")]
    diff: Option<PathBuf>,
    /// Write HTML
    #[arg(short = 'h')]
    html: bool,
    /// Draw the call graph into this PNG file (needs Graphviz)
    #[arg(short = 'g', value_name = "FILE")]
    graph: Option<PathBuf>,
    /// With -g: keep the graph's source beside it, as FILE.dot
    #[arg(short = 'k')]
    keep: bool,
    /// List every record in file order, times in µs, in place of a profile
    #[arg(short = 'o')]
    dump: bool,
    /// Taken for compatibility: where the HTML page had its sorting script from; the page brings its own now
    #[arg(short = 's', value_name = "URL")]
    sortable: Option<String>,
    /// With -g: draw methods with at least this share of their caller's inclusive time, percent, 0 to 99
    #[arg(short = 't', value_name = "PERCENT", default_value_t = dot::DEFAULT_THRESHOLD, value_parser = clap::value_parser!(u64).range(0..100))]
    threshold: u64,
    /// Which clock of a dual trace; without it thread-CPU time, as the old tool
    #[arg(long, value_enum, value_name = "CLOCK")]
    clock: Option<ClockArg>,
    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// A clock of a method trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClockArg {
    /// Wall time
    Wall,
    /// CPU time of each thread
    Cpu,
}

impl ClockArg {
    /// Its place in [`crate::profile::machine::Ticks`].
    pub fn place(self) -> usize {
        if self == ClockArg::Cpu { CPU } else { WALL }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let inputs = method_input::open_all(&args.traces)?;
    let [input] = &inputs[..] else { anyhow::bail!("one trace at a time; -d OTHER compares two") };
    let trace = method_input::parse(input)?;
    let mut damaged = method_input::tell(input, trace.report());
    let clock = args.clock.map_or(dmtracedump::default_clock(&trace), ClockArg::place);
    let options = DumpOptions { clock, html: args.html };
    let mut out = BufWriter::new(std::io::stdout().lock());
    if args.dump {
        dmtracedump::write_records(&trace, options, &mut out)?;
        out.flush()?;
        return Ok(if damaged { Exit::Lossy } else { Exit::Complete });
    }
    let dump = Dump::of(&trace, options);
    damaged |= method_input::tell_problems(input, &dump.problems);
    match &args.diff {
        Some(path) => {
            let input = method_input::open(path)?;
            let trace = method_input::parse(&input)?;
            damaged |= method_input::tell(&input, trace.report());
            let before = Dump::of(&trace, options);
            damaged |= method_input::tell_problems(&input, &before.problems);
            match args.html {
                true => dmtracedump::write_html_diff(&before, &dump, &mut out)?,
                false => dmtracedump::write_diff(&before, &dump, &mut out)?,
            }
        }
        None if args.html => dmtracedump::write_html(&dump, &mut out)?,
        None => dmtracedump::write_text(&dump, &mut out)?,
    }
    out.flush()?;
    if let Some(path) = &args.graph {
        let mut graph = Vec::new();
        dot::write_dot(&dump, args.threshold, &mut graph)?;
        if args.keep {
            let mut kept = path.clone().into_os_string();
            kept.push(".dot");
            std::fs::write(&kept, &graph).with_context(|| PathBuf::from(&kept).display().to_string())?;
        }
        dot::draw(&graph, dot::Picture::Png, path).with_context(|| path.display().to_string())?;
    }
    Ok(if damaged { Exit::Lossy } else { Exit::Complete })
}
