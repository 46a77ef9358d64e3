//! The marker that ART writes around a wait for a monitor: who holds it, in which method, and which method
//! waits.
//!
//! The text is that of `Monitor::PrettyContentionInfo` and `MonitorContend` in AOSP's
//! `art/runtime/monitor.cc`: `monitor contention with owner NAME (ID) at METHOD(FILE:LINE) waiters=N blocking
//! from METHOD(FILE:LINE)`.

use std::borrow::Cow;

use serde::Serialize;

use super::own_frame::short_method;

const BEGIN: &str = "monitor contention with owner ";

/// A method in its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub(super) struct MethodPlace<'a> {
    /// `com.example.image.ImageLoader.load`.
    pub method: &'a str,
    pub file: Option<&'a str>,
    pub line: Option<u32>,
}

impl<'a> MethodPlace<'a> {
    /// Reads `void com.example.ImageLoader.load(int)(ImageLoader.java:57)`.
    fn parse(text: &'a str) -> Option<MethodPlace<'a>> {
        let (signature, place) = text.strip_suffix(')')?.rsplit_once('(')?;
        let name = signature.split('(').next().unwrap_or_default();
        let method = name.rsplit(' ').next().filter(|name| !name.is_empty())?;
        let (file, line) = place.rsplit_once(':').unwrap_or((place, ""));
        let file = Some(file).filter(|file| !matches!(*file, "" | "null" | "Unknown Source"));
        // Native methods have negative lines.
        let line = line.parse().ok().filter(|line| *line > 0 && file.is_some());
        Some(MethodPlace { method, file, line })
    }

    /// `ImageLoader.load (ImageLoader.java:57)`.
    fn text(&self) -> String {
        let method = short_method(self.method);
        match (self.file, self.line) {
            (Some(file), Some(line)) => format!("{method} ({file}:{line})"),
            (Some(file), None) => format!("{method} ({file})"),
            (None, _) => method.to_owned(),
        }
    }
}

/// A monitor for which a thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub(super) struct LockMarker<'a> {
    /// The name of the thread that holds the monitor.
    pub owner: &'a str,
    /// The method that holds it.
    pub holder: Option<MethodPlace<'a>>,
    /// The method that waits.
    pub waiter: Option<MethodPlace<'a>>,
}

impl<'a> LockMarker<'a> {
    /// `None` for any other marker.
    pub fn parse(name: &'a str) -> Option<LockMarker<'a>> {
        let rest = name.strip_prefix(BEGIN)?;
        let (held, waiting) = rest.split_once(" waiters=").unwrap_or((rest, ""));
        let waiter = waiting.split_once(" blocking from ").and_then(|(_, place)| MethodPlace::parse(place));
        // A thread's name may have any text: its number in parentheses ends it.
        let ends = held.match_indices(" (").find_map(|(at, _)| {
            let number = held[at + 2..].split(')').next()?;
            let rest = held.get(at + 2 + number.len() + 1..)?;
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            (is_number && (rest.is_empty() || rest.starts_with(" at "))).then_some((at, rest))
        });
        let (owner, holder) = ends.map_or((held, ""), |(at, rest)| (&held[..at], rest));
        let holder = holder.strip_prefix(" at ").and_then(MethodPlace::parse);
        Some(LockMarker { owner, holder, waiter })
    }

    /// `ImageCache.get (ImageCache.java:31), blocked by ImageLoader.load (ImageLoader.java:57) of
    /// "pool-2-thread-1"`.
    pub fn blocked(&self) -> String {
        let waiter = self.waiter.map_or_else(|| "a wait for a lock".to_owned(), |place| place.text());
        let holder = self.holder.map_or_else(String::new, |place| format!("{} of ", place.text()));
        format!("{waiter}, blocked by {holder}\"{}\"", self.owner)
    }

    /// `waited in ImageCache.get (ImageCache.java:31) for a lock that "pool-2-thread-1" held in
    /// ImageLoader.load (ImageLoader.java:57)`. `waker` is the thread that ended the wait.
    pub fn sentence(&self, waker: Option<&str>) -> String {
        let within = |place: Option<MethodPlace<'_>>| {
            place.map_or_else(String::new, |place| format!(" in {}", place.text()))
        };
        let mut text = format!(
            "waited{} for a lock that \"{}\" held{}",
            within(self.waiter),
            self.owner,
            within(self.holder)
        );
        // The kernel cuts names of threads: the last 15 bytes, or the first ones, stay.
        let is_owner = |waker: &str| self.owner == waker || waker.len() >= 15 && self.owner.contains(waker);
        if let Some(waker) = waker.filter(|waker| !is_owner(waker)) {
            text.push_str(&format!(" and \"{waker}\" passed on"));
        }
        text
    }
}

/// A marker's text without the number of threads that wait: it is the same lock, taken in the same methods.
pub(super) fn without_waiters(name: &str) -> Cow<'_, str> {
    let number = |rest: &str| rest.bytes().take_while(u8::is_ascii_digit).count();
    match name.split_once(" waiters=").filter(|_| name.starts_with(BEGIN)) {
        Some((before, rest)) => format!("{before}{}", &rest[number(rest)..]).into(),
        None => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "monitor contention with owner pool (2) (17) at void com.example.ImageLoader.load(int)\
                         (ImageLoader.java:57) waiters=1 blocking from android.graphics.Bitmap \
                         com.example.ImageCache.get(java.lang.String, int)(ImageCache.java:31)";

    #[test]
    fn a_marker_names_the_owner_its_method_and_the_method_that_waits() {
        let marker = LockMarker::parse(WHOLE).unwrap();
        let place = |method, file, line| Some(MethodPlace { method, file: Some(file), line: Some(line) });
        assert_eq!(marker.owner, "pool (2)");
        assert_eq!(marker.holder, place("com.example.ImageLoader.load", "ImageLoader.java", 57));
        assert_eq!(marker.waiter, place("com.example.ImageCache.get", "ImageCache.java", 31));
        let words = "waited in ImageCache.get (ImageCache.java:31) for a lock that \"pool (2)\" held in ImageLoader.load \
                     (ImageLoader.java:57)";
        assert_eq!(marker.sentence(None), words);
        let blocked = "ImageCache.get (ImageCache.java:31), blocked by ImageLoader.load (ImageLoader.java:57) of \"pool (2)\"";
        assert_eq!(marker.blocked(), blocked);
        assert_eq!(marker.sentence(Some("pool (2)")), words);
        assert_eq!(marker.sentence(Some("other")), format!("{words} and \"other\" passed on"));
        assert!(!without_waiters(WHOLE).contains("waiters"));
        assert!(without_waiters(WHOLE).ends_with(
            "57) blocking from android.graphics.Bitmap \
             com.example.ImageCache.get(java.lang.String, int)(ImageCache.java:31)"
        ));
    }

    #[test]
    fn a_marker_may_lack_methods_files_and_lines() {
        let parse =
            |rest: &str| LockMarker::parse(&format!("{BEGIN}{rest}")).map(|marker| marker.sentence(None));
        assert_eq!(parse("main (1)").unwrap(), "waited for a lock that \"main\" held");
        assert_eq!(
            parse("main (1) at void a.B.run()(null:-1) waiters=0 blocking from void a.C.<init>()(C.java:-2)")
                .unwrap(),
            "waited in C.<init> (C.java) for a lock that \"main\" held in B.run"
        );
        assert_eq!(parse("main").unwrap(), "waited for a lock that \"main\" held");
        assert_eq!(LockMarker::parse("Lock contention on thread list lock (owner tid: 3)"), None);
        for cut in 0..WHOLE.len() {
            let _ = LockMarker::parse(&WHOLE[..cut]).map(|marker| marker.sentence(Some("é")));
        }
    }
}
