//! `mark`: markers from shell scripts.

use std::io::{self, BufRead};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};

use crate::android::tags::Tag;
use crate::cli::Exit;
use crate::console::complain;
use crate::markers::Marker;

/// Write markers into the trace, from a shell script
#[derive(Parser)]
#[command(after_help = "\
begin and end belong to the thread that writes them, and each run of this command is a process of its own. So
from a script either keep one writer for the whole stream:
    { echo begin boot; sleep 1; echo end; } | tracebridge mark -
or use slices that belong to the script's process:
    tracebridge mark async-begin boot 1; sleep 1; tracebridge mark async-end boot 1
More:
    tracebridge mark instant 'test 7 starts'
    tracebridge mark counter battery_mV 3870
    tracebridge mark --tag gfx instant flip      (only while `record gfx` or `atrace gfx` is on)
Lines of the stream are this command's own arguments; TRACK must be one word there, NAME may be several. A line
may also be a marker as the kernel gets it, such as B|1234|boot.

Where nobody records, the marker goes nowhere; that is no error. Exit status: 0; 1 where trace_marker cannot be
written to; 3 where lines of the stream were no markers (the others are written).")]
pub struct Args {
    #[command(subcommand)]
    what: What,
    /// The process the marker speaks for: a process id. Without it, begin, end and instant carry the writer's own,
    /// and the others that of the process that runs this command (the script)
    #[arg(long, global = true, value_name = "PID")]
    pid: Option<i32>,
    /// Write only while this ATRACE tag is on, each marker anew: a name of cutils/trace.h (view, graphics, app, …) or of
    /// atrace's category for it (gfx, am, …). Without it `always`, which always is. On a Linux without Android's properties
    /// no other tag ever is
    #[arg(long, global = true, value_name = "NAME", value_parser = super::marker_target::parse)]
    tag: Option<Tag>,
    /// Where tracefs is mounted, or an instance's directory in it
    #[arg(long, global = true, value_name = "DIR")]
    tracefs: Option<PathBuf>,
}

#[derive(Subcommand)]
enum What {
    /// A slice begins on the writing thread
    Begin {
        /// The slice's name
        name: String,
    },
    /// The writing thread's newest slice ends
    End,
    /// Something happens on the writing thread
    Instant {
        /// What happens
        name: String,
    },
    /// A counter takes a value
    Counter {
        /// The counter's name
        name: String,
        /// Its new value, a whole number
        #[arg(allow_hyphen_values = true)]
        value: i64,
    },
    /// A slice of the process begins
    AsyncBegin {
        /// The slice's name
        name: String,
        /// A number that tells slices of one name apart
        cookie: i32,
    },
    /// A slice of the process ends
    AsyncEnd {
        /// The name given to async-begin
        name: String,
        /// The number given to async-begin
        cookie: i32,
    },
    /// A slice begins on a named track of the process
    TrackBegin {
        /// The track's name
        track: String,
        /// The slice's name
        name: String,
        /// A number that tells slices of one track apart
        cookie: i32,
    },
    /// A slice ends on a named track of the process
    TrackEnd {
        /// The track given to track-begin
        track: String,
        /// The number given to track-begin
        cookie: i32,
    },
    /// Something happens on a named track of the process
    TrackInstant {
        /// The track's name
        track: String,
        /// What happens
        name: String,
    },
    /// Read one marker a line from standard input
    #[command(name = "-")]
    Stream,
}

/// Whom the markers speak for.
struct Pids {
    /// Thread-scoped markers.
    writer: i32,
    /// Process-scoped markers.
    process: i32,
}

/// Writes one marker, or those of standard input.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    let tracer = super::marker_target::open_tracer(args.tracefs.as_deref(), args.tag)?;
    let pids = Pids {
        writer: args.pid.unwrap_or_else(|| tracer.pid()),
        process: args.pid.unwrap_or_else(|| std::os::unix::process::parent_id() as i32),
    };
    if !matches!(args.what, What::Stream) {
        tracer.write(&args.what.marker(&pids)).context("writing to trace_marker")?;
        return Ok(Exit::Complete);
    }
    let mut bad = 0;
    for (n, line) in io::stdin().lock().lines().enumerate() {
        let line = line.context("reading standard input")?;
        match Line::parse(&line) {
            Ok(None) => {}
            Ok(Some(Line::Raw(marker))) => drop(tracer.write(&marker).context("writing to trace_marker")?),
            Ok(Some(Line::Words(what))) => {
                tracer.write(&what.marker(&pids)).context("writing to trace_marker")?;
            }
            Err(error) => {
                complain(format_args!("tracebridge: standard input, line {}: {error}", n + 1));
                bad += 1;
            }
        }
    }
    Ok(if bad == 0 { Exit::Complete } else { Exit::Lossy })
}

impl What {
    fn marker(&self, pids: &Pids) -> Marker<'_> {
        let pid = pids.process;
        match self {
            What::Begin { name } => Marker::Begin { pid: pids.writer, name: name.as_bytes() },
            What::End | What::Stream => Marker::End { pid: Some(pids.writer) },
            What::Instant { name } => Marker::Instant { pid: pids.writer, name: name.as_bytes() },
            What::Counter { name, value } => {
                Marker::Counter { pid, name: name.as_bytes(), value: *value, category: None }
            }
            What::AsyncBegin { name, cookie } => {
                Marker::AsyncBegin { pid, name: name.as_bytes(), cookie: i64::from(*cookie) }
            }
            What::AsyncEnd { name, cookie } => {
                Marker::AsyncEnd { pid, name: name.as_bytes(), cookie: i64::from(*cookie) }
            }
            What::TrackBegin { track, name, cookie } => {
                let (track, name) = (track.as_bytes(), name.as_bytes());
                Marker::TrackBegin { pid, track, name, cookie: i64::from(*cookie) }
            }
            What::TrackEnd { track, cookie } => {
                Marker::TrackEnd { pid, track: track.as_bytes(), name: None, cookie: i64::from(*cookie) }
            }
            What::TrackInstant { track, name } => {
                Marker::TrackInstant { pid, track: track.as_bytes(), name: name.as_bytes() }
            }
        }
    }
}

/// One line of the stream.
enum Line<'a> {
    /// A marker as the kernel gets it.
    Raw(Marker<'a>),
    /// The command's own arguments.
    Words(What),
}

impl Line<'_> {
    fn parse(line: &str) -> anyhow::Result<Option<Line<'_>>> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        if let Some(marker) = Marker::parse(line.as_bytes()) {
            return Ok(Some(Line::Raw(marker)));
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
            let (track, rest) = split.with_context(|| format!("{verb} needs a track and more"))?;
            anyhow::Ok((track.to_owned(), rest.trim()))
        };
        let cookie =
            |text: &str| text.parse::<i32>().with_context(|| format!("\"{text}\" is no number of 32 bits"));
        Ok(Some(Line::Words(match verb {
            "begin" => What::Begin { name: name()? },
            "end" => What::End,
            "instant" => What::Instant { name: name()? },
            "counter" => {
                let (name, value) = name_and_number(rest)?;
                let value = value.parse().with_context(|| format!("\"{value}\" is no whole number"))?;
                What::Counter { name, value }
            }
            "async-begin" | "async-end" => {
                let (name, number) = name_and_number(rest)?;
                let cookie = cookie(&number)?;
                if verb == "async-begin" {
                    What::AsyncBegin { name, cookie }
                } else {
                    What::AsyncEnd { name, cookie }
                }
            }
            "track-begin" => {
                let (track, rest) = track()?;
                let (name, number) = name_and_number(rest)?;
                What::TrackBegin { track, name, cookie: cookie(&number)? }
            }
            "track-end" => {
                let (track, number) = track()?;
                What::TrackEnd { track, cookie: cookie(number)? }
            }
            "track-instant" => {
                let (track, name) = track()?;
                What::TrackInstant { track, name: name.to_owned() }
            }
            _ => bail!("\"{verb}\" is no kind of marker; `tracebridge mark --help` lists them"),
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(line: &str) -> Result<String, String> {
        let mut buf = [0; crate::markers::MAX_LEN];
        let marker = Line::parse(line).map_err(|e| e.to_string())?.ok_or("nothing")?;
        let pids = Pids { writer: 1, process: 2 };
        let bytes = match &marker {
            Line::Raw(marker) => marker.encode(&mut buf),
            Line::Words(what) => what.marker(&pids).encode(&mut buf),
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
    fn a_bad_line_says_what_is_missing() {
        for line in
            ["begin", "counter x", "counter x y", "async-begin x 99999999999", "track-end x", "frobnicate"]
        {
            assert!(encoded(line).is_err_and(|e| e != "nothing"), "{line}");
        }
        assert_eq!(encoded("# comment"), Err("nothing".to_owned()));
    }
}
