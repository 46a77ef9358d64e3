//! ATRACE tags: bits that say which parts of user space write markers. Bits and names are those of
//! libcutils's `cutils/trace.h`.

use std::fmt;

/// The property with the mask of the tags that are on.
pub(super) const TAGS_PROPERTY: &str = "debug.atrace.tags.enableflags";
/// The property with the number of app patterns.
pub(super) const APP_NUMBER_PROPERTY: &str = "debug.atrace.app_number";
/// The most app patterns that are read. The limit keeps a damaged property from costing time.
pub(super) const MAX_APP_PATTERNS: usize = 64;

/// Returns the name of the property with app pattern number `n`.
pub(super) fn app_property(n: usize) -> String {
    format!("debug.atrace.app_{n}")
}

/// A tag: one bit of the mask in the property `debug.atrace.tags.enableflags`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag {
    /// The name behind `ATRACE_TAG_`, in lower case.
    pub name: &'static str,
    /// The atrace category that switches the tag on; empty where no category does.
    pub category: &'static str,
    /// The number of the bit, from 0.
    pub bit: u8,
}

impl Tag {
    /// Returns the mask with only this tag's bit.
    pub const fn mask(self) -> u64 {
        1 << self.bit
    }

    /// Finds a tag by its name, by its category, or by `ATRACE_TAG_NAME`; case does not matter.
    pub fn find(name: &str) -> Option<Tag> {
        let wanted = name.to_ascii_lowercase();
        let wanted = wanted.strip_prefix("atrace_tag_").unwrap_or(&wanted);
        TAGS.iter().find(|t| t.name == wanted || (!t.category.is_empty() && t.category == wanted)).copied()
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

const fn tag(bit: u8, name: &'static str, category: &'static str) -> Tag {
    Tag { name, category, bit }
}

/// All tags, in the order of their bits.
pub const TAGS: [Tag; 28] = [
    tag(0, "always", ""),
    tag(1, "graphics", "gfx"),
    tag(2, "input", "input"),
    tag(3, "view", "view"),
    tag(4, "webview", "webview"),
    tag(5, "window_manager", "wm"),
    tag(6, "activity_manager", "am"),
    tag(7, "sync_manager", "sm"),
    tag(8, "audio", "audio"),
    tag(9, "video", "video"),
    tag(10, "camera", "camera"),
    tag(11, "hal", "hal"),
    tag(12, "app", ""),
    tag(13, "resources", "res"),
    tag(14, "dalvik", "dalvik"),
    tag(15, "rs", "rs"),
    tag(16, "bionic", "bionic"),
    tag(17, "power", "power"),
    tag(18, "package_manager", "pm"),
    tag(19, "system_server", "ss"),
    tag(20, "database", "database"),
    tag(21, "network", "network"),
    tag(22, "adb", "adb"),
    tag(23, "vibrator", "vibrator"),
    tag(24, "aidl", "aidl"),
    tag(25, "nnapi", "nnapi"),
    tag(26, "rro", "rro"),
    tag(27, "thermal", "thermal"),
];

/// The mask of the tag that is always on.
pub const ALWAYS: u64 = 1;
/// The mask of the tag for markers of apps. It is on only in processes whose command line matches a pattern
/// in the properties `debug.atrace.app_N`.
pub const APP: u64 = 1 << 12;
/// The mask of all bits that stand for a tag.
pub const VALID: u64 = (1 << 28) - 1;

/// Returns the mask of the tags that are on, as libcutils reads it from `debug.atrace.tags.enableflags`: a
/// number in C notation (`0x…`, `0…` or decimal), where anything else counts as 0. `always` is on in any
/// case; `app` also needs [`app_is_traced`].
pub fn from_property(value: &str) -> u64 {
    (parse_mask(value) | ALWAYS) & VALID
}

/// Parses a mask as `strtoull(3)` does with base 0. A text that is not a number counts as 0.
pub fn parse_mask(value: &str) -> u64 {
    let value = value.trim();
    let number = if let Some(hex) = value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")) {
        u64::from_str_radix(hex, 16)
    } else if value.len() > 1 && value.starts_with('0') {
        u64::from_str_radix(&value[1..], 8)
    } else {
        value.parse()
    };
    number.unwrap_or(0)
}

/// Returns whether one of the patterns from `debug.atrace.app_0`… matches `cmdline`, the first word of a
/// process's command line.
pub fn app_is_traced<'a>(patterns: impl IntoIterator<Item = &'a str>, cmdline: &[u8]) -> bool {
    patterns.into_iter().any(|p| crate::text::glob_matches(p.as_bytes(), cmdline))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tag_is_at_its_bit() {
        assert!(TAGS.iter().enumerate().all(|(n, tag)| usize::from(tag.bit) == n));
        assert_eq!(TAGS.iter().fold(0, |all, t| all | t.mask()), VALID);
        assert_eq!(Tag::find("app").map(Tag::mask), Some(APP));
    }

    #[test]
    fn tags_are_found_by_any_of_their_names() {
        for name in ["graphics", "gfx", "ATRACE_TAG_GRAPHICS", "Graphics"] {
            assert_eq!(Tag::find(name).map(|t| t.bit), Some(1), "{name}");
        }
        assert_eq!(Tag::find(""), None);
        assert_eq!(Tag::find("sched"), None);
    }

    #[test]
    fn the_property_is_read_as_c_does() {
        assert_eq!(from_property("0x1002"), 0x1003);
        assert_eq!(from_property("010"), 9);
        assert_eq!(from_property("8"), 9);
        assert_eq!(from_property(""), ALWAYS);
        assert_eq!(from_property("view"), ALWAYS);
        assert_eq!(from_property("0xffffffffffffffff"), VALID);
    }
}
