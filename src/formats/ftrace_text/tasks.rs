//! Lists of processes and threads that systrace stores beside a trace: `ps` tables and lines of `/proc/*/task/*`.

use std::io;

use super::lines;
use crate::formats::{ProcessInfo, Sink, ThreadInfo};

/// Where the first such list begins.
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

/// Tells the sink every process and thread of the list.
pub(super) fn read(text: &[u8], sink: &mut dyn Sink) -> io::Result<()> {
    let mut columns: Option<Columns> = None;
    for (_, line) in lines(text) {
        if let Some((tgid, tid)) = proc_line(line) {
            sink.thread(&ThreadInfo { tid, tgid: Some(tgid), name: None })?;
        } else if line.starts_with(b"USER ") {
            columns = Some(Columns::new(line));
        } else if let Some(columns) = &columns {
            columns.row(line, sink)?;
        }
    }
    Ok(())
}

/// `/proc/PID/task/TID`, the first `/` of the file sometimes lost.
fn proc_line(line: &[u8]) -> Option<(i32, i32)> {
    let line = std::str::from_utf8(line).ok()?.trim();
    let (pid, tid) = line.trim_start_matches('/').strip_prefix("proc/")?.split_once("/task/")?;
    Some((pid.parse().ok()?, tid.parse().ok()?))
}

/// Where the columns of `ps` are.
struct Columns {
    pid: Option<usize>,
    tid: Option<usize>,
    ppid: Option<usize>,
    /// Words before the name, which may have blanks itself.
    before_name: usize,
}

impl Columns {
    fn new(header: &[u8]) -> Columns {
        let header = String::from_utf8_lossy(header);
        let words: Vec<&str> = header.split_whitespace().collect();
        let column = |name: &str| words.iter().position(|w| *w == name);
        // toolbox's ps has a state column without a title before NAME.
        let untitled = usize::from(column("PC").is_some() && column("S").is_none());
        let name = column("NAME").or(column("CMD")).unwrap_or(words.len().saturating_sub(1));
        Columns { pid: column("PID"), tid: column("TID"), ppid: column("PPID"), before_name: name + untitled }
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
            None => sink.process(&ProcessInfo { pid, ppid: number(self.ppid), name }),
        }
    }
}
