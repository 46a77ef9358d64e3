//! Every mode of recording leaves every readable knob as it was, also a knob that did not have the kernel's
//! own value.

use std::fs;

use nix::sys::signal::Signal;

use crate::recording::Busy;
use crate::tracefs_fixture::{Knobs, Machine, Recorder, machine, wait_for_tracing, written};
use support::tracebridge;

/// Settings that differ from the kernel's own, so that the test can tell restoring from resetting. Put back
/// on drop.
struct Unusual<'a>(&'a Machine, Vec<(&'static str, String)>);

impl<'a> Unusual<'a> {
    fn set(machine: &'a Machine) -> Unusual<'a> {
        let knobs = [
            ("tracing_on", "0"),
            ("trace_clock", "mono"),
            ("buffer_size_kb", "2000"),
            ("options/overwrite", "0"),
            ("options/record-tgid", "1"),
            ("saved_cmdlines_size", "1000"),
            ("events/sched/sched_switch/filter", "prev_pid == 1"),
            ("events/sched/sched_process_fork/enable", "1"),
            ("events/irq/softirq_raise/enable", "1"),
        ];
        let mut were = Vec::new();
        for (knob, value) in knobs {
            let path = machine.root.join(knob);
            let shown = fs::read_to_string(&path).unwrap();
            were.push((knob, written(&shown).to_owned()));
            fs::write(&path, value).unwrap_or_else(|e| panic!("{knob}: {e}"));
        }
        Unusual(machine, were)
    }
}

impl Drop for Unusual<'_> {
    fn drop(&mut self) {
        for (knob, was) in self.1.iter().rev() {
            let _ = fs::write(self.0.root.join(knob), was);
        }
    }
}

/// Stands for the name of an instance.
const INSTANCE: &str = "INSTANCE";

/// Arguments, and the exit statuses that a run with them may have (3 where a busy machine may lose events).
const MODES: [(&[&str], &[i32]); 16] = [
    (&["record", "sched", "-t", "0.1", "-o", "x.dat"], &[0]),
    (&["record", "sched", "--compress", "-t", "0.1", "-o", "x.dat"], &[0]),
    (&["record", "sched", "--mode", "ring", "-b", "64", "-t", "0.1", "-o", "x.dat"], &[0]),
    (&["record", "sched", "irq/*", "--mode", "fill", "-b", "64", "-t", "0.5", "-o", "x.dat"], &[0]),
    (&["record", "sched", "-t", "0.1", "-o", "-"], &[0]),
    (&["record", "sched", "--max-size", "64k", "-b", "64", "-t", "2", "-o", "x.dat"], &[0, 3]),
    (&["record", "sched", "--instance", INSTANCE, "-t", "0.1", "-o", "x.dat"], &[0]),
    (&["record", "sched", "-a", "com.example.*", "-t", "0.1", "-o", "x.dat"], &[0]),
    (&["record", "sched/sched_switch:prev_pid==2||next_pid==2", "-t", "0.1", "-o", "x.dat"], &[0]),
    (&["record", "sched", "--exclude-self", "--clock", "global", "-t", "0.1", "-o", "x.dat"], &[0]),
    // These fail before, while, and after the recorder sets the kernel up.
    (&["record", "no_such_category", "-o", "x.dat"], &[1]),
    (&["record", "sched", "--clock", "sundial", "-o", "x.dat"], &[1]),
    (&["record", "sched/sched_switch:nonsense==", "-o", "x.dat"], &[1]),
    (&["record", "sched", "-k", "no_such_function", "-o", "x.dat"], &[1]),
    (&["record", "sched", "-o", "/no/such/directory/x.dat"], &[1]),
    (&["record", "sched", "--instance", "a/b", "-o", "x.dat"], &[1]),
];

#[test]
fn every_mode_leaves_every_knob_as_it_was() {
    let Some(machine) = machine() else { return };
    let usual = Knobs::read(&machine.root);
    for unusual in [false, true] {
        let set = unusual.then(|| Unusual::set(&machine));
        let before = Knobs::read(&machine.root);
        let dir = support::tempdir();
        let command = |args: &[&str]| {
            let mut command = tracebridge();
            command.args(args).arg("--tracefs").arg(&machine.root).arg("--state-dir").arg(dir.path());
            command.current_dir(dir.path());
            command
        };
        let _busy = Busy::start();
        let instance = machine.instance_name("knobs");
        for (args, exits) in MODES {
            let args: Vec<&str> =
                args.iter().map(|arg| if *arg == INSTANCE { &instance } else { *arg }).collect();
            let out = command(&args).run();
            let error = &out.stderr;
            assert!(out.code().is_some_and(|code| exits.contains(&code)), "{args:?}: {error}");
            assert_eq!(before.changed(&machine.root), [""; 0], "{args:?}, {unusual}");
        }
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
            let mut recorder = Recorder::start(command(&["record", "sched", "-o", "x.dat"]), dir.path());
            wait_for_tracing(&machine.root);
            recorder.signal(signal);
            assert_eq!(recorder.wait().unwrap().code(), Some(0));
            assert_eq!(before.changed(&machine.root), [""; 0], "{signal}, {unusual}");
        }
        for args in
            [&["start", "sched"][..], &["dump", "-o", "d.dat"], &["stop", "-o", "s.dat", "--compress"]]
        {
            command(args).run().exited(0);
        }
        assert_eq!(before.changed(&machine.root), [""; 0], "start, dump, stop, {unusual}");
        drop(set);
    }
    assert_eq!(usual.changed(&machine.root), [""; 0], "this test itself");
}
