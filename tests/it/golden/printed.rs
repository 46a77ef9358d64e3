//! The texts of `profile` for people: each table, tree and comparison with its summary, on terminals of four
//! widths with and without colour, and through a pipe. Each file in `expected/printed` has all of them.
//!
//! `UPDATE_GOLDEN=1 cargo test --test it golden::printed` writes the files anew.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use support::Command;

use super::outputs::assert_golden;
use support::art_writer::{Action, ArtTrace, Method, Record};

const WIDTHS: [usize; 4] = [80, 100, 120, 200];

/// Class, name and signature of each method: overloads, inner classes, a name that is wider than half of a
/// terminal, one that is wider than a terminal, a class without a package, and a name with control
/// characters.
const METHODS: [(&str, &str, &str); 13] = [
    ("com.example.app.MainActivity", "onCreate", "(Landroid/os/Bundle;)V"),
    ("org.mozilla.gecko.mozglue.GeckoLoader", "nativeRun", "([Ljava/lang/String;IIIII)V"),
    ("java.lang.Object", "wait", "(JI)V"),
    ("java.lang.Object", "wait", "(J)V"),
    ("java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject", "awaitNanos", "(J)J"),
    ("kotlinx.coroutines.Deferred", "await$impl", "(Lkotlinx/coroutines/Deferred;)Ljava/lang/Object;"),
    ("com.example.app.Feed", "lambda$bindImagesAndCaptionsOfVisibleRows$3$com-example-app", "(I)Z"),
    (
        "com.example.app.FeedTest",
        "every_row_of_the_feed_that_is_on_the_screen_is_drawn_once_and_only_once_after_a_scroll",
        "()V",
    ),
    ("com.example.app.Tree", "visit", "(Lcom/example/app/Tree$Node;)V"),
    ("Main", "run", "()V"),
    ("a.b.Box", "get", "()Ljava/lang/Object;"),
    ("a.b.Box", "get", "()Ljava/lang/String;"),
    ("a.Evil", "clear\u{1b}[2J", "()V"),
];

/// A trace in the making: calls one after another.
struct Calls(ArtTrace, [u32; 4], u32);

impl Calls {
    fn record(&mut self, thread: u16, method: u32, action: Action) {
        let cpu_us = self.1[usize::from(thread)];
        let wall_us = self.2;
        self.0.records.push(Record { thread, method, action, cpu_us, wall_us });
    }

    /// A call that takes `wall` µs and `cpu` µs itself, before the calls inside.
    fn call(&mut self, thread: u16, method: u32, [wall, cpu]: [u32; 2], inside: impl FnOnce(&mut Calls)) {
        self.record(thread, method, Action::Enter);
        self.2 += wall;
        self.1[usize::from(thread)] += cpu;
        inside(self);
        self.record(thread, method, Action::Exit);
    }
}

fn visit(calls: &mut Calls, depth: u32) {
    if depth > 0 {
        calls.call(1, 8, [900, 900], |calls| visit(calls, depth - 1));
    }
}

/// Three threads. The later trace is slower in native code, waits less, and has another method.
fn trace(later: bool) -> ArtTrace {
    let method = |(class, name, signature): &(&str, &str, &str)| Method {
        class: (*class).into(),
        name: (*name).into(),
        signature: (*signature).into(),
        file: "A.java".into(),
    };
    let trace = ArtTrace {
        dalvik: false,
        start_us: 7_000_000,
        elapsed_us: 60_000_000,
        pid: 4_242,
        threads: vec![(1, "main".into()), (2, "DefaultDispatcher-worker-6".into()), (3, "wörker".into())],
        methods: METHODS.iter().map(method).collect(),
        records: Vec::new(),
    };
    let mut calls = Calls(trace, [0; 4], 100);
    let native = if later { [4_900_000, 3_700_000] } else { [4_450_000, 3_350_000] };
    calls.call(1, 0, [12_345, 9_870], |calls| {
        calls.call(1, 1, native, |_| {});
        visit(calls, 40);
        calls.call(1, 6, [350_000, 350_000], |calls| {
            calls.call(1, 7, [120_000, 90_000], |_| {});
            if later {
                calls.call(1, 12, [60_000, 60_000], |_| {});
            }
        });
        calls.call(1, 10, [40, 40], |calls| calls.call(1, 11, [20, 19], |_| {}));
    });
    calls.call(2, 4, [3_000, 2_500], |calls| {
        calls.call(2, 3, [1, 1], |calls| {
            calls.call(2, 2, [if later { 31_000_000 } else { 39_000_000 }, 250], |_| {});
        });
        calls.call(2, 2, [200_000, 30], |_| {});
    });
    calls.call(3, 9, [5, 5], |calls| {
        if !later {
            calls.call(3, 5, [972_570, 8_984], |_| {});
        }
    });
    calls.0
}

/// The text that the product prints on a terminal, or through a pipe where there is no width.
fn printed(dir: &Path, width: Option<usize>, colour: bool, arguments: &[&str]) -> String {
    let program = support::tracebridge().get_program().to_owned();
    let mut command = match width {
        Some(width) => {
            let mut python = Command::new("python3");
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/on_terminal.py");
            python.arg(script).arg(width.to_string()).arg(program);
            python
        }
        None => Command::new(program),
    };
    command.current_dir(dir).arg("profile").args(arguments).env("TERM", "xterm").env_remove("NO_COLOR");
    command.env_remove("CLICOLOR").env_remove("CLICOLOR_FORCE");
    if !colour {
        command.env("NO_COLOR", "1");
    }
    let done = command.run();
    assert!(done.status.success(), "{arguments:?}: {}", done.stderr);
    done.stdout
}

#[test]
fn what_a_profile_prints_at_each_width_in_colour_and_without() {
    if Command::new("python3").arg("--version").output().is_err() {
        return support::skip("python", "python3 is not installed, which makes terminals of a given width");
    }
    let dir = support::tempdir();
    fs::write(dir.path().join("app.trace"), trace(true).to_bytes()).unwrap();
    fs::write(dir.path().join("before.trace"), trace(false).to_bytes()).unwrap();
    let views: [(&str, &[&str]); 9] = [
        ("methods", &["app.trace"]),
        ("inclusive", &["app.trace", "--sort", "inclusive", "--clock", "cpu", "--signatures", "--top", "5"]),
        ("classes", &["app.trace", "--by", "class", "--sort", "calls"]),
        ("threads", &["app.trace", "--by", "thread"]),
        ("calls", &["app.trace", "--calls", "--top", "8"]),
        ("tree", &["app.trace", "--tree", "--threshold", "0.1"]),
        ("bottom_up", &["app.trace", "--bottom-up"]),
        ("diff", &["app.trace", "--diff", "before.trace"]),
        ("window", &["app.trace", "--thread", "main", "--from", "1ms", "--to", "5s"]),
    ];
    for (name, arguments) in views {
        let mut all = format!("profile {}\n", arguments.join(" "));
        for (colour, says) in [(false, ""), (true, ", in colour (^[ is the escape character)")] {
            for width in WIDTHS {
                let text = printed(dir.path(), Some(width), colour, arguments);
                assert_eq!(text.contains('\u{1b}'), colour, "{name} {width}: {text}");
                let _ = writeln!(all, "\n== {width} columns{says}\n{}", text.replace('\u{1b}', "^["));
                for line in plain(&text).lines() {
                    assert!(line.chars().count() <= width, "{name}: wider than {width}: {line}");
                }
            }
        }
        let text = printed(dir.path(), None, true, arguments);
        assert!(!text.contains("\u{1b}[1m"), "{name}: a pipe has no colour: {text}");
        let _ = write!(all, "\n== through a pipe\n{text}");
        assert_golden(&format!("printed/{name}.txt"), all.as_bytes());
    }
}

/// Text without the sequences for colours.
fn plain(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').map_or("", |(_, rest)| rest))
}
