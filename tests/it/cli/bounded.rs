//! Files that would take all memory or time are refused, or read up to a limit that the message names.

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use support::{Command, binary, run_in};

/// Numbers and texts of a trace.dat of a little-endian machine.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn uint(mut self, value: u64, bytes: usize) -> Bytes {
        self.0.extend_from_slice(&value.to_le_bytes()[..bytes]);
        self
    }

    fn raw(mut self, bytes: &[u8]) -> Bytes {
        self.0.extend_from_slice(bytes);
        self
    }
}

/// A section of version 7, compressed or not.
fn section(id: u64, data: &[u8], compressed: bool) -> Vec<u8> {
    let body = if compressed {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        zlib.write_all(data).unwrap();
        let zlib = zlib.finish().unwrap();
        Bytes::default().uint(zlib.len() as u64, 4).uint(data.len() as u64, 4).raw(&zlib).0
    } else {
        data.to_vec()
    };
    let head = Bytes::default().uint(id, 2).uint(compressed.into(), 2).uint(0, 4);
    head.uint(body.len() as u64, 8).raw(&body).0
}

/// A trace.dat of version 7 with 5 events, whose print format is `print_fmt`. The section of the event
/// formats has `filler` more bytes, and the options name it `named` times.
fn dat(print_fmt: &str, filler: usize, named: usize) -> Vec<u8> {
    let field =
        |line: &str, offset, size| format!("\tfield:{line};\toffset:{offset};\tsize:{size};\tsigned:1;\n");
    let header_page = field(" u64 timestamp", 0, 8)
        + &field(" local_t commit", 8, 8)
        + &field(" int overwrite", 8, 1)
        + &field(" char data", 16, 4080);
    let mut format = "name: made_up\nID: 300\nformat:\n".to_owned();
    for (line, offset, size) in [
        ("unsigned short common_type", 0, 2),
        ("unsigned char common_flags", 2, 1),
        ("unsigned char common_preempt_count", 3, 1),
        ("int common_pid", 4, 4),
        ("int a", 8, 4),
    ] {
        format += &field(line, offset, size);
    }
    format += &format!("\nprint fmt: {print_fmt}\n{}", "#".repeat(filler));
    let mut events = Bytes::default();
    for n in 0..5u64 {
        events = events.uint(3 | 1000 << 5, 4).uint(300, 2).uint(0, 2).uint(40, 4).uint(n + 7, 4);
    }
    let mut page = Bytes::default().uint(1_000_000, 8).uint(events.0.len() as u64, 8).raw(&events.0).0;
    page.resize(4096, 0);

    let head = Bytes::default().raw(b"\x17\x08\x44tracing7\0").raw(&[0, 8]).uint(4096, 4).raw(b"zlib\0\0");
    let mut file = head.uint(0, 8).0;
    let options_at = file.len() - 8;
    let header_info = Bytes::default()
        .raw(b"header_page\0")
        .uint(header_page.len() as u64, 8)
        .raw(header_page.as_bytes())
        .raw(b"header_event\0")
        .uint(0, 8);
    let formats = Bytes::default().uint(1, 4).raw(b"made\0").uint(1, 4);
    let formats = formats.uint(format.len() as u64, 8).raw(format.as_bytes());
    let option = |id, data: Vec<u8>| Bytes::default().uint(id, 2).uint(data.len() as u64, 4).raw(&data).0;
    let place = |file: &[u8]| Bytes::default().uint(file.len() as u64, 8).0;

    let mut options = option(16, place(&file));
    file.extend(section(16, &header_info.0, true));
    options.extend(option(18, place(&file)).repeat(named));
    file.extend(section(18, &formats.0, true));
    let buffer = place(&file);
    let pages_at = (file.len() + 16).next_multiple_of(4096);
    let padding = vec![0; pages_at - file.len() - 16];
    file.extend(section(3, &[padding, page].concat(), false));
    let buffer = Bytes(buffer).raw(b"\0local\0").uint(4096, 4).uint(1, 4).uint(0, 4).uint(pages_at as u64, 8);
    options.extend(option(3, buffer.uint(4096, 8).0));
    options.extend(option(0, vec![0; 8]));
    let options_place = place(&file);
    file[options_at..options_at + 8].copy_from_slice(&options_place);
    file.extend(section(0, &options, false));
    file
}

#[test]
fn a_print_format_without_end_is_named_and_its_events_come_with_their_fields() {
    let dir = support::tempdir();
    let nested = format!("\"a=%d\", {}REC->a{}", "(".repeat(30), " ?: 1)".repeat(30));
    let chain = format!("\"a=%d\", REC->a{}", "+REC->a".repeat(25_000));
    for (print_fmt, line, note) in [
        ("\"a=%d\", REC->a", "made_up: a=11", ""),
        (nested.as_str(), "made_up: a=11", ""),
        (chain.as_str(), "made_up: a=? a=11", "made:made_up: the print format has more than 1000 operators"),
    ] {
        fs::write(dir.path().join("x.dat"), dat(print_fmt, 0, 1)).unwrap();
        let said = run_in(dir.path(), &["convert", "x.dat", "-o", "x.txt"]).exited(0).said();
        let text = fs::read_to_string(dir.path().join("x.txt")).unwrap();
        assert!(
            text.lines().filter(|l| l.contains("made_up: ")).count() == 5 && text.contains(line),
            "{text}"
        );
        assert!(said.contains(note), "{said}");
    }
}

#[test]
fn a_section_that_is_named_2000_times_is_read_once() {
    let dir = support::tempdir();
    fs::write(dir.path().join("x.dat"), dat("\"a=%d\", REC->a", 8 << 20, 2_000)).unwrap();
    let said = run_in(dir.path(), &["info", "x.dat"]).exited(3).said();
    assert!(said.contains("is named twice") && said.contains("5 events"), "{said}");
}

#[test]
fn sections_of_options_that_are_too_many_are_told() {
    let dir = support::tempdir();
    for (more, status) in [(1_023, 0), (1_024, 3)] {
        let mut file = dat("\"a=%d\", REC->a", 0, 1);
        for _ in 0..more {
            // The last option of the last section is the place of the next section.
            let end = file.len();
            file[end - 8..].copy_from_slice(&Bytes::default().uint(end as u64, 8).0);
            let last = Bytes::default().uint(0, 2).uint(8, 4).uint(0, 8).0;
            file.extend(section(0, &last, false));
        }
        fs::write(dir.path().join("x.dat"), file).unwrap();
        let said = run_in(dir.path(), &["info", "x.dat"]).exited(status).said();
        let words = "more than 1024 sections of options: the others are not read";
        assert_eq!(said.contains(words), status == 3, "{said}");
        assert!(said.contains("5 events"), "{said}");
    }
}

#[test]
fn what_a_file_may_unpack_to_has_one_limit_that_the_error_names() {
    let dir = support::tempdir();
    let dir = dir.path();
    let text = "# tracer: nop\n#\n".to_owned() + &" a-1 [000] 1.5: tracing_mark_write: E|1\n".repeat(50_000);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(text.as_bytes()).unwrap();
    fs::write(dir.join("x.txt.gz"), gzip.finish().unwrap()).unwrap();
    fs::write(dir.join("x.txt.zst"), zstd::encode_all(text.as_bytes(), 19).unwrap()).unwrap();
    for file in ["x.txt.gz", "x.txt.zst"] {
        let said = run_in(dir, &["info", "--max-memory", "64K", file]).exited(1).said();
        assert!(said.contains("unpacks to more than 65536 bytes") && said.contains("--max-memory"), "{said}");
        let said = run_in(dir, &["convert", "--max-memory", "64k", file, "-o", "x.json"]).exited(1).said();
        assert!(said.contains("--max-memory") && said.contains(file), "{said}");
        assert!(!dir.join("x.json").exists());
        run_in(dir, &["info", "--max-memory", "4M", file]).exited(0);
    }
    // The sections of a trace.dat share one budget with each other.
    fs::write(dir.join("x.dat"), dat("\"a=%d\", REC->a", 1 << 20, 1)).unwrap();
    let said = run_in(dir, &["info", "--max-memory", "256K", "x.dat"]).exited(3).said();
    assert!(said.contains("more than 262144 bytes"), "{said}");
    // Text in zlib, as atrace -z writes it, is read up to the limit.
    let mut zlib = ZlibEncoder::new(b"TRACE:\n".to_vec(), Compression::best());
    zlib.write_all(text.as_bytes()).unwrap();
    fs::write(dir.join("z.txt"), zlib.finish().unwrap()).unwrap();
    let said = run_in(dir, &["info", "--max-memory", "64K", "z.txt"]).exited(3).said();
    assert!(said.contains("--max-memory"), "{said}");
    run_in(dir, &["info", "--max-memory", "many", "z.txt"]).exited(2);
}

#[test]
fn an_output_that_is_kept_in_memory_has_a_limit_that_names_what_to_cut() {
    let dir = support::tempdir();
    let dir = dir.path();
    let line = |n: usize| format!(" a-1 [000] .... {n}.5: tracing_mark_write: I|1|x\n");
    let text: String = (1..=2_000).map(line).collect();
    fs::write(dir.join("x.txt"), format!("# tracer: nop\n#\n{text}")).unwrap();
    for output in ["x.html", "x.systrace.html", "x.firefox.json"] {
        let said = run_in(dir, &["convert", "x.txt", "--max-memory", "16K", "-o", output]).exited(1).said();
        for word in ["take more than 16384 bytes", "--from TIME and --to TIME", "--max-memory"] {
            assert!(said.contains(word), "{output}: {said}");
        }
        assert!(!dir.join(output).exists());
        let part = ["convert", "x.txt", "--max-memory", "16K", "--to", "100s", "-o", output];
        run_in(dir, &part).exited(0);
        run_in(dir, &["convert", "x.txt", "--max-memory", "1M", "-o", output]).exited(0);
    }
    for output in ["x.txt.dat", "y.txt", "x.csv", "x.json", "x.pftrace", "x.parquet"] {
        run_in(dir, &["convert", "x.txt", "--max-memory", "16K", "-o", output]).exited(0);
    }
}

/// A method trace whose one method calls itself `depth` times; `name` names it.
fn recursion(depth: u32, name: &str) -> Vec<u8> {
    let text = "*version\n2\nclock=wall\n*threads\n1\tmain\n*methods\n";
    let text = format!("{text}0x4\ta.B\t{name}\t()V\tB.java\n*end\nSLOW\x02\0\x20\0");
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(&[0; 24]);
    for n in 0..2 * depth {
        bytes.extend_from_slice(&1u16.to_le_bytes());
        bytes.extend_from_slice(&(4 | u32::from(n >= depth)).to_le_bytes());
        bytes.extend_from_slice(&n.to_le_bytes());
    }
    bytes
}

#[test]
fn every_output_of_a_recursion_100000_deep_is_written() {
    let dir = support::tempdir();
    let dir = dir.path();
    fs::write(dir.join("deep.trace"), recursion(100_000, "f")).unwrap();
    for (args, note) in [
        (&["profile", "deep.trace", "--folded", "o"][..], "levels of calls"),
        (&["profile", "deep.trace", "--bottom-up"], ""),
        (&["profile", "deep.trace", "--tree", "--json"], ""),
        (&["profile", "deep.trace", "--speedscope", "o"], ""),
        (&["profile", "deep.trace", "--firefox", "o"], ""),
        (&["dmtracedump", "deep.trace"], ""),
        (&["convert", "deep.trace", "-o", "o.firefox.json"], ""),
    ] {
        let ran = run_in(dir, args);
        assert_eq!(ran.code(), Some(0), "{args:?}: {ran}");
        assert!(ran.said().contains(note), "{args:?}: {ran}");
    }
    for (depth, note) in [(2_000, ""), (2_005, "the innermost 2000 levels of calls alone of 5 deeper paths")]
    {
        fs::write(dir.join("deep.trace"), recursion(depth, "f")).unwrap();
        let said = run_in(dir, &["profile", "deep.trace", "--pprof", "o"]).exited(0).said();
        assert!(said.contains(note) && (!note.is_empty() || !said.contains("levels")), "{depth}: {said}");
    }
    fs::write(dir.join("deep.trace"), recursion(70_000, "f")).unwrap();
    let said = run_in(dir, &["dmtracedump", "-o", "deep.trace"]).exited(0).said();
    assert!(said.contains("(70002) a.B.f ()V"));
}

#[test]
fn control_characters_of_names_do_not_reach_the_terminal() {
    let dir = support::tempdir();
    let dir = dir.path();
    let evil = "f\x1b]0;owned\x07\u{9b}2J\u{202e}";
    fs::write(dir.join("x.trace"), recursion(3, evil)).unwrap();
    let text = "# tracer: nop\n#\n \x1b[2Jcomm-1 (1) [000] 1.5: tracing_mark_write: B|1|\x1b[31m\n\
        what\x1b[31m is this\n";
    fs::write(dir.join("\x1b[31mx.txt"), text).unwrap();
    for args in [
        &["profile", "x.trace"][..],
        &["profile", "x.trace", "--tree"],
        &["info", "x.trace"],
        &["info", "\x1b[31mx.txt"],
        &["info", "\x1b[31mgone"],
        &["convert", "\x1b[31mx.txt", "-o", "\x1b[31mo.json"],
        &["convert", "\x1b[31mgone", "-o", "o.json"],
    ] {
        let said = run_in(dir, args).said();
        let is_raw = |c: char| c != '\n' && c != '\t' && (c.is_control() || c == '\u{202e}');
        assert!(!said.is_empty() && !said.contains(is_raw), "{args:?}: {said:?}");
    }
    let folded = run_in(dir, &["profile", "x.trace", "--flamegraph", "-"]).said();
    assert!(!folded.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t')), "{folded:?}");
}

/// The time that processors spend on `info x.txt` in `dir`, ms. Other work on the machine does not count.
fn processor_time_of_info(dir: &Path) -> f64 {
    let timed = r#"TIMEFORMAT='%U'; time "$0" info x.txt"#;
    let ran = Command::new("bash").current_dir(dir).args(["-c", timed]).arg(binary()).run().exited(0);
    assert!(ran.stdout.contains("190000"), "{ran}");
    ran.stderr.trim().parse::<f64>().unwrap_or_else(|error| panic!("{error}: {ran}")) * 1e3
}

#[test]
fn many_shapes_of_one_event_are_told_apart_without_comparing_each_with_each() {
    let dir = support::tempdir();
    let write = |shapes: u32| {
        let line = |n: u32| format!(" a-1 [000] 1.{n:06}: custom: key{}=1 b=2\n", n % shapes);
        let text = "# tracer: nop\n#\n".to_owned() + &(0..190_000).map(line).collect::<String>();
        fs::write(dir.path().join("x.txt"), text).unwrap();
    };
    write(1);
    let one = processor_time_of_info(dir.path());
    write(19_000);
    let many = processor_time_of_info(dir.path());
    // Comparing each event with each shape took more than a hundred times as long as one shape.
    assert!(many < 30.0 * one.max(1.0), "{many} ms for 19,000 shapes, {one} ms for one");
}

#[test]
fn lost_events_that_do_not_fit_a_counter_stay_at_its_end() {
    let dir = support::tempdir();
    let text = "# tracer: nop\n#\nCPU:0 [LOST 18446744073709551615 EVENTS]\nCPU:0 [LOST 1 EVENTS]\n\
        \x20a-1 [000] 1.5: tracing_mark_write: E|1\n";
    fs::write(dir.path().join("x.txt"), text).unwrap();
    let said = run_in(dir.path(), &["info", "x.txt"]).exited(3).said();
    assert!(said.contains("18446744073709551615"), "{said}");
}
