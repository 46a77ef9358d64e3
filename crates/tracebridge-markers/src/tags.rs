//! ATRACE tags: bits that say which parts of user space write markers. Bits and names are those of
//! libcutils's `cutils/trace.h`.
//!
//! libcutils matches patterns for the names of apps against a process's command line, by `fnmatch(3)` with
//! `FNM_NOESCAPE`; [`glob_matches`] does the same.

use std::fmt;

/// The property with the mask of the tags that are on.
pub const TAGS_PROPERTY: &str = "debug.atrace.tags.enableflags";
/// The property with the number of app patterns.
pub const APP_NUMBER_PROPERTY: &str = "debug.atrace.app_number";
/// The most app patterns that are read. The limit keeps a damaged property from costing time.
pub const MAX_APP_PATTERNS: usize = 64;

/// Returns the name of the property with app pattern number `n`.
pub fn app_property(n: usize) -> String {
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

/// Makes the constants of the tags and the table of all tags from one list.
macro_rules! tags {
    ($($bit:literal $constant:ident $name:literal $category:literal)*) => {
        /// The tags by their names in libcutils, without `ATRACE_TAG_`.
        impl Tag {
            $(
                #[doc = concat!("The tag `", $name, "`, bit ", $bit, ".")]
                pub const $constant: Tag = Tag { name: $name, category: $category, bit: $bit };
            )*
        }

        /// All tags, in the order of their bits.
        pub const TAGS: [Tag; 28] = [$(Tag::$constant),*];
    };
}

tags! {
    0 ALWAYS "always" ""
    1 GRAPHICS "graphics" "gfx"
    2 INPUT "input" "input"
    3 VIEW "view" "view"
    4 WEBVIEW "webview" "webview"
    5 WINDOW_MANAGER "window_manager" "wm"
    6 ACTIVITY_MANAGER "activity_manager" "am"
    7 SYNC_MANAGER "sync_manager" "sm"
    8 AUDIO "audio" "audio"
    9 VIDEO "video" "video"
    10 CAMERA "camera" "camera"
    11 HAL "hal" "hal"
    12 APP "app" ""
    13 RESOURCES "resources" "res"
    14 DALVIK "dalvik" "dalvik"
    15 RS "rs" "rs"
    16 BIONIC "bionic" "bionic"
    17 POWER "power" "power"
    18 PACKAGE_MANAGER "package_manager" "pm"
    19 SYSTEM_SERVER "system_server" "ss"
    20 DATABASE "database" "database"
    21 NETWORK "network" "network"
    22 ADB "adb" "adb"
    23 VIBRATOR "vibrator" "vibrator"
    24 AIDL "aidl" "aidl"
    25 NNAPI "nnapi" "nnapi"
    26 RRO "rro" "rro"
    27 THERMAL "thermal" "thermal"
}

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
    patterns.into_iter().any(|p| glob_matches(p.as_bytes(), cmdline))
}

/// Whether `text` matches `pattern`, in which `*` stands for any number of bytes, `?` for one, `[a-z]` and
/// `[!a-z]` for one of a set. No character escapes another, and `/` is a byte like any other.
pub fn glob_matches(pattern: &[u8], text: &[u8]) -> bool {
    let mut p = 0;
    let mut t = 0;
    // Where to try again when the text behind the last `*` does not match: the `*` then takes one byte more.
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            retry = Some((p, t));
            p += 1;
        } else if let Some(after) = match_one(pattern, p, text[t]) {
            p = after;
            t += 1;
        } else if let Some((star, from)) = retry {
            p = star + 1;
            t = from + 1;
            retry = Some((star, t));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

/// The position behind the pattern's element at `p`, if that element matches `byte`.
fn match_one(pattern: &[u8], p: usize, byte: u8) -> Option<usize> {
    match *pattern.get(p)? {
        b'?' => Some(p + 1),
        b'[' => match match_set(&pattern[p + 1..], byte) {
            Some((hit, len)) => hit.then_some(p + 1 + len),
            None => (byte == b'[').then_some(p + 1),
        },
        literal => (literal == byte).then_some(p + 1),
    }
}

/// Whether `byte` is in the set that starts behind `[`, and the set's length with its `]`. `None` where the
/// set never ends.
fn match_set(body: &[u8], byte: u8) -> Option<(bool, usize)> {
    let negated = matches!(body.first(), Some(b'!' | b'^'));
    let first = usize::from(negated);
    let mut hit = false;
    let mut at = first;
    loop {
        let low = *body.get(at)?;
        if low == b']' && at > first {
            return Some((hit != negated, at + 1));
        }
        match (body.get(at + 1), body.get(at + 2)) {
            (Some(b'-'), Some(high)) if *high != b']' => {
                hit |= (low..=*high).contains(&byte);
                at += 3;
            }
            _ => {
                hit |= low == byte;
                at += 1;
            }
        }
    }
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

    #[test]
    fn patterns_match_as_fnmatch_does() {
        let cases = [
            ("*", "", true),
            ("*", "com.example", true),
            ("com.*", "com.example:remote", true),
            ("com.*:remote", "com.example:remote", true),
            ("*a*b", "xxaxxab", true),
            ("*a*b", "xxaxxabc", false),
            ("com.example", "com.example2", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]", "]", true),
            ("[x", "[x", true),
            (r"\*", r"\foo", true),
            ("/data/*", "/data/local/tmp", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(
                super::glob_matches(pattern.as_bytes(), text.as_bytes()),
                expected,
                "{pattern} {text}"
            );
        }
    }
}
