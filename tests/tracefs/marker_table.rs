//! Marker calls, each with the bytes that libcutils writes for it.

use tracebridge::markers::{Marker, Tracer};

/// The most bytes of a marker.
const MAX: usize = 1023;

/// A call of the marker library.
#[derive(Debug, Clone)]
pub enum Call {
    Begin(Vec<u8>),
    End,
    Instant(Vec<u8>),
    TrackInstant(Vec<u8>, Vec<u8>),
    Counter(Vec<u8>, i64),
    AsyncBegin(Vec<u8>, i32),
    AsyncEnd(Vec<u8>, i32),
    TrackBegin(Vec<u8>, Vec<u8>, i32),
    TrackEnd(Vec<u8>, i32),
}

/// A call, and what must be in the trace for it.
#[derive(Debug)]
pub struct Row {
    pub call: Call,
    pub expected: Vec<u8>,
    /// Whether the reader gives the call back: nothing of it was cut, replaced or empty.
    pub is_whole: bool,
}

/// `head`, as much of `name` as leaves room for the rest, and `tail`.
fn cut(head: &str, name: &[u8], tail: &str) -> Vec<u8> {
    let room = MAX - head.len() - tail.len();
    [head.as_bytes(), &name[..name.len().min(room)], tail.as_bytes()].concat()
}

/// The table, for a process with this id.
pub fn table(pid: u32) -> Vec<Row> {
    use Call::*;
    let b = |text: &str| text.as_bytes().to_vec();
    let x = |count: usize| vec![b'x'; count];
    let han = "漢".repeat(400).into_bytes();
    let mut rows = Vec::new();
    let mut row = |is_whole, call, expected: Vec<u8>| rows.push(Row { call, expected, is_whole });

    // Ordinary calls.
    row(true, Begin(b("draw")), b(&format!("B|{pid}|draw")));
    row(true, End, b(&format!("E|{pid}")));
    row(
        true,
        Begin(b("Choreographer#doFrame 1234567")),
        b(&format!("B|{pid}|Choreographer#doFrame 1234567")),
    );
    row(true, End, b(&format!("E|{pid}")));
    row(true, Instant(b("now")), b(&format!("I|{pid}|now")));
    row(true, TrackInstant(b("net"), b("retry")), b(&format!("N|{pid}|net|retry")));
    row(true, Counter(b("queue"), 3), b(&format!("C|{pid}|queue|3")));
    row(true, AsyncBegin(b("load"), 7), b(&format!("S|{pid}|load|7")));
    row(true, AsyncEnd(b("load"), 7), b(&format!("F|{pid}|load|7")));
    row(true, TrackBegin(b("net"), b("GET /"), 9), b(&format!("G|{pid}|net|GET /|9")));
    row(true, TrackEnd(b("net"), 9), b(&format!("H|{pid}|net|9")));
    // Numbers at their limits.
    for cookie in [i32::MIN, -1, 0, i32::MAX] {
        row(true, AsyncBegin(b("a"), cookie), b(&format!("S|{pid}|a|{cookie}")));
        row(true, AsyncEnd(b("a"), cookie), b(&format!("F|{pid}|a|{cookie}")));
    }
    for cookie in [i32::MIN, i32::MAX] {
        row(true, TrackBegin(b("t"), b("a"), cookie), b(&format!("G|{pid}|t|a|{cookie}")));
        row(true, TrackEnd(b("t"), cookie), b(&format!("H|{pid}|t|{cookie}")));
    }
    for value in [0, -1, 1 << 32, i64::MAX, i64::MIN] {
        row(true, Counter(b("n"), value), b(&format!("C|{pid}|n|{value}")));
    }
    // Names that are empty, not ASCII, or look like something else.
    row(false, Begin(b("")), b(&format!("B|{pid}|")));
    row(true, End, b(&format!("E|{pid}")));
    row(false, Instant(b("")), b(&format!("I|{pid}|")));
    row(false, Counter(b(""), 1), b(&format!("C|{pid}||1")));
    row(false, AsyncBegin(b(""), 1), b(&format!("S|{pid}||1")));
    row(false, TrackBegin(b(""), b("n"), 1), b(&format!("G|{pid}|n|1")));
    row(false, TrackInstant(b("t"), b("")), b(&format!("N|{pid}|t|")));
    row(true, Instant(b("größe 漢字 🙂")), b(&format!("I|{pid}|größe 漢字 🙂")));
    row(true, Instant(b("%s%n%d")), b(&format!("I|{pid}|%s%n%d")));
    row(true, Instant(b("E")), b(&format!("I|{pid}|E")));
    row(true, Instant(b(" spaces ")), b(&format!("I|{pid}| spaces ")));
    // Separators become spaces; other control characters stay.
    row(false, Instant(b("a|b")), b(&format!("I|{pid}|a b")));
    row(false, Instant(b("a\nb\n")), b(&format!("I|{pid}|a b ")));
    row(false, TrackInstant(b("t|u"), b("n|m")), b(&format!("N|{pid}|t u|n m")));
    row(false, AsyncBegin(b("|"), 1), b(&format!("S|{pid}| |1")));
    row(true, Instant(b("\u{1}\t\u{1b}[31m\u{7f}")), b(&format!("I|{pid}|\u{1}\t\u{1b}[31m\u{7f}")));
    // Long names: around the sizes of the buffers, and beyond what a marker holds.
    for len in [127, 128, 129, 192, 500] {
        row(true, Instant(x(len)), [b(&format!("I|{pid}|")), x(len)].concat());
    }
    let begin = format!("B|{pid}|");
    let track = format!("G|{pid}|t|");
    row(true, Begin(x(MAX - begin.len())), [b(&begin), x(MAX - begin.len())].concat());
    row(false, Begin(x(MAX - begin.len() + 1)), cut(&begin, &x(MAX), ""));
    row(false, Begin(x(5000)), cut(&begin, &x(5000), ""));
    row(false, Begin([b("p"), han.clone()].concat()), cut(&begin, &[b("p"), han.clone()].concat(), ""));
    row(false, Begin(han.clone()), cut(&begin, &han, ""));
    row(false, Counter(x(5000), i64::MIN), cut(&format!("C|{pid}|"), &x(5000), "|-9223372036854775808"));
    row(false, AsyncBegin(x(5000), -12), cut(&format!("S|{pid}|"), &x(5000), "|-12"));
    row(false, AsyncEnd(x(5000), -12), cut(&format!("F|{pid}|"), &x(5000), "|-12"));
    row(false, TrackBegin(b("t"), x(5000), 12), cut(&track, &x(5000), "|12"));
    // Long tracks: the name keeps its first byte, and an empty one leaves its byte free.
    row(false, TrackBegin(x(5000), b("name"), 12), cut(&format!("G|{pid}|"), &x(5000), "|n|12"));
    row(false, TrackInstant(x(5000), b("name")), cut(&format!("N|{pid}|"), &x(5000), "|n"));
    row(false, TrackInstant(x(5000), x(5000)), cut(&format!("N|{pid}|"), &x(5000), "|x"));
    row(false, TrackEnd(x(5000), 12), cut(&format!("H|{pid}|"), &x(5000), "|12"));
    let empty = cut(&format!("N|{pid}|"), &x(5000), "||");
    row(false, TrackInstant(x(5000), b("")), empty[..MAX - 1].to_vec());
    rows
}

fn text(name: &[u8]) -> &str {
    std::str::from_utf8(name).expect("names of the table are UTF-8")
}

impl Call {
    /// Makes the call in this process.
    pub fn make(&self, tracer: &Tracer) -> bool {
        match self {
            Call::Begin(name) => tracer.begin(text(name)),
            Call::End => tracer.end(),
            Call::Instant(name) => tracer.instant(text(name)),
            Call::TrackInstant(track, name) => tracer.track_instant(text(track), text(name)),
            Call::Counter(name, value) => tracer.counter(text(name), *value),
            Call::AsyncBegin(name, cookie) => tracer.async_begin(text(name), *cookie),
            Call::AsyncEnd(name, cookie) => tracer.async_end(text(name), *cookie),
            Call::TrackBegin(track, name, cookie) => tracer.track_begin(text(track), text(name), *cookie),
            Call::TrackEnd(track, cookie) => tracer.track_end(text(track), *cookie),
        }
    }

    /// The call as a line for `marker_calls.c`.
    pub fn line(&self) -> String {
        let hex = |name: &[u8]| {
            let digits: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
            if digits.is_empty() { "-".to_owned() } else { digits }
        };
        match self {
            Call::Begin(name) => format!("begin {}", hex(name)),
            Call::End => "end".to_owned(),
            Call::Instant(name) => format!("instant {}", hex(name)),
            Call::TrackInstant(track, name) => format!("track_instant {} {}", hex(track), hex(name)),
            Call::Counter(name, value) => format!("counter {} {value}", hex(name)),
            Call::AsyncBegin(name, cookie) => format!("async_begin {} {cookie}", hex(name)),
            Call::AsyncEnd(name, cookie) => format!("async_end {} {cookie}", hex(name)),
            Call::TrackBegin(track, name, cookie) => {
                format!("track_begin {} {} {cookie}", hex(track), hex(name))
            }
            Call::TrackEnd(track, cookie) => format!("track_end {} {cookie}", hex(track)),
        }
    }

    /// The marker that a reader finds for the call.
    pub fn marker(&self, pid: i32) -> Marker<'_> {
        match *self {
            Call::Begin(ref name) => Marker::Begin { pid, name },
            Call::End => Marker::End { pid: Some(pid) },
            Call::Instant(ref name) => Marker::Instant { pid, name },
            Call::TrackInstant(ref track, ref name) => Marker::TrackInstant { pid, track, name },
            Call::Counter(ref name, value) => Marker::Counter { pid, name, value, category: None },
            Call::AsyncBegin(ref name, cookie) => Marker::AsyncBegin { pid, name, cookie: i64::from(cookie) },
            Call::AsyncEnd(ref name, cookie) => Marker::AsyncEnd { pid, name, cookie: i64::from(cookie) },
            Call::TrackBegin(ref track, ref name, cookie) => {
                Marker::TrackBegin { pid, track, name, cookie: i64::from(cookie) }
            }
            Call::TrackEnd(ref track, cookie) => {
                Marker::TrackEnd { pid, track, name: None, cookie: i64::from(cookie) }
            }
        }
    }
}
