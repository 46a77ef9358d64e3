//! Checks whether a tag is on for the price of a load and a comparison: the serial number of the property
//! lies in memory that init shares with every process, and only a change of that number makes the value be
//! read again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::property_area::{AREA_SERIAL_OFFSET, FoundProperty, PropertyArea};
use super::system::SharedNumber;
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
    /// The area that has the property of the tags. Those of the apps are in the same one.
    home: Option<PathBuf>,
    /// The file with the command line that decides whether the tag `app` is on.
    cmdline: PathBuf,
    serial: SharedNumber,
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
    pub fn all() -> Option<TagWatch> {
        TagWatch::watch(Path::new(PROPERTY_AREAS), tags::VALID)
    }

    /// Watches `tag` in the property areas at the path `areas`.
    pub fn at(areas: &Path, tag: Tag) -> Option<TagWatch> {
        TagWatch::watch(areas, tag.mask())
    }

    fn watch(areas: &Path, tags: u64) -> Option<TagWatch> {
        // The serial number of the property itself; the number of all properties where this one was never
        // set.
        let own = Properties::new(areas, None).find(TAGS_PROPERTY, |file, found| {
            SharedNumber::map(file, found.serial_at).map(|serial| (serial, file.to_owned()))
        });
        let global = || {
            let file = if areas.is_dir() { areas.join(GLOBAL_AREA) } else { areas.to_owned() };
            SharedNumber::map(&file, AREA_SERIAL_OFFSET)
        };
        let (serial, home) = match own.flatten() {
            Some((serial, home)) => (serial, Some(home)),
            None => (global()?, None),
        };
        let watch = TagWatch {
            tags,
            areas: areas.to_owned(),
            home,
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
    pub fn on(&self) -> u64 {
        if self.serial.load() != self.seen.load(Ordering::Acquire) {
            self.refresh();
        }
        u64::from(self.on.load(Ordering::Relaxed))
    }

    /// Reads the properties, whether or not they changed.
    #[cold]
    pub fn refresh(&self) {
        // The number is read before the values, so that the next check notices a change in between.
        let serial = self.serial.load();
        let mut properties = Properties::new(&self.areas, self.home.as_deref());
        let mut get = |name: &str| {
            let value = properties.find(name, |_, found| String::from_utf8_lossy(found.value).into_owned());
            value.unwrap_or_default()
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

/// The properties in the areas at a path. Android has hundreds of areas of 128 KiB, so that each is read only
/// when the ones before it lack a property.
struct Properties {
    unread: std::vec::IntoIter<PathBuf>,
    read: Vec<(PathBuf, Vec<u8>)>,
}

impl Properties {
    /// Begins with the file `first`.
    fn new(areas: &Path, first: Option<&Path>) -> Properties {
        let entries = fs::read_dir(areas).map(|dir| dir.flatten().map(|entry| entry.path()).collect());
        let mut files: Vec<PathBuf> = entries.unwrap_or_else(|_| vec![areas.to_owned()]);
        files.sort_by_key(|file| Some(file.as_path()) != first);
        Properties { unread: files.into_iter(), read: Vec::new() }
    }

    /// Hands the property called `name`, and the file that has it, to `take`.
    fn find<T>(&mut self, name: &str, take: impl Fn(&Path, FoundProperty<'_>) -> T) -> Option<T> {
        let find_in = |(file, bytes): &(PathBuf, Vec<u8>)| {
            PropertyArea::parse(bytes)?.find(name).map(|found| take(file, found))
        };
        if let Some(found) = self.read.iter().find_map(find_in) {
            return Some(found);
        }
        for file in self.unread.by_ref() {
            let Ok(bytes) = fs::read(&file) else { continue };
            self.read.push((file, bytes));
            if let Some(found) = self.read.last().and_then(find_in) {
                return Some(found);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

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
    fn a_change_is_looked_for_in_the_area_that_has_the_property() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("u:object_r:debug_prop:s0");
        let bytes = build(&[(TAGS_PROPERTY, "0x8")]);
        fs::write(&home, &bytes).unwrap();
        let view = TagWatch::at(dir.path(), Tag::find("view").unwrap()).unwrap();
        // An area that is read first, but for what the watch knows: the property has another value there.
        let other = build(&[(TAGS_PROPERTY, "0x2")]);
        (0..20).for_each(|n| fs::write(dir.path().join(format!("{n}")), &other).unwrap());
        view.refresh();
        assert!(view.is_on());
        let mut properties = Properties::new(dir.path(), Some(&home));
        assert_eq!(properties.find(TAGS_PROPERTY, |file, _| file.to_owned()).as_ref(), Some(&home));
        assert_eq!(properties.read.len(), 1);
        assert!(properties.find("debug.none", |_, _| ()).is_none() && properties.read.len() == 21);
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
