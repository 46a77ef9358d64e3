//! Small files of many small events: what is written from front to back needs little memory, however many
//! there are.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use support::processes::finish_with_memory;
use support::{Command, Ran, binary};

/// A field of a message: a number.
pub(super) fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

/// A field of a message: bytes.
pub(super) fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes a Perfetto trace of `packets` packets, in one compressed packet: `fill` appends each.
fn write_trace(path: &Path, packets: u64, mut fill: impl FnMut(u64, &mut Vec<u8>)) {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
    let mut framed = Vec::new();
    let mut packet = Vec::new();
    for n in 0..packets {
        packet.clear();
        fill(n, &mut packet);
        framed.clear();
        bytes(&mut framed, 1, &packet);
        zlib.write_all(&framed).unwrap();
    }
    let mut compressed = Vec::new();
    bytes(&mut compressed, 50, &zlib.finish().unwrap());
    let mut trace = Vec::new();
    bytes(&mut trace, 1, &compressed);
    fs::write(path, trace).unwrap();
}

/// Runs a command, and returns what it said and the most memory that it took, MiB.
fn run(dir: &Path, args: &[&str]) -> (Ran, usize) {
    let mut command = Command::new(binary());
    command.current_dir(dir).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (ran, peak) = finish_with_memory(command.spawn().unwrap());
    (ran, peak >> 10)
}

/// Runs `info` on a trace, and converts it to each of these endings. No command may take more than `most`
/// MiB.
fn stays_below(dir: &Path, trace: &str, endings: &[&str], most: usize) {
    let outputs: Vec<String> = endings.iter().map(|ending| format!("y.{ending}")).collect();
    let conversions = outputs.iter().map(|output| vec!["convert", trace, "-o", output]);
    for args in [vec!["info", trace]].into_iter().chain(conversions) {
        let (ran, peak) = run(dir, &args);
        ran.exited(0);
        assert!((1..most).contains(&peak), "{args:?}: {peak} MiB");
    }
}

/// 4,000,000 markers, which unpack to 108 MB, in one bundle.
#[test]
fn kernel_events_are_not_held_however_many_they_are() {
    let dir = support::tempdir();
    write_trace(&dir.path().join("x.pftrace"), 1, |_, packet| {
        let mut bundle = Vec::new();
        number(&mut bundle, 1, 0);
        let mut print = Vec::new();
        number(&mut print, 1, 1);
        bytes(&mut print, 2, b"I|10|t");
        let mut event = Vec::new();
        for n in 0..4_000_000 {
            event.clear();
            number(&mut event, 1, 1_000_000_000 + n * 1_000);
            number(&mut event, 2, 10);
            bytes(&mut event, 3, &print);
            bytes(&mut bundle, 2, &event);
        }
        bytes(packet, 1, &bundle);
    });
    stays_below(dir.path(), "x.pftrace", &["csv", "json"], 90);
}

/// 2,000,000 packets with a bundle of one marker each, of two CPUs in turn.
#[test]
fn small_bundles_are_not_held_however_many_they_are() {
    let dir = support::tempdir();
    write_trace(&dir.path().join("x.pftrace"), 2_000_000, |n, packet| {
        let mut print = Vec::new();
        bytes(&mut print, 2, b"I|10|t");
        let mut event = Vec::new();
        number(&mut event, 1, 1_000_000_000 + n * 1_000);
        number(&mut event, 2, 10);
        bytes(&mut event, 3, &print);
        let mut bundle = Vec::new();
        number(&mut bundle, 1, n % 2);
        bytes(&mut bundle, 2, &event);
        bytes(packet, 1, &bundle);
    });
    stays_below(dir.path(), "x.pftrace", &["csv"], 130);
}

/// 1,500,000 events of one track, of which every other one comes late.
#[test]
fn track_events_are_not_held_however_many_they_are() {
    let dir = support::tempdir();
    write_trace(&dir.path().join("x.pftrace"), 1_500_000, |n, packet| {
        // Instants, in two halves that lie between each other in time.
        let ts = if n < 750_000 { n * 2_000 } else { (n - 750_000) * 2_000 + 1_000 };
        let mut event = Vec::new();
        number(&mut event, 9, 3);
        number(&mut event, 11, 77);
        bytes(&mut event, 23, b"x");
        number(packet, 8, 1_000_000_000 + ts);
        number(packet, 10, 1);
        bytes(packet, 11, &event);
    });
    stays_below(dir.path(), "x.pftrace", &["csv", "json"], 150);
}

/// The rows of the giant columns.
const ROWS: u64 = 2_000_000;

/// Writes `x.pftrace`: switches of CPU 0 between two threads, all in the columns of one `CompactSched`.
fn write_giant_columns(dir: &Path) {
    write_trace(&dir.join("x.pftrace"), 1, |_, packet| {
        let column = |value: &dyn Fn(u64) -> u64| {
            let mut out = Vec::new();
            (0..ROWS).for_each(|n| varint(&mut out, value(n)));
            out
        };
        let mut sched = Vec::new();
        bytes(&mut sched, 5, b"one");
        bytes(&mut sched, 5, b"other");
        bytes(&mut sched, 1, &column(&|_| 900));
        bytes(&mut sched, 2, &column(&|_| 1));
        bytes(&mut sched, 3, &column(&|n| 10 + n % 2));
        bytes(&mut sched, 4, &column(&|_| 120));
        bytes(&mut sched, 6, &column(&|n| n % 2));
        let mut bundle = Vec::new();
        number(&mut bundle, 1, 0);
        bytes(&mut bundle, 4, &sched);
        bytes(packet, 1, &bundle);
    });
}

#[test]
fn the_rows_of_giant_columns_are_not_held_however_many_they_are() {
    let dir = support::tempdir();
    let dir = dir.path();
    write_giant_columns(dir);
    stays_below(dir, "x.pftrace", &["csv", "json", "txt", "dat"], 90);
    let text = fs::read_to_string(dir.join("y.txt")).unwrap();
    let switches = text.lines().filter(|line| line.contains("sched_switch:"));
    assert_eq!(switches.count() as u64, ROWS);
    let last = format!("{}.{:09}", ROWS * 900 / 1_000_000_000, ROWS * 900 % 1_000_000_000);
    let tail: Vec<&str> = text.lines().rev().take(2).collect();
    assert!(tail[0].contains(&last[..8]) && tail[0].contains("next_comm=other next_pid=11"), "{tail:?}");
    assert!(tail[1].contains("next_comm=one next_pid=10"), "{tail:?}");
    // What keeps all of them ends at its limit, and says what to cut.
    for output in ["y.html", "y.firefox.json"] {
        let (ran, peak) = run(dir, &["convert", "x.pftrace", "-o", output, "--max-memory", "64M"]);
        let said = ran.exited(1).said();
        assert!(said.contains("--from TIME and --to TIME") && said.contains("--max-memory"), "{said}");
        assert!((1..250).contains(&peak), "{output}: {peak} MiB");
        assert!(!dir.join(output).exists());
    }
}

/// A tar of one file.
fn tar(name: &str, content: &[u8]) -> Vec<u8> {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    header[257..263].copy_from_slice(b"ustar\0");
    header[263..265].copy_from_slice(b"00");
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let padding = vec![0; content.len().next_multiple_of(512) - content.len() + 1024];
    [&header[..], content, &padding].concat()
}

/// A text of 150 MB in a zip and in a packed tar, as a bug report has it.
#[test]
fn the_events_of_a_file_in_an_archive_are_not_held_however_many_they_are() {
    let dir = support::tempdir();
    let dir = dir.path();
    let mut text = String::from("# tracer: nop\n#\n");
    for n in 0..2_500_000 {
        let _ =
            writeln!(text, " a-1 [000] .... {}.{:06}: tracing_mark_write: I|1|x", n / 1000, n % 1000 * 1000);
    }
    fs::write(dir.join("x.zip"), support::files::zip(&[("x.txt", text.as_bytes())])).unwrap();
    let mut gzip = GzEncoder::new(File::create(dir.join("x.tar.gz")).unwrap(), Compression::fast());
    gzip.write_all(&tar("x.txt", text.as_bytes())).unwrap();
    gzip.finish().unwrap();
    for archive in ["x.zip", "x.tar.gz"] {
        stays_below(dir, archive, &["csv", "dat"], 110);
    }
}
