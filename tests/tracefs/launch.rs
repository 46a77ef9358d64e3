//! `launch`: the start of an app, with stand-ins for Android's programs, and the ways in which it fails.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use support::{Command, Ran, until};

use nix::sys::signal::Signal;

use crate::tracefs_fixture::{Knobs, Machine, Recorder, machine};
use crate::wrap::{command, markers};

/// Makes stand-ins for Android's `am` and `cmd`, which log their arguments. `am start` writes a marker as the
/// app would, and `am profile stop` writes the method trace.
fn android(machine: &Machine) -> tempfile::TempDir {
    let dir = support::tempdir();
    let root = machine.root.display();
    let script = format!(
        r#"mkdir bin && cat >bin/am <<'END'
#!/bin/sh
cd "$(dirname "$0")/.."; echo "am $*" >>log
case $1 in
start) echo "B|$$|bindApplication" >{root}/trace_marker; echo E >{root}/trace_marker; echo "$5" >profile
    echo "Status: ok"; echo "TotalTime: 512";;
profile) (sleep 0.3; printf '*version' >"$(cat profile)") & ;;
esac
END
printf '#!/bin/sh\necho priority=0; echo "$6/.Main"\n' >bin/cmd; chmod 755 bin/*"#
    );
    assert!(Command::new("sh").args(["-c", &script]).current_dir(dir.path()).status().unwrap().success());
    dir
}

#[test]
fn an_apps_start_is_recorded_with_its_method_trace_beside_it() {
    let Some(machine) = machine() else { return };
    let before = Knobs::read(&machine.root);
    let android = android(&machine);
    let capture = android.path().join("start.dat");
    let mut launch = command(&machine, android.path(), "launch");
    launch
        .arg("--android-root")
        .arg(android.path())
        .args(["com.app", "sched", "--settle", "0", "-o"])
        .arg(&capture);
    let out = launch.run().exited(0);
    let said = &out.stderr;
    assert!(said.contains("TotalTime: 512") && said.contains("start.trace (8 bytes)"), "{said}");
    let log = fs::read_to_string(android.path().join("log")).unwrap();
    let profile = android.path().join("start.trace");
    let expected = format!(
        "am force-stop com.app\nam start -S -W --start-profiler {} -n com.app/.Main\nam profile stop com.app\n",
        profile.display()
    );
    assert_eq!(log, expected);
    assert!(markers(&capture).iter().any(|m| m.ends_with("|bindApplication")));
    assert_eq!(before.changed(&machine.root), Vec::<String>::new());
}

/// `launch` with another `am` than that of [`android`]: a shell script with this body, which logs its
/// arguments.
struct Launch {
    android: tempfile::TempDir,
    knobs: Knobs,
    command: Command,
}

impl Launch {
    fn new(machine: &Machine, am: &str) -> Launch {
        let knobs = Knobs::read(&machine.root);
        let android = android(machine);
        let script = format!("#!/bin/sh\necho \"am $*\" >>{}/log\n{am}\n", android.path().display());
        support::write_program(&android.path().join("bin/am"), script);
        let mut command = command(machine, android.path(), "launch");
        command.arg("--android-root").arg(android.path()).arg("-o").arg(android.path().join("start.dat"));
        Launch { android, knobs, command }
    }

    fn capture(&self) -> PathBuf {
        self.android.path().join("start.dat")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.android.path().join("log")).unwrap_or_default()
    }

    /// Checks that `launch` failed with this message and left no setting changed.
    fn failed(&self, machine: &Machine, out: &Ran, said: &str) {
        assert_eq!(out.code(), Some(1), "{out:?}");
        let stderr = &out.stderr;
        assert!(stderr.contains(said), "{stderr}");
        assert_eq!(self.knobs.changed(&machine.root), [""; 0]);
        let names = fs::read_dir(self.android.path()).unwrap().flatten().map(|entry| entry.file_name());
        assert!(!names.into_iter().any(|name| name.to_string_lossy().ends_with(".saved")));
    }
}

/// An `am start` that does not return, as for an app that waits for a debugger.
const HANGS: &str = "case $1 in start) exec sleep 6000;; esac";

#[test]
fn an_app_that_does_not_start_is_a_failure() {
    let Some(machine) = machine() else { return };
    let mut launch = Launch::new(&machine, "echo 'Error type 3'");
    let out = launch.command.args(["com.app/.Main", "sched"]).run();
    launch.failed(&machine, &out, "com.app/.Main did not start: Error type 3");
    assert!(!launch.log().contains("am profile"), "there is nothing to stop");
}

#[test]
fn an_app_that_is_not_installed_is_an_error_before_anything_is_done() {
    let Some(machine) = machine() else { return };
    let mut launch = Launch::new(&machine, "");
    fs::write(launch.android.path().join("bin/cmd"), "#!/bin/sh\necho No activity found\n").unwrap();
    let out = launch.command.args(["com.none", "sched"]).run();
    launch.failed(&machine, &out, "com.none has no activity to start (No activity found): is it installed?");
    assert_eq!(launch.log(), "");
    assert!(!launch.capture().exists());
}

#[test]
fn launch_on_a_linux_without_android_is_an_error() {
    let Some(machine) = machine() else { return };
    let mut launch = Launch::new(&machine, "");
    launch.command = command(&machine, launch.android.path(), "launch");
    let out = launch.command.args(["com.app", "sched"]).run();
    launch.failed(&machine, &out, "starting an app needs Android");
}

#[test]
fn a_launch_that_does_not_end_is_given_up_when_the_time_is_over() {
    let Some(machine) = machine() else { return };
    let mut launch = Launch::new(&machine, HANGS);
    let out = launch.command.args(["com.app/.Main", "sched", "-t", "1"]).run();
    launch.failed(&machine, &out, "the recording ended (time) before the launch of com.app/.Main did");
    // The profiler and the recording are stopped, and the capture holds the events until then.
    assert!(launch.log().ends_with("am profile stop com.app\n"), "{}", launch.log());
    assert!(crate::recording::reported(&launch.capture()).is_none_or(|events| events > 0));
}

#[test]
fn ctrl_c_in_the_middle_of_a_launch_stops_both() {
    let Some(machine) = machine() else { return };
    let mut launch = Launch::new(&machine, HANGS);
    launch.command.args(["com.app/.Main", "sched"]).stderr(Stdio::piped());
    let command = std::mem::replace(&mut launch.command, Command::new("true"));
    let recorder = Recorder::start(command, launch.android.path());
    until("the call of am start", || launch.log().contains("am start"));
    recorder.signal(Signal::SIGINT);
    let out = recorder.finish();
    launch.failed(
        &machine,
        &out,
        "the recording ended (signal SIGINT) before the launch of com.app/.Main did",
    );
    assert!(launch.log().ends_with("am profile stop com.app\n"), "{}", launch.log());
    assert!(launch.capture().exists());
}

#[test]
fn a_start_can_be_recorded_without_the_profiler() {
    let Some(machine) = machine() else { return };
    let mut launch = Launch::new(&machine, "case $1 in start) echo Status: ok;; esac");
    launch.command.args(["com.app/.Main", "sched", "--settle", "0", "--no-profile"]);
    launch.command.run().exited(0);
    assert_eq!(launch.log(), "am force-stop com.app\nam start -S -W -n com.app/.Main\n");
}

#[test]
fn the_clock_and_the_format_of_the_method_trace_reach_am() {
    let Some(machine) = machine() else { return };
    let mut launch = Launch::new(&machine, STARTS);
    let options = ["--streaming", "--clock-type", "dual", "--profiler-output-version", "2", "--settle", "0"];
    launch.command.args(["com.app/.Main", "sched"]).args(options).run().exited(0);
    let trace = launch.android.path().join("start.trace");
    let log = format!(
        "am force-stop com.app\nam start -S -W --start-profiler {} --streaming --clock-type dual \
         --profiler-output-version 2 -n com.app/.Main\nam profile stop com.app\n",
        trace.display()
    );
    assert_eq!(launch.log(), log);
}

/// An `am` that starts the app and writes its method trace.
const STARTS: &str = "cd \"$(dirname \"$0\")/..\"; case $1 in start) echo 'Status: ok'; echo 'TotalTime: 512';; \
                      profile) printf trace >start.trace;; esac";

#[test]
fn an_option_that_an_older_android_does_not_know_is_named_with_its_release() {
    let Some(machine) = machine() else { return };
    let am = "case $1 in start) echo 'Error: Unknown option: --profiler-output-version';; esac";
    let mut launch = Launch::new(&machine, am);
    let write = r#"cd "$0"; printf '#!/bin/sh\ncase $1 in ro.build.version.release) echo 13;; esac\n' >getprop
        printf '#!/bin/sh\n' >setprop; chmod 755 getprop setprop"#;
    let bin = launch.android.path().join("bin");
    assert!(Command::new("sh").arg("-c").arg(write).arg(&bin).status().unwrap().success());
    let out = launch.command.args(["com.app/.Main", "sched", "--profiler-output-version", "2"]).run();
    let said = "Android 13 does not know the option --profiler-output-version of its `am`: leave it out";
    launch.failed(&machine, &out, said);
}

/// An `am` with the always-on tracer, in whose process the app is there 0.3 s after its start has begun.
const HAS_ALWAYS_ON: &str = "cd \"$(dirname \"$0\")/..\"; case \"$1 $2 $3\" in \
    start*) sleep 0.3; touch running; sleep 0.3; echo 'Status: ok';; \
    'profile lowoverhead start') test -e running || echo 'PROFILE FAILED on process com.app';; \
    'profile lowoverhead stop') for file; do :; done; printf trace >\"$file\";; esac";

#[test]
fn a_warm_start_leaves_the_process_alone() {
    let Some(machine) = machine() else { return };
    let mut launch = Launch::new(&machine, "echo 'Status: ok'");
    let write = r#"printf '#!/bin/sh\ncd "$(dirname "$0")/.."; echo "input $*" >>log\n' >bin/input; chmod 755 bin/input"#;
    let dir = launch.android.path();
    assert!(Command::new("sh").args(["-c", write]).current_dir(dir).status().unwrap().success());
    let args = ["com.app/.Main", "sched", "--settle", "0", "--no-profile", "--warm"];
    launch.command.args(args).run().exited(0);
    assert_eq!(
        launch.log(),
        "am start -W -n com.app/.Main\ninput keyevent HOME\n\
         am start -W --activity-clear-task -n com.app/.Main\n"
    );
}

#[test]
fn the_always_on_tracer_starts_as_soon_as_the_process_is_there() {
    let Some(machine) = machine() else { return };
    for (option, start) in [
        ("--long-running", "lowoverhead start --longrunning --duration 30000 com.app"),
        ("--low-overhead", "lowoverhead start com.app"),
    ] {
        let mut launch = Launch::new(&machine, HAS_ALWAYS_ON);
        let args = ["com.app/.Main", "sched", "-t", "30", "--settle", "0", option];
        launch.command.args(args).run().exited(0);
        let log = launch.log();
        let trace = launch.android.path().join("start.trace");
        let calls: Vec<&str> = log.lines().collect();
        let starts = calls.iter().filter(|call| **call == format!("am profile {start}")).count();
        assert!(starts > 1, "until the process is there the tracer is refused: {log}");
        assert!(calls.contains(&"am start -S -W -n com.app/.Main"), "{log}");
        let stop = format!("am profile lowoverhead stop com.app {}", trace.display());
        assert_eq!(calls.last(), Some(&stop.as_str()));
        assert_eq!(fs::read(trace).unwrap(), b"trace");
    }
}

#[test]
fn a_build_without_the_always_on_tracer_is_told_and_the_capture_is_there() {
    let Some(machine) = machine() else { return };
    let am = "case \"$1 $2\" in start*) echo 'Status: ok';; profile*) echo 'Error: unknown command';; esac";
    let mut launch = Launch::new(&machine, am);
    let args = ["com.app/.Main", "sched", "--settle", "0", "--low-overhead"];
    let out = launch.command.args(args).run().exited(3);
    let said = &out.stderr;
    let expected = "the always-on tracer did not start in com.app: Error: unknown command. Few builds of Android have it";
    assert!(said.contains(expected), "{said}");
    assert!(!launch.log().contains("lowoverhead stop"), "{}", launch.log());
    assert!(launch.capture().exists());
    assert_eq!(launch.knobs.changed(&machine.root), [""; 0]);
}
