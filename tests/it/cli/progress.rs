//! The bar that shows how far a command is.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use support::art_writer::{ArtTrace, Method};
use support::{Child, Command, Printed, has_program, project_dir, skip, tracebridge, until};

/// Records of 14 bytes: 42 MB.
const RECORDS: u32 = 3_000_000;

/// How long the command runs and stands in turns, until the bar is seen. It stands for longer than a bar
/// waits before it appears and between two steps, and runs for a small part of the time that the file
/// takes.
const RUNS: Duration = Duration::from_millis(1);
const STANDS: Duration = Duration::from_millis(120);

/// How often a command may end before a bar was seen: it runs on where the machine is so busy that the test
/// is late to stop it, and then its run tells nothing.
const ATTEMPTS: usize = 10;

/// A method trace in which two threads call one method after the other.
fn write_large_trace(path: &Path) {
    let head = ArtTrace {
        elapsed_us: 100_000_000,
        threads: vec![(1, "main".into()), (2, "worker".into())],
        methods: ["run", "load", "draw"].map(|name| Method::new("com.example.Work", name)).to_vec(),
        ..ArtTrace::default()
    };
    let mut out = BufWriter::new(File::create(path).unwrap());
    out.write_all(&head.to_bytes()).unwrap();
    for n in 0..RECORDS {
        let call = n / 4;
        let exit = n / 2 % 2;
        let thread = 1 + n as u16 % 2;
        out.write_all(&thread.to_le_bytes()).unwrap();
        out.write_all(&(call % 3 * 4 + exit).to_le_bytes()).unwrap();
        out.write_all(&(n / 8).to_le_bytes()).unwrap();
        out.write_all(&(n / 4).to_le_bytes()).unwrap();
    }
    out.flush().unwrap();
}

/// The lines on the terminal that are whole. A bar begins with a carriage return.
fn lines(shown: &str) -> impl Iterator<Item = &str> {
    let whole = &shown[..shown.rfind(['\r', '\n']).unwrap_or(0)];
    whole.split(['\r', '\n'])
}

/// The shares that bars on the terminal have shown.
fn percents(shown: &str) -> Vec<u32> {
    let percent = |line: &str| {
        let before = line.split_once(" % ")?.0;
        before.rsplit_once(' ')?.1.parse().ok()
    };
    lines(shown).filter_map(percent).collect()
}

/// Whether a bar has shown a part of the way.
fn shows_part(shown: &str) -> bool {
    percents(shown).iter().any(|percent| (1..100).contains(percent))
}

/// Starts a command in `dir` with its standard error on a terminal, at the lowest priority: on a machine that
/// is so busy that the test is late to stop it, it hardly runs meanwhile. Returns the process that holds the
/// terminal, what is shown there, and the command's own number.
fn on_terminal(dir: &Path, args: &[&str]) -> (Child, Printed, Pid) {
    let pid_file = dir.join("pid");
    let _ = fs::remove_file(&pid_file);
    let mut terminal = Command::new("python3");
    terminal.arg(project_dir().join("tests/support/on_terminal.py")).args(["--stderr", "110"]);
    terminal.args([
        "sh",
        "-c",
        "echo $$ >pid.part; mv pid.part pid; exec nice -n 19 \"$@\" >/dev/null",
        "sh",
    ]);
    terminal.arg(support::binary()).args(args).current_dir(dir).env("TERM", "xterm");
    let mut terminal = terminal.stdout(Stdio::piped()).spawn().unwrap();
    let shown = terminal.collect_stdout();
    until("the number of the command's process", || pid_file.exists());
    let pid = fs::read_to_string(pid_file).unwrap().trim().parse().unwrap();
    (terminal, shown, Pid::from_raw(pid))
}

/// The output on a terminal of a command that is made to last until a bar is there: it runs and stands in
/// turns.
fn shown_in_slow_motion(dir: &Path, args: &[&str]) -> String {
    let (mut terminal, shown, command) = on_terminal(dir, args);
    while terminal.try_wait().unwrap().is_none() {
        // It may have ended, and its number stays its own until the terminal's process has.
        let _ = kill(command, Signal::SIGSTOP);
        thread::sleep(STANDS);
        let is_seen = shows_part(&shown.text());
        let _ = kill(command, Signal::SIGCONT);
        if is_seen {
            break;
        }
        thread::sleep(RUNS);
    }
    let all = shown.to_end();
    assert!(terminal.wait().unwrap().success(), "{args:?}: {all}");
    all
}

#[test]
fn a_terminal_shows_how_far_a_long_command_is() {
    if !has_program("python3") {
        return skip("python", "python3 is not installed, which makes a terminal");
    }
    let dir = support::tempdir();
    write_large_trace(&dir.path().join("large.trace"));
    let commands: [&[&str]; 5] = [
        &["profile", "large.trace"],
        &["info", "large.trace"],
        &["convert", "large.trace", "--format", "perfetto", "-o", "/dev/null"],
        &["merge", "large.trace", "--format", "perfetto", "-o", "/dev/null"],
        &["dmtracedump", "large.trace"],
    ];
    for args in commands {
        let quiet = tracebridge().current_dir(dir.path()).args(args).run().exited(0);
        assert!(!quiet.stderr.contains('\r') && !quiet.stderr.contains(" left"), "{args:?}: {quiet}");
        let shown = (0..ATTEMPTS)
            .map(|_| shown_in_slow_motion(dir.path(), args))
            .find(|shown| shows_part(shown))
            .unwrap_or_else(|| panic!("{args:?} shows no bar in {ATTEMPTS} runs"));
        let bar = lines(&shown).find(|line| line.contains(" % ")).unwrap();
        assert!(bar.contains("large.trace: ") && bar.contains("B/s, ") && bar.contains(" left"), "{bar}");
        let percents = percents(&shown);
        assert!(percents.iter().all(|percent| *percent <= 100), "{args:?}: {percents:?}");
    }
}
