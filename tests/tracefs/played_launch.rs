//! A launch that is played on this machine's kernel: what is found in the recording is what the player says.

use serde_json::Value;
use support::{Command, tracebridge};

use crate::ring::{start_recorder, stop};
use crate::tracefs_fixture::{Machine, machine};

/// Records a launch as a release plays it. Returns what the player says, and what `info` finds.
fn played(machine: &Machine, release: &str) -> (Value, Value) {
    let dir = support::tempdir();
    let recorder = start_recorder(machine, dir.path(), &[]);
    let mut player = Command::new(support::example("reference_launch"));
    player.args(["--frames", "30", "--release", release, "--tracefs"]).arg(&machine.root);
    let said = player.arg("-o").arg(dir.path().join("launch.trace")).run().exited(0);
    stop(recorder);
    let mut info = tracebridge();
    let info = info.args(["info", "--json", "--frames"]).arg(dir.path().join("x.dat")).output().unwrap();
    let json = |text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        serde_json::from_str(text.trim()).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    (json(said.stdout.as_bytes()), json(&info.stdout))
}

/// A moment that the player read from the clock just before it wrote the marker: the marker lies at it or
/// later, and before the player's next reading.
fn lies_within(found: u64, from: &Value, to: &Value) -> bool {
    (from.as_u64().unwrap()..=to.as_u64().unwrap()).contains(&found)
}

#[test]
fn a_launch_that_is_played_is_found_as_it_was_played() {
    let Some(machine) = machine() else { return };
    let rules = [("android9", "android-9"), ("android10", "android-10"), ("android12", "android-12")];
    for (release, rule) in rules {
        let (said, info) = played(&machine, release);
        let launches = info["launches"].as_array().unwrap();
        let [launch] = launches.as_slice() else { panic!("{release}: {info:#}") };
        assert_eq!((&launch["package"], &launch["type"]), (&said["package"], &said["type"]), "{release}");
        assert_eq!(launch["pid"], said["app"]["pid"], "{release}");
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
