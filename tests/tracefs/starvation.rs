//! A recorder that many other programs compete with for the CPUs.

use std::process::Stdio;
use support::{Child, Command};

use crate::recording::{record, summary};
use crate::tracefs_fixture::{Knobs, machine};

/// Programs that are ended when the value is dropped.
struct Load(Vec<Child>);

impl Load {
    fn start(&mut self, program: &str, args: &[&str]) {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.0.push(command.spawn().unwrap());
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn a_recorder_beside_six_busy_loops_loses_nothing() {
    let Some(machine) = machine() else { return };
    let (dir, before) = (support::tempdir(), Knobs::read(&machine.root));
    let mut load = Load(Vec::new());
    (0..6).for_each(|_| load.start("sh", &["-c", "while :; do :; done"]));
    // Each byte is two system calls, and each of them two events.
    (0..2).for_each(|_| load.start("dd", &["if=/dev/zero", "of=/dev/null", "bs=1"]));
    let run = |args: &[&str]| {
        let out = record(&machine, dir.path(), &[&["sched", "raw_syscalls/*", "-b", "20480"], args].concat());
        let out = { out }.output().unwrap();
        let told = summary(&out);
        (out.status.code(), told)
    };
    let (status, told) = run(&["-t", "2"]);
    assert_eq!(told["scheduling"], "real-time 1", "{told}");
    assert_eq!(status, Some(0), "{told}");
    let (_, told) = run(&["-t", "0.1", "--nice", "-5"]);
    assert_eq!(told["scheduling"], "nice -5", "{told}");
    let (_, told) = run(&["-t", "0.1", "--nice", "0"]);
    assert_eq!(told["scheduling"], "nice 0", "{told}");
    drop(load);
    assert_eq!(before.changed(&machine.root), [""; 0]);
}
