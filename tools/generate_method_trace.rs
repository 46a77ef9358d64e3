//! Writes a well-formed ART method trace (version 3, dual clock) of any size, for races and for looking at
//! viewers: `cargo run --release --example generate_method_trace -- [--long-runs] OUT [RECORDS [THREADS
//! [METHODS [DEPTH]]]]`
//!
//! `--long-runs` writes the second shape: long names, threads that run for long, deep and shallow ones.
//! Defaults: 5,000,000 records, 8 threads, 20,000 methods, calls up to 60 deep. The same numbers give the
//! same file.

use std::io::{BufWriter, Write};

use support::art_generate::{Shape, Size, USUAL};

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1).peekable();
    let shape = match args.next_if(|arg| arg == "--long-runs") {
        Some(_) => Shape::LongRuns,
        None => Shape::ShortTurns,
    };
    // An option is no file to write to.
    let path = args.next().filter(|path| !path.starts_with('-'));
    let path =
        path.expect("usage: generate_method_trace [--long-runs] OUT [RECORDS [THREADS [METHODS [DEPTH]]]]");
    let mut number = |default: u64| args.next().map_or(default, |a| a.parse().expect("a number"));
    let size = Size {
        records: number(USUAL.records),
        threads: number(USUAL.threads),
        methods: number(USUAL.methods),
        depth: number(USUAL.depth),
    };
    let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
    support::art_generate::write_shape(&mut out, size, shape)?;
    out.flush()
}
