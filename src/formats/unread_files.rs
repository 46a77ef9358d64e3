//! Kinds of files that are recognised and that no reader accepts: each with its name, and with what opens it
//! or how to get a file that is read.

use super::archive::ZIP_MAGIC;
use super::archive::tar::is_tar;
use super::benchmark_dir::begins_benchmark_metrics;
use super::format_id::UnreadFile;
use super::input::DETECTION_BYTES;
use super::json::{Scanner, Value};
use super::wire::read::{WireValue, fields};
use super::{ftrace_text, strace};

/// Kinds of files that are known by their first bytes.
const BY_FIRST_BYTES: &[(&[u8], UnreadFile)] = &[
    (
        b"JAVA PROFILE 1.",
        trace("a heap dump (hprof)", "open it with Android Studio's memory profiler or Eclipse MAT"),
    ),
    (b"FLR\0", trace("a recording of Java Flight Recorder", "open it with JDK Mission Control")),
    (b"\xc1\x1f\xfc\xc1", CTF),
    (b"\x57\x1d\xd1\x75", CTF),
    (b"\x75\xd1\x1d\x57", CTF),
    (b"/* CTF ", CTF),
    (b"Nettrace", trace("a trace of .NET", "open it with PerfView, or convert it with dotnet-trace")),
    (b"\x10\0\x04FxT\x16\0", trace("a Fuchsia trace (FXT)", "open it with the Perfetto UI")),
    (b"\x09WINTRACE", WINSCOPE),
    (b"\x09LYRTRACE", WINSCOPE),
    (b"\x09TNXTRACE", WINSCOPE),
    (b"\x09PROTOLOG", WINSCOPE),
    (b"\x09IMCTRACE", WINSCOPE),
    (b"\x09IMSTRACE", WINSCOPE),
    (b"\x09IMMTRACE", WINSCOPE),
    (
        b"tlZ\x04",
        trace("a trace of Tracy", "open it with Tracy's profiler, or export it with tracy-csvexport"),
    ),
    (
        b"tr\xfdP",
        trace("a trace of Tracy", "open it with Tracy's profiler, or export it with tracy-csvexport"),
    ),
    (b"Ftrace!\0", trace("the info file of uftrace", "convert the directory with `uftrace dump --chrome`")),
    (b"# callgrind format", CALLGRIND),
    (b"version: 1\ncreator: callgrind", CALLGRIND),
    (
        ZIP_MAGIC,
        no_trace("a zip archive", "`tracebridge info` lists the traces in it; name one: ARCHIVE//MEMBER"),
    ),
    (b"PK\x05\x06", no_trace("an empty zip archive", "it holds no trace")),
    (
        b"version https://git-lfs.github.com/spec/",
        no_trace("a Git LFS pointer, not the file itself", "`git lfs pull` fetches the file"),
    ),
    (b"BZh", no_trace("data packed by bzip2", "unpack it with bunzip2")),
    (b"\xfd7zXZ\0", no_trace("data packed by xz", "unpack it with unxz")),
    (b"\x04\x22\x4d\x18", no_trace("data packed by lz4", "unpack it with lz4 -d")),
    (b"7z\xbc\xaf\x27\x1c", no_trace("a 7z archive", "unpack it with 7z x")),
    (b"Rar!\x1a\x07", no_trace("a rar archive", "unpack it with unrar x")),
    (b"PAR1", no_trace("a Parquet table", "give the directory of the dataset to `tracebridge dataset`")),
    (b"\x7fELF", no_trace("an ELF program or library", "it holds no trace")),
    (b"dex\n", no_trace("a DEX file", "it holds no trace")),
    (b"SQLite format 3\0", no_trace("an SQLite database", "open it with sqlite3")),
    (b"\x89PNG", no_trace("a PNG picture", "it holds no trace")),
    (b"%PDF", no_trace("a PDF document", "it holds no trace")),
];

const CTF: UnreadFile = trace("a CTF trace (LTTng)", "open its directory with babeltrace2 or Trace Compass");
const CALLGRIND: UnreadFile = trace("a profile of callgrind", "open it with KCachegrind");
const WINSCOPE: UnreadFile = trace("a trace of Winscope", "open it with Winscope");
const PERF_TEXT: &str = "give perf.data itself, or fold the text with stackcollapse-perf.pl";

/// A line shows the kind of its text.
type IsKind = fn(&[u8]) -> bool;

/// Kinds of texts, by a line at their start.
const BY_LINE: &[(IsKind, UnreadFile)] = &[
    (
        |line| line.starts_with(b"# tracer: function_graph"),
        trace(
            "the text of the function graph tracer without times and threads",
            "switch options/funcgraph-abstime and options/funcgraph-proc on, or record with trace-cmd, whose report \
             is read",
        ),
    ),
    (is_perf_script_head, trace("the text of perf script", PERF_TEXT)),
    (
        |line| {
            line.starts_with(b"# To display the perf.data header info") || line.starts_with(b"# Samples: ")
        },
        trace("the text of perf report", PERF_TEXT),
    ),
    (
        |line| line.starts_with(b"Cmdline: ") && contains(line, b"simpleperf"),
        trace("the text of simpleperf report", "give perf.data itself"),
    ),
    (
        |line| line.starts_with(b"== dumpstate: "),
        trace("the text of a bug report", "give the zip archive of the bug report, which holds the traces"),
    ),
    (
        |line| line.starts_with(b"9,0,i,vers,") || line.starts_with(b"Battery History"),
        trace("the text of batterystats", "open it with Battery Historian or the Perfetto UI"),
    ),
    (
        |line| line.starts_with(b"--------- beginning of ") || is_logcat_line(line),
        trace("Android's log", "record the log beside the trace with Perfetto (android.log)"),
    ),
    (
        |line| line.starts_with(b"*** *** *** *** "),
        trace("a tombstone of a native crash", "read it as text, or with ndk-stack"),
    ),
    (
        |line| line.starts_with(b"----- pid ") && contains(line, b" at "),
        trace("the stacks of all threads (an ANR, or SIGQUIT)", "read it as text"),
    ),
    (
        |line| line.starts_with(b"-----------------------------------[ WINDOW MANAGER"),
        no_trace("a dump of WindowManager", "read it as text"),
    ),
];

const fn trace(what: &'static str, hint: &'static str) -> UnreadFile {
    UnreadFile { what, hint, is_trace: true }
}

const fn no_trace(what: &'static str, hint: &'static str) -> UnreadFile {
    UnreadFile { what, hint, is_trace: false }
}

/// The kind of a file that is no trace for any reader, whatever else its bytes look like.
pub(super) fn by_first_bytes(bytes: &[u8]) -> Option<UnreadFile> {
    let magic = BY_FIRST_BYTES.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, file)| *file);
    let hint = "`tracebridge info` lists the traces in it; name one: ARCHIVE//MEMBER";
    magic.or_else(|| is_tar(bytes).then_some(no_trace("a tar archive", hint)))
}

/// Describes a file that no reader accepts.
pub(super) fn describe(bytes: &[u8]) -> UnreadFile {
    let start = bytes.get(..DETECTION_BYTES).unwrap_or(bytes);
    if is_report_page(bytes) {
        let what = "a report page of tracebridge without the trace's text";
        return no_trace(what, "give the files that the page was made of");
    }
    if ftrace_text::is_html_page(start) {
        return no_trace("an HTML page without a trace in it", "only systrace's pages hold one");
    }
    if begins_benchmark_metrics(start) {
        return no_trace(
            "the metrics of an androidx benchmark",
            "give the directory, or the traces beside it",
        );
    }
    if let Some(file) = json_kind(start, bytes.len() > start.len()) {
        return file;
    }
    let is_control = |byte: &u8| *byte < b'\t' || matches!(byte, 14..27);
    if start.iter().any(is_control)
        || std::str::from_utf8(start).is_err_and(|error| error.error_len().is_some())
    {
        return binary_kind(start);
    }
    if strace::is_without_times(start) {
        return no_trace("the output of strace without times", "record it with `strace -f -ttt -T -o FILE`");
    }
    let mut lines = start.split(|byte| *byte == b'\n').take(DESCRIBED_LINES).map(<[u8]>::trim_ascii_end);
    let file =
        lines.find_map(|line| BY_LINE.iter().find(|(is_kind, _)| is_kind(line)).map(|(_, file)| *file));
    let hint = "see what wrote it; a text of ftrace or atrace has lines like `app-12 [000] 1.5: name: …`";
    file.unwrap_or(no_trace("text of an unknown kind", hint))
}

/// How many lines at the start of a text show its kind.
const DESCRIBED_LINES: usize = 100;

fn contains(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

/// Whether a line begins a sample of perf's text: `comm  123/124 [000] 12.345678:     250000 cpu-clock:`,
/// where the CPU, the process and the period may be absent.
fn is_perf_script_head(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let is_number = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    let is_id = |word: &[u8]| word.splitn(2, |byte| *byte == b'/').all(is_number);
    let is_cpu =
        |word: &[u8]| word.strip_prefix(b"[").and_then(|word| word.strip_suffix(b"]")).is_some_and(is_number);
    let is_time = |word: &[u8]| {
        word.strip_suffix(b":")
            .is_some_and(|time| time.contains(&b'.') && time.split(|b| *b == b'.').all(is_number))
    };
    let mut before = words.next().unwrap_or_default();
    for word in words.by_ref() {
        if is_time(word) && is_id(before) {
            return words.any(|word| word.ends_with(b":"));
        }
        if !is_cpu(word) {
            before = word;
        }
    }
    false
}

/// Whether a line is one of `logcat -v threadtime`: `08-24 23:35:40.123  1000  1001 I Tag: text`.
fn is_logcat_line(line: &[u8]) -> bool {
    const SHAPE: &[u8] = b"00-00 00:00:00.000 ";
    let has_shape =
        |(byte, shape): (&u8, &u8)| if *shape == b'0' { byte.is_ascii_digit() } else { byte == shape };
    line.len() > SHAPE.len() && line.iter().zip(SHAPE).all(has_shape)
}

/// Kinds of JSON by the name of a member of the outermost object.
const BY_MEMBER: &[(&[u8], UnreadFile)] = &[
    (b"dhatFileVersion", trace("a profile of DHAT", "open it with valgrind's dh_view.html")),
    (b"resourceSpans", SPANS),
    (b"flamebearer", trace("a profile of Pyroscope", "open it with Pyroscope")),
    (b"lighthouseVersion", no_trace("a report of Lighthouse", "open it with Lighthouse's viewer")),
    (b"snapshot", trace("a heap snapshot of V8", "open it with Chrome's DevTools")),
    (b"head", trace("a heap profile of V8", "open it with Chrome's DevTools")),
    (
        b"nodes",
        trace("a CPU profile of V8 (.cpuprofile)", "open it with Chrome's DevTools or speedscope.app"),
    ),
];

const SPANS: UnreadFile =
    trace("spans of a distributed trace", "open it with Jaeger, or another viewer of its kind");
const NO_TRACE_JSON: &str =
    "a trace in JSON is a list of events, each with `ph`, or an object with the list `traceEvents`";

/// The kind of a JSON text that is no trace; `None` of another text. `is_cut`: `text` is only its start.
fn json_kind(text: &[u8], is_cut: bool) -> Option<UnreadFile> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut scanner = Scanner::new(text, 0);
    if scanner.skip(b'[') {
        if scanner.skip(b']') {
            return Some(no_trace("an empty list in JSON", "the recording holds no event"));
        }
        let is_element = matches!(scanner.value(), Ok(Value::Object(_) | Value::Array(_) | Value::Number(_)))
            || (is_cut && matches!(scanner.peek(), Some(b'{' | b'[')));
        let is_span = contains(text, b"\"traceId\"") || contains(text, b"\"traceID\"");
        let other = no_trace("JSON without a trace", NO_TRACE_JSON);
        return is_element.then_some(if is_span { SPANS } else { other });
    }
    if !scanner.skip(b'{') {
        return None;
    }
    let mut has_member = false;
    while let Ok(Some(name)) = scanner.member_name() {
        has_member = true;
        let value_at = scanner.at;
        let value = scanner.value();
        let begin = &text[value_at..];
        if contains(&begin[..begin.len().min(256)], b"speedscope.app/file-format-schema") {
            return Some(trace("a profile of speedscope", "open it with speedscope.app"));
        }
        if name.raw() == b"fileType" && contains(begin, b"\"Recorded Performance Data\"") {
            let hint = "open it with a Firefox before version 90, whose DevTools wrote it";
            return Some(trace("an old recording of Firefox's DevTools", hint));
        }
        if name.raw() == b"meta" && contains(begin, b"\"threads\"") && contains(begin, b"\"markers\"") {
            let what = "a profile of the Firefox profiler that does not name its version";
            return Some(trace(what, "open it with profiler.firefox.com or the Perfetto UI"));
        }
        if name.raw() == b"data" && contains(begin, b"\"traceID\"") {
            return Some(SPANS);
        }
        if name.raw() == b"log" && contains(begin, b"\"creator\"") {
            return Some(no_trace("an HTTP archive (HAR)", "open it with a browser's DevTools"));
        }
        if let Some((_, file)) = BY_MEMBER.iter().find(|(member, _)| *member == name.raw()) {
            return Some(*file);
        }
        if value.is_err() {
            break;
        }
    }
    let is_line = scanner.peek() == Some(b'{') && contains(text, b"}\n");
    let what = if is_line { "lines of JSON without a trace" } else { "JSON without a trace" };
    (has_member || scanner.at > 1).then_some(no_trace(what, NO_TRACE_JSON))
}

/// The kind of bytes that are no text.
fn binary_kind(bytes: &[u8]) -> UnreadFile {
    if begins_pprof(bytes) {
        return trace(
            "a profile of pprof",
            "open it with `go tool pprof`, speedscope.app or the Perfetto UI",
        );
    }
    no_trace("binary data of an unknown kind", "see what wrote it")
}

/// Whether a message is the start of a pprof profile: its first fields are types of values, each of two
/// indices of names (profile.proto in github.com/google/pprof).
fn begins_pprof(bytes: &[u8]) -> bool {
    let is_value_type = |body: &[u8]| {
        let mut inside = fields(body);
        let is_fit = inside
            .by_ref()
            .all(|(number, value)| matches!(number, 1 | 2) && matches!(value, WireValue::Number(_)));
        !body.is_empty() && is_fit && !inside.broken
    };
    let mut types = 0;
    for field in fields(bytes) {
        match field {
            (1, WireValue::Bytes(body)) if is_value_type(body) => types += 1,
            (2, WireValue::Bytes(_)) => return types > 0,
            _ => return false,
        }
    }
    false
}

/// Whether a file is a page that `tracebridge report` has written.
pub(crate) fn is_report_page(bytes: &[u8]) -> bool {
    let start = bytes.get(..DETECTION_BYTES).unwrap_or(bytes);
    let directory = format!("id=\"{REPORT_DIRECTORY_ID}\"");
    ftrace_text::is_html_page(start) && memchr::memmem::find(bytes, directory.as_bytes()).is_some()
}

/// The id of the element that holds the directory of a report page (docs/report-format.md).
pub(crate) const REPORT_DIRECTORY_ID: &str = "tracebridge-directory";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_name() {
        let cases: &[(&[u8], &str)] = &[
            (b"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"profiles\":[]}", "speedscope"),
            (b"{\"shared\":{\"frames\":[]},\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"}", "speedscope"),
            (b"{\"nodes\":[{\"id\":1,\"callFrame\":{}}],\"startTime\":1,\"timeDeltas\":[]}", "CPU profile of V8"),
            (b"{\"nodes\":[{\"id\":1,\"callFrame\":{", "CPU profile of V8"),
            (b"{\"head\":{\"callFrame\":{},\"selfSize\":0}}", "heap profile of V8"),
            (b"{\"snapshot\":{\"meta\":{}}}", "heap snapshot"),
            (b"{\"dhatFileVersion\":2}", "DHAT"),
            (b"{\"fileType\":\"Recorded Performance Data\",\"version\":2}", "Firefox's DevTools"),
            (b"{\"data\":[{\"traceID\":\"1\"}]}", "spans"),
            (b"[{\"traceId\":\"1\",\"id\":\"2\"}]", "spans"),
            (b"{\"resourceSpans\":[]}", "spans"),
            (b"{\"meta\":{\"categories\":[]},\"threads\":[{\"markers\":{}}]}", "Firefox profiler"),
            (b"{\"a\":1}\n{\"a\":2}\n", "lines of JSON"),
            (b"[]", "an empty list in JSON"),
            (b"\xef\xbb\xbf [ ]\n", "an empty list in JSON"),
            (b"[{}, {}]", "JSON without a trace"),
            (b"[1, 2]", "JSON without a trace"),
            (b"{}", "JSON without a trace"),
            (b"{\"a\": {\"b\": [1", "JSON without a trace"),
            (b"swapper     0 [001] 12.345678:     250000 cpu-clock:pppH: \n\tffffffff81 x ([kernel])\n\n", "perf script"),
            (b"my app  10/12   12.345678: cpu-clock: \n", "perf script"),
            (b"bash  99 [000]    20.5: sched:sched_switch: prev_comm=bash\n", "perf script"),
            (b"# To display the perf.data header info, please use --header\n", "perf report"),
            (b"========\n== dumpstate: 2021-08-24 23:35:40\n", "bug report"),
            (b"# tracer: function_graph\n#\n 0)   0.5 us    |  f();\n", "function graph tracer"),
            (b"08-24 23:35:40.123  1000  1001 I Tag: text\n", "Android's log"),
            (b"----- pid 100 at 2026-01-01 10:00:00 -----\nCmd line: x\n", "stacks of all threads"),
            (b"\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x04\x12\x07\x0a\x01\x01\x12\x02\x01\x02", "pprof"),
            (b"\x57\x1d\xd1\x75metadata", "CTF"),
            (b"\x09WINTRACE", "Winscope"),
            (b"{not json}", "text of an unknown kind"),
            (b"[info] started\n", "text of an unknown kind"),
            (b"hello 1 world\n", "text of an unknown kind"),
        ];
        for (bytes, name) in cases {
            let file = by_first_bytes(bytes).unwrap_or_else(|| describe(bytes));
            assert!(file.what.contains(name), "{}: {file:?}", String::from_utf8_lossy(bytes));
        }
    }
}
