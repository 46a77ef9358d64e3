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
fn a_mapping_of_classes_without_members_restores_the_classes() {
    let dir = support::tempdir();
    let path = |name: &str| dir.path().join(name);
    std::fs::write(path("in.txt"), TEXT.replace("a.b", "a.c")).unwrap();
    // R8 writes the classes of which it has kept and renamed no member, too.
    let classes = (0..80).map(|n| format!("com.example.Kept{n} -> a.k{n}:\n")).collect::<String>();
    let text = format!("# compiler: R8\n{classes}com.example.Empty -> a.c:\n");
    std::fs::write(path("mapping.txt"), text).unwrap();
    let line = "convert in.txt --mapping mapping.txt -o o.csv";
    support::run_line(dir.path(), line).exited(0);
    let written = std::fs::read_to_string(path("o.csv")).unwrap();
    assert!(written.contains("inflate com.example.Empty"), "{written}");
    // An arrow and a colon do not make a mapping of a text.
    std::fs::write(path("mapping.txt"), "how it goes -> like this:\n").unwrap();
    let said = support::run_line(dir.path(), line).exited(1).stderr;
    assert!(said.contains("mapping.txt: no mapping file"), "{said}");
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
