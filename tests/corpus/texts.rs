//! Every text and HTML page of the corpus through the reader: as many events as lines counted without it, and the
//! same fields.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use tracebridge::formats::{
    Event, EventKind, Head, Order, Process, ReadReport, Sink, Thread, Value, detect, ftrace_text,
};

use crate::support;
use tracebridge::formats::detect::Format;

/// What a reader told, for looking at.
#[derive(Default)]
pub struct Told {
    pub head: Option<Head>,
    pub kinds: Vec<EventKind>,
    pub events: Vec<Seen>,
    pub threads: BTreeMap<i32, (Option<i32>, Option<String>)>,
    pub processes: BTreeMap<i32, Option<String>>,
    pub lost: Vec<(u32, Option<u64>)>,
}

/// One event, owned.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
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

impl Sink for Told {
    fn head(&mut self, head: &Head) -> io::Result<()> {
        self.head = Some(head.clone());
        Ok(())
    }
    fn kind(&mut self, id: tracebridge::formats::KindId, kind: &EventKind) -> io::Result<()> {
        assert_eq!(id.0 as usize, self.kinds.len(), "kinds come in order without holes");
        self.kinds.push(kind.clone());
        Ok(())
    }
    fn thread(&mut self, thread: &Thread<'_>) -> io::Result<()> {
        self.threads.insert(thread.tid, (thread.tgid, thread.name.map(text)));
        Ok(())
    }
    fn process(&mut self, process: &Process<'_>) -> io::Result<()> {
        self.processes.insert(process.pid, process.name.map(text));
        Ok(())
    }
    fn event(&mut self, event: &Event<'_>, kind: &EventKind) -> io::Result<()> {
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
        self.events.push(Seen {
            ts: event.ts,
            cpu: event.cpu,
            tid: event.tid,
            tgid: event.tgid,
            comm: event.comm.map(text).unwrap_or_default(),
            name: kind.name.clone(),
            fields: kind.fields.iter().enumerate().filter_map(field).collect(),
        });
        Ok(())
    }
    fn lost(&mut self, cpu: u32, count: Option<u64>) -> io::Result<()> {
        self.lost.push((cpu, count));
        Ok(())
    }
}

fn read(path: &Path, order: Order) -> (Told, ReadReport) {
    let data = std::fs::read(path).unwrap();
    let format = detect::detect(&data);
    let is_text = matches!(format, Format::FtraceText | Format::SystraceHtml);
    assert!(is_text, "{} is taken for {format:?}", path.display());
    let mut told = Told::default();
    let report = ftrace_text::read(&data, order, &mut told).unwrap();
    assert_eq!(report.events(), told.events.len() as u64);
    (told, report)
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

/// The page's text as a person would cut it out with an editor.
fn by_hand(name: &str, data: &[u8]) -> String {
    let all = text(data);
    if name.contains("compressed_atrace_data.txt") && data.starts_with(b"TRACE:") {
        let mut out = String::new();
        let mut zlib = flate2::read::ZlibDecoder::new(&data[7..]);
        io::Read::read_to_string(&mut zlib, &mut out).unwrap();
        return out;
    }
    all
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
        let (told, report) = read(&path, Order::Any);
        let want = count_by_hand(&by_hand(&name, &std::fs::read(&path).unwrap()));
        assert_eq!(told.events.len(), want, "{name}: {:?} {:?}", report.damage, report.notes);
        let (sorted, _) = read(&path, Order::Time);
        assert_eq!(sorted.events.len(), want, "{name} in order of time");
        assert!(sorted.events.windows(2).all(|w| w[0].ts <= w[1].ts), "{name} in order of time");
        let key = |s: &Seen| format!("{s:?}");
        let (mut a, mut b): (Vec<_>, Vec<_>) =
            (told.events.iter().map(key).collect(), sorted.events.iter().map(key).collect());
        a.sort();
        b.sort();
        assert_eq!(a, b, "{name}: the same events in either order");
    }
}
