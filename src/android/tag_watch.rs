//! Checks whether a tag is on for the price of a load and a comparison: the serial number of the property
//! lies in memory that init shares with every process, and only a change of that number makes the value be
//! read again.
#![allow(unsafe_code)] // maps the memory of the properties

use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use super::property_area::{AREA_SERIAL_OFFSET, PropertyArea};
use super::tags::{self, APP_NUMBER_PROPERTY, MAX_APP_PATTERNS, TAGS_PROPERTY, Tag, app_property};

/// The property areas of Android: a directory of files since Android 7, one file before.
const PROPERTY_AREAS: &str = "/dev/__properties__";
/// The area in that directory whose serial number grows with each change of any property.
const GLOBAL_AREA: &str = "properties_serial";

/// Watches whether a tag is on.
#[derive(Debug)]
pub struct TagWatch {
    /// The mask of the watched tags.
    tags: u64,
    areas: PathBuf,
    /// The file with the command line that decides whether the tag `app` is on.
    cmdline: PathBuf,
    serial: Serial,
    seen: AtomicU32,
    /// The mask of those watched tags that were on at the serial number `seen`. No tag has a bit above 27.
    on: AtomicU32,
}

impl TagWatch {
    /// Watches `tag` on this system. Returns `None` on a system without properties.
    pub fn new(tag: Tag) -> Option<TagWatch> {
        TagWatch::at(Path::new(PROPERTY_AREAS), tag)
    }

    /// Watches all tags on this system. Returns `None` on a system without properties.
    pub(crate) fn all() -> Option<TagWatch> {
        TagWatch::of(Path::new(PROPERTY_AREAS), tags::VALID)
    }

    /// Watches `tag` in the property areas at the path `areas`.
    pub fn at(areas: &Path, tag: Tag) -> Option<TagWatch> {
        TagWatch::of(areas, tag.mask())
    }

    fn of(areas: &Path, tags: u64) -> Option<TagWatch> {
        // The serial number of the property itself; the number of all properties where this one was never
        // set.
        let own = files(areas).find_map(|file| {
            let bytes = fs::read(&file).ok()?;
            let found = PropertyArea::parse(&bytes)?.find(TAGS_PROPERTY)?;
            Serial::map(&file, found.serial_at)
        });
        let global = || {
            let file = if areas.is_dir() { areas.join(GLOBAL_AREA) } else { areas.to_owned() };
            Serial::map(&file, AREA_SERIAL_OFFSET)
        };
        let serial = own.or_else(global)?;
        let watch = TagWatch {
            tags,
            areas: areas.to_owned(),
            cmdline: "/proc/self/cmdline".into(),
            seen: AtomicU32::new(0),
            on: AtomicU32::new(0),
            serial,
        };
        watch.refresh();
        Some(watch)
    }

    /// Watches the tag on behalf of another process: the command line of `pid` decides whether the tag `app`
    /// is on.
    pub fn for_process(mut self, pid: u32) -> TagWatch {
        self.cmdline = format!("/proc/{pid}/cmdline").into();
        self.refresh();
        self
    }

    /// Returns whether the tag is on now.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on() != 0
    }

    /// Returns the mask of the watched tags that are on now.
    #[inline]
    pub(crate) fn on(&self) -> u64 {
        if self.serial.load() != self.seen.load(Ordering::Acquire) {
            self.refresh();
        }
        u64::from(self.on.load(Ordering::Relaxed))
    }

    /// Reads the properties, whether or not they changed.
    #[cold]
    pub(crate) fn refresh(&self) {
        // The number is read before the values, so that the next check notices a change in between.
        let serial = self.serial.load();
        let areas: Vec<Vec<u8>> = files(&self.areas).filter_map(|file| fs::read(file).ok()).collect();
        let get = |name: &str| {
            let found = areas.iter().find_map(|bytes| PropertyArea::parse(bytes)?.find(name));
            found.map_or_else(String::new, |f| String::from_utf8_lossy(f.value).into_owned())
        };
        let mut on = tags::from_property(&get(TAGS_PROPERTY));
        if self.tags & on & tags::APP != 0 {
            let number = get(APP_NUMBER_PROPERTY).trim().parse().unwrap_or(0).min(MAX_APP_PATTERNS);
            let patterns: Vec<String> = (0..number).map(|n| get(&app_property(n))).collect();
            let cmdline = fs::read(&self.cmdline).unwrap_or_default();
            let name = cmdline.split(|b| *b == 0).next().unwrap_or_default();
            if !tags::app_is_traced(patterns.iter().map(String::as_str), name) {
                on &= !tags::APP;
            }
        }
        self.on.store((on & self.tags) as u32, Ordering::Relaxed);
        self.seen.store(serial, Ordering::Release);
    }
}

fn files(areas: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(areas).map(|dir| dir.flatten().map(|e| e.path()).collect::<Vec<_>>());
    entries.unwrap_or_else(|_| vec![areas.to_owned()]).into_iter()
}

/// A serial number in memory that init shares and changes.
#[derive(Debug)]
struct Serial {
    map: NonNull<std::ffi::c_void>,
    len: usize,
    at: usize,
}

// SAFETY: only this value uses the mapping; it never writes to it, and reads it through an atomic only.
unsafe impl Send for Serial {}
// SAFETY: as for Send; several threads may read an atomic.
unsafe impl Sync for Serial {}

impl Serial {
    fn map(file: &Path, at: usize) -> Option<Serial> {
        let file = File::open(file).ok()?;
        let len = usize::try_from(file.metadata().ok()?.len()).ok()?;
        if !at.is_multiple_of(align_of::<AtomicU32>()) || at.checked_add(size_of::<AtomicU32>())? > len {
            return None;
        }
        // SAFETY: the mapping is new, at an address that the kernel chooses, and nothing else uses it. The
        // file of an area never shrinks while the system runs.
        let map = unsafe {
            mmap(None, NonZeroUsize::new(len)?, ProtFlags::PROT_READ, MapFlags::MAP_SHARED, &file, 0).ok()?
        };
        Some(Serial { map, len, at })
    }

    #[inline]
    fn load(&self) -> u32 {
        // SAFETY: `map` has checked that `at` is aligned and inside the mapping, which lives as long as
        // `self`. init changes the number atomically.
        unsafe { AtomicU32::from_ptr(self.map.as_ptr().cast::<u8>().add(self.at).cast()) }
            .load(Ordering::Acquire)
    }
}

impl Drop for Serial {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map`, and no reference to it is left.
        let _ = unsafe { munmap(self.map, self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::property_area::build;
    use super::*;

    /// Changes a property as init does: first the value, then the serial number.
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
        let global = dir.path().join(GLOBAL_AREA);
        fs::write(&global, build(&[])).unwrap();
        let app = TagWatch::at(dir.path(), Tag::find("app").unwrap()).unwrap();
        assert!(!app.is_on());
        let area = build(&[
            (TAGS_PROPERTY, "0x1000"),
            (APP_NUMBER_PROPERTY, "1"),
            ("debug.atrace.app_0", "*tracebridge*"),
        ]);
        fs::write(dir.path().join("u:object_r:debug_prop:s0"), area).unwrap();
        set(&global, AREA_SERIAL_OFFSET, "", 1);
        assert!(app.is_on(), "this test's own command line matches");
    }

    #[test]
    fn a_linux_without_properties_has_nothing_to_watch() {
        assert!(TagWatch::at(Path::new("/nonexistent"), Tag::find("view").unwrap()).is_none());
    }
}
