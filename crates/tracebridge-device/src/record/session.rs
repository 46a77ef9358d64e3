//! A trace buffer that is read into one output: first the head, then the pages, last the kernel's counts.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use super::capture::CaptureFile;
use super::capture_target::CaptureTarget;
use super::cpu_reader::{CpuReadCount, CpuReaders, ReadLimit};
use super::cpu_stats::{self, CpuStats};
use super::interruptible_writer::Patience;
use super::machine_facts;
use super::metadata::{self, TaskNames};
use super::output::{FinalState, RecordingOutput};
use super::rings::Rings;
use super::stream_output::StreamOutput;
use super::tracefs_config::AppliedConfig;
use super::{RecordError, SettingsGuard, Tracefs, clocks};
use crate::android::Properties;
use crate::clock::{Clock, Snapshots};
use crate::ftrace::PageLayout;
use crate::trace_dat::file_format::option;
use crate::trace_dat::recording_summary::{CpuSummary, RecordingSummary, RingsSummary};
use crate::trace_dat::{
    CpuLoss, CpuRecorded, DatHead, MachineFacts, Metadata, RecorderInfo, RingsInfo, Slot, trace_clock_option,
};

/// Bytes reserved in the head for names of threads that start during the recording. They suffice for the 8192
/// threads that the kernel remembers.
const SPARE_NAMES_BYTES: usize = 192 * 1024;
/// Bytes reserved in the head for clock snapshots, for processes that start during the recording, and for the
/// files that they map.
const SPARE_EXTRA_BYTES: usize = 128 * 1024;
/// Bytes reserved in the head for the `stats` of one CPU.
const STATS_SLOT_BYTES: usize = 384;

/// A trace buffer that is being read into an output.
pub(super) struct RecordingSession {
    pub(crate) tracefs: Tracefs,
    pub(crate) cpus: CpuReaders,
    pub(crate) output: Box<dyn RecordingOutput>,
    pub(crate) snapshots: Snapshots,
    /// See [`RecorderInfo::restricted`].
    pub(crate) restricted: bool,
    /// The threads at the beginning, some of which have ended at the end.
    names_before: TaskNames,
    /// See [`RecorderInfo::device`].
    pub(crate) device: Option<String>,
    /// The machine's facts at the begin; `None` for a user who may not read them.
    facts: Option<MachineFacts>,
    /// The rings of programs; `None` where they are not read.
    rings: Option<Rings>,
    /// The entry of the table of CPUs with the markers of rings.
    ring_cpu: u32,
    layout: PageLayout,
    path: PathBuf,
    comms: Slot,
    tgids: Slot,
    stats: Vec<Slot>,
    /// Events of each CPU that an earlier dump has read already.
    read_before: Vec<u64>,
    /// The ids of the events whose formats the head has.
    described_ids: Vec<u16>,
}

impl RecordingSession {
    /// Opens the ring buffer of every CPU and begins the output with its head.
    pub(crate) fn open(
        settings: &SettingsGuard,
        applied: &AppliedConfig,
        target: &CaptureTarget,
        patience: &Rc<Patience>,
    ) -> Result<RecordingSession, RecordError> {
        let tracefs = settings.tracefs().clone();
        let layout = metadata::page_layout(&tracefs)?;
        let cpus = CpuReaders::open(&tracefs, layout)?;
        let cpu_ids: Vec<u32> = cpus.readers.iter().map(|r| r.count.cpu).collect();
        // The table is indexed by CPU id, so it has an entry for every id up to the highest.
        let table_len = cpu_ids.last().map_or(0, |last| *last as usize + 1);
        let device = Properties::here().and_then(|properties| properties.device());
        // The head of a stream cannot grow: its table has the entry for the markers of rings from the start.
        let shown = table_len + usize::from(target.is_stream());
        let names_before = TaskNames::gather(&tracefs, applied.restricted);
        let metadata = head(&tracefs, applied, target, &cpu_ids, shown, device.clone(), &names_before)?;
        // To a user with few rights each refused attempt would be logged.
        let facts = (!applied.restricted).then(machine_facts::begin);
        let described_ids = metadata.event_ids();
        let header = metadata.v6(&vec![Default::default(); shown]);
        let DatHead { comms, ref options, .. } = header;
        let tgids = options.first().copied().unwrap_or_default();
        let slots = options[options.len() - cpu_ids.len()..].to_vec();
        let output: Box<dyn RecordingOutput> = if target.is_stream() {
            Box::new(StreamOutput::begin(&header, shown, layout.size as usize, patience)?)
        } else {
            // The size is checked between two rounds of reading, and one round may bring a whole buffer: 4
            // GiB at most.
            let max_cpu_bytes = target.max_bytes.map(|max| max.saturating_add(4 << 30));
            let parts = target.compress.then(|| header.parts.clone());
            let cpu_count = metadata.options.iter().position(|(id, _)| *id == option::CPUCOUNT);
            let cpu_count = cpu_count.and_then(|n| options.get(n)).copied().unwrap_or_default();
            let page_size = layout.size as usize;
            let mut capture =
                CaptureFile::create(target, header, table_len, cpu_count, page_size, max_cpu_bytes)?;
            if let Some(parts) = parts {
                capture.compress_at_end(parts);
            }
            Box::new(capture)
        };
        let snapshots = clocks::begin(applied.clock);
        let (path, restricted) = (target.path.clone(), applied.restricted);
        let read_before =
            cpu_ids.iter().map(|cpu| cpu_stats::read(&tracefs, *cpu).map_or(0, |s| s.read)).collect();
        Ok(RecordingSession {
            tracefs,
            cpus,
            output,
            snapshots,
            restricted,
            names_before,
            device,
            facts,
            rings: None,
            ring_cpu: table_len as u32,
            layout,
            path,
            comms,
            tgids,
            stats: slots,
            read_before,
            described_ids,
        })
    }

    /// Looks for programs with rings, and has them write into the rings from now on.
    pub(crate) fn begin_rings(&mut self) {
        let clock = self.snapshots.ftrace_clock.unwrap_or(Clock::Unknown);
        self.rings = Rings::begin(&self.tracefs, clock, self.layout, self.ring_cpu);
        if let Some(rings) = &mut self.rings {
            rings.look();
        }
    }

    /// How long the rings can wait until they are read again.
    pub(crate) fn rings_wait(&self) -> Duration {
        self.rings.as_ref().map_or(Duration::MAX, Rings::wait)
    }

    /// Reads the rings, if it is time.
    pub(crate) fn read_rings(&mut self) -> Result<(), RecordError> {
        let Some(rings) = &mut self.rings else { return Ok(()) };
        self.output.resume()?;
        rings.round(self.output.as_mut())
    }

    /// Has no program write into its ring any more.
    pub(crate) fn release_rings(&self) {
        self.rings.iter().for_each(Rings::release);
    }

    /// What the recorder writes into the capture about the rings while they are read.
    pub(crate) fn rings_info(&self) -> RingsInfo {
        RingsInfo { cpu: self.ring_cpu, ..RingsInfo::default() }
    }

    /// Adds a snapshot of the clocks.
    pub(crate) fn snapshot(&mut self) {
        clocks::push(&mut self.snapshots, clocks::snapshot(&self.tracefs));
    }

    /// Moves what is left in the kernel's buffers to the output, partial pages included, up to this limit for
    /// each CPU. Unless tracing is off, new events may come as fast as they are read.
    pub(crate) fn drain(&mut self, limit: ReadLimit) -> Result<(), RecordError> {
        self.output.resume()?;
        (0..self.cpus.readers.len())
            .try_for_each(|n| self.cpus.read_cpu(n, limit, self.output.as_mut()).map(drop))?;
        self.finish_rings()
    }

    /// Stores what is left in the rings.
    pub(crate) fn finish_rings(&mut self) -> Result<(), RecordError> {
        match &mut self.rings {
            Some(rings) => rings.finish(self.output.as_mut()),
            None => Ok(()),
        }
    }

    /// Reads the kernel's counts and the names of threads, and closes the ring buffers. From then on the
    /// session needs nothing more of the kernel.
    pub(crate) fn close(self) -> ClosedSession {
        let RecordingSession {
            tracefs,
            cpus,
            output,
            snapshots,
            path,
            comms,
            tgids,
            stats: slots,
            read_before,
            described_ids,
            restricted,
            names_before,
            device,
            facts,
            rings,
            ring_cpu,
            ..
        } = self;
        let foreign_ids = cpus.seen_ids.iter().filter(|id| !described_ids.contains(id)).collect();
        let cpus = cpus.readers.iter().zip(slots).zip(read_before);
        let cpus = cpus.map(|((reader, slot), before)| {
            let mut stats = cpu_stats::read(&tracefs, reader.count.cpu).unwrap_or_default();
            stats.read = stats.read.saturating_sub(before);
            (reader.count, slot, stats)
        });
        let cpus = cpus.collect();
        let mut names = TaskNames::gather(&tracefs, restricted);
        let (rings, writers) = rings.map(Rings::into_summary).unwrap_or_default();
        names.add_ended(writers);
        let is_new = |pid: &i32| names_before.processes.iter().all(|(before, ..)| before != pid);
        let new: Vec<i32> = names.processes.iter().map(|(pid, ..)| *pid).filter(is_new).collect();
        let facts = facts.map(|facts| machine_facts::end(facts, &names.program_threads, &new));
        names.add_living_before(names_before);
        ClosedSession {
            output,
            device,
            facts,
            snapshots,
            path,
            comms,
            tgids,
            cpus,
            names,
            foreign_ids,
            rings,
            ring_cpu,
        }
    }
}

/// An output that has received its last page, with the kernel's counts and the names of threads.
pub(super) struct ClosedSession {
    output: Box<dyn RecordingOutput>,
    device: Option<String>,
    facts: Option<MachineFacts>,
    snapshots: Snapshots,
    path: PathBuf,
    comms: Slot,
    tgids: Slot,
    cpus: Vec<(CpuReadCount, Slot, CpuStats)>,
    names: TaskNames,
    /// The ids of events that were read and whose formats the head does not have.
    foreign_ids: Vec<u16>,
    rings: RingsSummary,
    ring_cpu: u32,
}

impl ClosedSession {
    /// Completes the output and fills in the summary. For `hurry` see [`RecordingOutput::finish`].
    pub(crate) fn finish(
        self,
        summary: &mut RecordingSummary,
        hurry: &dyn Fn() -> bool,
    ) -> Result<(), RecordError> {
        let ClosedSession { mut output, device, facts, snapshots, path, comms, tgids, .. } = self;
        let ClosedSession { cpus, names, foreign_ids, rings, ring_cpu, .. } = self;
        if !foreign_ids.is_empty() {
            let ids: Vec<String> = foreign_ids.iter().map(u16::to_string).collect();
            summary.notes.push(format!(
                "another user had switched events on that this user may not see (ids {}): they are recorded, and \
                 their fields cannot be read",
                ids.join(", ")
            ));
        }
        let unsent = if output.resume().is_err() { output.give_up() } else { None };
        for (count, slot, stats) in cpus {
            let text = format!("CPU: {}\n{}\n", count.cpu, stats.text);
            // The slot's last byte is the NUL that ends the text.
            unless_stalled(output.patch(Slot { len: slot.len - 1, ..slot }, text.as_bytes(), b' '))?;
            let unsent = if unsent == Some(count.cpu) { count.last_batch } else { 0 };
            summary.cpus.push(CpuSummary {
                cpu: count.cpu,
                events: count.events - unsent,
                unsent,
                taken: stats.read.saturating_sub(count.events),
                bytes: count.bytes,
                overrun: stats.overrun,
                dropped: stats.dropped,
                commit_overrun: stats.commit_overrun,
                gaps: count.gaps,
                missed: count.missed,
                left: stats.entries,
            });
        }
        for (slot, text) in [(comms, names.comms()), (tgids, names.tgids())] {
            if !unless_stalled(output.patch(slot, &text, b'\n'))? {
                let note = "there were more threads than the head has room for: some have no name";
                summary.notes.push(note.into());
            }
        }
        let recorded =
            summary.cpus.iter().map(|c| CpuRecorded { cpu: c.cpu, events: c.events, taken: c.taken });
        let recorded = recorded.collect();
        let lossy = summary.cpus.iter().filter(|c| summary.streaming && c.lost() > 0);
        let lost =
            lossy.map(|c| CpuLoss { cpu: c.cpu, overrun: c.overrun, dropped: c.dropped + c.commit_overrun });
        let lost = lost.collect();
        let (excerpt, processes) = (!summary.streaming, names.processes);
        let extra = RecorderInfo {
            excerpt,
            restricted: names.restricted,
            device,
            snapshots,
            recorded,
            lost,
            machine: facts,
            processes,
            rings: Some(rings.info(ring_cpu)),
            ..RecorderInfo::default()
        };
        summary.rings = rings;
        let finished = output.finish(extra, hurry)?;
        summary.output = path;
        summary.bytes = finished.bytes;
        if let Some(error) = finished.not_compressed {
            summary.notes.push(format!("not compressed, but whole: {error}"));
        }
        match finished.state {
            FinalState::Compact => {}
            FinalState::Sparse => {
                let note =
                    "the file keeps holes (no room to close them): copy it with a tool that preserves holes";
                summary.notes.push(note.into());
            }
            FinalState::Cut => {
                summary.error.get_or_insert(RecordError::Stalled.to_string());
            }
            FinalState::Deleted => {
                let gone = format!("{} was deleted while it was written", summary.output.display());
                summary.error.get_or_insert(gone);
            }
        }
        add_usage(summary);
        Ok(())
    }
}

/// Fills in the CPU time and memory that this process has used so far.
fn add_usage(summary: &mut RecordingSummary) {
    use nix::sys::resource::{UsageWho, getrusage};
    if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
        let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
        summary.cpu_seconds = seconds(usage.user_time()) + seconds(usage.system_time());
        summary.peak_rss_kb = usage.max_rss() as u64;
    }
}

/// A stream whose reader takes nothing lacks its end. [`RecordingOutput::finish`] notices it.
fn unless_stalled(patched: Result<bool, RecordError>) -> Result<bool, RecordError> {
    if matches!(patched, Err(RecordError::Stalled)) { Ok(true) } else { patched }
}

/// The head, with room for what is known only at the end. Its first option holds the tgids, its last options
/// hold the `stats` of each CPU. `shown` is the length of the table of CPUs.
fn head(
    tracefs: &Tracefs,
    applied: &AppliedConfig,
    target: &CaptureTarget,
    cpus: &[u32],
    shown: usize,
    device: Option<String>,
    names: &TaskNames,
) -> Result<Metadata, RecordError> {
    let spare = |mut known: Vec<u8>, padding: u8, spare: usize| {
        let len = known.len() + spare;
        known.reserve_exact(spare);
        known.resize(len, padding);
        known
    };
    let extra = RecorderInfo {
        restricted: names.restricted,
        device,
        processes: names.processes.clone(),
        rings: Some(RingsInfo { cpu: cpus.last().map_or(0, |last| last + 1), ..RingsInfo::default() }),
        ..RecorderInfo::default()
    }
    .to_json(usize::MAX);
    let text = |text: String| [text.as_bytes(), b"\0"].concat();
    let mut options = vec![
        (option::SAVED_TGIDS, spare(names.tgids(), b'\n', SPARE_NAMES_BYTES)),
        (option::UNAME, text(uname())),
        (option::VERSION, text(concat!("tracebridge ", env!("CARGO_PKG_VERSION")).to_owned())),
        (option::CPUCOUNT, (shown as u32).to_ne_bytes().to_vec()),
    ];
    options.extend(trace_clock_option(&tracefs.read("trace_clock")?));
    options.extend(cpus.iter().map(|_| {
        let mut stat = vec![b' '; STATS_SLOT_BYTES - 1];
        stat.push(0);
        (option::CPUSTAT, stat)
    }));
    Ok(Metadata {
        comms: spare(names.comms(), b'\n', SPARE_NAMES_BYTES),
        options,
        extra: spare(extra, b' ', SPARE_EXTRA_BYTES),
        ..metadata::gather(tracefs, &applied.events, target.kallsyms)?
    })
}

fn uname() -> String {
    let Ok(u) = nix::sys::utsname::uname() else { return String::new() };
    let part = |s: &std::ffi::OsStr| s.to_string_lossy().into_owned();
    [u.sysname(), u.nodename(), u.release(), u.machine()].map(part).join(" ")
}
