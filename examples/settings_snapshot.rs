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

/// Whether a file of this name is no setting: it holds the trace itself, or a count that changes by itself,
/// or a description that cannot change. Reading a `trace_pipe` would take events away, and closing
/// `free_buffer` empties the buffer.
fn is_no_setting(name: &str) -> bool {
    const NAMES: [&str; 13] = [
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
    ];
    const PREFIXES: [&str; 4] = ["trace_pipe", "snapshot", "trace_marker", "available_"];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Adds the files below `dir` that may be settings to `files`.
fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    let path = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let Ok(file_type) = entry.file_type() else { continue };
        if file_type.is_dir() {
            collect(&dir.join(entry.file_name()), files);
        } else if file_type.is_file() && !is_no_setting(&entry.file_name().to_string_lossy()) {
            files.push(dir.join(entry.file_name()));
        }
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
    let mut files = Vec::new();
    collect(Path::new(""), &mut files);
    files.sort();
    // Each CPU reads its share of the files.
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut shares: Vec<String> = Vec::new();
    std::thread::scope(|scope| {
        let readers: Vec<_> = files
            .chunks(files.len().div_ceil(cpus).max(1))
            .map(|share| {
                scope.spawn(move || -> String {
                    let values = share.iter().filter_map(|file| Some((file, value(file)?)));
                    values.map(|(file, value)| format!("{}\t{value}\n", file.display())).collect()
                })
            })
            .collect();
        shares.extend(readers.into_iter().map(|reader| reader.join().expect("no reader panics")));
    });
    let mut out = io::stdout().lock();
    for share in shares {
        out.write_all(share.as_bytes())?;
    }
    out.flush()
}
