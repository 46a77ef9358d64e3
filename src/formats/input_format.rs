//! The table of the formats that tracebridge reads, and the detection of a file's format by its first bytes.
//!
//! To add a format: name it in [`FormatId`], write a module with `detect` and `open`, and add one row to
//! [`FORMATS`]. Nothing else in the program looks at bytes to find a file's format.

use super::format_id::{FormatId, UnreadFile};
use super::input::Input;
use super::recording::{FormatError, OpenedInput};
use super::{
    art_method, chrome_json, folded_stacks, ftrace_text, gecko_profile, perf_data, perfetto, screen_video,
    simpleperf_report, strace, trace_dat, unread_files,
};

/// One format that is read: a row of [`FORMATS`].
pub struct InputFormat {
    /// The format.
    pub id: FormatId,
    /// Whether a file with these bytes has this format. Most formats are recognized by their first bytes,
    /// texts by their first lines.
    pub detect: fn(&[u8]) -> bool,
    /// Reads a file's head. Events and method records are read later, from what this returns.
    pub open: for<'a> fn(&'a Input) -> Result<OpenedInput<'a>, FormatError>,
}

/// Every format that is read. The first row whose `detect` accepts the bytes is the file's format, so formats
/// with a magic number stand before those that are recognized by their contents.
pub static FORMATS: &[InputFormat] = &[
    InputFormat { id: FormatId::TraceDat, detect: trace_dat::detect, open: trace_dat::open },
    InputFormat { id: FormatId::MethodTrace, detect: art_method::detect, open: open_method_trace },
    InputFormat { id: FormatId::PerfData, detect: perf_data::detect, open: perf_data::open },
    InputFormat {
        id: FormatId::SimpleperfReport,
        detect: simpleperf_report::detect,
        open: simpleperf_report::open,
    },
    InputFormat { id: FormatId::ScreenVideo, detect: screen_video::detect, open: screen_video::open },
    InputFormat { id: FormatId::Perfetto, detect: perfetto::detect, open: perfetto::open },
    InputFormat { id: FormatId::GeckoProfile, detect: gecko_profile::detect, open: gecko_profile::open },
    InputFormat { id: FormatId::ChromeJson, detect: chrome_json::detect, open: chrome_json::open },
    InputFormat { id: FormatId::SystraceHtml, detect: ftrace_text::detect_html, open: ftrace_text::open },
    InputFormat { id: FormatId::FtraceText, detect: ftrace_text::detect, open: ftrace_text::open },
    InputFormat { id: FormatId::Strace, detect: strace::detect, open: strace::open },
    InputFormat { id: FormatId::FoldedStacks, detect: folded_stacks::detect, open: folded_stacks::open },
];

/// The row of a format.
pub(super) fn reader(format: FormatId) -> &'static InputFormat {
    FORMATS.iter().find(|row| row.id == format).expect("each format has a row")
}

fn open_method_trace(input: &Input) -> Result<OpenedInput<'_>, FormatError> {
    Ok(OpenedInput::MethodTrace(Box::new(art_method::MethodTrace::parse(input)?)))
}

impl std::fmt::Debug for InputFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id.name())
    }
}

/// The format of an input. It is decided once, and kept in the input.
///
/// # Errors
/// An [`UnreadFile`] with the kind of the file, as far as the first bytes show it.
pub fn identify(input: &Input) -> Result<FormatId, UnreadFile> {
    input.format_or_else(identify_bytes)
}

/// Whether an input has this format.
pub fn has_format(input: &Input, format: FormatId) -> bool {
    identify(input) == Ok(format)
}

#[cfg(test)]
thread_local! {
    /// How often this thread has asked for the format of bytes.
    pub(crate) static IDENTIFICATIONS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Finds the format of a file by its bytes. [`identify`] remembers that of an input.
///
/// # Errors
/// An [`UnreadFile`] with the kind of the file, as far as the first bytes show it.
pub fn identify_bytes(bytes: &[u8]) -> Result<FormatId, UnreadFile> {
    #[cfg(test)]
    IDENTIFICATIONS.set(IDENTIFICATIONS.get() + 1);
    if let Some(file) = unread_files::by_first_bytes(bytes) {
        return Err(file);
    }
    let row = FORMATS.iter().find(|row| (row.detect)(bytes));
    row.map(|row| row.id).ok_or_else(|| unread_files::describe(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_their_first_bytes() {
        let cases: &[(&[u8], &str)] = &[
            (b"\x17\x08\x44tracing6\0\0\0", "trace.dat"),
            (b"*version\n3\ndata-file-overflow=false\n", "method trace"),
            (b"SLOW\xf3\0\x20\0", "method trace"),
            (b"PERFILE2\x68\0", "perf.data"),
            (b"2ELIFREP\0\0", "perf.data"),
            (b"SIMPLEPERF\x01\0", "simpleperf report"),
            (b"\0\0\0\x18ftypmp42\0\0\0\0isommp42", "screen video"),
            (b"\x0a\x04\x50\x01\x40\x02", "Perfetto trace"),
            (b"\x0a\0\x0a\x04\x50\x01\x40\x02", "Perfetto trace"),
            (b"{\"meta\":{\"version\":24,\"interval\":1}}", "Firefox profile"),
            (b"{\"traceEvents\":[]}", "Chrome JSON"),
            (b"main;a;b 3\nmain;a 1\n", "folded stacks"),
            (b"\n     [ {\"ph\": \"X\"}", "Chrome JSON"),
            (b"# tracer: nop\n#\n", "ftrace text"),
            (b"\n# tracer: nop\n#\n", "ftrace text"),
            (b"capturing trace... done\nTRACE:\n\x78\x9c", "ftrace text"),
            (b" sh-1 [000] 12.345678: print: B|1|a\n", "ftrace text"),
            (b" sh-1 (1) [003] d..2 12.345678: sched_switch: x\n", "ftrace text"),
            (b"<!DOCTYPE html>\n<script class=\"trace-data\">", "systrace HTML"),
            (b"1700000052.321000 close(3)                = 0\n", "strace text"),
            (b"1234  01:43:14 read(3, \"\", 1) = 0 <0.000005>\n", "strace text"),
            (
                b"hello\nstrace: Process 75 attached\n[pid    75] 01:43:14.5 read(3,  <unfinished ...>\n",
                "strace text",
            ),
            (b"22340      0.000321 brk(NULL)           = 0x559b\n", "strace text"),
        ];
        for (bytes, want) in cases {
            let found = identify_bytes(bytes).map(FormatId::name);
            assert_eq!(found, Ok(*want), "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn no_two_rows_have_the_same_name() {
        for (at, row) in FORMATS.iter().enumerate() {
            let name = row.id.name();
            assert!(FORMATS[..at].iter().all(|other| other.id.name() != name), "{name}");
        }
    }

    #[test]
    fn an_input_is_identified_once() {
        let input = Input::from_bytes("x.txt", b"# tracer: nop\n".to_vec());
        let before = IDENTIFICATIONS.get();
        for _ in 0..3 {
            assert_eq!(identify(&input), Ok(FormatId::FtraceText));
        }
        assert_eq!(IDENTIFICATIONS.get() - before, 1);
    }

    #[test]
    fn files_that_no_reader_accepts_are_named() {
        for (bytes, said) in [
            (&b"JAVA PROFILE 1.0.3\0"[..], "hprof"),
            (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", "Git LFS pointer"),
            (&[&[b'a'; 257][..], b"ustar\x0000"].concat(), "tar archive"),
            (b"hello\n", "text of an unknown kind"),
            (
                b"execve(\"/bin/true\", [\"true\"], 0x7ffc /* 35 vars */) = 0\nbrk(NULL) = 0x55\n",
                "strace without times",
            ),
            (b"\x00\x01\x02", "binary data"),
            (b"<html><body>", "HTML page without"),
            (b"<html>\n sh-1 [000] 12.345678: print: B|1|a\n", "HTML page without"),
        ] {
            let unread = identify_bytes(bytes).expect_err("no reader takes it");
            assert!(unread.what.contains(said), "{unread:?}");
        }
    }
}
