//! A trace buffer that is read into one output: first the head, then the pages, last the kernel's counts.
//!
//! The session reads CPUs and rings, writes their pages, and stores snapshots of the clocks. When it does
//! each of these, and when a recording ends, is up to the recorder.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use super::capture::{CaptureFile, CaptureTarget, FinalState, RecordingOutput};
use super::cpu_reader::{CpuReadCount, CpuReaders, CpuStats, EventIds, ReadLimit};
use super::events::AskedEvents;
use super::interruptible_writer::WriteTimeout;
use super::metadata::{self, TaskNames};
use super::rings::Rings;
use super::stream_output::StreamOutput;
use super::tracefs_config::AppliedConfig;
use super::{RecordError, SettingsGuard, Tracefs, clocks, event_cost, machine_facts};
use crate::android::Properties;
use crate::clock::{Clock, Snapshots, Timestamp};
use crate::ftrace::PageLayout;
use crate::ids::{Cpu, Pid};
use crate::step_log::print_step;
use crate::trace_dat::recording_summary::{CpuSummary, RecordingSummary, RingsSummary};
use crate::trace_dat::{
    CpuData, CpuLoss, CpuRecorded, DatHead, MachineFacts, Metadata, RecorderInfo, RingsInfo, Slot,
    no_event_of, option,
};

/// So often it is looked for events that are written late, and so long between two looks.
const LATE_ROUNDS: u32 = 40;
const LATE_PAUSE: Duration = Duration::from_millis(5);

/// A trace buffer that is being read into an output.
pub(super) struct RecordingSession {
    tracefs: Tracefs,
    cpus: CpuReaders,
    output: Box<dyn RecordingOutput>,
    snapshots: Snapshots,
    /// See [`RecorderInfo::restricted`].
    restricted: bool,
    /// The threads at the beginning, some of which have ended at the end.
    names_before: TaskNames,
    /// See [`RecorderInfo::device`].
    device: Option<String>,
    /// The machine's facts at the begin; `None` for a user who may not read them.
    facts: Option<MachineFacts>,
    /// The rings of programs; `None` where they are not read.
    rings: Option<Rings>,
    /// The entry of the table of CPUs with the markers of rings.
    ring_cpu: Cpu,
    /// The time up to which the last round of a live recording is complete, in the recording's clock.
    complete: Timestamp,
    layout: PageLayout,
    path: PathBuf,
    slots: HeadSlots,
    /// Events of each CPU that an earlier dump has read already.
    read_before: Vec<u64>,
    /// The ids of the events whose formats the head has.
    described_ids: Vec<u16>,
    /// The names that were asked for, with the ids of their events.
    asked: Vec<(String, Vec<u16>)>,
}

/// The parts of the head that are filled in at the end.
struct HeadSlots {
    comms: Slot,
    tgids: Slot,
    /// The `stats` of each CPU.
    stats: Vec<Slot>,
}

impl HeadSlots {
    /// Finds them in a head by [`metadata::head`]: its first option holds the tgids, its last ones the
    /// `stats` of each CPU.
    fn find(head: &DatHead, cpus: usize) -> HeadSlots {
        let tgids = head.options.first().copied().unwrap_or_default();
        let stats = head.options[head.options.len() - cpus..].to_vec();
        HeadSlots { comms: head.comms, tgids, stats }
    }
}

impl RecordingSession {
    /// Opens the ring buffer of every CPU and begins the output with its head.
    pub(crate) fn open(
        settings: &SettingsGuard,
        applied: &AppliedConfig,
        target: &CaptureTarget,
        timeout: &Rc<WriteTimeout>,
    ) -> Result<RecordingSession, RecordError> {
        let tracefs = settings.tracefs().clone();
        let layout = metadata::page_layout(&tracefs)?;
        let cpus = CpuReaders::open(&tracefs, layout)?;
        let cpu_ids: Vec<Cpu> = cpus.readers.iter().map(|r| r.count.cpu).collect();
        // The table is indexed by CPU id, so it has an entry for every id up to the highest.
        let table_len = cpu_ids.last().map_or(0, |last| last.count_if_last() as usize);
        let device = Properties::find().and_then(|properties| properties.device());
        // The head of a stream cannot grow: its table has the entry for the markers of rings from the start.
        let shown = table_len + usize::from(target.is_stream());
        let names_before = TaskNames::gather(&tracefs, applied.restricted);
        let kallsyms = target.kallsyms;
        let metadata =
            metadata::head(&tracefs, applied, kallsyms, &cpu_ids, shown, device.clone(), &names_before)?;
        let head = metadata.v6(&vec![CpuData::default(); shown]);
        let slots = HeadSlots::find(&head, cpu_ids.len());
        // To a user with few rights each refused attempt would be logged.
        let facts = (!applied.restricted).then(machine_facts::begin);
        let output: Box<dyn RecordingOutput> = if target.is_stream() {
            Box::new(StreamOutput::begin(&head, shown, layout.size as usize, timeout)?)
        } else {
            Box::new(capture_file(target, &metadata, head, table_len)?)
        };
        print_step(format_args!("reads {} CPUs into {}", cpu_ids.len(), target.path.display()));
        let events_read = |cpu: &Cpu| CpuStats::read(&tracefs, *cpu).map_or(0, |stats| stats.read);
        let read_before = cpu_ids.iter().map(events_read).collect();
        Ok(RecordingSession {
            tracefs,
            cpus,
            output,
            snapshots: clocks::begin(applied.clock),
            restricted: applied.restricted,
            names_before,
            device,
            facts,
            rings: None,
            ring_cpu: Cpu(table_len as u32),
            complete: Timestamp::MIN,
            layout,
            path: target.path.clone(),
            slots,
            read_before,
            described_ids: metadata.event_ids(),
            asked: asked_ids(&applied.asked, &metadata),
        })
    }

    /// Measures what an event costs, for the facts about the machine. Tracing must be off: the switches that
    /// are measured would be recorded, and push older events out of a flight recorder's buffer.
    pub(crate) fn measure_event_cost(&mut self) {
        if let Some(facts) = &mut self.facts {
            facts.event_cost = event_cost::measure(&self.tracefs);
        }
    }

    /// The number of CPUs that have a ring buffer. CPUs are named by their indices among these.
    pub(crate) fn cpu_count(&self) -> usize {
        self.cpus.readers.len()
    }

    /// The pipe of each CPU, which is readable while its buffer is filled to the watermark.
    pub(crate) fn pipes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.cpus.readers.iter().map(|reader| reader.pipe.as_fd())
    }

    /// Moves pages of these CPUs to the output. Returns the number of bytes moved.
    pub(crate) fn read_cpus(&mut self, cpus: &[usize], limit: ReadLimit) -> Result<u64, RecordError> {
        self.output.resume()?;
        let mut moved = 0;
        for cpu in cpus {
            moved += self.cpus.read_cpu(*cpu, limit, self.output.as_mut())?;
        }
        Ok(moved)
    }

    /// Says that the recording will be read in [rounds](RecordingSession::live_round).
    pub(crate) fn begin_live(&mut self) {
        self.output.begin_live();
    }

    /// Moves every event that is older than now to the output, and says so there. Returns the number of bytes
    /// moved.
    pub(crate) fn live_round(&mut self) -> Result<u64, RecordError> {
        self.output.resume()?;
        let now = clocks::now(&self.tracefs, self.snapshots.ftrace_clock);
        let limit = now.map_or(ReadLimit::Bytes(u64::MAX), ReadLimit::Time);
        let mut moved = 0;
        for cpu in 0..self.cpu_count() {
            moved += self.cpus.read_cpu(cpu, limit, self.output.as_mut())?;
        }
        let in_rings = match &mut self.rings {
            Some(rings) => rings.live_round(self.output.as_mut())?,
            None => None,
        };
        let complete = in_rings.map_or(now, |in_rings| now.map(|now| now.min(in_rings)));
        self.complete = self.complete.max(complete.unwrap_or_default());
        self.output.round(self.complete)?;
        Ok(moved)
    }

    /// Moves what is left in the kernel's buffers to the output, partial pages included, up to this limit for
    /// each CPU. Unless tracing is off, new events may come as fast as they are read.
    pub(crate) fn drain(&mut self, limit: ReadLimit) -> Result<(), RecordError> {
        let all: Vec<usize> = (0..self.cpu_count()).collect();
        self.read_cpus(&all, limit)?;
        self.finish_rings()
    }

    /// Moves the events whose writers were in the middle of them when tracing was switched off. No thread
    /// interrupts a writer, but the processor of a virtual machine may wait for its turn at any moment.
    pub(crate) fn drain_late_events(&mut self) -> Result<(), RecordError> {
        for _ in 0..LATE_ROUNDS {
            let has_event = |cpu: &usize| {
                let stats = CpuStats::read(&self.tracefs, self.cpus.readers[*cpu].count.cpu);
                stats.is_ok_and(|stats| stats.entries > 0)
            };
            let late: Vec<usize> = (0..self.cpu_count()).filter(has_event).collect();
            if late.is_empty() {
                break;
            }
            std::thread::sleep(LATE_PAUSE);
            self.read_cpus(&late, ReadLimit::Empty)?;
        }
        Ok(())
    }

    /// Whether a CPU has dropped events because its buffer is full.
    pub(crate) fn has_dropped(&self) -> Result<bool, RecordError> {
        for reader in &self.cpus.readers {
            if CpuStats::read(&self.tracefs, reader.count.cpu)?.dropped > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The number of bytes of pages written so far.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.output.data_bytes()
    }

    /// Looks for programs with rings, and has them write into the rings from now on.
    pub(crate) fn begin_rings(&mut self) {
        let clock = self.snapshots.ftrace_clock.unwrap_or(Clock::Unknown);
        self.rings = Rings::begin(&self.tracefs, clock, self.layout, self.ring_cpu);
        if let Some(rings) = &mut self.rings {
            rings.scan();
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

    /// Stores what is left in the rings.
    pub(crate) fn finish_rings(&mut self) -> Result<(), RecordError> {
        match &mut self.rings {
            Some(rings) => rings.finish(self.output.as_mut()),
            None => Ok(()),
        }
    }

    /// Adds a snapshot of the clocks.
    pub(crate) fn snapshot(&mut self) {
        clocks::push(&mut self.snapshots, clocks::snapshot(&self.tracefs));
    }

    /// Goes on with the snapshots of the flight recorder whose buffer this is.
    pub(crate) fn resume_snapshots(&mut self, snapshots: Snapshots) {
        self.snapshots = snapshots;
    }

    /// Writes the snapshots taken so far to the output, so that a killed recorder leaves them too.
    pub(crate) fn put_snapshots(&mut self) -> Result<(), RecordError> {
        let extra = RecorderInfo {
            restricted: self.restricted,
            device: self.device.clone(),
            snapshots: self.snapshots.clone(),
            rings: Some(RingsInfo { cpu: self.ring_cpu, ..RingsInfo::default() }),
            ..RecorderInfo::default()
        };
        self.output.put_extra(&extra)
    }

    /// Reads the kernel's counts and the names of threads, and closes the ring buffers. From then on the
    /// session needs nothing more of the kernel.
    pub(crate) fn close(self) -> ClosedSession {
        let is_foreign = |id: &u16| !self.described_ids.contains(id);
        let foreign_ids = self.cpus.seen_ids.iter().filter(is_foreign).collect();
        let without_events = without_events(self.asked, &self.cpus.seen_ids);
        let cpus = self.cpus.readers.iter().zip(&self.read_before);
        let cpus = cpus.map(|(reader, read_before)| {
            let mut stats = CpuStats::read(&self.tracefs, reader.count.cpu).unwrap_or_default();
            stats.read = stats.read.saturating_sub(*read_before);
            (reader.count, stats)
        });
        let cpus = cpus.collect();
        let mut names = TaskNames::gather(&self.tracefs, self.restricted);
        let (rings, writers) = self.rings.map(Rings::into_summary).unwrap_or_default();
        names.add_ended(writers);
        let was_there = |pid: &Pid| self.names_before.processes.iter().any(|(before, ..)| before == pid);
        let pids = names.processes.iter().map(|(pid, ..)| *pid);
        let new: Vec<Pid> = pids.filter(|pid| !was_there(pid)).collect();
        let facts = self.facts.map(|facts| machine_facts::end(facts, &names.program_threads, &new));
        names.add_living_before(self.names_before);
        ClosedSession {
            output: self.output,
            device: self.device,
            facts,
            snapshots: self.snapshots,
            path: self.path,
            slots: self.slots,
            cpus,
            names,
            foreign_ids,
            without_events,
            rings,
            ring_cpu: self.ring_cpu,
        }
    }
}

/// The ids of the events that were asked for, as far as the head describes them.
fn asked_ids(asked: &[AskedEvents], metadata: &Metadata) -> Vec<(String, Vec<u16>)> {
    let ids = |asked: &AskedEvents| {
        let ids = asked.events.iter().filter_map(|event| metadata.event_id(&event.group, &event.name));
        (asked.name.clone(), ids.collect::<Vec<u16>>())
    };
    asked.iter().map(ids).filter(|(_, ids)| !ids.is_empty()).collect()
}

/// The names of which no event was read.
fn without_events(asked: Vec<(String, Vec<u16>)>, seen: &EventIds) -> Vec<String> {
    let silent = asked.into_iter().filter(|(_, ids)| !ids.iter().any(|id| seen.contains(*id)));
    silent.map(|(name, _)| name).collect()
}

/// Creates the capture file with the head that `metadata` was encoded to.
fn capture_file(
    target: &CaptureTarget,
    metadata: &Metadata,
    head: DatHead,
    table_len: usize,
) -> Result<CaptureFile, RecordError> {
    // The size is checked between two rounds of reading, and one round may bring a whole buffer: 4 GiB at
    // most.
    let max_cpu_bytes = target.max_bytes.map(|max| max.saturating_add(4 << 30));
    let parts = target.compress.then(|| head.parts.clone());
    let cpu_count = metadata.options.iter().position(|(id, _)| *id == option::CPUCOUNT);
    let cpu_count = cpu_count.and_then(|n| head.options.get(n)).copied().unwrap_or_default();
    let page_size = metadata.page_size as usize;
    let mut capture = CaptureFile::create(target, head, table_len, cpu_count, page_size, max_cpu_bytes)?;
    if let Some(parts) = parts {
        capture.compress_at_end(parts);
    }
    Ok(capture)
}

/// An output that has received its last page, with the kernel's counts and the names of threads.
pub(super) struct ClosedSession {
    output: Box<dyn RecordingOutput>,
    device: Option<String>,
    facts: Option<MachineFacts>,
    snapshots: Snapshots,
    path: PathBuf,
    slots: HeadSlots,
    cpus: Vec<(CpuReadCount, CpuStats)>,
    names: TaskNames,
    /// The ids of events that were read and whose formats the head does not have.
    foreign_ids: Vec<u16>,
    /// See [`RecorderInfo::without_events`].
    without_events: Vec<String>,
    rings: RingsSummary,
    ring_cpu: Cpu,
}

impl ClosedSession {
    /// Completes the output and fills in the summary. For `cancel` see [`RecordingOutput::finish`].
    pub(crate) fn finish(
        mut self,
        summary: &mut RecordingSummary,
        cancel: &dyn Fn() -> bool,
    ) -> Result<(), RecordError> {
        if !self.foreign_ids.is_empty() {
            let ids: Vec<String> = self.foreign_ids.iter().map(u16::to_string).collect();
            summary.notes.push(format!(
                "another user had switched events on that this user may not see (ids {}): they are recorded, and \
                 their fields cannot be read",
                ids.join(", ")
            ));
        }
        summary.notes.extend(no_event_of(&self.without_events));
        let unsent_cpu = if self.output.resume().is_err() { self.output.give_up() } else { None };
        self.write_counts(unsent_cpu, summary)?;
        for (slot, text) in [(self.slots.comms, self.names.comms()), (self.slots.tgids, self.names.tgids())] {
            if !unless_stalled(self.output.patch(slot, &text, b'\n'))? {
                let note = "there were more threads than the head has room for: some have no name";
                summary.notes.push(note.into());
            }
        }
        let extra = RecorderInfo {
            excerpt: !summary.streaming,
            restricted: self.names.restricted,
            device: self.device,
            snapshots: self.snapshots,
            recorded: recorded(summary),
            lost: lost(summary),
            machine: self.facts,
            processes: self.names.processes,
            without_events: self.without_events,
            rings: Some(self.rings.info(self.ring_cpu)),
            ..RecorderInfo::default()
        };
        summary.rings = self.rings;
        let finished = self.output.finish(extra, cancel)?;
        summary.output = self.path;
        summary.bytes = finished.bytes;
        if let Some(error) = finished.not_compressed {
            summary.notes.push(format!("not compressed, but whole: {error}"));
        }
        add_final_state(finished.state, summary);
        add_usage(summary);
        Ok(())
    }

    /// Writes the kernel's counts of each CPU into the head, and adds them to the summary. The last pages of
    /// `unsent_cpu` were not taken by the reader of a stream.
    fn write_counts(
        &mut self,
        unsent_cpu: Option<Cpu>,
        summary: &mut RecordingSummary,
    ) -> Result<(), RecordError> {
        for ((count, stats), slot) in self.cpus.iter().zip(&self.slots.stats) {
            let text = format!("CPU: {}\n{}\n", count.cpu, stats.text);
            // The slot's last byte is the NUL that ends the text.
            let slot = Slot { len: slot.len - 1, ..*slot };
            unless_stalled(self.output.patch(slot, text.as_bytes(), b' '))?;
            let unsent = if unsent_cpu == Some(count.cpu) { count.last_batch } else { 0 };
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
        Ok(())
    }
}

/// The events read from each CPU, for the capture's head.
fn recorded(summary: &RecordingSummary) -> Vec<CpuRecorded> {
    let recorded = |c: &CpuSummary| CpuRecorded { cpu: c.cpu, events: c.events, taken: c.taken };
    summary.cpus.iter().map(recorded).collect()
}

/// The losses of each CPU that lost events, for the capture's head.
fn lost(summary: &RecordingSummary) -> Vec<CpuLoss> {
    let lossy = summary.cpus.iter().filter(|c| summary.streaming && c.lost() > 0);
    lossy.map(|c| CpuLoss { cpu: c.cpu, overrun: c.overrun, dropped: c.dropped + c.commit_overrun }).collect()
}

fn add_final_state(state: FinalState, summary: &mut RecordingSummary) {
    match state {
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::super::capture::FinishedOutput;
    use super::*;

    /// Everything that an output was told.
    #[derive(Default)]
    struct Told {
        patches: Vec<(u64, Vec<u8>)>,
        extra: Option<RecorderInfo>,
    }

    /// An output in memory.
    struct MemoryOutput {
        told: Rc<RefCell<Told>>,
        state: FinalState,
        /// The CPU whose last pages the reader of a stream did not take.
        untaken: Option<Cpu>,
        /// Whether names fit into their slots.
        has_room: bool,
    }

    impl RecordingOutput for MemoryOutput {
        fn pages(&mut self, _: Cpu, _: &[u8]) -> Result<(), RecordError> {
            Ok(())
        }
        fn resume(&mut self) -> Result<(), RecordError> {
            if self.untaken.is_some() { Err(RecordError::Stalled) } else { Ok(()) }
        }
        fn give_up(&mut self) -> Option<Cpu> {
            self.untaken
        }
        fn patch(&mut self, slot: Slot, text: &[u8], _: u8) -> Result<bool, RecordError> {
            if self.untaken.is_some() {
                return Err(RecordError::Stalled);
            }
            self.told.borrow_mut().patches.push((slot.at, text.to_vec()));
            Ok(self.has_room)
        }
        fn put_extra(&mut self, _: &RecorderInfo) -> Result<(), RecordError> {
            Ok(())
        }
        fn data_bytes(&self) -> u64 {
            0
        }
        fn finish(
            self: Box<Self>,
            extra: RecorderInfo,
            _: &dyn Fn() -> bool,
        ) -> Result<FinishedOutput, RecordError> {
            self.told.borrow_mut().extra = Some(extra);
            Ok(FinishedOutput { bytes: 9, state: self.state, not_compressed: None })
        }
    }

    /// A session of one CPU that has read 100 events, of which 7 were in the last batch.
    fn session(change: impl FnOnce(&mut MemoryOutput)) -> (ClosedSession, Rc<RefCell<Told>>) {
        let told = Rc::new(RefCell::new(Told::default()));
        let mut output =
            MemoryOutput { told: told.clone(), state: FinalState::Compact, untaken: None, has_room: true };
        change(&mut output);
        let count = CpuReadCount { cpu: Cpu(2), events: 100, bytes: 4096, gaps: 1, missed: 3, last_batch: 7 };
        let stats = CpuStats {
            entries: 5,
            overrun: 3,
            commit_overrun: 1,
            dropped: 2,
            read: 104,
            text: "entries: 5".to_owned(),
        };
        let session = ClosedSession {
            output: Box::new(output),
            device: Some("a phone".to_owned()),
            facts: None,
            snapshots: Snapshots::default(),
            path: PathBuf::from("x.dat"),
            slots: HeadSlots {
                comms: Slot { at: 1000, len: 10 },
                tgids: Slot { at: 2000, len: 10 },
                stats: vec![Slot { at: 3000, len: 100 }],
            },
            cpus: vec![(count, stats)],
            names: TaskNames::default(),
            foreign_ids: Vec::new(),
            without_events: Vec::new(),
            rings: RingsSummary::default(),
            ring_cpu: Cpu(3),
        };
        (session, told)
    }

    fn finished(session: ClosedSession, streaming: bool) -> RecordingSummary {
        let mut summary = RecordingSummary { streaming, ..RecordingSummary::default() };
        session.finish(&mut summary, &|| false).unwrap();
        summary
    }

    #[test]
    fn the_kernels_counts_are_in_the_summary_and_in_the_file() {
        let (session, told) = session(|_| ());
        let summary = finished(session, true);
        let [cpu] = &summary.cpus[..] else { panic!("{summary:?}") };
        assert_eq!((cpu.cpu, cpu.events, cpu.taken, cpu.left), (Cpu(2), 100, 4, 5), "another reader took 4");
        assert_eq!((cpu.overrun, cpu.dropped, cpu.commit_overrun, cpu.gaps, cpu.missed), (3, 2, 1, 1, 3));
        assert_eq!((summary.bytes, summary.output.as_path()), (9, std::path::Path::new("x.dat")));
        assert_eq!((summary.notes.len(), summary.error.as_deref()), (0, None));
        let told = told.borrow();
        assert!(told.patches.contains(&(3000, b"CPU: 2\nentries: 5\n".to_vec())), "{:?}", told.patches);
        let extra = told.extra.as_ref().unwrap();
        assert_eq!((extra.excerpt, extra.device.as_deref()), (false, Some("a phone")));
        let lost: Vec<(Cpu, u64, u64)> = extra.lost.iter().map(|l| (l.cpu, l.overrun, l.dropped)).collect();
        assert_eq!(lost, [(Cpu(2), 3, 3)]);
    }

    #[test]
    fn a_category_that_got_no_event_is_named_in_the_summary_and_in_the_file() {
        let asked = [("sched", vec![7, 8]), ("memory", vec![9, 10]), ("power/cpu_idle", vec![11])];
        let asked = asked.map(|(name, ids)| (name.to_owned(), ids)).to_vec();
        let mut seen = EventIds::default();
        [8, 300].into_iter().for_each(|id| seen.insert(id));
        let (mut session, told) = session(|_| ());
        session.without_events = without_events(asked, &seen);
        let summary = finished(session, true);
        assert_eq!(summary.notes, ["no event of memory, power/cpu_idle is in the recording"]);
        let told = told.borrow();
        assert_eq!(told.extra.as_ref().unwrap().without_events, ["memory", "power/cpu_idle"]);
    }

    #[test]
    fn what_a_ring_overwrites_is_no_loss() {
        let (session, told) = session(|_| ());
        finished(session, false);
        let told = told.borrow();
        let extra = told.extra.as_ref().unwrap();
        assert!(extra.excerpt && extra.lost.is_empty(), "{extra:?}");
    }

    #[test]
    fn pages_that_a_reader_did_not_take_are_counted_as_unsent() {
        let (session, _) = session(|output| {
            output.untaken = Some(Cpu(2));
            output.state = FinalState::Cut;
        });
        let summary = finished(session, true);
        assert_eq!((summary.cpus[0].events, summary.cpus[0].unsent), (93, 7));
        assert_eq!(summary.error, Some(RecordError::Stalled.to_string()));
    }

    #[test]
    fn notes_tell_of_names_without_room_holes_a_deleted_file_and_foreign_events() {
        let (mut session, _) = session(|output| {
            output.has_room = false;
            output.state = FinalState::Sparse;
        });
        session.foreign_ids = vec![300, 301];
        let notes = finished(session, true).notes;
        for part in ["(ids 300, 301)", "some have no name", "the file keeps holes"] {
            assert!(notes.iter().any(|note| note.contains(part)), "{part}: {notes:?}");
        }
        let (session, _) = self::session(|output| output.state = FinalState::Deleted);
        assert_eq!(finished(session, true).error.as_deref(), Some("x.dat was deleted while it was written"));
    }
}
