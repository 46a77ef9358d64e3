//! Reads the tables of processes and threads that systrace stores beside a trace: the output of `ps`, and
//! lines like `/proc/PID/task/TID`.

use std::io;

use super::event_line::lines;
use crate::formats::{ProcessInfo, Sink, ThreadInfo};

/// The offset in `text` at which the first such table begins.
pub(super) fn find(text: &[u8]) -> Option<usize> {
    let head = text.trim_ascii_start();
    if head.starts_with(b"/proc/") || proc_line(head.split(|b| *b == b'\n').next()?).is_some() {
        return Some(0);
    }
    let starts: [&[u8]; 3] = [b"PROCESS DUMP", b"USER ", b"THREAD DUMP"];
    starts
        .iter()
        .filter_map(|s| memchr::memmem::find_iter(text, s).find(|at| *at == 0 || text[at - 1] == b'\n'))
        .min()
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
fn proc_line(line: &[u8]) -> Option<(i32, i32)> {
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
        let number = |at: Option<usize>| line.split_whitespace().nth(at?)?.parse::<i32>().ok();
        let Some(pid) = number(self.pid) else { return Ok(()) };
        let mut name = line.trim_start();
        for _ in 0..self.before_name {
            name = name.trim_start_matches(|c: char| !c.is_whitespace()).trim_start();
        }
        let name = name.trim_end();
        let name = (!name.is_empty()).then_some(name.as_bytes());
        match number(self.tid) {
            Some(tid) => sink.thread(&ThreadInfo { tid, tgid: Some(pid), name }),
            None => sink.process(&ProcessInfo { pid, ppid: number(self.ppid), name, package: None }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{Event, EventType};

    #[derive(Default)]
    struct TaskLog(Vec<String>);

    impl Sink for TaskLog {
        fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
            Ok(())
        }
        fn thread(&mut self, t: &ThreadInfo<'_>) -> io::Result<()> {
            let name = t.name.map(String::from_utf8_lossy);
            self.0.push(format!("{}/{} {}", t.tgid.unwrap_or(0), t.tid, name.unwrap_or_default()));
            Ok(())
        }
        fn process(&mut self, p: &ProcessInfo<'_>) -> io::Result<()> {
            let name = p.name.map(String::from_utf8_lossy);
            self.0.push(format!("{} of {:?} {}", p.pid, p.ppid, name.unwrap_or_default()));
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
        assert_eq!(find(b"# tracer\nUSER PID\n"), Some(9));
        assert_eq!(find(b" a-1 [000] 1.5: x: USER PID\n"), None);
        assert_eq!(find(b"\n/proc/1/task/1\n"), Some(0));
        assert_eq!(find(b""), None);
    }
}
