//! The output of atrace: the kernel's text, plain, compressed, or as a live stream.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use nix::libc;

use super::AtraceOptions;
use crate::console::complain;
use crate::output_file::{OutputFile, Readers, check_fifo};
use crate::record::interruptible_writer::{InterruptibleWriter, PIPE_BUF, WriteTimeout};
use crate::record::{CpuStats, Signals, Tracefs};

/// How many bytes one `read` asks for.
const CHUNK_BYTES: usize = 64 * 1024;
/// The permissions of a new file that AOSP's atrace asks for.
const NEW_FILE_MODE: u32 = 0o644;
/// The longest time that an event waits in the kernel before `--stream` prints it.
const MAX_LATENCY: Duration = Duration::from_millis(100);

/// Writes the content of the ring buffer to the file of `-o`, or to standard output. A signal ends a wait for
/// the reader of a pipe, unless signals are ignored.
///
/// A file appears under its name when it is complete, with the mode that AOSP's atrace gives it. Nothing that
/// another user has put under that name beforehand is written to.
pub fn dump(options: &AtraceOptions, tracefs: &Tracefs, signals: &Signals) -> io::Result<()> {
    let timeout = write_timeout(signals, !options.ignore_signals);
    let Some(path) = options.output.as_deref().map(Path::new) else {
        let mut out = InterruptibleWriter::new(&io::stdout(), timeout)?;
        return write_trace(&mut out, tracefs, options.compress).map_err(signal_or_error);
    };
    let failed = |e| with_path(e, &format!("Failed to open '{}'", path.display()));
    let existing = fs::metadata(path).ok();
    if existing.as_ref().is_some_and(|meta| meta.file_type().is_fifo()) {
        check_fifo(path).map_err(failed)?;
        let mut out =
            InterruptibleWriter::open_fifo(path, timeout).map_err(signal_or_error).map_err(failed)?;
        return write_trace(&mut out, tracefs, options.compress).map_err(signal_or_error);
    }
    let file = match OutputFile::create(path, Readers::AsTarget) {
        Err(e)
            if e.kind() == io::ErrorKind::PermissionDenied
                && existing.as_ref().is_some_and(fs::Metadata::is_file) =>
        {
            // A file that may be written in a directory where none may be made.
            let mut direct = OpenOptions::new();
            direct.write(true).truncate(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
            return write_trace(&mut direct.open(path).map_err(failed)?, tracefs, options.compress);
        }
        Err(e) => return Err(failed(e)),
        Ok(file) => file,
    };
    if existing.is_none() {
        let mode = file.file().metadata()?.permissions().mode();
        file.file().set_permissions(fs::Permissions::from_mode(mode & NEW_FILE_MODE))?;
    }
    let mut out = InterruptibleWriter::new(file.file(), timeout)?;
    write_trace(&mut out, tracefs, options.compress)?;
    file.commit()
}

fn write_timeout(signals: &Signals, stoppable: bool) -> Rc<WriteTimeout> {
    Rc::new(if stoppable { WriteTimeout::until_signal(signals) } else { WriteTimeout::default() })
}

#[derive(Debug, thiserror::Error)]
#[error("a signal came")]
struct SignalCame;

/// The error of a write, where a signal has ended the wait for the reader.
fn signal_or_error(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::TimedOut { io::Error::other(SignalCame) } else { error }
}

fn with_path(error: io::Error, what: &str) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

fn write_trace(out: &mut impl Write, tracefs: &Tracefs, compress: bool) -> io::Result<()> {
    // This line is never compressed: readers look for it.
    out.write_all(b"TRACE:\n")?;
    let path = tracefs.path("trace");
    let limit = events_of_a_running_trace(tracefs);
    let mut trace = File::open(&path).map_err(|e| with_path(e, &path.display().to_string()))?;
    if compress {
        let mut zlib = ZlibEncoder::new(out, Compression::default());
        copy(&mut trace, &mut zlib, limit)?;
        zlib.finish()?.flush()
    } else {
        copy(&mut trace, out, limit)?;
        out.flush()
    }
}

/// While tracing goes on, how many events the buffers hold. Until Linux 5.8 the kernel stopped tracing
/// while `trace` was read; since then new events come while the old ones are read, on a slow machine faster
/// than they are read, and a dump of all of them would never end.
fn events_of_a_running_trace(tracefs: &Tracefs) -> Option<u64> {
    if tracefs.read("tracing_on").ok()? != "1" {
        return None;
    }
    let cpus = tracefs.cpus().ok()?;
    let held = cpus.into_iter().filter_map(|cpu| CpuStats::read(tracefs, cpu).ok());
    Some(held.map(|stats| stats.entries).sum())
}

/// Copies with `read` and `write`, up to the end or to the end of the line of event number `limit`. The
/// kernel generates this text during the read and reports a size of 0, which `splice` and `copy_file_range`
/// (`io::copy` would try them) take for an empty file.
fn copy(from: &mut impl Read, to: &mut impl Write, limit: Option<u64>) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut lines = EventLines { left: limit, is_begin: true, is_event: false };
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(n) => {
                let taken = lines.within_limit(&chunk[..n]);
                to.write_all(&chunk[..taken])?;
                if taken < n {
                    return Ok(());
                }
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Counts the lines of events in a text that comes in pieces.
struct EventLines {
    /// How many more events may come; `None` for all.
    left: Option<u64>,
    /// Whether the next byte begins a line.
    is_begin: bool,
    /// Whether the line is one of an event, and not of the head or of a stack trace.
    is_event: bool,
}

impl EventLines {
    /// How many bytes of this piece lie within the limit.
    fn within_limit(&mut self, piece: &[u8]) -> usize {
        let Some(left) = &mut self.left else { return piece.len() };
        for (at, byte) in piece.iter().enumerate() {
            if self.is_begin {
                // Lines of stack traces are ` => function`, which no thread is called.
                self.is_event = !matches!(byte, b'#' | b'\n') && !piece[at..].starts_with(b" =>");
                if *left == 0 && self.is_event {
                    return at;
                }
            }
            self.is_begin = *byte == b'\n';
            if self.is_begin && self.is_event {
                *left -= 1;
            }
        }
        piece.len()
    }
}

/// Copies events to standard output as they happen, until a signal comes or the reader closes the pipe. Only
/// whole lines are written, because a signal may find a reader that takes nothing: [`write_lines`].
pub fn stream(tracefs: &Tracefs, signals: &Signals, stoppable: bool) -> io::Result<()> {
    let path = tracefs.path("trace_pipe");
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
    let mut pipe = opened.map_err(|e| with_path(e, &path.display().to_string()))?;
    let mut out = InterruptibleWriter::new(&io::stdout(), write_timeout(signals, stoppable))?;
    let mut chunk = vec![0; CHUNK_BYTES];
    // The kernel hands out lines in parts: the bytes of a line whose end has not been read stay in front.
    let mut is_stopping = false;
    let mut in_line = 0;
    loop {
        match pipe.read(&mut chunk[in_line..]) {
            Ok(n) if n > 0 => {
                let end = in_line + n;
                let mut newlines = chunk[..end].iter();
                // After a signal the line that was begun is the last one.
                let newline = if is_stopping {
                    newlines.position(|byte| *byte == b'\n')
                } else {
                    newlines.rposition(|byte| *byte == b'\n')
                };
                let whole = match newline {
                    Some(newline) => newline + 1,
                    None if end == chunk.len() => end,
                    None => 0,
                };
                match write_lines(&mut out, &chunk[..whole]) {
                    Err(e) if matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::TimedOut) => {
                        return Ok(());
                    }
                    written => written?,
                }
                if is_stopping && newline.is_some() {
                    return Ok(());
                }
                chunk.copy_within(whole..end, 0);
                in_line = end - whole;
            }
            Ok(_) if is_stopping => return Ok(()),
            Err(e) if is_stopping && e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            // No events yet. A poll of the pipe would wait for buffer_percent, so the loop waits for a fixed
            // time.
            Ok(_) => {
                signals.arrive_within(MAX_LATENCY);
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                signals.arrive_within(MAX_LATENCY);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(with_path(e, &path.display().to_string())),
        }
        is_stopping |= signals.take().is_some() && stoppable;
        if is_stopping && in_line == 0 {
            return Ok(());
        }
    }
}

/// Writes whole lines at a time, as many as fit into [`PIPE_BUF`] bytes: a pipe takes that much wholly or not
/// at all, so that a wait for the reader never ends within a line. Only a longer line is taken in parts.
fn write_lines(out: &mut impl Write, mut text: &[u8]) -> io::Result<()> {
    while !text.is_empty() {
        let most = &text[..text.len().min(PIPE_BUF)];
        let end = most.iter().rposition(|byte| *byte == b'\n').map_or(most.len(), |newline| newline + 1);
        out.write_all(&text[..end])?;
        text = &text[end..];
    }
    Ok(())
}

/// Prints the events that the kernel lost on standard error, unless that text would land in the trace
/// (`2>&1`, or an adb that does not separate the streams).
pub fn print_losses(options: &AtraceOptions, tracefs: &Tracefs) {
    let same = |a: nix::sys::stat::FileStat, b: nix::sys::stat::FileStat| {
        (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)
    };
    let mixed = match (nix::sys::stat::fstat(io::stdout()), nix::sys::stat::fstat(io::stderr())) {
        (Ok(out), Ok(err)) => same(out, err),
        _ => true,
    };
    if options.output.is_none() && mixed {
        return;
    }
    for cpu in tracefs.cpus().unwrap_or_default() {
        let Ok(stats) = CpuStats::read(tracefs, cpu) else { continue };
        let old = stats.overrun;
        let new = stats.dropped + stats.commit_overrun;
        if old + new > 0 {
            complain(format_args!(
                "atrace: CPU {cpu} lost events: the oldest {old} overwritten, {new} not written; a larger -b keeps more"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_dump_of_a_running_trace_ends_with_the_last_event_that_there_was() {
        let text = b"# tracer: nop\n#\n a-1 [0] 1.0: x: 1\n => fn_a\n => fn_b\n b-2 [1] 2.0: y: 2\n c-3 [0] 3.0: z: 3\n";
        let event = |name: &[u8]| text.windows(name.len()).position(|part| part == name).unwrap();
        // The stack of the last event belongs to it.
        for (limit, end) in [(0, event(b" a-1")), (1, event(b" b-2")), (2, event(b" c-3")), (9, text.len())] {
            let mut out = Vec::new();
            copy(&mut &text[..], &mut out, Some(limit)).unwrap();
            assert_eq!(out.len(), end, "{limit}: {}", String::from_utf8_lossy(&out));
        }
        let mut out = Vec::new();
        copy(&mut &text[..], &mut out, None).unwrap();
        assert!(out == text);
    }

    /// Writes lines to a pipe that nobody reads until the timeout is over, and returns what was taken.
    fn taken(lines: &[u8]) -> Vec<u8> {
        let (mut reader, writer) = io::pipe().unwrap();
        let timeout = Rc::new(WriteTimeout::until(Instant::now() + Duration::from_millis(50)));
        let mut out = InterruptibleWriter::new(&writer, timeout).unwrap();
        assert_eq!(write_lines(&mut out, lines).unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop((out, writer));
        let mut taken = Vec::new();
        reader.read_to_end(&mut taken).unwrap();
        taken
    }

    #[test]
    fn a_reader_that_takes_nothing_more_has_whole_lines() {
        for length in [1, 99, 100, 128, 1000, 3000, 4095] {
            let line = [vec![b'x'; length - 1], vec![b'\n']].concat();
            let lines = line.repeat(1 + (1 << 20) / length);
            let taken = taken(&lines);
            assert!(!taken.is_empty() && lines.starts_with(&taken));
            assert_eq!(taken.len() % length, 0, "lines of {length} bytes");
        }
    }

    #[test]
    fn a_line_beyond_a_pipes_limit_is_written_in_parts() {
        let mut out = Vec::new();
        let lines = [b"one\n".to_vec(), vec![b'x'; 3 * PIPE_BUF], b"\ntwo\nthree".to_vec()].concat();
        write_lines(&mut out, &lines).unwrap();
        assert_eq!(out, lines);
    }
}
