//! `live FILE`: files that are complete, that grow, and that are none.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use support::growing_dat::GrowingFile;
use support::recorder_streams::DatParts;
use support::scenario::Random;
use support::{Child, Ran, tracebridge};

use super::feed::{frames, launch};

fn spawn(dir: &Path, args: &[&str]) -> Child {
    let mut command = tracebridge();
    command.arg("live").args(args).args(["--open", "none"]).current_dir(dir);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn live(dir: &Path, args: &[&str]) -> Ran {
    tracebridge().arg("live").args(args).args(["--open", "none"]).current_dir(dir).run()
}

#[test]
fn a_recording_that_is_complete_is_shown_and_ends() {
    let dir = support::tempdir();
    let dat = launch();
    std::fs::write(dir.path().join("x.dat"), &dat).unwrap();
    let ran = live(dir.path(), &["x.dat"]).exited(0);
    assert!(ran.said().contains("x.dat: http://127.0.0.1:"), "{}", ran.said());
    let stream = DatParts::of(&dat).stream(&mut Random(1)).concat();
    std::fs::write(dir.path().join("x.stream"), &stream).unwrap();
    live(dir.path(), &["x.stream"]).exited(0);
    // What is missing is told.
    std::fs::write(dir.path().join("cut.dat"), &dat[..dat.len() - 5000]).unwrap();
    let ran = live(dir.path(), &["cut.dat"]).exited(3);
    assert!(ran.said().contains("the file ends inside its pages"), "{}", ran.said());
}

/// The number of a page's address is in no argument of the browser, which every user of the machine sees, and
/// signals reach the browser.
#[cfg(target_os = "linux")]
#[test]
fn the_browser_is_led_to_the_page_by_a_file_of_the_user_alone() {
    let dir = support::tempdir();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("x.dat"), launch()).unwrap();
    let script = "#!/bin/sh\ncp \"$1\" page; echo \"$1\" >path; stat -c %a \"$1\" >mode; tr '\\0' '\\n' </proc/$$/cmdline >words
                  sed -n 's/^Sig\\(Blk\\|Ign\\):\\s*//p' /proc/$$/status >signals\n";
    support::write_program(&at("browser"), script);
    let mut command = tracebridge();
    command.args(["live", "x.dat"]).current_dir(dir.path()).env("BROWSER", at("browser"));
    let ran = command.run().exited(0);
    let text = ran.said();
    let address = text.lines().find_map(|line| line.strip_prefix("x.dat: ")).unwrap();
    let number = address.trim_end_matches('/').rsplit('/').next().unwrap();
    assert_eq!(number.len(), 32, "{text}");
    let read = |name: &str| std::fs::read_to_string(at(name)).unwrap();
    assert!(!read("words").contains(number), "{}", read("words"));
    assert!(read("page").contains(&format!("url={address}\"")), "{}", read("page"));
    assert_eq!(read("mode").trim(), "600");
    assert!(!Path::new(read("path").trim()).exists(), "the page is left");
    // Neither HUP nor INT nor TERM is blocked or ignored.
    let has_none = |mask: &str| u64::from_str_radix(mask, 16).unwrap() & 0x4003 == 0;
    assert!(read("signals").lines().all(has_none), "{}", read("signals"));
}

#[test]
fn a_recording_that_grows_is_shown_and_watched_for_conditions() {
    let dir = support::tempdir();
    let dat = frames(10);
    let parts = DatParts::of(&dat);
    let path = dir.path().join("x.dat");
    let mut file = GrowingFile::create(&path, &dat);
    let mut child =
        spawn(dir.path(), &["x.dat", "--until", "slice inflate > 3ms", "--after", "100ms", "--stop"]);
    let printed = child.collect_stderr();
    printed.line_with("http://127.0.0.1:");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    for (cpu, pages) in parts.cpus.iter().enumerate() {
        file.append(cpu, pages);
    }
    // It is not told to be complete: the condition ends it.
    assert_eq!(child.wait().unwrap().code(), Some(0), "{printed}");
    let files = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<String> = files.map(|path| path.display().to_string()).collect();
    assert!(
        files.iter().any(|name| name.ends_with(".pftrace") && name.contains("slice-inflate")),
        "{files:?}"
    );
}

#[test]
fn a_file_that_is_no_recording_or_no_file_is_an_error_that_says_what_can_be_followed() {
    let dir = support::tempdir();
    let at = |name: &str| dir.path().join(name);
    let dat = launch();
    std::fs::create_dir(at("dir")).unwrap();
    std::fs::write(at("random"), [0x5a; 3000]).unwrap();
    std::fs::write(at("short"), [0]).unwrap();
    File::create(at("sparse")).unwrap().set_len(4 << 30).unwrap();
    std::fs::write(at("y.dat.cpu0"), [0; 4096]).unwrap();
    std::fs::write(at("head.dat"), &dat[..2000]).unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/dat/v7-zstd.dat");
    std::fs::copy(golden, at("v7.dat")).unwrap();
    let mut version = dat.clone();
    version[10] = b'8';
    std::fs::write(at("v8.dat"), version).unwrap();
    let mut cases = vec![
        ("missing", "No such file"),
        ("dir", "is a directory"),
        ("random", "at byte 0: neither a trace.dat nor the stream of a recorder"),
        ("short", "at byte 0: neither a trace.dat nor the stream of a recorder"),
        ("sparse", "at byte 0: neither a trace.dat nor the stream of a recorder"),
        ("y.dat", "y.dat.cpu0 is there: trace-cmd writes the file itself when it ends"),
        ("head.dat", "cut at byte 2000"),
        ("v7.dat", "`tracebridge report`"),
        ("v8.dat", "version \"8\" is not known"),
    ];
    #[cfg(unix)]
    {
        nix::unistd::mkfifo(&at("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        cases.push(("fifo", "is no regular file"));
    }
    for (name, words) in cases {
        let ran = live(dir.path(), &[name]).exited(1);
        let said = ran.said();
        assert!(said.contains(&format!("{name}: ")) && said.contains(words), "{name}: {said}");
        assert!(!said.contains("http://"), "no page is begun: {said}");
    }
}

#[test]
fn a_file_that_stays_empty_is_an_error() {
    let dir = support::tempdir();
    File::create(dir.path().join("empty")).unwrap();
    let ran = live(dir.path(), &["empty"]).exited(1);
    assert!(ran.said().contains("empty: at byte 0: nothing has been written"), "{}", ran.said());
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_is_cut_while_it_is_followed_is_told_with_the_place() {
    let dir = support::tempdir();
    let dat = launch();
    let parts = DatParts::of(&dat);
    let stream = parts.stream(&mut Random(1)).concat();
    let stream = &stream[..stream.len() - 5000];
    let path = dir.path().join("x.stream");
    std::fs::write(&path, stream).unwrap();
    let mut child = spawn(dir.path(), &["x.stream"]);
    let printed = child.collect_stderr();
    printed.line_with("http://127.0.0.1:");
    let file = File::options().write(true).open(&path).unwrap();
    support::until("the file to be read", || is_at_end(child.id(), stream.len() as u64));
    file.set_len(1000).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{printed}");
    let said = printed.to_end();
    assert!(said.contains("x.stream: at byte 1000: the file was cut while it was followed"), "{said}");
}

/// Whether a process has read a file of this length to its end.
#[cfg(target_os = "linux")]
fn is_at_end(pid: u32, len: u64) -> bool {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fdinfo")) else { return false };
    let infos = entries.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
    let position =
        |info: String| info.lines().find_map(|line| line.strip_prefix("pos:")?.trim().parse().ok());
    infos.filter_map(position).any(|at: u64| at == len)
}
