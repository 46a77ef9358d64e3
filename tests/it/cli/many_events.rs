//! Small files of many small events: what is written from front to back needs little memory, however many
//! there are.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use support::processes::finish_with_memory;
use support::{Command, binary};

/// A field of a message: a number.
fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

/// A field of a message: bytes.
fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
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

/// Runs commands on the trace `x.pftrace`, none of which may take more than `most` MiB.
fn stays_below(dir: &Path, most: usize) {
    for args in [
        &["info", "x.pftrace"][..],
        &["convert", "x.pftrace", "-o", "x.csv"],
        &["convert", "x.pftrace", "-o", "x.json"],
    ] {
        let mut command = Command::new(binary());
        command.current_dir(dir).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (ran, peak) = finish_with_memory(command.spawn().unwrap());
        ran.exited(0);
        assert!((1..most).contains(&(peak >> 10)), "{args:?}: {} MiB", peak >> 10);
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
    stays_below(dir.path(), 90);
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
    stays_below(dir.path(), 150);
}
