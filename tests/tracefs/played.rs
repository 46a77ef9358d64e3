//! Traces whose truth is known, recorded on this machine's kernel. `why` names the cause that was planted in
//! a slice: `scripts/why-truth` counts over many runs how often it does, and how near the sizes are. `info`
//! finds the launch that was played.

use std::path::Path;

use serde_json::Value;
use support::{Command, skip, tracebridge};

use crate::ring::{start_recorder, stop};
use crate::samples::missing_switches;
use crate::tracefs_fixture::{Machine, machine};
use crate::wrap::command;

/// Records the planted cause into `x.dat`. Returns what the program says that it has planted, and the
/// explained span.
fn planted(machine: &Machine, dir: &tempfile::TempDir, cause: &str) -> Option<(Value, Value)> {
    let capture = dir.path().join("x.dat");
    let mut wrap = command(machine, dir.path(), "wrap");
    wrap.arg("-o").arg(&capture).args(["sched", "irq", "-b", "16384", "--"]);
    // At real-time priority, so that what else the machine does is no cause.
    wrap.args(["chrt", "-f", "1"]).arg(support::example("planted_cause")).args([cause, "80", "--tracefs"]);
    let said = wrap.arg(&machine.root).arg("--dir").arg(dir.path()).run();
    if said.stderr.contains("failed to set pid 0's policy") {
        skip("tracefs", "no real-time priority is to be had here");
        return None;
    }
    let said = said.exited(0);
    let why = tracebridge().args(["why", "--json", "--slice", "planted"]).arg(&capture).run();
    let why = why.exited_with_one_of(&[0, 3]).json();
    Some((said.json(), why["spans"][0].clone()))
}

/// The path of the largest cause, by the names of causes, and its ns.
fn largest(span: &Value) -> (Vec<String>, u64) {
    let mut times: std::collections::BTreeMap<Vec<String>, u64> = Default::default();
    for cause in span["causes"].as_array().unwrap() {
        let hops = cause["path"].as_array().unwrap().iter();
        let path = hops.map(|hop| hop["cause"].as_str().unwrap().to_owned()).collect();
        *times.entry(path).or_default() += cause["ns"].as_u64().unwrap();
    }
    assert_eq!(times.values().sum::<u64>(), span["duration_ns"].as_u64().unwrap());
    times.into_iter().max_by_key(|(_, ns)| *ns).unwrap()
}

/// Whether the cause that is named is the planted one, with its time. What is planted was made to last; the
/// machine can only add to that.
fn is_named(said: &Value, span: &Value) -> bool {
    let expected: Vec<String> = serde_json::from_value(said["path"].clone()).unwrap();
    let (path, ns) = largest(span);
    path == expected && ns + 5_000_000 >= said["ns"].as_u64().unwrap()
}

#[test]
fn a_planted_cause_is_the_largest_that_is_named() {
    let Some(machine) = machine() else { return };
    for cause in ["more_work", "sleep", "lock_computing", "lock_sleeping", "lock_chain", "server"] {
        for attempt in 1.. {
            let dir = support::tempdir();
            let Some((said, span)) = planted(&machine, &dir, cause) else { return };
            if is_named(&said, &span) {
                break;
            }
            // A recording without the switch to the thread that ran cannot tell that it ran.
            let (missing, switches) = missing_switches(&dir.path().join("x.dat"));
            assert!(missing > 0, "{cause}: {said} {span:#}");
            if attempt == 3 {
                let why =
                    format!("this kernel left {missing} of {switches} switches out: {cause} cannot be told");
                skip("switches", &why);
                break;
            }
        }
    }
}

/// Records a launch as a release plays it. Returns what the player says, and what `info` finds.
/// With a runtime that scripts/art has made, the app is a real one.
fn played(machine: &Machine, release: &str, art: Option<&Path>) -> (Value, Value) {
    let dir = support::tempdir();
    let recorder = start_recorder(machine, dir.path(), &[]);
    let mut player = Command::new(support::example("reference_launch"));
    player.args(["--frames", "30", "--release", release, "--tracefs"]).arg(&machine.root);
    if let Some(art) = art {
        player.arg("--art").arg(art);
    }
    let said = player.arg("-o").arg(dir.path().join("launch.trace")).run().exited(0);
    stop(recorder);
    let mut info = tracebridge();
    let info = info.args(["info", "--json", "--frames"]).arg(dir.path().join("x.dat")).run();
    (said.json(), info.json())
}

/// A moment that the player read from the clock just before it wrote the marker: the marker lies at it or
/// later, and before the player's next reading.
fn lies_within(found: u64, from: &Value, to: &Value) -> bool {
    (from.as_u64().unwrap()..=to.as_u64().unwrap()).contains(&found)
}

#[test]
fn a_launch_that_is_played_is_found_as_it_was_played() {
    let Some(machine) = machine() else { return };
    launches_are_found(&machine, None);
}

#[test]
fn a_launch_on_a_real_runtime_is_found_as_it_was_played() {
    let Some(machine) = machine() else { return };
    match std::env::var_os("TRACEBRIDGE_ART") {
        Some(art) => launches_are_found(&machine, Some(Path::new(&art))),
        None => skip("art", "TRACEBRIDGE_ART names no runtime: scripts/test --stage art makes one"),
    }
}

fn launches_are_found(machine: &Machine, art: Option<&Path>) {
    let rules = [("android9", "android-9"), ("android10", "android-10"), ("android12", "android-12")];
    for (release, rule) in rules {
        let (said, info) = played(machine, release, art);
        let launches = info["launches"].as_array().unwrap();
        let [launch] = launches.as_slice() else { panic!("{release}: {info:#}") };
        let found = (&launch["package"], &launch["pid"], &launch["type"]);
        let expected = (&said["package"], &said["app"]["pid"], &said["type"]);
        assert_eq!(found, expected, "{release}: {info:#}");
        assert_eq!(launch["rule"], rule, "{release}: {launch}");
        let begin = launch["begin_ns"].as_u64().unwrap();
        let end = begin + launch["duration_ns"].as_u64().unwrap();
        assert!(lies_within(begin, &said["begin_ns"], &said["end_ns"]), "{release}: {launch} {said}");
        assert!(
            lies_within(end, &said["app"]["first_frame_end_ns"], &said["end_ns"]),
            "{release}: {launch} {said}"
        );
        // The player reads the clock after the frame's last marker.
        let first_frame = begin + launch["ttid_ns"].as_u64().unwrap();
        assert!(lies_within(first_frame, &said["begin_ns"], &said["app"]["first_frame_end_ns"]), "{release}");
        let fully_drawn = begin + launch["ttfd_ns"].as_u64().unwrap();
        let said_drawn = (&said["app"]["first_frame_end_ns"], &said["app"]["fully_drawn_end_ns"]);
        assert!(lies_within(fully_drawn, said_drawn.0, said_drawn.1), "{release}: {launch} {said}");
        let frames = info["every_frame"].as_array().unwrap();
        assert_eq!(frames.len() as u64, said["app"]["frames"].as_u64().unwrap(), "{release}");
    }
}
