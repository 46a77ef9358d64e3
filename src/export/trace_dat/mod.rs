//! Writes trace-cmd's file, version 6, uncompressed: trace-cmd, KernelShark, gpuvis, Trace Compass and LISA
//! open it.
//!
//! A record that comes from a trace.dat is written as it is. An event that comes from a text or from a
//! Perfetto trace is put into a record: in the kernel's layout where the event catalog knows the event,
//! else in a layout that this module makes. Pages wait in a temporary file, because the head, which
//! precedes them in the file, holds their number.

mod record_layout;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

use self::record_layout::{DatRecordLayout, KALLSYMS};
use super::Out;
use crate::clock::Clock;
use crate::formats::{Event, EventType, EventTypeId, Head, Losses, Order, ProcessInfo, Sink, ThreadInfo};
use crate::ftrace::page_format::MAX_CPUS;
use crate::ftrace::page_writer::{self, LONG_BYTES, MAX_RECORD_BYTES, PAGE_BYTES, PageWriter};
use crate::ids::{Cpu, Pid, Tid};
use crate::output_file::{Readers, create_beside};
use crate::timeline::{DataCounts, DataKind, MergeSummary, TimelineSink};
use crate::trace_dat::{CpuData, Metadata, RecorderInfo, option, trace_clock_option};
use crate::tracks::thread_names::ThreadNames;

/// Makes an exporter that writes a trace.dat to `out`.
pub(super) fn create(out: Out) -> Box<dyn TimelineSink> {
    Box::new(DatWriter { out: Some(out), ..DatWriter::default() })
}

#[derive(Default)]
struct DatWriter {
    out: Option<Out>,
    head: Option<Head>,
    /// By event type: where its records have their fields. `None` where the file has no id left for the type.
    layouts: Vec<Option<DatRecordLayout>>,
    /// By event type: the fields that name a thread, as (field of the thread id, field of the name).
    thread_name_fields: Vec<Vec<(usize, usize)>>,
    /// The page that each CPU is filling.
    cpus: BTreeMap<Cpu, PageWriter>,
    /// Full pages of all CPUs in the order in which they were filled.
    spool: Option<BufWriter<File>>,
    /// The CPU of each page in `spool`.
    page_cpus: Vec<Cpu>,
    threads: ThreadNames,
    /// By process id: the parent's process id, and the full name.
    processes: BTreeMap<Pid, (Pid, String)>,
    /// A buffer for the record that is being encoded.
    record: Vec<u8>,
    /// Values that did not fit their field, and records that did not fit a page.
    unfit_values: u64,
    /// Events with a flag that records have no bit for; see [`Event::flags`].
    unfit_flags: u64,
}

/// The reason why an event cannot be written.
#[derive(Debug, thiserror::Error)]
enum DatWriteError {
    #[error("CPU {0} is more than any machine has ({MAX_CPUS})")]
    CpuNumber(Cpu),
    #[error("more types of events than a trace.dat has ids for (65,535)")]
    TooManyTypes,
}

impl From<DatWriteError> for io::Error {
    fn from(error: DatWriteError) -> io::Error {
        io::Error::other(error)
    }
}

impl DatWriter {
    /// The page that a CPU is filling.
    fn page(&mut self, cpu: Cpu) -> io::Result<&mut PageWriter> {
        if cpu.0 >= MAX_CPUS {
            return Err(DatWriteError::CpuNumber(cpu).into());
        }
        Ok(self.cpus.entry(cpu).or_default())
    }

    fn spool(&mut self, cpu: Cpu, page: Option<Box<[u8]>>) -> io::Result<()> {
        let Some(page) = page else { return Ok(()) };
        let spool = match &mut self.spool {
            Some(spool) => spool,
            empty => empty.insert(BufWriter::with_capacity(64 * PAGE_BYTES, temporary()?)),
        };
        self.page_cpus.push(cpu);
        spool.write_all(&page).map_err(temporary_error)
    }

    fn remember(&mut self, tid: Tid, tgid: Option<Pid>, name: Option<&[u8]>) {
        // The saved names do not include the idle task: its thread id is 0 on every CPU.
        self.threads.learn(tid, tgid, name.filter(|_| tid.is_thread()));
    }

    /// Copies all pages from the temporary file to `out`, one CPU after the other.
    fn copy_pages_by_cpu(&mut self, out: &mut Out) -> io::Result<()> {
        let Some(spool) = self.spool.take() else { return Ok(()) };
        let mut file = spool.into_inner().map_err(|error| temporary_error(error.into_error()))?;
        let mut order: Vec<(Cpu, u64)> = self.page_cpus.iter().copied().zip(0..).collect();
        order.sort_unstable();
        let mut page = [0; PAGE_BYTES];
        let mut expected = u64::MAX;
        for (_, number) in order {
            if number != expected {
                file.seek(SeekFrom::Start(number * PAGE_BYTES as u64))?;
            }
            expected = number + 1;
            file.read_exact(&mut page)?;
            out.write_all(&page)?;
        }
        Ok(())
    }

    fn metadata(&self, cpus: u32, losses: &Losses) -> Metadata {
        let mut systems: BTreeMap<&str, Vec<Vec<u8>>> = BTreeMap::new();
        let mut ftrace = Vec::new();
        let mut seen = BTreeSet::new();
        for layout in self.layouts.iter().flatten().filter(|l| seen.insert(l.id)) {
            let format = layout.format.clone().into_bytes();
            match layout.system.as_str() {
                "ftrace" => ftrace.push(format),
                system => systems.entry(system).or_default().push(format),
            }
        }
        let lines = |map: &mut dyn Iterator<Item = (Tid, Vec<u8>)>| {
            let mut out = Vec::new();
            for (tid, text) in map {
                out.extend_from_slice(format!("{tid} ").as_bytes());
                out.extend(text.into_iter().map(|b| if b == b'\n' { b' ' } else { b }));
                out.push(b'\n');
            }
            out
        };
        let threads = self.threads.sorted();
        let clock = self.head.as_ref().map_or(Clock::Unknown, |h| h.clock);
        let clock = match clock {
            Clock::Unknown | Clock::Realtime => "[local]".to_owned(),
            Clock::Counter => "[x86-tsc]".to_owned(),
            clock => format!("[{}]", clock.name()),
        };
        let mut options = vec![
            (
                option::SAVED_TGIDS,
                lines(
                    &mut threads.iter().filter_map(|(tid, t)| Some((*tid, t.tgid?.to_string().into_bytes()))),
                ),
            ),
            (option::VERSION, format!("tracebridge {}\0", env!("CARGO_PKG_VERSION")).into_bytes()),
            (option::CPUCOUNT, cpus.to_ne_bytes().to_vec()),
        ];
        options.extend(trace_clock_option(&clock));
        if let Some(machine) = self.head.as_ref().and_then(|h| h.machine.clone()) {
            options.push((option::UNAME, (machine + "\0").into_bytes()));
        }
        let names = self.processes.iter().map(|(pid, (ppid, name))| (*pid, *ppid, name.clone()));
        let extra = RecorderInfo {
            complete: true,
            snapshots: self.head.as_ref().map(|h| h.snapshots.clone()).unwrap_or_default(),
            device: self.head.as_ref().and_then(|head| head.device.clone()),
            machine: self.head.as_ref().and_then(|head| head.facts.as_deref().cloned()),
            processes: names.collect(),
            losses: losses.to_json().and_then(|losses| serde_json::from_str(&losses).ok()),
            ..RecorderInfo::default()
        };
        Metadata {
            long_size: LONG_BYTES,
            page_size: PAGE_BYTES as u32,
            header_page: page_writer::page_layout().header_page().into_bytes(),
            header_event: page_writer::header_event().into_bytes(),
            ftrace_formats: ftrace,
            event_formats: systems.into_iter().map(|(s, f)| (s.to_owned(), f)).collect(),
            kallsyms: KALLSYMS.into(),
            printk_formats: Vec::new(),
            comms: lines(&mut threads.iter().filter_map(|(tid, t)| Some((*tid, t.name.clone()?)))),
            options,
            clock: clock.into_bytes(),
            extra: serde_json::to_vec(&extra).unwrap_or_default(),
        }
    }
}

/// Opens a temporary file that has no name and is gone once it is closed.
fn temporary() -> io::Result<File> {
    let target = std::env::temp_dir().join("tracebridge.pages");
    let (file, path) = create_beside(&target, Readers::Owner).map_err(temporary_error)?;
    std::fs::remove_file(path).map_err(temporary_error)?;
    Ok(file)
}

/// An error of the temporary file, which names the file's directory.
fn temporary_error(error: io::Error) -> io::Error {
    let dir = std::env::temp_dir();
    io::Error::new(
        error.kind(),
        format!("temporary file in {}: {error} (set TMPDIR to a place with room)", dir.display()),
    )
}

impl Sink for DatWriter {
    fn head(&mut self, head: &Head) -> io::Result<()> {
        self.head = Some(head.clone());
        Ok(())
    }

    fn event_type(&mut self, id: EventTypeId, kind: &EventType) -> io::Result<()> {
        self.layouts.push(DatRecordLayout::new(id.0, kind));
        let pairs = [("pid", "comm"), ("prev_pid", "prev_comm"), ("next_pid", "next_comm")];
        let fields = pairs.iter().filter_map(|(pid, comm)| Some((kind.field(pid)?, kind.field(comm)?)));
        self.thread_name_fields.push(if kind.system == "sched" { fields.collect() } else { Vec::new() });
        Ok(())
    }

    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        self.remember(thread.tid, thread.tgid, thread.name);
        Ok(())
    }

    fn process(&mut self, process: &ProcessInfo<'_>) -> io::Result<()> {
        self.threads.learn(process.pid.main_thread(), Some(process.pid), None);
        if let Some(name) = process.name {
            let name = String::from_utf8_lossy(name).into_owned();
            self.processes.insert(process.pid, (process.ppid.unwrap_or_default(), name));
        }
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        if event.comm.is_some() || event.tgid.is_some() {
            self.remember(event.tid, event.tgid, event.comm);
        }
        for (pid, comm) in self.thread_name_fields.get(event.kind.0 as usize).cloned().unwrap_or_default() {
            let tid = event.tid_at(kind, pid).unwrap_or_default();
            self.remember(tid, None, event.text(kind, comm));
        }
        let Some(Some(layout)) = self.layouts.get(event.kind.0 as usize) else {
            return Err(DatWriteError::TooManyTypes.into());
        };
        self.record.clear();
        self.unfit_flags += u64::from(event.flags > u16::from(u8::MAX));
        self.unfit_values += layout.encode(event, kind, &mut self.record);
        self.unfit_values += u64::from(self.record.len() > MAX_RECORD_BYTES);
        self.record.truncate(MAX_RECORD_BYTES);
        let record = std::mem::take(&mut self.record);
        let page = self.page(event.cpu)?.push(event.ts, &record);
        self.record = record;
        self.spool(event.cpu, page)
    }

    fn lost(&mut self, cpu: Cpu, count: Option<u64>) -> io::Result<()> {
        let page = self.page(cpu)?.lost(count);
        self.spool(cpu, page)
    }
}

impl TimelineSink for DatWriter {
    fn order(&mut self) -> Order {
        Order::Time
    }

    fn finish(&mut self, summary: &MergeSummary) -> io::Result<()> {
        for (cpu, mut page) in std::mem::take(&mut self.cpus) {
            let last = page.take();
            self.spool(cpu, last)?;
        }
        let count = self.page_cpus.iter().max().map_or(1, |last| last.count_if_last());
        let metadata = self.metadata(count, &summary.report.losses);
        // The offset of each CPU's pages is a multiple of the page size.
        let mut table = vec![CpuData::default(); count as usize];
        for cpu in &self.page_cpus {
            table[cpu.index()].size += PAGE_BYTES as u64;
        }
        let mut at = (metadata.v6(&table).bytes.len() as u64).next_multiple_of(PAGE_BYTES as u64);
        for cpu in &mut table {
            cpu.offset = at;
            at += cpu.size;
        }
        let mut head = metadata.v6(&table).bytes;
        head.resize(head.len().next_multiple_of(PAGE_BYTES), 0);
        let Some(mut out) = self.out.take() else { return Ok(()) };
        out.write_all(&head)?;
        self.copy_pages_by_cpu(&mut out)?;
        out.flush()
    }

    fn not_written(&mut self) -> DataCounts {
        let mut counts = DataCounts::default();
        counts.add(DataKind::FieldValues, self.unfit_values);
        counts.add(DataKind::Flags, self.unfit_flags);
        counts
    }
}
