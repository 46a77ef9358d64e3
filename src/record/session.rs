//! One trace buffer being read into one output: the head before, the pages, the counts after.

use std::path::{Path, PathBuf};

use super::capture::{Capture, Settled};
use super::drain::{Drain, Upto};
use super::metadata::{self, Names};
use super::output::{Frames, Output};
use super::setup::Applied;
use super::stats::Stats;
use super::summary::{CpuSummary, Summary};
use super::{Error, Settings, Tracefs, clocks, stats};
use crate::clock::Snapshots;
use crate::formats::trace_dat::layout::option;
use crate::formats::trace_dat::{CpuLoss, Extra, Header, Metadata, Slot};

/// Where a recording goes, and what goes with it.
#[derive(Debug, Clone)]
pub struct Target {
    /// The capture's path; `-` is a stream of frames on stdout.
    pub path: PathBuf,
    /// Ends the recording when it has this many bytes of events.
    pub max_bytes: Option<u64>,
    /// Whether to put `/proc/kallsyms` (several MiB) into it.
    pub kallsyms: bool,
}

/// Bytes kept in the head for what is only known at the end, beyond what is known at the start.
const SPARE: usize = 64 * 1024;
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
}

impl Session {
    /// Opens every CPU's pipe and begins the output with its head.
    pub fn open(settings: &Settings, applied: &Applied, target: &Target) -> Result<Session, Error> {
        let tracefs = settings.tracefs().clone();
        let layout = metadata::page_layout(&tracefs)?;
        let drain = Drain::open(&tracefs, layout)?;
        let cpus: Vec<u32> = drain.lanes.iter().map(|l| l.cpu).collect();
        // The table has an entry for every CPU up to the highest: its place is the CPU's id.
        let table = cpus.last().map_or(0, |last| *last as usize + 1);
        let header = head(&tracefs, applied, target, &cpus)?.v6(&vec![Default::default(); table]);
        let Header { comms, ref options, .. } = header;
        let tgids = options.first().copied().unwrap_or_default();
        let stats = options[options.len() - cpus.len()..].to_vec();
        let output: Box<dyn Output> = if target.path == Path::new("-") {
            Box::new(Frames::begin(std::io::stdout(), &header, table, layout.page_size)?)
        } else {
            // Beyond the size asked for, one look at the buffers may bring as much as all of a buffer.
            let most = target.max_bytes.map(|max| max.saturating_add(4 << 30));
            Box::new(Capture::create(&target.path, header, table, layout.page_size, most)?)
        };
        let snapshots = clocks::begin(applied.clock);
        let path = target.path.clone();
        Ok(Session { tracefs, drain, output, snapshots, path, comms, tgids, stats })
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

    /// Asks the kernel what it counted. Nothing of the kernel is needed after this.
    pub fn count(self) -> Counted {
        let read = |lane: &super::drain::Lane| stats::read(&self.tracefs, lane.cpu).unwrap_or_default();
        let stats = self.drain.lanes.iter().map(read).collect();
        let names = Names::gather(&self.tracefs);
        Counted { session: self, stats, names }
    }
}

/// A session whose buffer is read, with what the kernel says of it.
pub(super) struct Counted {
    session: Session,
    stats: Vec<Stats>,
    names: Names,
}

impl Counted {
    /// Ends the output, and puts into the summary what it came to.
    pub fn into_summary(self, summary: &mut Summary) -> Result<(), Error> {
        let Counted { session, stats, names } = self;
        let Session { drain, mut output, snapshots, path, comms, tgids, stats: slots, .. } = session;
        for ((lane, slot), s) in drain.lanes.iter().zip(slots).zip(stats) {
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
        let extra = Extra { snapshots, lost: lost.collect(), processes: names.processes, ..Extra::default() };
        let (bytes, settled) = output.finish(extra)?;
        summary.output = path;
        summary.bytes = bytes;
        if settled == Settled::Sparse {
            let note = "the file keeps holes (no room to close them): copy it with a tool that knows holes";
            summary.notes.push(note.into());
        }
        summary.add_usage();
        Ok(())
    }
}

/// The head, with room for what is only known at the end. The first option is the tgids, the last are the CPUs' stats.
fn head(tracefs: &Tracefs, applied: &Applied, target: &Target, cpus: &[u32]) -> Result<Metadata, Error> {
    let names = Names::gather(tracefs);
    let spare = |known: Vec<u8>, padding: u8| {
        let len = known.len() * 3 / 2 + SPARE;
        Slot { at: 0, len }.fit(&known, padding).0
    };
    let extra = Extra { processes: names.processes.clone(), ..Extra::default() }.to_json(usize::MAX);
    let text = |text: String| [text.as_bytes(), b"\0"].concat();
    let mut options = vec![
        (option::SAVED_TGIDS, spare(names.tgids(), b'\n')),
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
        comms: spare(names.comms(), b'\n'),
        options,
        extra: spare(extra, b' '),
        ..metadata::gather(tracefs, &applied.events, target.kallsyms)?
    })
}

fn uname() -> String {
    let Ok(u) = nix::sys::utsname::uname() else { return String::new() };
    let part = |s: &std::ffi::OsStr| s.to_string_lossy().into_owned();
    [u.sysname(), u.nodename(), u.release(), u.machine()].map(part).join(" ")
}
