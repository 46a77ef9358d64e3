//! Files as people have them: bug reports, archives, pointers, files of other tools, compressed files and
//! pipes.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use serde_json::Value;
use support::files::gzip;
use support::scenario::{Era, Scenario};
use support::{Command, Ran, run_in, tracebridge};

/// Runs the product in `dir`. Returns its exit status, and what it prints on both outputs.
fn run(dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let ran = run_in(dir, arguments);
    (ran.code(), ran.said())
}

/// A bug report: a method trace packed with gzip in a directory, a heap dump, a text that is no trace.
fn bug_report(dir: &Path) -> Vec<(&'static str, Vec<u8>)> {
    let trace = Scenario::new(14, Era::ArtMono).make().trace;
    let files = vec![
        ("FS/data/app.trace.gz", gzip(&trace)),
        ("memory.hprof", b"JAVA PROFILE 1.0.3\0".to_vec()),
        ("version.txt", b"1.0\n".to_vec()),
    ];
    for (name, bytes) in &files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    files
}

#[test]
fn info_lists_the_traces_in_a_directory_and_in_a_zip() {
    let dir = support::tempdir();
    let files = bug_report(&dir.path().join("bug"));
    let mut zip = zip::ZipWriter::new(fs::File::create(dir.path().join("bug.zip")).unwrap());
    for (name, bytes) in &files {
        let options = zip::write::SimpleFileOptions::default();
        let method = [zip::CompressionMethod::Deflated, zip::CompressionMethod::Stored];
        let packed = options.compression_method(method[usize::from(name.ends_with("gz"))]);
        zip.start_file(*name, packed).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap();
    for (path, container) in [("bug", "directory"), ("bug.zip", "zip archive")] {
        let (status, said) = run(dir.path(), &["info", "--json", path]);
        let found: Value = serde_json::from_str(&said).unwrap();
        assert_eq!((status, &found["container"], &found["files"]), (Some(0), &container.into(), &3.into()));
        let traces = found["traces"].as_array().unwrap();
        let row = |n: usize| {
            (
                traces[n]["path"].as_str().unwrap(),
                traces[n]["format"].as_str().unwrap(),
                &traces[n]["is_read"],
            )
        };
        assert_eq!(row(0), ("FS/data/app.trace.gz", "method trace", &true.into()));
        assert_eq!(row(1), ("memory.hprof", "a heap dump (hprof)", &false.into()));
        assert_eq!(traces.len(), 2);
        let (_, said) = run(dir.path(), &["info", path]);
        assert!(
            said.contains("3 files searched, 2 traces") && said.contains("not read here: open it"),
            "{said}"
        );
        for command in [&["convert", "-o", "x.csv"][..], &["profile"], &["dmtracedump"]] {
            let (status, said) = run(dir.path(), &[command, &[path]].concat());
            assert_eq!(status, Some(1));
            assert!(said.contains("`tracebridge info") && said.contains("lists the traces in it"), "{said}");
        }
    }
    fs::create_dir(dir.path().join("empty")).unwrap();
    let (status, said) = run(dir.path(), &["info", "empty"]);
    assert_eq!((status, said.as_str()), (Some(1), "empty: directory, 0 files searched, 0 traces\n"));
}

#[cfg(unix)]
#[test]
fn a_pipe_is_read_from_its_first_byte() {
    let dir = support::tempdir();
    fs::write(dir.path().join("app.trace"), Scenario::new(14, Era::ArtMono).make().trace).unwrap();
    let line = "exec 3< <(cat app.trace); \"$0\" info /dev/fd/3";
    let mut bash = Command::new("bash");
    let said = bash.current_dir(dir.path()).args(["-c", line]).arg(support::binary()).run().said();
    assert!(said.contains("format: method trace v3"), "{said}");
}

#[test]
fn a_damaged_zip_is_named_and_causes_no_panic() {
    let dir = support::tempdir();
    for bytes in [&b"PK\x03\x04"[..], b"PK\x03\x04 and then nothing that a zip has"] {
        fs::write(dir.path().join("cut.zip"), bytes).unwrap();
        let (status, said) = run(dir.path(), &["info", "cut.zip"]);
        assert_eq!(status, Some(1));
        assert!(said.starts_with("tracebridge: cut.zip: ") && said.contains("zip archive"), "{said}");
    }
}

#[test]
fn files_of_other_tools_are_named_by_every_command_in_the_same_words() {
    let dir = support::tempdir();
    let tar = [&[b'a'; 257][..], b"ustar\x0000", &[0; 247]].concat();
    let files: [(&str, &[u8], &str); 6] = [
        (
            "a.json",
            b"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"}",
            "this is a profile of speedscope; it is not read here: ",
        ),
        ("perf.txt", b"sh 12 [000] 1.500000: 250000 cpu-clock: \n\tff x (y)\n", "the text of perf script"),
        ("graph.txt", b"# tracer: function_graph\n#\n 0)   0.5 us    |  f();\n", "funcgraph-abstime"),
        ("memory.hprof", b"JAVA PROFILE 1.0.3\0", "this is a heap dump (hprof); it is not read here: "),
        (
            "app.trace",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n",
            "`git lfs pull`",
        ),
        ("bug.tar", &tar, "the tar archive is cut or damaged: not one file in it can be read"),
    ];
    for (name, bytes, part) in files {
        fs::write(dir.path().join(name), bytes).unwrap();
        let (status, by_info) = run(dir.path(), &["info", name]);
        assert_eq!(status, Some(1));
        assert!(by_info.contains(part) && by_info.lines().count() == 1, "{by_info}");
        for command in
            [&["convert", "-o", "x.csv"][..], &["merge", "-o", "x.csv"], &["profile"], &["dmtracedump"]]
        {
            let said = run(dir.path(), &[command, &[name]].concat());
            assert_eq!(said, (Some(1), by_info.clone()), "{command:?}");
        }
    }
}

#[test]
fn an_output_that_would_hold_nothing_is_refused_in_every_format() {
    let dir = support::tempdir();
    fs::write(dir.path().join("empty.json"), "{\"traceEvents\":[]}").unwrap();
    fs::write(dir.path().join("empty.txt"), "# tracer: nop\n#\n").unwrap();
    for name in ["empty.json", "empty.txt"] {
        for ending in ["pftrace", "json", "txt", "dat", "html", "csv", "systrace.html"] {
            let output = format!("out.{ending}");
            let (status, said) = run(dir.path(), &["convert", name, "-o", &output]);
            assert_eq!(status, Some(1), "{output}: {said}");
            assert!(said.contains("could be read: nothing is written"), "{output}: {said}");
            assert!(!dir.path().join(&output).exists(), "{output}");
        }
    }
}

#[test]
fn a_text_of_powershell_is_read() {
    let dir = support::tempdir();
    let text = "# tracer: nop\n a-7 [000] d..1 1.5: tracing_mark_write: B|7|größer\n a-7 [000] d..1 1.6: tracing_mark_write: E|7\n";
    let bytes: Vec<u8> =
        std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    fs::write(dir.path().join("a.txt"), bytes).unwrap();
    fs::write(dir.path().join("b.txt"), text).unwrap();
    for name in ["a", "b"] {
        let (status, said) =
            run(dir.path(), &["convert", &format!("{name}.txt"), "-o", &format!("{name}.csv")]);
        assert_eq!(status, Some(0), "{said}");
    }
    let csv = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    assert!(csv("a.csv").contains("größer"));
    assert_eq!(csv("a.csv"), csv("b.csv"));
}

#[test]
fn a_recording_is_named_where_a_method_trace_is_expected() {
    let dir = support::tempdir();
    fs::write(dir.path().join("a.txt"), " a-7 (    7) [000] d..1 1.5: tracing_mark_write: I|7|x\n").unwrap();
    for command in ["profile", "dmtracedump"] {
        let (status, said) = run(dir.path(), &[command, "a.txt"]);
        assert_eq!(status, Some(1));
        assert!(
            said.contains("a.txt: this is a file of the format ftrace text, which holds no method calls"),
            "{said}"
        );
    }
}

#[test]
fn an_error_of_the_system_is_printed_once() {
    let dir = support::tempdir();
    for command in [&["info"][..], &["convert", "-o", "x.csv"], &["profile"], &["dmtracedump"]] {
        let (status, said) = run(dir.path(), &[command, &["missing"]].concat());
        assert_eq!(
            (status, said.as_str()),
            (Some(1), "tracebridge: missing: No such file or directory (os error 2)\n")
        );
    }
}

#[test]
fn a_file_in_a_commands_place_is_answered_with_what_one_probably_wants() {
    let dir = support::tempdir();
    let made = Scenario::new(3, Era::ArtMono).make();
    std::fs::write(dir.path().join("app.trace"), &made.trace).unwrap();
    std::fs::write(dir.path().join("app.dat"), &made.dat).unwrap();
    for (file, command) in
        [("app.trace", "tracebridge profile app.trace"), ("app.dat", "tracebridge merge app.dat")]
    {
        let said = run_in(dir.path(), &[file]).exited(2).stderr;
        assert!(said.contains(command), "{said}");
    }
    let ran = run_in(dir.path(), &["app.txt"]).exited(2);
    assert!(!ran.stderr.contains("Perhaps"), "{ran}");
}

/// Writes one file `in.ENDING` of each input format. Returns the endings.
fn write_inputs(dir: &Path) -> Vec<&'static str> {
    let made = Scenario { threads: 2, length: 100_000_000, ..Scenario::new(51, Era::ArtMono) }.make();
    fs::write(dir.join("in.dat"), &made.dat).unwrap();
    fs::write(dir.join("in.trace"), &made.trace).unwrap();
    for ending in ["txt", "systrace.html", "pftrace"] {
        run_in(dir, &["convert", "in.dat", "-o", &format!("in.{ending}")]).exited(0);
    }
    vec!["dat", "txt", "systrace.html", "pftrace", "trace"]
}

/// A way to pass an input.
#[derive(Debug)]
struct InputWay {
    argument: String,
    /// The file for standard input, where the argument is `-`.
    stdin: Option<String>,
}

impl InputWay {
    fn file(name: &str) -> InputWay {
        InputWay { argument: name.to_owned(), stdin: None }
    }

    fn pipe(name: &str) -> InputWay {
        InputWay { argument: "-".to_owned(), stdin: Some(name.to_owned()) }
    }
}

/// Every way to pass the input `in.ENDING`.
fn ways(dir: &Path, ending: &str) -> Vec<InputWay> {
    let plain = format!("in.{ending}");
    let bytes = fs::read(dir.join(&plain)).unwrap();
    let gzipped = format!("{plain}.gz");
    fs::write(dir.join(&gzipped), gzip(&bytes)).unwrap();
    let zstd = format!("{plain}.zst");
    fs::write(dir.join(&zstd), zstd::encode_all(&bytes[..], 1).unwrap()).unwrap();
    let files = [&gzipped, &zstd, &plain].map(|name| InputWay::file(name));
    let pipes = [&plain, &gzipped, &zstd].map(|name| InputWay::pipe(name));
    files.into_iter().chain(pipes).collect()
}

fn run_with(dir: &Path, args: &[&str], input: &InputWay) -> Ran {
    let mut command = tracebridge();
    command.current_dir(dir).args(args).arg(&input.argument);
    if let Some(file) = &input.stdin {
        command.stdin(File::open(dir.join(file)).unwrap());
    }
    command.run().exited(0)
}

#[test]
fn compressed_and_piped_inputs_give_the_same_output_as_plain_ones() {
    let dir = support::tempdir();
    let dir = dir.path();
    for ending in write_inputs(dir) {
        let plain = InputWay::file(&format!("in.{ending}"));
        let events = |ran: &Ran| {
            let said = ran.json();
            let about = &said["outcome"]["inputs"][0];
            (about["events"].as_u64().unwrap(), about["method_edges"].as_u64().unwrap())
        };
        let args: &[&str] = &["convert", "--json", "-o", "out.json"];
        let want = events(&run_with(dir, args, &plain));
        // The metadata behind the events holds the name of the input, so it is left out.
        let written = || {
            let all = fs::read_to_string(dir.join("out.json")).unwrap();
            all.split("\"metadata\"").next().unwrap_or_default().to_owned()
        };
        let plainly = written();
        assert!(want.0 + want.1 > 100, "{ending}: {want:?}");
        let info = |input: &InputWay| run_with(dir, &["info", "--json"], input).json()["format"].clone();
        let format = info(&plain);
        assert!(format.is_string(), "{ending}");
        for way in ways(dir, ending) {
            assert_eq!(events(&run_with(dir, args, &way)), want, "{way:?}");
            assert!(written() == plainly, "{way:?}");
            assert_eq!(info(&way), format, "{way:?}");
            if ending == "trace" {
                let profile = run_with(dir, &["profile"], &way).stdout;
                assert_eq!(profile, run_with(dir, &["profile"], &plain).stdout, "{way:?}");
            }
        }
    }
}
