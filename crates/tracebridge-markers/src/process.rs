//! The state that all tracers of a process share: the open `trace_marker`, the process id, and the tags that
//! are on.
//!
//! No thread ever waits for another one here. A child of `fork(2)` can therefore write markers, whatever the
//! other threads of its parent were doing.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use nix::sys::statfs::fstatfs;
use nix::time::{ClockId, clock_gettime};

use super::system::{MadeOnce, above_standard_files, call_in_fork_children};
use crate::encode::Prefix;
use crate::tag_watch::TagWatch;
use crate::tags::{self, Tag};

/// The usual mount points of tracefs, the better one first: its own (since Linux 4.1), and the one inside
/// debugfs.
pub const TRACEFS_PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The environment variable with the tags that are on, on a system without Android's properties.
const TAGS_VARIABLE: &str = "TRACEBRIDGE_TAGS";
/// The environment variable with the directory of the tracefs to use, or of an instance in it.
const TRACEFS_VARIABLE: &str = "TRACEBRIDGE_TRACEFS";

/// `TRACEFS_MAGIC` of linux/magic.h.
const TRACEFS_MAGIC: i128 = 0x7472_6163;
/// How long after a failure to open `trace_marker` nobody tries again, in ms.
const RETRY_MS: u64 = 1000;

static MARKER_FILE: MadeOnce<File> = MadeOnce::new();
static RETRY_AT_MS: AtomicU64 = AtomicU64::new(0);
/// The bytes of [`Prefix`] of this process; all 0 if nobody needed it yet.
static PREFIX: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Returns the process's `trace_marker`; `None` while it cannot be opened. A failure is tried again after a
/// second.
#[inline]
pub fn marker_file() -> Option<&'static File> {
    MARKER_FILE.get().or_else(open_marker_file)
}

#[cold]
fn open_marker_file() -> Option<&'static File> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC_COARSE).ok()?;
    let now = now.tv_sec() as u64 * 1000 + now.tv_nsec() as u64 / 1_000_000;
    if now < RETRY_AT_MS.load(Ordering::Relaxed) {
        return None;
    }
    RETRY_AT_MS.store(now + RETRY_MS, Ordering::Relaxed);
    let file = match std::env::var_os(TRACEFS_VARIABLE) {
        Some(dir) => open_in_tracefs(&PathBuf::from(dir)),
        None => TRACEFS_PLACES.iter().find_map(|place| open_in_tracefs(Path::new(place))),
    }?;
    Some(MARKER_FILE.set(file))
}

/// Opens `trace_marker` in `dir`. Nothing else is opened: the environment of a program with more rights than
/// its caller must not make it write into any other file.
fn open_in_tracefs(dir: &Path) -> Option<File> {
    let file = OpenOptions::new().write(true).open(dir.join("trace_marker")).ok()?;
    let magic = fstatfs(&file).ok()?.filesystem_type().0;
    if i128::from(magic) != TRACEFS_MAGIC {
        return None;
    }
    above_standard_files(file).ok()
}

/// Returns the prefix of this process's markers.
#[inline]
pub fn own_prefix() -> Prefix {
    let words = [PREFIX[0].load(Ordering::Relaxed), PREFIX[1].load(Ordering::Acquire)];
    // The second word has the length, and is stored last. All threads of a process store the same.
    if words[1] == 0 { make_prefix() } else { Prefix::from_words(words) }
}

#[cold]
fn make_prefix() -> Prefix {
    static CHILD_FORGETS: AtomicU32 = AtomicU32::new(0);
    extern "C" fn forget() {
        PREFIX[1].store(0, Ordering::Relaxed);
    }
    if CHILD_FORGETS.load(Ordering::Relaxed) == 0 {
        // It is registered twice if two threads come here at once, which changes nothing.
        call_in_fork_children(forget);
        CHILD_FORGETS.store(1, Ordering::Relaxed);
    }
    let prefix = Prefix::new(std::process::id() as i32);
    let [first, second] = prefix.words();
    PREFIX[0].store(first, Ordering::Relaxed);
    PREFIX[1].store(second, Ordering::Release);
    prefix
}

/// Bit 31 of [`TAGS`]: the other bits say nothing, ask [`tags_on`]. No tag has a bit above 27.
const ASK: u32 = 1 << 31;
/// The tags that are on, where nobody but the program itself can change them; else [`ASK`].
static TAGS: AtomicU32 = AtomicU32::new(ASK);
/// Android's properties, if this system has them.
static PROPERTIES: MadeOnce<TagWatch> = MadeOnce::new();

/// Returns whether one of these tags may be on, for one load: the rest is up to [`tags_on`].
#[inline]
pub fn may_be_on(tags: u32) -> bool {
    TAGS.load(Ordering::Relaxed) & (tags | ASK) != 0
}

/// Returns the mask of the tags that are on in this process.
#[inline]
pub fn tags_on() -> u64 {
    if let Some(watch) = PROPERTIES.get() {
        return watch.on();
    }
    match TAGS.load(Ordering::Relaxed) {
        ASK => find_tags(),
        known => u64::from(known),
    }
}

#[cold]
fn find_tags() -> u64 {
    if let Some(watch) = TagWatch::all() {
        return PROPERTIES.set(watch).on();
    }
    let tags = tags_of_environment();
    TAGS.store(tags as u32, Ordering::Relaxed);
    tags
}

/// Reads the tags that are on again: after the program changed `TRACEBRIDGE_TAGS` in its own environment, or
/// its own command line. A change of Android's properties is noticed without this call.
///
/// ```
/// // Before other threads run, which might read the environment at the same time.
/// # #[cfg(not(target_os = "android"))] {
/// unsafe { std::env::set_var("TRACEBRIDGE_TAGS", "app,view") };
/// tracebridge_markers::update_tags();
/// # if !std::path::Path::new("/dev/__properties__").exists() {
/// assert!(tracebridge_markers::APP.is_on());
/// # }}
/// ```
pub fn update_tags() {
    match PROPERTIES.get() {
        Some(watch) => watch.refresh(),
        None => _ = find_tags(),
    }
}

fn tags_of_environment() -> u64 {
    tags_of_text(&std::env::var_os(TAGS_VARIABLE).unwrap_or_default().to_string_lossy())
}

/// Reads a mask of tags: names, separated by commas or spaces, of which `all` is one; or a number, as in
/// Android's property. Names that are not known count for nothing.
fn tags_of_text(text: &str) -> u64 {
    let words = text.split([',', ' ']).filter(|word| !word.is_empty());
    let on = words.map(|word| match word {
        "all" => tags::VALID,
        word => Tag::find(word).map_or_else(|| tags::parse_mask(word), Tag::mask),
    });
    (on.fold(0, |all, mask| all | mask) | tags::ALWAYS) & tags::VALID
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_tags_or_a_mask() {
        for (text, mask) in [
            ("", 1),
            ("view", 0b1001),
            ("view,gfx app", 0b1_0000_0000_1011),
            ("0x1002", 0x1003),
            ("all", tags::VALID),
            ("nonsense,input", 0b101),
            ("0xffffffffffffffff", tags::VALID),
        ] {
            assert_eq!(tags_of_text(text), mask, "{text:?}");
        }
    }

    #[test]
    fn only_a_tracefs_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("trace_marker"), "").unwrap();
        assert!(open_in_tracefs(dir.path()).is_none());
    }
}
