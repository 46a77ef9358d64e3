//! `launch` and `adb launch` with stand-ins for Android's programs that know what those of a release know,
//! and refuse the rest as they do. The device's part is the real one: this program, as the device would run
//! it.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::adb::{Desk, abi};
use support::recorder_streams::DatParts;
use support::scenario::{Era, Random, Scenario};
use support::schemas::Documents;
use support::{Ran, tracebridge, until, write_program};

/// `am` of a release that knows the options `$KNOWN`. `$HERE` is the directory of what it needs, and gets a
/// log of the calls. An app that is not debuggable is not traced.
const AM: &str = r#"echo "am $*" >>HERE/calls
HOLD
known=" KNOWN "
case $1 in
start)
    if [ -e HERE/gone ]; then
        echo "Error type 3"
        echo "Error: Activity class {com.app/com.app.Main} does not exist."
        exit
    fi
    shift
    while [ $# -gt 0 ]; do
        case $1 in
            -S | -W | --activity-clear-task) ;;
            -n) shift ;;
            --start-profiler)
                if [ -e HERE/release ]; then
                    echo "Security exception: Process not debuggable: com.app"
                    exit
                fi
                shift
                echo "$1" >HERE/profile
                ;;
            --sampling | --clock-type | --profiler-output-version)
                case $known in *" $1 "*) shift ;; *) echo "Error: Unknown option: $1"; exit ;; esac
                ;;
            --streaming)
                case $known in *" $1 "*) ;; *) echo "Error: Unknown option: $1"; exit ;; esac
                ;;
            -*) echo "Error: Unknown option: $1"; exit ;;
        esac
        shift
    done
    for own in HERE/own*; do
        [ ! -e $own ] || cp $own HERE/apps/com.app/files/perfetto-2026-01-0${own##*own}-00-00-00.perfetto-trace
    done
    echo "Status: ok"
    echo "TotalTime: 300"
    ;;
profile) cp HERE/methods "$(cat HERE/profile)" ;;
esac"#;

/// Holds the call that the file `hold` tells by its number and its first words until there is a file `go`.
const HOLD: &str = r#"if [ -e HERE/hold ]; then
    read number call <HERE/hold
    case "${0##*/} $*" in
    "$call"*)
        if [ "$(grep -c "^$call" HERE/calls)" = "$number" ]; then
            : >HERE/held
            until [ -e HERE/go ]; do sleep 0.02; done
        fi
        ;;
    esac
fi"#;

/// A stand-in for `cmd`: `package resolve-activity` answers as that of Android 7 and newer.
const CMD: &str = r#"echo "cmd $*" >>HERE/calls
echo "priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=true"
echo "$6/.Main""#;

/// A release of Android: what `am start` knows beside `--start-profiler`, and whether it has `cmd`.
pub struct Release {
    name: &'static str,
    known: &'static str,
    has_cmd: bool,
}

/// Writes a program that a shell runs.
pub fn write_script(path: &Path, script: &str) {
    write_program(path, format!("#!/bin/sh\n{script}\n"));
}

/// Android's programs of this release, in the directory `here`.
pub fn install(release: &Release, here: &Path) {
    let script = |text: &str| {
        let text = text.replace("HOLD", HOLD).replace("HERE", here.to_str().unwrap());
        text.replace("KNOWN", release.known)
    };
    let bin = here.join("bin");
    write_script(&bin.join("am"), &script(AM));
    if release.has_cmd {
        write_script(&bin.join("cmd"), &script(CMD));
    }
    write_script(&bin.join("input"), &script(r#"echo "input $*" >>HERE/calls"#));
    let getprop = r#"echo "getprop $*" >>HERE/calls; [ "$1" != ro.build.version.release ] || echo RELEASE"#;
    write_script(&bin.join("getprop"), &script(getprop).replace("RELEASE", release.name));
    fs::write(here.join("methods"), "*version").unwrap();
}

/// The calls of Android's programs, `TRACE` in place of the method trace's path.
pub fn calls(here: &Path) -> Vec<String> {
    let text = fs::read_to_string(here.join("calls")).unwrap_or_default();
    let trace = |word: &str| if word.ends_with(".trace") { "TRACE".to_owned() } else { word.to_owned() };
    text.lines().map(|line| line.split(' ').map(trace).collect::<Vec<_>>().join(" ")).collect()
}

/// Runs `launch --no-record` of com.app with these flags against a release.
pub fn launch(release: &Release, flags: &str, here: &Path) -> Ran {
    install(release, here);
    let mut command = tracebridge();
    command.arg("--android-root").arg(here).args(["launch", "--no-record", "--json", "--settle", "0"]);
    command.args(flags.split_whitespace()).arg("-o").arg(here.join("x.dat")).arg("com.app");
    command.run()
}

const LOLLIPOP: Release = Release { name: "5.1", known: "--sampling", has_cmd: false };
const OREO: Release = Release { name: "8.0.0", known: "--sampling --streaming", has_cmd: true };
pub const TEN: Release = Release { name: "10", known: "--sampling --streaming", has_cmd: true };
const THIRTEEN: Release = Release { name: "13", known: "--sampling --streaming", has_cmd: true };
const ALL: &str = "--sampling --streaming --clock-type --profiler-output-version";
pub const FIFTEEN: Release = Release { name: "15", known: ALL, has_cmd: true };
const SIXTEEN: Release = Release { name: "16", known: ALL, has_cmd: true };

#[test]
fn each_release_gets_the_calls_that_it_knows() {
    const FIND: &str = "cmd package resolve-activity --brief -c android.intent.category.LAUNCHER com.app";
    const STOP: [&str; 2] = [FIND, "am force-stop com.app"];
    const END: &str = "am profile stop com.app";
    type Case =
        (&'static Release, &'static str, &'static [&'static str], &'static [&'static str], &'static str);
    // What is called before the start, and from the start on; the option that is refused.
    let cases: &[Case] = &[
        (
            &LOLLIPOP,
            "--sampling 1000",
            &["am force-stop com.app"],
            &["am start -S -W --start-profiler TRACE --sampling 1000 com.app", END],
            "",
        ),
        (
            &LOLLIPOP,
            "--streaming",
            &["am force-stop com.app"],
            &[
                "am start -S -W --start-profiler TRACE --streaming com.app",
                "getprop ro.build.version.release",
            ],
            "--streaming",
        ),
        (
            &OREO,
            "--streaming",
            &STOP,
            &["am start -S -W --start-profiler TRACE --streaming -n com.app/.Main", END],
            "",
        ),
        (&TEN, "", &STOP, &["am start -S -W --start-profiler TRACE -n com.app/.Main", END], ""),
        (
            &TEN,
            "--warm --no-profile",
            &[FIND, "am start -W -n com.app/.Main", "input keyevent HOME"],
            &["am start -W --activity-clear-task -n com.app/.Main"],
            "",
        ),
        (
            &THIRTEEN,
            "--clock-type dual",
            &STOP,
            &[
                "am start -S -W --start-profiler TRACE --clock-type dual -n com.app/.Main",
                "getprop ro.build.version.release",
            ],
            "--clock-type",
        ),
        (
            &FIFTEEN,
            "--streaming --clock-type dual --profiler-output-version 2",
            &STOP,
            &[
                "am start -S -W --start-profiler TRACE --streaming --clock-type dual --profiler-output-version 2 \
                 -n com.app/.Main",
                END,
            ],
            "",
        ),
        (
            &SIXTEEN,
            "--sampling 500 --clock-type thread-cpu --profiler-output-version 1",
            &STOP,
            &[
                "am start -S -W --start-profiler TRACE --sampling 500 --clock-type thread-cpu \
                 --profiler-output-version 1 -n com.app/.Main",
                END,
            ],
            "",
        ),
    ];
    std::thread::scope(|scope| {
        for (release, flags, before, from_start, refused) in cases {
            scope.spawn(move || {
                let here = support::tempdir();
                let output = launch(release, flags, here.path());
                let said = &output.stderr;
                let status = i32::from(!refused.is_empty());
                assert_eq!(output.code(), Some(status), "{} {flags}: {said}", release.name);
                assert_eq!(calls(here.path()), [*before, *from_start].concat(), "{} {flags}", release.name);
                if !refused.is_empty() {
                    let words = format!("Android {} does not know the option {refused}", release.name);
                    assert!(said.contains(&words), "{said}");
                }
            });
        }
    });
}

#[test]
fn an_app_that_android_does_not_trace_is_started_all_the_same() {
    let here = support::tempdir();
    fs::write(here.path().join("release"), "").unwrap();
    let ran = launch(&FIFTEEN, "", here.path()).exited(3);
    assert!(ran.stderr.contains("com.app is neither debuggable nor profileable by the shell"), "{ran}");
    let json = ran.json();
    assert_eq!(json["app_start"]["times"], serde_json::json!(["TotalTime: 300"]), "{json}");
    assert!(json["app_start"]["tracer_refused"].as_str().unwrap().contains("<profileable"), "{json}");
    let starts =
        ["am start -S -W --start-profiler TRACE -n com.app/.Main", "am start -S -W -n com.app/.Main"];
    assert_eq!(calls(here.path())[2..], starts);
}

#[test]
fn a_launch_without_an_end_is_given_up_and_its_profiler_stopped() {
    let here = support::tempdir();
    install(&TEN, here.path());
    write_script(
        &here.path().join("bin/am"),
        &format!("echo \"am $*\" >>{}/calls; [ $1 != start ] || exec sleep 600", here.path().display()),
    );
    let mut command = tracebridge();
    command.arg("--android-root").arg(here.path()).args(["launch", "--no-record", "-t", "300ms", "-o"]);
    let ran = command.arg(here.path().join("x.dat")).arg("com.app").run().exited(1);
    let words = "the recording ended (time) before the launch of com.app/.Main did";
    assert!(ran.stderr.contains(words), "{ran}");
    assert_eq!(calls(here.path()).last().map(String::as_str), Some("am profile stop com.app"));
}

/// A phone whose tracefs is closed, with com.app on it, and a desk.
pub struct Phone {
    pub desk: Desk,
    pub here: PathBuf,
}

/// The series of launches that [`Phone::ended_at`] ends, as its text tells of it.
const SERIES: u32 = 10;

/// When the app's own slice begins, ns: while the simulated device records.
const OWN_SLICE: u64 = support::scenario::START + 100_000_000;

impl Phone {
    pub fn new(release: &Release, app_type: &str) -> Option<Phone> {
        let desk = Desk::one()?;
        let here = desk.server.dir("S1");
        install(release, &here);
        let small = Scenario { length: 150_000_000, threads: 2, ..Scenario::new(21, Era::ArtMono) };
        let made = small.make();
        fs::write(here.join("methods"), &made.trace).unwrap();
        fs::write(desk.path("made.dat"), &made.dat).unwrap();
        for output in ["made.pftrace", "made.txt"] {
            let mut convert = tracebridge();
            convert.arg("convert").arg(desk.path("made.dat")).arg("-o").arg(here.join(output));
            convert.run().exited(0);
        }
        fs::remove_file(desk.path("made.dat")).unwrap();
        // The binary is this program, with the stand-ins in place of Android. This machine's tracefs is not
        // the phone's, and other tests use it meanwhile.
        let program = format!(
            "command=$1; shift; case $command in start|dump|stop|mark) set -- --tracefs {0}/closed \"$@\";; esac; \
             exec {1} --android-root {0} \"$command\" \"$@\"",
            here.display(),
            support::binary().display()
        );
        write_script(&desk.path("binaries").join(abi()).join("tracebridge"), &program);
        desk.has_program("su", "exit 1");
        desk.has_program("id", "echo 'uid=2000(shell) gid=2000(shell)'");
        let log = format!("echo \"${{0##*/}} $*\" >>{}/calls; ", here.display());
        let flags = "echo '    flags=[ HAS_CODE ]'; echo '    privateFlags=[ HAS_DOMAIN_URLS ]'";
        desk.has_program("dumpsys", &(log.clone() + flags));
        desk.has_program("simpleperf_app_runner", &format!("{log} echo {app_type}"));
        // It refuses what the real one does not know, and records until SIGTERM.
        let hold = HOLD.replace("HERE", here.to_str().unwrap());
        let perfetto = format!(
            "{log}\n{hold}\ncat >{0}/config; trap e=1 INT TERM; \
             echo '[1.2] perfetto_cmd.cc:1 Connected to the Perfetto traced service, starting tracing' >&2; \
             [ \"$1 $2 $3\" = '-c - -o' ] || exit 1; \
             while [ -z \"$e\" ]; do sleep 0.05; done; cp {0}/made.pftrace \"$4\"",
            here.display()
        );
        desk.has_program("perfetto", &perfetto);
        desk.has_program(
            "atrace",
            &format!("{log} [ $1 != --async_dump ] || cat {}/made.txt", here.display()),
        );
        let run_as = format!("[ $1 = com.app ] && cd {}/apps/$1 && shift && exec \"$@\"", here.display());
        desk.has_program("run-as", &run_as);
        for dir in ["perfetto", "apps/com.app/files"] {
            fs::create_dir_all(here.join(dir)).unwrap();
        }
        Some(Phone { desk, here })
    }

    /// Runs `adb launch com.app`, which must end with this status. Returns its text.
    #[track_caller]
    pub fn launch(&self, flags: &str, status: i32) -> String {
        self.desk.run(&format!("launch com.app --settle 0 {flags}")).exited(status).said()
    }

    /// Ends a series of launches while a call is held, which is told by its number and first words: sends
    /// SIGINT, waits until the device is told of it, and lets the call go on if `goes_on`.
    fn ended_at(&self, call: &str, goes_on: bool) -> Ran {
        fs::write(self.here.join("hold"), format!("{call}\n")).unwrap();
        let child = self.desk.start(&format!("launch com.app --settle 0 -n {SERIES} sched -o x.pftrace"));
        let held = self.here.join("held");
        until("the call that is held", || held.exists());
        child.send(Signal::SIGINT);
        let is_end = |command: &String| command.contains("kill -$s $p");
        until("the device to be told", || self.desk.server.commands().iter().any(is_end));
        if goes_on {
            fs::write(self.here.join("go"), "").unwrap();
        }
        let ran = child.finish();
        fs::write(self.here.join("go"), "").unwrap();
        ran
    }

    /// The launches whose output is here.
    fn outputs(&self) -> Vec<u32> {
        (1..=SERIES).filter(|run| self.desk.path(&format!("x-{run}.pftrace")).exists()).collect()
    }

    /// The calls of Android's programs that begin so.
    pub fn calls(&self, program: &str) -> Vec<String> {
        let mut calls = calls(&self.here);
        calls.retain(|call| call.starts_with(program));
        calls
    }

    /// The app writes a trace of its own when it starts: one slice of 5 ms.
    fn traces_itself(&self, name: &str, slice: &str) {
        let packets = [
            packet(
                OWN_SLICE,
                &[
                    varint_field(1, 77),
                    bytes_field(2, b"own"),
                    bytes_field(3, &[varint_field(1, 1000), bytes_field(6, b"com.app")].concat()),
                ]
                .concat(),
                60,
            ),
            packet(
                OWN_SLICE,
                &[varint_field(9, 1), varint_field(11, 77), bytes_field(23, slice.as_bytes())].concat(),
                11,
            ),
            packet(OWN_SLICE + 5_000_000, &[varint_field(9, 2), varint_field(11, 77)].concat(), 11),
        ];
        fs::write(self.here.join(name), packets.concat()).unwrap();
    }
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn varint_field(number: u64, value: u64) -> Vec<u8> {
    [varint(number << 3), varint(value)].concat()
}

fn bytes_field(number: u64, bytes: &[u8]) -> Vec<u8> {
    [&varint(number << 3 | 2)[..], &varint(bytes.len() as u64), bytes].concat()
}

/// A packet as androidx.tracing writes it: a time, a sequence, and a descriptor (60) or an event (11).
fn packet(timestamp: u64, content: &[u8], number: u64) -> Vec<u8> {
    bytes_field(1, &[varint_field(8, timestamp), varint_field(10, 1), bytes_field(number, content)].concat())
}

/// The output as Chrome's JSON text, for names.
pub fn events(desk: &Desk, file: &str) -> String {
    tracebridge().args(["convert", "--format", "chrome-json", "-o", "-"]).arg(desk.path(file)).run().stdout
}

#[test]
fn a_launch_on_a_phone_with_a_closed_tracefs_is_recorded_by_perfetto() {
    let Some(phone) = Phone::new(&FIFTEEN, "profileable") else { return };
    // One of an earlier start, which is none of this launch.
    let own = phone.here.join("apps/com.app/files/perfetto-2025-01-01-00-00-00.perfetto-trace");
    phone.traces_itself("old", "slice of an older start");
    fs::rename(phone.here.join("old"), own).unwrap();
    phone.traces_itself("own1", "slice of the app itself");
    let said = phone.launch("sched -o x.pftrace", 0);
    assert!(said.starts_with("com.app is profileable\n"), "{said}");
    assert!(
        said.contains("recorded by the device's own perfetto: tracefs is closed to adb's user"),
        "{said}"
    );
    assert!(said.contains("  TotalTime: 300\n") && !said.contains("method trace:"), "{said}");
    let events = events(&phone.desk, "x.pftrace");
    for name in ["com.example.app.Main", "slice of the app itself"] {
        assert!(events.contains(name), "no {name}");
    }
    assert!(!events.contains("older start"));
    // Exactly these calls, in this order.
    let id = phone.calls("perfetto")[0].rsplit('/').next().unwrap().to_owned();
    let perfetto = format!("perfetto -c - -o {}/perfetto/{id}", phone.here.display());
    let all = [
        "simpleperf_app_runner com.app --show-app-type".to_owned(),
        "dumpsys package com.app".to_owned(),
        perfetto,
        "cmd package resolve-activity --brief -c android.intent.category.LAUNCHER com.app".to_owned(),
        "am force-stop com.app".to_owned(),
        "am start -S -W --start-profiler TRACE -n com.app/.Main".to_owned(),
        "am profile stop com.app".to_owned(),
        "am send-trim-memory com.app RUNNING_CRITICAL".to_owned(),
    ];
    let mut made = calls(&phone.here);
    made.retain(|call| !call.starts_with("getprop"));
    assert_eq!(made, all);
    let config = fs::read(phone.here.join("config")).unwrap();
    let has = |text: &str| config.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("com.app") && has("sched/sched_switch") && !has("binder_driver"), "{config:?}");
    assert_eq!(fs::read_dir(phone.here.join("perfetto")).unwrap().count(), 0);
    assert!(!phone.here.join("tracebridge.d").exists());
}

#[test]
fn where_am_starts_nothing_that_is_said_first_and_last() {
    let Some(phone) = Phone::new(&FIFTEEN, "profileable") else { return };
    fs::write(phone.here.join("gone"), "").unwrap();
    let refusal = "nothing was launched: com.app/.Main did not start: Error type 3; Error: Activity class";
    let ran = phone.desk.run("launch com.app --settle 0 sched -o x.pftrace").exited(1);
    let said = ran.said();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines.iter().take(2).any(|line| line.starts_with(refusal)), "{said}");
    assert_eq!(said.matches("did not start").count(), 1, "{said}");
    assert_eq!(
        lines.last(),
        Some(&"nothing was launched: x.pftrace is what was recorded meanwhile"),
        "{said}"
    );
    assert!(!said.contains("main thread") && phone.desk.path("x.pftrace").is_file(), "{said}");
    let json: Value = serde_json::from_str(&phone.launch("sched --json -o y.pftrace", 1)).unwrap();
    assert!(json["not_launched"].as_str().unwrap().contains("Error type 3"), "{json}");
    assert_eq!(json["launch"], Value::Null, "{json}");
    // Of a series each launch that failed has a line, and the reason is said once.
    let said = phone.launch("sched -n 2 -o z.pftrace", 1);
    assert!(said.starts_with(refusal) && said.matches("does not exist").count() == 1, "{said}");
    for run in 1..3 {
        let line = format!("\nz-{run}.pftrace (perfetto, ");
        let line = said.split(&line).nth(1).and_then(|rest| rest.lines().next()).unwrap_or_default();
        assert!(line.ends_with("): nothing was launched"), "{said}");
    }
    assert_eq!(said.lines().last(), Some("nothing was launched: 2 launches failed"), "{said}");
    assert!(said.lines().count() < 12, "{said}");
    // One of three fails.
    let am = phone.here.join("bin/am");
    let gone = phone.here.join("gone").display().to_string();
    let script = fs::read_to_string(&am).unwrap();
    fs::write(&am, script.replace(&format!("[ -e {gone} ]"), &format!("rm {gone} 2>/dev/null"))).unwrap();
    let said = phone.launch("sched -n 3 -o w.pftrace", 1);
    assert_eq!(said.matches("): nothing was launched\n").count(), 1, "{said}");
    assert!(said.contains("\n2 launches, ") && said.ends_with("  1 launch failed\n"), "{said}");
}

#[test]
fn a_series_has_a_line_for_each_launch_and_a_note_once() {
    let Some(phone) = Phone::new(&FIFTEEN, "profileable") else { return };
    let said = phone.launch("sched -n 3 --no-profile -o x.pftrace", 0);
    assert_eq!(said.matches("recorded by the device's own perfetto").count(), 1, "{said}");
    assert!(!said.contains("TotalTime"), "{said}");
    for run in 1..4 {
        assert_eq!(said.matches(&format!("x-{run}.pftrace (perfetto, ")).count(), 1, "{said}");
    }
    assert!(said.lines().count() < 25, "{said}");
}

#[test]
fn a_series_that_is_ended_keeps_the_launches_that_were_made() {
    let cut_off = |made: u32| {
        let next = made + 1;
        format!(
            "ended by a signal after {made} of 10 launches: x-{next}.pftrace is what was recorded of the next one, which \
             does not count\n"
        )
    };
    // The held call, whether it goes on after the signal, the exit status, the last line, and the outputs.
    let cases = [
        ("1 am start", false, 1, cut_off(0), 1),
        ("3 am start", false, 0, cut_off(2), 3),
        // The launch has come to its end when the signal comes.
        ("3 am profile", true, 0, "ended by a signal after 3 of 10 launches\n".to_owned(), 3),
    ];
    std::thread::scope(|scope| {
        for (call, goes_on, status, last, outputs) in cases {
            scope.spawn(move || {
                let Some(phone) = Phone::new(&FIFTEEN, "profileable") else { return };
                let ran = phone.ended_at(call, goes_on).exited(status);
                assert!(ran.stdout.ends_with(&last), "{call}: {ran}");
                assert!(!ran.stdout.contains("failed"), "{call}: {ran}");
                assert_eq!(phone.outputs(), (1..=outputs).collect::<Vec<_>>(), "{call}: {ran}");
                assert!(!phone.here.join("tracebridge.d").exists(), "{call}");
            });
        }
    });
}

#[test]
fn a_series_that_is_ended_while_a_recorder_starts_keeps_the_launches_before() {
    let Some(phone) = Phone::new(&FIFTEEN, "profileable") else { return };
    let ran = phone.ended_at("3 perfetto", true).exited(0);
    // The launch itself may have come to its end all the same.
    let made = ["ended by a signal after 2 of 10 launches", "ended by a signal after 3 of 10 launches"];
    assert!(made.iter().any(|words| ran.stdout.contains(words)), "{ran}");
    assert!(phone.outputs().starts_with(&[1, 2]) && !phone.outputs().contains(&4), "{ran}");
    assert!(!phone.here.join("tracebridge.d").exists());
}

#[test]
fn what_adb_prints_as_json_has_the_form_of_the_published_schema() {
    let Some(mut documents) = Documents::new() else { return };
    let Some(phone) = Phone::new(&FIFTEEN, "profileable") else { return };
    let mut check =
        |line: &str| documents.add("adb", &mut phone.desk.adb(&line.split(' ').collect::<Vec<_>>()));
    for line in [
        "devices --json",
        "push --json",
        "list --json",
        "doctor --json",
        "launch com.app --settle 0 sched -o one.pftrace --json",
        "launch com.app --settle 0 sched -n 2 -o two.pftrace --json",
        "launch com.app --settle 0 sched --against com.app -o both.pftrace --json",
        "profile start com.app --json",
        "profile stop com.app -o methods.trace --json",
        "pull --json",
        "pull --resume --json",
        "pull --traces --app com.app --app com.none --to traces --json",
    ] {
        check(line);
    }
    // Each of these fails without a tracefs, and says so.
    for line in ["start sched --json", "dump -o x.dat --json", "stop --json", "mark --json instant x"] {
        check(line).exited(1);
    }
    fs::write(phone.here.join("gone"), "").unwrap();
    check("launch com.app --settle 0 sched -o none.pftrace --json");
    fs::write(phone.here.join("file"), "of the device").unwrap();
    check("pull file --json");
    check("clean --json");
    // The stand-in of another device sends its stream at once, and then its summary.
    let Some(desk) = Desk::one() else { return };
    let dat = fs::read(format!("{}/tests/golden/dat/v6.dat", env!("CARGO_MANIFEST_DIR"))).unwrap();
    desk.will_record(&DatParts::of(&dat).stream(&mut Random(1)).concat());
    fs::write(desk.server.dir("S1").join("end"), "").unwrap();
    let mut live = desk.adb(&["live", "sched", "--open", "none", "--json"]);
    assert!(live.run().exited(0).stdout.contains("\"saved\":[]"));
    documents.add("adb", &mut live);
    assert_eq!(documents.check(), 20);
}

#[test]
fn before_perfetto_atrace_records_a_launch() {
    let Some(phone) = Phone::new(&OREO, "") else { return };
    fs::remove_file(phone.here.join("bin/perfetto")).unwrap();
    let said = phone.launch("sched --streaming -o x.pftrace", 0);
    assert!(said.contains("recorded by the device's own atrace: tracefs is closed to adb's user"), "{said}");
    assert_eq!(
        phone.calls("atrace"),
        ["atrace --async_start -b 4096 -c -a com.app sched", "atrace --async_dump", "atrace --async_stop"]
    );
    assert!(events(&phone.desk, "x.pftrace").contains("com.example.app.Main"));
}

#[test]
fn a_launch_says_where_frame_timeline_was_not_recorded() {
    let Some(phone) = Phone::new(&FIFTEEN, "profileable") else { return };
    phone.desk.has_program("getprop", "[ $1 != ro.build.version.sdk ] || echo 35");
    let lacks = "FrameTimeline was not recorded: the deadlines of frames come from VSYNC's period";
    let said = phone.launch("sched -o x.pftrace", 0);
    assert!(!said.contains(lacks), "perfetto records it: {said}");
    let config = fs::read(phone.here.join("config")).unwrap();
    let name = b"android.surfaceflinger.frametimeline";
    assert!(config.windows(name.len()).any(|window| window == name));
    let said = phone.launch("sched --via atrace -o y.pftrace", 0);
    assert!(said.contains(lacks), "{said}");
    let json: Value =
        serde_json::from_str(&phone.launch("sched --via atrace --json -o z.pftrace", 0)).unwrap();
    assert_eq!(json["frame_timeline"], false, "{json}");
}

#[test]
fn what_android_does_not_trace_is_said_before_the_start_and_recorded_without() {
    let Some(phone) = Phone::new(&SIXTEEN, "non_profileable") else { return };
    let said = phone.launch("sched --sampling 1000 -o x.pftrace", 3);
    assert!(
        said.starts_with("no method trace: com.app is neither debuggable nor profileable by the shell"),
        "{said}"
    );
    assert_eq!(phone.calls("am start"), ["am start -S -W -n com.app/.Main"]);
    let json = phone.launch("sched --no-profile --json -o y.pftrace", 0);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["via"], &json["method_tracing"]), (&"perfetto".into(), &Value::Null), "{json}");
    assert_eq!(phone.calls("dumpsys").len(), 1, "--no-profile asks nothing");
}
