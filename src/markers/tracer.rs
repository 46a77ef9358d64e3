//! Emitting markers from a program: open once, then one `write(2)` each.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::encode::{MAX_LEN, has_separator, make_harmless};
use super::marker::Marker;
use crate::android::TagWatch;
use crate::android::tags::{self, Tag};

/// Where a tracefs usually is, best first: its own mount point (Linux 4.1), then the one inside debugfs.
pub const TRACEFS_PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Names up to this length go the short way: clearing a buffer for the longest marker would cost more than the rest.
const SHORT: usize = 128;
/// `|`, a process id, `|`.
const LEAD: usize = 16;

/// Writes markers of this process.
///
/// ```no_run
/// let tracer = tracebridge::markers::Tracer::open()?;
/// let frame = tracer.section("frame"); // ends when it is dropped
/// tracer.counter("queue", 3);
/// drop(frame);
/// # std::io::Result::Ok(())
/// ```
///
/// A marker costs one system call. Where nobody records, the kernel refuses it (`EBADF`) at a fraction of that;
/// it is no error here. After a `fork(2)` the child must open its own: the process id is asked for once.
#[derive(Debug)]
pub struct Tracer {
    file: File,
    pid: i32,
    tag: Switch,
    /// `|pid|`, which never changes.
    lead: ([u8; LEAD], usize),
}

/// What decides whether markers are written.
#[derive(Debug)]
enum Switch {
    On,
    Off,
    Watch(TagWatch),
}

impl Tracer {
    /// Opens `trace_marker` where the kernel has it. Every process of an Android device may.
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

    /// Opens the `trace_marker` at `path`: another mount of tracefs, or an instance's.
    pub fn open_at(path: &Path) -> io::Result<Tracer> {
        let file = OpenOptions::new().write(true).open(path)?;
        Ok(Tracer { file, pid: 0, tag: Switch::On, lead: ([0; LEAD], 0) }.as_pid(std::process::id() as i32))
    }

    /// Writes as if it were the process `pid`: for a helper that speaks for another process. Viewers put counters,
    /// async slices and tracks below the process named here; sections belong to the writing thread in any case.
    pub fn as_pid(mut self, pid: i32) -> Tracer {
        self.pid = pid;
        let text = format!("|{pid}|");
        self.lead = ([0; LEAD], text.len());
        self.lead.0[..text.len()].copy_from_slice(text.as_bytes());
        self
    }

    /// Writes only while `tag` is on, as libcutils does. On a Linux without Android's properties no tag but
    /// `always` ever is.
    pub fn with_tag(mut self, tag: Tag) -> Tracer {
        if tag.mask() == tags::ALWAYS {
            self.tag = Switch::On;
            return self;
        }
        self.with_watch(TagWatch::new(tag))
    }

    /// Writes only while the watched tag is on; without a watch, never.
    pub fn with_watch(mut self, watch: Option<TagWatch>) -> Tracer {
        self.tag = watch.map_or(Switch::Off, Switch::Watch);
        self
    }

    /// Whether markers are written now: to skip the work of making up a name. Costs a load and a comparison.
    #[inline]
    pub fn is_on(&self) -> bool {
        match &self.tag {
            Switch::On => true,
            Switch::Off => false,
            Switch::Watch(watch) => watch.is_on(),
        }
    }

    /// The process id in the markers.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Writes any marker. `Ok(false)`: the tag is off, or nobody records and the kernel did not take it.
    #[inline]
    pub fn write(&self, marker: &Marker<'_>) -> io::Result<bool> {
        if self.is_on() { self.write_now(marker) } else { Ok(false) }
    }

    fn write_now(&self, marker: &Marker<'_>) -> io::Result<bool> {
        self.put(marker.encode(&mut [0; MAX_LEN]))
    }

    /// `P|pid|name`, the usual markers, without the detour over [`Marker`].
    fn named(&self, phase: u8, name: &str) -> bool {
        let mut buf = [0; 1 + LEAD + SHORT];
        let start = 1 + self.lead.1;
        let end = start + name.len();
        if name.len() > SHORT {
            let (pid, name) = (self.pid, name.as_bytes());
            let long =
                if phase == b'B' { Marker::Begin { pid, name } } else { Marker::Instant { pid, name } };
            return self.write_now(&long).unwrap_or(false);
        }
        buf[0] = phase;
        buf[1..1 + LEAD].copy_from_slice(&self.lead.0);
        buf[start..end].copy_from_slice(name.as_bytes());
        // Looked for in the name, not in its copy: reading what was just written stalls.
        if has_separator(name.as_bytes()) {
            make_harmless(&mut buf[start..end]);
        }
        self.put(&buf[..end]).unwrap_or(false)
    }

    fn put(&self, bytes: &[u8]) -> io::Result<bool> {
        // One write(2): a second one for the rest would be a marker of its own.
        match (&self.file).write(bytes) {
            Ok(_) => Ok(true),
            // EBADF: tracing_on is 0.
            Err(error) if error.raw_os_error() == Some(9) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A section of this thread begins. Whether it was recorded; so for all of these.
    #[inline]
    pub fn begin(&self, name: &str) -> bool {
        self.is_on() && self.named(b'B', name)
    }

    /// This thread's newest section ends.
    #[inline]
    pub fn end(&self) -> bool {
        self.is_on() && self.write_end()
    }

    fn write_end(&self) -> bool {
        let mut buf = [0; 1 + LEAD];
        buf[0] = b'E';
        buf[1..].copy_from_slice(&self.lead.0);
        // The lead without its last separator.
        self.put(&buf[..self.lead.1]).unwrap_or(false)
    }

    /// A section of this thread that ends when the value is dropped.
    #[inline]
    pub fn section(&self, name: &str) -> Section<'_> {
        self.begin(name);
        Section(self)
    }

    /// Something happens on this thread.
    #[inline]
    pub fn instant(&self, name: &str) -> bool {
        self.is_on() && self.named(b'I', name)
    }

    /// A counter of the process takes a value.
    #[inline]
    pub fn counter(&self, name: &str, value: i64) -> bool {
        let marker = Marker::Counter { pid: self.pid, name: name.as_bytes(), value, category: None };
        self.write(&marker).unwrap_or(false)
    }

    /// A section of the process begins; another thread may end it with the same name and cookie.
    #[inline]
    pub fn async_begin(&self, name: &str, cookie: i32) -> bool {
        let (pid, name, cookie) = (self.pid, name.as_bytes(), i64::from(cookie));
        self.write(&Marker::AsyncBegin { pid, name, cookie }).unwrap_or(false)
    }

    /// The end of [`Tracer::async_begin`].
    #[inline]
    pub fn async_end(&self, name: &str, cookie: i32) -> bool {
        let (pid, name, cookie) = (self.pid, name.as_bytes(), i64::from(cookie));
        self.write(&Marker::AsyncEnd { pid, name, cookie }).unwrap_or(false)
    }

    /// A section begins on a named track of the process.
    #[inline]
    pub fn track_begin(&self, track: &str, name: &str, cookie: i32) -> bool {
        let (pid, track, cookie) = (self.pid, track.as_bytes(), i64::from(cookie));
        self.write(&Marker::TrackBegin { pid, track, name: name.as_bytes(), cookie }).unwrap_or(false)
    }

    /// The end of [`Tracer::track_begin`] with the same track and cookie.
    #[inline]
    pub fn track_end(&self, track: &str, cookie: i32) -> bool {
        let (pid, track, cookie) = (self.pid, track.as_bytes(), i64::from(cookie));
        self.write(&Marker::TrackEnd { pid, track, name: None, cookie }).unwrap_or(false)
    }

    /// Something happens on a named track of the process.
    #[inline]
    pub fn track_instant(&self, track: &str, name: &str) -> bool {
        let marker = Marker::TrackInstant { pid: self.pid, track: track.as_bytes(), name: name.as_bytes() };
        self.write(&marker).unwrap_or(false)
    }
}

/// A section of a thread; dropping it ends it.
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

    #[test]
    fn the_short_way_and_the_grammar_write_the_same() {
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
