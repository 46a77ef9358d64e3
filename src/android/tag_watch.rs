//! Whether a tag is on, at the price of a load and a comparison: by watching the property's serial number in the
//! memory that init shares with every process.
#![allow(unsafe_code)] // mapping that memory

use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use super::property_area::{AREA_SERIAL, PropertyArea};
use super::tags::{self, APP_NUMBER_PROPERTY, MAX_APP_PATTERNS, TAGS_PROPERTY, Tag, app_property};

/// Where Android has its property areas: a directory of files since Android 7, one file before.
const AREAS: &str = "/dev/__properties__";
/// In that directory: the area whose serial number grows with each change of any property.
const GLOBAL: &str = "properties_serial";

/// Watches one tag.
#[derive(Debug)]
pub struct TagWatch {
    tag: Tag,
    areas: PathBuf,
    /// The command line that decides about `app`.
    cmdline: PathBuf,
    serial: Serial,
    seen: AtomicU32,
    on: AtomicBool,
}

impl TagWatch {
    /// Watches `tag` in this system; `None` where there are no properties.
    pub fn new(tag: Tag) -> Option<TagWatch> {
        TagWatch::at(Path::new(AREAS), tag)
    }

    /// The same for property areas in another place.
    pub fn at(areas: &Path, tag: Tag) -> Option<TagWatch> {
        // The property's own number, else (it was never set yet) that of all properties.
        let own = files(areas).find_map(|file| {
            let bytes = fs::read(&file).ok()?;
            let found = PropertyArea::parse(&bytes)?.find(TAGS_PROPERTY)?;
            Serial::map(&file, found.serial_at)
        });
        let global = || {
            let file = if areas.is_dir() { areas.join(GLOBAL) } else { areas.to_owned() };
            Serial::map(&file, AREA_SERIAL)
        };
        let serial = own.or_else(global)?;
        let watch = TagWatch {
            tag,
            areas: areas.to_owned(),
            cmdline: "/proc/self/cmdline".into(),
            seen: AtomicU32::new(0),
            on: AtomicBool::new(false),
            serial,
        };
        watch.refresh();
        Some(watch)
    }

    /// Whether it is on for another process: `app` is where its command line is asked for, and not our own.
    pub fn for_process(mut self, pid: u32) -> TagWatch {
        self.cmdline = format!("/proc/{pid}/cmdline").into();
        self.refresh();
        self
    }

    /// Whether the tag is on now.
    #[inline]
    pub fn is_on(&self) -> bool {
        if self.serial.load() != self.seen.load(Ordering::Relaxed) {
            self.refresh();
        }
        self.on.load(Ordering::Relaxed)
    }

    #[cold]
    fn refresh(&self) {
        // Before the values: a change in between is noticed by the next check.
        let serial = self.serial.load();
        let areas: Vec<Vec<u8>> = files(&self.areas).filter_map(|file| fs::read(file).ok()).collect();
        let get = |name: &str| {
            let found = areas.iter().find_map(|bytes| PropertyArea::parse(bytes)?.find(name));
            found.map_or_else(String::new, |f| String::from_utf8_lossy(f.value).into_owned())
        };
        let mut on = tags::from_property(&get(TAGS_PROPERTY));
        if self.tag.mask() == tags::APP && on & tags::APP != 0 {
            let number = get(APP_NUMBER_PROPERTY).trim().parse().unwrap_or(0).min(MAX_APP_PATTERNS);
            let patterns: Vec<String> = (0..number).map(|n| get(&app_property(n))).collect();
            let cmdline = fs::read(&self.cmdline).unwrap_or_default();
            let name = cmdline.split(|b| *b == 0).next().unwrap_or_default();
            if !tags::app_is_traced(patterns.iter().map(String::as_str), name) {
                on &= !tags::APP;
            }
        }
        self.on.store(on & self.tag.mask() != 0, Ordering::Relaxed);
        self.seen.store(serial, Ordering::Relaxed);
    }
}

fn files(areas: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(areas).map(|dir| dir.flatten().map(|e| e.path()).collect::<Vec<_>>());
    entries.unwrap_or_else(|_| vec![areas.to_owned()]).into_iter()
}

/// A number in shared memory that somebody else changes.
#[derive(Debug)]
struct Serial {
    map: NonNull<std::ffi::c_void>,
    len: usize,
    at: usize,
}

// SAFETY: the mapping belongs to this value alone, is never written to, and is read through an atomic only.
unsafe impl Send for Serial {}
// SAFETY: as above; atomics may be read from many threads.
unsafe impl Sync for Serial {}

impl Serial {
    fn map(file: &Path, at: usize) -> Option<Serial> {
        let file = File::open(file).ok()?;
        let len = usize::try_from(file.metadata().ok()?.len()).ok()?;
        if !at.is_multiple_of(align_of::<AtomicU32>()) || at.checked_add(size_of::<AtomicU32>())? > len {
            return None;
        }
        // SAFETY: a new mapping at an address of the kernel's choice, which nothing else uses. The area never
        // shrinks while the system runs.
        let map = unsafe {
            mmap(None, NonZeroUsize::new(len)?, ProtFlags::PROT_READ, MapFlags::MAP_SHARED, &file, 0).ok()?
        };
        Some(Serial { map, len, at })
    }

    #[inline]
    fn load(&self) -> u32 {
        // SAFETY: `at` is aligned and inside of the mapping (checked in `map`), which lives as long as `self`; init
        // changes the number atomically.
        unsafe { AtomicU32::from_ptr(self.map.as_ptr().cast::<u8>().add(self.at).cast()) }
            .load(Ordering::Acquire)
    }
}

impl Drop for Serial {
    fn drop(&mut self) {
        // SAFETY: the mapping of `map`, which nobody refers to any more.
        let _ = unsafe { munmap(self.map, self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::property_area::build;
    use super::*;

    /// What init does: change the value, then the serial number.
    fn set(file: &Path, at: usize, value: &str, serial: u32) {
        use std::os::unix::fs::FileExt;
        let file = File::options().write(true).open(file).unwrap();
        file.write_all_at(value.as_bytes(), at as u64 + 4).unwrap();
        file.write_all_at(&serial.to_ne_bytes(), at as u64).unwrap();
    }

    #[test]
    fn a_change_of_the_property_is_seen_at_the_next_check() {
        let dir = tempfile::tempdir().unwrap();
        let bytes = build(&[(TAGS_PROPERTY, "0x8"), ("debug.y", "1")]);
        let file = dir.path().join("u:object_r:debug_prop:s0");
        fs::write(&file, &bytes).unwrap();
        fs::write(dir.path().join("property_info"), "not an area").unwrap();
        let view = TagWatch::at(dir.path(), Tag::find("view").unwrap()).unwrap();
        let gfx = TagWatch::at(dir.path(), Tag::find("gfx").unwrap()).unwrap();
        assert!(view.is_on() && !gfx.is_on());
        let at = PropertyArea::parse(&bytes).unwrap().find(TAGS_PROPERTY).unwrap().serial_at;
        set(&file, at, "0x2", 2);
        assert!(!view.is_on() && gfx.is_on());
    }

    #[test]
    fn a_property_that_is_set_for_the_first_time_is_seen_too() {
        let dir = tempfile::tempdir().unwrap();
        let global = dir.path().join(GLOBAL);
        fs::write(&global, build(&[])).unwrap();
        let app = TagWatch::at(dir.path(), Tag::find("app").unwrap()).unwrap();
        assert!(!app.is_on());
        let area = build(&[
            (TAGS_PROPERTY, "0x1000"),
            (APP_NUMBER_PROPERTY, "1"),
            ("debug.atrace.app_0", "*tracebridge*"),
        ]);
        fs::write(dir.path().join("u:object_r:debug_prop:s0"), area).unwrap();
        set(&global, AREA_SERIAL, "", 1);
        assert!(app.is_on(), "this test's own command line matches");
    }

    #[test]
    fn a_linux_without_properties_has_nothing_to_watch() {
        assert!(TagWatch::at(Path::new("/nonexistent"), Tag::find("view").unwrap()).is_none());
    }
}
