//! `--mapping` puts the original names of classes and methods into every output format.

const TEXT: &str = " app-7 (7) [000] ...1 1.000010: tracing_mark_write: B|7|inflate a.b\n \
                    app-7 (7) [000] ...1 1.000020: tracing_mark_write: E|7\n";
const MAPPING: &str = "com.example.Main -> a.b:\n    void onCreate(int) -> a\n";

#[test]
fn markers_get_their_names_back_in_every_format() {
    let dir = support::tempdir();
    let path = |name: &str| dir.path().join(name);
    std::fs::write(path("in.txt"), TEXT).unwrap();
    std::fs::write(path("mapping.txt"), MAPPING).unwrap();
    for out in
        ["o.csv", "o.json", "o.txt", "o.systrace.html", "o.html", "o.pftrace", "o.dat", "o.firefox.json"]
    {
        let mut command = support::tracebridge();
        command.arg("convert").arg(path("in.txt")).arg("--mapping").arg(path("mapping.txt"));
        let done = command.arg("-o").arg(path(out)).run();
        assert!(done.status.success(), "{out}: {}", done.stderr);
        let mut written = std::fs::read(path(out)).unwrap();
        if out == "o.html" {
            // The report page packs its names.
            written = support::report_page::Page::read(&path(out)).strings.concat().into_bytes();
        }
        let holds = |what: &[u8]| written.windows(what.len()).any(|w| w == what);
        assert!(holds(b"inflate com.example.Main") && !holds(b"inflate a.b"), "{out}");
    }
}

#[test]
fn a_perfetto_trace_that_passes_through_gets_its_names_back() {
    let dir = support::tempdir();
    let path = |name: &str| dir.path().join(name);
    std::fs::write(path("in.txt"), TEXT).unwrap();
    std::fs::write(path("mapping.txt"), MAPPING).unwrap();
    let convert = |from: &str, to: &str, mapping: bool| {
        let mut command = support::tracebridge();
        command.arg("convert").arg(path(from)).arg("-o").arg(path(to));
        if mapping {
            command.arg("--mapping").arg(path("mapping.txt"));
        }
        command.run().exited(0);
        std::fs::read(path(to)).unwrap()
    };
    convert("in.txt", "obfuscated.pftrace", false);
    let passed = convert("obfuscated.pftrace", "original.pftrace", true);
    let holds = |what: &[u8]| passed.windows(what.len()).any(|w| w == what);
    assert!(holds(b"inflate com.example.Main") && !holds(b"inflate a.b"));
    // What a reader makes of the markers differs in the names alone.
    let slices = |csv: Vec<u8>| -> Vec<String> {
        let text = String::from_utf8(csv).unwrap();
        text.lines().filter(|line| line.starts_with("slice,")).map(str::to_owned).collect()
    };
    let direct = slices(convert("in.txt", "direct.csv", true));
    assert_eq!((slices(convert("original.pftrace", "through.csv", false)), direct.len()), (direct, 1));
}

#[test]
fn the_error_for_a_file_without_mappings_names_the_file() {
    let dir = support::tempdir();
    let path = |name: &str| dir.path().join(name);
    std::fs::write(path("in.txt"), TEXT).unwrap();
    let mut command = support::tracebridge();
    command.arg("convert").arg(path("in.txt")).arg("--mapping").arg(path("in.txt"));
    let done = command.arg("-o").arg(path("o.csv")).run().exited(1);
    let messages = &done.stderr;
    assert!(messages.contains("in.txt") && messages.contains("mapping"), "{messages}");
    assert!(!path("o.csv").exists());
}
