//! Every text and HTML page of the corpus through the reader: as many events as lines counted without it, and
//! the same fields.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use tracebridge::formats::{
    self, Event, EventType, FormatId, Head, Order, ProcessInfo, ReadReport, Sink, ThreadInfo, Value,
    ftrace_text,
};
use tracebridge::ids::Cpu;

/// Everything that a reader delivered of one trace.
#[derive(Default)]
pub struct DeliveredTrace {
    pub head: Option<Head>,
    pub kinds: Vec<EventType>,
    pub events: Vec<DeliveredEvent>,
    pub threads: BTreeMap<i32, (Option<i32>, Option<String>)>,
    pub processes: BTreeMap<i32, Option<String>>,
    pub lost: Vec<(u32, Option<u64>)>,
}

/// One event with its own copies of all texts.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveredEvent {
    pub ts: u64,
    pub cpu: u32,
    pub tid: i32,
    pub tgid: Option<i32>,
    pub comm: String,
    pub name: String,
    pub fields: BTreeMap<String, String>,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Sink for DeliveredTrace {
    fn head(&mut self, head: &Head) -> io::Result<()> {
        self.head = Some(head.clone());
        Ok(())
    }
    fn event_type(&mut self, id: tracebridge::formats::EventTypeId, kind: &EventType) -> io::Result<()> {
        assert_eq!(id.0 as usize, self.kinds.len(), "kinds come in order without holes");
        self.kinds.push(kind.clone());
        Ok(())
    }
    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        self.threads.insert(thread.tid.0, (thread.tgid.map(|tgid| tgid.0), thread.name.map(text)));
        Ok(())
    }
    fn process(&mut self, process: &ProcessInfo<'_>) -> io::Result<()> {
        self.processes.insert(process.pid.0, process.name.map(text));
        Ok(())
    }
    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        assert_eq!(&self.kinds[event.kind.0 as usize], kind);
        let field = |(i, f): (usize, &tracebridge::formats::Field)| {
            let value = match event.value(kind, i)? {
                Value::Int(v) => v.to_string(),
                Value::Uint(v) => v.to_string(),
                Value::Str(s) => text(s),
                Value::Bytes(b) => format!("{b:?}"),
            };
            Some((f.name.clone(), value))
        };
        self.events.push(DeliveredEvent {
            ts: event.ts.0,
            cpu: event.cpu.0,
            tid: event.tid.0,
            tgid: event.tgid.map(|tgid| tgid.0),
            comm: event.comm.map(text).unwrap_or_default(),
            name: kind.name.clone(),
            fields: kind.fields.iter().enumerate().filter_map(field).collect(),
        });
        Ok(())
    }
    fn lost(&mut self, cpu: Cpu, count: Option<u64>) -> io::Result<()> {
        self.lost.push((cpu.0, count));
        Ok(())
    }
}

fn read(path: &Path, order: Order) -> (DeliveredTrace, ReadReport) {
    let data = std::fs::read(path).unwrap();
    let format = formats::identify_bytes(&data).map(FormatId::name);
    let is_text = matches!(format, Ok("ftrace text" | "systrace HTML"));
    assert!(is_text, "{} is taken for {format:?}", path.display());
    let mut delivered = DeliveredTrace::default();
    let report = ftrace_text::read(&data, order, &mut delivered).unwrap();
    assert_eq!(report.events(), delivered.events.len() as u64);
    (delivered, report)
}

/// The parts of one event line, found without the reader.
struct EventLine<'a> {
    comm: &'a str,
    tid: i32,
    tgid: Option<i32>,
    cpu: u32,
    ts: u64,
    name: &'a str,
    rest: &'a str,
}

/// Splits `COMM-TID (TGID) [CPU] FLAGS SECONDS.FRACTION: NAME: REST` at its brackets and blanks.
fn event_line(line: &str) -> Option<EventLine<'_>> {
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let (open, close) = line.match_indices('[').find_map(|(at, _)| {
        let close = at + line[at..].find(']')?;
        (digits(&line[at + 1..close]) && line[..at].ends_with([' ', ')'])).then_some((at, close))
    })?;
    let mut task = line[..open].trim();
    let mut tgid = None;
    if let Some((before, inside)) = task.strip_suffix(')').and_then(|t| t.rsplit_once('(')) {
        task = before.trim();
        tgid = inside.trim().parse().ok();
    }
    let (comm, tid) = task.rsplit_once('-').filter(|(_, tid)| digits(tid))?;
    let mut rest = line[close + 1..].trim_start();
    let (seconds, fraction) = loop {
        let (word, after) = rest.split_once(char::is_whitespace)?;
        rest = after.trim_start();
        let time = word.strip_suffix(':').and_then(|w| w.split_once('.'));
        if let Some(found) = time.filter(|(s, f)| digits(s) && digits(f)) {
            break found;
        }
    };
    // Old kernels' system calls have no colon: `sys_close(fd: 3)`, `sys_close -> 0x0`.
    let (name, rest) = match rest.strip_prefix("sys_") {
        Some(_) if !rest.starts_with("sys_enter:") && !rest.starts_with("sys_exit:") => (&rest[..4], ""),
        _ => rest.split_once(':')?,
    };
    let ns = format!("{fraction:0<9}").parse::<u64>().ok()?;
    Some(EventLine {
        comm: comm.trim(),
        tid: tid.parse().ok()?,
        tgid,
        cpu: line[open + 1..close].parse().ok()?,
        ts: seconds.parse::<u64>().ok()? * 1_000_000_000 + ns,
        name: name.trim(),
        rest: rest.trim().trim_end_matches("\\n\\").trim_end(),
    })
}

/// Counts event lines without the reader: `-DIGITS`, then `[DIGITS]`, then `DIGITS.DIGITS:`.
fn count_by_hand(text: &str) -> usize {
    text.lines()
        .filter(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
            let cpu = |w: &&str| w.strip_prefix('[').and_then(|w| w.strip_suffix(']')).is_some_and(digits);
            let time = |w: &str| {
                w.strip_suffix(':')
                    .and_then(|w| w.split_once('.'))
                    .is_some_and(|(s, f)| digits(s) && digits(f))
            };
            let Some(at) = words.iter().position(cpu) else { return false };
            let tid = words[..at].iter().any(|w| w.rsplit_once('-').is_some_and(|(_, tid)| digits(tid)));
            tid && words[at + 1..].iter().take(2).any(|w| time(w))
        })
        .count()
}

/// The trace text of a file, as a person would cut it out with an editor.
fn by_hand(name: &str, data: &[u8]) -> String {
    let all = text(data);
    if name.contains("compressed_atrace_data.txt") && data.starts_with(b"TRACE:") {
        let mut out = String::new();
        let mut zlib = flate2::read::ZlibDecoder::new(&data[7..]);
        io::Read::read_to_string(&mut zlib, &mut out).unwrap();
        return out;
    }
    // systrace adds a line without a time to the events of old devices.
    all.lines()
        .filter(|line| !line.trim_start().starts_with("dummy-0000"))
        .fold(String::new(), |text, line| text + line + "\n")
}

fn corpus_files() -> Vec<std::path::PathBuf> {
    let Some(corpus) = support::corpus() else { return Vec::new() };
    let list = |dir: &str| std::fs::read_dir(corpus.join(dir)).unwrap().map(|e| e.unwrap().path());
    let mut files: Vec<_> = list("systrace").chain(list("ftrace-text")).collect();
    files.sort();
    assert!(files.len() > 30);
    files
}

#[test]
fn each_text_has_as_many_events_as_lines_counted_by_hand() {
    for path in corpus_files() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with("cgroup_dump") {
            continue;
        }
        let (delivered, report) = read(&path, Order::Any);
        let want = count_by_hand(&by_hand(&name, &std::fs::read(&path).unwrap()));
        assert_eq!(delivered.events.len(), want, "{name}: {:?} {:?}", report.damage, report.notes);
        let (sorted, _) = read(&path, Order::Time);
        assert_eq!(sorted.events.len(), want, "{name} in order of time");
        assert!(sorted.events.windows(2).all(|w| w[0].ts <= w[1].ts), "{name} in order of time");
        let key = |s: &DeliveredEvent| format!("{s:?}");
        let mut a: Vec<String> = delivered.events.iter().map(key).collect();
        let mut b: Vec<String> = sorted.events.iter().map(key).collect();
        a.sort();
        b.sort();
        assert_eq!(a, b, "{name}: the same events in either order");
    }
}

/// Parses a number as trace texts write numbers: decimal, or hexadecimal behind `0x`.
fn number(text: &str) -> Option<i128> {
    match text.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        // `%p`, and the words for numbers that occur.
        None if ["handled", "CLOCK_MONOTONIC"].contains(&text) => Some(1),
        None if ["unhandled", "CLOCK_REALTIME", "HRTIMER_MODE_ABS", "NONE"].contains(&text) => Some(0),
        None if text.len() == 16 && text.parse::<u64>().is_err() => i128::from_str_radix(text, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A task's state as Linux prints it since 4.14: bits by their letters, 256 for one that was preempted. The
/// letters that only kernels before had (`K`, `W`) have no bit any more.
fn state(letters: &str) -> Option<i128> {
    let (letters, preempted) = letters.strip_suffix('+').map_or((letters, 0), |rest| (rest, 256));
    let bit = |letter: char| {
        let (_, bit) = [
            ('R', 0),
            ('S', 1),
            ('D', 2),
            ('T', 4),
            ('t', 8),
            ('X', 16),
            ('x', 16),
            ('Z', 32),
            ('P', 64),
            ('I', 128),
            ('K', 0),
            ('W', 0),
        ]
        .into_iter()
        .find(|(known, _)| *known == letter)?;
        Some(bit)
    };
    letters.split('|').flat_map(str::chars).try_fold(preempted, |sum, letter| Some(sum | bit(letter)?))
}

/// Compares an event with its own line, and describes the first difference.
fn wrong(seen: &DeliveredEvent, line: &EventLine<'_>, checked: &mut usize) -> Option<String> {
    let ours = (seen.ts, seen.cpu, seen.tid);
    let theirs = (line.ts, line.cpu, line.tid);
    let tgid = line.tgid.is_some_and(|tgid| tgid > 0 && seen.tgid != Some(tgid));
    let comm = !line.comm.starts_with('<') && seen.comm != line.comm;
    if ours != theirs || tgid || comm {
        return Some(format!(
            "{ours:?} {:?} {} is not {theirs:?} {:?} {}",
            seen.tgid,
            seen.comm,
            line.tgid.unwrap_or(0),
            line.comm
        ));
    }
    if let Some(buf) = seen.fields.get("buf").filter(|_| seen.name == "print") {
        *checked += 1;
        // trace-cmd prints the caller's address before the text.
        let rest = match line.rest.split_once(": ") {
            Some((caller, rest)) if caller.starts_with("0x") => rest.trim_start(),
            _ => line.rest,
        };
        let same = matches!(line.name, "tracing_mark_write" | "0" | "print") && buf.trim_end() == rest;
        return (!same).then(|| format!("marker {buf:?} is not {:?}", line.rest));
    }
    if seen.name != line.name && !(line.name == "sys_" && seen.name.starts_with("sys_")) {
        return Some(format!("{} is not {}", seen.name, line.name));
    }
    for word in line.rest.split_whitespace() {
        let Some((name, value)) = word.split_once('=') else { continue };
        let value = value.trim_end_matches([',', ';', ')', ']']);
        let Some(ours) = seen.fields.get(name).filter(|_| !value.is_empty()) else { continue };
        *checked += 1;
        if name == "prev_state" && number(ours) == state(value) {
            continue;
        }
        let numbers = number(ours).zip(number(value)).is_some_and(|(a, b)| a == b);
        if !numbers && ours != value && !ours.starts_with(value) {
            return Some(format!("{}: {name} is {ours:?}, and in the text {value:?}", seen.name));
        }
    }
    None
}

#[test]
fn a_thousand_events_of_each_text_say_what_their_lines_say() {
    let mut bad: BTreeMap<String, usize> = BTreeMap::new();
    let mut checked = 0;
    for path in corpus_files() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let (delivered, _) = read(&path, Order::Any);
        let text = by_hand(&name, &std::fs::read(&path).unwrap());
        let lines: Vec<EventLine<'_>> = text.lines().filter_map(event_line).collect();
        if lines.len() != delivered.events.len() {
            *bad.entry(format!("{name}: {} lines for {} events", lines.len(), delivered.events.len()))
                .or_default() += 1;
            continue;
        }
        for (seen, line) in delivered.events.iter().zip(&lines).step_by((lines.len() / 1_000).max(1)) {
            if let Some(what) = wrong(seen, line, &mut checked) {
                *bad.entry(format!("{name}: {what}")).or_default() += 1;
            }
        }
    }
    let delivered: Vec<_> = bad.iter().take(60).collect();
    assert!(bad.is_empty(), "{} {delivered:#?}", bad.len());
    // trace-cmd writes some kinds without names of fields.
    assert!(checked > 20_000 || support::corpus().is_none(), "only {checked} fields could be compared");
}
