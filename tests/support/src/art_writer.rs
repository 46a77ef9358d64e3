//! Writes ART method traces, version 3 with both clocks, byte for byte as the runtime does: for the reference
//! app and for tests that need a trace they know everything about. Layout: AOSP art, runtime/trace.h and
//! trace.cc.

use std::fmt::Write as _;

/// `SLOW`, little-endian.
const MAGIC: u32 = 0x574f_4c53;
/// With both clocks: u16 thread, u32 method and action, u32 thread-CPU µs, u32 wall µs.
const RECORD_SIZE: u16 = 14;
/// With one clock, as the header states it.
const SINGLE_RECORD_SIZE: u16 = 10;
/// The bytes that ART 11 and 12 write behind each record of a streaming file with one clock: a part of an
/// address that their buffer had there.
const FILLER: [u8; 4] = [0xdb, 0x7f, 0, 0];

/// A streaming file with one clock.
#[derive(Debug, Clone, Copy)]
pub struct SingleClockStream {
    /// The records have wall time; otherwise they have thread-CPU time.
    pub is_wall: bool,
    /// Records have 4 bytes more than the header states, as ART 11 and 12 write them.
    pub has_filler: bool,
    /// The file has the summary at its end.
    pub ended: bool,
}
/// Where the records begin, counted from the magic.
const DATA_OFFSET: usize = 32;

/// The event of a method; the low two bits of a record's method word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It was called.
    Enter = 0,
    /// It returned.
    Exit = 1,
    /// An exception left it.
    Unroll = 2,
}

/// One record, in the order in which it is to be written.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// The id in [`ArtTrace::threads`].
    pub thread: u16,
    /// The index in [`ArtTrace::methods`].
    pub method: u32,
    /// Enter, exit or unroll.
    pub action: Action,
    /// The thread's CPU time since its first record, µs.
    pub cpu_us: u32,
    /// Since the trace's start, µs.
    pub wall_us: u32,
}

impl Record {
    pub fn new(thread: u16, method: u32, action: Action, cpu_us: u32, wall_us: u32) -> Record {
        Record { thread, method, action, cpu_us, wall_us }
    }
}

/// One method as the header declares it.
#[derive(Debug, Clone)]
pub struct Method {
    /// `com.example.Work`, for Dalvik too.
    pub class: String,
    /// `run`.
    pub name: String,
    /// `()V`.
    pub signature: String,
    /// `Work.java`.
    pub file: String,
}

impl Method {
    /// A method without parameters and result, in a file with the name of its class.
    pub fn new(class: &str, name: &str) -> Method {
        let file = format!("{}.java", class.rsplit('.').next().unwrap_or(class));
        Method { class: class.into(), name: name.into(), signature: "()V".into(), file }
    }
}

/// All of a trace.
#[derive(Debug, Clone, Default)]
pub struct ArtTrace {
    /// Written by Dalvik: `vm=dalvik`, no pid, methods as pointers with slashes and line numbers.
    pub dalvik: bool,
    /// When it began, µs, in the clock that the runtime's age brings with it.
    pub start_us: u64,
    /// How long it took, µs.
    pub elapsed_us: u64,
    /// The `pid=` key.
    pub pid: u32,
    /// Ids and full names.
    pub threads: Vec<(u16, String)>,
    /// Methods, by index.
    pub methods: Vec<Method>,
    /// Records in file order: by time in each thread, not over all of them.
    pub records: Vec<Record>,
}

impl ArtTrace {
    /// The file as a runtime writes it when tracing to a buffer: text, then records.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.summary(true).into_bytes();
        self.header(&mut out, 3);
        for record in &self.records {
            self.record(&mut out, record);
        }
        out
    }

    /// The file as a runtime writes it when streaming: records, with each thread and method declared before
    /// its first use, and the summary at the end; without it (`ended` is false) as a killed app leaves it.
    pub fn to_streaming_bytes(&self, ended: bool) -> Vec<u8> {
        self.stream(0xf3, ended.then_some("dual"), |out, record| self.record(out, record))
    }

    /// A streaming file whose records have one of the times.
    pub fn to_single_clock_stream(&self, form: SingleClockStream) -> Vec<u8> {
        let clock = if form.is_wall { "wall" } else { "thread-cpu" };
        self.stream(0xf2, form.ended.then_some(clock), |out, record| {
            self.record(out, record);
            let time = if form.is_wall { record.wall_us } else { record.cpu_us };
            out.truncate(out.len() - 8);
            out.extend(time.to_le_bytes());
            out.extend(form.has_filler.then_some(FILLER).into_iter().flatten());
        })
    }

    fn stream(
        &self,
        version: u16,
        clock_of_summary: Option<&str>,
        write_record: impl Fn(&mut Vec<u8>, &Record),
    ) -> Vec<u8> {
        let mut out = Vec::new();
        self.header(&mut out, version);
        let mut threads_seen = vec![false; usize::from(u16::MAX) + 1];
        let mut methods_seen = vec![false; self.methods.len()];
        for record in &self.records {
            if !std::mem::replace(&mut methods_seen[record.method as usize], true) {
                let line = self.method_line(record.method);
                out.extend([0, 0, 1]);
                out.extend((line.len() as u16).to_le_bytes());
                out.extend(line.as_bytes());
            }
            if !std::mem::replace(&mut threads_seen[usize::from(record.thread)], true) {
                let name =
                    self.threads.iter().find(|(id, _)| *id == record.thread).map_or("", |(_, name)| name);
                out.extend([0, 0, 2]);
                out.extend(record.thread.to_le_bytes());
                out.extend((name.len() as u16).to_le_bytes());
                out.extend(name.as_bytes());
            }
            write_record(&mut out, record);
        }
        if let Some(clock) = clock_of_summary {
            let summary = self.summary(false).replace("clock=dual", &format!("clock={clock}"));
            out.extend([0, 0, 3]);
            out.extend((summary.len() as u32).to_le_bytes());
            out.extend(summary.as_bytes());
        }
        out
    }

    /// The text part.
    fn summary(&self, regular: bool) -> String {
        let mut text = String::new();
        let vm = if self.dalvik { "dalvik" } else { "art" };
        let _ = write!(text, "*version\n3\ndata-file-overflow=false\nclock=dual\n");
        let _ = writeln!(text, "elapsed-time-usec={}", self.elapsed_us);
        if regular {
            let _ = writeln!(text, "num-method-calls={}", self.records.len());
        }
        let _ = write!(text, "clock-call-overhead-nsec=150\nvm={vm}\n");
        if !self.dalvik {
            let _ = writeln!(text, "pid={}", self.pid);
        }
        text.push_str("*threads\n");
        for (id, name) in &self.threads {
            let _ = writeln!(text, "{id}\t{name}");
        }
        text.push_str("*methods\n");
        // A streamed one has declared its methods among the records.
        for index in 0..if regular { self.methods.len() as u32 } else { 0 } {
            text.push_str(&self.method_line(index));
        }
        text.push_str("*end\n");
        text
    }

    fn header(&self, out: &mut Vec<u8>, version: u16) {
        let start = out.len();
        out.extend(MAGIC.to_le_bytes());
        out.extend(version.to_le_bytes());
        out.extend((DATA_OFFSET as u16).to_le_bytes());
        out.extend(self.start_us.to_le_bytes());
        let record_size = if version == 0xf2 { SINGLE_RECORD_SIZE } else { RECORD_SIZE };
        out.extend(record_size.to_le_bytes());
        out.resize(start + DATA_OFFSET, 0);
    }

    fn record(&self, out: &mut Vec<u8>, record: &Record) {
        out.extend(record.thread.to_le_bytes());
        out.extend((self.method_id(record.method) | record.action as u32).to_le_bytes());
        out.extend(record.cpu_us.to_le_bytes());
        out.extend(record.wall_us.to_le_bytes());
    }

    /// ART numbers its methods as it meets them, Dalvik uses their addresses; both leave two bits for the
    /// action.
    fn method_id(&self, index: u32) -> u32 {
        if self.dalvik { 0x4110_0000 + index * 56 } else { index << 2 }
    }

    fn method_line(&self, index: u32) -> String {
        let Method { class, name, signature, file } = &self.methods[index as usize];
        let id = self.method_id(index);
        if self.dalvik {
            format!("{id:#010x}\t{}\t{name}\t{signature}\t{file}\t{}\n", class.replace('.', "/"), 10 + index)
        } else {
            format!("{id:#x}\t{class}\t{name}\t{signature}\t{file}\n")
        }
    }
}
