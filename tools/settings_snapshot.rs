//! Prints every readable setting of tracefs and its value, one setting a line: the tests on a device run it
//! before and after a recording and compare. It is a test program and no part of the product.
//!
//! usage: `settings_snapshot [DIRECTORY]`, the directory being the tracefs (default: `/sys/kernel/tracing`)
//!
//! A line is the path below the directory, a tab, and the value, in which `\n` stands for a newline and `\\`
//! for a backslash.
#![allow(missing_docs)]

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Whether a file of this name is no setting: it holds the trace itself, or a count that changes by itself,
/// or a description that cannot change. Reading a `trace_pipe` would take events away, and closing
/// `free_buffer` empties the buffer. Triggers are settings, but nothing in the product writes one, and
/// reading 1,500 of them takes a third of the time on an emulated device.
fn is_no_setting(name: &str) -> bool {
    const NAMES: [&str; 14] = [
        "trace",
        "free_buffer",
        "stats",
        "saved_cmdlines",
        "saved_tgids",
        "format",
        "id",
        "hist",
        "printk_formats",
        "README",
        "touched_functions",
        "enabled_functions",
        "error_log",
        "trigger",
    ];
    const PREFIXES: [&str; 4] = ["trace_pipe", "snapshot", "trace_marker", "available_"];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The entries of a directory, each with whether it is a directory itself.
fn entries(dir: &Path) -> impl Iterator<Item = (PathBuf, bool)> {
    let path = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let dir = dir.to_owned();
    fs::read_dir(path).into_iter().flatten().flatten().filter_map(move |entry| {
        let file_type = entry.file_type().ok()?;
        let is_setting = file_type.is_file() && !is_no_setting(&entry.file_name().to_string_lossy());
        (is_setting || file_type.is_dir()).then(|| (dir.join(entry.file_name()), file_type.is_dir()))
    })
}

/// Adds a line for the setting in `file` to `lines`. Returns the value.
fn add(file: &Path, lines: &mut String) -> Option<String> {
    let value = value(file)?;
    lines.push_str(&format!("{}\t{value}\n", file.display()));
    Some(value)
}

/// Adds a line to `lines` for each setting below `dir`. A group of events whose own `enable` says that all of
/// its events are off, or all are on, says what `enable` of each of them would say: these are not read, which
/// halves the time on an emulated device. `group_says_all` tells that of the directory above.
fn add_all(dir: &Path, group_says_all: bool, lines: &mut String) {
    let mut says_all = false;
    let (dirs, files): (Vec<_>, Vec<_>) = entries(dir).partition(|(_, is_dir)| *is_dir);
    for (file, _) in files {
        let is_enable = file.file_name().is_some_and(|name| name == "enable");
        if is_enable && group_says_all {
            continue;
        }
        let value = add(&file, lines);
        says_all |= is_enable && matches!(value.as_deref(), Some("0\\n" | "1\\n"));
    }
    for (dir, _) in dirs {
        add_all(&dir, says_all, lines);
    }
}

/// A setting's value, or `None` for a file that can only be written or that this kernel refuses to show.
fn value(file: &Path) -> Option<String> {
    let mut open = File::open(file).ok()?;
    let mut bytes = Vec::new();
    let mut piece = [0; 1 << 16];
    loop {
        let len = open.read(&mut piece).ok()?;
        bytes.extend_from_slice(&piece[..len]);
        // The kernel gives at least half a page in one read unless it comes to the end. System calls are slow
        // on an emulated device, and a second read of each of 4,600 files would only say that nothing is
        // left.
        if len < 2048 {
            break;
        }
    }
    Some(String::from_utf8_lossy(&bytes).replace('\\', "\\\\").replace('\n', "\\n"))
}

fn main() -> io::Result<()> {
    let root = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| "/sys/kernel/tracing".into()));
    std::env::set_current_dir(&root)?;
    // Each CPU takes the next directory when it is done with one. The groups of events are such directories.
    let mut lines = String::new();
    let mut dirs: Vec<PathBuf> = Vec::new();
    for top in ["", "events"].map(Path::new) {
        for (entry, is_dir) in entries(top) {
            if !is_dir {
                drop(add(&entry, &mut lines));
            } else if entry != Path::new("events") {
                dirs.push(entry);
            }
        }
    }
    let next = AtomicUsize::new(0);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let shares: Vec<String> = std::thread::scope(|scope| {
        let take = || {
            let mut lines = String::new();
            while let Some(dir) = dirs.get(next.fetch_add(1, Ordering::Relaxed)) {
                add_all(dir, false, &mut lines);
            }
            lines
        };
        let readers: Vec<_> = (0..cpus).map(|_| scope.spawn(take)).collect();
        readers.into_iter().map(|reader| reader.join().expect("no reader panics")).collect()
    });
    let mut out = io::stdout().lock();
    out.write_all(lines.as_bytes())?;
    shares.iter().try_for_each(|share| out.write_all(share.as_bytes()))?;
    out.flush()
}
