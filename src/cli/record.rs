//! `record`: the kernel's trace to a capture.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;

use super::{Exit, units};
use crate::record::events::{self, Wanted};
use crate::record::recorder::{self, Config};
use crate::record::setup::{Setup, WhenFull};
use crate::record::{Leftover, Settings, Signals, Tracefs, state_dir};

/// Record the kernel's trace events (and the apps' atrace markers) to a trace.dat.
///
/// The kernel's settings are saved before and put back after, whatever ends the recording; after a SIGKILL,
/// `tracebridge restore` does it. Exit status 3: the capture is there, but events were lost (the summary says how many).
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// What to record: a category (sched, freq, idle), GROUP/EVENT, GROUP/*, each with an optional :FILTER in the
    /// kernel's language (sched/sched_switch:prev_pid==1).
    #[arg(required = true, value_name = "WHAT")]
    what: Vec<String>,
    /// Where the capture goes.
    #[arg(short, long, value_name = "FILE", default_value = "trace.dat")]
    output: PathBuf,
    /// Stop after this long (500ms, 5, 5s, 2m; a bare number is seconds). Without it: until SIGINT or SIGTERM.
    #[arg(short = 't', long, value_name = "TIME", value_parser = units::duration)]
    time: Option<Duration>,
    /// Stop when the capture holds this much (bytes, or with k, m, g).
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    max_size: Option<u64>,
    /// The kernel's buffer, KiB for each CPU.
    #[arg(short, long, value_name = "KIB", default_value_t = 4096, value_parser = clap::value_parser!(u64).range(1..=4_194_304))]
    buffer: u64,
    /// What stamps the events: one of tracefs' trace_clock. Default: boot, else mono, else global.
    #[arg(long, value_name = "CLOCK")]
    clock: Option<String>,
    /// Include /proc/kallsyms (several MiB), for events that print kernel addresses.
    #[arg(long)]
    kallsyms: bool,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    kernel: Kernel,
}

/// Which kernel settings to use, and where their saved values are kept.
#[derive(Debug, ClapArgs)]
pub struct Kernel {
    /// The directory of tracefs. Default: /sys/kernel/tracing, else /sys/kernel/debug/tracing.
    #[arg(long, value_name = "DIR")]
    pub tracefs: Option<PathBuf>,
    /// Where the kernel's saved settings are kept for `restore`. Default: the first writable of /data/local/tmp, /run, /tmp.
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

impl Kernel {
    /// The trace buffer asked for.
    pub fn tracefs(&self) -> anyhow::Result<Tracefs> {
        Ok(Tracefs::find(self.tracefs.as_deref())?)
    }

    /// The directory of saved settings asked for.
    pub fn state_dir(&self) -> PathBuf {
        self.state_dir.clone().unwrap_or_else(state_dir)
    }

    /// The guard of the trace buffer's settings, after anything a killed recorder left is put back.
    pub fn settings(&self, tracefs: &Tracefs) -> anyhow::Result<Settings> {
        let (settings, leftover) = Settings::begin(tracefs, &self.state_dir(), false)?;
        if let Leftover::PutBack(knobs) = leftover {
            eprintln!("tracebridge: put back {knobs} settings that a killed recorder had left");
        }
        Ok(settings)
    }
}

/// Records.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let tracefs = args.kernel.tracefs()?;
    let events = wanted(&tracefs, &args.what)?;
    let config = Config {
        setup: Setup {
            events,
            clock: args.clock.clone(),
            buffer_kb: args.buffer,
            when_full: WhenFull::Overwrite,
        },
        output: args.output.clone(),
        duration: args.time,
        max_bytes: args.max_size,
        kallsyms: args.kallsyms,
        stream: true,
    };
    // Before anything is changed: a signal from here on ends the recording in order.
    let signals = Signals::block()?;
    let settings = args.kernel.settings(&tracefs)?;
    let summary = recorder::record(&config, settings, &signals)?;
    if args.json {
        println!("{}", serde_json::to_string(&summary)?);
    } else {
        print!("{}", summary.text());
    }
    Ok(if summary.is_lossy() { Exit::Lossy } else { Exit::Complete })
}

/// The events behind all that was named.
fn wanted(tracefs: &Tracefs, what: &[String]) -> anyhow::Result<Vec<Wanted>> {
    let mut out = Vec::new();
    for spec in what {
        let specs: Vec<&str> = match spec.as_str() {
            "sched" => vec!["sched/sched_switch", "sched/sched_wakeup", "sched/sched_waking"],
            "freq" => vec!["power/cpu_frequency"],
            "idle" => vec!["power/cpu_idle"],
            other => vec![other],
        };
        for spec in specs {
            out.extend(events::expand(tracefs, spec)?);
        }
    }
    Ok(out)
}
