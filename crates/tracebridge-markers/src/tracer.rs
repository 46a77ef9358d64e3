//! Emits markers from a program: `trace_marker` is opened once, and each marker is one `write(2)`.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::encode::{MAX_LEN, Pieces};
use super::marker::Marker;
use super::process::{TRACEFS_PLACES, marker_file, may_be_on, own_prefix, tags_on};
use super::ring_writer;
use crate::encode::Prefix;
use crate::tag_watch::TagWatch;
use crate::tags::{self, Tag};

/// The tracer of apps: its markers are written while the tag `app` is on, as those of the NDK's `ATrace_…`
/// functions. [`trace_scope!`](crate::trace_scope) uses it.
pub static APP: Tracer = Tracer::new(Tag::APP);

/// Writes the markers of this process.
///
/// ```
/// use tracebridge_markers::{Tag, Tracer};
///
/// static VIEW: Tracer = Tracer::new(Tag::VIEW);
///
/// let frame = VIEW.section("frame"); // ends when it is dropped
/// VIEW.counter("queue", 3);
/// drop(frame);
/// ```
///
/// A marker costs one system call; while its tag is off, a load and a comparison. While tracing is off the
/// kernel refuses the write with `EBADF`, which costs less and is not an error here. No call allocates memory
/// or takes a lock, and a child of `fork(2)` may go on with the tracer of its parent. A child that was made
/// past the C library, by a bare `clone(2)`, names its parent's process id in its markers.
///
/// With [`use_ring`](super::use_ring) the markers of all tracers of [`Tracer::new`] go to memory that a
/// recorder reads, without a system call.
#[derive(Debug)]
pub struct Tracer {
    /// The tags without which nothing is written: the quick answer of [`Tracer::is_on`].
    tags: u32,
    /// Whether the markers go to the ring of the process, if it has one.
    may_use_ring: bool,
    target: Target,
    condition: WriteCondition,
    /// The process that the markers name; `None` stands for the process itself, whichever it is.
    on_behalf_of: Option<(i32, Prefix)>,
}

/// Where markers go.
#[derive(Debug)]
enum Target {
    /// To the `trace_marker` that all tracers of the process share. It is opened when it is first needed.
    Shared,
    Own(File),
}

/// When markers are written.
#[derive(Debug)]
enum WriteCondition {
    Always,
    Never,
    /// While one of the tags of this mask is on in this process.
    WhileTagsAreOn(u64),
    WhileWatchIsOn(TagWatch),
}

impl Tracer {
    /// Makes a tracer that writes markers while `tag` is on. Nothing is opened yet, so that the tracer can be
    /// a `static`: `trace_marker` is opened when the first marker is written. Where that fails, it is tried
    /// again every second, and a program that runs before tracefs is mounted is heard later.
    ///
    /// On Android the properties say which tags are on, elsewhere the environment variable
    /// `TRACEBRIDGE_TAGS`: names of tags or categories, `all`, or a mask, separated by commas. The variable
    /// `TRACEBRIDGE_TRACEFS` names another directory than [`TRACEFS_PLACES`], such as that of an instance.
    pub const fn new(tag: Tag) -> Tracer {
        let condition = WriteCondition::from_tag(tag);
        let tags = condition.tags();
        Tracer { tags, may_use_ring: true, target: Target::Shared, condition, on_behalf_of: None }
    }

    /// Opens `trace_marker` in the first of [`TRACEFS_PLACES`] that has it, for markers that are always
    /// written. Every Android process may do so.
    ///
    /// ```no_run
    /// tracebridge_markers::Tracer::open()?.instant("here");
    /// # std::io::Result::Ok(())
    /// ```
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
    ///
    /// ```no_run
    /// use tracebridge_markers::Tracer;
    /// Tracer::open_at("/sys/kernel/tracing/instances/mine/trace_marker".as_ref())?.instant("here");
    /// # std::io::Result::Ok(())
    /// ```
    pub fn open_at(path: &Path) -> io::Result<Tracer> {
        let file = OpenOptions::new().write(true).open(path)?;
        Ok(Tracer { may_use_ring: false, target: Target::Own(file), ..Tracer::new(Tag::ALWAYS) })
    }

    /// Names the process `pid` in the markers, for a helper that writes on behalf of another process. Viewers
    /// show counters, async slices and tracks below that process; sections always belong to the writing
    /// thread.
    ///
    /// ```
    /// use tracebridge_markers::{Tag, Tracer};
    /// Tracer::new(Tag::ALWAYS).as_pid(1234).counter("progress", 7);
    /// ```
    pub fn as_pid(mut self, pid: i32) -> Tracer {
        self.on_behalf_of = Some((pid, Prefix::new(pid)));
        self.may_use_ring = false;
        self
    }

    /// Writes markers only while `tag` is on in this process.
    ///
    /// ```no_run
    /// use tracebridge_markers::{Tag, Tracer};
    /// Tracer::open()?.with_tag(Tag::DATABASE).instant("commit");
    /// # std::io::Result::Ok(())
    /// ```
    pub fn with_tag(mut self, tag: Tag) -> Tracer {
        self.condition = WriteCondition::from_tag(tag);
        self.tags = self.condition.tags();
        self
    }

    /// Writes markers only while the watched tag is on. `None` stands for a tag that is never on.
    pub fn with_watch(mut self, watch: Option<TagWatch>) -> Tracer {
        self.condition = watch.map_or(WriteCondition::Never, WriteCondition::WhileWatchIsOn);
        self.tags = self.condition.tags();
        self
    }

    /// Returns whether markers are written now, so that a caller can skip formatting a name. The check costs
    /// a load and a comparison.
    ///
    /// ```
    /// use tracebridge_markers::APP;
    /// # let url = "/";
    /// if APP.is_on() {
    ///     APP.instant(&format!("GET {url}"));
    /// }
    /// ```
    #[inline]
    pub fn is_on(&self) -> bool {
        may_be_on(self.tags) && (matches!(self.condition, WriteCondition::Always) || self.condition.holds())
    }

    /// Returns the process id that the markers name.
    pub fn pid(&self) -> i32 {
        self.on_behalf_of.map_or_else(|| own_prefix().pid(), |(pid, _)| pid)
    }

    #[inline]
    fn prefix(&self) -> Prefix {
        self.on_behalf_of.map_or_else(own_prefix, |(_, prefix)| prefix)
    }

    /// Writes any marker to `trace_marker`, also where the other calls write into a ring. Returns `Ok(false)`
    /// if the tag is off, or if tracing is off and the kernel refused the marker.
    #[inline]
    pub fn write(&self, marker: &Marker<'_>) -> io::Result<bool> {
        if self.is_on() { self.write_now(marker) } else { Ok(false) }
    }

    fn write_now(&self, marker: &Marker<'_>) -> io::Result<bool> {
        self.put(marker.encode(&mut [0; MAX_LEN]))
    }

    /// Writes the marker that `marker` makes of the process id, if markers are written now.
    #[inline(always)]
    pub(super) fn mark<'m>(&self, marker: impl Fn(i32) -> Marker<'m>) -> bool {
        self.is_on() && !self.is_idle() && self.mark_now(marker)
    }

    /// Whether markers go to a ring that no recorder reads now.
    #[inline(always)]
    fn is_idle(&self) -> bool {
        self.may_use_ring && ring_writer::is_idle()
    }

    /// Writes a marker into the ring, if that is its place. Returns whether it was written.
    #[inline(always)]
    fn put_into_ring(&self, pieces: Option<Pieces<'_>>) -> Option<bool> {
        if self.may_use_ring { ring_writer::write(pieces?) } else { None }
    }

    /// Writes the marker that `marker` makes of the process id, whether or not the tag is on.
    // Apart from its caller, which needs no registers for it while the tag is off.
    #[inline(never)]
    pub(super) fn mark_now<'m>(&self, marker: impl Fn(i32) -> Marker<'m>) -> bool {
        match self.put_into_ring(marker(0).pieces()) {
            Some(written) => written,
            None => self.put_into_file(marker),
        }
    }

    // Apart from its caller, which does without the buffer where markers go to a ring.
    #[inline(never)]
    fn put_into_file<'m>(&self, marker: impl Fn(i32) -> Marker<'m>) -> bool {
        // The prefix has the process id.
        let written = match marker(0).short_pieces() {
            Some(pieces) => pieces.encode(&self.prefix(), |bytes| self.put(bytes)),
            None => self.write_now(&marker(self.pid())),
        };
        written.unwrap_or(false)
    }

    fn put(&self, bytes: &[u8]) -> io::Result<bool> {
        let mut file = match &self.target {
            Target::Shared => marker_file().ok_or(io::ErrorKind::NotFound)?,
            Target::Own(file) => file,
        };
        // One write(2) only: a second one for the rest would be a marker of its own.
        match file.write(bytes) {
            Ok(_) => Ok(true),
            // EBADF: `tracing_on` is 0.
            Err(error) if error.raw_os_error() == Some(9) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Begins a slice on the calling thread. Returns whether the marker was written.
    ///
    /// ```
    /// # use tracebridge_markers::APP;
    /// APP.begin("load");
    /// // …
    /// APP.end();
    /// ```
    #[inline]
    pub fn begin(&self, name: &str) -> bool {
        self.begin_bytes(name.as_bytes())
    }

    /// As [`Tracer::begin`], for a name that need not be UTF-8.
    #[inline]
    pub(super) fn begin_bytes(&self, name: &[u8]) -> bool {
        self.mark(|pid| Marker::Begin { pid, name })
    }

    /// Ends the newest open slice of the calling thread, as [`Tracer::begin`] shows. Returns whether the
    /// marker was written.
    #[inline]
    pub fn end(&self) -> bool {
        self.is_on() && !self.is_idle() && self.write_end()
    }

    /// Ends a slice whether or not the tag is on.
    pub(super) fn write_end(&self) -> bool {
        match self.put_into_ring(Some(Pieces::END)) {
            Some(written) => written,
            None => self.write_end_into_file(),
        }
    }

    #[inline(never)]
    fn write_end_into_file(&self) -> bool {
        let prefix = self.prefix();
        let mut buf = [0; 1 + Prefix::ROOM];
        buf[0] = b'E';
        buf[1..].copy_from_slice(prefix.bytes());
        // The prefix without its last separator.
        self.put(&buf[..prefix.len()]).unwrap_or(false)
    }

    /// Begins a slice on the calling thread that ends when the returned value is dropped, by a panic too.
    ///
    /// ```
    /// # use tracebridge_markers::APP;
    /// let _load = APP.section("load");
    /// // … until the end of the block
    /// ```
    #[inline]
    pub fn section(&self, name: &str) -> Section<'_> {
        Section { tracer: self, is_open: self.begin(name) }
    }

    /// Marks a moment on the calling thread. Returns whether the marker was written.
    ///
    /// ```
    /// # use tracebridge_markers::APP;
    /// APP.instant("cache is full");
    /// ```
    #[inline]
    pub fn instant(&self, name: &str) -> bool {
        self.instant_bytes(name.as_bytes())
    }

    /// As [`Tracer::instant`], for a name that need not be UTF-8.
    #[inline]
    pub(super) fn instant_bytes(&self, name: &[u8]) -> bool {
        self.mark(|pid| Marker::Instant { pid, name })
    }

    /// Sets a counter of the process to `value`. Returns whether the marker was written.
    ///
    /// ```
    /// # use tracebridge_markers::APP;
    /// APP.counter("bytes in flight", 1 << 40);
    /// ```
    #[inline]
    pub fn counter(&self, name: &str, value: i64) -> bool {
        let name = name.as_bytes();
        self.mark(|pid| Marker::Counter { pid, name, value, category: None })
    }

    /// Begins an async slice of the process. Any thread may end it with the same name and cookie. Returns
    /// whether the marker was written.
    ///
    /// ```
    /// # use tracebridge_markers::APP;
    /// APP.async_begin("download", 7);
    /// std::thread::spawn(|| APP.async_end("download", 7)).join().unwrap();
    /// ```
    #[inline]
    pub fn async_begin(&self, name: &str, cookie: i32) -> bool {
        let name = name.as_bytes();
        let cookie = i64::from(cookie);
        self.mark(|pid| Marker::AsyncBegin { pid, name, cookie })
    }

    /// Ends the async slice that [`Tracer::async_begin`] began with this name and cookie. Returns whether the
    /// marker was written.
    #[inline]
    pub fn async_end(&self, name: &str, cookie: i32) -> bool {
        let name = name.as_bytes();
        let cookie = i64::from(cookie);
        self.mark(|pid| Marker::AsyncEnd { pid, name, cookie })
    }

    /// Begins a slice on a named track of the process. Returns whether the marker was written.
    ///
    /// ```
    /// # use tracebridge_markers::APP;
    /// APP.track_begin("network", "GET /", 7);
    /// APP.track_end("network", 7);
    /// ```
    #[inline]
    pub fn track_begin(&self, track: &str, name: &str, cookie: i32) -> bool {
        let track = track.as_bytes();
        let name = name.as_bytes();
        let cookie = i64::from(cookie);
        self.mark(|pid| Marker::TrackBegin { pid, track, name, cookie })
    }

    /// Ends the slice that [`Tracer::track_begin`] began with this track and cookie. Returns whether the
    /// marker was written.
    #[inline]
    pub fn track_end(&self, track: &str, cookie: i32) -> bool {
        let track = track.as_bytes();
        let cookie = i64::from(cookie);
        self.mark(|pid| Marker::TrackEnd { pid, track, name: None, cookie })
    }

    /// Marks a moment on a named track of the process. Returns whether the marker was written.
    ///
    /// ```
    /// # use tracebridge_markers::APP;
    /// APP.track_instant("network", "retry");
    /// ```
    #[inline]
    pub fn track_instant(&self, track: &str, name: &str) -> bool {
        let track = track.as_bytes();
        let name = name.as_bytes();
        self.mark(|pid| Marker::TrackInstant { pid, track, name })
    }
}

impl AsRef<Tracer> for Tracer {
    fn as_ref(&self) -> &Tracer {
        self
    }
}

impl WriteCondition {
    const fn from_tag(tag: Tag) -> WriteCondition {
        match tag.mask() {
            tags::ALWAYS => WriteCondition::Always,
            mask => WriteCondition::WhileTagsAreOn(mask),
        }
    }

    #[inline]
    fn holds(&self) -> bool {
        match self {
            WriteCondition::Always => true,
            WriteCondition::Never => false,
            WriteCondition::WhileTagsAreOn(mask) => tags_on() & mask != 0,
            WriteCondition::WhileWatchIsOn(watch) => watch.is_on(),
        }
    }

    /// The tags of which one must be on for this condition to hold, for [`may_be_on`].
    const fn tags(&self) -> u32 {
        match self {
            // These do not depend on the process's tags, of which `always` is one.
            WriteCondition::Always | WriteCondition::WhileWatchIsOn(_) => tags::ALWAYS as u32,
            WriteCondition::Never => 0,
            // No tag has a bit above 27.
            WriteCondition::WhileTagsAreOn(mask) => *mask as u32,
        }
    }
}

/// An open slice of a thread, from [`Tracer::section`]. Dropping the value ends the slice. Where no begin was
/// written, no end is; an end is written even if the tag was switched off since.
#[derive(Debug)]
#[must_use = "the section ends when this is dropped"]
pub struct Section<'t> {
    tracer: &'t Tracer,
    is_open: bool,
}

impl Drop for Section<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.is_open {
            self.tracer.write_end();
        }
    }
}

/// Begins a slice on the calling thread that ends with the block: with the tracer [`APP`], or with the one
/// that is named first.
///
/// ```
/// use tracebridge_markers::{Tag, Tracer};
/// use tracebridge_markers::trace_scope;
///
/// static DATABASE: Tracer = Tracer::new(Tag::DATABASE);
///
/// fn load() {
///     trace_scope!("load");
///     trace_scope!(DATABASE, "SELECT"); // begins inside of `load`, and ends before it
/// }
/// # load();
/// ```
#[macro_export]
macro_rules! trace_scope {
    ($name:expr) => {
        let _section = $crate::APP.section($name);
    };
    ($tracer:expr, $name:expr) => {
        let _section = $tracer.section($name);
    };
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
    fn a_section_that_did_not_begin_does_not_end() {
        let text = written(|tracer| drop(tracer.with_watch(None).section("never")));
        assert_eq!(text, "");
    }

    #[test]
    fn a_section_ends_when_the_thread_panics() {
        let text = written(|tracer| {
            let tracer = std::panic::AssertUnwindSafe(tracer);
            let panicked = std::panic::catch_unwind(|| {
                trace_scope!(tracer, "outer");
                trace_scope!(tracer, "inner");
                std::panic::resume_unwind(Box::new(()));
            });
            assert!(panicked.is_err());
        });
        assert_eq!(text, "B|7|outerB|7|innerE|7E|7");
    }

    #[test]
    fn the_fast_path_and_the_encoder_write_the_same_bytes() {
        let long = "y".repeat(129);
        let separators = "x|".repeat(64);
        let names = ["", "a", "sixteen bytes!!!", "a|b\nc\0d", &separators, &long].map(str::as_bytes);
        for (n, name) in names.into_iter().enumerate() {
            let track = names[names.len() - 1 - n];
            let number = [0, i64::MIN, i64::MAX][n % 3];
            let markers = |pid| {
                [
                    Marker::Begin { pid, name },
                    Marker::Instant { pid, name },
                    Marker::AsyncBegin { pid, name, cookie: number },
                    Marker::AsyncEnd { pid, name, cookie: number },
                    Marker::Counter { pid, name, value: number, category: None },
                    Marker::Counter { pid, name, value: number, category: Some(b"group") },
                    Marker::TrackBegin { pid, track, name, cookie: number },
                    Marker::TrackEnd { pid, track, name: None, cookie: number },
                    Marker::TrackEnd { pid, track, name: Some(name), cookie: number },
                    Marker::TrackInstant { pid, track, name },
                ]
            };
            for kind in 0..markers(0).len() {
                let text = written(|tracer| assert!(tracer.mark(|pid| markers(pid)[kind])));
                let marker = markers(7)[kind];
                assert_eq!(text.as_bytes(), marker.encode(&mut [0; MAX_LEN]), "{marker:?}");
            }
        }
    }

    #[test]
    fn a_marker_is_one_write_of_the_whole_text() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace_marker");
        File::create(&path).unwrap();
        let tracer = Tracer::open_at(&path).unwrap().as_pid(42);
        {
            let _draw = tracer.section("draw");
            assert!(tracer.counter("n", -1));
        }
        assert!(tracer.track_begin("t", &"x".repeat(2000), 7));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("B|42|drawC|42|n|-1E|42G|42|t|xxx"), "{text}");
        assert!(text.ends_with("x|7") && text.len() == 22 + MAX_LEN, "{}", text.len());
    }
}
