//! `wrap` and `launch`: a recording around something else.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::machine::{Knobs, Machine, expand, machine};
use crate::support::tracebridge;

/// The markers of a capture, as text.
fn markers(capture: &Path) -> Vec<String> {
    let out =
        tracebridge().args(["convert", "--format", "systrace", "-o", "-"]).arg(capture).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let marker = |line: &str| Some(line.split_once("tracing_mark_write: ")?.1.trim().to_owned());
    text.lines().filter_map(marker).collect()
}

fn command(machine: &Machine, dir: &Path, name: &str) -> Command {
    let mut command = tracebridge();
    command.arg(name).arg("--tracefs").arg(&machine.root).arg("--state-dir").arg(dir);
    command
}

#[test]
fn a_command_is_recorded_inside_of_its_section_and_its_status_passed_on() {
    let Some(machine) = machine() else { return };
    expand(&machine.root);
    let before = Knobs::read(&machine.root);
    let dir = tempfile::tempdir().unwrap();
    let capture = dir.path().join("x.dat");
    let mut wrap = command(&machine, dir.path(), "wrap");
    let out =
        wrap.arg("-o").arg(&capture).args(["sched", "--", "sh", "-c", "echo out; exit 7"]).output().unwrap();
    assert_eq!((out.status.code(), &out.stdout[..]), (Some(7), &b"out\n"[..]), "{out:?}");
    assert!(String::from_utf8_lossy(&out.stderr).contains("the command ended"), "{out:?}");
    let markers = markers(&capture);
    let kinds: Vec<&str> = markers.iter().filter_map(|m| m.get(..1)).collect();
    assert_eq!(kinds, ["B", "S", "F", "E"], "{markers:?}");
    assert!(markers[0].ends_with("|sh"));
    assert_eq!(before.changed(&machine.root), Vec::<String>::new());
}

#[test]
fn a_command_ended_by_a_signal_says_so_as_a_shell_does() {
    let Some(machine) = machine() else { return };
    let mut wrap = tracebridge();
    wrap.args(["wrap", "--no-record", "--tracefs"]).arg(&machine.root);
    assert_eq!(wrap.args(["--", "sh", "-c", "kill -9 $$"]).status().unwrap().code(), Some(137));
    let mut missing = tracebridge();
    missing.args(["wrap", "--no-record", "--tracefs"]).arg(&machine.root);
    assert_eq!(missing.args(["--", "/no/such"]).output().unwrap().status.code(), Some(1));
}

/// Stand-ins for Android's `am` and `cmd`, which log how they were called. The stand-in of `am start` marks the trace
/// as the app would; that of `am profile stop` writes the method trace.
fn android(machine: &Machine) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
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
    expand(&machine.root);
    let before = Knobs::read(&machine.root);
    let android = android(&machine);
    let capture = android.path().join("start.dat");
    let mut launch = command(&machine, android.path(), "launch");
    launch
        .env("ANDROID_ROOT", android.path())
        .args(["com.app", "sched", "--settle", "0", "-o"])
        .arg(&capture);
    let out = launch.output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let said = String::from_utf8_lossy(&out.stderr);
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

#[test]
fn an_app_that_does_not_start_is_a_failure() {
    let Some(machine) = machine() else { return };
    let android = android(&machine);
    fs::write(android.path().join("bin/am"), "#!/bin/sh\necho 'Error type 3'\n").unwrap();
    let capture = android.path().join("start.dat");
    let mut launch = command(&machine, android.path(), "launch");
    launch.env("ANDROID_ROOT", android.path()).args(["com.app/.Main", "sched", "-o"]).arg(&capture);
    let out = launch.output().unwrap();
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    assert!(
        String::from_utf8_lossy(&out.stderr).contains("com.app/.Main did not start: Error type 3"),
        "{out:?}"
    );
}
