//! `mark`: writes markers from shell scripts. Opening `trace_marker` for a tag is here too, which `wrap`
//! shares.

use std::borrow::Cow;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};

use crate::android::tags::{self, TAGS, Tag};
use crate::android::{Properties, atrace_properties};
use crate::cli::Exit;
use crate::console::complain;
use crate::markers::{MAX_LEN, Marker, TagWatch, Tracer};

/// Write markers into the trace, from a shell script
#[derive(Parser)]
#[command(after_help = "\
A slice from begin to end belongs to the thread that writes both markers, and each run of this command is a new
process. A script therefore either keeps one writer for all its markers:
    { echo begin boot; sleep 1; echo end; } | tracebridge mark -
or it uses slices that belong to the script's own process:
    tracebridge mark async-begin boot 1; sleep 1; tracebridge mark async-end boot 1
More examples:
    tracebridge mark instant 'test 7 starts'
    tracebridge mark counter battery_mV 3870
    tracebridge mark --tag gfx instant flip      # only while `record gfx` or `atrace gfx` is on
`mark -` reads one marker per line: the same words as on the command line, where TRACK is one word and NAME may be
several, or a marker in the kernel's own form, such as B|1234|boot.

While nobody records, markers are dropped; that is not an error. Exit status: 0 done; 1 trace_marker cannot be
written; 3 some lines were not markers, or were cut or not UTF-8 (all others are written).")]
pub struct MarkArgs {
    #[command(subcommand)]
    marker: MarkerArg,
    /// The process id that the markers carry. By default begin, end and instant carry the id of this command,
    /// and all other markers the id of the process that runs it (the script)
    #[arg(long, global = true, value_name = "PID")]
    pid: Option<i32>,
    /// Write markers only while this ATRACE tag is on: a name of cutils/trace.h (view, graphics, app, …) or
    /// of the matching category of atrace (gfx, am, …). Without this flag every marker is written. On a Linux
    /// without Android's properties no tag but `always` is ever on
    #[arg(long, global = true, value_name = "NAME", value_parser = parse_tag)]
    tag: Option<Tag>,
    /// The directory where tracefs is mounted, or that of an instance
    #[arg(long, global = true, value_name = "DIR")]
    tracefs: Option<PathBuf>,
}

#[derive(Subcommand)]
enum MarkerArg {
    /// Begin a slice on the writing thread
    Begin {
        /// The slice's name
        name: String,
    },
    /// End the newest open slice of the writing thread
    End,
    /// Mark a moment on the writing thread
    Instant {
        /// The text for the moment
        name: String,
    },
    /// Set a counter to a value
    Counter {
        /// The counter's name
        name: String,
        /// Its new value, a whole number
        #[arg(allow_hyphen_values = true)]
        value: i64,
    },
    /// Begin a slice of the process
    AsyncBegin {
        /// The slice's name
        name: String,
        /// A number that tells slices of one name apart
        cookie: i32,
    },
    /// End a slice of the process
    AsyncEnd {
        /// The name given to async-begin
        name: String,
        /// The number given to async-begin
        cookie: i32,
    },
    /// Begin a slice on a named track of the process
    TrackBegin {
        /// The track's name
        track: String,
        /// The slice's name
        name: String,
        /// A number that tells slices of one track apart
        cookie: i32,
    },
    /// End a slice on a named track of the process
    TrackEnd {
        /// The track given to track-begin
        track: String,
        /// The number given to track-begin
        cookie: i32,
    },
    /// Mark a moment on a named track of the process
    TrackInstant {
        /// The track's name
        track: String,
        /// The text for the moment
        name: String,
    },
    /// Read one marker per line from standard input
    #[command(name = "-")]
    Stream,
}

/// The process ids that the markers carry.
struct MarkerPids {
    /// For begin, end and instant.
    writer: i32,
    /// For all other markers.
    process: i32,
}

/// Runs `mark`: writes one marker, or the markers of standard input.
pub fn run(args: MarkArgs) -> anyhow::Result<Exit> {
    let tracer = open_tracer(args.tracefs.as_deref(), args.tag)?;
    let pids = MarkerPids {
        writer: args.pid.unwrap_or_else(|| tracer.pid()),
        process: args.pid.unwrap_or_else(|| std::os::unix::process::parent_id() as i32),
    };
    if !matches!(args.marker, MarkerArg::Stream) {
        tracer.write(&args.marker.marker(&pids)).context("writing to trace_marker")?;
        return Ok(Exit::Complete);
    }
    let mut input = io::stdin().lock();
    let mut bad = 0;
    let mut number = 0;
    while let Some(line) = InputLine::read(&mut input).context("reading standard input")? {
        number += 1;
        let text = String::from_utf8_lossy(&line.bytes);
        let change = match MarkerLine::parse(&line.bytes, &text) {
            Ok(None) => continue,
            Ok(Some(MarkerLine::Raw(marker))) => write(&tracer, &marker)?,
            Ok(Some(MarkerLine::Words(words))) if matches!(text, Cow::Owned(_)) => {
                write(&tracer, &words.marker(&pids))?.or(Some("a byte that is no UTF-8 was replaced"))
            }
            Ok(Some(MarkerLine::Words(words))) => write(&tracer, &words.marker(&pids))?,
            Err(error) => {
                complain(format_args!("tracebridge: standard input, line {number}: {error}"));
                bad += 1;
                continue;
            }
        };
        let change = if line.is_cut { Some("the line was cut") } else { change };
        if let Some(change) = change {
            complain(format_args!("tracebridge: standard input, line {number}: {change}"));
            bad += 1;
        }
    }
    Ok(if bad == 0 { Exit::Complete } else { Exit::Lossy })
}

/// Parses the value of `--tag`.
pub fn parse_tag(name: &str) -> Result<Tag, String> {
    let names = || TAGS.map(|t| t.name).join(", ");
    Tag::find(name).ok_or_else(|| format!("there is no such tag; the tags are {}", names()))
}

/// Opens `trace_marker` below `tracefs`, or in its usual place, for markers that are written only while `tag`
/// is on. For the tag `app` the process that runs tracebridge decides. Without a tag, markers are always
/// written.
pub fn open_tracer(tracefs: Option<&Path>, tag: Option<Tag>) -> anyhow::Result<Tracer> {
    let tracer = match tracefs {
        Some(dir) => {
            let path = dir.join("trace_marker");
            Tracer::open_at(&path).with_context(|| format!("opening {}", path.display()))
        }
        None => Tracer::open().context("opening trace_marker; `tracebridge doctor` says where tracefs is"),
    }?;
    let Some(tag) = tag.filter(|tag| tag.mask() != tags::ALWAYS) else { return Ok(tracer) };
    let parent = std::os::unix::process::parent_id();
    if let Some(watch) = TagWatch::new(tag) {
        return Ok(tracer.with_watch(Some(watch.for_process(parent))));
    }
    // This user may not map the properties, so the tag keeps the state that it has now.
    let Some(properties) = Properties::find() else {
        complain(format_args!(
            "tracebridge: no system properties here, so the tag {tag} is off and nothing is written"
        ));
        return Ok(tracer.with_watch(None));
    };
    let cmdline = std::fs::read(format!("/proc/{parent}/cmdline")).unwrap_or_default();
    let name = cmdline.split(|b| *b == 0).next().unwrap_or_default();
    let on = atrace_properties::tags_on(&properties, name)? & tag.mask() != 0;
    Ok(if on { tracer } else { tracer.with_watch(None) })
}

/// Writes a marker. A sentence in the result says that the kernel's limit has cut it.
fn write(tracer: &Tracer, marker: &Marker<'_>) -> anyhow::Result<Option<&'static str>> {
    tracer.write(marker).context("writing to trace_marker")?;
    // Only a cut makes a marker this long, give or take the byte that an empty name leaves free.
    let is_cut = marker.encode(&mut [0; MAX_LEN]).len() >= MAX_LEN - 1;
    Ok(is_cut.then_some("the marker was cut to the 1023 bytes that one may have"))
}

/// The most of a line that is kept, bytes: more than a marker can hold.
const MAX_LINE_BYTES: usize = 4096;

/// A line of standard input, without its line feed.
struct InputLine {
    bytes: Vec<u8>,
    /// Whether the line was longer than [`MAX_LINE_BYTES`]; the rest is skipped.
    is_cut: bool,
}

impl InputLine {
    /// Reads a line of any length, and keeps its beginning. `None` at the end of the input.
    fn read(input: &mut impl BufRead) -> io::Result<Option<InputLine>> {
        let mut line = InputLine { bytes: Vec::new(), is_cut: false };
        let mut is_first = true;
        loop {
            let piece = match input.fill_buf() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                piece => piece?,
            };
            if piece.is_empty() {
                return Ok((!is_first).then_some(line));
            }
            is_first = false;
            let end = piece.iter().position(|byte| *byte == b'\n');
            let text = &piece[..end.unwrap_or(piece.len())];
            let room = MAX_LINE_BYTES - line.bytes.len();
            line.is_cut |= text.len() > room;
            line.bytes.extend_from_slice(&text[..text.len().min(room)]);
            let used = end.map_or(piece.len(), |end| end + 1);
            input.consume(used);
            if end.is_some() {
                return Ok(Some(line));
            }
        }
    }
}

impl MarkerArg {
    fn marker(&self, pids: &MarkerPids) -> Marker<'_> {
        let pid = pids.process;
        match self {
            MarkerArg::Begin { name } => Marker::Begin { pid: pids.writer, name: name.as_bytes() },
            MarkerArg::End | MarkerArg::Stream => Marker::End { pid: Some(pids.writer) },
            MarkerArg::Instant { name } => Marker::Instant { pid: pids.writer, name: name.as_bytes() },
            MarkerArg::Counter { name, value } => {
                Marker::Counter { pid, name: name.as_bytes(), value: *value, category: None }
            }
            MarkerArg::AsyncBegin { name, cookie } => {
                Marker::AsyncBegin { pid, name: name.as_bytes(), cookie: i64::from(*cookie) }
            }
            MarkerArg::AsyncEnd { name, cookie } => {
                Marker::AsyncEnd { pid, name: name.as_bytes(), cookie: i64::from(*cookie) }
            }
            MarkerArg::TrackBegin { track, name, cookie } => {
                let cookie = i64::from(*cookie);
                Marker::TrackBegin { pid, track: track.as_bytes(), name: name.as_bytes(), cookie }
            }
            MarkerArg::TrackEnd { track, cookie } => {
                Marker::TrackEnd { pid, track: track.as_bytes(), name: None, cookie: i64::from(*cookie) }
            }
            MarkerArg::TrackInstant { track, name } => {
                Marker::TrackInstant { pid, track: track.as_bytes(), name: name.as_bytes() }
            }
        }
    }
}

/// One line of standard input.
enum MarkerLine<'a> {
    /// A marker in the kernel's own form.
    Raw(Marker<'a>),
    /// The words of the command line.
    Words(MarkerArg),
}

impl MarkerLine<'_> {
    /// Parses a line, given as it was read, and as text.
    fn parse<'l>(bytes: &'l [u8], line: &str) -> anyhow::Result<Option<MarkerLine<'l>>> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        if let Some(marker) = Marker::parse(bytes.trim_ascii()) {
            return Ok(Some(MarkerLine::Raw(marker)));
        }
        let (verb, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let name = || if rest.is_empty() { bail!("{verb} needs a name") } else { Ok(rest.to_owned()) };
        let name_and_number = |rest: &str| {
            let split = rest.rsplit_once(char::is_whitespace);
            let (name, number) = split.with_context(|| format!("{verb} needs a name and a number"))?;
            anyhow::Ok((name.trim().to_owned(), number.to_owned()))
        };
        let track = || {
            let split = rest.split_once(char::is_whitespace);
            let (track, rest) = split.with_context(|| format!("{verb} needs a track and more after it"))?;
            anyhow::Ok((track.to_owned(), rest.trim()))
        };
        let cookie = |text: &str| {
            text.parse::<i32>().with_context(|| format!("\"{text}\" is not a 32-bit whole number"))
        };
        Ok(Some(MarkerLine::Words(match verb {
            "begin" => MarkerArg::Begin { name: name()? },
            "end" => MarkerArg::End,
            "instant" => MarkerArg::Instant { name: name()? },
            "counter" => {
                let (name, value) = name_and_number(rest)?;
                let value = value.parse().with_context(|| format!("\"{value}\" is not a whole number"))?;
                MarkerArg::Counter { name, value }
            }
            "async-begin" | "async-end" => {
                let (name, number) = name_and_number(rest)?;
                let cookie = cookie(&number)?;
                if verb == "async-begin" {
                    MarkerArg::AsyncBegin { name, cookie }
                } else {
                    MarkerArg::AsyncEnd { name, cookie }
                }
            }
            "track-begin" => {
                let (track, rest) = track()?;
                let (name, number) = name_and_number(rest)?;
                MarkerArg::TrackBegin { track, name, cookie: cookie(&number)? }
            }
            "track-end" => {
                let (track, number) = track()?;
                MarkerArg::TrackEnd { track, cookie: cookie(number)? }
            }
            "track-instant" => {
                let (track, name) = track()?;
                MarkerArg::TrackInstant { track, name: name.to_owned() }
            }
            _ => bail!("\"{verb}\" is not a kind of marker; `tracebridge mark --help` lists them"),
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(line: &str) -> Result<String, String> {
        let mut buf = [0; crate::markers::MAX_LEN];
        let marker = MarkerLine::parse(line.as_bytes(), line).map_err(|e| e.to_string())?.ok_or("nothing")?;
        let pids = MarkerPids { writer: 1, process: 2 };
        let bytes = match &marker {
            MarkerLine::Raw(marker) => marker.encode(&mut buf),
            MarkerLine::Words(what) => what.marker(&pids).encode(&mut buf),
        };
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    #[test]
    fn lines_of_a_stream_become_markers() {
        let cases = [
            ("begin load  the data", "B|1|load  the data"),
            ("end", "E|1"),
            ("instant now", "I|1|now"),
            ("counter frames dropped -3", "C|2|frames dropped|-3"),
            ("async-begin load data 7", "S|2|load data|7"),
            ("async-end load data 7", "F|2|load data|7"),
            ("track-begin net GET / 7", "G|2|net|GET /|7"),
            ("track-end net 7", "H|2|net|7"),
            ("track-instant net a b", "N|2|net|a b"),
            ("  B|99|raw", "B|99|raw"),
        ];
        for (line, marker) in cases {
            assert_eq!(encoded(line).as_deref(), Ok(marker), "{line}");
        }
    }

    #[test]
    fn a_line_of_any_length_is_read_and_its_beginning_is_kept() {
        let mut text = vec![b'x'; 3 * MAX_LINE_BYTES];
        text.extend(b"\nend\n\nlast");
        let mut input = io::BufReader::with_capacity(100, &text[..]);
        let mut lines = Vec::new();
        while let Some(line) = InputLine::read(&mut input).unwrap() {
            lines.push((line.bytes.len(), line.is_cut));
        }
        assert_eq!(lines, [(MAX_LINE_BYTES, true), (3, false), (0, false), (4, false)]);
    }

    #[test]
    fn a_bad_line_says_what_is_missing() {
        for line in
            ["begin", "counter x", "counter x y", "async-begin x 99999999999", "track-end x", "frobnicate"]
        {
            assert!(encoded(line).is_err_and(|e| e != "nothing"), "{line}");
        }
        assert_eq!(encoded("# comment"), Err("nothing".to_owned()));
    }
}
