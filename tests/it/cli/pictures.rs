//! Flame graphs, call graphs and the HTML pages of `profile` and `dmtracedump`, and the names under which old
//! tools knew their files and themselves.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use support::Command;

use support::art_writer::{Action, ArtTrace, Method, Record};
use support::{Ran, TempDir, run_in, until};

/// Three threads over 1 s: `main` computes, `a` and `b` wait in Object.wait with 1 µs of CPU time.
fn sample() -> ArtTrace {
    use Action::{Enter, Exit};
    // thread, method, action, cpu µs, wall µs
    let records = vec![
        Record::new(1, 0, Enter, 0, 0),
        Record::new(2, 3, Enter, 0, 10),
        Record::new(3, 3, Enter, 0, 20),
        Record::new(1, 1, Enter, 0, 100_000),
        Record::new(1, 2, Enter, 300_000, 500_000),
        Record::new(1, 2, Exit, 360_000, 600_000),
        Record::new(1, 1, Exit, 400_000, 700_000),
        Record::new(1, 0, Exit, 500_000, 1_000_000),
        Record::new(2, 3, Exit, 1, 1_000_000),
        Record::new(3, 3, Exit, 1, 1_000_000),
    ];
    ArtTrace {
        dalvik: false,
        start_us: 7_000_000,
        elapsed_us: 1_000_000,
        pid: 77,
        threads: vec![(1, "main".into()), (2, "a".into()), (3, "b".into())],
        methods: vec![
            Method::new("com.example.Main<T>", "run"),
            Method::new("androidx.view.List", "draw&"),
            Method::new("android.os.Looper", "loop"),
            Method::new("java.lang.Object", "wait"),
        ],
        records,
    }
}

fn with_sample() -> TempDir {
    let dir = support::tempdir();
    fs::write(dir.path().join("app.trace"), sample().to_bytes()).unwrap();
    dir
}

fn text(dir: &Path, arguments: &[&str]) -> String {
    run_in(dir, arguments).exited(0).stdout
}

fn flame_graph(dir: &Path, options: &[&str]) -> String {
    text(dir, &[&["profile", "app.trace", "--flamegraph", "-"], options].concat())
}

/// A frame: the text behind `name` up to the end of its label.
fn frame<'a>(svg: &'a str, name: &str) -> &'a str {
    let start = svg.find(&format!("<title>{name} (")).unwrap_or_else(|| panic!("{name}: {svg}"));
    &svg[start..start + svg[start..].find("</g>").unwrap()]
}

fn color(svg: &str, name: &str) -> (u8, u8, u8) {
    let frame = frame(svg, name);
    let rgb = frame.split_once("fill=\"rgb(").unwrap().1.split_once(')').unwrap().0;
    let channels: Vec<u8> = rgb.split(',').map(|channel| channel.trim().parse().unwrap()).collect();
    (channels[0], channels[1], channels[2])
}

fn y(frame: &str) -> u32 {
    frame.split_once(" y=\"").unwrap().1.split_once('"').unwrap().0.parse().unwrap()
}

#[test]
fn a_flame_graph_says_what_it_shows_and_grows_down_from_its_roots() {
    let dir = with_sample();
    let svg = flame_graph(dir.path(), &[]);
    assert!(svg.contains(">app.trace · 3 threads · CPU time</text>"), "{svg}");
    assert!(svg.contains("</tspan> app\u{2003}") && svg.contains("</tspan> Android and Java\u{2003}"));
    // 300 ms of 500 ms and 2 µs are in `draw&` and below it.
    assert!(frame(&svg, "androidx.view.List.draw&amp;").contains("(400,000 µs, 80.00%)"));
    assert!(y(frame(&svg, "main")) < y(frame(&svg, "com.example.Main&lt;T&gt;.run")));
    // Frames without room for the package have the class and the method.
    assert!(frame(&svg, "android.os.Looper.loop").ends_with(">Looper.loop</text>"), "{svg}");
    assert!(frame(&svg, "com.example.Main&lt;T&gt;.run").ends_with(">com.example.Main&lt;T&gt;.run</text>"));
    let of_main = flame_graph(dir.path(), &["--thread", "main", "--clock", "wall"]);
    assert!(of_main.contains(">app.trace · thread main · wall time</text>"), "{of_main}");
}

#[test]
fn a_thread_that_leaves_nothing_to_draw_is_told_apart_from_a_clock_that_does() {
    let dir = with_sample();
    // `main` is declared and has no records, `b` waits without CPU time, and `c` calls for no time at all.
    let mut trace = sample();
    trace.threads.push((4, "c".into()));
    trace.records.retain(|record| record.thread == 3);
    trace.records[1].cpu_us = 0;
    trace.records.extend([Action::Enter, Action::Exit].map(|action| Record::new(4, 3, action, 0, 30)));
    fs::write(dir.path().join("app.trace"), trace.to_bytes()).unwrap();
    let refusal = |options: &str| {
        let out = run_in(dir.path(), &options.split(' ').collect::<Vec<_>>()).exited(1).stderr;
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "{options}");
        out
    };
    let without_calls = "app.trace: no call of the selected threads is in the trace; --by thread lists the \
                         threads that have calls";
    for output in ["-o app.svg", "--folded a", "--dot a", "--pprof a", "--speedscope a", "--firefox a"] {
        let said = refusal(&format!("profile app.trace --thread main {output}"));
        assert!(said.contains(without_calls), "{output}: {said}");
    }
    let said = refusal("profile app.trace --thread b --clock cpu -o app.svg");
    assert!(said.contains("no call takes cpu time: --clock wall has times to draw"), "{said}");
    let said = refusal("profile app.trace --thread c -o app.svg");
    assert!(said.contains("`tracebridge profile` without an output counts the calls"), "{said}");
    run_in(dir.path(), &["profile", "app.trace", "--thread", "b", "-o", "app.svg"]).exited(0);
    let svg = fs::read_to_string(dir.path().join("app.svg")).unwrap();
    assert!(svg.contains(">app.trace · thread b · wall time</text>"), "{svg}");
}

#[test]
fn a_flame_graph_tells_the_app_from_libraries_and_the_framework() {
    let dir = with_sample();
    let app = "com.example.Main&lt;T&gt;.run";
    let library = "androidx.view.List.draw&amp;";
    let framework = "android.os.Looper.loop";
    let is_orange = |(r, g, b): (u8, u8, u8)| r > g && g > b;
    let is_green = |(r, g, b): (u8, u8, u8)| g > r && r > b;
    let is_blue = |(r, g, b): (u8, u8, u8)| b > g && g > r;
    let svg = flame_graph(dir.path(), &[]);
    assert!(is_orange(color(&svg, app)) && is_green(color(&svg, library)) && is_blue(color(&svg, framework)));
    assert_eq!(svg, flame_graph(dir.path(), &[]), "the same colours each time");
    let svg = flame_graph(dir.path(), &["--app", "androidx.view"]);
    assert!(is_green(color(&svg, app)) && is_orange(color(&svg, library)) && is_blue(color(&svg, framework)));
    let ran = run_in(dir.path(), &["profile", "app.trace", "--app", "com.example"]);
    assert_eq!(ran.code(), Some(2), "--app without a flame graph would change nothing");
}

#[test]
fn threads_that_only_wait_are_a_root_of_their_own_in_wall_time() {
    let dir = with_sample();
    let svg = flame_graph(dir.path(), &["--clock", "wall"]);
    let running = frame(&svg, "running threads: 1");
    let waiting = frame(&svg, "waiting threads: 2");
    assert_eq!(y(running), y(waiting));
    assert!(y(frame(&svg, "a")) > y(waiting) && y(frame(&svg, "main")) > y(running));
    assert!(running.contains("x=\"0.0000%\"") && svg.contains("var opens_at = \"running threads: 1\";"));
    assert!(!flame_graph(dir.path(), &[]).contains("waiting threads"), "in CPU time nothing waits");
    let folded = text(dir.path(), &["profile", "app.trace", "--folded", "-"]);
    assert!(folded.starts_with("a;java.lang.Object.wait "), "{folded}");
}

#[test]
fn a_call_graph_draws_what_takes_a_share_of_the_whole() {
    let dir = with_sample();
    let graph =
        |options: &[&str]| text(dir.path(), &[&["profile", "app.trace", "--dot", "-"], options].concat());
    let dot = graph(&[]);
    assert!(
        dot.contains(
            "app.trace · 3 threads · CPU time<br/>3 of 4 methods: those with at least 5 % of 500 ms"
        )
    );
    let main = "<font point-size=\"8\">com.example</font><br/>Main&lt;T&gt;.<b>run</b><br/>500 ms (100.0 %)<br/>\
                self 100 ms (20.0 %), 1 call>";
    assert!(dot.contains(main), "{dot}");
    assert!(dot.contains("m0 -> m1 [label=\"80.0 %\", tooltip=\"1 call, 400 ms\""), "{dot}");
    // 60 ms of 500 ms are 12 % of the whole, and 15 % of the caller.
    assert!(graph(&["--threshold", "11.9"]).contains("Looper"));
    assert!(!graph(&["--threshold", "12.1"]).contains("Looper"));
    let waiting = graph(&["--thread", "2", "--clock", "wall"]);
    assert!(waiting.contains("<b>wait</b><br/>1.00 s (100.0 %)") && !waiting.contains("Main"), "{waiting}");
}

#[test]
fn a_name_without_its_ending_stands_for_the_trace_or_for_the_key_file_with_its_data() {
    let dir = with_sample();
    let bytes = sample().to_bytes();
    let end = bytes.windows(5).position(|window| window == b"*end\n").unwrap() + 5;
    fs::write(dir.path().join("old.key"), &bytes[..end]).unwrap();
    fs::write(dir.path().join("old.data"), &bytes[end..]).unwrap();
    let expected = text(dir.path(), &["dmtracedump", "app.trace"]);
    assert!(expected.contains("Total cycles: 500002\n"));
    for name in ["app", "old", "old.key"] {
        assert_eq!(text(dir.path(), &["dmtracedump", name]), expected, "{name}");
        assert!(text(dir.path(), &["profile", name]).contains("Looper"), "{name}");
    }
    let ran = run_in(dir.path(), &["dmtracedump", "gone"]).exited(1);
    assert!(ran.stderr.contains("gone: "), "{ran}");
    // An output never replaces a file that the name stands for.
    let ran = run_in(dir.path(), &["profile", "old", "--dot", "old.data"]);
    assert!(!ran.status.success(), "{ran}");
    assert_eq!(fs::read(dir.path().join("old.data")).unwrap(), &bytes[end..]);
}

#[test]
fn the_binary_answers_to_the_names_of_the_old_tools() {
    let dir = with_sample();
    let binary = support::binary();
    for name in ["dmtracedump", "traceview"] {
        symlink(&binary, dir.path().join(name)).unwrap();
    }
    let old = |name: &str, arguments: &[&str]| -> Ran {
        let mut command = Command::new(dir.path().join(name));
        command.current_dir(dir.path()).args(arguments).env("BROWSER", "cp %s seen.html");
        command.env("TMPDIR", dir.path()).run()
    };
    let text = old("dmtracedump", &["app.trace"]);
    assert_eq!(text.stdout, run_in(dir.path(), &["dmtracedump", "app.trace"]).stdout);
    old("dmtracedump", &[]).exited(2);
    for file in ["app.trace", "app"] {
        let _ = fs::remove_file(dir.path().join("seen.html"));
        old("traceview", &[file]).exited(0);
        // The browser goes on when the program has ended.
        let seen =
            || fs::read_to_string(dir.path().join("seen.html")).is_ok_and(|page| page.starts_with("<!"));
        until(&format!("the page of {file} in the browser"), seen);
    }
    let refused = old("traceview", &["-r", "app.trace"]).exited(2);
    assert!(refused.stderr.contains("traceview's -r only ran its regression test"));
}
