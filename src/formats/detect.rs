//! Names the format of anything: what tracebridge reads, and what it does not, so that it can be said politely.

/// What a file is, by its first bytes (and for texts its first lines).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFormat {
    /// trace-cmd's file, version 6 or 7.
    TraceDat,
    /// A method trace of ART or Dalvik, streaming or not.
    ArtMethod,
    /// A Perfetto trace.
    Perfetto,
    /// ftrace's or atrace's text, also with zlib after `TRACE:`.
    FtraceText,
    /// systrace's HTML page, old or new form.
    SystraceHtml,
    /// What `tracebridge record -o -` writes.
    Stream,
    /// Something else, which is not read.
    Other(Other),
}

/// A file that is not read: what it is, and which program opens it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Other {
    /// What it is.
    pub what: &'static str,
    /// Which program opens it, or how to come to a file that is read.
    pub cure: &'static str,
}

impl InputFormat {
    /// The format's name for people.
    pub fn name(self) -> &'static str {
        match self {
            InputFormat::TraceDat => "trace.dat",
            InputFormat::ArtMethod => "method trace",
            InputFormat::Perfetto => "Perfetto trace",
            InputFormat::FtraceText => "ftrace text",
            InputFormat::SystraceHtml => "systrace HTML",
            InputFormat::Stream => "tracebridge stream",
            InputFormat::Other(other) => other.what,
        }
    }
}

const OTHERS: &[(&[u8], &str, &str)] = &[
    (b"PERFILE2", "a perf.data file of perf or simpleperf", "perf script, simpleperf report"),
    (b"2ELIFREP", "a perf.data file of a big-endian machine", "perf script on such a machine"),
    (b"SIMPLEPERF", "a report of simpleperf", "simpleperf's report_sample.py"),
    (b"JAVA PROFILE 1.", "a heap dump (hprof)", "Android Studio's memory profiler, Eclipse MAT"),
    (b"FLR\0", "a recording of Java Flight Recorder", "JDK Mission Control"),
    (b"PK\x03\x04", "a zip archive", "unzip it and name the file in it"),
    (b"BZh", "data packed by bzip2", "unpack it with bunzip2"),
    (b"\xfd7zXZ\0", "data packed by xz", "unpack it with unxz"),
    (b"\x04\x22\x4d\x18", "data packed by lz4", "unpack it with lz4 -d"),
    (b"\x7fELF", "an ELF program or library", "it holds no trace"),
    (b"dex\n", "a DEX file", "it holds no trace"),
    (b"SQLite format 3\0", "an SQLite database", "sqlite3"),
    (b"\x89PNG", "a PNG picture", "it holds no trace"),
    (b"\xc1\x1f\xfc\xc1", "a CTF trace (LTTng)", "babeltrace2, Trace Compass"),
    (b"%PDF", "a PDF document", "it holds no trace"),
    (b"{\"traceEvents\"", "a Chrome JSON trace", "ui.perfetto.dev, chrome://tracing"),
    (b"{\"meta\"", "a profile of the Firefox profiler", "profiler.firefox.com"),
];

/// Names the format of a file from its bytes. Never fails: what nobody knows is an [`InputFormat::Other`] that says so.
pub fn detect(bytes: &[u8]) -> InputFormat {
    let head = bytes.get(..bytes.len().min(64 << 10)).unwrap_or(bytes);
    if head.starts_with(b"\x17\x08\x44tracing") {
        return InputFormat::TraceDat;
    }
    if head.starts_with(b"*version\n") || head.starts_with(b"*version\r\n") || head.starts_with(b"SLOW") {
        return InputFormat::ArtMethod;
    }
    // An empty first line, as a captured `adb shell` begins with, looks like the start of a protobuf.
    if head.trim_ascii_start().starts_with(b"# tracer:") {
        return InputFormat::FtraceText;
    }
    if is_perfetto(head) {
        return InputFormat::Perfetto;
    }
    if let Some((_, what, cure)) = OTHERS.iter().find(|(magic, ..)| head.starts_with(magic)) {
        return InputFormat::Other(Other { what, cure });
    }
    if is_html(head) {
        return match holds_trace(bytes) {
            true => InputFormat::SystraceHtml,
            false => other("an HTML page without a trace in it", "only systrace's pages hold one"),
        };
    }
    if is_ftrace_text(head) {
        return InputFormat::FtraceText;
    }
    if head.contains(&0) {
        return other("binary data of an unknown kind", "see what wrote it");
    }
    other("text of an unknown kind", "ftrace's and atrace's texts are read, if their event lines are whole")
}

fn other(what: &'static str, cure: &'static str) -> InputFormat {
    InputFormat::Other(Other { what, cure })
}

/// A Trace is a repeated field 1 of TracePackets: its first byte is 0x0a, then a length, then a packet's field.
fn is_perfetto(head: &[u8]) -> bool {
    let Some((0x0a, rest)) = head.split_first() else { return false };
    let mut len: u64 = 0;
    for (n, byte) in rest.iter().take(5).enumerate() {
        len |= u64::from(byte & 0x7f) << (7 * n);
        if byte & 0x80 == 0 {
            let Some(tag) = rest.get(n + 1) else { return false };
            // A packet's first field: of wire type varint, 64 bit, length or 32 bit, and not field 0.
            return len > 0 && matches!(tag & 7, 0 | 1 | 2 | 5) && tag >> 3 != 0;
        }
    }
    false
}

fn is_html(head: &[u8]) -> bool {
    let start = head.trim_ascii_start();
    let is = |tag: &[u8]| start.get(..tag.len()).is_some_and(|s| s.eq_ignore_ascii_case(tag));
    is(b"<!doctype html") || is(b"<html") || is(b"<!--")
}

fn holds_trace(bytes: &[u8]) -> bool {
    [&b"trace-data"[..], b"linuxPerfData"]
        .iter()
        .any(|needle| bytes.windows(needle.len()).any(|w| w == *needle))
}

/// ftrace's header, atrace's `TRACE:`, or a line with ` [000] … 12.345678: name:` among the first.
fn is_ftrace_text(head: &[u8]) -> bool {
    let mut lines = head.split(|b| *b == b'\n').map(|l| l.trim_ascii()).take(400);
    lines.any(|line| {
        line.starts_with(b"# tracer:")
            || line.starts_with(b"TRACE:")
            || line == b"capturing trace... done"
            || line.starts_with(b"/proc/")
            || line.starts_with(b"proc/")
            || is_event_line(line)
    })
}

fn is_event_line(line: &[u8]) -> bool {
    let Some(open) = line.iter().position(|b| *b == b'[') else { return false };
    let Some(cpu) = line.get(open + 1..) else { return false };
    let digits = cpu.iter().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 || cpu.get(digits) != Some(&b']') {
        return false;
    }
    // Then, maybe after flags, seconds with a fraction and a colon.
    let mut words = cpu.get(digits + 1..).unwrap_or_default().split(|b| b.is_ascii_whitespace());
    words.by_ref().filter(|w| !w.is_empty()).take(3).any(|word| {
        let Some((b':', number)) = word.split_last() else { return false };
        number.contains(&b'.') && number.iter().all(|b| b.is_ascii_digit() || *b == b'.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_their_first_bytes() {
        let cases: &[(&[u8], InputFormat)] = &[
            (b"\x17\x08\x44tracing6\0\0\0", InputFormat::TraceDat),
            (b"*version\n3\ndata-file-overflow=false\n", InputFormat::ArtMethod),
            (b"SLOW\xf3\0\x20\0", InputFormat::ArtMethod),
            (b"\x0a\x04\x50\x01\x08\x02", InputFormat::Perfetto),
            (b"# tracer: nop\n#\n", InputFormat::FtraceText),
            (b"capturing trace... done\nTRACE:\n\x78\x9c", InputFormat::FtraceText),
            (b" sh-1 [000] 12.345678: print: B|1|a\n", InputFormat::FtraceText),
            (b" sh-1 (1) [003] d..2 12.345678: sched_switch: x\n", InputFormat::FtraceText),
            (b"<!DOCTYPE html>\n<script class=\"trace-data\">", InputFormat::SystraceHtml),
        ];
        for (bytes, want) in cases {
            assert_eq!(detect(bytes), *want, "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn what_is_not_read_is_named() {
        for (bytes, said) in [
            (&b"PERFILE2\x68\0"[..], "perf"),
            (b"JAVA PROFILE 1.0.3\0", "hprof"),
            (b"hello\n", "text of an unknown kind"),
            (b"\x00\x01\x02", "binary data"),
            (b"<html><body>", "HTML page without"),
        ] {
            assert!(detect(bytes).name().contains(said), "{:?}", detect(bytes));
        }
    }
}
