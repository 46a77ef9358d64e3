//! Faults at random moments of commands that record: signals, errors of the disk and of tracefs, limits,
//! other programs at the same buffer.

use support::Command;

use crate::recording::record;
use crate::tracefs_fixture::{Knobs, Recorder, machine, wait_for_tracing};
use support::{inject_faults, tracebridge};

/// The faults of one run, about a minute; docs/faults.md says how to inject more.
const COUNT: u32 = 60;

/// The script takes the machine's tracefs for some recordings at a time, so this test must not hold it.
#[test]
fn recording_commands_put_the_settings_back_after_faults_at_random_moments() {
    inject_faults("recording", COUNT);
}

#[test]
fn a_capture_whose_recorder_was_killed_says_that_it_is_not_finished() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let mut recorder =
        Recorder::start(record(&machine, dir.path(), &["sched", "--mode", "ring", "-t", "600"]), dir.path());
    wait_for_tracing(&machine.root);
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let restored = tracebridge().arg("restore").arg("--state-dir").arg(dir.path()).output().unwrap();
    assert_eq!(restored.status.code(), Some(0), "{restored:?}");
    let info = tracebridge().arg("info").arg(dir.path().join("x.dat")).output().unwrap();
    assert_eq!(info.status.code(), Some(3), "{info:?}");
    assert!(String::from_utf8_lossy(&info.stdout).contains("the recorder was killed"), "{info:?}");
}

#[test]
fn a_stream_whose_reader_has_gone_before_its_head_is_a_failure() {
    let Some(machine) = machine() else { return };
    let (dir, before) = (support::tempdir(), Knobs::read(&machine.root));
    let mut command = tracebridge();
    command.args(["record", "sched", "-t", "0.1", "-o", "-", "--tracefs"]).arg(&machine.root);
    command.arg("--state-dir").arg(dir.path());
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let out = command.stdout(writer).output().unwrap();
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    assert!(
        String::from_utf8_lossy(&out.stderr).contains("the reader of the stream has gone away"),
        "{out:?}"
    );
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

/// With six descriptors the recorder could open, but not look again at its file of saved settings, and tried
/// for ever.
#[test]
fn a_recorder_with_few_file_descriptors_ends_and_changes_no_setting() {
    let Some(machine) = machine() else { return };
    let before = Knobs::read(&machine.root);
    // With fewer descriptors the dynamic linker does not start a program.
    for limit in 6..14 {
        let dir = support::tempdir();
        let output = Command::new("sh")
            .args(["-c", &format!("ulimit -n {limit}; exec \"$@\""), "sh"])
            .arg(support::binary())
            .args(["record", "sched", "-t", "0.1", "--tracefs"])
            .arg(&machine.root)
            .arg("--state-dir")
            .arg(dir.path())
            .arg("-o")
            .arg(dir.path().join("x.dat"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{limit}: {}: {said}", output.status);
        assert_eq!(before.changed(&machine.root), Vec::<String>::new(), "{limit}: {said}");
    }
}
