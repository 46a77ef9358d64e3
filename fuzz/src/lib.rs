//! What several targets share.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tracebridge::clock::Timestamp;
use tracebridge::formats::{Event, EventType, Sink, Track, TrackEvent, event_catalog};

/// Renders every event as a text would have it, and throws it away.
#[derive(Default)]
pub struct Render(Vec<u8>);

impl Sink for Render {
    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        self.0.clear();
        event_catalog::render(event, kind, &mut self.0);
        Ok(())
    }
}

/// A destination whose bytes can be looked at afterwards.
#[derive(Clone, Default)]
pub struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    /// The bytes that were written so far.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file in memory, for functions that open files; removed on drop.
pub struct InputFile {
    /// Where the file is.
    pub path: PathBuf,
}

impl InputFile {
    /// Writes the file. Only one of this name exists at a time in this process.
    pub fn new(name: &str, bytes: &[u8]) -> InputFile {
        let path = PathBuf::from(format!("/dev/shm/tracebridge-fuzz-{name}-{}", std::process::id()));
        fs::write(&path, bytes).expect("a file in memory");
        InputFile { path }
    }
}

impl Drop for InputFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Checks that tracks are numbered in turn, and that the events of each come in order of time.
#[derive(Default)]
pub struct TrackOrder {
    last: Vec<Timestamp>,
}

impl Sink for TrackOrder {
    fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
        Ok(())
    }

    fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
        assert_eq!(track.id.0 as usize, self.last.len());
        self.last.push(Timestamp::MIN);
        Ok(())
    }

    fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        let last = &mut self.last[event.track.0 as usize];
        assert!(*last <= event.ts);
        *last = event.ts;
        Ok(())
    }
}
