//! The output of atrace: the kernel's text, plain, compressed, or as a live stream.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::AtraceOptions;
use crate::console::complain;
use crate::record::{Signals, Tracefs, cpu_stats};

/// How many bytes one `read` asks for.
const CHUNK_BYTES: usize = 64 * 1024;
/// The longest time in ms that an event waits in the kernel before `--stream` prints it.
const MAX_LATENCY_MS: u16 = 100;

/// Writes the content of the ring buffer to the file of `-o`, or to standard output.
pub fn dump(options: &AtraceOptions, tracefs: &Tracefs) -> io::Result<()> {
    match &options.output {
        Some(path) => {
            let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(path);
            let mut file = opened.map_err(|e| with_path(e, &format!("Failed to open '{path}'")))?;
            write_trace(&mut file, tracefs, options.compress)
        }
        None => write_trace(&mut io::stdout().lock(), tracefs, options.compress),
    }
}

fn with_path(error: io::Error, what: &str) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

fn write_trace(out: &mut impl Write, tracefs: &Tracefs, compress: bool) -> io::Result<()> {
    // This line is never compressed: readers look for it.
    out.write_all(b"TRACE:\n")?;
    let path = tracefs.path("trace");
    let mut trace = File::open(&path).map_err(|e| with_path(e, &path.display().to_string()))?;
    if compress {
        let mut zlib = ZlibEncoder::new(out, Compression::default());
        copy(&mut trace, &mut zlib)?;
        zlib.finish()?.flush()
    } else {
        copy(&mut trace, out)?;
        out.flush()
    }
}

/// Copies with `read` and `write`. The kernel generates this text during the read and reports a size of 0,
/// which `splice` and `copy_file_range` (`io::copy` would try them) take for an empty file.
fn copy(from: &mut File, to: &mut impl Write) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(n) => to.write_all(&chunk[..n])?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Copies events to standard output as they happen, until a signal comes or the reader closes the pipe.
pub fn stream(tracefs: &Tracefs, signals: &Signals, stoppable: bool) -> io::Result<()> {
    let path = tracefs.path("trace_pipe");
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
    let mut pipe = opened.map_err(|e| with_path(e, &path.display().to_string()))?;
    let mut out = io::stdout().lock();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match pipe.read(&mut chunk) {
            Ok(n) if n > 0 => match out.write_all(&chunk[..n]).and_then(|()| out.flush()) {
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                written => written?,
            },
            // No events yet. A poll of the pipe would wait for buffer_percent, so the loop waits for a fixed
            // time.
            Ok(_) => drop(wait(signals, MAX_LATENCY_MS)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => drop(wait(signals, MAX_LATENCY_MS)),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(with_path(e, &path.display().to_string())),
        }
        if signals.take().is_some() && stoppable {
            return Ok(());
        }
    }
}

/// Waits for a signal, at most `ms` milliseconds. Returns whether one came.
pub fn wait(signals: &Signals, ms: u16) -> bool {
    let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::from(ms)).is_ok_and(|ready| ready > 0)
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
        let Ok(stats) = cpu_stats::read(tracefs, cpu) else { continue };
        let (old, new) = (stats.overrun, stats.dropped + stats.commit_overrun);
        if old + new > 0 {
            complain(format_args!(
                "atrace: CPU {cpu} lost events: the oldest {old} overwritten, {new} not written; a larger -b keeps more"
            ));
        }
    }
}
