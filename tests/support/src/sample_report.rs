//! Writes samples as simpleperf's `report-sample --protobuf` does, of threads, functions and times that a
//! test decides.

/// The magic and the version of the format.
const HEAD: &[u8] = b"SIMPLEPERF\x01\x00";

/// A report of samples that grows.
#[derive(Default)]
pub struct SampleReport {
    samples: Vec<Vec<u8>>,
    /// The functions: the index is the id of the symbol.
    functions: Vec<String>,
    threads: Vec<(u32, u32, String)>,
    /// Whether samples are also taken where threads stop running.
    pub traces_off_cpu: bool,
}

/// The execution type of a method that was compiled while the app ran.
const COMPILED_WHILE_IT_RAN: u64 = 2;

/// Whether a function is a method of Java: `com.example.Foo.bar`.
fn is_method(function: &str) -> bool {
    function.contains('.') && !function.contains("::")
}

/// The event type of samples of running threads, and that of threads that stop running.
pub const RUNNING: u32 = 0;
pub const OFF_CPU: u32 = 1;

impl SampleReport {
    /// Adds a thread.
    pub fn thread(&mut self, pid: u32, tid: u32, name: &str) {
        self.threads.push((pid, tid, name.to_owned()));
    }

    /// Adds a sample of a thread at a time, ns, with its functions, the innermost first.
    pub fn sample(&mut self, time: u64, tid: u32, event: u32, functions: &[&str]) {
        let mut sample = Vec::new();
        number(&mut sample, 1, time);
        number(&mut sample, 2, tid.into());
        for function in functions {
            let symbol = self.symbol(function);
            let mut entry = Vec::new();
            number(&mut entry, 1, 0x1000 + 16 * symbol);
            number(&mut entry, 2, 0);
            number(&mut entry, 3, symbol);
            if is_method(function) {
                number(&mut entry, 4, COMPILED_WHILE_IT_RAN);
            }
            message(&mut sample, 3, &entry);
        }
        number(&mut sample, 4, 1_000_000);
        number(&mut sample, 5, event.into());
        self.samples.push(sample);
    }

    fn symbol(&mut self, function: &str) -> u64 {
        let known = self.functions.iter().position(|name| name == function);
        let index = known.unwrap_or_else(|| {
            self.functions.push(function.to_owned());
            self.functions.len() - 1
        });
        index as u64
    }

    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = HEAD.to_vec();
        let mut record = |field: u32, body: &[u8]| {
            let mut bytes = Vec::new();
            message(&mut bytes, field, body);
            out.extend((bytes.len() as u32).to_le_bytes());
            out.extend(bytes);
        };
        self.samples.iter().for_each(|sample| record(1, sample));
        let mut file = Vec::new();
        number(&mut file, 1, 0);
        message(&mut file, 2, b"/data/app/libapp.so");
        self.functions.iter().for_each(|name| message(&mut file, 3, name.as_bytes()));
        record(3, &file);
        for (pid, tid, name) in &self.threads {
            let mut thread = Vec::new();
            number(&mut thread, 1, (*tid).into());
            number(&mut thread, 2, (*pid).into());
            message(&mut thread, 3, name.as_bytes());
            record(4, &thread);
        }
        let mut info = Vec::new();
        message(&mut info, 1, b"cpu-clock");
        message(&mut info, 1, b"sched:sched_switch");
        number(&mut info, 6, self.traces_off_cpu.into());
        record(5, &info);
        out.extend([0; 4]);
        out
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn number(out: &mut Vec<u8>, field: u32, value: u64) {
    varint(out, u64::from(field) << 3);
    varint(out, value);
}

fn message(out: &mut Vec<u8>, field: u32, body: &[u8]) {
    varint(out, u64::from(field) << 3 | 2);
    varint(out, body.len() as u64);
    out.extend_from_slice(body);
}
