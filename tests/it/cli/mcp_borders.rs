//! `tracebridge mcp`: no path leads out of its directories, no output replaces a file, no child outlives a
//! call or the server, and calls at once are bounded.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde_json::{Value, json};
use support::files::zip;
use support::{holds_within, run_in, tempdir, tracebridge, until, write_program};

use super::adb::{Desk, golden_capture};
use super::gate::write_launch;
use super::mcp::Session;

/// A call of each tool that reads files, about this file.
fn calls(file: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("info", json!({ "files": [file] })),
        ("launches", json!({ "files": [file] })),
        ("frames", json!({ "files": [file] })),
        ("why", json!({ "files": [file] })),
        ("why_against", json!({ "new": ["a.txt"], "old": [file] })),
        ("slices", json!({ "files": [file] })),
        ("thread_states", json!({ "files": [file] })),
        ("profile", json!({ "file": file })),
        ("profile", json!({ "file": "a.txt", "mapping": file })),
        ("gate", json!({ "baseline": [file], "candidate": ["a.txt"], "fail_if": ["launch.total > +3%"] })),
        ("report", json!({ "files": ["a.txt"], "against": [file], "output": "never.html" })),
        ("query", json!({ "dataset": file, "sql": "SELECT 1 FROM slice" })),
    ]
}

#[test]
fn no_path_of_any_tool_leads_out_or_tells_what_is_there() {
    let dir = tempdir();
    let [root, out] = ["root", "out"].map(|name| dir.path().join(name));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&out).unwrap();
    write_launch(&root.join("a.txt"), 400_000, "inflate");
    write_launch(&out.join("secret.txt"), 400_000, "the secret");
    let secret = fs::read(out.join("secret.txt")).unwrap();
    fs::write(out.join("secret.zip"), zip(&[("a/x.txt", &secret)])).unwrap();
    symlink("../out", root.join("link")).unwrap();
    symlink(out.join("secret.zip"), root.join("linked.zip")).unwrap();
    symlink(out.join("none.zip"), root.join("unlinked.zip")).unwrap();
    let duckdb = dir.path().join("bin");
    fs::create_dir(&duckdb).unwrap();
    write_program(&duckdb.join("duckdb"), "#!/bin/sh\necho '[]'\n");
    let mut command = tracebridge();
    command.env("PATH", &duckdb);
    let mut session = Session::start_with(command, &root, &[]);
    let absolute = out.display().to_string();
    for (there, not_there) in [
        (".//../out/secret.zip//a/x.txt", ".//../out/none.zip//a/x.txt"),
        ("a.txt//../../out/secret.txt", "a.txt//../../out/none.txt"),
        ("link//secret.zip//a/x.txt", "link//none.zip//a/x.txt"),
        ("link/secret.txt", "link/none.txt"),
        ("linked.zip//a/x.txt", "unlinked.zip//a/x.txt"),
        (&format!("{absolute}/secret.zip//a/x.txt"), &format!("{absolute}/none.zip//a/x.txt")),
        ("../out", "../none"),
    ] {
        for ((tool, arguments), (_, twin)) in calls(there).into_iter().zip(calls(not_there)) {
            let answer = session.call(tool, arguments.clone());
            let text = format!("{answer:?}");
            assert!(
                !text.contains("the secret") && !text.contains("\"inflate"),
                "{tool} {arguments}: {text}"
            );
            let error = answer.expect_err(&text);
            let expected =
                session.call(tool, twin).unwrap_err().replace(not_there, there).replace("/none.", "/secret.");
            assert_eq!(error, expected, "{tool} {arguments}");
            // A file in an archive is none of the directories, whatever its name.
            let is_member = there.starts_with("a.txt//") && error.contains("a.txt");
            let is_refused = is_member || error.contains("outside of the directories");
            assert!(is_refused, "{tool} {arguments}: {error}");
        }
    }
    assert!(!root.join("never.html").exists());
}

#[test]
fn files_that_a_command_opens_by_itself_are_below_the_directories_too() {
    let dir = tempdir();
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("listed")).unwrap();
    fs::create_dir(root.join("runs")).unwrap();
    write_launch(&root.join("a.txt"), 400_000, "inflate");
    write_launch(&dir.path().join("secret.txt"), 400_000, "the secret");
    // The data file of a key file, files that a manifest names, and files of a directory.
    fs::write(root.join("k.key"), "*version\n3\nclock=wall\n*threads\n1\tmain\n*methods\n*end\n").unwrap();
    symlink("../secret.txt", root.join("k.data")).unwrap();
    let manifest = r#"{"perfetto_manifest":{"version":1,"files":[{"path":"../../secret.txt"}]}}"#;
    fs::write(root.join("listed/perfetto_manifest.json"), manifest).unwrap();
    symlink("../../secret.txt", root.join("runs/r.txt")).unwrap();
    let mut session = Session::start(&root, &[]);
    for (tool, arguments) in [
        ("info", json!({ "files": ["k.key"] })),
        ("profile", json!({ "file": "k.key" })),
        ("why", json!({ "files": ["listed"] })),
        ("info", json!({ "files": ["runs"] })),
        ("gate", json!({ "baseline": ["runs"], "candidate": ["a.txt"], "fail_if": ["launch.total > +3%"] })),
    ] {
        let answer = format!("{:?}", session.call(tool, arguments.clone()));
        let is_empty = answer.contains("\"traces\": Array []") || answer.starts_with("Err");
        assert!(is_empty && !answer.contains("the secret"), "{tool} {arguments}: {answer}");
    }
    // A manifest leads out of its directory for nobody.
    let ran = run_in(&root, &["convert", "listed", "-o", "x.json"]).exited(1);
    assert!(ran.stderr.contains("holds no file ../../secret.txt"), "{ran}");
}

#[test]
fn no_output_of_an_assistant_replaces_a_file_whatever_name_it_gets() {
    let Some(desk) = Desk::one() else { return };
    desk.will_record(&golden_capture());
    let dir = desk.path("");
    let dir = dir.to_str().unwrap();
    let words = ["record", "sched", "-t", "50ms", "-o", "{serial}.dat", "--below", dir];
    desk.adb(&words).run().exited(0);
    let written: Vec<_> = desk.outputs().into_iter().filter(|name| name.ends_with(".dat")).collect();
    let [name] = &written[..] else { panic!("{written:?}") };
    fs::write(desk.path(name), "mine").unwrap();
    let ran = desk.adb(&words).run().exited(1);
    assert!(ran.stderr.contains("outputs do not replace files"), "{ran}");
    assert_eq!(fs::read_to_string(desk.path(name)).unwrap(), "mine");
    let several = ["launch", "com.example", "--runs", "2", "-o", "r.dat", "--below", dir];
    fs::write(desk.path("r-2.dat"), "mine").unwrap();
    let ran = desk.adb(&several).run().exited(1);
    assert!(ran.stderr.contains("r-2.dat: is there already"), "{ran}");
    assert_eq!(fs::read_to_string(desk.path("r-2.dat")).unwrap(), "mine");
}

/// A program in the place of DuckDB that says where it is and never ends.
const ENDLESS: &str = "#!/bin/sh\necho $$ >\"$TMPDIR/pid-$$\"\nexec /bin/sleep 1000\n";

/// The numbers of the processes that have said where they are.
fn pids(dir: &Path) -> Vec<Pid> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| Some(Pid::from_raw(name.strip_prefix("pid-")?.parse().unwrap()))).collect()
}

/// A server with a dataset `d`, and with the endless program in the place of DuckDB.
fn session_of_queries(dir: &Path) -> Session {
    write_launch(&dir.join("a.txt"), 400_000, "inflate");
    run_in(dir, &["dataset", "add", "d", "a.txt"]).exited(0);
    fs::create_dir(dir.join("bin")).unwrap();
    write_program(&dir.join("bin/duckdb"), ENDLESS);
    let mut command = tracebridge();
    command.env("PATH", dir.join("bin")).env("TMPDIR", dir);
    Session::start_with(command, dir, &[])
}

/// Far less than a child that is asked to end would get.
const SOON: Duration = Duration::from_secs(40);

#[test]
fn a_query_ends_with_its_call_and_with_the_server() {
    let dir = tempdir();
    let mut session = session_of_queries(dir.path());
    let query = |timeout| json!({ "dataset": "d", "sql": "SELECT * FROM slice", "timeout_s": timeout });
    let error = session.call("query", query(1)).unwrap_err();
    assert!(error.contains("the time is over"), "{error}");
    let [stopped] = pids(dir.path())[..] else { panic!("one program was started") };
    assert!(holds_within(SOON, || kill(stopped, None).is_err()), "the stopped program goes on");
    fs::remove_file(dir.path().join(format!("pid-{stopped}"))).unwrap();
    session.send("tools/call", json!({ "name": "query", "arguments": query(600) }));
    until("the program", || pids(dir.path()).len() == 1);
    session.server.kill().unwrap();
    session.server.wait().unwrap();
    let left = pids(dir.path())[0];
    assert!(holds_within(SOON, || kill(left, None).is_err()), "the program outlives the server");
}

#[test]
fn calls_at_once_are_bounded_and_those_beyond_are_refused() {
    let dir = tempdir();
    let mut session = session_of_queries(dir.path());
    let query = json!({ "dataset": "d", "sql": "SELECT * FROM slice", "timeout_s": 600 });
    for _ in 0..150 {
        session.send("tools/call", json!({ "name": "query", "arguments": query }));
    }
    for _ in 0..150 - 36 {
        let refused = session.receive(|message| message["result"]["isError"] == json!(true));
        assert!(refused.to_string().contains("4 calls run and 32 wait"), "{refused}");
    }
    until("the programs", || pids(dir.path()).len() == 4);
    session.server.kill().unwrap();
}

#[test]
fn a_file_that_was_replaced_is_read_again_whatever_its_size_and_time() {
    let dir = tempdir();
    let path = dir.path().join("a.txt");
    write_launch(&path, 400_000, "inflate");
    let old = fs::metadata(&path).unwrap();
    let mut session = Session::start(dir.path(), &[]);
    let ask = json!({ "files": ["a.txt"], "name": "flate" });
    let before = session.answer("slices", ask.clone());
    assert!(before.to_string().contains("inflate"), "{before}");
    let changed = fs::read_to_string(&path).unwrap().replace("inflate", "deflate");
    // Once in place, and once as another file.
    fs::write(&path, &changed).unwrap();
    let set_time = || {
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(old.modified().unwrap()).unwrap();
    };
    set_time();
    assert_eq!(fs::metadata(&path).unwrap().len(), old.len());
    assert!(session.answer("slices", ask.clone()).to_string().contains("deflate"));
    fs::write(dir.path().join("b"), changed.replace("deflate", "reflate")).unwrap();
    fs::rename(dir.path().join("b"), &path).unwrap();
    set_time();
    assert!(session.answer("slices", ask).to_string().contains("reflate"));
}

#[test]
fn keys_and_texts_leave_without_hidden_characters() {
    let dir = tempdir();
    let hidden = ["\u{fe0f}", "\u{e0101}", "\u{3164}", "\u{2067}", "\u{115f}"];
    let mut text = "# tracer: nop\n#\n".to_owned();
    for (at, hidden) in hidden.iter().enumerate() {
        for (us, marker) in [(at * 10, format!("B|7|a{hidden}b")), (at * 10 + 5, "E|7".to_owned())] {
            text +=
                &format!("   app-7     (      7) [000] ...1   100.{us:06}: tracing_mark_write: {marker}\n");
        }
    }
    fs::write(dir.path().join("a.txt"), text).unwrap();
    let mut session = Session::start(dir.path(), &[]);
    for (tool, arguments) in [
        ("slices", json!({ "files": ["a.txt"] })),
        ("info", json!({ "files": ["a.txt"] })),
        ("info", json!({ "files": [format!("none{}", hidden.concat())] })),
        (&format!("tool{}", hidden.concat()), json!({})),
        ("info", json!({ (format!("key{}", hidden.concat())): 1 })),
    ] {
        let answer = format!("{}", session.call(tool, arguments).unwrap_or_else(Value::from));
        assert!(!hidden.iter().any(|hidden| answer.contains(hidden)), "{tool}: {answer}");
    }
}
