//! The markers of a process: real writes to the kernel's trace_marker.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process;

/// Writes the markers of this process.
#[derive(Clone, Copy)]
pub struct Markers {
    pid: u32,
    file: Option<&'static File>,
}

impl Markers {
    /// Opens trace_marker, of the system's own tracefs unless another one is named. Where this process may
    /// not, nothing is written.
    pub fn open(tracefs: Option<&Path>) -> Markers {
        let usual = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].map(Path::new);
        let dirs = tracefs.map_or_else(|| usual.to_vec(), |dir| vec![dir]);
        let file =
            dirs.iter().find_map(|dir| File::options().write(true).open(dir.join("trace_marker")).ok());
        // One file for the whole life of the process.
        let file = file.map(|file| &*Box::leak(Box::new(file)));
        Markers { pid: process::id(), file }
    }

    fn write(&self, text: &str) {
        // Where it is not written, nobody records.
        let _ = self.file.map(|mut file| file.write_all(text.as_bytes()));
    }

    /// Begins a slice of the calling thread, which ends when the value is dropped.
    #[must_use]
    pub fn slice(&self, name: &str) -> Slice {
        self.write(&format!("B|{}|{name}", self.pid));
        Slice(*self)
    }

    /// Begins a slice of the process.
    pub fn async_begin(&self, name: &str, cookie: u32) {
        self.write(&format!("S|{}|{name}|{cookie}", self.pid));
    }

    /// Ends a slice of the process.
    pub fn async_end(&self, name: &str, cookie: u32) {
        self.write(&format!("F|{}|{name}|{cookie}", self.pid));
    }

    /// A moment of the calling thread.
    pub fn instant(&self, name: &str) {
        self.write(&format!("I|{}|{name}", self.pid));
    }
}

/// An open slice of the thread that has begun it.
pub struct Slice(Markers);

impl Drop for Slice {
    fn drop(&mut self) {
        self.0.write(&format!("E|{}", self.0.pid));
    }
}
