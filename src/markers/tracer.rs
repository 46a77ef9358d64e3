//! Emits markers from a program: `trace_marker` is opened once, and each marker is one `write(2)`.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::encode::{MAX_LEN, has_separator, sanitize};
use super::marker::Marker;
use crate::android::TagWatch;
use crate::android::tags::{self, Tag};

/// The usual mount points of tracefs, the better one first: its own (since Linux 4.1), and the one inside
/// debugfs.
pub const TRACEFS_PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Names up to this many bytes use a small buffer: clearing one for the longest marker costs more than all
/// the rest.
const SHORT_NAME_BYTES: usize = 128;
/// Room for `|`, a process id and `|`, in bytes.
const PREFIX_BYTES: usize = 16;

/// Writes the markers of this process.
///
/// ```no_run
/// let tracer = tracebridge::markers::Tracer::open()?;
/// let frame = tracer.section("frame"); // ends when it is dropped
/// tracer.counter("queue", 3);
/// drop(frame);
/// # std::io::Result::Ok(())
/// ```
///
/// A marker costs one system call. While tracing is off the kernel refuses the write with `EBADF`, which
/// costs less and is not an error here. The process id is read once, so a child of `fork(2)` must open a
/// tracer of its own.
#[derive(Debug)]
pub struct Tracer {
    file: File,
    pid: i32,
    condition: WriteCondition,
    /// `|pid|` and its length: the part that is the same in all markers.
    prefix: ([u8; PREFIX_BYTES], usize),
}

/// When markers are written.
#[derive(Debug)]
enum WriteCondition {
    Always,
    Never,
    WhileTagIsOn(TagWatch),
}

impl Tracer {
    /// Opens `trace_marker` in the first of [`TRACEFS_PLACES`] that has it. Every Android process may do so.
    ///
    /// # Errors
    /// The error of the first place, if none opens.
    pub fn open() -> io::Result<Tracer> {
        let mut first = None;
        for place in TRACEFS_PLACES {
            match Tracer::open_at(&Path::new(place).join("trace_marker")) {
                Ok(tracer) => return Ok(tracer),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
    }

    /// Opens the `trace_marker` at `path`, which may belong to another mount of tracefs or to an instance.
    pub fn open_at(path: &Path) -> io::Result<Tracer> {
        let file = OpenOptions::new().write(true).open(path)?;
        Ok(Tracer { file, pid: 0, condition: WriteCondition::Always, prefix: ([0; PREFIX_BYTES], 0) }
            .as_pid(std::process::id() as i32))
    }

    /// Names the process `pid` in the markers, for a helper that writes on behalf of another process. Viewers
    /// show counters, async slices and tracks below that process; sections always belong to the writing
    /// thread.
    pub fn as_pid(mut self, pid: i32) -> Tracer {
        self.pid = pid;
        let text = format!("|{pid}|");
        self.prefix = ([0; PREFIX_BYTES], text.len());
        self.prefix.0[..text.len()].copy_from_slice(text.as_bytes());
        self
    }

    /// Writes markers only while `tag` is on, as libcutils does. On a Linux without Android's properties only
    /// the tag `always` is ever on.
    pub fn with_tag(mut self, tag: Tag) -> Tracer {
        if tag.mask() == tags::ALWAYS {
            self.condition = WriteCondition::Always;
            return self;
        }
        self.with_watch(TagWatch::new(tag))
    }

    /// Writes markers only while the watched tag is on. `None` stands for a tag that is never on.
    pub fn with_watch(mut self, watch: Option<TagWatch>) -> Tracer {
        self.condition = watch.map_or(WriteCondition::Never, WriteCondition::WhileTagIsOn);
        self
    }

    /// Returns whether markers are written now, so that a caller can skip formatting a name. The check costs
    /// a load and a comparison.
    #[inline]
    pub fn is_on(&self) -> bool {
        match &self.condition {
            WriteCondition::Always => true,
            WriteCondition::Never => false,
            WriteCondition::WhileTagIsOn(watch) => watch.is_on(),
        }
    }

    /// Returns the process id that the markers name.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Writes any marker. Returns `Ok(false)` if the tag is off, or if tracing is off and the kernel refused
    /// the marker.
    #[inline]
    pub fn write(&self, marker: &Marker<'_>) -> io::Result<bool> {
        if self.is_on() { self.write_now(marker) } else { Ok(false) }
    }

    fn write_now(&self, marker: &Marker<'_>) -> io::Result<bool> {
        self.put(marker.encode(&mut [0; MAX_LEN]))
    }

    /// Writes `P|pid|name` without building a [`Marker`] first: the fast path of the usual markers.
    fn named(&self, phase: u8, name: &str) -> bool {
        let mut buf = [0; 1 + PREFIX_BYTES + SHORT_NAME_BYTES];
        let start = 1 + self.prefix.1;
        let end = start + name.len();
        if name.len() > SHORT_NAME_BYTES {
            let (pid, name) = (self.pid, name.as_bytes());
            let long =
                if phase == b'B' { Marker::Begin { pid, name } } else { Marker::Instant { pid, name } };
            return self.write_now(&long).unwrap_or(false);
        }
        buf[0] = phase;
        buf[1..1 + PREFIX_BYTES].copy_from_slice(&self.prefix.0);
        buf[start..end].copy_from_slice(name.as_bytes());
        // The search reads the name and not its copy, because reading bytes that were just written stalls.
        if has_separator(name.as_bytes()) {
            sanitize(&mut buf[start..end]);
        }
        self.put(&buf[..end]).unwrap_or(false)
    }

    fn put(&self, bytes: &[u8]) -> io::Result<bool> {
        // One write(2) only: a second one for the rest would be a marker of its own.
        match (&self.file).write(bytes) {
            Ok(_) => Ok(true),
            // EBADF: `tracing_on` is 0.
            Err(error) if error.raw_os_error() == Some(9) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Begins a slice on the calling thread. Returns whether the marker was written.
    #[inline]
    pub fn begin(&self, name: &str) -> bool {
        self.is_on() && self.named(b'B', name)
    }

    /// Ends the newest open slice of the calling thread. Returns whether the marker was written.
    #[inline]
    pub fn end(&self) -> bool {
        self.is_on() && self.write_end()
    }

    fn write_end(&self) -> bool {
        let mut buf = [0; 1 + PREFIX_BYTES];
        buf[0] = b'E';
        buf[1..].copy_from_slice(&self.prefix.0);
        // The prefix without its last separator.
        self.put(&buf[..self.prefix.1]).unwrap_or(false)
    }

    /// Begins a slice on the calling thread that ends when the returned value is dropped.
    #[inline]
    pub fn section(&self, name: &str) -> Section<'_> {
        self.begin(name);
        Section(self)
    }

    /// Marks a moment on the calling thread. Returns whether the marker was written.
    #[inline]
    pub fn instant(&self, name: &str) -> bool {
        self.is_on() && self.named(b'I', name)
    }

    /// Sets a counter of the process to `value`. Returns whether the marker was written.
    #[inline]
    pub fn counter(&self, name: &str, value: i64) -> bool {
        let marker = Marker::Counter { pid: self.pid, name: name.as_bytes(), value, category: None };
        self.write(&marker).unwrap_or(false)
    }

    /// Begins an async slice of the process. Any thread may end it with the same name and cookie. Returns
    /// whether the marker was written.
    #[inline]
    pub fn async_begin(&self, name: &str, cookie: i32) -> bool {
        let (pid, name, cookie) = (self.pid, name.as_bytes(), i64::from(cookie));
        self.write(&Marker::AsyncBegin { pid, name, cookie }).unwrap_or(false)
    }

    /// Ends the async slice that [`Tracer::async_begin`] began with this name and cookie. Returns whether the
    /// marker was written.
    #[inline]
    pub fn async_end(&self, name: &str, cookie: i32) -> bool {
        let (pid, name, cookie) = (self.pid, name.as_bytes(), i64::from(cookie));
        self.write(&Marker::AsyncEnd { pid, name, cookie }).unwrap_or(false)
    }

    /// Begins a slice on a named track of the process. Returns whether the marker was written.
    #[inline]
    pub fn track_begin(&self, track: &str, name: &str, cookie: i32) -> bool {
        let (pid, track, cookie) = (self.pid, track.as_bytes(), i64::from(cookie));
        self.write(&Marker::TrackBegin { pid, track, name: name.as_bytes(), cookie }).unwrap_or(false)
    }

    /// Ends the slice that [`Tracer::track_begin`] began with this track and cookie. Returns whether the
    /// marker was written.
    #[inline]
    pub fn track_end(&self, track: &str, cookie: i32) -> bool {
        let (pid, track, cookie) = (self.pid, track.as_bytes(), i64::from(cookie));
        self.write(&Marker::TrackEnd { pid, track, name: None, cookie }).unwrap_or(false)
    }

    /// Marks a moment on a named track of the process. Returns whether the marker was written.
    #[inline]
    pub fn track_instant(&self, track: &str, name: &str) -> bool {
        let marker = Marker::TrackInstant { pid: self.pid, track: track.as_bytes(), name: name.as_bytes() };
        self.write(&marker).unwrap_or(false)
    }
}

/// An open slice of a thread, from [`Tracer::section`]. Dropping the value ends the slice.
#[derive(Debug)]
#[must_use = "the section ends when this is dropped"]
pub struct Section<'t>(&'t Tracer);

impl Drop for Section<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `write` on a tracer of process 7 and returns the bytes of all markers.
    fn written(write: impl FnOnce(Tracer)) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace_marker");
        File::create(&path).unwrap();
        write(Tracer::open_at(&path).unwrap().as_pid(7));
        std::fs::read_to_string(&path).unwrap()
    }

    #[test]
    fn async_slices_and_tracks_name_their_process() {
        let text = written(|tracer| {
            assert!(tracer.async_begin("load", -1) && tracer.async_end("load", -1));
            assert!(tracer.track_begin("net", "GET /", 3) && tracer.track_end("net", 3));
            assert!(tracer.track_instant("net", "retry") && tracer.instant("now"));
        });
        assert_eq!(text, "S|7|load|-1F|7|load|-1G|7|net|GET /|3H|7|net|3N|7|net|retryI|7|now");
    }

    #[test]
    fn a_tag_that_is_off_writes_nothing() {
        let text = written(|tracer| {
            let tracer = tracer.with_watch(None);
            assert!(!tracer.is_on() && !tracer.begin("a") && !tracer.async_begin("b", 1));
            assert!(!tracer.write(&Marker::End { pid: None }).unwrap());
            let always = tracer.with_tag(Tag::find("always").unwrap());
            assert!(always.is_on() && always.end());
        });
        assert_eq!(text, "E|7");
    }

    #[test]
    fn the_fast_path_and_the_encoder_write_the_same_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace_marker");
        for (n, name) in
            ["", "a", "sixteen bytes!!!", "a|b\nc\0d", &"x|".repeat(64), &"y".repeat(129)].iter().enumerate()
        {
            File::create(&path).unwrap();
            assert!(Tracer::open_at(&path).unwrap().as_pid(n as i32).begin(name));
            let marker = Marker::Begin { pid: n as i32, name: name.as_bytes() };
            assert_eq!(std::fs::read(&path).unwrap(), marker.encode(&mut [0; MAX_LEN]));
        }
    }

    #[test]
    fn a_marker_is_one_write_of_the_whole_text() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace_marker");
        File::create(&path).unwrap();
        let tracer = Tracer::open_at(&path).unwrap().as_pid(42);
        assert!(tracer.section("draw").0.counter("n", -1));
        assert!(tracer.track_begin("t", &"x".repeat(2000), 7));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("B|42|drawC|42|n|-1E|42G|42|t|xxx"), "{text}");
        assert!(text.ends_with("x|7") && text.len() == 22 + MAX_LEN, "{}", text.len());
    }
}
