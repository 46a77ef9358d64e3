//! Outputs read back as their inputs were, up to the losses that the format declares.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::text::{events, systrace};
use super::{golden, read_text};
use support::TempDir;
use support::dat_writer::{DatFile, RingBuffer, common};
use support::kernel_pages::KernelPages;

/// Converts `from` into `to`, and returns the summary.
fn convert(from: &Path, to: &Path) -> Value {
    let done = support::tracebridge().args(["convert", "--json"]).arg(from).arg("-o").arg(to).run();
    assert!(matches!(done.code(), Some(0 | 3)), "{}", done.stderr);
    done.json()
}

/// The files of a chain of conversions that begins at `from`.
fn chain(dir: &Path, from: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut files = vec![from.to_owned()];
    for (at, ending) in endings.iter().enumerate() {
        let to = dir.join(format!("{at}.{ending}"));
        convert(&files[at], &to);
        files.push(to);
    }
    files
}

#[test]
fn the_text_that_the_kernel_itself_printed_becomes_a_trace_dat_and_the_same_text_again() {
    let dir = support::tempdir();
    let source = dir.path().join("kernel.txt");
    fs::write(&source, KernelPages::printed("events")).unwrap();
    let files = chain(dir.path(), &source, &["txt", "dat", "txt", "systrace.html", "txt"]);
    let kernel = events(&KernelPages::printed("events"));
    assert!(kernel.len() > 100);
    // The first conversion adds the column of the process; all later ones keep every byte.
    assert_eq!(events(&read_text(&files[1])), kernel);
    let before = read_text(&files[1]);
    let after = read_text(&files[3]);
    assert_eq!(before.lines().count(), after.lines().count());
    for (before, after) in before.lines().zip(after.lines()) {
        let forgotten = before.trim_start().strip_prefix("<...>");
        // A trace.dat has one name for each thread, also for events before which the kernel had forgotten it.
        let is_same = before == after || forgotten.is_some_and(|rest| after.ends_with(rest));
        assert!(is_same, "text to trace.dat to text:\n{before}\n{after}");
    }
    assert!(after == read_text(&files[5]), "text to HTML to text");
}

#[test]
fn a_text_of_known_events_becomes_a_trace_dat_and_the_same_text_byte_for_byte() {
    let dir = support::tempdir();
    // Each thread has one name, as a trace.dat has.
    let known: Vec<String> = KernelPages::printed("events").lines().map(str::to_owned).collect();
    let fields: Vec<&str> = known.iter().filter_map(|line| Some(line.split_once("]")?.1)).collect();
    assert!(fields.len() > 100);
    let lines = fields.iter().enumerate().map(|(at, rest)| {
        let (columns, event) = rest.split_once(": ").unwrap();
        let (flags, _) = columns.trim().split_once(' ').unwrap();
        let tid = 100_000 + at % 7;
        let event = if event.contains("filename=") { "tracing_mark_write: E|7" } else { event };
        format!("           one{}-{tid}  (   7000) [00{}] {flags}  1000.{at:06}: {event}\n", at % 7, at % 2)
    });
    let header = "# tracer: nop\n#\n";
    let source = dir.path().join("known.txt");
    fs::write(&source, format!("{header}{}", lines.collect::<String>())).unwrap();
    let files = chain(dir.path(), &source, &["txt", "dat", "txt"]);
    let before = read_text(&files[1]);
    let after = read_text(&files[3]);
    let first_difference = before.lines().zip(after.lines()).find(|(before, after)| before != after);
    assert_eq!(first_difference, None);
    assert!(before == after);
}

#[test]
fn a_file_that_is_written_again_in_its_own_format_stays_byte_for_byte_the_same() {
    let dir = support::tempdir();
    for input in ["dat/v6.dat", "dat/split.dat", "dat/v7-zstd.dat"] {
        for ending in ["dat", "txt"] {
            let files = chain(dir.path(), &golden(input), &[ending, ending]);
            let [first, second] = [&files[1], &files[2]].map(|file| fs::read(file).unwrap());
            assert!(first == second, "{input} to {ending} to {ending}");
        }
    }
}

/// A capture with one marker for each value of the flags, and every preempt count in turn.
fn all_flags() -> (TempDir, PathBuf) {
    let mut ring = RingBuffer::default();
    for flags in 0..=255u8 {
        let mut record = common(5, 40);
        record.0[2] = flags;
        record.0[3] = flags.rotate_left(3);
        record.u64(0xffff_ffff_8149_895a).raw(format!("I|40|{flags}\n\0").as_bytes());
        ring.event(1_000_000_000 + u64::from(flags) * 1_000, &record.0);
    }
    let mut file = DatFile::with_texts_of(&KernelPages::read("events"));
    file.cpus = vec![ring.into_pages()];
    let dir = support::tempdir();
    let path = dir.path().join("flags.dat");
    fs::write(&path, file.to_bytes()).unwrap();
    (dir, path)
}

/// The flags and the text of each marker, as a text shows them.
fn shown_flags(file: &Path) -> Vec<(String, String)> {
    events(&systrace(file, 0)).into_iter().map(|event| (event.flags, event.fields)).collect()
}

#[test]
fn every_value_of_the_flags_survives_every_format_that_holds_flags() {
    let (dir, source) = all_flags();
    let want = shown_flags(&source);
    assert_eq!(want.len(), 256);
    for endings in
        [&["dat"][..], &["txt"], &["systrace.html"], &["pftrace"], &["txt", "dat", "systrace.html", "dat"]]
    {
        let files = chain(dir.path(), &source, endings);
        let got = shown_flags(files.last().unwrap());
        let flags_only = endings.contains(&"pftrace");
        for (got, want) in got.iter().zip(&want) {
            // Perfetto's messages hold no preempt count.
            let end = if flags_only { 3 } else { 5 };
            assert_eq!((&got.0[..end], &got.1), (&want.0[..end], &want.1), "{endings:?}");
        }
        assert_eq!(got.len(), 256, "{endings:?}");
    }
}

#[test]
fn bit_1_of_the_flags_is_lazy_rescheduling_in_a_record_and_an_x_of_a_text_is_counted_where_it_has_no_place() {
    let (dir, source) = all_flags();
    let letter = |flags: usize| shown_flags(&source)[flags].0.as_bytes()[1];
    assert_eq!((letter(0x02), letter(0x06), letter(0x22), letter(0x26)), (b'l', b'b', b'L', b'B'));
    // Kernels up to 6.12 print `X` for this bit. Newer ones have given its place in the record away.
    let line = |flags: &str| format!(" a-7 (    7) [000] {flags} 1.000001: tracing_mark_write: I|7|x\n");
    let text = dir.path().join("x.txt");
    fs::write(&text, format!("# tracer: nop\n#\n{}{}", line("X..1."), line("Xl.1."))).unwrap();
    let again = dir.path().join("y.txt");
    assert_eq!(convert(&text, &again)["reduced"], json!({}));
    assert!(read_text(&again).contains("] X..1.") && read_text(&again).contains("] Xl.1."));
    let dat = dir.path().join("x.dat");
    assert_eq!(convert(&text, &dat)["reduced"], json!({ "flags": 2 }));
    let flags: Vec<String> = shown_flags(&dat).into_iter().map(|(flags, _)| flags).collect();
    assert_eq!(flags, ["...1.", ".l.1."]);
}
