//! An output appears under its name when it is complete, or not at all: after errors, full disks, signals,
//! and inputs that change meanwhile. No output replaces an input.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sys::signal::Signal;
use nix::unistd::mkfifo;

use support::art_generate::{self, Size};
use support::files::SmallDisk;
use support::processes::{runs, sleeps};
use support::scenario::{Era, Scenario};
use support::{
    Child, Command, Ran, has_program, rounds, run_in, skip, tracebridge, until, within_limit, write_program,
};

const OLD: &[u8] = b"an older file";

/// Writes `app.dat` and `app.trace`, two small files of the same moments.
fn small_inputs(dir: &Path) {
    let made = Scenario::new(12, Era::ArtMono).make();
    fs::write(dir.join("app.dat"), made.dat).unwrap();
    fs::write(dir.join("app.trace"), made.trace).unwrap();
}

/// Writes `big.trace`, 14 MB, whose conversion takes a while.
fn big_input(dir: &Path) -> PathBuf {
    let mut bytes = Vec::new();
    let size = Size { records: 1_000_000, threads: 8, methods: 5_000, depth: 60 };
    art_generate::write(&mut bytes, size).unwrap();
    fs::write(dir.join("big.trace"), bytes).unwrap();
    dir.join("big.trace")
}

fn start(dir: &Path, arguments: &[&str]) -> Child {
    let mut command = tracebridge();
    command.current_dir(dir).args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The length of the unfinished output in `dir`, if there is one.
fn part_length(dir: &Path) -> Option<u64> {
    let part = names(dir).into_iter().find(|name| name.ends_with(".part"))?;
    fs::metadata(dir.join(part)).ok().map(|meta| meta.len())
}

/// Starts a command whose last argument is an output of `whole` bytes, and stops it when there is an
/// unfinished output of less than half of them. `None` if the command was too quick: it has ended.
fn stopped_in_the_middle(dir: &Path, arguments: &[&str], whole: u64) -> Option<Child> {
    fs::write(dir.join(arguments.last().unwrap()), OLD).unwrap();
    let mut child = start(dir, arguments);
    let mut has_ended = false;
    until("an unfinished output", || {
        has_ended = child.try_wait().unwrap().is_some();
        has_ended || part_length(dir).is_some()
    });
    if !has_ended {
        child.stop();
        if part_length(dir).is_some_and(|length| length < whole / 2) {
            return Some(child);
        }
        child.send(Signal::SIGCONT);
    }
    child.finish().exited(0);
    None
}

/// How often a test tries to stop a command in the middle, at most. Nearly every time it succeeds.
const MAX_ATTEMPTS: u32 = 100;

/// Opens a FIFO to write as soon as somebody opens it to read.
fn open_to_write(fifo: &Path) -> File {
    let fifo = fifo.to_owned();
    within_limit("a reader of the FIFO", move || File::options().write(true).open(fifo).unwrap())
}

/// Opens a FIFO to read as soon as somebody opens it to write.
fn open_to_read(fifo: &Path) -> File {
    let fifo = fifo.to_owned();
    within_limit("a writer to the FIFO", move || File::open(fifo).unwrap())
}

#[test]
fn a_signal_at_any_moment_leaves_the_old_output_or_the_complete_new_one() {
    const CONVERT: [&str; 4] = ["convert", "big.trace", "-o", "out.pftrace"];
    let dir = support::tempdir();
    big_input(dir.path());
    let out = dir.path().join("out.pftrace");
    run_in(dir.path(), &CONVERT).exited(0);
    let whole = fs::read(&out).unwrap();
    let check = |child: Child, signal: Signal| {
        child.send(signal);
        child.send(Signal::SIGCONT);
        let ran = child.finish();
        assert_eq!(names(dir.path()), ["big.trace", "out.pftrace"], "{signal}");
        let written = fs::read(&out).unwrap();
        match ran.status.signal() {
            // A signal may come between the last rename and the end of the process.
            Some(number) => assert!(number == signal as i32 && (written == OLD || written == whole)),
            None => assert!(ran.status.success() && written == whole),
        }
        ran.status.signal().is_some() && written == OLD
    };
    let times: usize = rounds(1, 3);
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let mut ended_in_the_middle = 0;
        for _ in 0..MAX_ATTEMPTS {
            if let Some(child) = stopped_in_the_middle(dir.path(), &CONVERT, whole.len() as u64) {
                ended_in_the_middle += usize::from(check(child, signal));
            }
            if ended_in_the_middle == times {
                break;
            }
        }
        assert_eq!(ended_in_the_middle, times, "{signal} in {MAX_ATTEMPTS} attempts");
        // Moments that nobody chose: the outcome may be either.
        let lengths = [whole.len() as u64 / 4, 0, whole.len() as u64 * 3 / 4];
        for &length in &lengths[..times] {
            fs::write(&out, OLD).unwrap();
            let mut child = start(dir.path(), &CONVERT);
            until("an output of some length", || {
                part_length(dir.path()).is_some_and(|part| part >= length)
                    || child.try_wait().unwrap().is_some()
            });
            if child.try_wait().unwrap().is_none() {
                check(child, signal);
            }
        }
    }
}

#[test]
fn after_sigkill_a_part_file_may_be_left_and_the_old_output_is_as_it_was() {
    const CONVERT: [&str; 4] = ["convert", "big.trace", "-o", "out.json"];
    let dir = support::tempdir();
    big_input(dir.path());
    run_in(dir.path(), &CONVERT).exited(0);
    let whole = fs::metadata(dir.path().join("out.json")).unwrap().len();
    let stopped = (0..MAX_ATTEMPTS).find_map(|_| stopped_in_the_middle(dir.path(), &CONVERT, whole));
    let mut child = stopped.expect("a command that is stopped in the middle");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(fs::read(dir.path().join("out.json")).unwrap(), OLD);
    let names = names(dir.path());
    let part = names.iter().find(|name| name.ends_with(".part")).unwrap();
    assert!(part.starts_with(".out.json."), "{part}");
}

/// Commands that write one file, whose name is the last argument; each output is larger than 8 KiB.
const WRITERS: [&[&str]; 8] = [
    &["convert", "app.dat", "-o", "out.csv"],
    &["convert", "app.dat", "-o", "out.txt.gz"],
    &["convert", "app.dat", "--format", "trace-dat", "-o", "out.dat"],
    &["merge", "app.dat", "app.trace", "-o", "out.zip"],
    &["merge", "app.dat", "app.trace", "-o", "out.pftrace"],
    &["profile", "app.trace", "--speedscope", "out.speedscope.json"],
    &["profile", "app.trace", "--firefox", "out.firefox.json"],
    &["profile", "app.trace", "--flamegraph", "out.svg"],
];

/// Checks that a command that had no room says so in one line that names the output, and leaves what was
/// there.
fn check_no_room(dir: &Path, output: &str, old: Option<&[u8]>, ran: &Ran, before: &[String]) {
    let said = &ran.stderr;
    assert_eq!(ran.code(), Some(1), "{output}: {said}");
    assert_eq!(said.lines().count(), 1, "{output}: {said}");
    assert!(said.contains(output), "{output}: {said}");
    assert_eq!(said.matches("os error").count(), 1, "{output}: {said}");
    assert_eq!(fs::read(dir.join(output)).ok().as_deref(), old, "{output}");
    assert_eq!(names(dir), before, "{output}");
}

#[test]
fn a_file_larger_than_the_limit_leaves_the_old_output() {
    let dir = support::tempdir();
    small_inputs(dir.path());
    for arguments in WRITERS {
        let output = arguments.last().unwrap();
        for old in [None, Some(OLD)] {
            let _ = fs::remove_file(dir.path().join(output));
            if let Some(old) = old {
                fs::write(dir.path().join(output), old).unwrap();
            }
            let before = names(dir.path());
            // The unit is 512 bytes.
            let limited = r#"ulimit -f 8; exec "$@""#;
            let ran = Command::new("sh")
                .current_dir(dir.path())
                .args(["-c", limited, "sh"])
                .arg(support::binary())
                .args(arguments)
                .run();
            if *output == "out.dat" {
                // The pages wait in a temporary file, whose size is limited too.
                assert_eq!((ran.code(), names(dir.path())), (Some(1), before));
                continue;
            }
            check_no_room(dir.path(), output, old, &ran, &before);
        }
    }
}

#[test]
fn a_full_disk_leaves_the_old_output_and_is_told_once() {
    let Some(disk) = SmallDisk::mount("64k") else { return };
    let inputs = support::tempdir();
    small_inputs(inputs.path());
    let dir = disk.path();
    for name in ["app.dat", "app.trace"] {
        symlink(inputs.path().join(name), dir.join(name)).unwrap();
    }
    for arguments in WRITERS {
        let output = *arguments.last().unwrap();
        fs::write(dir.join(output), OLD).unwrap();
        // Everything but one page is taken.
        let mut filler = File::create(dir.join("filler")).unwrap();
        while filler.write_all(&[1; 4096]).is_ok() {}
        filler.set_len(filler.metadata().unwrap().len() - 4096).unwrap();
        let before = names(dir);
        check_no_room(dir, output, Some(OLD), &run_in(dir, arguments), &before);
        fs::remove_file(dir.join(output)).unwrap();
    }
}

#[test]
fn a_full_standard_output_or_error_is_no_panic_and_hides_no_exit_status() {
    let dir = support::tempdir();
    small_inputs(dir.path());
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for arguments in [
        &["info", "app.dat"][..],
        &["profile", "app.trace"],
        &["profile", "app.trace", "--json"],
        &["dmtracedump", "app.trace"],
        &["convert", "app.dat", "--format", "csv", "-o", "-"],
        &["profile", "app.trace", "--folded", "/dev/stdout"],
        &["convert", "app.dat", "-o", "out.csv"],
    ] {
        let ran = tracebridge().current_dir(dir.path()).args(arguments).stdout(full()).run();
        let said = &ran.stderr;
        assert_eq!(ran.code(), Some(1), "{arguments:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
        let named = said.contains("standard output: No space") || said.contains("/dev/stdout: No space");
        assert!(named, "{arguments:?}: {said}");
    }
    // Standard error is full: the exit status is that of the work.
    for (arguments, status) in [
        (&["info", "missing"][..], 1),
        (&["convert", "app.dat", "--format", "csv", "-o", "-"], 0),
        (&["convert", "app.trace", "-o", "x.dat"], 1),
        (&["profile", "--nonsense"], 2),
    ] {
        let ran = tracebridge().current_dir(dir.path()).args(arguments).stderr(full()).run();
        assert_eq!(ran.code(), Some(status), "{arguments:?}");
    }
}

#[test]
fn a_reader_that_goes_away_hides_no_exit_status() {
    let dir = support::tempdir();
    small_inputs(dir.path());
    // trace.dat has no place for methods: the status is 3, whether the summary is read or not.
    for (arguments, status) in [
        (&["merge", "app.dat", "app.trace", "-o", "out.dat"][..], 3),
        (&["profile", "app.trace", "--json"], 0),
        (&["info", "app.dat"], 0),
        (&["convert", "app.dat", "--format", "csv", "-o", "-"], 0),
    ] {
        let (reader, writer) = nix::unistd::pipe().unwrap();
        drop(reader);
        let ran = tracebridge().current_dir(dir.path()).args(arguments).stdout(writer).run();
        assert_eq!((ran.code(), ran.stderr.as_str()), (Some(status), ""), "{arguments:?}");
    }
}

#[test]
fn no_output_replaces_an_input_by_any_name() {
    let dir = support::tempdir();
    small_inputs(dir.path());
    let path = |name: &str| dir.path().join(name);
    fs::write(path("mapping.txt"), "com.example.Name -> a.a:\n").unwrap();
    fs::write(path("before.trace"), fs::read(path("app.trace")).unwrap()).unwrap();
    fs::write(path("pair.key"), "*version\n").unwrap();
    fs::write(path("pair.data"), "records").unwrap();
    for name in ["app.dat", "app.trace", "mapping.txt"] {
        fs::hard_link(path(name), path(&format!("hard-{name}"))).unwrap();
        symlink(name, path(&format!("soft-{name}"))).unwrap();
    }
    fs::create_dir(path("sub")).unwrap();
    let before: Vec<_> = names(dir.path()).into_iter().filter(|name| name != "sub").collect();
    let contents = || before.iter().map(|name| fs::read(path(name)).unwrap()).collect::<Vec<_>>();
    let contents_before = contents();

    let mut commands: Vec<Vec<String>> = Vec::new();
    let mut add = |arguments: &str| commands.push(arguments.split(' ').map(str::to_owned).collect());
    for trace in ["app.trace", "./app.trace", "sub/../app.trace", "hard-app.trace", "soft-app.trace"] {
        for output in ["folded", "flamegraph", "dot", "png", "svg", "speedscope", "firefox"] {
            add(&format!("profile app.trace --{output} {trace}"));
        }
        add(&format!("convert app.trace --format perfetto -o {trace}"));
    }
    for output in ["app.dat", "hard-app.dat", "soft-app.dat", "hard-app.trace"] {
        add(&format!("merge app.dat app.trace --format perfetto -o {output}"));
        add(&format!("merge app.dat app.trace --format perfetto-zip -o {output}"));
    }
    for mapping in ["mapping.txt", "hard-mapping.txt", "soft-mapping.txt"] {
        add(&format!("convert app.trace --mapping mapping.txt --format perfetto -o {mapping}"));
        add(&format!("profile app.trace --mapping mapping.txt --folded {mapping}"));
    }
    add("profile app.trace --diff before.trace --folded before.trace");
    add("profile pair.key --folded pair.data");
    for arguments in &commands {
        let ran = tracebridge().current_dir(dir.path()).args(arguments).run();
        let said = &ran.stderr;
        assert_eq!(ran.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("is an input and the output"), "{arguments:?}: {said}");
    }
    // Standard input and standard output have names too.
    let input = || File::open(path("app.dat")).unwrap();
    let ran = tracebridge()
        .current_dir(dir.path())
        .args(["convert", "-", "--format", "csv", "-o", "hard-app.dat"])
        .stdin(input())
        .run();
    assert!(ran.stderr.contains("is an input and the output"), "{ran}");
    let ran = tracebridge()
        .current_dir(dir.path())
        .args(["convert", "app.dat", "--format", "csv", "-o", "-"])
        .stdout(File::options().append(true).open(path("hard-app.dat")).unwrap())
        .run();
    assert!(ran.stderr.contains("is an input and the output"), "{ran}");
    assert!(contents() == contents_before);
    assert_eq!(names(dir.path()).len(), before.len() + 1);
}

#[test]
fn two_outputs_of_one_profile_have_two_names() {
    let dir = support::tempdir();
    small_inputs(dir.path());
    fs::create_dir(dir.path().join("sub")).unwrap();
    for (one, other) in [("x", "x"), ("x", "./x"), ("sub/../x", "x"), ("-", "-"), ("-", "/dev/stdout")] {
        let ran = run_in(dir.path(), &["profile", "app.trace", "--folded", one, "--dot", other]);
        assert_eq!(ran.code(), Some(1), "{one} {other}");
        assert!(ran.stderr.contains("is named for two outputs"), "{ran}");
    }
    run_in(dir.path(), &["profile", "app.trace", "--folded", "/dev/null", "--dot", "/dev/null"]).exited(0);
    assert_eq!(names(dir.path()), ["app.dat", "app.trace", "sub"]);
}

#[test]
fn the_permissions_of_a_replaced_file_stay_and_a_new_file_follows_the_umask() {
    let dir = support::tempdir();
    small_inputs(dir.path());
    let path = |name: &str| dir.path().join(name);
    let is_root = nix::unistd::geteuid().is_root();
    for mode in [0o600, 0o640, 0o664] {
        fs::write(path("out.csv"), OLD).unwrap();
        fs::set_permissions(path("out.csv"), fs::Permissions::from_mode(mode)).unwrap();
        if is_root {
            std::os::unix::fs::chown(path("out.csv"), None, Some(4321)).unwrap();
        }
        run_in(dir.path(), &["convert", "app.dat", "-o", "out.csv"]).exited(0);
        let meta = fs::metadata(path("out.csv")).unwrap();
        assert_eq!(meta.mode() & 0o7777, mode);
        if is_root {
            assert_eq!((meta.uid(), meta.gid()), (0, 4321));
        }
    }
    if is_root {
        // What another user has put there does not become the owner of what root writes.
        std::os::unix::fs::chown(path("out.csv"), Some(1234), None).unwrap();
        run_in(dir.path(), &["convert", "app.dat", "-o", "out.csv"]).exited(0);
        assert_eq!(fs::metadata(path("out.csv")).unwrap().uid(), 0);
    }
    let masked = r#"umask 027; exec "$0" convert app.dat -o new.csv"#;
    let program = support::binary();
    Command::new("sh").current_dir(dir.path()).args(["-c", masked]).arg(program).run().exited(0);
    assert_eq!(fs::metadata(path("new.csv")).unwrap().mode() & 0o7777, 0o640);
    fs::set_permissions(path("out.csv"), fs::Permissions::from_mode(0o444)).unwrap();
    let ran = run_in(dir.path(), &["convert", "app.trace", "-o", "out.csv"]).exited(1);
    assert!(ran.stderr.contains("out.csv: is write-protected"), "{ran}");
}

#[test]
fn where_no_file_can_be_created_the_old_output_stays_and_the_error_names_it() {
    if !nix::unistd::geteuid().is_root() {
        return skip("root", "a command of another user cannot be run");
    }
    let dir = support::tempdir();
    small_inputs(dir.path());
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(dir.path().join("out.csv"), OLD).unwrap();
    fs::set_permissions(dir.path().join("out.csv"), fs::Permissions::from_mode(0o666)).unwrap();
    let mut command = tracebridge();
    command.current_dir(dir.path()).args(["convert", "app.dat", "-o", "out.csv"]).uid(65534).gid(65534);
    let Ok(ran) = command.output() else {
        return skip("root", "another user cannot run the binary where it is");
    };
    let ran = Ran::new(format!("{command:?}"), ran).exited(1);
    assert!(ran.stderr.contains("out.csv: Permission denied"), "{ran}");
    assert_eq!(fs::read(dir.path().join("out.csv")).unwrap(), OLD);
}

#[test]
fn fifos_and_names_of_descriptors_are_written_to_directly() {
    let dir = support::tempdir();
    small_inputs(dir.path());
    let fifo = dir.path().join("fifo");
    mkfifo(&fifo, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    let child = start(dir.path(), &["convert", "app.dat", "--format", "csv", "-o", "fifo"]);
    let through_fifo = within_limit("all of the FIFO", move || fs::read(&fifo).unwrap());
    child.finish().exited(0);
    run_in(dir.path(), &["convert", "app.dat", "-o", "out.csv"]).exited(0);
    assert!(through_fifo == fs::read(dir.path().join("out.csv")).unwrap());

    // A file behind /dev/stdout is appended to, and the summary does not go there.
    fs::write(dir.path().join("log"), OLD).unwrap();
    let log = File::options().append(true).open(dir.path().join("log")).unwrap();
    let mut command = tracebridge();
    command.current_dir(dir.path()).args(["convert", "app.dat", "--format", "csv", "-o", "/dev/stdout"]);
    command.stdout(log).run().exited(0);
    assert!(fs::read(dir.path().join("log")).unwrap() == [OLD, &through_fifo].concat());
    assert!(fs::symlink_metadata("/dev/stdout").unwrap().is_symlink());

    let ran =
        run_in(dir.path(), &["merge", "app.dat", "app.trace", "--format", "perfetto-zip", "-o", "/dev/null"]);
    assert!(ran.stderr.contains("a zip is written to a file"), "{ran}");
    assert_eq!(names(dir.path()), ["app.dat", "app.trace", "fifo", "log", "out.csv"]);
}

#[test]
fn term_ends_a_command_that_waits_for_a_fifo_a_pipe_or_a_stalled_reader() {
    let dir = support::tempdir();
    small_inputs(dir.path());
    big_input(dir.path());
    mkfifo(&dir.path().join("fifo"), nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    let waiting = [
        // Opening a FIFO without a writer, or without a reader.
        &["convert", "fifo", "-o", "out.csv"][..],
        &["info", "fifo"],
        &["profile", "fifo", "--folded", "out"],
        &["convert", "app.dat", "--format", "csv", "-o", "fifo"],
        // The test does not read standard output.
        &["convert", "big.trace", "--format", "csv", "-o", "-"],
        &["dmtracedump", "-o", "big.trace"],
    ];
    for arguments in waiting {
        let signals = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];
        for &signal in &signals[..rounds(1, 3)] {
            let mut child = start(dir.path(), arguments);
            until(&format!("{arguments:?} to wait"), || {
                sleeps(child.id()) || child.try_wait().unwrap().is_some()
            });
            assert!(child.try_wait().unwrap().is_none(), "{arguments:?} does not wait");
            child.send(signal);
            assert_eq!(child.wait().unwrap().signal(), Some(signal as i32), "{arguments:?}");
        }
    }
    // Reading a FIFO whose writer is silent.
    let mut child = start(dir.path(), &["convert", "fifo", "-o", "out.csv"]);
    let mut writer = open_to_write(&dir.path().join("fifo"));
    writer.write_all(b"# tracer: nop\n").unwrap();
    until("the command to wait", || sleeps(child.id()));
    child.send(Signal::SIGTERM);
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    assert_eq!(names(dir.path()), ["app.dat", "app.trace", "big.trace", "fifo"]);
}

#[test]
fn term_ends_graphviz_too() {
    let dir = support::tempdir();
    small_inputs(dir.path());
    write_program(
        &dir.path().join("bin/dot"),
        "#!/bin/sh\necho $$ > pid.new\nmv pid.new pid\nexec sleep 1000\n",
    );
    let mut search = vec![dir.path().join("bin")];
    search.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let arguments = ["profile", "app.trace", "--png", "x.png"];
    let mut command = tracebridge();
    command.current_dir(dir.path()).args(arguments).env("PATH", std::env::join_paths(&search).unwrap());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("dot", || dir.path().join("pid").exists());
    let pid: u32 = fs::read_to_string(dir.path().join("pid")).unwrap().trim().parse().unwrap();
    assert!(names(dir.path()).iter().any(|name| name.starts_with(".x.png.")));
    child.send(Signal::SIGTERM);
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    until("the end of dot", || !runs(pid));
    fs::remove_file(dir.path().join("pid")).unwrap();
    assert_eq!(names(dir.path()), ["app.dat", "app.trace", "bin"]);
}

#[test]
fn a_picture_that_graphviz_does_not_finish_leaves_the_old_one() {
    if !has_program("dot") {
        return skip("graphviz", "Graphviz's dot is not installed");
    }
    let dir = support::tempdir();
    small_inputs(dir.path());
    let draw = ["profile", "app.trace", "--svg", "x.svg", "--png", "x.png"];
    run_in(dir.path(), &draw).exited(0);
    let drawn = fs::read(dir.path().join("x.png")).unwrap();
    assert!(
        drawn.starts_with(b"\x89PNG") && fs::read(dir.path().join("x.svg")).unwrap().ends_with(b"</svg>\n")
    );

    let dot = dir.path().join("bin/dot");
    for script in
        ["#!/bin/sh\necho half; exit 1\n", "#!/bin/sh\nexit 0\n", "#!/bin/sh\necho half; kill -9 $$\n"]
    {
        write_program(&dot, script);
        let mut command = tracebridge();
        command.current_dir(dir.path()).args(draw).env("PATH", dir.path().join("bin"));
        let ran = command.run().exited(1);
        assert!(ran.stderr.contains("x.png: Graphviz's dot "), "{ran}");
        assert!(fs::read(dir.path().join("x.png")).unwrap() == drawn);
    }
    assert_eq!(names(dir.path()), ["app.dat", "app.trace", "bin", "x.png", "x.svg"]);
}

#[test]
fn an_input_that_is_shortened_while_it_is_read_is_told_and_leaves_no_output() {
    let dir = support::tempdir();
    let input = big_input(dir.path());
    let whole = fs::read(&input).unwrap();
    for command in [
        &["convert", "big.trace", "--format", "csv", "-o", "-"][..],
        &["convert", "big.trace", "--format", "chrome-json", "-o", "fifo"],
        &["dmtracedump", "-o", "big.trace"],
    ] {
        fs::write(&input, &whole).unwrap();
        let _ = mkfifo(&dir.path().join("fifo"), nix::sys::stat::Mode::from_bits_truncate(0o600));
        let mut child = start(dir.path(), command);
        let mut out: Box<dyn Read + Send> = if command.contains(&"fifo") {
            Box::new(open_to_read(&dir.path().join("fifo")))
        } else {
            Box::new(child.stdout.take().unwrap())
        };
        // The command waits for its reader while the file becomes shorter.
        let mut out = within_limit("the first bytes of the output", move || {
            out.read_exact(&mut [0; 4096]).unwrap();
            out
        });
        File::options().write(true).open(&input).unwrap().set_len(100_000).unwrap();
        within_limit("the end of the output", move || drop(std::io::copy(&mut out, &mut std::io::sink())));
        let ran = child.finish();
        let said = &ran.stderr;
        assert_eq!(ran.code(), Some(1), "{command:?}: {ran}");
        assert!(said.contains("big.trace: another program shortened this file"), "{command:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    assert_eq!(names(dir.path()), ["big.trace", "fifo"]);
}

#[test]
fn while_a_file_is_written_a_shortened_input_removes_the_unfinished_output() {
    let dir = support::tempdir();
    let input = big_input(dir.path());
    const CONVERT: [&str; 4] = ["convert", "big.trace", "-o", "out.json"];
    run_in(dir.path(), &CONVERT).exited(0);
    let whole_output = fs::metadata(dir.path().join("out.json")).unwrap().len();
    let whole = fs::read(&input).unwrap();
    let times = rounds(1, 5);
    let mut told = 0;
    for _ in 0..MAX_ATTEMPTS {
        let Some(child) = stopped_in_the_middle(dir.path(), &CONVERT, whole_output) else { continue };
        File::options().write(true).open(&input).unwrap().set_len(5_000).unwrap();
        child.send(Signal::SIGCONT);
        let ran = child.finish().exited(1);
        assert!(ran.stderr.contains("big.trace: another program shortened this file"), "{ran}");
        assert_eq!(names(dir.path()), ["big.trace", "out.json"]);
        assert_eq!(fs::read(dir.path().join("out.json")).unwrap(), OLD);
        fs::write(&input, &whole).unwrap();
        told += 1;
        if told == times {
            break;
        }
    }
    assert_eq!(told, times);
}

#[test]
fn a_command_that_was_started_to_ignore_a_signal_goes_on() {
    let dir = support::tempdir();
    small_inputs(dir.path());
    let fifo = dir.path().join("fifo");
    mkfifo(&fifo, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    let script = r#"trap "" HUP INT; exec "$0" convert fifo -o out.csv"#;
    let mut child = Command::new("sh")
        .current_dir(dir.path())
        .args(["-c", script])
        .arg(support::binary())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut writer = open_to_write(&fifo);
    child.send(Signal::SIGHUP);
    child.send(Signal::SIGINT);
    writer.write_all(&fs::read(dir.path().join("app.dat")).unwrap()).unwrap();
    drop(writer);
    assert!(child.wait().unwrap().success());
    assert!(dir.path().join("out.csv").exists());
}

#[test]
fn launch_does_not_put_the_recording_where_the_method_trace_goes() {
    let dir = support::tempdir();
    fs::write(dir.path().join("y.trace"), OLD).unwrap();
    let ran = run_in(dir.path(), &["launch", "com.example.app", "-o", "y.trace"]).exited(2);
    assert!(ran.stderr.contains("FILE.trace"), "{ran}");
    assert_eq!(fs::read(dir.path().join("y.trace")).unwrap(), OLD);
}
