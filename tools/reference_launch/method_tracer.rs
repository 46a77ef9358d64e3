//! The method tracer of the app's runtime: it collects the records of each Java thread.

use std::collections::HashMap;
use std::process;
use std::sync::{Arc, Mutex};

use nix::time::ClockId;

use crate::art_writer::{Action, ArtTrace, Method, Record};
use crate::stand_in::{Epoch, Era, kernel_ns};

/// The trace of a process.
#[derive(Clone)]
pub struct MethodTracer(Arc<Shared>);

struct Shared {
    is_on: bool,
    epoch: Epoch,
    trace: Mutex<ArtTrace>,
}

impl MethodTracer {
    /// Begins a trace as the runtime of Android 14 does; none if not `is_on`.
    pub fn start(is_on: bool) -> MethodTracer {
        let epoch = Epoch::now(Era::Art14);
        let trace = ArtTrace { start_us: epoch.start / 1000, pid: process::id(), ..ArtTrace::default() };
        MethodTracer(Arc::new(Shared { is_on, epoch, trace: Mutex::new(trace) }))
    }

    /// The calling thread, which is traced from now on.
    pub fn thread(&self, name: &str) -> JavaThread {
        let mut trace = self.0.trace.lock().expect("no thread panics");
        let id = trace.threads.len() as u16 + 1;
        trace.threads.push((id, name.to_owned()));
        JavaThread {
            tracer: self.clone(),
            id,
            cpu_start: kernel_ns(ClockId::CLOCK_THREAD_CPUTIME_ID),
            known: HashMap::new(),
            records: Vec::new(),
        }
    }

    /// The trace as a file, its calls and its methods. Threads must have ended.
    pub fn finish(&self) -> (Vec<u8>, usize, usize) {
        let mut trace = self.0.trace.lock().expect("no thread panics");
        trace.elapsed_us = u64::from(self.0.epoch.wall_us());
        (trace.to_bytes(), trace.records.len() / 2, trace.methods.len())
    }
}

/// A thread whose methods are traced. Its records join the trace when it is dropped.
pub struct JavaThread {
    tracer: MethodTracer,
    id: u16,
    cpu_start: u64,
    /// The methods that this thread has called, by name.
    known: HashMap<&'static str, u32>,
    records: Vec<Record>,
}

impl JavaThread {
    /// Calls a method, given as `package.Class.method`.
    pub fn call<T>(&mut self, method: &'static str, body: impl FnOnce(&mut JavaThread) -> T) -> T {
        let number = self.number_of(method);
        self.record(number, Action::Enter);
        let result = body(self);
        self.record(number, Action::Exit);
        result
    }

    /// Calls a method that calls no other and computes this long, µs.
    pub fn leaf(&mut self, method: &'static str, us: u64) {
        self.call(method, |_| crate::work(us));
    }

    fn number_of(&mut self, method: &'static str) -> u32 {
        let shared = &self.tracer.0;
        *self.known.entry(method).or_insert_with(|| {
            let (class, name) = method.rsplit_once('.').expect("package.Class.method");
            let methods = &mut shared.trace.lock().expect("no thread panics").methods;
            let known = methods.iter().position(|m| m.class == class && m.name == name);
            known.unwrap_or_else(|| {
                methods.push(Method::new(class, name));
                methods.len() - 1
            }) as u32
        })
    }

    fn record(&mut self, method: u32, action: Action) {
        if !self.tracer.0.is_on {
            return;
        }
        let cpu_ns = kernel_ns(ClockId::CLOCK_THREAD_CPUTIME_ID) - self.cpu_start;
        let wall_us = self.tracer.0.epoch.wall_us();
        self.records.push(Record {
            thread: self.id,
            method,
            action,
            cpu_us: (cpu_ns / 1000) as u32,
            wall_us,
        });
    }
}

impl Drop for JavaThread {
    fn drop(&mut self) {
        self.tracer.0.trace.lock().expect("no thread panics").records.append(&mut self.records);
    }
}
