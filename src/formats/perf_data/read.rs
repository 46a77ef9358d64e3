//! Reads the records of a perf.data file: follows processes, threads and their files, and pushes the samples.

use std::io;

use rustc_hash::FxHashMap;

use super::aux_data::AuxData;
use super::bytes::{Bytes, lossy};
use super::features::{self, FileSymbols, FileType, feature};
use super::file::PerfFile;
use super::records::{Layouts, PerfRecord, RawSample, RecordWalk, record_type};
use super::resolver::{ChainNumbers, Map, Resolver, StackHash};
use crate::clock::Timestamp;
use crate::formats::Damage;
use crate::formats::samples::{
    KERNEL_PATH, Sample, SampleCollector, SampleReading, SampleSink, SampleTables,
};
use crate::ids::{Pid, Tid};
use crate::progress::{self, Pass};

/// The part of a record's `misc` that says where the processor was, and its value for the kernel.
const CPU_MODE: u16 = 7;
const KERNEL_MODE: u16 = 1;
/// `PERF_RECORD_MISC_SWITCH_OUT`: the thread stops running.
const SWITCH_OUT: u16 = 1 << 13;
/// `PERF_RECORD_MISC_MMAP_BUILD_ID`: the record of a map has the build id of its file.
const MAP_BUILD_ID: u16 = 1 << 14;
/// simpleperf's bit in `prot` of a map whose file has the symbols of methods that were compiled while they
/// ran (`PROT_JIT_SYMFILE_MAP`).
const JIT_SYMBOLS: u32 = 0x4000;
/// The process and the thread of a processor that has nothing to do, and their name, which no record states.
const IDLE: (u32, u32) = (0, 0);
const IDLE_NAME: &str = "swapper";
/// The first of the times that `perf record --off-cpu` makes up (`OFF_CPU_TIMESTAMP`).
const FIRST_MADE_UP_TIME: Timestamp = Timestamp(!0 << 32);
/// How the messages of `perf record` begin. Where its output and its messages went to one file, they follow.
const PERF_MESSAGE: &[u8] = b"[ perf record:";
/// Files with fewer bytes of records are read by one thread.
const MIN_BYTES_OF_THREAD: usize = 4 << 20;
/// The number of records that are handed on together, and of such batches that may wait.
const BATCH_RECORDS: usize = 1 << 10;
const WAITING_BATCHES: usize = 8;
/// The number of bytes between two reports of the progress.
const PROGRESS_BYTES: usize = 1 << 20;

/// Pushes the samples of a file.
pub(super) fn read(file: &PerfFile<'_>, sink: &mut dyn SampleSink) -> io::Result<SampleReading> {
    let is_big_endian = file.is_big_endian;
    let traces_off_cpu = file.meta_info().get("trace_offcpu").is_some_and(|value| value == "true");
    let mut tables = SampleTables::default();
    tables.events.extend(file.attributes.iter().map(|attribute| attribute.event(traces_off_cpu)));
    let section = |number| file.features.get(&number).copied().unwrap_or(&[]);
    let mut files = features::files(section(feature::FILE), is_big_endian);
    files.extend(features::files2(section(feature::FILE2), is_big_endian));
    let build_ids = features::build_ids(section(feature::BUILD_ID), is_big_endian);
    let mut reader = PerfReader {
        is_big_endian,
        layouts: Layouts::new(&file.attributes, is_big_endian),
        resolver: Resolver::new(files, build_ids, is_big_endian, file.is_simpleperf()),
        collector: SampleCollector::default(),
        threads: FxHashMap::default(),
        names: FxHashMap::default(),
        old_files: FxHashMap::default(),
        known_stacks: Vec::new(),
        counted: FxHashMap::default(),
        lost: LostCounts::default(),
        aux: AuxData::default(),
        short: 0,
        compressed: 0,
        not_unwound: 0,
    };
    reader.collector.reading.tables = tables;
    let _pass = Pass::begin("reading samples", file.records.len() as u64);
    let mut batches = RecordBatches::new(&file.records, reader.layouts.clone(), is_big_endian);
    if file.records.len() < MIN_BYTES_OF_THREAD || !reader.read_beside(&mut batches, sink)? {
        while let Some(batch) = batches.next() {
            reader.batch(&batch, sink)?;
        }
    }
    reader.finish(file, batches.walk.broken_at, sink)
}

/// A record, and of a sample what it says. `None` where the record is too short for its fields.
struct WalkedRecord<'a> {
    record: PerfRecord<'a>,
    sample: Option<RawSample<'a>>,
    /// The number of the sample's chain.
    chain: u32,
}

/// Takes the records of a file apart, in the order of time.
struct RecordBatches<'a> {
    walk: RecordWalk<'a>,
    layouts: Layouts,
    chains: ChainNumbers,
    /// Those of the batch that is being made.
    hashes: Vec<Option<StackHash>>,
    /// So many bytes have been reported as progress.
    reported: usize,
}

impl<'a> RecordBatches<'a> {
    fn new(records: &'a [u8], layouts: Layouts, is_big_endian: bool) -> RecordBatches<'a> {
        let walk = RecordWalk::new(records, is_big_endian);
        RecordBatches { walk, layouts, chains: ChainNumbers::default(), hashes: Vec::new(), reported: 0 }
    }

    /// The next records.
    fn next(&mut self) -> Option<Vec<WalkedRecord<'a>>> {
        let mut batch = Vec::with_capacity(BATCH_RECORDS);
        while batch.len() < BATCH_RECORDS
            && let Some(record) = self.walk.next(&mut self.layouts)
        {
            let is_sample = record.kind == record_type::SAMPLE;
            let sample = is_sample.then(|| self.layouts.list[record.attribute].sample(record.body)).flatten();
            batch.push(WalkedRecord { record, sample, chain: 0 });
        }
        // The places of most numbers lie far away in memory: in a short loop the processor fetches several
        // at a time.
        self.hashes.clear();
        let samples = |walked: &WalkedRecord<'_>| {
            walked.sample.as_ref().map(|sample| StackHash::new(walked.record.misc, sample))
        };
        self.hashes.extend(batch.iter().map(samples));
        for (walked, hash) in batch.iter_mut().zip(&self.hashes) {
            if let Some(hash) = hash {
                walked.chain = self.chains.of(*hash);
            }
        }
        if self.walk.position() - self.reported > PROGRESS_BYTES {
            progress::advance((self.walk.position() - self.reported) as u64);
            self.reported = self.walk.position();
        }
        (!batch.is_empty()).then_some(batch)
    }
}

/// Two counts of what is lost. perf asks the kernel at the end how many samples it lost, and writes a record
/// of it: most of them are those that a record of the kernel has counted before.
#[derive(Default)]
struct LostCounts {
    records: u64,
    samples: u64,
}

struct PerfReader {
    is_big_endian: bool,
    layouts: Layouts,
    resolver: Resolver,
    collector: SampleCollector,
    /// By process and thread: the index of the thread.
    threads: FxHashMap<(u32, u32), u32>,
    /// The latest names, also of threads without samples.
    names: FxHashMap<u32, String>,
    /// Files of simpleperf's first versions, which wrote them as records.
    old_files: FxHashMap<u64, FileSymbols>,
    /// The stacks of some samples in a row, as far as they are known.
    known_stacks: Vec<Option<u32>>,
    /// By counter and thread: the last value that a sample had.
    counted: FxHashMap<(u64, u32), u64>,
    lost: LostCounts,
    aux: AuxData,
    /// Samples that are shorter than their fields.
    short: u64,
    /// Compressed records of a file that says it has none.
    compressed: u64,
    /// Samples that have the memory of the stack, and no frames from it.
    not_unwound: u64,
}

impl PerfReader {
    /// Reads the records that another thread takes apart. Returns whether there was such a thread.
    fn read_beside(
        &mut self,
        batches: &mut RecordBatches<'_>,
        sink: &mut dyn SampleSink,
    ) -> io::Result<bool> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(WAITING_BATCHES);
        std::thread::scope(|scope| {
            let walk = move || {
                while let Some(batch) = batches.next() {
                    if sender.send(batch).is_err() {
                        return;
                    }
                }
            };
            let Ok(walker) = std::thread::Builder::new().spawn_scoped(scope, walk) else { return Ok(false) };
            let read = receiver.iter().try_for_each(|batch: Vec<WalkedRecord<'_>>| self.batch(&batch, sink));
            // Without the receiver the walk ends.
            drop(receiver);
            if let Err(panic) = walker.join() {
                std::panic::resume_unwind(panic);
            }
            read.map(|()| true)
        })
    }

    /// Reads records. Between two other records, nothing changes what the addresses of samples mean.
    fn batch(&mut self, batch: &[WalkedRecord<'_>], sink: &mut dyn SampleSink) -> io::Result<()> {
        let mut known = std::mem::take(&mut self.known_stacks);
        let is_sample = |walked: &WalkedRecord<'_>| walked.record.kind == record_type::SAMPLE;
        for records in batch.chunk_by(|a, b| is_sample(a) && is_sample(b)) {
            known.clear();
            known.extend(
                records.iter().map(|walked| self.resolver.known_stack(walked.sample.as_ref()?, walked.chain)),
            );
            for (walked, known) in records.iter().zip(&known) {
                self.record(walked, *known, sink)?;
            }
        }
        self.known_stacks = known;
        Ok(())
    }

    fn record(
        &mut self,
        walked: &WalkedRecord<'_>,
        known_stack: Option<u32>,
        sink: &mut dyn SampleSink,
    ) -> io::Result<()> {
        let record = &walked.record;
        match record.kind {
            record_type::SAMPLE => return self.sample(walked, known_stack, sink),
            record_type::SWITCH | record_type::SWITCH_CPU_WIDE => return self.switch(record, sink),
            record_type::MMAP => _ = self.map(record, false),
            record_type::MMAP2 => _ = self.map(record, true),
            record_type::COMM => _ = self.comm(record.body),
            record_type::FORK => _ = self.fork(record.body),
            record_type::LOST => _ = self.lost_records(record.body),
            record_type::LOST_SAMPLES => _ = self.lost_samples(record.body),
            record_type::THROTTLE => self.collector.reading.losses.throttled += 1,
            record_type::AUX => self.aux.written(self.bytes(record.body)),
            record_type::AUXTRACE_INFO => self.aux.info(self.bytes(record.body)),
            record_type::AUXTRACE => self.aux.piece(self.bytes(record.body)),
            record_type::COMPRESSED | record_type::COMPRESSED2 => self.compressed += 1,
            record_type::KSYMBOL => _ = self.kernel_symbol(record.body),
            record_type::KERNEL_SYMBOL => self.kallsyms(record.body),
            record_type::DSO => _ = self.old_file(record.body),
            record_type::SYMBOL => _ = self.old_symbol(record.body),
            _ => {}
        }
        Ok(())
    }

    fn bytes<'a>(&self, body: &'a [u8]) -> Bytes<'a> {
        Bytes::new(body, self.is_big_endian)
    }

    fn sample(
        &mut self,
        walked: &WalkedRecord<'_>,
        known_stack: Option<u32>,
        sink: &mut dyn SampleSink,
    ) -> io::Result<()> {
        let record = &walked.record;
        let Some(raw) = &walked.sample else {
            self.short += 1;
            return Ok(());
        };
        self.not_unwound += u64::from(raw.copies_stack);
        let thread = self.thread(raw.pid, raw.tid);
        let tables = &mut self.collector.reading.tables;
        let stack =
            known_stack.unwrap_or_else(|| self.resolver.stack(tables, record.misc, raw, walked.chain));
        let event = record.attribute as u32;
        // perf gives samples that it makes at the end such a time, so that they come last.
        let time = if raw.time >= FIRST_MADE_UP_TIME { Timestamp::MIN } else { raw.time };
        let sample = Sample { time, thread, event, stack, cpu: raw.cpu, period: raw.period };
        if self.layouts.list[record.attribute].states_off_cpu() {
            return self.collector.push(sample, sink);
        }
        let layout = &self.layouts.list[record.attribute];
        let Some(counters) = layout.counters(record.body) else {
            return self.collector.take(sample, sink);
        };
        let thread = layout.counting_thread(raw.tid);
        if self.resolver.is_simpleperf && !layout.is_added_counter() {
            self.collector.take(sample, sink)?;
        }
        self.counters(sample, thread, &counters, sink)
    }

    /// Takes a sample of a group of event types: it is one of each that has counted since the last one, as
    /// for perf. For simpleperf it is one of each added counter, and its own event type has the period that
    /// the sample states.
    fn counters(
        &mut self,
        sample: Sample,
        thread: u32,
        counters: &[(u64, u64)],
        sink: &mut dyn SampleSink,
    ) -> io::Result<()> {
        for (id, value) in counters {
            let before = self.counted.insert((*id, thread), *value).unwrap_or(0);
            let Some(event) = self.layouts.by_id.get(id) else { continue };
            if self.resolver.is_simpleperf && !self.layouts.list[*event].is_added_counter() {
                continue;
            }
            let period = value.wrapping_sub(before);
            if period > 0 {
                self.collector.take(Sample { event: *event as u32, period, ..sample }, sink)?;
            }
        }
        Ok(())
    }

    fn thread(&mut self, pid: u32, tid: u32) -> u32 {
        if let Some(thread) = self.threads.get(&(pid, tid)) {
            return *thread;
        }
        let unnamed = || if (pid, tid) == IDLE { IDLE_NAME.to_owned() } else { String::new() };
        let name = self.names.get(&tid).cloned().unwrap_or_else(unnamed);
        let index = self.collector.add_thread(Pid(pid as i32), Tid(tid as i32), name);
        self.threads.insert((pid, tid), index);
        index
    }

    fn switch(&mut self, record: &PerfRecord<'_>, sink: &mut dyn SampleSink) -> io::Result<()> {
        if record.misc & SWITCH_OUT != 0 {
            return Ok(());
        }
        let thread = self.layouts.list[record.attribute].thread(record.body);
        match thread.and_then(|key| self.threads.get(&key)) {
            Some(thread) => self.collector.runs_again(*thread, record.time, sink),
            None => Ok(()),
        }
    }

    /// A process, or the kernel, maps a part of a file.
    fn map(&mut self, record: &PerfRecord<'_>, is_second_form: bool) -> Option<()> {
        let mut bytes = self.bytes(record.body);
        let pid = bytes.u32()?;
        let _tid = bytes.u32()?;
        let start = bytes.u64()?;
        let len = bytes.u64()?;
        let offset = bytes.u64()?;
        let mut prot = 0;
        let mut build_id = None;
        if is_second_form {
            // The device, the inode and its generation; or the length of the build id, and the build id.
            let identity = bytes.take(24)?;
            let id = identity.get(4..4 + usize::from(identity[0])).filter(|id| !id.is_empty());
            build_id = id.filter(|_| record.misc & MAP_BUILD_ID != 0);
            prot = bytes.u32()?;
            let _flags = bytes.u32()?;
        }
        let path = lossy(bytes.text());
        let end = start.saturating_add(len);
        if start == end {
            return None;
        }
        if let Some(id) = build_id {
            self.resolver.add_build_id(&path, id);
        }
        let module = self.resolver.module(&mut self.collector.reading.tables, &path);
        let is_jit_symbols = prot & JIT_SYMBOLS != 0;
        let map = Map { start, end, offset, module, is_jit_symbols };
        if record.misc & CPU_MODE == KERNEL_MODE {
            self.resolver.spaces.add_kernel(map);
        } else {
            self.resolver.spaces.add(pid, map);
        }
        Some(())
    }

    fn comm(&mut self, body: &[u8]) -> Option<()> {
        let mut bytes = self.bytes(body);
        let pid = bytes.u32()?;
        let tid = bytes.u32()?;
        let name = lossy(bytes.text());
        if let Some(thread) = self.threads.get(&(pid, tid)) {
            self.collector.reading.tables.threads[*thread as usize].name.clone_from(&name);
        }
        self.names.insert(tid, name);
        Some(())
    }

    fn fork(&mut self, body: &[u8]) -> Option<()> {
        let mut bytes = self.bytes(body);
        let pid = bytes.u32()?;
        let parent = bytes.u32()?;
        let tid = bytes.u32()?;
        let parent_thread = bytes.u32()?;
        self.resolver.spaces.fork(pid, parent);
        if let Some(name) = self.names.get(&parent_thread).cloned() {
            self.names.insert(tid, name);
        }
        Some(())
    }

    /// Counts records of any kind for which a buffer of the kernel had no place.
    fn lost_records(&mut self, body: &[u8]) -> Option<()> {
        let mut bytes = self.bytes(body);
        let _id = bytes.u64()?;
        self.lost.records = self.lost.records.saturating_add(bytes.u64()?);
        Some(())
    }

    /// Counts samples that were lost.
    fn lost_samples(&mut self, body: &[u8]) -> Option<()> {
        let count = self.bytes(body).u64()?;
        self.lost.samples = self.lost.samples.saturating_add(count);
        Some(())
    }

    /// A function that the kernel has made while it ran, of BPF for one.
    fn kernel_symbol(&mut self, body: &[u8]) -> Option<()> {
        const UNREGISTERS: u16 = 1;
        let mut bytes = self.bytes(body);
        let start = bytes.u64()?;
        let len = bytes.u32()?;
        let _kind = bytes.u16()?;
        let flags = bytes.u16()?;
        let name = lossy(bytes.text());
        if flags & UNREGISTERS != 0 || len == 0 {
            return None;
        }
        let path = format!("[{name}]");
        let module = self.resolver.module(&mut self.collector.reading.tables, &path);
        let mut file = FileSymbols::new(path, FileType::SymbolMap, 0);
        file.add(start, u64::from(len), name.as_bytes());
        self.resolver.add_file(file);
        let end = start.saturating_add(u64::from(len));
        self.resolver.spaces.add_kernel(Map { start, end, offset: 0, module, is_jit_symbols: false });
        Some(())
    }

    fn kallsyms(&mut self, body: &[u8]) {
        let mut bytes = self.bytes(body);
        let Some(text) = bytes.u32().and_then(|len| bytes.take(len as usize)) else { return };
        let mut file = FileSymbols::new(KERNEL_PATH.to_owned(), FileType::Kernel, 0);
        file.add_kallsyms(text);
        self.resolver.add_file(file);
    }

    /// A file, of simpleperf's first versions; its symbols follow.
    fn old_file(&mut self, body: &[u8]) -> Option<()> {
        let mut bytes = self.bytes(body);
        let kind = bytes.u64()?;
        let id = bytes.u64()?;
        let min_vaddr = bytes.u64()?;
        let kind = FileType::from_number(u32::try_from(kind).unwrap_or(u32::MAX));
        let file = FileSymbols::new(lossy(bytes.text()), kind, min_vaddr);
        self.old_files.insert(id, file);
        Some(())
    }

    fn old_symbol(&mut self, body: &[u8]) -> Option<()> {
        let mut bytes = self.bytes(body);
        let address = bytes.u64()?;
        let len = bytes.u64()?;
        let id = bytes.u64()?;
        let file = self.old_files.get_mut(&id)?;
        file.add(address, len, bytes.text());
        Some(())
    }

    fn finish(
        mut self,
        file: &PerfFile<'_>,
        broken_at: Option<usize>,
        sink: &mut dyn SampleSink,
    ) -> io::Result<SampleReading> {
        self.collector.reading.losses.lost = self.lost.records.max(self.lost.samples);
        let mut reading = self.collector.finish(sink)?;
        let report = &mut reading.report;
        report.damage.extend(file.damage.iter().cloned());
        report.notes.extend(file.notes.iter().cloned());
        self.aux.report(report);
        let rest = broken_at.and_then(|at| file.records.get(at..)).unwrap_or(&[]);
        if rest.starts_with(PERF_MESSAGE) {
            report.notes.push("the messages that perf record printed stand behind the records".to_owned());
        } else if let Some(at) = broken_at {
            let left = file.records.len() - at;
            let what =
                format!("a record is cut or has an impossible size: the last {left} bytes are not read");
            report.damage.push(Damage { offset: file.records_at + at as u64, what });
        }
        if self.short > 0 {
            let what = format!("{} samples are shorter than their fields, and are not counted", self.short);
            report.damage.push(Damage { offset: file.records_at, what });
        }
        if self.compressed > 0 && !file.is_compressed {
            let what = format!(
                "{} compressed records are not read: the head says that there are none",
                self.compressed
            );
            report.damage.push(Damage { offset: file.records_at, what });
        }
        if self.resolver.spaces.left_out > 0 {
            let left_out = self.resolver.spaces.left_out;
            let what = format!("{left_out} maps of files are more than memory should hold, and are left out");
            report.damage.push(Damage { offset: file.records_at, what });
        }
        let corrupt = self.resolver.corrupt_chains;
        if corrupt > 0 {
            report.notes.push(format!(
                "{corrupt} different call chains hold addresses that none can have: of each the function alone \
                 is taken that was running"
            ));
        }
        if self.not_unwound > 0 {
            report.notes.push(format!(
                "{} samples hold the memory of their stack in place of its frames (--call-graph dwarf): it is \
                 not unwound, and the callers in their programs are missing",
                self.not_unwound
            ));
        }
        Ok(reading)
    }
}
