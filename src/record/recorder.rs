//! A recording from start to end: settings, capture, the loop that moves pages, the final counts.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::capture::{Capture, Settled};
use super::drain::{Drain, PageSink};
use super::metadata::{self, Names, PageLayout};
use super::setup::{self, Applied, Setup};
use super::signals::Signals;
use super::summary::{CpuSummary, Summary};
use super::{Error, Settings, clocks, stats};
use crate::clock::Snapshots;
use crate::formats::trace_dat::layout::option;
use crate::formats::trace_dat::{CpuData, CpuLoss, Extra, Header, Metadata, Slot};

/// What to record, and until when.
#[derive(Debug, Clone)]
pub struct Config {
    /// What the kernel is to be set to.
    pub setup: Setup,
    /// Where the capture goes.
    pub output: PathBuf,
    /// Ends after this long; otherwise on a signal.
    pub duration: Option<Duration>,
    /// Ends when the capture has this many bytes of events.
    pub max_bytes: Option<u64>,
    /// Whether to put `/proc/kallsyms` (several MiB) into the capture.
    pub kallsyms: bool,
    /// Whether pages are moved while they fill; otherwise only at the end.
    pub stream: bool,
}

/// Bytes kept in the head for what is only known at the end, beyond what is known at the start.
const SPARE: usize = 64 * 1024;
/// Bytes of a CPU's `stats` in the head.
const STATS_SLOT: usize = 384;
/// The longest time between two looks at the buffers: what a SIGKILL loses at most, beside what is in the kernel.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Time between two clock snapshots.
const SNAPSHOT_EVERY: Duration = Duration::from_secs(5);
/// Wake-ups in a row that found a nearly empty buffer: then this kernel does not know watermarks for raw pipes
/// (before 6.1 and some 5.x), and the clock decides.
const FALSE_WAKEUPS: u32 = 16;
/// Events a CPU is taken to write at most when only the clock decides when to look, bytes a second.
const FASTEST: u64 = 200_000_000;

/// A capture's head while it is recorded: where what goes.
struct Head {
    comms: Slot,
    tgids: Slot,
    stats: Vec<Slot>,
}

impl PageSink for Capture {
    fn pages(&mut self, cpu: u32, pages: &[u8]) -> Result<(), Error> {
        self.append(cpu as usize, pages)
    }
}

/// Records as `config` says. `settings` is the guard of the trace buffer; it is used up: whatever happens, the
/// kernel is as it was before when this returns.
pub fn record(config: &Config, mut settings: Settings, signals: &Signals) -> Result<Summary, Error> {
    let applied = setup::apply(&mut settings, &config.setup)?;
    let tracefs = settings.tracefs().clone();
    let layout = metadata::page_layout(&tracefs)?;
    let mut drain = Drain::open(&tracefs, layout)?;
    let cpus: Vec<u32> = drain.lanes.iter().map(|l| l.cpu).collect();
    let (capture, head) = create(config, &applied, &settings, layout, &cpus)?;
    let mut run = Run {
        config,
        settings: &settings,
        signals,
        capture,
        snapshots: clocks::begin(applied.clock),
        watermark: applied.watermark.is_some(),
        false_wakeups: 0,
    };
    run.snapshot();
    setup::start(&settings)?;
    let started = Instant::now();
    let mut summary = Summary {
        output: config.output.clone(),
        clock: applied.clock.name().to_owned(),
        notes: applied.notes,
        ..Summary::default()
    };
    let mut ended = run.until_the_end(&mut drain, started);
    let stopped = setup::stop(&settings);
    summary.seconds = started.elapsed().as_secs_f64();
    run.snapshot();
    // What is still in the kernel, partial pages too; not where the output takes no more.
    if ended.is_ok() {
        let rest = (0..drain.lanes.len()).try_for_each(|n| drain.lane(n, true, &mut run.capture).map(drop));
        if let Err(error) = rest {
            ended = Err(error);
        }
    }
    match ended {
        Ok(reason) => summary.ended_by = reason,
        Err(error) => {
            summary.ended_by = "an error".into();
            summary.error = Some(error.to_string());
        }
    }
    if let Err(error) = stopped {
        summary.notes.push(error.to_string());
    }
    let Run { capture, snapshots, .. } = run;
    summary.cpus = count(&drain, &settings, &capture, &head);
    let names = Names::gather(&tracefs);
    if let Err(error) = settings.restore() {
        summary.notes.push(format!("{error}; try `tracebridge restore`"));
    }
    for (slot, text) in [(head.comms, names.comms()), (head.tgids, names.tgids())] {
        if !capture.patch(slot, &text, b'\n')? {
            summary.notes.push("more threads than the head has room for: some are without a name".into());
        }
    }
    let extra =
        Extra { snapshots, lost: losses(&summary.cpus), processes: names.processes, ..Extra::default() };
    let (bytes, settled) = capture.finish(extra)?;
    summary.bytes = bytes;
    if settled == Settled::Sparse {
        let note = "the file keeps holes (no room to close them): copy it with a tool that knows holes";
        summary.notes.push(note.into());
    }
    usage(&mut summary);
    Ok(summary)
}

fn create(
    config: &Config,
    applied: &Applied,
    settings: &Settings,
    layout: PageLayout,
    cpus: &[u32],
) -> Result<(Capture, Head), Error> {
    let tracefs = settings.tracefs();
    let names = Names::gather(tracefs);
    let spare = |known: Vec<u8>, padding: u8| {
        let len = known.len() * 3 / 2 + SPARE;
        Slot { at: 0, len }.fit(&known, padding).0
    };
    let extra = Extra { processes: names.processes.clone(), ..Extra::default() };
    let extra = serde_json::to_vec(&extra).map_err(|e| Error::output(&config.output, e.into()))?;
    let text = |text: String| [text.as_bytes(), b"\0"].concat();
    let mut options = vec![
        (option::SAVED_TGIDS, spare(names.tgids(), b'\n')),
        (option::TRACECLOCK, text(tracefs.read("trace_clock")?)),
        (option::UNAME, text(uname())),
        (option::VERSION, text(concat!("tracebridge ", env!("CARGO_PKG_VERSION")).to_owned())),
        (option::CPUCOUNT, (cpus.last().map_or(0, |last| last + 1)).to_ne_bytes().to_vec()),
    ];
    options.extend(cpus.iter().map(|_| (option::CPUSTAT, vec![b' '; STATS_SLOT])));
    let head = Metadata {
        comms: spare(names.comms(), b'\n'),
        options,
        extra: spare(extra, b' '),
        ..metadata::gather(tracefs, &applied.events, config.kallsyms)?
    };
    // The table has an entry for every CPU up to the highest: its place is the CPU's id.
    let table = cpus.last().map_or(0, |last| *last as usize + 1);
    let most = config.max_bytes.map(|max| max + config.setup.buffer_kb * 1024 * 2);
    let build = |regions: &[CpuData]| head.v6(regions);
    let Header { comms, options, .. } = build(&vec![CpuData::default(); table]);
    let capture = Capture::create(&config.output, table, layout.page_size, most, build)?;
    let tgids = options.first().copied().unwrap_or_default();
    let stats = options[options.len() - cpus.len()..].to_vec();
    Ok((capture, Head { comms, tgids, stats }))
}

struct Run<'a> {
    config: &'a Config,
    settings: &'a Settings,
    signals: &'a Signals,
    capture: Capture,
    snapshots: Snapshots,
    watermark: bool,
    false_wakeups: u32,
}

impl Run<'_> {
    fn snapshot(&mut self) {
        clocks::push(&mut self.snapshots, clocks::snapshot(self.settings.tracefs()));
    }

    /// Moves pages until something ends the recording; says what did.
    fn until_the_end(&mut self, drain: &mut Drain, started: Instant) -> Result<String, Error> {
        let mut next_snapshot = Instant::now() + SNAPSHOT_EVERY;
        let by_clock =
            Duration::from_millis((self.config.setup.buffer_kb * 1024 * 500 / FASTEST).clamp(5, 250));
        let deadline = self.config.duration.map(|d| started + d);
        loop {
            let longest = if self.watermark { LONGEST_WAIT } else { by_clock };
            let left = deadline.map_or(LONGEST_WAIT, |d| d.saturating_duration_since(Instant::now()));
            let ready = self.wait(drain, left.min(if self.config.stream { longest } else { LONGEST_WAIT }));
            if let Some(signal) = self.signals.take() {
                return Ok(format!("signal {signal}"));
            }
            if self.config.stream {
                self.drain(drain, &ready)?;
            }
            if self.config.max_bytes.is_some_and(|max| self.capture.data_bytes() >= max) {
                return Ok("size".into());
            }
            let now = Instant::now();
            if deadline.is_some_and(|d| now >= d) {
                return Ok("time".into());
            }
            if now >= next_snapshot {
                next_snapshot = now + SNAPSHOT_EVERY;
                self.snapshot();
                let extra = Extra { snapshots: self.snapshots.clone(), ..Extra::default() };
                self.capture.put_extra(&extra)?;
            }
        }
    }

    /// Sleeps until a buffer is filled to its watermark, a signal comes or `longest` is over. Returns the lanes to
    /// look at: those that are ready, or all when the time is over.
    fn wait(&self, drain: &Drain, longest: Duration) -> Vec<usize> {
        let mut fds = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        if self.watermark && self.config.stream {
            fds.extend(drain.lanes.iter().map(|l| PollFd::new(l.pipe.as_fd(), PollFlags::POLLIN)));
        }
        // Rounded up, or the last millisecond would be spent asking again and again.
        let timeout = PollTimeout::try_from(longest + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX);
        match poll(&mut fds, timeout) {
            Ok(0) | Err(_) => (0..drain.lanes.len()).collect(),
            Ok(_) => (0..fds.len() - 1).filter(|n| fds[n + 1].any() == Some(true)).collect(),
        }
    }

    fn drain(&mut self, drain: &mut Drain, ready: &[usize]) -> Result<(), Error> {
        let all = ready.len() == drain.lanes.len();
        let mut moved = 0;
        for lane in ready {
            moved += drain.lane(*lane, false, &mut self.capture)?;
        }
        if self.watermark && !all {
            // A true wake-up finds a good part of a buffer.
            let little = moved < self.config.setup.buffer_kb * 1024 / 8;
            self.false_wakeups = if little { self.false_wakeups + 1 } else { 0 };
            self.watermark = self.false_wakeups < FALSE_WAKEUPS;
        }
        Ok(())
    }
}

/// The kernel's counts, put into the capture's head too.
fn count(drain: &Drain, settings: &Settings, capture: &Capture, head: &Head) -> Vec<CpuSummary> {
    let mut out = Vec::new();
    for (lane, slot) in drain.lanes.iter().zip(&head.stats) {
        let s = stats::read(settings.tracefs(), lane.cpu).unwrap_or_default();
        let text = format!("CPU: {}\n{}\n", lane.cpu, s.text);
        let _ = capture.patch(Slot { len: slot.len - 1, ..*slot }, text.as_bytes(), b' ');
        out.push(CpuSummary {
            cpu: lane.cpu,
            events: s.read,
            bytes: lane.bytes,
            overrun: s.overrun,
            dropped: s.dropped,
            commit_overrun: s.commit_overrun,
            gaps: lane.gaps,
            missed: lane.missed,
            left: s.entries,
        });
    }
    out
}

fn losses(cpus: &[CpuSummary]) -> Vec<CpuLoss> {
    let lossy = cpus.iter().filter(|c| c.lost() > 0);
    lossy.map(|c| CpuLoss { cpu: c.cpu, overrun: c.overrun, dropped: c.dropped + c.commit_overrun }).collect()
}

fn uname() -> String {
    let Ok(u) = nix::sys::utsname::uname() else { return String::new() };
    let part = |s: &std::ffi::OsStr| s.to_string_lossy().into_owned();
    [u.sysname(), u.nodename(), u.release(), u.machine()].map(part).join(" ")
}

fn usage(summary: &mut Summary) {
    use nix::sys::resource::{UsageWho, getrusage};
    if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
        let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
        summary.cpu_seconds = seconds(usage.user_time()) + seconds(usage.system_time());
        summary.peak_rss_kb = usage.max_rss() as u64;
    }
}
