//! Takes ftrace text out of its container: the `TRACE:` line and the zlib stream of `atrace -z`, JavaScript
//! escapes, and systrace's HTML pages.

use std::borrow::Cow;

use super::lines::lines;
use super::zlib::{base64_zlib, inflate, is_zlib};
use super::{html, ps_table};
use crate::formats::unpack_budget::UnpackBudget;
use crate::formats::{Damage, ReadReport};
use crate::text::markup::{unescape_javascript, unescape_script};

/// A part of the file, or a decompressed or unescaped copy of a part.
type Text<'a> = Cow<'a, [u8]>;

/// The bytes at the start of a file in which `TRACE:` is searched for.
const TRACE_SEARCH_BYTES: usize = 64 << 10;
/// The bytes at the start of a text in which JavaScript escapes are searched for.
const ESCAPE_SEARCH_BYTES: usize = 4 << 10;

/// The texts that one file holds.
pub(super) struct TextContents<'a> {
    /// The format's name for people.
    pub format: &'static str,
    /// The ftrace texts.
    pub traces: Vec<Text<'a>>,
    /// The tables of processes and threads.
    pub ps_tables: Vec<Text<'a>>,
}

/// Finds the texts in a file. Damage and parts that are not read go into `report`.
pub(super) fn open<'a>(data: &'a [u8], budget: &UnpackBudget, report: &mut ReadReport) -> TextContents<'a> {
    if html::is_page(data) {
        return open_page(data, budget, report);
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
        contents.traces.push(Text::Owned(inflate(body, offset, budget, report)));
    } else {
        contents.add(unescape_if_javascript(body), report);
    }
    contents
}

fn open_page<'a>(page: &'a [u8], budget: &UnpackBudget, report: &mut ReadReport) -> TextContents<'a> {
    let mut contents = TextContents { format: "systrace HTML", traces: Vec::new(), ps_tables: Vec::new() };
    let scripts = html::scripts(page);
    for section in scripts.sections {
        let section = section.trim_ascii_start();
        if section.starts_with(b"{") || section.starts_with(b"[") {
            report
                .notes
                .push("a section of the page was not read: it is JSON (a trace of the host itself)".into());
        } else if let Some(zlib) = base64_zlib(section) {
            contents.add(inflate(&zlib, 0, budget, report).into(), report);
        } else {
            let text = match unescape_if_javascript(section) {
                Text::Borrowed(text) => unescape_script(text),
                unescaped => unescaped,
            };
            contents.add(text, report);
        }
    }
    if contents.traces.is_empty() && contents.ps_tables.is_empty() {
        contents.format = "systrace HTML (old form)";
        let texts = scripts.code.into_iter().filter_map(html::linux_perf_data);
        contents.traces.extend(texts.map(|text| unescape_javascript(text).into()));
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
    fn add(&mut self, text: Text<'a>, report: &mut ReadReport) {
        if is_cgroup_dump(&text) {
            report
                .notes
                .push("a section was not read: it lists the control groups of threads (CGROUP DUMP)".into());
            return;
        }
        let Some(at) = ps_table::find(&text) else { return self.traces.push(text) };
        if at == 0 {
            return self.ps_tables.push(text);
        }
        let (trace, table) = match text {
            Text::Borrowed(text) => (text[..at].into(), text[at..].into()),
            Text::Owned(mut text) => {
                let table = text.split_off(at);
                (text.into(), table.into())
            }
        };
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
fn unescape_if_javascript(text: &[u8]) -> Text<'_> {
    let head = &text[..text.len().min(ESCAPE_SEARCH_BYTES)];
    match memchr::memmem::find(head, b"\\n\\\n").or_else(|| memchr::memmem::find(head, b"\\n\\\r\n")) {
        Some(_) => Text::Owned(unescape_javascript(text)),
        None => Text::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::unpack_budget::UnpackLimit;

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
            <script class=\"trace-data\" type=\"application/text\">\n# tracer: nop\n a-1 [000] 1.5: 0: E\n</script>";
        let mut report = ReadReport::default();
        let contents = open(page, &budget(), &mut report);
        assert_eq!(contents.traces, [&b"# tracer: nop\n a-1 [000] 1.5: 0: E\n"[..]]);
        assert!(contents.ps_tables.is_empty() && report.damage.is_empty(), "{report:?}");
        assert_eq!(report.notes.len(), 1, "{report:?}");
    }

    #[test]
    fn a_table_behind_a_trace_is_cut_off_it() {
        let mut report = ReadReport::default();
        let contents = open(b"# tracer: nop\nPROCESS DUMP\nUSER PID\n", &budget(), &mut report);
        assert_eq!(contents.traces, [&b"# tracer: nop\n"[..]]);
        assert_eq!(contents.ps_tables, [&b"PROCESS DUMP\nUSER PID\n"[..]]);
    }
}
