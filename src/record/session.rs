//! One trace buffer being read into one output: the head before, the pages, the counts after.

use std::path::{Path, PathBuf};

use super::capture::{Capture, Settled};
use super::drain::{Drain, LaneCount, Upto};
use super::metadata::{self, Names};
use super::output::{Frames, Output};
use super::setup::Applied;
use super::stats::Stats;
use super::summary::{CpuSummary, Summary};
use super::{Error, Settings, Tracefs, clocks, stats};
use crate::clock::Snapshots;
use crate::trace_dat::file_format::option;
use crate::trace_dat::{CpuLoss, DatHead, Metadata, RecorderInfo, Slot};

/// Where a recording goes, and what goes with it.
#[derive(Debug, Clone)]
pub struct Target {
    /// The capture's path; `-` is a stream of frames on stdout.
    pub path: PathBuf,
    /// Ends the recording when it has this many bytes of events.
    pub max_bytes: Option<u64>,
    /// Whether to put `/proc/kallsyms` (several MiB) into it.
    pub kallsyms: bool,
    /// Whether to compress it at the end. Not a stream: that is for the other end.
    pub compress: bool,
}

/// Bytes kept in the head for names of threads that are only known at the end: of the 8192 that the kernel remembers.
const SPARE_NAMES: usize = 192 * 1024;
/// Bytes kept in the head for clock snapshots and new processes.
const SPARE_EXTRA: usize = 64 * 1024;
/// Bytes of a CPU's `stats` in the head.
const STATS_SLOT: usize = 384;

/// A trace buffer being read into an output.
pub(super) struct Session {
    pub tracefs: Tracefs,
    pub drain: Drain,
    pub output: Box<dyn Output>,
    pub snapshots: Snapshots,
    path: PathBuf,
    comms: Slot,
    tgids: Slot,
    stats: Vec<Slot>,
    /// Events of each CPU that were read before this: by an earlier dump.
    read_before: Vec<u64>,
}

impl Session {
    /// Opens every CPU's pipe and begins the output with its head.
    pub fn open(settings: &Settings, applied: &Applied, target: &Target) -> Result<Session, Error> {
        let tracefs = settings.tracefs().clone();
        let layout = metadata::page_layout(&tracefs)?;
        let drain = Drain::open(&tracefs, layout)?;
        let cpus: Vec<u32> = drain.lanes.iter().map(|l| l.count.cpu).collect();
        // The table has an entry for every CPU up to the highest: its place is the CPU's id.
        let table = cpus.last().map_or(0, |last| *last as usize + 1);
        let header = head(&tracefs, applied, target, &cpus)?.v6(&vec![Default::default(); table]);
        let DatHead { comms, ref options, .. } = header;
        let tgids = options.first().copied().unwrap_or_default();
        let slots = options[options.len() - cpus.len()..].to_vec();
        let output: Box<dyn Output> = if target.path == Path::new("-") {
            Box::new(Frames::begin(std::io::stdout(), &header, table, layout.size as usize)?)
        } else {
            // Beyond the size asked for, one look at the buffers may bring as much as all of a buffer.
            let most = target.max_bytes.map(|max| max.saturating_add(4 << 30));
            let parts = target.compress.then(|| header.parts.clone());
            let mut capture = Capture::create(&target.path, header, table, layout.size as usize, most)?;
            if let Some(parts) = parts {
                capture.compress_at_end(parts);
            }
            Box::new(capture)
        };
        let snapshots = clocks::begin(applied.clock);
        let path = target.path.clone();
        let read_before = cpus.iter().map(|cpu| stats::read(&tracefs, *cpu).map_or(0, |s| s.read)).collect();
        Ok(Session { tracefs, drain, output, snapshots, path, comms, tgids, stats: slots, read_before })
    }

    /// Reads the clocks.
    pub fn snapshot(&mut self) {
        clocks::push(&mut self.snapshots, clocks::snapshot(&self.tracefs));
    }

    /// Moves what is in the kernel, partial pages too. Tracing should be off, or this may never end.
    pub fn drain_all(&mut self) -> Result<(), Error> {
        (0..self.drain.lanes.len())
            .try_for_each(|n| self.drain.lane(n, Upto::End, self.output.as_mut()).map(drop))
    }

    /// Asks the kernel what it counted, and lets go of the pipes. Nothing of the kernel is needed after this.
    pub fn count(self) -> Counted {
        let Session { tracefs, drain, output, snapshots, path, comms, tgids, stats: slots, read_before } =
            self;
        let cpus = drain.lanes.iter().zip(slots).zip(read_before);
        let cpus = cpus.map(|((lane, slot), before)| {
            let mut stats = stats::read(&tracefs, lane.count.cpu).unwrap_or_default();
            stats.read = stats.read.saturating_sub(before);
            (lane.count, slot, stats)
        });
        let cpus = cpus.collect();
        Counted { output, snapshots, path, comms, tgids, cpus, names: Names::gather(&tracefs) }
    }
}

/// An output whose buffer is read, with what the kernel says of it.
pub(super) struct Counted {
    output: Box<dyn Output>,
    snapshots: Snapshots,
    path: PathBuf,
    comms: Slot,
    tgids: Slot,
    cpus: Vec<(LaneCount, Slot, Stats)>,
    names: Names,
}

impl Counted {
    /// Ends the output, and puts into the summary what it came to. `hurry`: see [`Output::finish`].
    pub fn into_summary(self, summary: &mut Summary, hurry: &dyn Fn() -> bool) -> Result<(), Error> {
        let Counted { mut output, snapshots, path, comms, tgids, cpus, names } = self;
        for (lane, slot, s) in cpus {
            let text = format!("CPU: {}\n{}\n", lane.cpu, s.text);
            // The slot's last byte stays: it ends the text.
            output.patch(Slot { len: slot.len - 1, ..slot }, text.as_bytes(), b' ')?;
            summary.cpus.push(CpuSummary {
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
        for (slot, text) in [(comms, names.comms()), (tgids, names.tgids())] {
            if !output.patch(slot, &text, b'\n')? {
                let note = "more threads than the head has room for: some are without a name";
                summary.notes.push(note.into());
            }
        }
        let lossy = summary.cpus.iter().filter(|c| summary.streaming && c.lost() > 0);
        let lost =
            lossy.map(|c| CpuLoss { cpu: c.cpu, overrun: c.overrun, dropped: c.dropped + c.commit_overrun });
        let lost = lost.collect();
        let (excerpt, processes) = (!summary.streaming, names.processes);
        let extra = RecorderInfo { excerpt, snapshots, lost, processes, ..RecorderInfo::default() };
        let finished = output.finish(extra, hurry)?;
        summary.output = path;
        summary.bytes = finished.bytes;
        if let Some(why) = finished.raw {
            summary.notes.push(format!("not compressed, but whole: {why}"));
        }
        match finished.settled {
            Settled::Compact => {}
            Settled::Sparse => {
                let note =
                    "the file keeps holes (no room to close them): copy it with a tool that knows holes";
                summary.notes.push(note.into());
            }
            Settled::Gone => {
                let gone = format!("{} was deleted while it was written", summary.output.display());
                summary.error.get_or_insert(gone);
            }
        }
        summary.add_usage();
        Ok(())
    }
}

/// The head, with room for what is only known at the end. The first option is the tgids, the last are the CPUs' stats.
fn head(tracefs: &Tracefs, applied: &Applied, target: &Target, cpus: &[u32]) -> Result<Metadata, Error> {
    let names = Names::gather(tracefs);
    let spare = |mut known: Vec<u8>, padding: u8, spare: usize| {
        let len = known.len() + spare;
        known.reserve_exact(spare);
        known.resize(len, padding);
        known
    };
    let extra =
        RecorderInfo { processes: names.processes.clone(), ..RecorderInfo::default() }.to_json(usize::MAX);
    let text = |text: String| [text.as_bytes(), b"\0"].concat();
    let mut options = vec![
        (option::SAVED_TGIDS, spare(names.tgids(), b'\n', SPARE_NAMES)),
        (option::TRACECLOCK, text(tracefs.read("trace_clock")?)),
        (option::UNAME, text(uname())),
        (option::VERSION, text(concat!("tracebridge ", env!("CARGO_PKG_VERSION")).to_owned())),
        (option::CPUCOUNT, cpus.last().map_or(0, |last| last + 1).to_ne_bytes().to_vec()),
    ];
    options.extend(cpus.iter().map(|_| {
        let mut stat = vec![b' '; STATS_SLOT - 1];
        stat.push(0);
        (option::CPUSTAT, stat)
    }));
    Ok(Metadata {
        comms: spare(names.comms(), b'\n', SPARE_NAMES),
        options,
        extra: spare(extra, b' ', SPARE_EXTRA),
        ..metadata::gather(tracefs, &applied.events, target.kallsyms)?
    })
}

fn uname() -> String {
    let Ok(u) = nix::sys::utsname::uname() else { return String::new() };
    let part = |s: &std::ffi::OsStr| s.to_string_lossy().into_owned();
    [u.sysname(), u.nodename(), u.release(), u.machine()].map(part).join(" ")
}
