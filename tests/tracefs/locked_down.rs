//! A locked-down device in miniature: another user, who may use only the files that the shell of a phone may
//! use. Modes alone stand for SELinux here; the emulated device has the rules themselves (tests/device).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use support::Command;

use crate::recording::{Busy, events, reported};
use crate::tracefs_fixture::{Knobs, machine};

/// The user id of Android's `shell`.
pub const SHELL: u32 = 2000;

/// The files that a user build of Android labels `debugfs_tracing`, below the root of tracefs; `*` stands for
/// every CPU.
const FILES: [&str; 10] = [
    "tracing_on",
    "trace",
    "trace_clock",
    "buffer_percent",
    "buffer_size_kb",
    "events/header_page",
    "options/overwrite",
    "options/print-tgid",
    "options/record-tgid",
    "saved_cmdlines_size",
];
const DIRS: [&str; 5] = [
    "events/sched/sched_switch",
    "events/sched/sched_wakeup",
    "events/sched/sched_waking",
    "events/ftrace/print",
    "per_cpu/*",
];

/// Files and directories whose modes were changed, with their old modes, which are put back on drop.
struct Opened(Vec<(PathBuf, u32)>);

impl Opened {
    /// Lets every user list and search a directory, or read and write a file.
    fn let_in(&mut self, path: &Path) {
        let Ok(meta) = fs::metadata(path) else { return };
        self.add(path, if meta.is_dir() { 0o005 } else { 0o006 });
    }

    /// Adds bits to the mode of a file or directory.
    fn add(&mut self, path: &Path, more: u32) {
        let Ok(meta) = fs::metadata(path) else { return };
        let mode = meta.permissions().mode() & 0o7777;
        if fs::set_permissions(path, fs::Permissions::from_mode(mode | more)).is_ok() {
            self.0.push((path.to_owned(), mode));
        }
    }

    fn all_in(&mut self, dir: &Path) {
        self.let_in(dir);
        fs::read_dir(dir).into_iter().flatten().flatten().for_each(|e| self.let_in(&e.path()));
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        for (path, mode) in self.0.iter().rev() {
            let _ = fs::set_permissions(path, fs::Permissions::from_mode(*mode));
        }
    }
}

fn like_a_phone(root: &Path) -> Opened {
    let mut opened = Opened(Vec::new());
    for dir in ["", "options", "events", "events/sched", "events/ftrace", "per_cpu"] {
        opened.let_in(&root.join(dir));
    }
    FILES.iter().for_each(|file| opened.let_in(&root.join(file)));
    for dir in DIRS {
        match dir.strip_suffix("/*") {
            Some(dir) => {
                fs::read_dir(root.join(dir)).unwrap().flatten().for_each(|e| opened.all_in(&e.path()));
            }
            None => opened.all_in(&root.join(dir)),
        }
    }
    // AOSP's atrace.rc opens the `enable` of this group, and not those of its events.
    let group = root.join("events/irq");
    opened.let_in(&group);
    opened.let_in(&group.join("enable"));
    for event in fs::read_dir(&group).unwrap().flatten().filter(|e| e.path().is_dir()) {
        opened.add(&event.path(), 0o005);
        ["enable", "format", "filter"].iter().for_each(|file| opened.add(&event.path().join(file), 0o004));
    }
    opened
}

/// Opens `dir` to every user, and copies the binary there: the build directory may be closed to other users.
pub fn for_everybody(dir: &Path) -> PathBuf {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).unwrap();
    let program = dir.join("tracebridge");
    support::write_program(&program, fs::read(support::binary()).unwrap());
    program
}

#[test]
fn the_shell_of_a_locked_down_device_records_sched() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let program = for_everybody(dir.path());
    let as_shell = |args: &[&str]| {
        let mut command = Command::new(&program);
        command.args(args).arg("--tracefs").arg(&machine.root).uid(SHELL).gid(SHELL).current_dir(dir.path());
        command.run()
    };
    let capture = dir.path().join("x.dat");
    let state = dir.path().to_str().unwrap();
    let args =
        ["record", "sched", "-t", "1", "--json", "--state-dir", state, "-o", capture.to_str().unwrap()];

    let refused = as_shell(&args);
    assert_eq!(refused.code(), Some(1), "nothing is permitted yet: {refused:?}");

    let before = Knobs::read(&machine.root);
    let opened = like_a_phone(&machine.root);
    let busy = Busy::start();
    let out = as_shell(&args);
    let irq = [&args[..1], &["irq", "sched"], &args[2..]].concat();
    let group = as_shell(&irq);
    let again = as_shell(&irq);
    drop(busy);
    let doctor = as_shell(&["doctor"]);
    drop(opened);
    assert_eq!(out.code(), Some(0), "{out:?}");
    assert!(events(&out.json()) > 100, "{out:?}");
    assert_eq!(before.changed(&machine.root), [""; 0]);
    // The capture is the last recording's.
    if let Some(lines) = reported(&capture) {
        assert_eq!(lines, events(&again.json()));
    }
    // The summary's notes name each knob that was refused.
    let notes = out.json()["notes"].to_string();
    assert!(notes.contains("record-cmd") && notes.contains("refused by owner and mode (root:"), "{notes}");
    for irq in [group, again] {
        // Nothing is left behind that would keep the second one out.
        assert_eq!((irq.code(), &*irq.stderr), (Some(0), ""), "{irq:?}");
        assert!(events(&irq.json()) > 100, "{irq:?}");
    }
    let formats = fs::read(&capture).unwrap();
    let name = b"name: irq_handler_entry\n";
    assert!(formats.windows(name.len()).any(|w| w == name), "the group's events are recorded");
    let told = &doctor.stdout;
    assert!(told.contains("set_event") || told.contains("current_tracer"), "{told}");
}
