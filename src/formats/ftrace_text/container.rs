//! Takes ftrace text out of its container: the `TRACE:` line and the zlib stream of `atrace -z`, JavaScript
//! escapes, and systrace's HTML pages with the tables of processes and threads that systrace stores beside a
//! trace (the output of `ps`, and lines like `/proc/PID/task/TID`).

use std::borrow::Cow;
use std::io;

use super::{cut_line, other_layouts};
use crate::formats::spill::{FileBytes, FilePart, SpillWriter};
use crate::formats::text_lines::{FileMemory, lines};
use crate::formats::unpack_budget::{UnpackBudget, is_over_limit};
use crate::formats::{Damage, ProcessInfo, ReadReport, Sink, ThreadInfo, base64};
use crate::ids::{Pid, Tid};
use crate::markup::{unescape_javascript, unescape_script};

/// A part of the file, or a decompressed or unescaped copy of a part.
type ContainedText<'a> = FilePart<'a>;

/// The bytes at the start of a file in which `TRACE:` is searched for.
const TRACE_SEARCH_BYTES: usize = 64 << 10;
/// The bytes at the start of a text in which JavaScript escapes are searched for.
const ESCAPE_SEARCH_BYTES: usize = 4 << 10;

/// The texts that one file holds.
pub(super) struct TextContents<'a> {
    /// The format's name for people.
    pub format: &'static str,
    /// The ftrace texts.
    pub traces: Vec<ContainedText<'a>>,
    /// The tables of processes and threads.
    pub ps_tables: Vec<ContainedText<'a>>,
}

/// Finds the texts in a file. Damage and parts that are not read go into `report`.
pub(super) fn open<'a>(
    data: &'a [u8],
    memory: FileMemory<'_>,
    budget: &UnpackBudget,
    report: &mut ReadReport,
) -> TextContents<'a> {
    if is_html_page(data) {
        return open_page(data, memory, budget, report);
    }
    let mut contents = TextContents { format: "ftrace text", traces: Vec::new(), ps_tables: Vec::new() };
    let body = match trace_start(data) {
        Some(at) => {
            contents.format = "atrace text";
            &data[at..]
        }
        None => data,
    };
    if is_zlib(body) {
        contents.format = "atrace text (zlib)";
        let offset = (data.len() - body.len()) as u64;
        contents.traces.push(inflate(body, offset, budget, report).into());
    } else {
        contents.add(unescape_if_javascript(body).into(), memory, report);
    }
    let begin = if contents.format.ends_with("(zlib)") { 0 } else { data.len() - body.len() };
    report.damage.extend(contents.traces.iter().filter_map(|text| cut_line::cut_in_line(text)).map(|at| Damage {
        offset: (begin + at) as u64,
        what: "the text ends in this line, whose end every recorder writes: the file was cut, and the last value \
               of the line may be cut too"
            .into(),
    }));
    contents
}

fn open_page<'a>(
    page: &'a [u8],
    memory: FileMemory<'_>,
    budget: &UnpackBudget,
    report: &mut ReadReport,
) -> TextContents<'a> {
    let mut contents = TextContents { format: "systrace HTML", traces: Vec::new(), ps_tables: Vec::new() };
    let scripts = scripts(page);
    report.damage.extend(scripts.cut_at.map(|offset| Damage {
        offset: offset as u64,
        what: "the page is cut inside of its text: the script that begins here has no end".into(),
    }));
    if scripts.cut_at.is_none() && !ends_with_its_tag(page) {
        let what = "the page is cut: it does not end with </html>, and texts may be missing".into();
        report.damage.push(Damage { offset: page.len() as u64, what });
    }
    for section in scripts.sections {
        let section = section.trim_ascii_start();
        if section.starts_with(b"{") || section.starts_with(b"[") {
            report
                .notes
                .push("a section of the page was not read: it is JSON (a trace of the host itself)".into());
        } else if let Some(zlib) = base64_zlib(section) {
            contents.add(inflate(&zlib, 0, budget, report).into(), memory, report);
        } else {
            let text = match unescape_if_javascript(section) {
                Cow::Borrowed(text) => unescape_script(text),
                unescaped @ Cow::Owned(_) => unescaped,
            };
            contents.add(text.into(), memory, report);
        }
    }
    if contents.traces.is_empty() && contents.ps_tables.is_empty() {
        contents.format = "systrace HTML (old form)";
        let texts = scripts.code.into_iter().filter_map(linux_perf_data);
        contents.traces.extend(texts.map(|text| FileBytes::Owned(unescape_javascript(text)).into()));
    }
    if contents.traces.is_empty() {
        let what =
            "the HTML page holds no trace: it has neither a trace-data section nor linuxPerfData".into();
        report.damage.push(Damage { offset: 0, what });
    }
    contents
}

impl<'a> TextContents<'a> {
    /// Adds a text to the traces or to the tables. A table of threads that follows a trace is split off.
    fn add(&mut self, text: ContainedText<'a>, memory: FileMemory<'_>, report: &mut ReadReport) {
        if is_cgroup_dump(&text) {
            report
                .notes
                .push("a section was not read: it lists the control groups of threads (CGROUP DUMP)".into());
            return;
        }
        let text = match other_layouts::as_event_lines(&text) {
            Ok(Some(lines)) => {
                report.notes.push(format!("{} is read as events", lines.layout));
                lines.text.into()
            }
            Ok(None) => text,
            Err(error) => {
                let what = format!("a text of another layout is not read: {error}");
                report.damage.push(Damage { offset: 0, what });
                return;
            }
        };
        let Some(at) = find(&text, memory) else { return self.traces.push(text) };
        if at == 0 {
            return self.ps_tables.push(text);
        }
        let (trace, table) = text.split_at(at);
        self.traces.push(trace);
        self.ps_tables.push(table);
    }
}

/// Whether `text` is the list of cpusets and their threads that systrace.py makes as root. The list has the
/// header of a trace (`# tracer: `), because no viewer knows it (catapult's
/// systrace/tracing_agents/android_cgroup_agent.py).
fn is_cgroup_dump(text: &[u8]) -> bool {
    lines(text).map(|(_, line)| line.trim_ascii()).find(|line| !line.is_empty() && !line.starts_with(b"#"))
        == Some(b"CGROUP DUMP")
}

/// The offset of the trace behind a line `TRACE:`, which other lines may precede.
fn trace_start(data: &[u8]) -> Option<usize> {
    let head = &data[..data.len().min(TRACE_SEARCH_BYTES)];
    let at = memchr::memmem::find(head, b"TRACE:")?;
    if at > 0 && head[at - 1] != b'\n' {
        return None;
    }
    // Only one line end is skipped: the next byte may be the first byte of a zlib stream.
    let after = &head[at + b"TRACE:".len()..];
    let returns = after.iter().take_while(|b| **b == b'\r').count();
    let len = returns + usize::from(after.get(returns) == Some(&b'\n'));
    (len > 0).then_some(at + b"TRACE:".len() + len)
}

/// Removes the JavaScript escapes of a text that was cut out of an old page: each line of such a text ends
/// with `\n\`. Other texts stay as they are.
fn unescape_if_javascript(text: &[u8]) -> Cow<'_, [u8]> {
    let head = &text[..text.len().min(ESCAPE_SEARCH_BYTES)];
    match memchr::memmem::find(head, b"\\n\\\n").or_else(|| memchr::memmem::find(head, b"\\n\\\r\n")) {
        Some(_) => Cow::Owned(unescape_javascript(text)),
        None => Cow::Borrowed(text),
    }
}

/// Whether a file that starts with `head` is an HTML page, with or without a trace in it. An editor may have
/// put a byte order mark in front of the page, and a browser that saves a page may begin it with a comment.
pub(in crate::formats) fn is_html_page(head: &[u8]) -> bool {
    let start = head.trim_ascii_start();
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let is = |tag: &[u8]| start.get(..tag.len()).is_some_and(|s| s.eq_ignore_ascii_case(tag));
    is(b"<!doctype html") || is(b"<html") || is(b"<!--")
}

/// The contents of a page's scripts.
struct PageScripts<'a> {
    /// The `trace-data` sections.
    pub sections: Vec<&'a [u8]>,
    /// All other scripts: the code of the viewer, and in old pages the script with the trace.
    pub code: Vec<&'a [u8]>,
    /// The offset of the beginning of a script that has no end.
    pub cut_at: Option<usize>,
}

/// Whether a page ends as all pages do.
fn ends_with_its_tag(page: &[u8]) -> bool {
    const END: &[u8] = b"</html>";
    let page = page.trim_ascii_end();
    let start = page.len().saturating_sub(END.len());
    page[start..].eq_ignore_ascii_case(END)
}

/// Finds all scripts. A script ends at the first `</script`, as it does for a browser: the viewer's code
/// escapes its own mentions of that tag.
fn scripts(page: &[u8]) -> PageScripts<'_> {
    let mut found = PageScripts { sections: Vec::new(), code: Vec::new(), cut_at: None };
    let mut rest = page;
    while let Some(open) = memchr::memmem::find(rest, b"<script") {
        rest = &rest[open..];
        let begin = page.len() - rest.len();
        let Some(close) = memchr::memchr(b'>', rest) else {
            found.cut_at = Some(begin);
            break;
        };
        let tag = &rest[..close];
        let after = &rest[close + 1..];
        let end = memchr::memmem::find(after, b"</script").unwrap_or_else(|| {
            found.cut_at = Some(begin);
            after.len()
        });
        match memchr::memmem::find(tag, b"trace-data") {
            Some(_) => found.sections.push(&after[..end]),
            None => found.code.push(&after[..end]),
        }
        rest = &after[end..];
    }
    found
}

/// The content of the string in `var linuxPerfData = "…"`, with its escapes.
fn linux_perf_data(code: &[u8]) -> Option<&[u8]> {
    const ASSIGNMENT: &[u8] = b"var linuxPerfData = \"";
    let at = memchr::memmem::find(code, ASSIGNMENT)?;
    let text = &code[at + ASSIGNMENT.len()..];
    // A quote behind a backslash does not end the string.
    let mut end = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', text.get(end..)?) {
        end += found;
        if text[end] == b'"' {
            return Some(&text[..end]);
        }
        end += 2;
    }
    Some(text)
}

/// Whether `data` starts with the two header bytes of RFC 1950: the method is deflate, and the check bits
/// fit.
fn is_zlib(data: &[u8]) -> bool {
    matches!(data, [cmf, flg, ..] if cmf & 0x0f == 8 && (u32::from(*cmf) << 8 | u32::from(*flg)) % 31 == 0)
}

/// Decompresses the zlib stream at the start of `data` up to its end or its first damage. `offset` is the
/// offset of `data` in the file.
fn inflate(data: &[u8], offset: u64, budget: &UnpackBudget, report: &mut ReadReport) -> FileBytes {
    let mut out = SpillWriter::default();
    let (used, result) = budget.unpack_zlib_prefix(data, &mut out);
    let mut damage = |what: String| report.damage.push(Damage { offset: offset + used, what });
    match result {
        Err(error) if is_over_limit(&error) => {
            damage(format!("the compressed text {error}; the rest is left out"));
        }
        Err(error) => damage(format!("the compressed text ends here ({error}); what came before it is used")),
        Ok(()) => {
            let behind = data.len() as u64 - used;
            if behind > 0 {
                report.notes.push(format!("{behind} bytes behind the compressed text are no part of it"));
            }
        }
    }
    out.finish().unwrap_or_else(|error| {
        let what = format!("the compressed text is not read: {error}");
        report.damage.push(Damage { offset, what });
        FileBytes::Owned(Vec::new())
    })
}

/// The zlib stream that `text` holds in base64, as `systrace --compress` once wrote it into a page; `None`
/// where the text is something else.
fn base64_zlib(text: &[u8]) -> Option<Vec<u8>> {
    // The four levels of zlib begin with the bytes 78 01, 78 5e, 78 9c and 78 da.
    if ![&b"eA"[..], b"eF", b"eJ", b"eN"].iter().any(|start| text.starts_with(start)) {
        return None;
    }
    let is_symbol = |byte: &u8| !byte.is_ascii_whitespace() && *byte != b'=';
    let symbols: Vec<u8> = text.iter().copied().filter(is_symbol).collect();
    base64::decode_symbols(&symbols).filter(|zlib| is_zlib(zlib))
}

/// The offset in `text` at which the first such table begins.
fn find(text: &[u8], memory: FileMemory<'_>) -> Option<usize> {
    let head = text.trim_ascii_start();
    if head.starts_with(b"/proc/") || proc_line(head.split(|b| *b == b'\n').next()?).is_some() {
        return Some(0);
    }
    let starts: [&[u8]; 3] = [b"PROCESS DUMP", b"USER ", b"THREAD DUMP"];
    let find_in = |piece: &[u8]| {
        let begins_line = |at: &usize| *at == 0 || piece[at - 1] == b'\n';
        starts.iter().filter_map(|s| memchr::memmem::find_iter(piece, s).find(begins_line)).min()
    };
    memory.pieces(text).find_map(|(start, piece)| Some(start + find_in(piece)?))
}

/// Pushes every process and thread of the tables in `text` to the sink.
pub(super) fn read(text: &[u8], sink: &mut dyn Sink) -> io::Result<()> {
    let mut columns: Option<PsColumns> = None;
    for (_, line) in lines(text) {
        if let Some((tgid, tid)) = proc_line(line) {
            sink.thread(&ThreadInfo { tid, tgid: Some(tgid), name: None })?;
        } else if line.starts_with(b"USER ") {
            columns = Some(PsColumns::new(line));
        } else if let Some(columns) = &columns {
            columns.row(line, sink)?;
        }
    }
    Ok(())
}

/// The process and the thread of a line `/proc/PID/task/TID`. Some versions of systrace lost the very first
/// `/`.
fn proc_line(line: &[u8]) -> Option<(Pid, Tid)> {
    let line = std::str::from_utf8(line).ok()?.trim();
    let (pid, tid) = line.trim_start_matches('/').strip_prefix("proc/")?.split_once("/task/")?;
    Some((pid.parse().ok()?, tid.parse().ok()?))
}

/// The positions of the columns that are used, counted in words.
struct PsColumns {
    pid: Option<usize>,
    tid: Option<usize>,
    ppid: Option<usize>,
    /// How many words precede the name, which is the last column because it may contain blanks.
    before_name: usize,
}

impl PsColumns {
    fn new(header: &[u8]) -> PsColumns {
        let header = String::from_utf8_lossy(header);
        let words: Vec<&str> = header.split_whitespace().collect();
        let column = |name: &str| words.iter().position(|w| *w == name);
        // The ps of Android's toolbox (before Android 7) has a column for the state before NAME, but no title
        // for it.
        let untitled = usize::from(column("PC").is_some() && column("S").is_none());
        let name = column("NAME").or(column("CMD")).unwrap_or(words.len().saturating_sub(1));
        PsColumns {
            pid: column("PID"),
            tid: column("TID"),
            ppid: column("PPID"),
            before_name: name + untitled,
        }
    }

    fn row(&self, line: &[u8], sink: &mut dyn Sink) -> io::Result<()> {
        let Ok(line) = std::str::from_utf8(line) else { return Ok(()) };
        let word = |at: Option<usize>| line.split_whitespace().nth(at?);
        let process = |at| word(at)?.parse::<Pid>().ok();
        let Some(pid) = process(self.pid) else { return Ok(()) };
        let mut name = line.trim_start();
        for _ in 0..self.before_name {
            name = name.trim_start_matches(|c: char| !c.is_whitespace()).trim_start();
        }
        let name = name.trim_end();
        let name = (!name.is_empty()).then_some(name.as_bytes());
        match word(self.tid).and_then(|tid| tid.parse().ok()) {
            Some(tid) => sink.thread(&ThreadInfo { tid, tgid: Some(pid), name }),
            None => sink.process(&ProcessInfo { pid, ppid: process(self.ppid), name, package: None }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::unpack_budget::UnpackLimit;
    use crate::formats::{Event, EventType};

    fn budget() -> UnpackBudget {
        UnpackLimit::default().budget(0)
    }

    #[test]
    fn the_trace_starts_behind_its_line() {
        assert_eq!(trace_start(b"capturing trace... done\r\nTRACE:\r\nx"), Some(33));
        assert_eq!(trace_start(b"TRACE:\n\n"), Some(7));
        assert_eq!(trace_start(b"TRACE:"), None);
        assert_eq!(trace_start(b"x TRACE:\n"), None);
    }

    #[test]
    fn a_list_of_control_groups_is_skipped_and_noted() {
        let page = b"<html><script class=\"trace-data\" type=\"application/text\">\n# tracer: \nCGROUP DUMP\n\
            #subsys_name\thierarchy\tnum_cgroups\tenabled\ncpuset\t4\t7\t1\n/top-app (root=4) : 1 2\n</script>\
            <script class=\"trace-data\" type=\"application/text\">\n# tracer: nop\n a-1 [000] 1.5: 0: E\n</script></html>";
        let mut report = ReadReport::default();
        let contents = open(page, FileMemory::of_bytes(0), &budget(), &mut report);
        assert_eq!(contents.traces, [&b"# tracer: nop\n a-1 [000] 1.5: 0: E\n"[..]]);
        assert!(contents.ps_tables.is_empty() && report.damage.is_empty(), "{report:?}");
        assert_eq!(report.notes.len(), 1, "{report:?}");
    }

    #[test]
    fn a_table_behind_a_trace_is_cut_off_it() {
        let mut report = ReadReport::default();
        let page = b"# tracer: nop\nPROCESS DUMP\nUSER PID\n";
        let contents = open(page, FileMemory::of_bytes(0), &budget(), &mut report);
        assert_eq!(contents.traces, [&b"# tracer: nop\n"[..]]);
        assert_eq!(contents.ps_tables, [&b"PROCESS DUMP\nUSER PID\n"[..]]);
    }

    #[test]
    fn only_a_script_of_its_own_is_a_section() {
        let page = b"<html><script>x = '<script class=\"trace-data\">no'</script>\n\
            <script class=\"trace-data\" type=\"application/text\">yes</script><script>y</script><script class=";
        let found = scripts(page);
        assert_eq!(found.sections, [b"yes"]);
        assert_eq!(found.code.len(), 2);
    }

    #[test]
    fn the_string_ends_at_a_quote_that_is_not_escaped() {
        assert_eq!(linux_perf_data(b"var linuxPerfData = \"a\\\"b\\\\\";z\""), Some(&b"a\\\"b\\\\"[..]));
        assert_eq!(linux_perf_data(b"var linuxPerfData = \"cut"), Some(&b"cut"[..]));
        assert_eq!(linux_perf_data(b"var linuxPerfData = \"cut\\"), None);
        assert_eq!(linux_perf_data(b"var other = \"x\""), None);
    }

    #[test]
    fn only_base64_text_with_a_zlib_header_is_decoded() {
        // `zlib.compress(b"# tracer: nop\n")`.
        let text = b"eJxTVigpSkxOLbJSyMsv4AIAIWQEdg==";
        let mut report = ReadReport::default();
        let zlib = base64_zlib(text).unwrap();
        assert_eq!(*inflate(&zlib, 0, &budget(), &mut report), *b"# tracer: nop\n");
        assert!(report.damage.is_empty() && report.notes.is_empty(), "{report:?}");
        assert_eq!(base64_zlib(b"eJ is how this line starts"), None);
        assert_eq!(base64_zlib(b"# tracer: nop"), None);
    }

    #[test]
    fn bytes_behind_a_stream_are_noted_and_a_cut_stream_is_damage() {
        let zlib = base64_zlib(b"eJxTVigpSkxOLbJSyMsv4AIAIWQEdg==").unwrap();
        let mut report = ReadReport::default();
        inflate(&[&zlib[..], b"xyz"].concat(), 0, &budget(), &mut report);
        assert_eq!((report.damage.len(), report.notes.len()), (0, 1));
        inflate(&zlib[..zlib.len() - 6], 100, &budget(), &mut report);
        assert!(report.damage[0].offset > 100, "{report:?}");
    }

    #[derive(Default)]
    struct TaskLog(Vec<String>);

    impl Sink for TaskLog {
        fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
            Ok(())
        }
        fn thread(&mut self, t: &ThreadInfo<'_>) -> io::Result<()> {
            let name = t.name.map(String::from_utf8_lossy);
            self.0.push(format!("{}/{} {}", t.tgid.unwrap_or(Pid(0)), t.tid, name.unwrap_or_default()));
            Ok(())
        }
        fn process(&mut self, p: &ProcessInfo<'_>) -> io::Result<()> {
            let name = p.name.map(String::from_utf8_lossy);
            self.0.push(format!("{} of {:?} {}", p.pid, p.ppid.map(i64::from), name.unwrap_or_default()));
            Ok(())
        }
    }

    fn tasks(text: &str) -> Vec<String> {
        let mut log = TaskLog::default();
        read(text.as_bytes(), &mut log).unwrap();
        log.0
    }

    #[test]
    fn tables_of_every_ps_are_read() {
        let toybox = "PROCESS DUMP\nUSER PID PPID VSZ RSS WCHAN PC S NAME COMM\nroot 1 0 5 6 0 0 S /init --second init\n";
        assert_eq!(tasks(toybox), ["1 of Some(0) /init --second init"]);
        let toolbox = "USER PID PPID VSIZE RSS WCHAN PC NAME\nroot 1 0 5 6 ffff 0000 S /init\n";
        assert_eq!(tasks(toolbox), ["1 of Some(0) /init"]);
        let threads = "THREAD DUMP\nUSER PID TID CMD\nsystem 7 9 my thread\nnot a row\n";
        assert_eq!(tasks(threads), ["7/9 my thread"]);
        assert_eq!(tasks("proc/7/task/9\n/proc/7/task/8\n"), ["7/9 ", "7/8 "]);
    }

    #[test]
    fn a_table_is_found_at_the_start_of_a_line_only() {
        assert_eq!(find(b"# tracer\nUSER PID\n", FileMemory::of_bytes(0)), Some(9));
        assert_eq!(find(b" a-1 [000] 1.5: x: USER PID\n", FileMemory::of_bytes(0)), None);
        assert_eq!(find(b"\n/proc/1/task/1\n", FileMemory::of_bytes(0)), Some(0));
        assert_eq!(find(b"", FileMemory::of_bytes(0)), None);
    }
}
