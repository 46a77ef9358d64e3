//! Samples as an input: profiles of Firefox and folded stacks are read and profiled, symbols are found in
//! programs by their build ids, and damage is told.

use std::fs;
use std::path::Path;

use support::perf_writer::perf_data_with_added_counter;
use support::{Command, Ran, run_in, run_line, tempdir};

/// Two lines of a thread, and one of another.
const FOLDED: &str = "main;run;read 30\nmain;run;parse 10\nRenderThread;draw 5\n";

#[test]
fn folded_stacks_are_told_and_profiled() {
    let dir = support::tempdir();
    fs::write(dir.path().join("a.folded"), FOLDED).unwrap();
    let info = run_in(dir.path(), &["info", "--json", "a.folded"]).exited(0).json();
    assert_eq!((&info["format"], &info["samples"]["count"]), (&"folded stacks".into(), &3.into()));
    let profile = run_in(dir.path(), &["profile", "--json", "--sort", "incl", "a.folded"]).exited(0).json();
    let rows = profile["rows"].as_array().unwrap().iter();
    let rows: Vec<(&str, u64, u64)> = rows
        .map(|row| {
            let number = |key: &str| row[key].as_u64().unwrap();
            (row["name"].as_str().unwrap(), number("weight_exclusive"), number("weight_inclusive"))
        })
        .collect();
    assert_eq!(rows, [("run", 0, 40), ("read", 30, 30), ("parse", 10, 10), ("draw", 5, 5)]);
    let cut = run_in(dir.path(), &["profile", "a.folded", "--folded", "-"]).exited(0);
    assert_eq!(cut.stdout.lines().count(), 3, "{cut}");
}

#[test]
fn a_damaged_file_of_samples_is_read_in_part_and_says_so() {
    let dir = support::tempdir();
    fs::write(dir.path().join("bad.folded"), format!("{FOLDED}no number here\n")).unwrap();
    let ran = run_in(dir.path(), &["profile", "bad.folded"]).exited(1);
    assert!(ran.stderr.contains("text of an unknown kind"), "{ran}");
    let far = FOLDED.repeat(2_000);
    fs::write(dir.path().join("far.folded"), format!("{far}no number here\n")).unwrap();
    let ran = run_in(dir.path(), &["profile", "far.folded"]).exited(3);
    assert!(ran.stderr.contains(&format!("damaged at offset {}", far.len())), "{ran}");
    let firefox = run_in(dir.path(), &["profile", "far.folded", "--firefox", "x.json"]);
    firefox.exited(3);
    let whole = fs::read(dir.path().join("x.json")).unwrap();
    fs::write(dir.path().join("cut.json"), &whole[..whole.len() - 40]).unwrap();
    let ran = run_in(dir.path(), &["info", "cut.json"]).exited(3);
    assert!(ran.stdout.contains("damage at byte") && ran.stdout.contains("cut"), "{ran}");
}

/// A program whose function `outer` has `inlined` in it, which loops.
const PROGRAM: &str = "static inline __attribute__((always_inline)) int inlined(volatile int *n) {\n\
    int sum = 0;\n    while (*n > 0) { sum += *n; --*n; }\n    return sum;\n}\n\
    __attribute__((noinline)) int outer(volatile int *n) { return inlined(n) + 1; }\n\
    int main(void) { volatile int n = 7; return outer(&n) != 29; }\n";

/// Compiles [`PROGRAM`] to `name`, with `id` as its build id.
fn compile(dir: &Path, name: &str, id: &str) {
    fs::write(dir.join("program.c"), PROGRAM).unwrap();
    let id = format!("-Wl,--build-id=0x{id}");
    Command::new("cc").current_dir(dir).args(["-g", "-O1", &id, "program.c", "-o", name]).run().exited(0);
}

/// The start and the size of the function `outer`.
fn outer(dir: &Path, name: &str) -> (u64, u64) {
    let listed = Command::new("nm").current_dir(dir).args(["-S", name]).run().exited(0).stdout;
    let line = listed.lines().find(|line| line.ends_with(" outer")).expect("the function has a symbol");
    let mut words = line.split(' ').map(|word| u64::from_str_radix(word, 16).unwrap());
    (words.next().unwrap(), words.next().unwrap())
}

/// A profile with a sample at each of these addresses of a library with this build id.
fn firefox_profile(addresses: &[u64], id: &str) -> String {
    let count = addresses.len();
    let numbers = |from: Vec<u64>| from.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    let each = numbers((0..count as u64).collect());
    let zeros = numbers(vec![0; count]);
    let nulls = vec!["null"; count].join(",");
    let strings: Vec<String> = addresses.iter().map(|address| format!("\"0x{address:x}\"")).collect();
    format!(
        r#"{{"meta":{{"preprocessedProfileVersion":55,"version":24,"interval":1}},
        "libs":[{{"name":"program","path":"/data/app/program","codeId":"{id}"}}],
        "threads":[{{"name":"main","pid":"1","tid":1,"samples":{{"stack":[{each}],"time":[{each}]}},
        "stackTable":{{"frame":[{each}],"prefix":[{nulls}]}},
        "frameTable":{{"func":[{each}],"address":[{}]}},"funcTable":{{"name":[{each}],"resource":[{zeros}]}},
        "resourceTable":{{"lib":[0]}},"stringArray":[{}]}}]}}"#,
        numbers(addresses.to_vec()),
        strings.join(","),
    )
}

fn folded(dir: &Path, args: &[&str]) -> Ran {
    let args: Vec<&str> =
        ["profile", "x.json", "--folded", "-"].into_iter().chain(args.iter().copied()).collect();
    run_in(dir, &args).exited(0)
}

#[test]
#[cfg(target_os = "linux")]
fn functions_get_the_names_of_a_program_with_the_same_build_id_and_those_inlined() {
    const ID: &str = "00112233445566778899aabbccddeeff00112233";
    let dir = support::tempdir();
    let symbols = dir.path().join("symbols/data/app");
    fs::create_dir_all(&symbols).unwrap();
    compile(dir.path(), "program", ID);
    fs::rename(dir.path().join("program"), symbols.join("renamed")).unwrap();
    let (start, size) = outer(&symbols, "renamed");
    let addresses: Vec<u64> = (start..start + size).collect();
    fs::write(dir.path().join("x.json"), firefox_profile(&addresses, ID)).unwrap();

    let before = folded(dir.path(), &[]);
    assert!(before.stdout.contains(&format!("program+0x{start:x} 1")), "{before}");
    let after = folded(dir.path(), &["--symbols", "symbols"]);
    assert!(!after.stdout.contains("+0x"), "{after}");
    assert!(after.stdout.contains("main;outer;inlined "), "{after}");
    let total: u64 =
        after.stdout.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(total, size, "every sample is still there");
    let said = "0.0 % of the samples lie in a function without a symbol, without --symbols 100.0 %";
    assert!(after.stderr.contains(said), "{after}");

    // Of a file without debugging information the symbols are left, and nothing of a stripped one.
    for (option, expected) in [("--strip-debug", "main;outer "), ("--strip-all", "main;program+0x")] {
        let file = symbols.join("renamed");
        Command::new("strip").arg(option).arg(&file).run().exited(0);
        let ran = folded(dir.path(), &["--symbols", file.to_str().unwrap()]);
        assert!(ran.stdout.lines().all(|line| line.starts_with(expected)), "{option}: {ran}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_program_of_the_same_name_with_another_build_id_is_not_used_and_that_is_said() {
    let dir = support::tempdir();
    fs::create_dir(dir.path().join("symbols")).unwrap();
    compile(&dir.path().join("symbols"), "program", "0102");
    let (start, _) = outer(&dir.path().join("symbols"), "program");
    let profile = |id: &str| fs::write(dir.path().join("x.json"), firefox_profile(&[start], id)).unwrap();
    profile("0304");
    let other = folded(dir.path(), &["--symbols", "symbols"]);
    assert!(other.stdout.contains("program+0x"), "{other}");
    assert!(other.stderr.contains("1 files (program) have another build id in the recording"), "{other}");
    profile("");
    let by_name = folded(dir.path(), &["--symbols", "symbols"]);
    assert!(by_name.stdout.contains("main;outer"), "{by_name}");
    assert!(by_name.stderr.contains("1 files (program) have no build id in the recording"), "{by_name}");
}

#[test]
fn symbols_that_cannot_be_used_are_an_error() {
    let dir = support::tempdir();
    fs::write(dir.path().join("a.folded"), FOLDED).unwrap();
    fs::create_dir(dir.path().join("empty")).unwrap();
    let ran = run_in(dir.path(), &["profile", "a.folded", "--symbols", "empty"]).exited(1);
    assert!(ran.stderr.contains("none of the files there is an ELF file"), "{ran}");
    let ran = run_in(dir.path(), &["profile", "a.folded", "--symbols", "missing"]).exited(1);
    assert!(ran.stderr.contains("--symbols missing: "), "{ran}");
}

#[test]
fn an_added_counter_of_simpleperf_counts_with_the_samples_of_the_other_event_type() {
    let dir = tempdir();
    let data = perf_data_with_added_counter(&[(1_000, 700), (2_000, 700), (3_000, 1_500)]);
    fs::write(dir.path().join("perf.data"), data).unwrap();
    let info = run_line(dir.path(), "info perf.data").exited(0).stdout;
    assert!(info.contains("3 samples: cpu-cycles, 1000 a second; 15000 events\n"), "{info}");
    assert!(info.contains("2 samples: instructions; 1500 events\n"), "{info}");
}
